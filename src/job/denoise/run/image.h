/* image.h: one image in progress, for image.c, strip.c and queue.c. */
#ifndef TESS_JOB_DENOISE_RUN_IMAGE_H
#define TESS_JOB_DENOISE_RUN_IMAGE_H

#include "job/denoise/run/prepared.h"
#include "tensor/quality.h"

/* A strip that passes through the queue. */
typedef struct tess_image_strip {
    tess_strip strip;
    tess_queue_image image;
    bool alpha; /* the last channel is the input's */
    tess_ticket ticket;
} tess_image_strip;

typedef struct tess_image_job {
    tess_engine *engine;
    tess_denoise_file *file;
    const tess_denoise_blocks *blocks;
    tess_pixels pixels;
    tess_reader *reader, *truth;
    tess_writer *writer;
    tess_prepared_image prepared;
    int64_t slice;                   /* that a part is at */
    int64_t first_row;               /* of the file, if the job is for a part of its rows */
    const tess_exchanger *exchanger; /* NULL: no rank has other rows of the image */
    void *exchange_user;
    /* queue: */
    tess_image_strip strips[2]; /* for even and odd numbers */
    char *row_samples;          /* rows are read here before noise is added */
    float *row_draws;
    /* sink: */
    tess_quality quality;
    tess_denoise_sink rows;
} tess_image_job;

/* The ring's source and sink: read rows of the input, write rows of the result. */
tess_status tess_image_source(void *job, int64_t first, int64_t count, void *rows,
                              tess_error *error) TESS_MUST_CHECK;
tess_status tess_image_sink(void *job, int64_t first, int64_t count, const void *rows,
                            tess_error *error) TESS_MUST_CHECK;
/* Opens the input, and what the sink reads beside it: the truth, and the input again. */
tess_status tess_image_open_source(tess_image_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_image_open_sink(tess_image_job *job, tess_error *error) TESS_MUST_CHECK;
/* Creates the output. */
tess_status tess_image_create(tess_image_job *job, tess_error *error) TESS_MUST_CHECK;
void tess_image_close(tess_image_job *job);
/* Stores the sink's figures in the file. */
void tess_image_conclude(tess_image_job *job);
/* Divides the io block into the ring (returned), rows of scratch and the sink's rows. */
void *tess_image_carve(tess_image_job *job);

/* A volume with a 3-D network: reads all slices, runs the network, writes all slices. */
tess_status tess_denoise_volume(tess_image_job *job, tess_error *error) TESS_MUST_CHECK;

/* The ring's worker for a device that computes in host memory: runs the strip's windows. */
tess_status tess_image_run(void *job, const tess_strip *strip, tess_error *error) TESS_MUST_CHECK;

/* The ring's worker for a device with separate memory: submits the strip's windows, which are written before
 * tess_image_wait returns. */
tess_status tess_image_submit(void *job, const tess_strip *strip, tess_error *error) TESS_MUST_CHECK;
/* Waits for the strip that row `first` belongs to. */
tess_status tess_image_wait(tess_image_job *job, int64_t first, tess_error *error) TESS_MUST_CHECK;
/* Waits for all submitted strips, whether they succeed or fail. */
void tess_image_wait_all(tess_image_job *job);
/* Fills all members except the ticket. */
void tess_image_strip_set(tess_image_strip *to, const tess_pixels *pixels, const tess_strip *strip);

#endif
