/* denoise.h: the parts of the denoise job. For each image: request -> plan (room plan) -> blocks -> run.
 * files: what is read and where results go; look: range, holes, defects and noise of an image; plan: its bytes and those of
 * the job; run: images through the network; ranks: a job that several ranks share. */
#ifndef TESS_JOB_DENOISE_H
#define TESS_JOB_DENOISE_H

#include "base/json.h"
#include "io/image.h"
#include "job/common/elsewhere.h"
#include "job/common/engine.h"
#include "job/common/pixels.h"
#include "job/common/voice.h"
#include "plan/cut.h"
#include "plan/ranks/blocks.h"
#include "tensor/noise.h"
#include "tensor/samples.h"
#include "window/queue.h"

/* The values of one slice, or of one band. */
typedef struct tess_denoise_span {
    double low, high, sum;
    int64_t found; /* 0: it has no data */
} tess_denoise_span;

/* Result of one pass over the samples, in `unit`, without holes. */
typedef struct tess_denoise_look {
    bool looked;
    tess_scale unit;            /* the samples that are 0 and 1 */
    double low, high, mean;     /* of all values */
    double low_tail, high_tail; /* 1 % are below, 1 % above */
    /* For each of the first channels. */
    double channel_low[TESS_NOISE_CHANNELS], channel_high[TESS_NOISE_CHANNELS];
    /* Values far from all others, as markers of missing data are: */
    bool outliers;
    double outlier, bulk_low, bulk_high;
    /* Samples that stand alone, far from their surroundings (look/defects.h), by their index without alpha; not among
     * `found`. */
    int64_t *defects; /* owned; sorted */
    int64_t defect_count;
    bool many_defects;       /* too many to be listed: they are treated like other samples */
    double alpha;            /* the largest sample of alpha; 0: none */
    int64_t holes, found;    /* samples without and with a value, alpha excluded */
    tess_noise_result noise; /* if it was requested */
    double rounding; /* largest share of a slice's light that rounding adds or takes; 0: floats, or below 0 */
    double coarseness; /* errors of rounding, over what varies in the image (look/rounding.h); 0: floats */
    double alike;      /* of three channels whose file names no colours (look/alike.h); else 1 */
    bool equal;        /* it has three channels, and they are equal, without noise that is added */
    bool pattern;      /* that is stronger than the image varies, so that it is no noise */
    tess_noise_level *slices; /* owned; noise.slices points to it */
    tess_denoise_span *spans; /* owned; of the slices of a volume, else NULL */
    tess_denoise_span *bands; /* owned; of an image with more than TESS_NOISE_CHANNELS, else NULL */
} tess_denoise_look;

/* Which pixels share an estimated noise level, if one level for all would be wrong. */
typedef enum tess_denoise_levels {
    TESS_LEVELS_ONE,
    TESS_LEVELS_BY_BRIGHTNESS, /* photon noise: from the mean around the pixel */
    TESS_LEVELS_BY_SLICE       /* a volume, and a network that takes slices one by one */
} tess_denoise_levels;

