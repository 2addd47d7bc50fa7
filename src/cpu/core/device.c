/* The host as a device: its memory is that of the process, and its only stream is the calling thread. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cpu/core/cpu.h"
#include "cpu/core/host.h"
#include "op/row.h"

static const tess_cpu *cpu_of(const tess_device *device)
{
    return (const tess_cpu *)device;
}

static size_t cpu_granted(tess_device *device, size_t bytes)
{
    (void)device;
    return tess_block_granted(bytes);
}

static tess_status cpu_alloc(tess_device *device, tess_block *block, tess_mem_category category, size_t bytes,
                             tess_error *error)
{
    const bool computes =
        category == TESS_MEM_WEIGHTS || category == TESS_MEM_ACTIVATIONS || category == TESS_MEM_WORKSPACE;
    return tess_block_alloc_shared(device->counter, computes ? device->help : NULL, block,
                                   cpu_of(device)->as_host ? TESS_MEM_HOST : category, bytes, device->stop,
                                   error);
}

static tess_status cpu_host_alloc(tess_device *device, tess_block *block, size_t bytes, tess_error *error)
{
    return cpu_alloc(device, block, TESS_MEM_HOST, bytes, error);
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

/* Work is done when run returns, so there is nothing to order: an event only stores the time when it was
 * recorded. */
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
                                 .bf16_columns = cpu->bf16 ? cpu->bf16->pixels : 1,
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

static const tess_device_memory cpu_memory = {.granted = cpu_granted,
                                              .alloc = cpu_alloc,
                                              .free = cpu_free,
                                              .host_alloc = cpu_host_alloc,
                                              .host_free = cpu_free,
                                              .copy = cpu_copy};

static const tess_device_streams cpu_streams = {.sync = cpu_sync,
                                                .create = cpu_stream_create,
                                                .destroy = cpu_stream_destroy,
                                                .event_create = cpu_event_create,
                                                .event_destroy = cpu_event_destroy,
                                                .record = cpu_record,
                                                .wait = cpu_wait,
                                                .event_sync = cpu_event_sync,
                                                .elapsed = cpu_elapsed};

/* Kernels rely on zeros between packed values, as in a new block; here the memory was used for something else. */
static void clear_packed(tess_device *device, const tess_op *op, void *packed)
{
    tess_op_needs needs = {0};
    if (tess_kernel_query(device, op, &needs, NULL) == TESS_OK)
        memset(packed, 0, needs.weights);
}

static void cpu_repack(tess_device *device, const tess_repack *list, int count, tess_stream *stream)
{
    (void)stream;
    for (int i = 0; i < count; i++) {
        const tess_repack *r = &list[i];
        tess_op_param params[TESS_OP_PARAMS];
        if (r->param == 0)
            clear_packed(device, r->op, r->packed);
        if (r->param < tess_op_params(r->op, params))
            tess_kernel_pack(device, r->op, r->param, 0, params[r->param].rows, r->values, r->packed);
    }
}

static const tess_device_ops cpu_ops = {.query = tess_kernel_query,
                                        .prepare = tess_kernel_prepare,
                                        .pack = tess_kernel_pack,
                                        .repack = cpu_repack,
                                        .run = tess_kernel_run,
                                        .release = tess_kernel_release,
                                        .kernels = tess_cpu_kernels};

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
    tess_pool_trace(cpu->pool, options->memory->trace);
    cpu->f32 = f32;
    cpu->bf16 = tess_cpu_bf16_kernels();
    cpu->as_host = options->as_host;
    char model[48];
    tess_host_cpu_name(model, sizeof model);
    snprintf(cpu->name, sizeof cpu->name, "%s, %s%s%s", model, f32 ? f32->isa : "reference",
             cpu->bf16 ? "+" : "", cpu->bf16 ? cpu->bf16->name : "");
    cpu->device = (tess_device){.kind = "cpu",
                                .host_memory = true,
                                .destroy = cpu_destroy,
                                .facts = cpu_facts,
                                .memory = &cpu_memory,
                                .streams = &cpu_streams,
                                .ops = &cpu_ops};
    *out = &cpu->device;
    return TESS_OK;
}

extern const tess_driver tess_cpu_driver;
const tess_driver tess_cpu_driver = {"cpu", cpu_open};
