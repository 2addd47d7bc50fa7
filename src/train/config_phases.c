/* config_phases.c: the phases of a run, e.g. larger crops towards its end, which are closer to the whole images that the
 * network will see.
 *
 * A phase has a number of steps, or a share of all steps; the last phase may leave both out and takes the rest. A
 * phase with another crop and no batch keeps the number of pixels in a batch. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "train/config_impl.h"

static tess_status read_share(tess_config_reader *reader, const tess_json *value, double *share)
{
    *share = tess_json_as_double(value, NAN);
    return *share > 0 && *share <= 1
               ? TESS_OK
               : tess_config_refuse(reader, "a share of the steps, above 0 and at most 1", value);
}

static tess_status read_key(tess_config_reader *reader, const char *key, const tess_json *value,
                            tess_train_phase *phase)
{
    if (strcmp(key, "steps") == 0)
        return tess_config_read_integer(reader, value, 1, UINT32_MAX, "a number of steps, 1 to 4294967295",
                                        &phase->steps);
    if (strcmp(key, "share") == 0)
        return read_share(reader, value, &phase->share);
    if (strcmp(key, "crop") == 0)
        return tess_config_read_integer(reader, value, 8, 4096, "a side in pixels, 8 to 4096", &phase->crop);
    if (strcmp(key, "batch") == 0)
        return tess_config_read_integer(reader, value, 1, 65536, "a number of crops, 1 to 65536",
                                        &phase->batch);
    return tess_fail(reader->error, TESS_BAD_INPUT, "%s: is no key; a phase has steps or share, crop, batch",
                     reader->path);
}

static tess_status read_phases(tess_config_reader *reader, const tess_config_field *field,
                               const tess_json *value, void *target)
{
    tess_train_phases *phases = target;
    const int64_t count = tess_json_length(value);
    if (!tess_json_is_array(value) || count < 1 || count > TESS_CONFIG_PHASES)
        return tess_config_refuse(reader, field->expected, value);
    phases->count = (int)count;
    for (int i = 0; i < phases->count; i++) {
        const tess_json *entry = tess_json_at(value, i);
        snprintf(reader->path, sizeof reader->path, "phases[%d]", i);
        if (!tess_json_is_object(entry))
            return tess_config_refuse(reader, "an object with steps or share, crop, batch", entry);
        for (const char *key = NULL; (key = tess_json_next_key(entry, key));) {
            snprintf(reader->path, sizeof reader->path, "phases[%d].%s", i, key);
            TESS_TRY(read_key(reader, key, tess_json_get(entry, key), &phases->list[i]));
        }
        if (phases->list[i].steps && phases->list[i].share > 0)
            return tess_fail(reader->error, TESS_BAD_INPUT,
                             "phases[%d]: has steps and share; give one of them", i);
    }
    return TESS_OK;
}

/* Always in steps, so that a checkpoint shows where each phase began. */
static tess_json *write_phases(const tess_config_field *field, const void *target)
{
    (void)field;
    const tess_train_phases *phases = target;
    tess_json *array = tess_json_array();
    for (int i = 0; i < phases->count; i++) {
        const tess_train_phase *phase = &phases->list[i];
        tess_json *entry = tess_json_object();
        tess_json_set_int(&entry, "steps", phase->steps);
        tess_json_set_int(&entry, "crop", phase->crop);
        tess_json_set_int(&entry, "batch", phase->batch);
        tess_json_append(&array, entry);
    }
    return array;
}

const tess_config_kind tess_config_phases = {read_phases, write_phases};

static void fill_data(const tess_train_config *config, tess_train_phase *phase)
{
    phase->crop = phase->crop ? phase->crop : config->data.crop;
    if (phase->batch)
        return;
    const double side = (double)config->data.crop / (double)phase->crop;
    phase->batch = tess_max_i64(1, llround((double)config->batch * side * side));
}

/* Steps from shares: ends are rounded, so that the phases together have all steps. */
static tess_status fill_steps(tess_train_config *config, tess_error *error)
{
    int64_t done = 0;
    double share = 0;
    for (int i = 0; i < config->phases.count; i++) {
        tess_train_phase *phase = &config->phases.list[i];
        const bool last = i == config->phases.count - 1;
        share += phase->share;
        if (phase->share > 0) /* beyond 1 it is refused below */
            phase->steps = llround(share * (double)config->steps) - done;
        else if (!phase->steps && last)
            phase->steps = config->steps - done;
        if (phase->steps < 1)
            return tess_fail(error, TESS_BAD_INPUT,
                             "phases[%d]: has no steps; give it steps or a share that leave at least one", i);
        done += phase->steps;
        if (phase->share > 0 && i && config->phases.list[i - 1].share == 0)
            return tess_fail(error, TESS_BAD_INPUT,
                             "phases[%d]: has a share where the phases before it have steps; use one of them",
                             i);
        if (phase->share == 0 && i && config->phases.list[i - 1].share > 0 && !last)
            return tess_fail(error, TESS_BAD_INPUT, "phases[%d]: needs a share, as the phases before it", i);
    }
    if (share > 1 + 1e-9)
        return tess_fail(error, TESS_BAD_INPUT, "phases: have shares of %g together; use at most 1", share);
    if (done != config->steps)
        return tess_fail(error, TESS_BAD_INPUT, "phases: have %lld steps together, but steps is %lld",
                         (long long)done, (long long)config->steps);
    return TESS_OK;
}

tess_status tess_config_complete_phases(tess_train_config *config, bool steps_given, tess_error *error)
{
    tess_train_phases *phases = &config->phases;
    int64_t sum = 0;
    bool all = phases->count > 0;
    for (int i = 0; i < phases->count; i++) {
        all = all && phases->list[i].steps;
        sum += phases->list[i].steps;
    }
    if (all && !steps_given)
        config->steps = sum;
    if (!phases->count) {
        phases->count = 1;
        phases->list[0] = (tess_train_phase){.steps = config->steps};
    }
    for (int i = 0; i < phases->count; i++)
        fill_data(config, &phases->list[i]);
    return fill_steps(config, error);
}

const tess_train_phase *tess_train_config_phase(const tess_train_config *config, int64_t step)
{
    const tess_train_phase *phase = config->phases.list;
    for (int i = 1; i < config->phases.count && step >= phase->steps; i++)
        step -= phase++->steps;
    return phase;
}
