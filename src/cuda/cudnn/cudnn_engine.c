/* cudnn_engine.c: selects the cuDNN engines that may do an op, and gives them ids that stay valid in other
 * processes.
 *
 * An engine is a cuDNN number and a choice for each of its knobs (tile, stages, clusters...). The id holds the
 * engine's number in its low 15 bits, one bit for "graph of any size", and above it the choices as one
 * mixed-radix number: the radix of a digit is the range of its knob, and digit 0 is "not chosen". Ranges
 * depend on the engine, not on the shape (seen: 41 of 41 ids the same at two sizes), so an id gives the same
 * configuration for another size without a new call of the heuristic, in 0.1 to 0.4 ms.
 *
 * Rejected are engines whose sums change from run to run, that sum in less than fp32, that round fp32 inputs
 * without permission, or that transform blocks (Winograd, FFT), because their results would depend on where a
 * window starts. */
#include "cuda/cudnn/cudnn_engine.h"

#include <stdio.h>
#include <string.h>

enum { KNOBS = 64, NOTES = 32, ANY_SIZE = 1 << 15, INDEX_BITS = 16, CODE_BITS = 63 - INDEX_BITS };

typedef struct knob {
    cudnnBackendKnobType_t type;
    int64_t low, high, step;
    bool chosen;
    int64_t value;
} knob;

static bool has_note(tess_cudnn_bag *bag, cudnnBackendDescriptor_t engine, cudnnBackendNumericalNote_t note)
{
    cudnnBackendNumericalNote_t notes[NOTES];
    int count = tess_cudnn_get(bag, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               NOTES, notes);
    for (int i = 0; i < count; i++)
        if (notes[i] == note)
            return true;
    return false;
}

