#include "cuda/core/measured.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/core/device_impl.h"

/* A layer's kernel must not depend on the batch: kernels differ in the order of their sums, and the result of an image
 * must not change with its neighbours. A gradient sums over the batch. */
void tess_cuda_class(const tess_op *op, char text[TESS_CUDA_CLASS])
{
    char plain[64];
    tess_op_class(op, plain, sizeof plain);
    const bool grad = op->kind == TESS_OP_CONV_GRAD;
    const tess_tensor *grid = grad ? &op->in[1] : &op->out[0];
    int64_t pixels = (grad ? grid->n : 1) * grid->d * grid->h * grid->w;
    int size = 0;
    while (pixels > 1) {
        pixels >>= 1;
        size++;
    }
    snprintf(text, TESS_CUDA_CLASS, "%s %s>%s%s%s%s+%d 2^%d%s", plain, tess_dtype_name(op->in[0].dtype),
             tess_dtype_name(grid->dtype), op->bias ? " bias" : "", tess_op_relu(op) ? " relu" : "",
             op->masked ? " mask" : "", tess_op_residuals(op), size, grad ? "" : " an image");
}

tess_cuda_known *tess_cuda_find(tess_cuda_measured *measured, const char *op_class)
{
    for (int64_t i = 0; i < measured->count; i++)
        if (strcmp(measured->known[i].op_class, op_class) == 0)
            return &measured->known[i];
    return NULL;
}

bool tess_cuda_remember(tess_cuda_measured *measured, const tess_cuda_known *known)
{
    tess_cuda_known *place = tess_cuda_find(measured, known->op_class);
    if (!place && measured->count == measured->capacity) {
        int64_t capacity = measured->capacity ? 2 * measured->capacity : 64;
        tess_cuda_known *more = tess_small_realloc(measured->known, (size_t)capacity, sizeof *more);
        if (!more)
            return false;
        measured->known = more;
        measured->capacity = capacity;
    }
    if (!place)
        place = &measured->known[measured->count++];
    *place = *known;
    return true;
}

void tess_cuda_save(const tess_cuda_measured *measured)
{
    tess_json *record = tess_json_object(), *classes = tess_json_object();
    tess_json_set_string(&record, "card", measured->card);
    tess_json_set_string(&record, "cudnn", measured->measured_with);
    tess_json_set_string(&record, "version", TESSERA_VERSION);
    for (int64_t i = 0; i < measured->count; i++) {
        const tess_cuda_known *known = &measured->known[i];
        if (known->seconds < 0)
            continue;
        tess_json *entry = tess_json_object();
        tess_json_set_string(&entry, "engine", known->kernel);
        tess_json_set_int(&entry, "setting", known->setting);
        tess_json_set_int(&entry, "workspace", (int64_t)known->workspace);
        tess_json_set_double(&entry, "seconds", known->seconds);
        tess_json_set(&classes, known->op_class, entry);
    }
    tess_json_set(&record, "classes", classes);
    (void)tess_cache_write(measured->path, record, NULL);
    tess_json_free(record);
}

static void load(tess_cuda_measured *measured)
{
    tess_json *record = tess_cache_read(measured->path);
    const tess_json *classes = tess_json_get(record, "classes");
    snprintf(measured->measured_with, sizeof measured->measured_with, "%s",
             tess_json_get_string(record, "cudnn", ""));
    for (const char *key = NULL; (key = tess_json_next_key(classes, key));) {
        const tess_json *entry = tess_json_get(classes, key);
        tess_cuda_known known = {.setting = tess_json_get_int(entry, "setting", -1),
                                 .seconds = tess_json_get_double(entry, "seconds", -1)};
        if (tess_json_get_int(entry, "workspace", 0) > 0)
            known.workspace = TESS_CUDA_WORKSPACE;
        const char *kernel = tess_json_get_string(entry, "engine", "");
        if (known.seconds < 0 || strlen(key) >= sizeof known.op_class ||
            strlen(kernel) >= sizeof known.kernel)
            continue;
        memcpy(known.op_class, key, strlen(key) + 1);
        memcpy(known.kernel, kernel, strlen(kernel) + 1);
        (void)tess_cuda_remember(measured, &known);
    }
    tess_json_free(record);
}

tess_status tess_cuda_measured_create(const char *card, tess_cuda_measured **out, tess_error *error)
{
    tess_cuda_measured *measured = *out = tess_small_alloc(1, sizeof *measured);
    if (!measured)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for what was measured on the card");
    pthread_mutex_init(&measured->lock, NULL);
    snprintf(measured->card, sizeof measured->card, "%s", card);
    /* For tests: use this row for the ops that it accepts. */
    const char *forced = getenv("TESSERA_CUDA_ENGINE");
    snprintf(measured->forced, sizeof measured->forced, "%s", forced ? forced : "");
    char key[160];
    snprintf(key, sizeof key, "%s-engines", card);
    tess_cache_path(key, measured->path);
    if (!measured->forced[0])
        load(measured);
    return TESS_OK;
}

