/* config_fields.c: the table of all keys of a training configuration: type, range, words, where the value is stored, and
 * whether a resumed run may change it. */
#include <string.h>

#include "train/config_impl.h"
#include "train/data_dem.h"
#include "train/data_folder.h"
#include "train/data_validation.h"

#define AT(member) offsetof(tess_train_config, member)
#define BIT(value) (1u << (value))
#define HIGH       1e18 /* of bytes */
#define LARGE      1e38
#define PATHLESS   0, 0, NULL
#define KEPT       false, true
#define FREE       false, false
#define ABOVE      true, true
#define NETWORK    AT(network.architecture)
#define OPTIMIZER  AT(optimizer.kind)
#define SCHEDULE   AT(schedule.kind)
#define DENOISERS  (BIT(TESS_TRAIN_DRUNET) | BIT(TESS_TRAIN_UNET) | BIT(TESS_TRAIN_DNCNN))
#define DIFFUSION  BIT(TESS_TRAIN_DIFFUSION)
#define OF_FILE    BIT(TESS_TRAIN_FROM_FILE)
#define PIPELINE   BIT(TESS_TRAIN_PIPELINE)
#define NETWORKS   (DENOISERS | DIFFUSION | OF_FILE)
#define ADAMS      (BIT(TESS_ADAM) | BIT(TESS_ADAMW))
#define INTEGER    &tess_config_integer
#define NUMBER     &tess_config_number
#define WORDS      &tess_config_words
#define ONE_PATH   &tess_config_one_path

static const tess_config_word architectures[] = {{"drunet", TESS_TRAIN_DRUNET},
                                                 {"unet", TESS_TRAIN_UNET},
                                                 {"dncnn", TESS_TRAIN_DNCNN},
                                                 {"diffusion", TESS_TRAIN_DIFFUSION},
                                                 {NULL, 0}};
static const tess_config_word norms[] = {
    {"none", TESS_TRAIN_NORM_NONE}, {"batch", TESS_TRAIN_NORM_BATCH}, {NULL, 0}};
static const tess_config_word losses[] = {
    {"mse", TESS_MSE},   {"l1", TESS_L1},     {"charbonnier", TESS_CHARBONNIER},
    {"rmse", TESS_RMSE}, {"psnr", TESS_PSNR}, {NULL, 0}}; /* others need masks or labels, which images lack */
static const tess_config_word optimizers[] = {
    {"sgd", TESS_SGD}, {"adam", TESS_ADAM}, {"adamw", TESS_ADAMW}, {NULL, 0}};
static const tess_config_word schedules[] = {{"constant", TESS_RATE_CONSTANT},
                                             {"cosine", TESS_RATE_COSINE},
                                             {"step", TESS_RATE_STEP},
                                             {"plateau", TESS_RATE_PLATEAU},
                                             {NULL, 0}};
static const tess_config_word precisions[] = {{"auto", TESS_TRAIN_AUTO}, {"fp32", TESS_TRAIN_FP32},
                                              {"tf32", TESS_TRAIN_TF32}, {"bf16", TESS_TRAIN_BF16},
                                              {"fp16", TESS_TRAIN_FP16}, {NULL, 0}};
static const tess_config_word output_types[] = {{"fp32", TESS_F32}, {"fp16", TESS_F16}, {NULL, 0}};
static const tess_config_word starts[] = {{"kaiming", TESS_INIT_KAIMING},
                                          {"xavier", TESS_INIT_XAVIER},
                                          {"orthogonal", TESS_INIT_ORTHOGONAL},
                                          {"pytorch", TESS_INIT_PYTORCH},
                                          {"drunet", TESS_INIT_DRUNET},
                                          {"diffusion", TESS_INIT_DIFFUSION},
                                          {NULL, 0}};
static const tess_config_word recomputes[] = {{"auto", TESS_TRAIN_RECOMPUTE_AUTO},
                                              {"none", TESS_TRAIN_RECOMPUTE_NONE},
                                              {"blocks", TESS_TRAIN_RECOMPUTE_BLOCKS},
                                              {"all", TESS_TRAIN_RECOMPUTE_ALL},
                                              {NULL, 0}};

const char *const tess_config_sections[] = {"",         "network",    "data",       "loss", "optimizer",
                                            "schedule", "validation", "checkpoint", NULL};

