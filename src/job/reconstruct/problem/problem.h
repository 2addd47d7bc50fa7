/* problem.h: the problem to solve: sizes, angles, units and files. It is described before any memory is allocated;
 * its range, unit and noise are completed when the measurements are known. */
#ifndef TESS_JOB_RECONSTRUCT_PROBLEM_PROBLEM_H
#define TESS_JOB_RECONSTRUCT_PROBLEM_PROBLEM_H

#include "base/memory.h"
#include "base/stop.h"
#include "job/common/together.h"
#include "physics/kernels.h"
#include "physics/operator.h"
#include "tessera.h"

typedef enum tess_physics { TESS_PHYSICS_BLUR, TESS_PHYSICS_RADON, TESS_PHYSICS_CONE } tess_physics;

typedef enum tess_centre_from {
    TESS_CENTRE_MIDDLE, /* not given */
    TESS_CENTRE_GIVEN,
    TESS_CENTRE_PAIRS,   /* found from opposite views */
    TESS_CENTRE_MASS,    /* found from the centres of mass */
    TESS_CENTRE_SPECTRUM /* found from the spectrum of all views */
} tess_centre_from;

typedef enum tess_range_from {
    TESS_RANGE_FROM_DEFAULT, /* [0, 1] */
    TESS_RANGE_FROM_GIVEN,
    TESS_RANGE_FROM_TYPE, /* integers: up to their type's maximum */
    TESS_RANGE_FROM_DATA  /* low, high and unit are set from the measurements */
} tess_range_from;

/* A dead pixel of the detector (dead_pixels.h) and the two that it is filled from, as indices into a view; `share` is
 * that of the second. */
typedef struct tess_dead_pixel {
    int64_t at, from[2];
    float share;
} tess_dead_pixel;

/* A value of a scan that is replaced (zingers.h); views are counted as in the file, `at` is an index into one. */
typedef struct tess_zinger {
    int64_t view, at;
    float value;
} tess_zinger;

/* The detector of a view that the solver sees (detector_grid.h): its first edges and its pixels' sides, in pixels of the
 * file. */
typedef struct tess_detector_grid {
    double first_row, row_step, first_column, column_step;
} tess_detector_grid;

/* Why values of blurs are left out of the data term (mask/hidden.h). */
typedef enum tess_hidden_reason {
    TESS_HIDDEN_MISSING, /* NaN, nodata, behind a mask */
    TESS_HIDDEN_BRIGHT,  /* cut off at the largest value */
    TESS_HIDDEN_DARK,    /* cut off at the least value */
    TESS_HIDDEN_FRAME,   /* of one value, set after the blur */
    TESS_HIDDEN_REASONS
} tess_hidden_reason;

enum { TESS_MOST_MARKS = 4 };

typedef struct tess_hidden {
    bool keep[TESS_HIDDEN_REASONS];     /* they must not be looked for */
    int64_t count[TESS_HIDDEN_REASONS]; /* values of all blurs */
    double dark,
        bright; /* the values, in units of the solver, at which light is cut off; infinite: at none */
    float marks[TESS_MOST_MARKS]; /* values that are read as missing (mask/marks.h), in units of the file */
    int mark_count;
    int64_t *frame; /* of each row of all blurs: its pixels at the left and at the right; owned; NULL: none */
    float *frame_value;     /* that of the first blur's frame, in units of the file; owned */
    bool *blurs;            /* whether it has any such value; owned; NULL: none has */
    unsigned char *squares; /* of a JPEG that are hidden (mask/squares.h); owned; NULL: none is */
    float beside;           /* the weight of other values in these squares */
} tess_hidden;

