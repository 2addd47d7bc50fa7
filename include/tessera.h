/* tessera.h: the public header of libtessera; studies of speed are in tessera_study.h. docs/library.md shows its use.
 *
 * A program makes a context, fills settings (every struct has an _init), and runs jobs on files, or works on images in
 * memory. A job on files answers with a status and, where there is something to report, with a record: one JSON object as
 * text, the same that the program `tessera` writes for --json. Nothing here prints or exits; tess_context_error() says
 * what went wrong.
 *
 * Ops, layers and devices are deliberately not here: they change, this does not.
 */
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
    TESS_BAD_OPTION,  /* a setting that cannot be right */
    TESS_BAD_INPUT,   /* a file that is damaged, missing or of the wrong kind */
    TESS_IO_FAILED,   /* the system refused to read or write */
    TESS_NO_MEMORY,   /* the system has none left */
    TESS_OVER_LIMIT,  /* the job cannot be done within the memory limit */
    TESS_UNSUPPORTED, /* a right request that this build or device cannot serve */
    TESS_INTERRUPTED, /* the caller asked to stop */
    TESS_DEVICE_LOST, /* the device failed; finished outputs are kept */
    TESS_INTERNAL     /* a mistake of ours */
} tess_status;

typedef struct tess_context tess_context; /* owned by the caller: tess_context_destroy */

/* Progress of a job: done of total work units. Called often, also inside long layers and while planning. Return false to
 * stop the job cleanly (TESS_INTERRUPTED). */
typedef bool (*tess_progress_fn)(void *user, int64_t done, int64_t total, double seconds);
/* A folder job begins with file `index` (from 0) of `count`. */
typedef void (*tess_file_fn)(void *user, int64_t index, int64_t count, const char *name);
/* One line of text about a decision of the job or a doubt about its input, e.g. "a.npy: range 12 to 4310, from the data". */
typedef enum tess_note_level { TESS_NOTE_WARNING, TESS_NOTE_DETAIL } tess_note_level;
typedef void (*tess_note_fn)(void *user, tess_note_level level, const char *text);

/* What every job shares. */
typedef struct tess_common {
    const char *device;    /* "auto", "cpu", "cuda[:K]" */
    const char *precision; /* "auto", "fp32", "tf32", "fp16", "bf16" */
    int threads;           /* 0 = all cores */
    uint64_t memory_limit; /* bytes on the device that computes; 0 = what the machine has free */
    uint64_t seed;
    tess_progress_fn progress; /* this and the next two may be NULL */
    tess_file_fn file;
    tess_note_fn note;
    void *progress_user; /* passed to all three */
    /* where the caller will keep the record, which is refused if the job uses it; or NULL */
    const char *record_file;
} tess_common;

/* Writing to the one would write over the other, however they are named; neither need be there yet. */
TESS_API bool tess_same_target(const char *one, const char *other);

/* 0 in tile means automatic; TESS_TILE_WHOLE means one window for the whole image. */
#define TESS_TILE_WHOLE (-1)
/* As a depth: as deep as high, where there is a depth. */
#define TESS_TILE_CUBE (-2)
/* Halos: automatic by the table of the architecture, or exact by its receptive field. */
#define TESS_HALO_AUTO  (-1)
#define TESS_HALO_EXACT (-2)

/* How samples become values on the [0,1] scale, where sigma is given: value = (sample - low) / (high - low). */
typedef enum tess_range {
    TESS_RANGE_AUTO, /* 8 and 16 bits unsigned: as TYPE; floats that look like [0,1]: as they are; else from the data */
    TESS_RANGE_TYPE, /* integers by their type's maximum, floats as they are */
    TESS_RANGE_GIVEN /* range_low and range_high */
} tess_range;

/* Sigma: estimated from the image, also where noise is added; merely negative = estimated, or that of the added noise. */
#define TESS_SIGMA_AUTO (-2.0)

typedef struct tess_denoise_settings {
    tess_common common;
    const char *input;         /* a file, or a folder of images */
    const char *const *inputs; /* in place of `input`: several of them, `output` is then a folder */
    int input_count;
    const char *output; /* a file, or a folder */
    const char *model;  /* bundled name or weight file; NULL = by the image's channels */
    const char *truth;  /* file or folder to compare with; may be NULL */
    double sigma;       /* noise level on the [0,1] scale; negative = estimated from the image */
    const char
        *sigma_map;   /* an image of noise levels, one for each pixel, in place of `sigma`; may be NULL */
    double add_noise; /* standard deviation of noise added before denoising; 0 = none */
    double strength;  /* 1 = the denoised image, 0 = the input, between them a blend */
    tess_range range;
    double range_low, range_high;
    const char *axes; /* of arrays: "HW", "HWC", "CHW", "DHW", "DHWC"; NULL = by the rule in docs/files.md */
    bool recursive;   /* a folder's folders too */
    bool skip_existing; /* files whose output is there already */
    bool overwrite;     /* an output may be an input */
    bool dither;        /* when samples lose bits, add a dither before rounding */
    int64_t tile_height, tile_width;
    int64_t halo;
    int64_t batch; /* 0 = automatic */
} tess_denoise_settings;

