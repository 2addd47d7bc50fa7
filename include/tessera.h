/* tessera.h: the public header of libtessera. Speed and memory studies are in tessera_study.h; docs/library.md shows
 * how to use the library.
 *
 * A program creates a context, fills settings (every struct has an _init function), and then runs jobs on files or
 * works on images in memory. A job on files returns a status and, if there is something to report, a record: one JSON
 * object as text, the same that the program `tessera` writes with --json. The library never prints and never exits;
 * tess_context_error() says what went wrong.
 *
 * Ops and layers are not exposed, because they change between versions and this interface must not. */
#ifndef TESSERA_H
#define TESSERA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TESSERA_VERSION "0.1.0"

#if defined(__GNUC__)
#define TESS_MUST_CHECK        __attribute__((warn_unused_result))
#define TESS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define TESS_API               __attribute__((visibility("default"))) /* exported by the shared library */
#else
#define TESS_MUST_CHECK
#define TESS_PRINTF(fmt, args)
#define TESS_API
#endif

typedef enum tess_status {
    TESS_OK = 0,
    TESS_BAD_OPTION,  /* a setting is invalid */
    TESS_BAD_INPUT,   /* a file is damaged, missing or of the wrong kind */
    TESS_IO_FAILED,   /* the system refused to read or write */
    TESS_NO_MEMORY,   /* an allocation failed */
    TESS_OVER_LIMIT,  /* the job cannot be done within the memory limit */
    TESS_UNSUPPORTED, /* a valid request that this build or device cannot handle */
    TESS_INTERRUPTED, /* the caller stopped the job */
    TESS_DEVICE_LOST, /* the device failed; finished outputs are kept */
    TESS_INTERNAL     /* a bug in the library */
} tess_status;

typedef struct tess_context tess_context; /* owned by the caller: tess_context_destroy */

/* Reports progress: `done` of `total` work units. Called often, also inside long layers and while planning. Return
 * false to stop the job cleanly (TESS_INTERRUPTED). */
typedef bool (*tess_progress_fn)(void *user, int64_t done, int64_t total, double seconds);
/* Called when a folder job starts file `index` (from 0) of `count`. */
typedef void (*tess_file_fn)(void *user, int64_t index, int64_t count, const char *name);
/* Passes one line of text about a decision of the job or a problem with its input, e.g. "a.npy: range 12 to 4310,
 * from the data". */
typedef enum tess_note_level {
    TESS_NOTE_WARNING,
    TESS_NOTE_DETAIL,
    TESS_NOTE_PROGRESS /* where a long job stands */
} tess_note_level;
typedef void (*tess_note_fn)(void *user, tess_note_level level, const char *text);

/* Settings that all jobs share. */
typedef struct tess_common {
    const char *device;    /* "auto", "cpu", "cuda[:K]" */
    const char *precision; /* "auto", "fp32", "tf32", "fp16", "bf16" */
    int threads;           /* 0 = all cores */
    uint64_t memory_limit; /* bytes on the device that computes; 0 = the free memory */
    uint64_t seed;
    tess_progress_fn progress; /* this and the next two may be NULL */
    tess_file_fn file;
    tess_note_fn note;
    void *progress_user;     /* passed to all three callbacks */
    const char *record_file; /* the caller's file for the record, or NULL; the job must not use it */
    const char *trace_file;  /* the same, for tess_context_trace_write */
} tess_common;

/* Returns whether writing to one path would overwrite the other, under any name; neither file has to exist. */
TESS_API bool tess_same_target(const char *one, const char *other);

/* Tile: 0 is automatic; TESS_TILE_WHOLE is one window for the whole image. */
#define TESS_TILE_WHOLE (-1)
/* Tile depth: equal to the tile height, for volumes. */
#define TESS_TILE_CUBE (-2)
/* Halo: automatic from the table of the architecture, or exact from the reach of the network. */
#define TESS_HALO_AUTO  (-1)
#define TESS_HALO_EXACT (-2)

/* How samples are converted to the [0,1] scale of sigma: value = (sample - low) / (high - low). */
typedef enum tess_range {
    TESS_RANGE_AUTO, /* uint8, uint16: as TYPE; floats that look like [0,1]: unchanged; else from the data */
    TESS_RANGE_TYPE, /* integers are divided by the maximum that their file states, else by their type's; floats are unchanged */
    TESS_RANGE_GIVEN /* range_low and range_high */
} tess_range;

/* Sigma: always estimated from the image. Any other negative value: the level of `add_noise` if noise is added,
 * otherwise estimated. */
#define TESS_SIGMA_AUTO (-2.0)