/* The problem to solve. */
typedef struct tess_problem {
    tess_memory *memory; /* the counter of its files */
    tess_stop *stop;     /* polled by what reads and looks at them; NULL: nothing stops it. Not owned */
    char *name;          /* for the record: "deblur", "tomo2d", or the file */
    tess_physics physics;
    int64_t depth, height, width, channels; /* depth 1: an image */
    int64_t rows, columns;                  /* of the detector; a sinogram has 1 row */
    int64_t file_rows, file_columns;        /* of the views as they are read */
    tess_detector_grid
        *detector_grid;    /* of each view, if the views are resampled; owned; NULL: they are not */
    bool keep_detector;    /* they must not be */
    bool keep_dead;        /* only detector pixels without any value are filled (dead_pixels.h) */
    bool keep_rings;       /* errors of the detector's pixels must not be subtracted (rings.h) */
    bool keep_outliers;    /* of blurs (outliers.h) */
    int64_t outliers;      /* values of blurs that were replaced */
    double rounded;        /* of measured blurs: the most that 32-bit floats changed a value by */
    tess_hidden hidden;    /* values of blurs that are left out */
    tess_together colours; /* of measured blurs with three channels (look/colours.h) */
    /* 3-D: 12 numbers per view, in voxels unless as_published; owned */
    double *vectors;
    bool parallel;             /* 3-D: the rays are parallel */
    double spacing;            /* 3-D: side of a voxel; sinograms: width of a column */
    int64_t count;             /* blurs, or views */
    double *angles;            /* degrees; owned; NULL in 3-D */
    double blur[2];            /* standard deviations down and across at angle 0 */
    tess_blur_kernel *kernels; /* `count` measured kernels in place of Gaussians; owned; NULL: none */
    char **kernel_files;       /* the files of the kernels; owned */
    /* light from outside the picture enters the blurs; otherwise they are circular */
    bool unknown;
    bool dark_outside; /* it seems to have been black there (mask/dark_border.h) */
    /* rows above and columns on the left of the picture that are estimated and not shown: for blurs, what was not
     * measured; for sinograms, on all sides, what the rays outside of the picture see */
    int64_t margin[2];
    int64_t margin_depth; /* of a volume: slices above and below, as `margin` */
    int64_t needed[3];    /* the volume, depth first, that all rays need which see something; 0: not known */
    double outside;       /* what the columns outside of the image's shadow hold, as a share of the largest */
    double edge_rows;     /* of a volume, `edge` of the outer rows */
    double edge;          /* the same of the outer columns of the detector; set when they are read */
    double background;    /* of a sinogram: what all rays beside the object hold (scan/background.h) */
    double background_share; /* of the largest */
    bool circle;
    double centre;  /* the column at which a sinogram shows the axis */
    double axis[2]; /* the pixel through which it passes, (row, column) */
    bool axis_given;
    tess_centre_from centre_from;
    /* columns from where the axis is taken to be to where the views show it; 0: near, or not known (mistakes.h) */
    double axis_off;
    bool transmission;    /* the values look like light, not like line integrals */
    int64_t centre_pairs; /* number of opposite views used */
    double centre_within; /* the standard error of a centre found without opposite views, in columns */
    double *centres;      /* for each view, see tess_radon_settings; owned; NULL: the middle */
    int64_t row;          /* the row of each view that forms a sinogram; -1: all rows */
    bool counts;          /* measurements are counts, not line integrals */
    char *flat, *dark;    /* files of counts; owned; NULL: use the numbers */
    double flat_value, dark_value;
    double count_unit; /* value of one count in the file; 0: unknown */
    int64_t dead_count;
    tess_dead_pixel *dead; /* owned; NULL: none */
    int64_t zinger_count;
    tess_zinger *zingers; /* owned; NULL: none */
    /* views of the file that are left out (lost_views.h), in order; `count` is without them. Owned; NULL: none */
    int64_t *lost;
    int64_t lost_count;
    int64_t
        blank_views; /* views that see nothing or no light, and are kept because they are too many; 0: none */
    tess_range_from range_from;
    bool floats;      /* the blurs' file holds floats */
    unsigned says;    /* the blurs' file: bits of tess_says */
    double quantised; /* the blurs' file is a JPEG: deviation of its error, in its units; 0: it is none */
    /* the result is a picture like the blurs' file, whose metadata it gets */
    bool like_measurement;
    size_t extras_bytes; /* of these metadata */
    bool channel_axis;   /* the blurs' file is an array with an axis of channels, and so is the result */
    /* files are not scaled, except that integers without a range are divided by their maximum */
    bool as_published;
    bool bare_integers; /* integer views that are read as line integrals */
    double low, high;   /* range of the truth, in units */
    double above;       /* blurs: how much brighter than `high` the picture may be */
    double unit;        /* file value that is 1 in the solver: networks were trained on images up to 1 */
    /* file value that is 0 in the solver; nonzero only for blurs, which preserve constants */
    double offset;
    bool synthetic; /* truth and measurements are simulated */
    double noise;   /* of measured data; negative: not set */
    /* of a scan, in the units of the solver, also if the default is above it; negative: not estimated */
    double noise_estimate;
    bool noise_rough; /* fine details may have been taken for it */
    /* of each blur, at most 1, if their noise was estimated and differs; owned; NULL: all 1 */
    double *weights;
    double *gains; /* exposure of each blur, given or estimated; owned; NULL: all 1 */
    /* of blurs (look/contradiction.h): by how many times their noise two of them contradict each other, at most; 0: none do; and which blurs
     * contradict the others; owned; NULL: none */
    double contradiction;
    bool *contradicts;
    bool clamped;                      /* measurements are clamped to [low, high] */
    char view_order[640];              /* of a folder's files, in words; "": no folder */
    char *image, *truth, *measurement; /* files; owned; NULL: none */
    char *geometry;                    /* file of the vectors, for messages */
    bool flat_truth;                   /* that of a volume of one slice has no axis of slices */
    bool resized;                      /* the image is resized to height x width */
    size_t held;                       /* largest memory held at once by readers of these files */
    int64_t image_height, image_width; /* of the file */
    tess_share *share;                 /* the ranks that share the image; NULL: alone. Not owned */
    bool halo;       /* ranks blur strips with the rows of their neighbours: tess_convolve_settings */
    int64_t starved; /* counts so low that their line integrals are only a bound; set when they are read */
} tess_problem;