/* The version of the library that runs, which may be newer than TESSERA_VERSION of the header. */
TESS_API const char *tess_version(void);

TESS_API tess_status tess_context_create(tess_context **out) TESS_MUST_CHECK;
TESS_API void tess_context_destroy(tess_context *context);
/* One line on the last failure, valid until the next call on this context. */
TESS_API const char *tess_context_error(const tess_context *context);
TESS_API void tess_emergency_cleanup(void); /* removes temporary files of jobs under way; async-signal-safe */

TESS_API void tess_common_init(tess_common *common);
TESS_API void tess_denoise_settings_init(tess_denoise_settings *settings);

/* Each puts a JSON record into *record (release with tess_record_free), also when some files of a folder failed. */
TESS_API tess_status tess_denoise(tess_context *context, const tess_denoise_settings *settings,
                                  char **record) TESS_MUST_CHECK;
TESS_API tess_status tess_plan_denoise(tess_context *context, const tess_denoise_settings *settings,
                                       char **record) TESS_MUST_CHECK;
/* Weight file in, safetensors out: tensor by tensor, names and types kept. */
TESS_API tess_status tess_convert(tess_context *context, const char *input, const char *output,
                                  char **record) TESS_MUST_CHECK;
/* Devices, libraries, bundled models, calibration; calibrate = measure the op rates of this machine now. */
TESS_API tess_status tess_info(tess_context *context, const tess_common *common, bool calibrate,
                               char **record) TESS_MUST_CHECK;
/* Inverse problems by plug-and-play iterations: a step towards the measurements, then a denoiser. What is negative or
 * NULL is taken from the preset, unless something else is said. */
#define TESS_STEP_AUTO (0.0)
typedef struct tess_reconstruct_settings {
    tess_common common;
    const char *output;           /* the image */
    const char *problem;          /* "deblur", "tomo2d", or a JSON file that tells of measured data */
    const char *preset;           /* "default", "deepinv" */
    const char *image;            /* deblur: the truth; NULL = a synthetic one */
    const char *model;            /* bundled name or weight file; NULL = by the image's channels */
    const char *init;             /* "zero", "adjoint", "filtered", "cg" */
    const char *save_measurement; /* NPY; the measurements of several operators one above another */
    const char *side_by_side;     /* measurement, result and truth in one picture */
    int64_t size;                 /* pixels of the longer side; 0 = 256, or the image's own */
    int64_t size_width;        /* deblur without an image: its width, `size` being its height; 0 = a square */
    int64_t operators, angles; /* 0 = 8 blurs, 100 views */
    int64_t iterations;        /* 0 = by the preset */
    double noise;              /* standard deviation, of the synthetic measurements */
    double sigma, last_sigma;  /* of the denoiser: from the first iteration to the last, in equal ratios */
    double step;               /* TESS_STEP_AUTO: from the operator's norm */
    double relax;              /* 0 = none */
    /* tomography: steps of conjugate gradients; 0 = one gradient step, which blurs can take too */
    int64_t inner;
    double tolerance;                             /* stop when an iteration changes less; 0 = not asked */
    double max_seconds;                           /* 0 = not asked */
    int64_t tile_height, tile_width, halo, batch; /* of the denoiser, as in tess_denoise_settings */
    /* of a volume prior, or TESS_TILE_CUBE; 0: not cut in depth, unless the tile is automatic */
    int64_t tile_depth;
    const char *prior;   /* of volumes: "slices", "volume" (a 3-D network); NULL = by preset and model */
    const char *inflate; /* how a 2-D network becomes 3-D: "halves", "level"; NULL = halves */
} tess_reconstruct_settings;

TESS_API void tess_reconstruct_settings_init(tess_reconstruct_settings *settings);
TESS_API tess_status tess_reconstruct(tess_context *context, const tess_reconstruct_settings *settings,
                                      char **record) TESS_MUST_CHECK;
TESS_API tess_status tess_plan_reconstruct(tess_context *context, const tess_reconstruct_settings *settings,
                                           char **record) TESS_MUST_CHECK;

