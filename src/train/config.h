/* config.h: the configuration of a training run, read from a JSON file. Every key is checked: an unknown key, a wrong type
 * or a value out of range is one line with the path of the key. What the file leaves out gets a default that trains a
 * denoiser, so a short file suffices:
 *
 *   {"network": {"architecture": "drunet"}, "data": {"folders": ["images"]}, "output": "denoiser.safetensors"}
 *
 * All keys are rows of one table (config_fields.c), which reading, writing, hints for misspelt keys, and the
 * comparison with a checkpoint's configuration share. Relative paths are relative to the file. */
#ifndef TESS_TRAIN_CONFIG_H
#define TESS_TRAIN_CONFIG_H

#include "base/json.h"
#include "op/op.h"

enum {
    TESS_CONFIG_PATHS = 64, /* folders, and file names to leave out */
    TESS_CONFIG_WIDTHS = 8,
    TESS_CONFIG_SCALES = 8,
    TESS_CONFIG_LEVELS = 8,
    TESS_CONFIG_PHASES = 16
};

typedef enum tess_train_architecture {
    TESS_TRAIN_FROM_FILE, /* what network.weights holds */
    TESS_TRAIN_DRUNET,
    TESS_TRAIN_UNET,
    TESS_TRAIN_DNCNN,
    TESS_TRAIN_DIFFUSION,
    TESS_TRAIN_PIPELINE /* of `pipeline` */
} tess_train_architecture;
typedef enum tess_train_norm { TESS_TRAIN_NORM_NONE, TESS_TRAIN_NORM_BATCH } tess_train_norm;
typedef enum tess_train_rate {
    TESS_RATE_CONSTANT,
    TESS_RATE_COSINE,
    TESS_RATE_STEP,
    TESS_RATE_PLATEAU
} tess_train_rate;
typedef enum tess_train_init {
    TESS_INIT_KAIMING,
    TESS_INIT_XAVIER,
    TESS_INIT_ORTHOGONAL,
    TESS_INIT_PYTORCH,
    TESS_INIT_DRUNET,
    TESS_INIT_DIFFUSION
} tess_train_init;
typedef enum tess_train_precision {
    TESS_TRAIN_AUTO,
    TESS_TRAIN_FP32,
    TESS_TRAIN_TF32,
    TESS_TRAIN_BF16,
    TESS_TRAIN_FP16
} tess_train_precision;
typedef enum tess_train_recompute {
    TESS_TRAIN_RECOMPUTE_AUTO,
    TESS_TRAIN_RECOMPUTE_NONE,
    TESS_TRAIN_RECOMPUTE_BLOCKS,
    TESS_TRAIN_RECOMPUTE_ALL
} tess_train_recompute;

/* A path as written, which records and checkpoints hold, and as seen from the working directory. */
typedef struct tess_train_path {
    char *given, *path; /* NULL: none */
} tess_train_path;

typedef struct tess_train_paths {
    int count;
    tess_train_path list[TESS_CONFIG_PATHS];
} tess_train_paths;

/* Numbers of a list. For scales, `weight` is how often each is drawn, relative to the others. */
typedef struct tess_train_numbers {
    int count;
    double list[TESS_CONFIG_SCALES], weight[TESS_CONFIG_SCALES];
} tess_train_numbers;

typedef struct tess_train_widths {
    int count;
    int64_t list[TESS_CONFIG_WIDTHS];
} tess_train_widths;

typedef struct tess_train_phase {
    int64_t steps; /* of this phase: after reading, all phases together have config.steps */
    double share;  /* of all steps, as written; 0: `steps` was written, or neither */
    int64_t crop, batch;
} tess_train_phase;

typedef struct tess_train_phases {
    int count;
    tess_train_phase list[TESS_CONFIG_PHASES];
} tess_train_phases;

/* A hyperspectral pipeline: one of three. */
typedef struct tess_train_pipeline {
    tess_json *graph;       /* written here, or in a .json file */
    tess_train_path fitted; /* a .safetensors file to start from */
    char *name;             /* of one that is built in */
} tess_train_pipeline;