/* The sizes of an array file: (height, width, channels) of an image, (depth, height, width) of a volume or views. */
typedef struct tess_extent {
    int64_t height, width, channels;
} tess_extent;

/* Finds sizes, angles and files from headers only. Clear it also if this fails. */
tess_status tess_problem_describe(tess_memory *memory, tess_stop *stop,
                                  const tess_reconstruct_settings *settings, tess_problem *problem,
                                  tess_error *error) TESS_MUST_CHECK;
void tess_problem_clear(tess_problem *problem);
/* For a problem filled in by the caller: converts range and noise from the units of the data to those of the solver,
 * and sets the margin of blurs with an unknown boundary. */
void tess_problem_choose_unit(const tess_reconstruct_settings *settings, tess_problem *problem);
void tess_problem_set_margin(tess_problem *problem);
/* The largest value of a picture. */
static inline double tess_problem_top(const tess_problem *problem)
{
    return problem->high + problem->above;
}
/* Converts `count` values of the solver to the units of the data, clamped to what the picture may be. */
void tess_problem_to_units(const tess_problem *problem, int64_t count, float *values);

tess_extent tess_problem_image_extent(const tess_problem *problem);
tess_extent tess_problem_measurement_extent(const tess_problem *problem);
/* Values in a row of the image, and the number of rows. */
int64_t tess_problem_row(const tess_problem *problem);
int64_t tess_problem_rows(const tess_problem *problem);
/* Rows of the image that the solver has, margins included, or slices of the volume: what ranks divide. */
int64_t tess_problem_divided(const tess_problem *problem);
/* The rows of the image that a rank has, without margins: the first one, or for the number of ranks: the end. */
int64_t tess_problem_shown(const tess_problem *problem, const tess_share *share, int rank);
/* Those that this rank has: the first one, and their number. */
int64_t tess_problem_first(const tess_problem *problem);
int64_t tess_problem_own(const tess_problem *problem);
/* The views of a scan that a rank has. */
int64_t tess_problem_view(const tess_problem *problem,
                          int rank); /* the first one, or for the number of ranks: the end */
int64_t tess_problem_first_view(const tess_problem *problem);
int64_t tess_problem_own_views(const tess_problem *problem);
bool tess_problem_has_truth(const tess_problem *problem);
/* Value in the measurement's file that is 1 in the solver. */
double tess_problem_measured_unit(const tess_problem *problem);

/* If `slab_bytes` is not 0, the volume passes through the device in slabs of that many bytes. */
tess_status tess_problem_operator(const tess_problem *problem, tess_device *device, size_t slab_bytes,
                                  tess_operator **op, tess_error *error) TESS_MUST_CHECK;
/* Computes only sizes and costs, before anything is created; sets *known to false if there is no sketch, which exists
 * only for blurs. */
tess_status tess_problem_sketch(const tess_problem *problem, tess_device *device, tess_operator *op,
                                bool *known, tess_error *error) TESS_MUST_CHECK;

#endif