void tess_cuda_measured_destroy(tess_cuda_measured *measured)
{
    if (!measured)
        return;
    tess_cuda_plans_clear(measured);
    tess_cudnn_close(measured->cudnn);
    pthread_mutex_destroy(&measured->lock);
    tess_small_free(measured->known);
    tess_small_free(measured);
}

/* The row of ours for a layer: the one of the forced name, else Hopper's, else the generic one; never cuDNN's. */
static const tess_kernel *own_row(const tess_device *device, const tess_op *op, const char *forced)
{
    const tess_kernel *row = forced[0] ? tess_kernel_named(device, op, forced) : NULL;
    if (!row && !forced[0])
        row = tess_kernel_named(device, op, "hopper");
    if (!row)
        row = tess_kernel_named(device, op, "generic");
    return row || !forced[0] ? row : tess_kernel_named(device, op, "hopper");
}

/* The op that stands for its class when cuDNN is asked: a layer of one image, since cuDNN's answer depends on the batch. */
static tess_op asked_op(const tess_op *op)
{
    tess_op one = *op;
    for (int i = 0; i < op->inputs && op->kind != TESS_OP_CONV_GRAD; i++)
        one.in[i].n = 1;
    for (int i = 0; i < op->outputs && op->kind != TESS_OP_CONV_GRAD; i++)
        one.out[i].n = 1;
    return one;
}

/* Default without a measurement: Hopper's kernels, then cuDNN, then the generic ones. Makes a cuDNN plan to
 * find its workspace. */
static void guess(tess_device *device, const tess_op *op, tess_cuda_known *known)
{
    tess_cuda_measured *measured = tess_cuda_of(device)->measured;
    const bool forced_cudnn = strcmp(measured->forced, "cudnn") == 0;
    const tess_kernel *own = own_row(device, op, forced_cudnn ? "" : measured->forced);
    const bool cudnn_first = measured->forced[0] ? forced_cudnn : !own || strcmp(own->name, "generic") == 0;
    known->seconds = -1;
    known->setting = -1;
    if (cudnn_first && tess_cuda_cudnn(measured, op)) {
        const tess_op asked = asked_op(op);
        tess_cuda_plan *plan = NULL;
        if (tess_cuda_plan_take(measured, &asked, -1, TESS_CUDA_WORKSPACE, &plan, NULL) == TESS_OK) {
            snprintf(known->kernel, sizeof known->kernel, "cudnn");
            known->setting = tess_cudnn_plan_engine(plan->plan);
            known->workspace = tess_cudnn_plan_workspace(plan->plan) ? TESS_CUDA_WORKSPACE : 0;
            plan->users--;
            return;
        }
    }
    snprintf(known->kernel, sizeof known->kernel, "%s", own ? own->name : "");
}

static void look_up(tess_device *device, const tess_op *op, tess_cuda_known *known)
{
    tess_cuda_measured *measured = tess_cuda_of(device)->measured;
    *known = (tess_cuda_known){.seconds = -1};
    tess_cuda_class(op, known->op_class);
    const tess_cuda_known *stored = tess_cuda_find(measured, known->op_class);
    if (stored) {
        *known = *stored;
        return;
    }
    guess(device, op, known);
    (void)tess_cuda_remember(measured, known);
}

tess_cuda_known tess_cuda_known_of(tess_device *device, const tess_op *op)
{
    tess_cuda_measured *measured = tess_cuda_of(device)->measured;
    tess_cuda_known known;
    tess_cuda_enter(device); /* cuDNN may be opened here */
    pthread_mutex_lock(&measured->lock);
    look_up(device, op, &known);
    /* cuDNN is opened before its row is returned: if its version differs from the measured one, the choice is
     * made again. */
    if (strcmp(known.kernel, "cudnn") == 0 && !measured->cudnn_tried) {
        (void)tess_cuda_cudnn(measured, op);
        look_up(device, op, &known);
    }
    pthread_mutex_unlock(&measured->lock);
    return known;
}

const tess_kernel *tess_cuda_prefers(tess_device *device, const tess_op *op)
{
    const char *forced = tess_cuda_of(device)->measured->forced;
    if (op->kind == TESS_OP_FFT || op->kind == TESS_OP_FILTER || op->kind == TESS_OP_ATTENTION ||
        op->kind == TESS_OP_GROUP_NORM)
        return forced[0] ? tess_kernel_named(device, op, forced) : NULL;
    if (!tess_cuda_has_choice(op))
        return NULL;
    const tess_cuda_known known = tess_cuda_known_of(device, op);
    return tess_kernel_named(device, op, known.kernel);
}
