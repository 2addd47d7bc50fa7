/* tessera_images.h: the part of tessera.h for images in memory; include tessera.h.
 *
 * Open a device, load a model once, plan, run. The bytes and seconds of a plan are known before anything is allocated
 * for it; a run allocates nothing.
 *
 * Threads: a context, and everything made from it, may be used by one thread at a time. It may move to another thread
 * if the caller synchronizes them (a lock, a join). Two contexts are independent and may be used in two threads at
 * once, on one device or on two. Only tess_emergency_cleanup, tess_version and the _init functions may be called by
 * any thread at any time. A device uses its own threads; they never call the caller's functions.
 *
 * Structs begin with their size, which their _init sets, so that later versions can add members: a caller compiled
 * with an older header gets the defaults of the new members. Invalid arguments give TESS_BAD_OPTION and a message in
 * tess_context_error() of the context that the device was opened with. */
#ifndef TESSERA_IMAGES_H
#define TESSERA_IMAGES_H

#include "tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Owned by the caller and released in reverse order: every plan before its model, every model before its device,
 * every device before its context. The release functions accept NULL. */
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

/* Pixels owned by the caller: never freed and not kept after the call. Strides are in elements; any value is allowed,
 * also negative. */
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
    const char *inflate;   /* makes a 2-D network 3-D, for volumes: "halves", "level"; NULL: unchanged */
} tess_model_settings;

typedef struct tess_denoiser_settings {
    size_t size;
    /* of the images to denoise; a 2-D model processes the slices of a depth above 1 one by one */
    int64_t depth, height, width, channels;
    tess_element element; /* of input and output */
    /* value = (sample - low) / (high - low); both 0: integers are divided by their type's maximum, floats are
     * unchanged */
    double range_low, range_high;
    bool on_device;                               /* input and output are on the card */
    uint64_t memory_limit;                        /* bytes on the device that computes; 0 = its free memory */
    int64_t tile_height, tile_width, halo, batch; /* as in tess_denoise_settings */
    /* For a 2-D model: the slices are separate images, and TESS_SIGMA_AUTO estimates each by itself. false: they are
     * a volume, whose slices have one level unless they differ much. */
    bool separate;
} tess_denoiser_settings;

typedef struct tess_bytes {
    size_t size;                                         /* of this struct */
    uint64_t weights, activations, workspace, io, total; /* on the device that computes */
    uint64_t host; /* pinned or plain host memory, if the device has its own memory */
} tess_bytes;

/* Set the defaults. Each _init is a macro that passes the size that the caller was compiled with, so that a newer
 * library with larger structs does not write beyond the end. An image is dense with channels last. */
#define tess_image_init(image, data, element, height, width, channels)                                       \
    tess_image_fill((image), sizeof *(image), (data), (element), (height), (width), (channels))
#define tess_device_settings_init(settings)   tess_device_settings_fill((settings), sizeof *(settings))
#define tess_model_settings_init(settings)    tess_model_settings_fill((settings), sizeof *(settings))
#define tess_denoiser_settings_init(settings) tess_denoiser_settings_fill((settings), sizeof *(settings))
#define tess_bytes_init(bytes)                tess_bytes_fill((bytes), sizeof *(bytes))
TESS_API void tess_image_fill(tess_image *image, size_t size, void *data, tess_element element,
                              int64_t height, int64_t width, int64_t channels);
TESS_API void tess_device_settings_fill(tess_device_settings *settings, size_t size);
TESS_API void tess_model_settings_fill(tess_model_settings *settings, size_t size);
TESS_API void tess_denoiser_settings_fill(tess_denoiser_settings *settings, size_t size);
TESS_API void tess_bytes_fill(tess_bytes *bytes, size_t size);

TESS_API tess_status tess_device_open(tess_context *context, const tess_device_settings *settings,
                                      tess_device **out) TESS_MUST_CHECK;
TESS_API void tess_device_close(tess_device *device);
TESS_API const char *tess_device_name(const tess_device *device); /* e.g. "cuda:0 NVIDIA H200" */

TESS_API tess_status tess_model_load(tess_device *device, const tess_model_settings *settings,
                                     tess_model **out) TESS_MUST_CHECK;
TESS_API void tess_model_release(tess_model *model);
/* Channels of the images it takes; a model of 1 channel processes any number one by one. */
TESS_API int64_t tess_model_channels(const tess_model *model);
TESS_API bool tess_model_takes_sigma(const tess_model *model);