typedef struct tess_train_config {
    tess_train_pipeline pipeline;
    tess_train_paths train; /* names of nodes; `path` is NULL. None: all that are trainable */
    int64_t epochs;
    struct {
        tess_train_architecture architecture;
        int64_t channels;
        tess_train_widths widths;
        int64_t blocks; /* DRUNet: residual blocks in a stage; diffusion: at a scale */
        int64_t depth;  /* DnCNN: convolutions */
        tess_train_norm norm;
        tess_train_widths attention; /* diffusion: the scales with attention, as factors 1, 2, 4, ... */
        double dropout;              /* diffusion */
        tess_train_path weights;     /* file to start from */
    } network;
    struct {
        tess_train_paths folders,
            exclude; /* exclude: names of files, with or without folders in front; `path` is NULL */
        int64_t crop;
        tess_train_numbers scales;
        double sigma[2];       /* noise levels of the crops, on the scale of values in [0,1] */
        int64_t workers;       /* 0: as many as are useful */
        uint64_t cache;        /* bytes of decoded images that are kept */
        int64_t repeats;       /* diffusion: samples of a crop with its void */
        bool shuffle;          /* pipelines: each epoch has an order of its own */
        bool marks_are_values; /* pipelines: undeclared marks of missing pixels are spectra */
    } data;
    int64_t batch, steps;
    tess_train_phases phases; /* at least one after reading */
    struct {
        tess_loss kind;
        double epsilon;
    } loss;
    struct {
        tess_optimizer kind;
        double rate, betas[2], epsilon, weight_decay, momentum, clip; /* clip 0: never */
        bool nesterov;
    } optimizer;
    struct {
        tess_train_rate kind;
        int64_t warmup;
        double final; /* the smallest rate, as a share of `rate` */
        int64_t every;
        double factor;
        int64_t patience;
    } schedule;
    double average; /* decay of the moving average; 0: none is kept */
    tess_train_precision precision;
    tess_train_init init;
    uint64_t seed;
    tess_train_recompute recompute;
    int64_t micro_batches; /* 0: automatic */
    struct {
        tess_train_path folder;
        tess_train_numbers sigma;
        int64_t every;
        int64_t patience; /* the run ends after so many validations that are no better; 0: never */
    } validation;
    struct {
        tess_train_path folder;
        int64_t every;
    } checkpoint;
    tess_train_path output, log, tensorboard;
    tess_dtype output_type;  /* of the values in `output`: F32 or F16 */
    double deviation_factor; /* diffusion: metadata of `output` */
    uint64_t memory;         /* bytes; 0: what is free */
    char device[32];         /* "auto", "cpu", "cuda[:K]" */
    uint64_t is_given;       /* bit i: field i of the table was in the file */
} tess_train_config;

/* Reads and checks a file. On failure there is nothing to free. */
tess_status tess_train_config_read(const char *path, tess_train_config *out,
                                   tess_error *error) TESS_MUST_CHECK;
/* The same for a text; `folder` is what relative paths are relative to ("" or NULL: the working directory). Messages do not
 * name a file. */
tess_status tess_train_config_parse(const char *text, size_t length, const char *folder,
                                    tess_train_config *out, tess_error *error) TESS_MUST_CHECK;
void tess_train_config_clear(tess_train_config *config);
/* Checks that folders and files to be read exist, and that the folders of files to be written do. */
tess_status tess_train_config_check_files(const tess_train_config *config, tess_error *error) TESS_MUST_CHECK;

/* The complete configuration, with defaults and paths as written; reading it gives the same configuration. NULL: no
 * memory. */
tess_json *tess_train_config_json(const tess_train_config *config);
/* Refuses to continue a run whose checkpoint was written with `before`: names the first key that changed and would
 * change the result. Where the run computes, what it writes and how often may change. */
tess_status tess_train_config_continues(const tess_json *before, const tess_train_config *config,
                                        tess_error *error) TESS_MUST_CHECK;

/* Defaults of a diffusion network for keys that were not given, where `network.weights` turns out to be one. Refuses keys that
 * such a network has no use for. */
tess_status tess_train_config_diffusion(tess_train_config *config, tess_error *error) TESS_MUST_CHECK;

/* Defaults of a pipeline that depend on its cubes: their number, and the smallest side of one. */
tess_status tess_train_config_pipeline(tess_train_config *config, int64_t images, int64_t side,
                                       tess_error *error) TESS_MUST_CHECK;

/* The phase that contains a step, counted from 0; later steps belong to the last. */
const tess_train_phase *tess_train_config_phase(const tess_train_config *config, int64_t step);
tess_op_optimize tess_train_config_optimize(const tess_train_config *config);
tess_op_loss tess_train_config_loss(const tess_train_config *config);

#endif
