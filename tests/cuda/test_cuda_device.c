/* The card as a device: counted bytes equal the driver's; copies, events, graphs that repeat a run, and lack of
 * memory. */
#include "counter.h"
#include "gpu.h"

#include "base/mem.h"
#include "base/rng.h"

static tess_device *device;
static const size_t MIB = (size_t)1 << 20;

static uint64_t left_free(void)
{
    tess_device_facts facts;
    device->facts(device, &facts);
    return facts.memory_free;
}

static void test_facts(void)
{
    tess_device_facts facts;
    device->facts(device, &facts);
    printf("%s: %.1f of %.1f GiB free, context %.0f MiB\n", facts.name, (double)facts.memory_free / 0x1p30,
           (double)facts.memory_total / 0x1p30, (double)facts.driver_bytes / 0x1p20);
    CHECK(facts.memory_free > 0 && facts.memory_free < facts.memory_total);
    CHECK(facts.driver_bytes > 0 && facts.driver_bytes < facts.memory_total);
    CHECK(facts.fp16 && facts.bf16 && facts.flops > 0 && facts.bytes > 0 && facts.threads > 0);
    CHECK(!device->host_memory && strcmp(device->kind, "cuda") == 0);
}

/* Counted, granted and missing from the card: one figure. */
static void test_memory(void)
{
    const size_t sizes[] = {1, 2 * MIB, 3 * MIB + 5, 100 * MIB, 1000 * MIB + 1};
    tess_error error = {{0}};
    tess_block empty;
    CHECK(device->memory->granted(device, 0) == 0);
    CHECK(device->memory->alloc(device, &empty, TESS_MEM_IO, 0, &error) == TESS_OK && !empty.data &&
          !empty.bytes);
    device->memory->free(device, &empty);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tess_mem_usage peak;
        const uint64_t before = left_free();
        tess_memory_reset_peak(&test_counter);
        tess_block block;
        CHECK_MSG(device->memory->alloc(device, &block, TESS_MEM_ACTIVATIONS, sizes[i], &error) == TESS_OK,
                  "%s", error.text);
        uint64_t taken = before - left_free();
        tess_memory_peak(&test_counter, TESS_MEM_OF_DEVICE, &peak);
        CHECK(block.bytes == device->memory->granted(device, sizes[i]) && block.bytes >= sizes[i]);
        CHECK_MSG(peak.bytes.by[TESS_MEM_ACTIVATIONS] == block.bytes && peak.total == block.bytes,
                  "%zu counted as %llu", block.bytes, (unsigned long long)peak.total);
        CHECK_MSG(taken <= block.bytes + 2 * MIB && taken + 2 * MIB >= block.bytes, "%zu granted, %llu taken",
                  block.bytes, (unsigned long long)taken);
        device->memory->free(device, &block);
        CHECK(!block.data && left_free() + 2 * MIB >= before);
    }
    tess_block block;
    error.text[0] = 0;
    CHECK(device->memory->alloc(device, &block, TESS_MEM_WEIGHTS, (size_t)1 << 44, &error) == TESS_NO_MEMORY);
    CHECK_MSG(strstr(error.text, "free") && strstr(error.text, "`memory_limit`") && !block.data, "%s",
              error.text);
    CHECK(device->streams->sync(device, NULL, &error) == TESS_OK); /* the card has survived */
    tess_mem_fail_at(1);
    CHECK(device->memory->alloc(device, &block, TESS_MEM_WEIGHTS, 100, &error) == TESS_NO_MEMORY);
    tess_mem_fail_at(0);
}

static void test_copies(void)
{
    enum { COUNT = 1 << 20 };
    tess_error error = {{0}};
    tess_block pinned, other, on_card;
    tess_stream *stream = NULL;
    tess_event *from = NULL, *to = NULL;
    tess_memory_reset_peak(&test_counter);
    CHECK(device->memory->host_alloc(device, &pinned, COUNT * sizeof(float), &error) == TESS_OK);
    CHECK(device->memory->host_alloc(device, &other, COUNT * sizeof(float), &error) == TESS_OK);
    tess_mem_usage held;
    tess_memory_held(&test_counter, TESS_MEM_OF_DEVICE, &held);
    CHECK(held.total == 0); /* the host's, not the card's */
    CHECK(held.bytes.by[TESS_MEM_HOST] == pinned.bytes + other.bytes &&
          pinned.bytes >= COUNT * sizeof(float));
    CHECK(device->memory->alloc(device, &on_card, TESS_MEM_IO, COUNT * sizeof(float), &error) == TESS_OK);
    CHECK(device->streams->create(device, &stream, &error) == TESS_OK && stream);
    CHECK(device->streams->event_create(device, &from, &error) == TESS_OK && from);
    CHECK(device->streams->event_create(device, &to, &error) == TESS_OK && to);
    tess_rng_normal((tess_rng_key){1, 2, 3}, 0, COUNT, pinned.data);
    memset(other.data, 0, COUNT * sizeof(float));
    device->streams->wait(device, from, stream); /* never recorded: nothing to wait for */
    device->streams->record(device, from, stream);
    device->memory->copy(device, on_card.data, pinned.data, COUNT * sizeof(float), stream);
    device->streams->record(device, to, stream);
    device->streams->wait(device, to, NULL); /* the other stream takes up from here */
    device->memory->copy(device, other.data, on_card.data, COUNT * sizeof(float), NULL);
    CHECK(device->streams->event_sync(device, to, &error) == TESS_OK);
    CHECK(device->streams->sync(device, NULL, &error) == TESS_OK);
    CHECK(memcmp(pinned.data, other.data, COUNT * sizeof(float)) == 0);
    const double seconds = device->streams->elapsed(device, from, to);
    CHECK_MSG(seconds > 0 && seconds < 1, "%g s", seconds);
    device->streams->event_destroy(device, from);
    device->streams->event_destroy(device, to);
    device->streams->destroy(device, stream);
    device->memory->free(device, &on_card);
    device->memory->host_free(device, &pinned);
    device->memory->host_free(device, &other);
}