TESS_API tess_status tess_denoiser_plan(tess_model *model, const tess_denoiser_settings *settings,
                                        tess_denoiser **out) TESS_MUST_CHECK;
TESS_API void tess_denoiser_release(tess_denoiser *plan);
TESS_API void tess_denoiser_bytes(const tess_denoiser *plan, tess_bytes *bytes);
TESS_API double tess_denoiser_seconds(const tess_denoiser *plan);
/* Returns tile, halo, batch, bytes, seconds and the reason as one JSON object; release with tess_record_free. */
TESS_API tess_status tess_denoiser_describe(const tess_denoiser *plan, char **record) TESS_MUST_CHECK;
/* Allocates the memory of the plan and makes it ready to run; otherwise the first run does this. */
TESS_API tess_status tess_denoiser_prepare(tess_denoiser *plan) TESS_MUST_CHECK;
/* Denoises `in` into `out`, which may be the same image or one that does not overlap it; on a card it may be the same
 * only if the plan has one window. Samples must be finite. sigma is the noise level on the [0,1] scale; 0 copies host
 * images; TESS_SIGMA_AUTO estimates it from a host image and allocates temporary memory for that. A model that takes
 * no sigma ignores it.
 *
 * If stream is NULL, the call returns when the result is complete. For images on the card, stream may be the caller's
 * cudaStream_t (cudaStreamLegacy and cudaStreamPerThread name the default ones): the call then enqueues its work
 * after what is already in the stream and never waits. A failure on the card is reported by the caller's next
 * synchronization. Runs of one plan on several streams must not overlap, because they share its memory. */
TESS_API tess_status tess_denoiser_run(tess_denoiser *plan, const tess_image *in, const tess_image *out,
                                       double sigma, void *stream) TESS_MUST_CHECK;

/* -------------------------------------------------------------------------------------------------------------------
 * Reconstruction of an image or volume from measurements in memory, with a model as prior: the same three steps.
 * Members with the same name as in tess_reconstruct_settings mean the same; negative and NULL members take the value
 * of the preset. */

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
    tess_element element;                   /* of measurements and result; values are not scaled */
    int64_t count;                          /* kernels, angles or views */
    /* BLUR: `count` kernels, one after another, with odd sides and the centre in the middle. */
    const double *kernels;
    int64_t kernel_height, kernel_width;
    /* the blur wraps around; otherwise it brings in light from outside the image, which is estimated too */
    bool circular;
    /* RADON */
    const double *angles; /* degrees */
    int64_t columns;      /* of a sinogram, or of the detector */
    double centre;        /* column at which the rotation axis is seen; negative: the middle */
    bool corners;         /* the image fills the square; otherwise it is zero outside the inscribed circle */
    /* CONE */
    /* 12 numbers per view: source, detector centre, step between columns, step between rows */
    const double *vectors;
    int64_t rows;   /* of the detector */
    bool parallel;  /* the vectors hold the direction of the rays in place of the source */
    double spacing; /* of pixels and voxels, in the units of the vectors */
    /* All kinds: */
    double range_low, range_high; /* of the result; both 0: from the integer type, or from the data */
    double noise; /* standard deviation of the measurement noise; negative: estimated, or the default */
    const char *preset, *init;
    int64_t iterations;
    double sigma, last_sigma, step, relax;
    int64_t inner;
    double tolerance, max_seconds;
    uint64_t seed, memory_limit;
    int64_t tile_depth, tile_height, tile_width, halo, batch;
} tess_reconstructor_settings;

#define tess_reconstructor_settings_init(settings)                                                           \
    tess_reconstructor_settings_fill((settings), sizeof *(settings))
TESS_API void tess_reconstructor_settings_fill(tess_reconstructor_settings *settings, size_t size);
/* Copies the arrays of the settings. Creates the operator, because its bytes are only known then. */
TESS_API tess_status tess_reconstructor_plan(tess_model *model, const tess_reconstructor_settings *settings,
                                             tess_reconstructor **out) TESS_MUST_CHECK;
TESS_API void tess_reconstructor_release(tess_reconstructor *plan);
TESS_API void tess_reconstructor_bytes(const tess_reconstructor *plan, tess_bytes *bytes);
TESS_API double tess_reconstructor_seconds(const tess_reconstructor *plan);
/* Measurements and result are on the host. The memory of the plan is allocated for the run and released at its
 * end. */
TESS_API tess_status tess_reconstructor_run(tess_reconstructor *plan, const tess_image *measurements,
                                            const tess_image *out) TESS_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
