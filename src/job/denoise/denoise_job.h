/* denoise_job.h: what a denoise job knows of its files, its parts and itself. */
#ifndef TESS_JOB_DENOISE_JOB_H
#define TESS_JOB_DENOISE_JOB_H

#include "base/json.h"
#include "io/image.h"
#include "job/common/card_links.h"
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
    double low_mean;            /* 1 % of the means over neighbours are below (look/below.h) */
    /* For each of the first channels. */
    double channel_low[TESS_NOISE_CHANNELS], channel_high[TESS_NOISE_CHANNELS];
    /* Values far from all others, as markers of missing data are: */
    bool outliers, apart; /* apart: not as far, but all of them are one value below the others */
    double outlier, bulk_low, bulk_high;
    tess_scale ends; /* the least and largest sample, as the file has them, defects included */
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
    bool hidden_alike; /* that is not known: holes leave too little to compare */
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
    tess_scale map_levels;    /* the least and largest level of the map; low > high: it has none */
    tess_image_info out_info; /* as written: another type if the format requires it */
    tess_axes axes;           /* as requested */
    /* The least and largest sample, if float32 may not tell samples apart: doubles, which info.dtype F64 then keeps, or
     * 32-bit integers whose range is that of the data. Else both are 0. */
    tess_scale exact;
    bool exact_inside; /* of doubles: some samples are far outside of it */
    bool two_values;   /* its samples have no other: it is no image with noise (look/two_values.c) */
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
    char lost[320];             /* metadata that the output's format cannot hold; "": nothing */
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
    double held_back;     /* share of the samples with less of the result: run/trust.c */
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
/* The bytes of one rank, and its speed beside the others; 0: not known. */
typedef struct tess_denoise_rank {
    uint64_t planned, measured;
    double speed;
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
    tess_card_links links;    /* of an image that they share on cards */
    tess_elsewhere elsewhere; /* if the settings have a machine */
    /* Ranks that share the files: */
    tess_voice *voice;
    tess_denoise_order *order; /* owned; NULL: as listed */
    uint32_t counter;          /* that gives out the files */
    tess_denoise_word words[TESS_DENOISE_WORDS];
    int word_count;
} tess_denoise_job;

#endif
