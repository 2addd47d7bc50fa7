#include "cuda/core/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/core/engines_impl.h"

/* A build may lack the file. */
extern const tess_cuda_engine tess_cuda_hopper __attribute__((weak));

/* The order of preference where nothing was measured; cuDNN stands before the last. */
static const tess_cuda_engine *const own[] = {
    &tess_cuda_samples,  &tess_cuda_vector, &tess_cuda_filter, &tess_cuda_fft,    &tess_cuda_filter_whole,
    &tess_cuda_side_sum, &tess_cuda_volume, &tess_cuda_rays,   &tess_cuda_hopper, &tess_cuda_generic};
enum { OWN_COUNT = sizeof own / sizeof own[0] };

/* What is left out of the op's class but makes engines differ: types of the ends, what is fused, the size. */
void tess_cuda_class(const tess_op *op, char text[TESS_CUDA_CLASS])
{
    char plain[64];
    tess_op_class(op, plain, sizeof plain);
    int64_t pixels = op->out[0].n * op->out[0].d * op->out[0].h * op->out[0].w;
    int size = 0;
    while (pixels > 1) {
        pixels >>= 1;
        size++;
    }
    snprintf(text, TESS_CUDA_CLASS, "%s %s>%s%s%s+%d 2^%d", plain, tess_dtype_name(op->in[0].dtype),
             tess_dtype_name(op->out[0].dtype), op->bias ? " bias" : "", tess_op_relu(op) ? " relu" : "",
             tess_op_residuals(op), size);
}

const tess_cuda_engine *tess_cuda_own_engine(const tess_cuda_engines *engines, const tess_op *op,
                                             const char *name)
{
    for (int i = 0; i < OWN_COUNT; i++)
        if (own[i] && (!name || strcmp(own[i]->name, name) == 0) && !own[i]->refuses(op, engines->capability))
            return own[i];
    return NULL;
}

tess_cuda_known *tess_cuda_find(tess_cuda_engines *engines, const char *op_class)
{
    for (int64_t i = 0; i < engines->count; i++)
        if (strcmp(engines->known[i].op_class, op_class) == 0)
            return &engines->known[i];
    return NULL;
}

bool tess_cuda_remember(tess_cuda_engines *engines, const tess_cuda_known *known)
{
    tess_cuda_known *place = tess_cuda_find(engines, known->op_class);
    if (!place && engines->count == engines->capacity) {
        int64_t capacity = engines->capacity ? 2 * engines->capacity : 64;
        tess_cuda_known *more = tess_small_realloc(engines->known, (size_t)capacity, sizeof *more);
        if (!more)
            return false;
        engines->known = more;
        engines->capacity = capacity;
    }
    if (!place)
        place = &engines->known[engines->count++];
    *place = *known;
    return true;
}

void tess_cuda_save(const tess_cuda_engines *engines)
{
    tess_json *record = tess_json_object(), *classes = tess_json_object();
    tess_json_set_string(&record, "card", engines->card);
    tess_json_set_string(&record, "cudnn", engines->measured_with);
    tess_json_set_string(&record, "version", TESSERA_VERSION);
    for (int64_t i = 0; i < engines->count; i++) {
        const tess_cuda_known *known = &engines->known[i];
        if (known->seconds < 0)
            continue;
        tess_json *entry = tess_json_object();
        tess_json_set_string(&entry, "engine", known->engine);
        tess_json_set_int(&entry, "setting", known->setting);
        tess_json_set_int(&entry, "workspace", (int64_t)known->workspace);
        tess_json_set_double(&entry, "seconds", known->seconds);
        tess_json_set(&classes, known->op_class, entry);
    }
    tess_json_set(&record, "classes", classes);
    (void)tess_cache_write(engines->path, record, NULL);
    tess_json_free(record);
}

static void load(tess_cuda_engines *engines)
{
    tess_json *record = tess_cache_read(engines->path);
    const tess_json *classes = tess_json_get(record, "classes");
    snprintf(engines->measured_with, sizeof engines->measured_with, "%s",
             tess_json_get_string(record, "cudnn", ""));
    for (const char *key = NULL; (key = tess_json_next_key(classes, key));) {
        const tess_json *entry = tess_json_get(classes, key);
        tess_cuda_known known = {.setting = tess_json_get_int(entry, "setting", -1),
                                 .seconds = tess_json_get_double(entry, "seconds", -1)};
        if (tess_json_get_int(entry, "workspace", 0) > 0)
            known.workspace = TESS_CUDA_WORKSPACE;
        const char *engine = tess_json_get_string(entry, "engine", "");
        if (known.seconds < 0 || strlen(key) >= sizeof known.op_class ||
            strlen(engine) >= sizeof known.engine)
            continue;
        memcpy(known.op_class, key, strlen(key) + 1);
        memcpy(known.engine, engine, strlen(engine) + 1);
        (void)tess_cuda_remember(engines, &known);
    }
    tess_json_free(record);
}

