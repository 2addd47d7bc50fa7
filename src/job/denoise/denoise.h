/* denoise.h: the parts of the denoise job. One image: request -> plan (room plan) -> blocks -> run. */
#ifndef TESS_JOB_DENOISE_H
#define TESS_JOB_DENOISE_H

#include "base/json.h"
#include "io/image.h"
#include "job/common/engine.h"
#include "job/common/pixels.h"
#include "plan/cut.h"
#include "tensor/noise.h"
#include "tensor/samples.h"
#include "window/queue.h"

/* What one pass over the samples found; in `unit`, holes left out. */
typedef struct tess_denoise_look {
    bool looked;
    tess_scale unit;            /* samples at 0 and 1 */
    double low, high, mean;     /* of all values */
    double low_tail, high_tail; /* 1 % are below, 1 % above */
    /* Of each of the first channels. */
    double channel_low[TESS_NOISE_CHANNELS], channel_high[TESS_NOISE_CHANNELS];
    /* Values that lie far from all others, as those that mark missing data do: */
    bool outliers;
    double outlier, bulk_low, bulk_high;
    int64_t holes, found;    /* samples without and with a value, alpha left out */
    tess_noise_result noise; /* where it was asked for */
} tess_denoise_look;

/* Noise levels that the estimate gives to pixels, where one for all would be wrong. */
typedef enum tess_denoise_levels {
    TESS_LEVELS_ONE,
    TESS_LEVELS_BY_BRIGHTNESS, /* of photon noise: from the mean around the pixel */
    TESS_LEVELS_BY_SLICE       /* of a volume whose slices differ */
} tess_denoise_levels;

/* One file of the job, and what became of it. */
typedef struct tess_denoise_file {
    char *name, *input, *output, *truth; /* owned; name: for the record; truth may be NULL */
    uint32_t item;                       /* counts the files, for the noise */
    tess_image_info info, truth_info, map_info;
    tess_image_info out_info; /* as it is written: another type where the format wants it */
    tess_axes axes;           /* as asked for */
    tess_denoise_look look;
    tess_scale scale;         /* samples that mean 0 and 1 */
    const char *scale_origin; /* "type", "as it is", "given", "data" */
    double sigma;             /* negative: the model takes none, or the levels come from a map */
    double channel_sigma[TESS_NOISE_CHANNELS]; /* of each channel, where it was estimated */
    bool sigma_estimated;
    tess_denoise_levels
        levels;     /* what the network is given in place of one sigma, where that was estimated */
    char lost[192]; /* metadata that the output's format cannot hold; "": nothing */
    bool prepared;  /* rows become fp32 values before the ring, and samples behind it: denoise_prepared.c */
    tess_engine_model *model;
    tess_cut_request request;
    tess_cut_plan choice;
    tess_cut_plan cut; /* of a volume, for a 3-D network */
    double seconds;
    double psnr, ssim; /* NaN: not measured */
    tess_status status;
    char *error;      /* owned; NULL when all went well */
    bool skipped;     /* its output is there already, and is left alone */
    bool begun, done; /* done: its output is written */
} tess_denoise_file;

/* What an image is denoised with: its rows, and the network here (windows) or on a device with its own memory (queue). */
typedef struct tess_denoise_blocks {
    tess_block io;
    tess_windows *windows;
    tess_queue *queue;
} tess_denoise_blocks;

/* The whole job: what it will do, and what it did. */
typedef struct tess_denoise_job {
    const tess_denoise_settings *settings;
    tess_engine engine;
    tess_denoise_file *files;
    int64_t count;
    bool folder;            /* the output is one: a bad file does not fail the others */
    bool volumes;           /* the model is 3-D */
    bool interrupted;       /* the caller stopped it */
    tess_mem_bytes planned; /* the largest of each category */
    uint64_t planned_total; /* of the largest file: not their sum */
    double planned_seconds, start;
    tess_queue_sizes queue_sizes; /* where the device's memory is its own */
    uint64_t host_bytes;          /* pinned, planned and taken */
    tess_queue_figures figures;
    char replanned[128];       /* why, when the plan was made again */
    uint64_t baseline;         /* bytes free on the device before the plan's blocks */
    uint64_t overhead, loaded; /* resident before the plan, and once the weights are there */
} tess_denoise_job;

/* Channels without alpha. */
int64_t tess_denoise_colours(const tess_image_info *info);
tess_pixels tess_denoise_pixels(const tess_engine *engine, const tess_denoise_settings *settings,
                                const tess_denoise_file *file);
/* A row of the file's samples, rounded up. */
size_t tess_denoise_row_bytes(const tess_image_info *info);
/* What the sink holds to compare with a truth: rows of samples, rows of values, and SSIM's lines. */
typedef struct tess_denoise_sink {
    char *truth_samples, *out_samples;
    float *truth_row, *result_row;
    void *lines;
} tess_denoise_sink;
/* Carves it from `at`, or with NULL only counts: the bytes that it takes. */
size_t tess_denoise_carve_sink(const tess_denoise_file *file, char *at, tess_denoise_sink *sink);
/* Rows of all slices. */
int64_t tess_denoise_rows(const tess_image_info *info);
/* The next rows of a file, and which samples hold a value: masked ones, NaN and infinity do not. `valid` has one byte a
 * sample. */