static const char a_size[] = "a size such as \"512M\" or \"8G\", or a number of bytes";
static const char above_zero[] = "a number above 0", from_zero[] = "a number from 0",
                  below_one[] = "a number from 0 to "
                                "below 1";

/* Numbers below 1 are at most 1 - 2^-40: far above every decay that is used. */
#define BELOW_ONE (1 - 0x1p-40)

const tess_config_field tess_config_fields[] = {
    {"", "pipeline", &tess_config_pipeline, AT(pipeline), PATHLESS,
     "a graph, or the name of a pipeline, of a .json or of a .safetensors file", KEPT},
    {"", "train", &tess_config_names, AT(train), PATHLESS, "a list of at most 64 names of nodes", KEPT,
     NETWORK, PIPELINE},
    {"", "epochs", INTEGER, AT(epochs), 0, 1e9, NULL, "a number of epochs, or 0: as many as `steps` are",
     KEPT, NETWORK, PIPELINE},
    {"network", "architecture", WORDS, NETWORK, 0, 0, architectures, NULL, KEPT},
    {"network", "channels", INTEGER, AT(network.channels), 1, 3, NULL, "1 (gray) or 3 (colour)", KEPT,
     NETWORK, DENOISERS},
    {"network", "widths", &tess_config_widths, AT(network.widths), 1, 4096, NULL,
     "a list of 1 to 8 widths, each 1 to 4096", KEPT, NETWORK, DENOISERS | DIFFUSION},
    {"network", "blocks", INTEGER, AT(network.blocks), 1, 64, NULL, "residual blocks in a stage, 1 to 64",
     KEPT, NETWORK, BIT(TESS_TRAIN_DRUNET) | DIFFUSION},
    {"network", "depth", INTEGER, AT(network.depth), 3, 100, NULL, "a number of convolutions, 3 to 100", KEPT,
     NETWORK, BIT(TESS_TRAIN_DNCNN)},
    {"network", "norm", WORDS, AT(network.norm), 0, 0, norms, NULL, KEPT, NETWORK,
     BIT(TESS_TRAIN_UNET) | BIT(TESS_TRAIN_DNCNN)},
    {"network", "attention", &tess_config_widths, AT(network.attention), 0, 128, NULL,
     "a list of factors, 1 (full size), 2, 4, 8, ...; [0]: in the middle only", KEPT, NETWORK, DIFFUSION},
    {"network", "dropout", NUMBER, AT(network.dropout), 0, 0.9, NULL, "a share from 0 to 0.9", KEPT, NETWORK,
     DIFFUSION | OF_FILE},
    {"network", "weights", ONE_PATH, AT(network.weights), PATHLESS, "the name of a weight file", KEPT},
    {"data", "folders", &tess_config_folders, AT(data.folders), PATHLESS,
     "a list of 1 to 64 folders with images", KEPT},
    {"data", "exclude", &tess_config_names, AT(data.exclude), PATHLESS, "a list of at most 64 file names",
     KEPT, NETWORK, NETWORKS},
    {"data", "crop", INTEGER, AT(data.crop), 8, 4096, NULL, "a side in pixels, 8 to 4096", KEPT},
    {"data", "scales", &tess_config_scales, AT(data.scales), 0.05, 4, NULL,
     "a list of at most 8 scales from 0.05 to 4, each a number or [scale, share]", KEPT, NETWORK, NETWORKS},
    {"data", "sigma", &tess_config_range, AT(data.sigma), 0, 1, NULL,
     "a noise level from 0 to 1 (25 of 255 is 0.098), or [lowest, highest]", KEPT, NETWORK,
     DENOISERS | OF_FILE},
    {"data", "workers", INTEGER, AT(data.workers), 0, TESS_DATA_WORKERS, NULL,
     "a number of threads, 0 (automatic) to 64", FREE},
    {"data", "cache", &tess_config_size, AT(data.cache), 0, HIGH, NULL, a_size, FREE, NETWORK, NETWORKS},
    {"data", "shuffle", &tess_config_bool, AT(data.shuffle), PATHLESS, "true or false", KEPT, NETWORK,
     PIPELINE},
    {"data", "marks_are_values", &tess_config_bool, AT(data.marks_are_values), PATHLESS, "true or false",
     KEPT, NETWORK, PIPELINE},
    {"data", "repeats", INTEGER, AT(data.repeats), 1, TESS_DEM_POSITIONS, NULL,
     "a number of positions of a crop, 1 to 8", KEPT, NETWORK, DIFFUSION | OF_FILE},
    {"", "batch", INTEGER, AT(batch), 1, 65536, NULL, "a number of crops, 1 to 65536", KEPT},
    {"", "steps", INTEGER, AT(steps), 1, UINT32_MAX, NULL, "a number of steps, 1 to 4294967295", KEPT},
    {"", "phases", &tess_config_phases, AT(phases), PATHLESS,
     "a list of 1 to 16 phases, each an object with steps or share, crop, batch", KEPT, NETWORK, NETWORKS},
    {"loss", "kind", WORDS, AT(loss.kind), 0, 0, losses, NULL, KEPT, NETWORK, DENOISERS | OF_FILE},
    {"loss", "epsilon", NUMBER, AT(loss.epsilon), 0, 1, NULL, "a number above 0, at most 1", ABOVE,
     AT(loss.kind), BIT(TESS_CHARBONNIER) | BIT(TESS_RMSE) | BIT(TESS_PSNR)},
    {"optimizer", "kind", WORDS, OPTIMIZER, 0, 0, optimizers, NULL, KEPT},
    {"optimizer", "rate", NUMBER, AT(optimizer.rate), 0, LARGE, NULL, above_zero, ABOVE},
    {"optimizer", "betas", &tess_config_pair, AT(optimizer.betas), 0, BELOW_ONE, NULL,
     "a list of two numbers from 0 to below 1", KEPT, OPTIMIZER, ADAMS},
    {"optimizer", "epsilon", NUMBER, AT(optimizer.epsilon), 0, 1, NULL, "a number above 0, at most 1", ABOVE,
     OPTIMIZER, ADAMS},
    {"optimizer", "weight_decay", NUMBER, AT(optimizer.weight_decay), 0, LARGE, NULL, from_zero, KEPT},
    {"optimizer", "momentum", NUMBER, AT(optimizer.momentum), 0, BELOW_ONE, NULL, below_one, KEPT, OPTIMIZER,
     BIT(TESS_SGD)},
    {"optimizer", "nesterov", &tess_config_bool, AT(optimizer.nesterov), PATHLESS, "true or false", KEPT,
     OPTIMIZER, BIT(TESS_SGD)},
    {"optimizer", "clip", NUMBER, AT(optimizer.clip), 0, LARGE, NULL,
     "a norm of gradients, or 0 for no limit", KEPT},
    {"schedule", "kind", WORDS, SCHEDULE, 0, 0, schedules, NULL, KEPT},
    {"schedule", "warmup", INTEGER, AT(schedule.warmup), 0, 1e12, NULL, "a number of steps, 0 or more", KEPT},
    {"schedule", "final", NUMBER, AT(schedule.final), 0, 1, NULL,
     "the smallest rate as a share of optimizer.rate, 0 to 1", KEPT, SCHEDULE,
     BIT(TESS_RATE_COSINE) | BIT(TESS_RATE_STEP) | BIT(TESS_RATE_PLATEAU)},
    {"schedule", "every", INTEGER, AT(schedule.every), 1, 1e12, NULL, "a number of steps, 1 or more", KEPT,
     SCHEDULE, BIT(TESS_RATE_STEP)},
    {"schedule", "factor", NUMBER, AT(schedule.factor), 0, BELOW_ONE, NULL, "a number above 0 and below 1",
     ABOVE, SCHEDULE, BIT(TESS_RATE_STEP) | BIT(TESS_RATE_PLATEAU)},
    {"schedule", "patience", INTEGER, AT(schedule.patience), 0, 1e6, NULL,
     "a number of validations, 0 or more", KEPT, SCHEDULE, BIT(TESS_RATE_PLATEAU)},
    {"", "average", NUMBER, AT(average), 0, BELOW_ONE, NULL, "a decay from 0 (no average is kept) to below 1",
     KEPT},
    {"", "precision", WORDS, AT(precision), 0, 0, precisions, NULL, KEPT},
    {"", "init", WORDS, AT(init), 0, 0, starts, NULL, KEPT, NETWORK, NETWORKS},
    {"", "seed", INTEGER, AT(seed), 0, 0x1p63, NULL, "a whole number from 0", KEPT},
    {"", "recompute", WORDS, AT(recompute), 0, 0, recomputes, NULL, FREE},
    {"", "micro_batches", &tess_config_automatic, AT(micro_batches), 1, 64, NULL,
     "\"auto\" or a number from 1 to 64", FREE},
    {"validation", "folder", ONE_PATH, AT(validation.folder), PATHLESS, "a folder with images", FREE},
    {"validation", "sigma", &tess_config_numbers, AT(validation.sigma), 0, 1, NULL,
     "a list of 1 to 8 noise levels from 0 to 1 (25 of 255 is 0.098)", FREE, NETWORK, DENOISERS | OF_FILE},
    {"validation", "every", INTEGER, AT(validation.every), 1, 1e12, NULL, "a number of steps, 1 or more",
     FREE},
    {"validation", "patience", INTEGER, AT(validation.patience), 0, 1e6, NULL,
     "a number of validations, or 0: the run never ends early", FREE},
    {"checkpoint", "folder", ONE_PATH, AT(checkpoint.folder), PATHLESS, "a folder", FREE},
    {"checkpoint", "every", INTEGER, AT(checkpoint.every), 1, 1e12, NULL, "a number of steps, 1 or more",
     FREE},
    {"", "deviation_factor", NUMBER, AT(deviation_factor), 0, 100, NULL, above_zero, true, false, NETWORK,
     DIFFUSION | OF_FILE},
    {"", "output", ONE_PATH, AT(output), PATHLESS, "the name of a .safetensors file", FREE},
    {"", "output_type", WORDS, AT(output_type), 0, 0, output_types, NULL, FREE, NETWORK, NETWORKS},
    {"", "log", ONE_PATH, AT(log), PATHLESS, "the name of a file", FREE},
    {"", "tensorboard", ONE_PATH, AT(tensorboard), PATHLESS, "a folder", FREE},
    {"", "memory", &tess_config_size, AT(memory), 1 << 20, HIGH, NULL, a_size, FREE},
    {"", "device", &tess_config_device, AT(device), PATHLESS, "\"auto\", \"cpu\", \"cuda\" or \"cuda:K\"",
     FREE},
};
const int tess_config_field_count = sizeof tess_config_fields / sizeof *tess_config_fields;
_Static_assert(sizeof tess_config_fields / sizeof *tess_config_fields <= TESS_CONFIG_FIELDS_MOST,
               "is_given has a bit for each field");
