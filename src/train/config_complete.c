/* config_complete.c: defaults, and checks that involve several keys. The defaults are those that trained the bundled small
 * denoisers: AdamW with warm-up and cosine, clipping, a moving average. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "train/config_impl.h"

#define GIVEN(config, member) tess_config_given(config, offsetof(tess_train_config, member))

void tess_config_defaults(tess_train_config *config)
{
    *config = (tess_train_config){
        .network = {.channels = 3, .blocks = 4, .depth = 20},
        .data = {.crop = 128,
                 .scales = {4, {1, 0.9, 0.8, 0.7}, {0.55, 0.15, 0.15, 0.15}},
                 .sigma = {0, 0.2},
                 .cache = (uint64_t)4 << 30,
                 .repeats = 1},
        .batch = 16,
        .steps = 20000,
        .loss = {TESS_L1, 1e-3},
        .optimizer =
            {.kind = TESS_ADAMW, .betas = {0.9, 0.99}, .epsilon = 1e-8, .momentum = 0.9, .clip = 0.5},
        .schedule = {.kind = TESS_RATE_COSINE, .factor = 0.5, .patience = 5},
        .average = 0.999,
        .validation = {.sigma = {1, {25.0 / 255}, {1}}, .every = 1000},
        .checkpoint = {.every = 1000},
        .output_type = TESS_F32,
        .deviation_factor = 1,
        .device = "auto",
    };
}

static tess_status missing(tess_config_reader *reader, const char *path, const char *expected)
{
    return tess_fail(reader->error, TESS_BAD_INPUT, "%s: is missing; expected %s", path, expected);
}

static tess_status complete_network(tess_train_config *config, tess_config_reader *reader)
{
    const tess_train_architecture kind = config->network.architecture;
    tess_train_widths *widths = &config->network.widths;
    if (GIVEN(config, pipeline))
        return tess_config_complete_pipeline(config, reader);
    if (config->network.weights.given && kind != TESS_TRAIN_FROM_FILE)
        return tess_fail(
            reader->error, TESS_BAD_INPUT,
            "network.architecture: is not used with network.weights, whose file decides it; remove "
            "one of them");
    if (!config->network.weights.given && kind == TESS_TRAIN_FROM_FILE)
        return missing(reader, "network.architecture",
                       "\"drunet\", \"unet\", \"dncnn\" or \"diffusion\", or network.weights to start from a "
                       "file; a pipeline "
                       "has `pipeline` instead");
    if (kind == TESS_TRAIN_DIFFUSION)
        return tess_config_complete_diffusion(config, reader);
    if (config->network.channels == 2)
        return tess_fail(reader->error, TESS_BAD_INPUT,
                         "network.channels: expected 1 (gray) or 3 (colour), got 2");
    if (!widths->count && kind == TESS_TRAIN_DNCNN)
        *widths = (tess_train_widths){1, {64}};
    else if (!widths->count && kind != TESS_TRAIN_FROM_FILE)
        *widths = (tess_train_widths){4, {64, 128, 256, 512}};
    if (kind == TESS_TRAIN_DRUNET && widths->count != 4)
        return tess_fail(reader->error, TESS_BAD_INPUT,
                         "network.widths: expected 4 widths for drunet, got %d", widths->count);
    if (kind == TESS_TRAIN_UNET && (widths->count < 2 || widths->count > 5))
        return tess_fail(reader->error, TESS_BAD_INPUT,
                         "network.widths: expected 2 to 5 widths for unet, got %d", widths->count);
    if (kind == TESS_TRAIN_DNCNN && widths->count != 1)
        return tess_fail(reader->error, TESS_BAD_INPUT, "network.widths: expected 1 width for dncnn, got %d",
                         widths->count);
    if (!GIVEN(config, network.norm))
        config->network.norm = kind == TESS_TRAIN_UNET ? TESS_TRAIN_NORM_BATCH : TESS_TRAIN_NORM_NONE;
    if (!GIVEN(config, init))
        config->init = kind == TESS_TRAIN_DRUNET ? TESS_INIT_DRUNET : TESS_INIT_KAIMING;
    return TESS_OK;
}

/* A network that halves its image n times needs crops that are multiples of 2^n. */
static tess_status check_crops(const tess_train_config *config, tess_config_reader *reader)
{
    const bool halves = config->network.architecture == TESS_TRAIN_DRUNET ||
                        config->network.architecture == TESS_TRAIN_UNET ||
                        config->network.architecture == TESS_TRAIN_DIFFUSION;
    const int64_t grid = halves ? (int64_t)1 << (config->network.widths.count - 1) : 1;
    const tess_train_phases *phases = &config->phases;
    for (int i = -1; i < phases->count; i++) {
        const int64_t crop = i < 0 ? config->data.crop : phases->list[i].crop;
        char path[TESS_CONFIG_PATH] = "data.crop";
        if (i >= 0)
            snprintf(path, sizeof path, "phases[%d].crop", i);
        if (crop % grid)
            return tess_fail(reader->error, TESS_BAD_INPUT,
                             "%s: expected a multiple of %lld for this network, got %lld", path,
                             (long long)grid, (long long)crop);
    }
    return TESS_OK;
}