/* ---------------------------------------------------------------------------------------------------------------------
 * Images in memory: open a device, load a model once, plan, run. A plan can be asked for its bytes and seconds before
 * anything is allocated for it; a run allocates nothing.
 *
 * Threads: a context, and everything that was made with it, is for one thread at a time; it may be another thread at another
 * time, if the caller orders them (a lock, a join). Two contexts do not know of each other and may be used in two threads
 * at once, on one device or on two. Only tess_emergency_cleanup, tess_version and the _init functions may be called by any
 * thread at any time. A device has threads of its own while it works; none of the caller's functions are called by them.
 *
 * Structs begin with their size, which their _init sets, so that they can grow: a caller that was compiled with an older
 * header is served with the defaults of what it does not know. What cannot be right gives TESS_BAD_OPTION and a message
 * in tess_context_error() of the context that the device was opened with. */

/* Owned by the caller, and released in the opposite order: every plan before its model, every model before its device,
 * every device before its context. The functions that release accept NULL. */
typedef struct tess_device tess_device;
typedef struct tess_model tess_model;
typedef struct tess_denoiser tess_denoiser; /* a plan */

typedef enum tess_element {
    TESS_ELEMENT_U8 = 1,
    TESS_ELEMENT_U16,
    TESS_ELEMENT_F16,
    TESS_ELEMENT_F32,
    TESS_ELEMENT_F64
} tess_element;

/* Pixels of the caller: never freed, never kept beyond the call. Strides are in elements and may be any, also negative. */
typedef struct tess_image {
    size_t size; /* of this struct */
    void *data;  /* of the first element */
    tess_element element;
    int64_t depth, height, width, channels; /* depth 1: an image */
    int64_t stride_depth, stride_height, stride_width, stride_channel;
    bool on_device; /* `data` is memory of the card that the plan runs on */
} tess_image;

typedef struct tess_device_settings {
    size_t size;
    const char *device; /* "auto", "cpu", "cuda[:K]" */
    int threads;        /* 0 = all cores */
} tess_device_settings;

typedef struct tess_model_settings {
    size_t size;
    const char *name;      /* bundled name or weight file */
    const char *precision; /* "auto", "fp32", "tf32", "fp16", "bf16" */
    const char *inflate;   /* makes a 2-D network 3-D, for volumes: "halves", "level"; NULL: as it is */
} tess_model_settings;

typedef struct tess_denoiser_settings {
    size_t size;
    int64_t depth, height, width, channels; /* of the images to come; depth 1, or slices done one by one */
    tess_element element;                   /* of input and output */
    double range_low, range_high; /* value = (sample - low) / (high - low); 0 and 0: integers by their type's
                                             * maximum, floats as they are */
    bool on_device;               /* input and output are on the card */
    uint64_t memory_limit;        /* bytes on the device that computes; 0 = what it has free */
    int64_t tile_height, tile_width, halo, batch; /* as in tess_denoise_settings */
} tess_denoiser_settings;

typedef struct tess_bytes {
    size_t size;                                         /* of this struct */
    uint64_t weights, activations, workspace, io, total; /* on the device that computes */
    uint64_t host; /* pinned or plain memory of the host, where that is another */
} tess_bytes;

TESS_API void tess_image_init(tess_image *image, void *data, tess_element element, int64_t height,
                              int64_t width, int64_t channels); /* dense rows, channels last */
TESS_API void tess_device_settings_init(tess_device_settings *settings);
TESS_API void tess_model_settings_init(tess_model_settings *settings);
TESS_API void tess_denoiser_settings_init(tess_denoiser_settings *settings);
TESS_API void tess_bytes_init(tess_bytes *bytes);

TESS_API tess_status tess_device_open(tess_context *context, const tess_device_settings *settings,
                                      tess_device **out) TESS_MUST_CHECK;
TESS_API void tess_device_close(tess_device *device);
TESS_API const char *tess_device_name(const tess_device *device); /* e.g. "cuda:0 NVIDIA H200" */

TESS_API tess_status tess_model_load(tess_device *device, const tess_model_settings *settings,
                                     tess_model **out) TESS_MUST_CHECK;
TESS_API void tess_model_release(tess_model *model);
/* Of the images it takes; a model of 1 channel takes any number, one by one. */
TESS_API int64_t tess_model_channels(const tess_model *model);
TESS_API bool tess_model_takes_sigma(const tess_model *model);

TESS_API tess_status tess_denoiser_plan(tess_model *model, const tess_denoiser_settings *settings,
                                        tess_denoiser **out) TESS_MUST_CHECK;