tess_status tess_cuda_engines_create(const char *card, int capability, tess_cuda_engines **out,
                                     tess_error *error)
{
    tess_cuda_engines *engines = *out = tess_small_alloc(1, sizeof *engines);
    if (!engines)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the engines of the card");
    pthread_mutex_init(&engines->lock, NULL);
    engines->capability = capability;
    snprintf(engines->card, sizeof engines->card, "%s", card);
    const char *forced = getenv("TESSERA_CUDA_ENGINE"); /* for tests: one family of engines */
    snprintf(engines->forced, sizeof engines->forced, "%s", forced ? forced : "");
    char key[160];
    snprintf(key, sizeof key, "%s-engines", card);
    tess_cache_path(key, engines->path);
    if (!engines->forced[0])
        load(engines);
    for (int i = 0; i < OWN_COUNT; i++)
        if (own[i] && own[i]->load)
            TESS_TRY(tess_cuda_check(own[i]->load(capability), own[i]->name, error));
    return TESS_OK;
}

void tess_cuda_engines_destroy(tess_cuda_engines *engines)
{
    if (!engines)
        return;
    tess_cuda_plans_clear(engines);
    tess_cudnn_close(engines->cudnn);
    pthread_mutex_destroy(&engines->lock);
    tess_small_free(engines->known);
    tess_small_free(engines);
}

/* Does cuDNN stand before this engine of our own, where nothing was measured? */
static bool cudnn_first(const tess_cuda_engines *engines, const tess_cuda_engine *engine)
{
    if (engines->forced[0])
        return strcmp(engines->forced, "cudnn") == 0 && engine != &tess_cuda_samples;
    return !engine || engine == &tess_cuda_generic;
}

/* Nothing was measured: the first engine that does not refuse. A cuDNN plan is made to learn its workspace. */
static void guess(tess_cuda_engines *engines, const tess_op *op, tess_cuda_known *known)
{
    const bool forced = engines->forced[0] != '\0';
    const tess_cuda_engine *engine = tess_cuda_own_engine(engines, op, forced ? engines->forced : NULL);
    if (!engine && forced)
        engine = tess_cuda_own_engine(engines, op, "generic");
    if (!engine)
        engine = tess_cuda_own_engine(engines, op, NULL);
    known->seconds = -1;
    known->setting = -1;
    if (cudnn_first(engines, engine) && tess_cuda_cudnn(engines, op)) {
        tess_cuda_plan *plan = NULL;
        if (tess_cuda_plan_take(engines, op, -1, TESS_CUDA_WORKSPACE, &plan, NULL) == TESS_OK) {
            snprintf(known->engine, sizeof known->engine, "cudnn");
            known->setting = tess_cudnn_plan_engine(plan->plan);
            known->workspace = tess_cudnn_plan_workspace(plan->plan) ? TESS_CUDA_WORKSPACE : 0;
            plan->users--;
            return;
        }
    }
    snprintf(known->engine, sizeof known->engine, "%s", engine ? engine->name : "");
}

static void known_of(tess_cuda_engines *engines, const tess_op *op, tess_cuda_known *known)
{
    *known = (tess_cuda_known){.seconds = -1};
    if (tess_cuda_no_choice(op))
        return;
    tess_cuda_class(op, known->op_class);
    const tess_cuda_known *stored = tess_cuda_find(engines, known->op_class);
    if (stored) {
        *known = *stored;
        return;
    }
    guess(engines, op, known);
    (void)tess_cuda_remember(engines, known);
}