static tess_status check_batches(const tess_train_config *config, tess_config_reader *reader)
{
    const tess_train_phases *phases = &config->phases;
    for (int i = 0; i < phases->count; i++) {
        char path[TESS_CONFIG_PATH] = "batch";
        if (phases->count > 1)
            snprintf(path, sizeof path, "phases[%d].batch", i);
        if (phases->list[i].batch % config->data.repeats)
            return tess_fail(reader->error, TESS_BAD_INPUT,
                             "%s: expected a multiple of data.repeats, which is %lld, got %lld", path,
                             (long long)config->data.repeats, (long long)phases->list[i].batch);
    }
    return TESS_OK;
}

static void complete_rates(tess_train_config *config)
{
    if (!GIVEN(config, optimizer.rate))
        config->optimizer.rate = config->optimizer.kind == TESS_SGD ? 1e-2 : 1e-3;
    if (!GIVEN(config, optimizer.weight_decay))
        config->optimizer.weight_decay = config->optimizer.kind == TESS_ADAMW ? 1e-2 : 0;
    if (!GIVEN(config, schedule.warmup))
        config->schedule.warmup =
            config->network.architecture == TESS_TRAIN_PIPELINE ? 0 : tess_min_i64(500, config->steps / 10);
    if (!GIVEN(config, schedule.every))
        config->schedule.every = tess_max_i64(1, config->steps / 3);
}

static tess_status check_rates(const tess_train_config *config, tess_config_reader *reader)
{
    if (config->schedule.warmup > config->steps)
        return tess_fail(reader->error, TESS_BAD_INPUT,
                         "schedule.warmup: expected at most the %lld steps of the run, got %lld",
                         (long long)config->steps, (long long)config->schedule.warmup);
    if (config->schedule.kind == TESS_RATE_PLATEAU && !config->validation.folder.given)
        return tess_fail(reader->error, TESS_BAD_INPUT,
                         "schedule.kind: \"plateau\" follows the validation; give validation.folder too");
    if (config->optimizer.nesterov && config->optimizer.kind == TESS_SGD && config->optimizer.momentum == 0)
        return tess_fail(reader->error, TESS_BAD_INPUT,
                         "optimizer.nesterov: needs optimizer.momentum above 0");
    return TESS_OK;
}

tess_status tess_config_complete_steps(tess_train_config *config, tess_config_reader *reader)
{
    TESS_TRY(tess_config_complete_phases(config, GIVEN(config, steps), reader->error));
    TESS_TRY(check_crops(config, reader));
    TESS_TRY(check_batches(config, reader));
    complete_rates(config);
    return check_rates(config, reader);
}

static tess_status complete_output(tess_train_config *config, tess_config_reader *reader)
{
    static const char suffix[] = ".safetensors", folder[] = "-checkpoints";
    const char *given = config->output.given;
    if (!given)
        return missing(reader, "output", "the name of a .safetensors file");
    const size_t length = strlen(given), end = sizeof suffix - 1;
    if (length <= end || strcmp(given + length - end, suffix) != 0)
        return tess_fail(reader->error, TESS_BAD_INPUT, "output: expected a name that ends in %s, got \"%s\"",
                         suffix, given);
    if (config->checkpoint.folder.given)
        return TESS_OK;
    char *name = tess_small_alloc(length + sizeof folder, 1);
    if (!name)
        return tess_fail(reader->error, TESS_NO_MEMORY, "no memory for the configuration");
    snprintf(name, length + sizeof folder, "%.*s%s", (int)(length - end), given, folder);
    tess_json *value = tess_json_string(name);
    tess_small_free(name);
    tess_status status = value ? tess_config_read_path(reader, value, "a folder", &config->checkpoint.folder)
                               : tess_fail(reader->error, TESS_NO_MEMORY, "no memory for the configuration");
    tess_json_free(value);
    return status;
}

/* A key that has no effect is more often a mistake than not. */
static tess_status check_unused(const tess_train_config *config, tess_config_reader *reader)
{
    for (int i = 0; i < tess_config_field_count; i++) {
        const tess_config_field *field = &tess_config_fields[i];
        if (!(config->is_given >> i & 1) || tess_config_field_used(field, config))
            continue;
        tess_config_enter(reader, field->section, field->key);
        if (tess_config_field_lacks_folder(field, config))
            return tess_fail(reader->error, TESS_BAD_INPUT,
                             "%s: is not used without validation.folder; give that too, or remove it",
                             reader->path);
        if (config->network.architecture == TESS_TRAIN_PIPELINE &&
            field->of == offsetof(tess_train_config, network.architecture))
            return tess_fail(reader->error, TESS_BAD_INPUT, "%s: is not used for a pipeline; remove it",
                             reader->path);
        const tess_config_field *by = tess_config_field_at(field->of);
        const char *word =
            tess_config_word_of(by->words, *(const int *)(const void *)((const char *)config + by->offset));
        if (!word)
            return tess_fail(reader->error, TESS_BAD_INPUT,
                             "%s: is not used with network.weights, whose file decides it; remove it",
                             reader->path);
        return tess_fail(reader->error, TESS_BAD_INPUT, "%s: is not used where %s.%s is \"%s\"; remove it",
                         reader->path, by->section, by->key, word);
    }
    return TESS_OK;
}

tess_status tess_config_complete(tess_train_config *config, tess_config_reader *reader)
{
    if (!config->data.folders.count)
        return missing(reader, "data.folders", "a list of folders with images or cubes");
    TESS_TRY(complete_network(config, reader));
    TESS_TRY(check_unused(config, reader));
    if (config->network.architecture != TESS_TRAIN_PIPELINE) /* else the cubes decide */
        TESS_TRY(tess_config_complete_steps(config, reader));
    return complete_output(config, reader);
}
