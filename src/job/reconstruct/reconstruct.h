/* reconstruct.h: the parts of the reconstruct job: settings -> recipe and
 * problem -> plan -> measurements -> solve -> picture and record. */
#ifndef TESS_JOB_RECONSTRUCT_H
#define TESS_JOB_RECONSTRUCT_H

#include "base/json.h"
#include "io/image.h"
#include "job/common/prior.h"
#include "physics/kernels.h"
#include "physics/operator.h"
#include "solve/pnp.h"

typedef enum tess_init {
    TESS_INIT_ZERO,
    TESS_INIT_ADJOINT,
    TESS_INIT_FILTERED,
    TESS_INIT_CG,
    TESS_INIT_MEAN
} tess_init;

typedef enum tess_noise_from {
    TESS_NOISE_FROM_DEFAULT,
    TESS_NOISE_FROM_GIVEN,
    TESS_NOISE_FROM_DATA /* estimated */
} tess_noise_from;

/* What the preset and the options make together. */
typedef struct tess_recipe {
    tess_init init;
    int64_t iterations;
    double sigma, last_sigma, relax, noise;
    tess_noise_from noise_from;
    int64_t inner;        /* conjugate gradients in place of a gradient step */
    double step;          /* 0: from the norm */
    bool absolute_power;  /* the power method stops by an absolute change, as
                           deepinv's does */
    bool peak_normalised; /* the start is scaled to the truth's peak */
    bool saturating_psnr; /* PSNR with 1e-8 added to the error */
    bool volume;          /* the prior is a 3-D network; else volumes go slice by slice */
    tess_inflation inflation;
} tess_recipe;

typedef enum tess_physics { TESS_PHYSICS_BLUR, TESS_PHYSICS_RADON, TESS_PHYSICS_CONE } tess_physics;

typedef enum tess_centre_from {
    TESS_CENTRE_MIDDLE, /* not given */
    TESS_CENTRE_GIVEN,
    TESS_CENTRE_PAIRS, /* found from opposite views */
    TESS_CENTRE_MASS   /* found from the centres of mass */
} tess_centre_from;

typedef enum tess_range_from {
    TESS_RANGE_FROM_DEFAULT, /* [0, 1] */
    TESS_RANGE_FROM_GIVEN,
    TESS_RANGE_FROM_TYPE, /* of integers, up to their maximum */
    TESS_RANGE_FROM_DATA  /* low, high and unit are known once there are measurements */
} tess_range_from;

/* What is to be solved. */
typedef struct tess_problem {
    tess_memory *memory; /* where its files are counted while they are read */
    char *name;          /* for the record: "deblur", "tomo2d", or the file */
    tess_physics physics;
    int64_t depth, height, width, channels; /* depth 1: an image */
    int64_t rows, columns;                  /* of the detector; of a sinogram's, 1 row */
    double *vectors;                        /* 12 a view, in 3-D; owned */
    bool parallel;                          /* rays, in 3-D */
    double spacing;                         /* of the voxels, in 3-D; of a sinogram's columns */
    int64_t count;                          /* blurs, or views */
    double *angles;                         /* degrees; owned; NULL in 3-D */
    double blur[2];                         /* standard deviations along rows and columns at angle 0 */
    tess_kernel *kernels; /* `count` measured ones in place of Gaussians; owned; NULL: none */
    char **kernel_files;  /* where they were read; owned */
    bool unknown;         /* the blurs bring in what lies outside: else they are circular */
    int64_t margin[2];    /* rows above and columns on the left that are estimated, but not seen */
    bool circle;
    double centre; /* the column at which the axis of a sinogram is seen */
    tess_centre_from centre_from;
    int64_t centre_pairs; /* of opposite views */
    double *centres;      /* of each view: see tess_radon_settings; owned; NULL: the middle */
    int64_t row;          /* of each view, that makes a sinogram of them; -1: all */
    bool counts;          /* measurements are counts, not line integrals */
    char *flat, *dark;    /* files, of counts; owned; NULL: the numbers */
    double flat_value, dark_value;
    tess_range_from range_from;
    bool floats; /* the file of the blurs holds floats */
    bool
        as_published; /* files are taken as they are, but integers without a range divided by their maximum */
    bool bare_integers; /* of views that are taken for line integrals */
    double low, high;   /* of the truth, in units */
    double unit;        /* values of files that are 1 here: networks know images up to 1 */
    double offset;      /* values of files that are 0 here; not 0 for blurs alone, which keep constants */
    bool synthetic;     /* truth and measurements are made here */
    double noise;       /* of measured data; negative: not given */
    bool clamped;       /* measurements are clamped to [low, high] */
    char *image, *truth, *measurement; /* files; owned; NULL: none */
    char *geometry;                    /* the file of the vectors, for messages */
    bool resized;                      /* the image is brought to height x width */
    size_t held;                       /* by readers of those files, at most at once */
    int64_t image_height, image_width; /* of the file */
} tess_problem;