typedef struct tess_denoise_settings {
    tess_common common;
    const char *input;         /* a file, or a folder of images */
    const char *const *inputs; /* replaces `input`: several files or folders; `output` is then a folder */
    int input_count;
    const char *output;    /* a file, or a folder */
    const char *model;     /* bundled name or weight file; NULL = by the image's channels */
    const char *truth;     /* file or folder to compare with; may be NULL */
    double sigma;          /* noise level on the [0,1] scale; negative = estimated from the image */
    const char *sigma_map; /* an image with the noise level of each pixel, replaces `sigma`; may be NULL */
    double add_noise;      /* standard deviation of noise added before denoising; 0 = none */
    double strength;       /* 1 = the denoised image, 0 = the input, values between blend the two */
    tess_range range;
    double range_low, range_high;
    const char *axes; /* of arrays: "HW", "HWC", "CHW", "DHW", "DHWC"; NULL = by the rule in docs/files.md */
    bool recursive;   /* also read subfolders */
    bool skip_existing;  /* skip files whose output exists */
    bool overwrite;      /* an output may also be an input */
    bool dither;         /* add a dither before rounding to integers */
    bool zeros_are_data; /* zeros that stand apart from all other values are not taken for missing data */
    int64_t tile_height, tile_width;
    int64_t halo;
    int64_t batch; /* 0 = automatic */
    /* Plans only: also what so many ranks would take on the machine that a file describes (docs/scaling.md). */
    int64_t ranks;
    const char *machine;
} tess_denoise_settings;

/* Returns the version of the library at run time, which may be newer than TESSERA_VERSION of the header. */
TESS_API const char *tess_version(void);

TESS_API tess_status tess_context_create(tess_context **out) TESS_MUST_CHECK;
TESS_API void tess_context_destroy(tess_context *context);
/* Returns one line about the last failure, valid until the next call on this context. */
TESS_API const char *tess_context_error(const tess_context *context);
TESS_API void tess_emergency_cleanup(void); /* removes temporary files of running jobs; async-signal-safe */

TESS_API void tess_common_init(tess_common *common);
TESS_API void tess_denoise_settings_init(tess_denoise_settings *settings);

/* Both store a JSON record in *record (release with tess_record_free), also if some files of a folder failed. */
TESS_API tess_status tess_denoise(tess_context *context, const tess_denoise_settings *settings,
                                  char **record) TESS_MUST_CHECK;
TESS_API tess_status tess_plan_denoise(tess_context *context, const tess_denoise_settings *settings,
                                       char **record) TESS_MUST_CHECK;
/* Converts a weight file to safetensors, tensor by tensor; names, types and metadata are kept. The output must not be
 * the input. */
TESS_API tess_status tess_convert(tess_context *context, const char *input, const char *output,
                                  char **record) TESS_MUST_CHECK;
/* Reports devices, libraries, bundled models and calibration; with `calibrate` it first measures the op rates of this
 * machine. */
TESS_API tess_status tess_info(tess_context *context, const tess_common *common, bool calibrate,
                               char **record) TESS_MUST_CHECK;
/* Solves inverse problems by plug-and-play iterations: a step towards the measurements, then a denoiser. Negative and
 * NULL members take the value of the preset, unless stated otherwise. */
#define TESS_STEP_AUTO (0.0)
typedef struct tess_reconstruct_settings {
    tess_common common;
    const char *output;           /* the image */
    const char *problem;          /* "deblur", "tomo2d", "tomo3d", or a JSON file for measured data */
    const char *preset;           /* "default", "deepinv" */
    const char *image;            /* deblur: the truth; NULL = a synthetic one */
    const char *model;            /* bundled name or weight file; NULL = by the image's channels */
    const char *init;             /* "zero", "adjoint", "filtered", "cg" */
    const char *save_measurement; /* NPY; measurements of several operators are stacked vertically */
    const char *side_by_side;     /* measurement, result and truth in one picture */
    int64_t size;                 /* pixels of the longer side; 0 = 256, or the image's own */
    int64_t size_width;           /* deblur without an image: the width; `size` is the height; 0 = a square */
    int64_t operators, angles;    /* 0 = 8 blurs, 100 views */
    int64_t iterations;           /* 0 = by the preset */
    double noise;                 /* standard deviation of the noise in synthetic measurements */
    double sigma, last_sigma;     /* of the denoiser, first and last; in equal ratios between */
    double step;                  /* TESS_STEP_AUTO: computed from the operator's norm */
    double relax;                 /* 0 = none */
    int64_t inner;                /* steps of conjugate gradients in a data step; 0 = one gradient step */
    double tolerance;             /* stop when an iteration changes less; 0 = do not check */
    double max_seconds;           /* 0 = no limit */
    int64_t tile_height, tile_width, halo, batch; /* of the denoiser, as in tess_denoise_settings */
    int64_t tile_depth;  /* 3-D prior: or TESS_TILE_CUBE; 0: not cut, unless the tile is automatic */
    const char *prior;   /* of volumes: "slices", "volume" (a 3-D network); NULL = by preset and model */
    const char *inflate; /* how a 2-D network becomes 3-D: "halves", "level"; NULL = halves */
    int64_t ranks;       /* plans only: as in tess_denoise_settings */
    const char *machine;
} tess_reconstruct_settings;

TESS_API void tess_reconstruct_settings_init(tess_reconstruct_settings *settings);
TESS_API tess_status tess_reconstruct(tess_context *context, const tess_reconstruct_settings *settings,
                                      char **record) TESS_MUST_CHECK;
TESS_API tess_status tess_plan_reconstruct(tess_context *context, const tess_reconstruct_settings *settings,
                                           char **record) TESS_MUST_CHECK;

/* Returns a short readable summary of a record; release with tess_record_free. */
TESS_API tess_status tess_record_summary(tess_context *context, const char *record,
                                         char **text) TESS_MUST_CHECK;
TESS_API void tess_record_free(char *record);

#ifdef __cplusplus
}
#endif

#include "tessera_images.h"

#endif
