/* sample_ops.h: a cache of prepared import and export ops, which convert between the samples of an image and
 * the inputs and outputs of a network. */
#ifndef TESS_WINDOW_SAMPLE_OPS_H
#define TESS_WINDOW_SAMPLE_OPS_H

#include "device/device.h"

typedef struct tess_sample_ops tess_sample_ops;

tess_sample_ops *tess_sample_ops_create(tess_device *device); /* NULL: no memory */
void tess_sample_ops_destroy(tess_sample_ops *ops);           /* accepts NULL */

tess_op tess_import_op(const tess_tensor *from, const tess_tensor *to, tess_op_samples samples);
/* `top`, `left`: where the core begins in the network's output. */
tess_op tess_export_op(const tess_tensor *from, const tess_tensor *to, tess_op_samples samples, int64_t top,
                       int64_t left);
/* Prepares the op unless it is in the cache, and queues it. */
tess_status tess_sample_op_run(tess_sample_ops *ops, const tess_op *op, const void *in, void *out,
                               tess_stream *stream, tess_error *error) TESS_MUST_CHECK;

#endif