/* One file of the job and its result. */
typedef struct tess_denoise_file {
    char *name, *input, *output, *truth; /* owned; name: for the record; truth may be NULL */
    uint32_t item;                       /* number of the file, for the noise generator */
    tess_image_info info, truth_info, map_info;
    tess_image_info out_info; /* as written: another type if the format requires it */
    tess_axes axes;           /* as requested */
    /* The least and largest sample, if float32 may not tell samples apart: doubles, which info.dtype F64 then keeps, or
     * 32-bit integers whose range is that of the data. Else both are 0. */
    tess_scale exact;
    tess_denoise_look look;
    tess_scale scale; /* the samples that mean 0 and 1 */
    tess_scale
        shown; /* the samples that become the ends of the output's, if those have another type or maximum */
    const char *scale_origin; /* "type", "as it is", "given", "data" */
    bool own_scales;          /* slices that fill little of `scale` have one of their own: look/slices.h */
    double sigma;             /* negative: the model takes none, or a map gives the levels */
    double channel_sigma[TESS_NOISE_CHANNELS]; /* of each channel, if it was estimated */
    /* owned; the same of all bands, if there are more than that; in units of the look until they are used */
    float *band_sigma;
    bool sigma_estimated;
    tess_denoise_levels levels; /* what replaces one sigma, if it was estimated */
    char lost[192];             /* metadata that the output's format cannot hold; "": nothing */
    /* rows are converted to fp32 values before the ring and to samples after it: run/prepared.c */
    bool prepared;
    bool dithers; /* samples get a dither before they are rounded */
    tess_engine_model *model;
    tess_cut_request request;
    tess_cut_plan choice;
    tess_cut_plan cut; /* of a volume, for a 3-D network */
    double seconds;
    double psnr, ssim;    /* NaN: not measured */
    double cut_off;       /* share of the samples outside `shown`, if that matters */
    double held_back;     /* share of the pixels with less of the result: run/trust.c */
    double truth_outside; /* share of the truth's samples that the figures clamp to the range */
    tess_status status;
    char *error;      /* owned; NULL: no error */
    bool skipped;     /* its output exists and is kept */
    bool begun, done; /* done: its output is written */
    int rank;         /* that processes it */
    bool fresh;       /* this rank has changed it since the ranks last shared what they know */
} tess_denoise_file;

/* Memory to denoise an image: its rows, and the network in host memory (windows) or on a device with separate memory
 * (queue). */
typedef struct tess_denoise_blocks {
    tess_block io;
    tess_windows *windows;
    tess_queue *queue;
} tess_denoise_blocks;

enum { TESS_DENOISE_WORDS = 16 };
/* A constant text of another rank. */
typedef struct tess_denoise_word {
    char text[24];
} tess_denoise_word;
/* A file in the order in which ranks take them. */
typedef struct tess_denoise_order {
    double seconds;
    int64_t index;
} tess_denoise_order;

/* How ranks share one image: rank i has strip i, or block i of a grid, and exchanges rows, and columns, with its neighbours inside
 * the network. If that does not fit, rank i has rows of the tiles into which one rank would cut the image. All zero: they share
 * files. */
typedef struct tess_denoise_strips {
    int64_t count; /* of strips or blocks; further ranks have nothing to do */
    bool
        in_place; /* rows are written by the rank that has them, the first one of each row of blocks; else by rank 0 */
    bool tiles;                 /* rows of tiles; then there are no blocks */
    tess_blocks blocks;         /* strips are a single column of them */
    int64_t most, most_columns; /* of the largest strip or block; columns: 0 unless there are blocks */
} tess_denoise_strips;
/* The bytes of one rank. */
typedef struct tess_denoise_rank {
    uint64_t planned, measured;
} tess_denoise_rank;

/* The whole job: plan and results. */
typedef struct tess_denoise_job {
    const tess_denoise_settings *settings;
    tess_engine engine;
    tess_denoise_file *files;
    int64_t count;
    bool folder;                         /* the output is a folder: a bad file does not fail the others */
    bool volumes;                        /* the model is 3-D */
    bool listed;                         /* `files` is complete */
    bool in_place;                       /* some result replaces its input */
    bool interrupted;                    /* the caller stopped it */
    tess_mem_bytes planned;              /* the largest of each category */
    uint64_t planned_total;              /* of the largest file, not the sum of the categories */
    double planned_seconds, start, wall; /* wall: from the start to the last output */
    tess_queue_sizes queue_sizes;        /* for a device with separate memory */
    uint64_t host_bytes;                 /* pinned; planned and allocated */
    tess_queue_figures figures;
    char replanned[128];       /* the reason, if the job was planned again */
    uint64_t baseline;         /* bytes free on the device before the plan's blocks */
    uint64_t overhead, loaded; /* resident bytes before the plan, and after the weights are loaded */
    /* Measured, the most of all ranks; in a record of a job that did not run they are 0. */
    tess_mem_usage peak;
    uint64_t resident;
    double seconds;
    tess_denoise_strips strips;
    tess_denoise_rank *ranks; /* owned; with strips */
    char shared[192];         /* how ranks share the image */
    tess_elsewhere elsewhere; /* if the settings have a machine */
    /* Ranks that share the files: */
    tess_voice *voice;
    tess_denoise_order *order; /* owned; NULL: as listed */
    uint32_t counter;          /* that gives out the files */
    tess_denoise_word words[TESS_DENOISE_WORDS];
    int word_count;
} tess_denoise_job;