_Static_assert((int)TESS_CONFIG_SCALES == (int)TESS_FOLDER_SCALES &&
                   (int)TESS_CONFIG_LEVELS == (int)TESS_VALIDATION_LEVELS && TESS_DATA_WORKERS == 64,
               "what a configuration may hold is what the data takes");

bool tess_config_field_lacks_folder(const tess_config_field *field, const tess_train_config *config)
{
    return strcmp(field->section, "validation") == 0 && strcmp(field->key, "folder") != 0 &&
           !config->validation.folder.given;
}

bool tess_config_field_used(const tess_config_field *field, const tess_train_config *config)
{
    if (tess_config_field_lacks_folder(field, config))
        return false;
    if (!field->values)
        return true;
    const int word = *(const int *)(const void *)((const char *)config + field->of);
    return field->values >> word & 1;
}

int tess_config_field_find(const char *section, const char *key)
{
    for (int i = 0; i < tess_config_field_count; i++)
        if (strcmp(tess_config_fields[i].section, section) == 0 &&
            strcmp(tess_config_fields[i].key, key) == 0)
            return i;
    return -1;
}

const tess_config_field *tess_config_field_at(size_t offset)
{
    for (int i = 0; i < tess_config_field_count; i++)
        if (tess_config_fields[i].offset == offset)
            return &tess_config_fields[i];
    return NULL;
}

bool tess_config_given(const tess_train_config *config, size_t offset)
{
    const tess_config_field *field = tess_config_field_at(offset);
    return field && config->is_given >> (field - tess_config_fields) & 1;
}
