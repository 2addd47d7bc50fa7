/* The host as a device: its memory is the process's own, and its one stream is the caller's thread. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cpu/core/cpu.h"
#include "cpu/core/host.h"

struct tess_prepared {
    tess_op op;
    const tess_cpu_family *family;
    tess_cpu_fft *fft, *fft_back; /* plans of an FFT, or of a filter's two; NULL for all other ops */
};

static const tess_cpu *cpu_of(const tess_device *device)
{
    return (const tess_cpu *)device;
}

static tess_status cpu_query(tess_device *device, const tess_op *op, tess_op_needs *needs, tess_error *error)
{
    const tess_cpu *cpu = cpu_of(device);
    *needs = (tess_op_needs){.block = 1};
    TESS_TRY(tess_cpu_check(cpu, op, error));
    tess_cpu_family_of(cpu, op)->needs(cpu, op, needs);
    return TESS_OK;
}

static tess_status prepare_transforms(const tess_cpu *cpu, tess_prepared *prepared, tess_error *error)
{
    const tess_op *op = &prepared->op;
    if (op->kind == TESS_OP_FFT)
        return tess_cpu_fft_prepare(cpu, op, &prepared->fft, error);
    if (op->kind != TESS_OP_FILTER)
        return TESS_OK;
    const tess_op to = tess_cpu_filter_transform(op, false), back = tess_cpu_filter_transform(op, true);
    TESS_TRY(tess_cpu_fft_prepare(cpu, &to, &prepared->fft, error));
    return tess_cpu_fft_prepare(cpu, &back, &prepared->fft_back, error);
}

static tess_status cpu_prepare(tess_device *device, const tess_op *op, tess_prepared **out, tess_error *error)
{
    *out = NULL;
    TESS_TRY(tess_cpu_check(cpu_of(device), op, error));
    tess_prepared *prepared = tess_small_alloc(1, sizeof *prepared);
    if (!prepared)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to prepare a layer");
    *prepared = (tess_prepared){*op, tess_cpu_family_of(cpu_of(device), op), NULL, NULL};
    tess_status status = prepare_transforms(cpu_of(device), prepared, error);
    if (status != TESS_OK) {
        tess_cpu_fft_release(prepared->fft);
        tess_small_free(prepared);
        return status;
    }
    *out = prepared;
    return TESS_OK;
}

static void cpu_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                     const float *values, void *packed)
{
    tess_cpu_family_of(cpu_of(device), op)->pack(cpu_of(device), op, param, first, count, values, packed);
}

static void cpu_run(tess_device *device, const tess_prepared *prepared, const tess_op_buffers *buffers,
                    tess_stream *stream)
{
    (void)stream;
    if (prepared->fft_back)
        tess_cpu_filter_run(cpu_of(device), &prepared->op, prepared->fft, prepared->fft_back, buffers);
    else if (prepared->fft)
        tess_cpu_fft_run(cpu_of(device), &prepared->op, prepared->fft, buffers);
    else
        prepared->family->run(cpu_of(device), &prepared->op, buffers);
}

static void cpu_release(tess_device *device, tess_prepared *prepared)
{
    (void)device;
    if (!prepared)
        return;
    tess_cpu_fft_release(prepared->fft);
    tess_cpu_fft_release(prepared->fft_back);
    tess_small_free(prepared);
}

static size_t cpu_granted(tess_device *device, size_t bytes)
{
    (void)device;
    return tess_block_granted(bytes);
}

static tess_status cpu_alloc(tess_device *device, tess_block *block, tess_mem_category category, size_t bytes,
                             tess_error *error)
{
    return tess_block_alloc_watched(block, category, bytes, device->stop, error);
}

static void cpu_free(tess_device *device, tess_block *block)
{
    (void)device;
    tess_block_free(block);
}

static void cpu_copy(tess_device *device, void *to, const void *from, size_t bytes, tess_stream *stream)
{
    (void)device;
    (void)stream;
    memcpy(to, from, bytes);
}

/* Work is done when run returns, so there is nothing to order: an event only remembers when it was recorded. */
struct tess_event {
    double seconds;
};

static tess_status cpu_event_create(tess_device *device, tess_event **out, tess_error *error)
{
    (void)device;
    *out = tess_small_alloc(1, sizeof **out);
    return *out ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for an event");
}