/* Three ops that follow one another, run as they are and from a graph: the same bits. */
static void test_graph(void)
{
    enum { H = 40, W = 56, C = 64, RUNS = 3 };
    tess_error error = {{0}};
    tess_op conv = {.kind = TESS_OP_CONV, .inputs = 1, .outputs = 1, .bias = true, .activation = TESS_RELU};
    conv.in[0] = conv.out[0] = tess_tensor_2d(TESS_F16, 1, H, W, C);
    for (int s = 0; s < TESS_SPATIAL; s++) {
        conv.kernel[s] = s ? 3 : 1;
        conv.stride[s] = 1;
        conv.pad_before[s] = conv.pad_after[s] = s ? 1 : 0;
    }
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    CHECK_MSG(device->ops->query(device, &conv, &needs, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(device->ops->prepare(device, &conv, &prepared, &error) == TESS_OK, "%s", error.text);
    const size_t bytes = (size_t)H * W * C * 2;
    tess_block a, b, weights, workspace;
    CHECK(device->memory->alloc(device, &a, TESS_MEM_ACTIVATIONS, bytes, &error) == TESS_OK);
    CHECK(device->memory->alloc(device, &b, TESS_MEM_ACTIVATIONS, bytes, &error) == TESS_OK);
    CHECK(device->memory->alloc(device, &weights, TESS_MEM_WEIGHTS, needs.weights, &error) == TESS_OK);
    CHECK(device->memory->alloc(device, &workspace, TESS_MEM_WORKSPACE, needs.workspace, &error) == TESS_OK);
    enum { KERNEL = C * C * 9 };
    float *kernel = malloc(KERNEL * sizeof *kernel), bias[C] = {0};
    tess_rng_normal((tess_rng_key){4, 5, 6}, 0, KERNEL, kernel);
    for (int i = 0; i < KERNEL; i++)
        kernel[i] *= 0.06f;
    device->ops->pack(device, &conv, TESS_PARAM_KERNEL, 0, C, kernel, weights.data);
    device->ops->pack(device, &conv, TESS_PARAM_BIAS, 0, C, bias, weights.data);
    uint16_t *start = malloc(bytes), *results[RUNS] = {malloc(bytes), malloc(bytes), malloc(bytes)};
    for (size_t i = 0; i < bytes / 2; i++)
        start[i] = tess_float_to_half((float)(i % 251) / 251);
    tess_op_buffers there = {.in = {a.data},
                             .out = {b.data},
                             .weights = weights.data,
                             .workspace = workspace.data},
                    back = there;
    back.in[0] = b.data;
    back.out[0] = a.data;
    tess_stream *stream = NULL;
    tess_graph *graph = NULL;
    CHECK(device->streams->create(device, &stream, &error) == TESS_OK);
    CHECK_MSG(device->graphs->begin(device, stream, &error) == TESS_OK, "%s", error.text);
    device->ops->run(device, prepared, &there, stream);
    device->ops->run(device, prepared, &back, stream);
    device->ops->run(device, prepared, &there, stream);
    CHECK_MSG(device->graphs->end(device, stream, &graph, &error) == TESS_OK, "%s", error.text);
    for (int i = 0; i < RUNS && graph; i++) {
        uint64_t calls = tess_mem_calls();
        device->memory->copy(device, a.data, start, bytes, stream);
        if (i > 0) {
            device->graphs->launch(device, graph, stream);
        } else {
            device->ops->run(device, prepared, &there, stream);
            device->ops->run(device, prepared, &back, stream);
            device->ops->run(device, prepared, &there, stream);
        }
        device->memory->copy(device, results[i], b.data, bytes, stream);
        CHECK_MSG(device->streams->sync(device, stream, &error) == TESS_OK, "%s", error.text);
        CHECK(tess_mem_calls() == calls);
        CHECK_MSG(memcmp(results[0], results[i], bytes) == 0, "run %d differs from the first", i);
    }
    device->graphs->release(device, graph);
    device->streams->destroy(device, stream);
    device->ops->release(device, prepared);
    device->memory->free(device, &a), device->memory->free(device, &b),
        device->memory->free(device, &weights);
    device->memory->free(device, &workspace);
    for (int i = 0; i < RUNS; i++)
        free(results[i]);
    free(start), free(kernel);
}

static void test_refusals(void)
{
    tess_error error = {{0}};
    tess_op op = {.kind = TESS_OP_ADD, .inputs = 2, .outputs = 1};
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    op.in[0] = op.in[1] = tess_tensor_2d(TESS_F64, 1, 4, 4, 4);
    op.out[0] = op.in[0];
    CHECK(device->ops->query(device, &op, &needs, &error) == TESS_UNSUPPORTED && strlen(error.text) > 0);
    CHECK(device->ops->prepare(device, &op, &prepared, &error) == TESS_UNSUPPORTED && !prepared);
    const tess_device_options none = {.memory = &test_counter, .index = 1000};
    tess_device *absent = NULL;
    CHECK(tess_registry_open("cuda", &none, &absent, &error) == TESS_BAD_OPTION && !absent);
}

int main(void)
{
    int status;
    device = gpu_open(&status);
    if (!device)
        return status;
    test_facts();
    test_memory();
    test_copies();
    test_graph();
    test_refusals();
    tess_registry_close(device);
    return check_end();
}