/* Why not: by the engine that is meant for the kind, else by the one for everything. */
static tess_status refused(const tess_cuda_engines *engines, const tess_op *op, tess_error *error)
{
    const tess_cuda_engine *meant = &tess_cuda_generic;
    if (op->kind == TESS_OP_IMPORT || op->kind == TESS_OP_EXPORT)
        meant = &tess_cuda_samples;
    else if (op->kind == TESS_OP_FFT)
        meant = &tess_cuda_fft;
    else if (op->kind == TESS_OP_FILTER)
        meant = &tess_cuda_filter_whole;
    else if (op->kind == TESS_OP_COMBINE || op->kind == TESS_OP_DOT || op->kind == TESS_OP_SPECTRUM)
        meant = &tess_cuda_vector;
    else if (op->kind == TESS_OP_PROJECT || op->kind == TESS_OP_BACKPROJECT ||
             op->kind == TESS_OP_RAY_COSINE || op->kind == TESS_OP_RAY_SPREAD)
        meant = &tess_cuda_rays;
    else if (op->kind == TESS_OP_SIDE_SUM)
        meant = &tess_cuda_side_sum;
    else if (tess_cuda_is_volume(op))
        meant = &tess_cuda_volume;
    const char *why = meant->refuses(op, engines->capability);
    char text[64];
    tess_op_class(op, text, sizeof text);
    return tess_fail(error, TESS_UNSUPPORTED, "the NVIDIA device cannot do %s: %s", text,
                     why ? why : "no engine");
}

/* The engine of our own that does the op where cuDNN does not; NULL: none does. */
static const tess_cuda_engine *own_choice(const tess_cuda_engines *engines, const tess_op *op,
                                          const tess_cuda_known *known)
{
    const bool transform = op->kind == TESS_OP_FFT || op->kind == TESS_OP_FILTER;
    const char *name = engines->forced[0] && transform ? engines->forced : known->engine;
    const tess_cuda_engine *engine = tess_cuda_own_engine(engines, op, name);
    if (!engine && engines->forced[0])
        engine = tess_cuda_own_engine(engines, op, "generic");
    return engine ? engine : tess_cuda_own_engine(engines, op, NULL);
}

static tess_status prepare(const tess_op *op, tess_cuda_choice *choice, tess_error *error)
{
    return choice->engine->prepare ? choice->engine->prepare(op, &choice->handle, error) : TESS_OK;
}

tess_status tess_cuda_engines_workspace(tess_cuda_engines *engines, const tess_op *op, size_t *bytes,
                                        tess_error *error)
{
    tess_cuda_known known;
    pthread_mutex_lock(&engines->lock);
    known_of(engines, op, &known);
    /* Opened before anything is promised: another cuDNN than the one measured with makes the choice anew. */
    if (strcmp(known.engine, "cudnn") == 0 && !engines->cudnn_tried) {
        (void)tess_cuda_cudnn(engines, op);
        known_of(engines, op, &known);
    }
    pthread_mutex_unlock(&engines->lock);
    *bytes = known.workspace;
    tess_cuda_choice choice = {own_choice(engines, op, &known), NULL, NULL};
    if (!choice.engine)
        return strcmp(known.engine, "cudnn") == 0 ? TESS_OK : refused(engines, op, error);
    const size_t own_bytes = choice.engine->workspace ? choice.engine->workspace(op) : 0;
    if (own_bytes == SIZE_MAX) {
        TESS_TRY(prepare(op, &choice, error));
        tess_cuda_engines_let_go(engines, &choice);
        return tess_fail(error, TESS_INTERNAL, "%s cannot tell its workspace", choice.engine->name);
    }
    *bytes = own_bytes > *bytes ? own_bytes : *bytes;
    return TESS_OK;
}

tess_status tess_cuda_engines_choose(tess_cuda_engines *engines, const tess_op *op, tess_cuda_choice *choice,
                                     tess_error *error)
{
    *choice = (tess_cuda_choice){NULL, NULL, NULL};
    tess_cuda_known known;
    pthread_mutex_lock(&engines->lock);
    known_of(engines, op, &known);
    if (strcmp(known.engine, "cudnn") == 0 && tess_cuda_cudnn(engines, op)) {
        /* A setting that does not take this very shape gives way to the first that does, within the
         * workspace that was promised. */
        tess_status status =
            tess_cuda_plan_take(engines, op, known.setting, known.workspace, &choice->plan, error);
        if (status == TESS_UNSUPPORTED)
            status = tess_cuda_plan_take(engines, op, -1, known.workspace, &choice->plan, error);
        if (status != TESS_OK && status != TESS_UNSUPPORTED) {
            pthread_mutex_unlock(&engines->lock);
            return status;
        }
    }
    pthread_mutex_unlock(&engines->lock);
    if (choice->plan)
        return TESS_OK;
    choice->engine = own_choice(engines, op, &known);
    return choice->engine ? prepare(op, choice, error) : refused(engines, op, error);
}

void tess_cuda_choice_describe(const tess_cuda_choice *choice, char *text, size_t size)
{
    if (choice->engine)
        snprintf(text, size, "%s", choice->engine->name);
    else
        tess_cudnn_plan_describe(choice->plan->plan, text, size);
}