static void cpu_event_destroy(tess_device *device, tess_event *event)
{
    (void)device;
    tess_small_free(event);
}

static void cpu_record(tess_device *device, tess_event *event, tess_stream *stream)
{
    (void)device;
    (void)stream;
    event->seconds = tess_clock();
}

static double cpu_elapsed(tess_device *device, tess_event *from, tess_event *to)
{
    (void)device;
    return to->seconds - from->seconds;
}

static tess_status cpu_event_sync(tess_device *device, tess_event *event, tess_error *error)
{
    (void)device;
    (void)event;
    (void)error;
    return TESS_OK;
}

static tess_status cpu_stream_create(tess_device *device, tess_stream **out, tess_error *error)
{
    (void)device;
    (void)error;
    *out = NULL;
    return TESS_OK;
}

static void cpu_stream_destroy(tess_device *device, tess_stream *stream)
{
    (void)device;
    (void)stream;
}

static void cpu_wait(tess_device *device, tess_event *event, tess_stream *stream)
{
    (void)device;
    (void)event;
    (void)stream;
}

static tess_status cpu_sync(tess_device *device, tess_stream *stream, tess_error *error)
{
    (void)stream;
    return tess_stop_check(device->stop, error);
}

static void cpu_facts(tess_device *device, tess_device_facts *facts)
{
    const tess_cpu *cpu = cpu_of(device);
    const int threads = tess_pool_threads(cpu->pool);
    *facts = (tess_device_facts){.memory_total = tess_host_memory("MemTotal:"),
                                 .memory_free = tess_host_memory_free(),
                                 .threads = threads,
                                 .bf16 = cpu->bf16 != NULL,
                                 .flops = threads * (cpu->f32 ? 120e9 : 1e9),
                                 .bytes = 10e9};
    snprintf(facts->name, sizeof facts->name, "%s", cpu->name);
}

static void cpu_destroy(tess_device *device)
{
    tess_cpu *cpu = (tess_cpu *)device;
    tess_pool_destroy(cpu->pool);
    tess_small_free(cpu);
}

static tess_status cpu_open(const tess_device_options *options, tess_device **out, tess_error *error)
{
    bool reference = options->isa && strcmp(options->isa, "reference") == 0;
    const tess_f32_kernels *f32 = reference ? NULL : tess_cpu_f32_kernels(options->isa);
    if (!reference && !f32)
        return tess_fail(error, TESS_UNSUPPORTED, "this CPU does not run %s kernels", options->isa);
    tess_cpu *cpu = tess_small_alloc(1, sizeof *cpu);
    if (!cpu)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the CPU device");
    tess_status status = tess_pool_create(options->threads, &cpu->pool, error);
    if (status != TESS_OK) {
        tess_small_free(cpu);
        return status;
    }
    tess_pool_watch(cpu->pool, options->stop);
    cpu->f32 = f32;
    cpu->bf16 = tess_cpu_bf16_kernels();
    char model[48];
    tess_host_cpu_name(model, sizeof model);
    snprintf(cpu->name, sizeof cpu->name, "%s, %s%s%s", model, f32 ? f32->isa : "reference",
             cpu->bf16 ? "+" : "", cpu->bf16 ? cpu->bf16->name : "");
    cpu->device = (tess_device){.kind = "cpu",
                                .host_memory = true,
                                .destroy = cpu_destroy,
                                .facts = cpu_facts,
                                .granted = cpu_granted,
                                .alloc = cpu_alloc,
                                .free = cpu_free,
                                .host_alloc = cpu_alloc,
                                .host_free = cpu_free,
                                .copy = cpu_copy,
                                .sync = cpu_sync,
                                .stream_create = cpu_stream_create,
                                .stream_destroy = cpu_stream_destroy,
                                .event_create = cpu_event_create,
                                .event_destroy = cpu_event_destroy,
                                .record = cpu_record,
                                .wait = cpu_wait,
                                .event_sync = cpu_event_sync,
                                .elapsed = cpu_elapsed,
                                .query = cpu_query,
                                .prepare = cpu_prepare,
                                .pack = cpu_pack,
                                .run = cpu_run,
                                .release = cpu_release};
    *out = &cpu->device;
    return TESS_OK;
}

extern const tess_driver tess_cpu_driver;
const tess_driver tess_cpu_driver = {"cpu", cpu_open};
