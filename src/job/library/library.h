/* library.h: the handles behind the part of tessera.h that works on images in memory.
 *
 * A handle knows the one that it was made with, up to the context, whose error text every failure goes to. The device of
 * tessera.h is the device of device/device.h; its `owner` is the tess_opened below. */
#ifndef TESS_JOB_LIBRARY_H
#define TESS_JOB_LIBRARY_H

#include "job/common/context.h"
#include "job/common/engine.h"
#include "job/library/strided.h"
#include "plan/cut.h"
#include "tensor/noise.h"
#include "window/queue.h"

/* What tess_device_open made. */
typedef struct tess_opened {
    tess_context *context;
    tess_engine engine;
    char name[160];
} tess_opened;

struct tess_model {
    tess_opened *opened;
    tess_engine_model loaded;
    tess_precision precision;
};

struct tess_denoiser {
    tess_model *model;
    tess_denoiser_settings settings;
    tess_sample_type type; /* of input and output */
    tess_cut_plan plan;
    tess_cut cut;
    tess_window_net net;
    tess_bytes bytes;
    size_t staged; /* of `stage`, as it is asked for */
    tess_queue_sizes sizes;
    bool prepared;
    tess_windows *windows; /* NULL where there is a queue */
    tess_queue *queue;     /* images on the host, a network on a card */
    tess_block stage;      /* input rows that are still needed when a result is written over them */
    /* of the run under way, for each plane; the last for all further ones */
    float level[TESS_NOISE_CHANNELS];
};

/* The error text of a handle's context. */
static inline tess_error *tess_model_error(const tess_model *model)
{
    return &model->opened->context->error;
}

/* A caller's struct into one of ours, which holds the defaults: as much as the caller's has, by its first member. False
 * where that is no size. */
bool tess_struct_take(void *to, size_t to_size, const void *from);
/* The other way: as much of the answer as the caller's struct has room for. */
void tess_bytes_give(const tess_bytes *answer, tess_bytes *bytes);

/* The caller's image, checked against the plan; `name` is for messages. */
tess_status tess_denoiser_take_image(const tess_denoiser *plan, const tess_image *image, const char *name,
                                     tess_image *out, tess_error *error) TESS_MUST_CHECK;
/* The type of what crosses the bus to a card: the samples where the card can convert them, else values. */
tess_dtype tess_denoiser_moved(const tess_denoiser *plan);
/* Fills `level` from a host image. */
tess_status tess_denoiser_estimate(tess_denoiser *plan, const tess_strided *in,
                                   tess_error *error) TESS_MUST_CHECK;
float tess_denoiser_level(const tess_denoiser *plan, int64_t plane);

/* A strip of the input, copied before the results of the strip above it are written over its first rows. */
typedef struct tess_stage {
    const tess_strided *in;
    tess_strided rows; /* `in`, or what was copied of it: */
    int64_t slab, from, to;
    bool copied;
} tess_stage;

/* Is a copy needed? Where a result lies over its input and there are several windows. */
tess_stage tess_stage_of(const tess_denoiser *plan, const tess_strided *in, const tess_strided *out);
/* Before the first window of a strip. */
void tess_stage_strip(tess_stage *stage, int64_t slab, const tess_span *rows);
/* Row y of slice z, from column x on, is run->y of stage->rows. */
tess_run_of_pixels tess_stage_run(const tess_stage *stage, int64_t z, int64_t y, int64_t x, int64_t count);

/* The three ways to move pixels. */
tess_status tess_denoiser_run_host(tess_denoiser *plan, const tess_strided *in, const tess_strided *out,
                                   tess_error *error) TESS_MUST_CHECK;
tess_status tess_denoiser_run_queue(tess_denoiser *plan, const tess_strided *in, const tess_strided *out,
                                    tess_error *error) TESS_MUST_CHECK;
tess_status tess_denoiser_run_resident(tess_denoiser *plan, const tess_image *in, const tess_image *out,
                                       tess_stream *stream, tess_error *error) TESS_MUST_CHECK;

#endif
