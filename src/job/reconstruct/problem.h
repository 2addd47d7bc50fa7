/* problem.h: what is to be solved: sizes, angles, units and files. Found before any memory is taken; its range, unit and
 * noise are completed once the measurements are there. */
#ifndef TESS_JOB_PROBLEM_H
#define TESS_JOB_PROBLEM_H

#include "base/memory.h"
#include "physics/kernels.h"
#include "physics/operator.h"
#include "tessera.h"

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
    tess_memory *memory; /* where its files are counted */
    char *name;          /* for the record: "deblur", "tomo2d", or the file */
    tess_physics physics;
    int64_t depth, height, width, channels; /* depth 1: an image */
    int64_t rows, columns;                  /* of the detector; of a sinogram's, 1 row */
    double *vectors;                        /* 12 a view, in 3-D, in voxels unless as_published; owned */
    bool parallel;                          /* rays, in 3-D */
    double spacing;                         /* of the voxels, in 3-D; of a sinogram's columns */
    int64_t count;                          /* blurs, or views */
    double *angles;                         /* degrees; owned; NULL in 3-D */
    double blur[2];                         /* standard deviations down and across at angle 0 */
    tess_blur_kernel *kernels; /* `count` measured ones in place of Gaussians; owned; NULL: none */
    char **kernel_files;       /* where they were read; owned */
    bool unknown;              /* the blurs bring in what lies outside: else they are circular */
    int64_t margin[2];         /* rows above and columns on the left that are estimated, but not seen */
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
    /* files are taken as they are, but integers without a range divided by their maximum */
    bool as_published;
    bool bare_integers; /* of views that are taken for line integrals */
    double low, high;   /* of the truth, in units */
    double unit;        /* values of files that are 1 here: networks know images up to 1 */
    double offset;      /* values of files that are 0 here; not 0 for blurs alone, which keep constants */
    bool synthetic;     /* truth and measurements are made here */
    double noise;       /* of measured data; negative: not given */
    /* of each blur, 1 at most, where their noise was estimated and differs; owned; NULL: all 1 */
    double *weights;
    bool clamped;                      /* measurements are clamped to [low, high] */
    char *image, *truth, *measurement; /* files; owned; NULL: none */
    char *geometry;                    /* the file of the vectors, for messages */
    bool resized;                      /* the image is brought to height x width */
    size_t held;                       /* by readers of those files, at most at once */
    int64_t image_height, image_width; /* of the file */
    int64_t starved; /* counts so low that their line integrals are only bounded; known once they were read */
} tess_problem;

/* An array file as rows of rows: (height, width, channels) of an image, (depth, height, width) of a volume or views. */
typedef struct tess_extent {
    int64_t height, width, channels;
} tess_extent;

/* Sizes, angles and files; looks at headers, makes nothing. Clear it also when this failed. */
tess_status tess_problem_describe(tess_memory *memory, const tess_reconstruct_settings *settings,
                                  tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
void tess_problem_clear(tess_problem *problem);
/* For a problem that was filled in by hand: its range and noise, given in the units of the data, become those of the
 * solver; and the margin of blurs with an unknown boundary. */
void tess_problem_choose_unit(const tess_reconstruct_settings *settings, tess_problem *problem);
void tess_problem_set_margin(tess_problem *problem);
/* `count` values of the solver, clamped to the range, in the units of the data. */
void tess_problem_to_units(const tess_problem *problem, int64_t count, float *values);

tess_extent tess_problem_image_extent(const tess_problem *problem);
tess_extent tess_problem_measurement_extent(const tess_problem *problem);
/* Values of a row of the image, and rows in all. */
int64_t tess_problem_row(const tess_problem *problem);
int64_t tess_problem_rows(const tess_problem *problem);
bool tess_problem_has_truth(const tess_problem *problem);
/* Values of the measurement's file that are 1 here. */
double tess_problem_measured_unit(const tess_problem *problem);

/* `slab_bytes`, if not 0: a volume goes through the device in slabs, of so many bytes at a time. */
tess_status tess_problem_operator(const tess_problem *problem, tess_device *device, size_t slab_bytes,
                                  tess_operator **op, tess_error *error) TESS_MUST_CHECK;
/* Only its sizes and costs, before anything is made; *known is false where there is no sketch, which is all but
 * blurs. */
tess_status tess_problem_sketch(const tess_problem *problem, tess_device *device, tess_operator *op,
                                bool *known, tess_error *error) TESS_MUST_CHECK;

#endif