TESS_API void tess_denoiser_release(tess_denoiser *plan);
TESS_API void tess_denoiser_bytes(const tess_denoiser *plan, tess_bytes *bytes);
TESS_API double tess_denoiser_seconds(const tess_denoiser *plan);
/* Tile, halo, batch, bytes, seconds and why, as one JSON object; release with tess_record_free. */
TESS_API tess_status tess_denoiser_describe(const tess_denoiser *plan, char **record) TESS_MUST_CHECK;
/* Allocates what the plan says and makes it ready to run; the first run does it otherwise. */
TESS_API tess_status tess_denoiser_prepare(tess_denoiser *plan) TESS_MUST_CHECK;
/* Denoises `in` into `out`, which may be the same image, or one that does not overlap it; on the card the same only where the
 * plan has one window. Samples must be finite. sigma: of the noise, on the [0,1] scale; 0 copies host images; TESS_SIGMA_AUTO
 * estimates it from a host image, and takes memory for that moment. A model that takes no sigma ignores it.
 *
 * stream: NULL, and the call returns when the result is there; or, for images on the card, the caller's cudaStream_t
 * (cudaStreamLegacy and cudaStreamPerThread name the default ones): the call then only queues its work there, behind what
 * is in the stream already, and never waits. A failure on the card shows at the caller's next synchronisation. Runs of one
 * plan on several streams must not overlap: they share its memory. */
TESS_API tess_status tess_denoiser_run(tess_denoiser *plan, const tess_image *in, const tess_image *out,
                                       double sigma, void *stream) TESS_MUST_CHECK;

/* ---------------------------------------------------------------------------------------------------------------------
 * Reconstruction of an image or volume from measurements in memory, with a model as prior: the same three steps. Members
 * that have a namesake in tess_reconstruct_settings mean the same; what is negative or NULL comes from the preset. */

typedef struct tess_reconstructor tess_reconstructor; /* a plan */

typedef enum tess_operator_kind {
    TESS_OPERATOR_BLUR = 1, /* measurements: (count, height, width, channels), one for each kernel */
    TESS_OPERATOR_RADON, /* parallel rays through a square image: (1, count, columns, 1), a row for each angle */
    TESS_OPERATOR_CONE /* rays through a volume: (count, rows, columns, 1), a slice for each view */
} tess_operator_kind;

typedef struct tess_reconstructor_settings {
    size_t size;
    tess_operator_kind kind;
    int64_t depth, height, width, channels; /* of the result; depth 1, or a volume for CONE */
    tess_element element;                   /* of measurements and result; numbers are taken as they are */
    int64_t count;                          /* kernels, angles or views */
    /* BLUR: `count` kernels, one behind another; odd sides, the centre in the middle. */
    const double *kernels;
    int64_t kernel_height, kernel_width;
    bool circular; /* the blur wraps around; else it brings in what lies outside, which is estimated too */
    /* RADON */
    const double *angles; /* degrees */
    int64_t columns;      /* of a sinogram, or of the detector */
    double centre;        /* column at which the axis is seen; negative: the middle */
    bool corners;         /* the image fills the square; else it is zero outside the circle inside of it */
    /* CONE */
    const double *vectors; /* 12 a view: source, detector centre, step between columns, step between rows */
    int64_t rows;          /* of the detector */
    bool parallel;         /* the rays' direction stands where the source would */
    double spacing;        /* of pixels and voxels, in the units of the vectors */
    /* All: */
    double range_low, range_high; /* of the result; 0 and 0: from the type of integers, or from the data */
    double noise; /* standard deviation of the measurements; negative: estimated, or the usual one */
    const char *preset, *init;
    int64_t iterations;
    double sigma, last_sigma, step, relax;
    int64_t inner;
    double tolerance, max_seconds;
    uint64_t seed, memory_limit;
    int64_t tile_depth, tile_height, tile_width, halo, batch;
} tess_reconstructor_settings;

TESS_API void tess_reconstructor_settings_init(tess_reconstructor_settings *settings);
/* Arrays of the settings are copied. The operator is made here, because only then its bytes are known. */
TESS_API tess_status tess_reconstructor_plan(tess_model *model, const tess_reconstructor_settings *settings,
                                             tess_reconstructor **out) TESS_MUST_CHECK;
TESS_API void tess_reconstructor_release(tess_reconstructor *plan);
TESS_API void tess_reconstructor_bytes(const tess_reconstructor *plan, tess_bytes *bytes);
TESS_API double tess_reconstructor_seconds(const tess_reconstructor *plan);
/* Images on the host. What the plan says is taken for the run and given back at its end. */
TESS_API tess_status tess_reconstructor_run(tess_reconstructor *plan, const tess_image *measurements,
                                            const tess_image *out) TESS_MUST_CHECK;

/* A few lines for people out of a record; release with tess_record_free. */
TESS_API tess_status tess_record_summary(tess_context *context, const char *record,
                                         char **text) TESS_MUST_CHECK;
TESS_API void tess_record_free(char *record);

#ifdef __cplusplus
}
#endif
#endif
