/* denoise.h: the parts of the denoise job. For each image: request -> plan (room plan) -> blocks -> run.
 * files: what is read and where results go; look: range, holes, defects and noise of an image; plan: its bytes and those of
 * the job; run: images through the network; ranks: a job that several ranks share. */
#ifndef TESS_JOB_DENOISE_H
#define TESS_JOB_DENOISE_H

#include "job/denoise/denoise_job.h"

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
/* The file's channels that are red, green and blue, if a network for colours takes them in another order; else NULL. */
const short *tess_denoise_rgb_order(const tess_denoise_file *file);
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
/* Checks every level of the map, and that it has one wherever the image has a value; sets file->map_levels. */
tess_status tess_denoise_check_map(tess_engine *engine, const tess_denoise_settings *settings,
                                   tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* If float32 may lose differences between the file's samples, sets file->exact; doubles are then kept (file->info). */
tess_status tess_denoise_find_exact(tess_engine *engine, const tess_denoise_settings *settings,
                                    tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* Whether the noise level is to be estimated, of a model that takes one. */
bool tess_denoise_sigma_is_auto(const tess_denoise_settings *settings);
/* Sets file->two_values if that is to be known: nothing of such an image is changed unasked. */
tess_status tess_denoise_find_two_values(tess_engine *engine, const tess_denoise_settings *settings,
                                         tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* Takes such an image as one without noise, and notes it. */
void tess_denoise_keep_two_values(const tess_denoise_settings *settings, tess_denoise_file *file);
/* Notes a level that was given and is far above the noise of the first rows. After the scale. */
tess_status tess_denoise_doubt_given_sigma(tess_engine *engine, const tess_denoise_settings *settings,
                                           const tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* Sets info.zeros_are_holes if the file's zeros plainly mean missing data, and notes it. */
tess_status tess_denoise_find_zeros(tess_engine *engine, const tess_denoise_settings *settings,
                                    tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* A sample in as many digits as tell it from others of the file, for messages; integers without a fraction. */
typedef struct tess_sample_words {
    char text[32];
} tess_sample_words;
tess_sample_words tess_denoise_words(const tess_denoise_file *file, double sample);
/* The same to a millionth of `span`. */
tess_sample_words tess_denoise_words_of(const tess_denoise_file *file, double sample, double span);
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
/* Collective. Reads headers and opens models and libraries: after this nothing new is loaded. */
tess_status tess_denoise_prepare(tess_denoise_job *job, tess_context *context, bool will_run,
                                 tess_error *error) TESS_MUST_CHECK;
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
/* How the axes of an array are read, and what to give if that is wrong; "" of a file that is no array, or has no channels. */
typedef struct tess_axes_words {
    char text[240];
} tess_axes_words;
tess_axes_words tess_denoise_axes_words(const tess_image_info *info);
/* Notes for the user: that an array is read as a volume; how samples are scaled for the output and compared with the
 * truth; what the output lacks, and what its figures leave out. */
void tess_denoise_note_axes(const tess_denoise_settings *settings, const tess_denoise_file *file);
void tess_denoise_note_samples(const tess_denoise_settings *settings, const tess_denoise_file *file);
/* Halo and batch that are not as asked, and a memory limit that costs much time. */
void tess_denoise_note_plan(const tess_denoise_job *job);
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