tess_status tess_denoise_read_rows(const tess_image_info *info, tess_reader *reader, int64_t count,
                                   char *samples, unsigned char *valid, tess_error *error) TESS_MUST_CHECK;
/* The colours of one row as values on `scale`, holes as NaN. */
void tess_denoise_row_values(const tess_image_info *info, tess_scale scale, const char *samples,
                             const unsigned char *valid, float *values);
/* Adds noise to a row of `count` values. The noise of a value depends on its place in the file alone; `row` counts through
 * the slices. */
void tess_denoise_add_noise(tess_rng_key key, double level, int64_t row, int64_t count, float *draws,
                            float *values);
/* Refuses settings of strength and range that cannot be right. */
tess_status tess_denoise_check_samples(const tess_denoise_settings *settings,
                                       tess_error *error) TESS_MUST_CHECK;
/* Must the samples be seen to choose the scale or to doubt it? Is it known without? */
bool tess_denoise_scale_needs_look(const tess_denoise_settings *settings, const tess_image_info *info);
bool tess_denoise_scale_is_known(const tess_denoise_settings *settings, const tess_image_info *info);
/* One pass over the samples: fills file->look. */
tess_status tess_denoise_look_at(tess_engine *engine, const tess_denoise_settings *settings,
                                 tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* The estimate of the look becomes file->sigma and file->levels, on file->scale. The bundled model for gray images takes
 * over where channels differ much. */
tess_status tess_denoise_use_estimate(tess_engine *engine, const tess_denoise_settings *settings,
                                      tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* Noise levels of one row of pixels, from the means around their values; those of a slice need no means. */
void tess_denoise_levels_of(const tess_denoise_file *file, int64_t slice, const float *means, float *levels);
/* Does the network take a map of levels, from a file or of the estimate? */
bool tess_denoise_has_map(const tess_denoise_file *file);
/* Chooses file->scale; refuses where sigma would mean nothing on it. */
tess_status tess_denoise_set_scale(const tess_denoise_settings *settings, tess_denoise_file *file,
                                   tess_error *error) TESS_MUST_CHECK;
/* Opens the file's header, finds its model, and fills info, model and request. */
tess_status tess_denoise_describe(tess_engine *engine, const tess_denoise_settings *settings,
                                  tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
tess_status tess_denoise_image(tess_engine *engine, const tess_denoise_settings *settings,
                               tess_denoise_file *file, const tess_denoise_blocks *blocks,
                               tess_error *error) TESS_MUST_CHECK;

/* The same for a job whose model is 3-D: file->choice and file->cut. */
tess_status tess_denoise_volume_plan(tess_denoise_job *job, uint64_t limit,
                                     tess_error *error) TESS_MUST_CHECK;
/* Plans every file. Within `limit` bytes. */
tess_status tess_denoise_plan(tess_denoise_job *job, uint64_t limit, tess_error *error) TESS_MUST_CHECK;
/* Neither failed nor skipped. */
bool tess_denoise_todo(const tess_denoise_file *file);
/* Records a file's failure. One bad file does not fail a folder job; a single file's failure is the job's. What fails after
 * a stop was requested counts as stopped: it may have met values that were not computed to the end. */
tess_status tess_denoise_settle(const tess_denoise_job *job, tess_denoise_file *file, tess_status status,
                                tess_error *error) TESS_MUST_CHECK;
/* All files, one after another in the host's memory, or many at once through a queue; weights are loaded first. */
tess_status tess_denoise_run_host(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_denoise_run_queue(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
/* Calls the caller's `file` callback; on the thread that began the job. */
void tess_denoise_announce(const tess_denoise_job *job, int64_t index);
/* Makes the folder that the output goes to, where it is one inside the job's output folder. Any thread. */
tess_status tess_denoise_make_folder(const tess_denoise_job *job, const tess_denoise_file *file,
                                     tess_error *error) TESS_MUST_CHECK;

/* Fills files, count and folder: files as they were named, and every known image of a folder in the order of the names,
 * with `recursive` also of the folders in it. Marks those to be skipped. */
tess_status tess_denoise_list(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
/* No output is written over an input (unless allowed), over the truth or the noise map, or twice. */
tess_status tess_denoise_check_targets(const tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
void tess_denoise_list_free(tess_denoise_file *files, int64_t count);

/* The job's record; `ran` adds what was measured. */
tess_json *tess_denoise_record(const tess_denoise_job *job, bool ran);
/* The largest image that can be done: its plan stands for the job's. */
const tess_denoise_file *tess_denoise_largest(const tess_denoise_job *job);

#endif