/* Channels without alpha. */
int64_t tess_denoise_colours(const tess_image_info *info);
tess_pixels tess_denoise_pixels(const tess_engine *engine, const tess_denoise_settings *settings,
                                const tess_denoise_file *file);
/* Sets the noise levels of a slice of a volume; an image is slice 0. */
void tess_denoise_set_slice(const tess_denoise_file *file, int64_t slice, tess_pixels *pixels);
/* Bytes of a row of the file's samples, rounded up. */
size_t tess_denoise_row_bytes(const tess_image_info *info);
/* Memory of the sink to compare with a truth: rows of samples, rows of values, and SSIM's lines. */
typedef struct tess_denoise_sink {
    char *truth_samples, *out_samples;
    float *truth_row, *result_row;
    void *lines;
} tess_denoise_sink;
/* Places it at `at`; with NULL it only returns the bytes. */
size_t tess_denoise_carve_sink(const tess_denoise_file *file, char *at, tess_denoise_sink *sink);
/* Rows of all slices. */
int64_t tess_denoise_rows(const tess_image_info *info);
/* Whether samples must be hidden from the network: holes and defects. */
bool tess_denoise_has_hidden(const tess_denoise_file *file);
/* The defects of a row, which counts through all slices: *first is the first one in look.defects. */
int64_t tess_denoise_row_defects(const tess_denoise_file *file, int64_t row, int64_t *first);
/* Reads the next rows of a file and marks samples without a value: masked ones, NaN and infinity. `valid` has one
 * byte per sample. */
tess_status tess_denoise_read_rows(const tess_image_info *info, tess_reader *reader, int64_t count,
                                   char *samples, unsigned char *valid, tess_error *error) TESS_MUST_CHECK;
/* Converts the colours of one row to values on `scale`, holes to NaN. */
void tess_denoise_row_values(const tess_image_info *info, tess_scale scale, const char *samples,
                             const unsigned char *valid, float *values);
/* Adds noise to a row of `count` values. The noise of a value depends only on its position in the file; `row` counts
 * through all slices. */
void tess_denoise_add_noise(tess_rng_key key, double level, int64_t row, int64_t count, float *draws,
                            float *values);
/* Rejects invalid settings of strength and range. */
tess_status tess_denoise_check_samples(const tess_denoise_settings *settings,
                                       tess_error *error) TESS_MUST_CHECK;