/* One iteration, for the record. */
typedef struct tess_iteration {
    double psnr, ssim, gradient_seconds, denoise_seconds, step, sigma, change;
    uint64_t gradient_peak_bytes, denoise_peak_bytes;
} tess_iteration;

typedef struct tess_reconstruct_job {
    const tess_reconstruct_settings *settings;
    tess_engine engine;
    tess_recipe recipe;
    tess_problem problem;
    tess_operator *op;
    tess_prior prior;
    tess_data_term term;
    /* Memory: the solver's images and residual, the measurements until they are absorbed, what the data term works in,
     * what only the host looks at. */
    tess_block solver, measurement, work, io;
    bool
        hosted; /* the first two are the host's: a volume too large for the device goes through it in slabs */
    void *scratch; /* for the operator while the measurements are there */
    size_t term_bytes, residual_bytes;
    void *vectors[TESS_PNP_MOST_VECTORS]; /* images in the solver's block */
    int vector_count;
    float *truth, *shown, *piece, *rows[2]; /* in the io block; NULL: not needed */
    float truth_peak;                       /* its largest value: of PSNR where the range is an estimate */
    void *lines;
    tess_writer *writer, *side_writer;
    tess_mem_usage planned; /* by[HOST] only where the device's memory is its own */
    tess_mem_bytes operator_bytes;
    double planned_seconds, start, seconds;
    uint64_t overhead, loaded; /* resident before the plan, and once the weights are there */
    uint64_t free_before,
        least_free;      /* of the device's memory: without the job, and the least while it ran */
    tess_mem_usage peak; /* while operators were made */
    /* Outcome. */
    double norm_squared, baseline_psnr, psnr, ssim; /* NaN: not known */
    int64_t starved;      /* counts so low that their line integrals are only bounded */
    const char *baseline; /* what it is */
    int64_t power_iterations, cg_iterations;
    tess_pnp_result result;
    tess_iteration *iterations; /* owned */
    int64_t done;               /* of them: the last one before a stop may be half computed */
    bool interrupted;
} tess_reconstruct_job;

/* Steps of conjugate gradients, at most, for a start by them; and of the power method. */
enum { TESS_START_CG = 50, TESS_START_POWER = 100 };
enum { TESS_PIECE = 65536 }; /* floats that pass between host and device at a time */
enum { TESS_GAP = 8 };       /* columns between pictures side by side */

tess_status tess_reconstruct_check(const tess_reconstruct_settings *settings,
                                   tess_error *error) TESS_MUST_CHECK;
/* What the preset says of such a problem, then what the settings say. */
tess_status tess_recipe_of(const tess_reconstruct_settings *settings, const tess_problem *problem,
                           tess_recipe *recipe, tess_error *error) TESS_MUST_CHECK;

/* Sizes, angles and files; looks at headers, makes nothing. Clear it also when
 * this failed. */