static bool compiles(tess_cudnn_bag *bag, cudnnBackendDescriptor_t engine)
{
    cudnnBackendBehaviorNote_t notes[NOTES];
    int count =
        tess_cudnn_get(bag, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, NOTES, notes);
    for (int i = 0; i < count; i++)
        if (notes[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION)
            return true;
    return false;
}

/* Compiled engines are accepted only for graphs of any size, and there only with matrix instructions: the
 * others take a hundred times as long. */
static bool acceptable(tess_cudnn_bag *bag, const tess_op *op, bool any_size, cudnnBackendDescriptor_t engine)
{
    static const cudnnBackendNumericalNote_t never[] = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
                                                        CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
                                                        CUDNN_NUMERICAL_NOTE_FFT,
                                                        CUDNN_NUMERICAL_NOTE_WINOGRAD,
                                                        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
                                                        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
                                                        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (has_note(bag, engine, never[i]))
            return false;
    const bool compiled = any_size && op->kind != TESS_OP_CONV_GRAD;
    if (compiled ? !has_note(bag, engine, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) : compiles(bag, engine))
        return false;
    if (op->in[0].dtype != TESS_F32)
        return true;
    return !has_note(bag, engine, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) &&
           (op->tf32 || !has_note(bag, engine, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
}

/* Reads the knobs of an engine, with none chosen; their descriptors stay in the bag. */
static int knobs_of(tess_cudnn_bag *bag, cudnnBackendDescriptor_t engine, knob *knobs)
{
    cudnnBackendDescriptor_t infos[KNOBS];
    int count =
        tess_cudnn_get(bag, engine, CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, NULL);
    if (count > KNOBS)
        count = KNOBS;
    for (int i = 0; i < count; i++)
        infos[i] = tess_cudnn_make(bag, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR);
    if (count)
        count = tess_cudnn_get(bag, engine, CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                               infos);
    for (int i = 0; i < count; i++) {
        knob *k = &knobs[i];
        *k = (knob){.step = 1};
        tess_cudnn_get(bag, infos[i], CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &k->type);
        tess_cudnn_get(bag, infos[i], CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, CUDNN_TYPE_INT64, 1, &k->low);
        tess_cudnn_get(bag, infos[i], CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, CUDNN_TYPE_INT64, 1, &k->high);
        tess_cudnn_get(bag, infos[i], CUDNN_ATTR_KNOB_INFO_STRIDE, CUDNN_TYPE_INT64, 1, &k->step);
        if (k->step < 1)
            k->step = 1;
        if (k->high < k->low)
            k->high = k->low;
    }
    return count;
}

static void read_choices(tess_cudnn_bag *bag, cudnnBackendDescriptor_t config, knob *knobs, int count)
{
    cudnnBackendDescriptor_t choices[KNOBS];
    for (int i = 0; i < count; i++)
        choices[i] = tess_cudnn_make(bag, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    /* Unlike other lists, this one does not return its length when asked for zero values. */
    int chosen = count ? tess_cudnn_get(bag, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, count, choices)
                       : 0;
    for (int i = 0; i < chosen; i++) {
        cudnnBackendKnobType_t type = 0;
        int64_t value = 0;
        tess_cudnn_get(bag, choices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
        tess_cudnn_get(bag, choices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
        for (int k = 0; k < count; k++)
            if (knobs[k].type == type) {
                knobs[k].value = value;
                knobs[k].chosen = true;
            }
    }
}

static int64_t radix(const knob *k)
{
    return (k->high - k->low) / k->step + 2;
}

/* -1 if the choices do not fit into an id; such a configuration is not proposed. */
static int64_t encode(int64_t index, const knob *knobs, int count)
{
    int64_t code = 0;
    for (int i = count - 1; i >= 0; i--) {
        const knob *k = &knobs[i];
        if (k->chosen && (k->value < k->low || k->value > k->high || (k->value - k->low) % k->step))
            return -1;
        if (code >= ((int64_t)1 << CODE_BITS) / radix(k))
            return -1;
        code = code * radix(k) + (k->chosen ? 1 + (k->value - k->low) / k->step : 0);
    }
    return code << INDEX_BITS | index;
}

static bool decode(int64_t id, knob *knobs, int count)
{
    int64_t code = id >> INDEX_BITS;
    for (int i = 0; i < count; i++) {
        int64_t digit = code % radix(&knobs[i]);
        code /= radix(&knobs[i]);
        knobs[i].chosen = digit > 0;
        knobs[i].value = knobs[i].low + (digit - 1) * knobs[i].step;
    }
    return code == 0;
}

/* The id of one of the heuristic's proposals; -1 if it is not acceptable. */
static int64_t id_of(tess_cudnn_bag *bag, const tess_op *op, bool any_size, cudnnBackendDescriptor_t config)
{
    knob knobs[KNOBS];
    int64_t index = -1;
    cudnnBackendDescriptor_t engine = tess_cudnn_make(bag, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (tess_cudnn_get(bag, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine) !=
            1 ||
        tess_cudnn_get(bag, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index) != 1 ||
        index < 0 || !acceptable(bag, op, any_size, engine))
        return -1;
    int count = knobs_of(bag, engine, knobs);
    read_choices(bag, config, knobs, count);
    return index < ANY_SIZE ? encode(any_size ? index | ANY_SIZE : index, knobs, count) : -1;
}

bool tess_cudnn_any_size(int64_t id)
{
    return id & ANY_SIZE;
}

static bool known(const int64_t *ids, int count, int64_t id)
{
    for (int i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

int tess_cudnn_proposals(const tess_op *conv, bool any_size, cudnnBackendDescriptor_t graph,
                         tess_cudnn_bag *bag, int64_t *ids, int most)
{
    enum { CONFIGS = 128 };
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    int written = 0;
    for (int m = 0; m < 2 && !bag->failed; m++) {
        cudnnBackendDescriptor_t configs[CONFIGS],
            search = tess_cudnn_make(bag, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        tess_cudnn_set(bag, search, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                       &graph);
        tess_cudnn_set(bag, search, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &modes[m]);
        tess_cudnn_seal(bag, search, "the search for engines");
        int count = tess_cudnn_get(bag, search, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                   0, NULL);
        if (count > CONFIGS)
            count = CONFIGS;
        for (int i = 0; i < count; i++)
            configs[i] = tess_cudnn_make(bag, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        count = tess_cudnn_get(bag, search, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                               count, configs);
        for (int i = 0; i < count && written < most; i++) {
            int before = bag->count;
            int64_t id = id_of(bag, conv, any_size, configs[i]);
            tess_cudnn_bag_cut(bag, before);
            if (id >= 0 && !known(ids, written, id))
                ids[written++] = id;
        }
    }
    return written;
}

cudnnBackendDescriptor_t tess_cudnn_engine(tess_cudnn_bag *bag, cudnnBackendDescriptor_t graph, int64_t id,
                                           char *text, size_t size)
{
    knob knobs[KNOBS];
    cudnnBackendDescriptor_t choices[KNOBS];
    const int64_t index = id & (ANY_SIZE - 1);
    int chosen = 0;
    cudnnBackendDescriptor_t engine = tess_cudnn_make(bag, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    tess_cudnn_set(bag, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    tess_cudnn_set(bag, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    tess_cudnn_seal(bag, engine, "the engine");
    if (bag->failed)
        return NULL;
    int count = knobs_of(bag, engine, knobs);
    if (!decode(id, knobs, count)) {
        bag->failed = CUDNN_STATUS_NOT_SUPPORTED;
        bag->doing = "an engine id of another version";
        return NULL;
    }
    size_t at = (size_t)snprintf(text, size, "engine %lld", (long long)index);
    for (int i = 0; i < count; i++) {
        if (!knobs[i].chosen)
            continue;
        cudnnBackendDescriptor_t choice = tess_cudnn_make(bag, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        tess_cudnn_set(bag, choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                       &knobs[i].type);
        tess_cudnn_set(bag, choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &knobs[i].value);
        tess_cudnn_seal(bag, choice, "a knob of the engine");
        choices[chosen++] = choice;
        if (at < size)
            at += (size_t)snprintf(text + at, size - at, " k%d=%lld", (int)knobs[i].type,
                                   (long long)knobs[i].value);
    }
    cudnnBackendDescriptor_t config = tess_cudnn_make(bag, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    tess_cudnn_set(bag, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    if (chosen)
        tess_cudnn_set(bag, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, chosen,
                       choices);
    tess_cudnn_seal(bag, config, "the engine's knobs");
    return bag->failed ? NULL : config;
}

static uint64_t mix(uint64_t key, int64_t value)
{
    return (key ^ (uint64_t)value) * 0x9e3779b97f4a7c15u ^ key >> 29;
}

/* Everything that compiled code may depend on: all but the image size. */
static uint64_t class_key(const tess_op *op)
{
    uint64_t key = 1;
    for (int s = 0; s < TESS_SPATIAL; s++) {
        key = mix(key, op->kernel[s]), key = mix(key, op->stride[s]);
        key = mix(key, op->pad_before[s]), key = mix(key, op->pad_after[s]);
    }
    key = mix(key, op->in[0].c), key = mix(key, op->in[0].stride_w), key = mix(key, (int64_t)op->in[0].dtype);
    key = mix(key, op->out[0].c), key = mix(key, op->out[0].stride_w);
    for (int i = 0; i < tess_op_residuals(op); i++)
        key = mix(key, op->in[1 + i].stride_w);
    key = mix(key, op->bias), key = mix(key, tess_op_relu(op)), key = mix(key, op->tf32),
    key = mix(key, tess_op_residuals(op));
    return key;
}

cudnnBackendDescriptor_t tess_cudnn_kernel_cache(tess_cudnn *cudnn, const tess_op *conv,
                                                 cudnnBackendDescriptor_t graph)
{
    tess_cudnn_bag *bag = &cudnn->kernels;
    uint64_t key = class_key(conv);
    for (int i = 0; i < bag->count; i++)
        if (cudnn->kernel_keys[i] == key)
            return bag->items[i];
    uint64_t *keys = tess_small_realloc(cudnn->kernel_keys, (size_t)bag->count + 1, sizeof *keys);
    if (!keys)
        return NULL;
    cudnn->kernel_keys = keys;
    keys[bag->count] = key;
    int before = bag->count;
    cudnnBackendDescriptor_t cache = tess_cudnn_make(bag, CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR);
    tess_cudnn_set(bag, cache, CUDNN_ATTR_KERNEL_CACHE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                   &graph);
    tess_cudnn_seal(bag, cache, "a cache of kernels");
    if (!bag->failed)
        return cache;
    /* The cache only saves time: continue without it. */
    tess_cudnn_bag_cut(bag, before);
    bag->failed = CUDNN_STATUS_SUCCESS;
    return NULL;
}