/* Whether choosing or checking the scale needs a pass over the samples; whether the scale is known without it. */
bool tess_denoise_scale_needs_look(const tess_denoise_settings *settings, const tess_image_info *info);
bool tess_denoise_scale_is_known(const tess_denoise_settings *settings, const tess_image_info *info);
/* One pass over the samples: fills file->look. */
tess_status tess_denoise_look_at(tess_engine *engine, const tess_denoise_settings *settings,
                                 tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* Reads the next row of a map of noise levels; NaN where it has no value. `samples` and `valid` are scratch. */
tess_status tess_denoise_map_row(const tess_image_info *info, tess_reader *reader, char *samples,
                                 unsigned char *valid, float *levels, tess_error *error) TESS_MUST_CHECK;
/* Replaces NaN by the nearest level to its left, or by the first of the row. */
void tess_denoise_map_fill(float *levels, int64_t width);
/* Checks every level of the map, and that it has one wherever the image has a value. */
tess_status tess_denoise_check_map(tess_engine *engine, const tess_denoise_settings *settings,
                                   const tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* If float32 may lose differences between the file's samples, sets file->exact; doubles are then kept (file->info). */
tess_status tess_denoise_find_exact(tess_engine *engine, const tess_denoise_settings *settings,
                                    tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* Sets info.zeros_are_holes if the file's zeros plainly mean missing data, and notes it. */
tess_status tess_denoise_find_zeros(tess_engine *engine, const tess_denoise_settings *settings,
                                    tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* A sample in as many digits as tell it from others of the file, for messages; integers without a fraction. */
typedef struct tess_sample_words {
    char text[32];
} tess_sample_words;
tess_sample_words tess_denoise_words(const tess_denoise_file *file, double sample);
/* Whether samples are written as another integer type, or with another maximum, and so have other numbers. */
bool tess_denoise_rescales(const tess_denoise_file *file);
/* Whether its samples get a dither before they are rounded: because that is asked for, or because the noise
 * carries what lies between whole numbers, so that counts of few photons would lose their light. */
bool tess_denoise_dithers(const tess_denoise_settings *settings, const tess_denoise_file *file);
/* The sample of a value of the look; integers without a fraction. */
double tess_denoise_sample_of(const tess_denoise_file *file, double value);
/* Opens a file of the job, with doubles if `dtype` is F64. */
tess_status tess_denoise_open(tess_memory *memory, const char *path, tess_axes axes, tess_dtype dtype,
                              tess_reader **reader, tess_error *error) TESS_MUST_CHECK;
/* Whether file->scale is that of the samples' type, not of this image. */
bool tess_denoise_scale_is_of_type(const tess_denoise_file *file);
/* Samples of the truth that mean 0 and 1. If both files say what their samples mean (scale and offset), the same
 * quantities do. Else a range that was given or found is in the units of the input's samples, and the truth has the
 * same; or each file has the range of its type. */
tess_scale tess_denoise_truth_scale(const tess_denoise_file *file);
/* Whether both files say what their samples mean; floats do, beside samples with a scale. */
bool tess_denoise_truth_has_units(const tess_denoise_file *file);
/* Chooses file->scale; fails if sigma would have no meaning on it. */
tess_status tess_denoise_set_scale(const tess_denoise_settings *settings, tess_denoise_file *file,
                                   tess_error *error) TESS_MUST_CHECK;
/* Opens the file's header, finds its model, and fills info, model and request. */
tess_status tess_denoise_describe(tess_engine *engine, const tess_denoise_settings *settings,
                                  tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* Fills the request, which depends on the device. */
void tess_denoise_request(const tess_engine *engine, const tess_denoise_settings *settings,
                          tess_denoise_file *file);
/* A model that an image only seemed to need (its channels turned out to be equal, say) takes no memory. */
void tess_denoise_close_unused_models(tess_denoise_job *job);
/* Decides on the device, if it is not decided, from the work of all files; they are described. */
tess_status tess_denoise_choose(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_denoise_image(tess_engine *engine, const tess_denoise_settings *settings,
                               tess_denoise_file *file, const tess_denoise_blocks *blocks,
                               tess_error *error) TESS_MUST_CHECK;

/* The same for a job with a 3-D model: sets file->choice and file->cut. */
tess_status tess_denoise_volume_plan(tess_denoise_job *job, uint64_t limit,
                                     tess_error *error) TESS_MUST_CHECK;
/* Plans every file within `limit` bytes. */
tess_status tess_denoise_plan(tess_denoise_job *job, uint64_t limit, tess_error *error) TESS_MUST_CHECK;
/* Neither failed nor skipped. */
bool tess_denoise_todo(const tess_denoise_file *file);
/* Records a file's failure. One bad file does not fail a folder job; the failure of a single file is the job's. A
 * failure after a stop request counts as stopped, because it may come from unfinished values. */
tess_status tess_denoise_settle(const tess_denoise_job *job, tess_denoise_file *file, tess_status status,
                                tess_error *error) TESS_MUST_CHECK;
/* Process all files: one after another in host memory, or many at once through a queue. Both load the weights first. */
tess_status tess_denoise_run_host(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_denoise_run_queue(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
/* Calls the caller's `file` callback; must be called on the thread that started the job. */
void tess_denoise_announce(const tess_denoise_job *job, int64_t index);
/* Creates the folder of the output, if it is inside the job's output folder. Thread-safe. */
tess_status tess_denoise_make_folder(const tess_denoise_job *job, const tess_denoise_file *file,
                                     tess_error *error) TESS_MUST_CHECK;

/* Fills files, count and folder: named files, and every known image of a named folder in the order of names, with
 * `recursive` also of its subfolders. Marks those to be skipped. */
tess_status tess_denoise_list(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
/* Checks that no output overwrites an input (unless allowed), the truth, the noise map or another output. */
tess_status tess_denoise_check_targets(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
/* Notes what of the list is written in another format or skipped. */
void tess_denoise_note_list(const tess_denoise_job *job);
/* TESS_INTERRUPTED, with how far a job of several files came. */
tess_status tess_denoise_stopped(const tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
void tess_denoise_list_free(tess_denoise_file *files, int64_t count);

/* Measures kernels at the job's sizes, then rates, for the plans of later jobs. */
void tess_denoise_calibrate(tess_denoise_job *job);
/* Notes for the user: that an array is read as a volume; how samples are scaled for the output and compared with the
 * truth; what the output lacks, and what its figures leave out. */
void tess_denoise_note_axes(const tess_denoise_settings *settings, const tess_denoise_file *file);
void tess_denoise_note_samples(const tess_denoise_settings *settings, const tess_denoise_file *file);
void tess_denoise_note_result(const tess_denoise_settings *settings, const tess_denoise_file *file);

double tess_denoise_seconds(const tess_denoise_job *job);
/* The job's record; `ran` adds what was measured. */
tess_json *tess_denoise_record(const tess_denoise_job *job, bool ran);
void tess_denoise_record_samples(tess_json **entry, const tess_denoise_settings *s,
                                 const tess_denoise_file *file);
/* Plans for the ranks and the machine of the settings, if there are any. */
tess_status tess_denoise_elsewhere(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
/* The largest image that can be processed: its plan is reported as the job's. */
const tess_denoise_file *tess_denoise_largest(const tess_denoise_job *job);

/* ranks/ranks.c, ranks/share.c: a job of many files, shared by ranks. Each file is described and processed by one
 * rank, in dynamic order; rank 0 plans for all, so that the result of a file does not depend on who processes it.
 * Collective, all of them but tess_denoise_take; with one rank they do nothing, unless stated otherwise. */
/* Fails if the ranks do not see the same files. */
tess_status tess_denoise_same_list(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
/* Collective: the same for models; a rank that has none has failed before. */
tess_status tess_denoise_same_model(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
/* All ranks get what the files that are `fresh` on a rank have become there, and rank 0 the notes about them. */
tess_status tess_denoise_share(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
/* Rank 0's plan becomes the plan of all ranks. `mine` is the status of making it, on rank 0. */
tess_status tess_denoise_share_plan(tess_denoise_job *job, tess_status mine,
                                    tess_error *error) TESS_MUST_CHECK;
/* Sets the job's figures to the most of all ranks; with one rank, to its own. */
tess_status tess_denoise_share_figures(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;

/* ranks/strips.c: a job of one image, shared by ranks in strips of rows or in blocks. Collective. */
bool tess_denoise_in_strips(const tess_denoise_job *job);
/* Each rank plans its own strip within `limit`; the job's plan has the most of all ranks. */
tess_status tess_denoise_plan_strips(tess_denoise_job *job, uint64_t limit,
                                     tess_error *error) TESS_MUST_CHECK;
tess_status tess_denoise_run_strips(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;

/* Starts giving out files: in their order, or with several ranks the largest first, so that no rank is left with a large
 * one at the end. */
tess_status tess_denoise_deal(tess_denoise_job *job, tess_error *error) TESS_MUST_CHECK;
/* The next file that this rank is to process; -1: none is left. One thread at a time. */
int64_t tess_denoise_take(tess_denoise_job *job);

#endif