tess_status tess_problem_describe(tess_memory *memory, const tess_reconstruct_settings *settings,
                                  tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
tess_status tess_problem_read(const char *path, tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* The part of it that volumes have: views along vectors; and that of sinograms. */
tess_status tess_problem_read_volume(const char *path, const tess_json *json, tess_problem *problem,
                                     tess_error *error) TESS_MUST_CHECK;
tess_status tess_problem_read_radon(const char *path, const tess_json *json, tess_problem *problem,
                                    tess_error *error) TESS_MUST_CHECK;
/* "angles" as a list of degrees, with their number; `forms` completes the message where it is none. */
tess_status tess_problem_read_angles(const char *path, const tess_json *json, const char *forms,
                                     tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* The name under `key`, as seen from here: it is relative to the JSON file. */
tess_status tess_problem_sibling(const char *path, const tess_json *json, const char *key, char **out,
                                 tess_error *error) TESS_MUST_CHECK;
/* Of the flat and dark fields, while views are read. */
size_t tess_problem_field_bytes(const tess_problem *problem);
/* Values of the measurement's file that are 1 here. */
double tess_problem_measured_unit(const tess_problem *problem);
/* The part of it that blurs have: kernels, or angles and a sigma, and the boundary. `info` is of the measurement. */
tess_status tess_problem_read_blur(const char *path, const tess_json *json, tess_problem *problem,
                                   const tess_image_info *info, tess_error *error) TESS_MUST_CHECK;
/* "kernel" or "kernels", if they are there, and with them the number of blurs. */
tess_status tess_problem_read_kernels(const char *path, const tess_json *json, tess_problem *problem,
                                      tess_error *error) TESS_MUST_CHECK;
/* The name of a file beside the problem file; NULL: no memory. */
char *tess_problem_beside(const char *path, const char *name);
void tess_problem_clear(tess_problem *problem);
void tess_problem_clear_blur(tess_problem *problem);
/* `slab_bytes`, if not 0: a volume goes through the device in slabs, of so many bytes at a time. */
tess_status tess_problem_operator(const tess_problem *problem, tess_device *device, size_t slab_bytes,
                                  tess_operator **op, tess_error *error) TESS_MUST_CHECK;
/* Only its sizes and costs, before anything is made; *known is false where there is no sketch, which is all but
 * blurs. */
tess_status tess_problem_sketch(const tess_problem *problem, tess_device *device, tess_operator *op,
                                bool *known, tess_error *error) TESS_MUST_CHECK;
tess_status tess_problem_blur(const tess_problem *problem, tess_device *device, tess_operator *sketch,
                              tess_operator **op, tess_error *error) TESS_MUST_CHECK;
/* An array file as rows of rows: (height, width, channels) of an image, (depth, height, width) of a volume or views. */
typedef struct tess_extent {
    int64_t height, width, channels;
} tess_extent;
tess_extent tess_problem_image_extent(const tess_problem *problem);
tess_extent tess_problem_measurement_extent(const tess_problem *problem);
/* Values of a row of the image, and rows in all. */
int64_t tess_problem_row(const tess_problem *problem);
int64_t tess_problem_rows(const tess_problem *problem);
bool tess_problem_has_truth(const tess_problem *problem);
/* `count` angles from 0 to 180 degrees, the last one included or not; NULL: no
 * memory. */
double *tess_angles(int64_t count, bool last_included);

/* Fills job->truth, and job->measurement. */
tess_status tess_problem_truth(tess_reconstruct_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_problem_measure(tess_reconstruct_job *job, tess_error *error) TESS_MUST_CHECK;
/* Where no range was given: estimates it from the measurements, which are then scaled by it. */
tess_status tess_problem_find_range(tess_reconstruct_job *job, tess_error *error) TESS_MUST_CHECK;
/* The same for blurs, and their noise where it was not given. */
tess_status tess_problem_look_at_blurs(tess_reconstruct_job *job, tess_error *error) TESS_MUST_CHECK;

/* The operator is made, the network cut; all bytes of all phases, by the
 * functions that the run allocates with. */
tess_status tess_reconstruct_plan(tess_reconstruct_job *job, tess_error *error) TESS_MUST_CHECK;
/* Of the measurements' block: them, and scratch that the operator needs only as long. */
size_t tess_reconstruct_measurement_bytes(const tess_reconstruct_job *job);
/* Does making measurements need scratch of its own? Else that of the data term does. */
bool tess_reconstruct_scratch_apart(const tess_operator *op);
/* Carves the io block at `at`, or with NULL only counts. */
size_t tess_reconstruct_carve_io(tess_reconstruct_job *job, char *at);
/* Of the solver's images and the measurements. */
void tess_reconstruct_drop(tess_reconstruct_job *job, tess_block *block);
tess_status tess_reconstruct_run(tess_reconstruct_job *job, tess_error *error) TESS_MUST_CHECK;
/* So many iterations are done; TESS_INTERRUPTED when the caller wants no more. */
tess_status tess_reconstruct_tell(tess_reconstruct_job *job, int64_t done, tess_error *error) TESS_MUST_CHECK;
/* The first estimate in vectors[0], and the baseline beside it. */
tess_status tess_reconstruct_begin(tess_reconstruct_job *job, tess_error *error) TESS_MUST_CHECK;

/* The share of measurement i in the mean of the blurs, added to the middle of the image `mean` (the first one is kept). */
tess_status tess_margins_add(tess_reconstruct_job *job, int64_t i, void *mean,
                             tess_error *error) TESS_MUST_CHECK;
/* Everything around the middle of `image` becomes what its nearest pixel in there is. */
tess_status tess_margins_fill(tess_reconstruct_job *job, void *image, tess_error *error) TESS_MUST_CHECK;

/* PSNR and, where `ssim` is not NULL, SSIM of an image in the device's memory;
 * NaN without a truth. */
tess_status tess_reconstruct_quality(tess_reconstruct_job *job, const void *image, double *psnr, double *ssim,
                                     tess_error *error) TESS_MUST_CHECK;
/* What it works in: rows of image and truth, and for SSIM. */
int64_t tess_reconstruct_quality_rows(const tess_problem *problem);
size_t tess_reconstruct_quality_bytes(const tess_problem *problem);
/* `count` rows of the image from `first` on, without margins, from a vector on the device. */
tess_status tess_reconstruct_rows(tess_reconstruct_job *job, const void *vector, int64_t first, int64_t count,
                                  float *to, tess_error *error) TESS_MUST_CHECK;
/* Between a vector on the device and the host, in pieces. */
typedef void (*tess_piece_fn)(void *user, int64_t first, int64_t count, float *values);
tess_status tess_device_pieces(tess_reconstruct_job *job, void *vector, int64_t count, bool back,
                               tess_piece_fn fn, void *user, tess_error *error) TESS_MUST_CHECK;

/* Before hours of work: a name that cannot be written shows now. */
tess_status tess_reconstruct_open_outputs(tess_reconstruct_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_reconstruct_write(tess_reconstruct_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_reconstruct_save_measurement(tess_reconstruct_job *job, tess_error *error) TESS_MUST_CHECK;
/* Could the outputs be written under their names? And what their writers will
 * hold. */
tess_status tess_reconstruct_check_outputs(const tess_reconstruct_job *job, size_t *measurement_held,
                                           size_t *output_held, tess_error *error) TESS_MUST_CHECK;

tess_json *tess_reconstruct_record(const tess_reconstruct_job *job, bool ran);

/* torch's bicubic interpolation (a = -0.75, corners not aligned, no
 * antialiasing), then clamped to [0,1]. */
void tess_resize_bicubic(const float *from, int64_t from_height, int64_t from_width, int64_t channels,
                         float *to, int64_t height, int64_t width);

/* Keeps what the run showed of the operator's speed, for the next plan. */
void tess_reconstruct_calibrate(tess_reconstruct_job *job);

#endif
