/* library.h: the handles of the part of tessera.h that works on images in memory.
 *
 * A handle points to the one that it was made with, up to the context, which holds the error text. The device of
 * tessera.h is the device of device/device.h; its `owner` is the tess_opened below. */
#ifndef TESS_JOB_LIBRARY_H
#define TESS_JOB_LIBRARY_H

#include "job/common/context.h"
#include "job/common/engine.h"
#include "job/library/strided.h"
#include "plan/cut.h"
#include "tensor/noise.h"
#include "window/queue.h"

/* The result of tess_device_open. */
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
    size_t staged; /* bytes of `stage`, as allocated */
    tess_queue_sizes sizes;
    bool prepared;
    tess_windows *windows; /* NULL if there is a queue */
    tess_queue *queue;     /* for images on the host and a network on a card */
    tess_block stage;      /* input rows that are still needed when a result overwrites them */
    /* noise level of each plane in the current run; the last one also for all further planes */
    float level[TESS_NOISE_CHANNELS];
    float *slice_levels; /* `level` of each slice while levels are estimated; NULL: one for all */
};

/* Returns the error text of a handle's context. */
static inline tess_error *tess_model_error(const tess_model *model)
{
    return &model->opened->context->error;
}

/* Copies a caller's struct into `to`, which holds the defaults: as many bytes as its first member says. False if that
 * is not a valid size. */
bool tess_struct_take(void *to, size_t to_size, const void *from);
/* Fills a struct of the caller, no further than both sizes go, and sets its size. */
void tess_struct_give(void *to, size_t to_size, const void *from, size_t from_size);
/* Copies the answer to the caller's struct: as many bytes as it has room for. */
void tess_bytes_give(const tess_bytes *answer, tess_bytes *bytes);

/* Checks the caller's image against the plan; `name` is for messages. */
tess_status tess_denoiser_take_image(const tess_denoiser *plan, const tess_image *image, const char *name,
                                     tess_image *out, tess_error *error) TESS_MUST_CHECK;
/* The element type transferred to a card: that of the samples if the card can convert them, otherwise fp32 values. */
tess_dtype tess_denoiser_moved(const tess_denoiser *plan);
/* Fails if a sample is NaN or infinite. */
tess_status tess_denoiser_check_finite(const tess_strided *in, tess_error *error) TESS_MUST_CHECK;
/* Sets `level`, or `slice_levels` for a 2-D model and several slices, from a host image. */
tess_status tess_denoiser_estimate(tess_denoiser *plan, const tess_strided *in,
                                   tess_error *error) TESS_MUST_CHECK;
float tess_denoiser_level(const tess_denoiser *plan, int64_t plane);
/* Whether this channel is denoised by itself and has no noise: its samples stay as they are. */
bool tess_denoiser_keeps(const tess_denoiser *plan, int64_t channel);

/* A strip of the input, copied before results of the strip above overwrite its first rows. */
typedef struct tess_stage {
    const tess_strided *in;
    tess_strided rows; /* `in`, or the copy of a part of it: */
    int64_t slab, from, to;
    bool copied;
} tess_stage;

/* Decides whether a copy is needed: if a result overlaps its input and there are several windows. */
tess_stage tess_stage_of(const tess_denoiser *plan, const tess_strided *in, const tess_strided *out);
/* Called before the first window of a strip. */
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
