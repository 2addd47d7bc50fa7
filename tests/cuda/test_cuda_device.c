/* The card as a device: what is granted is what the driver counts, copies, events, graphs that repeat a run, and
 * what happens when memory is short. */
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
    CHECK(device->granted(device, 0) == 0);
    CHECK(device->alloc(device, &empty, TESS_MEM_IO, 0, &error) == TESS_OK && !empty.data && !empty.bytes);
    device->free(device, &empty);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tess_mem_usage peak;
        const uint64_t before = left_free();
        tess_memory_reset_peak(&test_counter);
        tess_block block;
        CHECK_MSG(device->alloc(device, &block, TESS_MEM_ACTIVATIONS, sizes[i], &error) == TESS_OK, "%s",
                  error.text);
        uint64_t taken = before - left_free();
        tess_memory_peak(&test_counter, TESS_MEM_OF_DEVICE, &peak);
        CHECK(block.bytes == device->granted(device, sizes[i]) && block.bytes >= sizes[i]);
        CHECK_MSG(peak.bytes.by[TESS_MEM_ACTIVATIONS] == block.bytes && peak.total == block.bytes,
                  "%zu counted as %llu", block.bytes, (unsigned long long)peak.total);
        CHECK_MSG(taken <= block.bytes + 2 * MIB && taken + 2 * MIB >= block.bytes, "%zu granted, %llu taken",
                  block.bytes, (unsigned long long)taken);
        device->free(device, &block);
        CHECK(!block.data && left_free() + 2 * MIB >= before);
    }
    tess_block block;
    error.text[0] = 0;
    CHECK(device->alloc(device, &block, TESS_MEM_WEIGHTS, (size_t)1 << 44, &error) == TESS_NO_MEMORY);
    CHECK_MSG(strstr(error.text, "free") && strstr(error.text, "--memory") && !block.data, "%s", error.text);
    CHECK(device->sync(device, NULL, &error) == TESS_OK); /* the card has survived */
    tess_mem_fail_at(1);
    CHECK(device->alloc(device, &block, TESS_MEM_WEIGHTS, 100, &error) == TESS_NO_MEMORY);
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
    CHECK(device->host_alloc(device, &pinned, COUNT * sizeof(float), &error) == TESS_OK);
    CHECK(device->host_alloc(device, &other, COUNT * sizeof(float), &error) == TESS_OK);
    tess_mem_usage held;
    tess_memory_held(&test_counter, TESS_MEM_OF_DEVICE, &held);
    CHECK(held.total == 0); /* the host's, not the card's */
    CHECK(held.bytes.by[TESS_MEM_HOST] == pinned.bytes + other.bytes &&
          pinned.bytes >= COUNT * sizeof(float));
    CHECK(device->alloc(device, &on_card, TESS_MEM_IO, COUNT * sizeof(float), &error) == TESS_OK);
    CHECK(device->stream_create(device, &stream, &error) == TESS_OK && stream);
    CHECK(device->event_create(device, &from, &error) == TESS_OK && from);
    CHECK(device->event_create(device, &to, &error) == TESS_OK && to);
    tess_rng_normal((tess_rng_key){1, 2, 3}, 0, COUNT, pinned.data);
    memset(other.data, 0, COUNT * sizeof(float));
    device->wait(device, from, stream); /* never recorded: nothing to wait for */
    device->record(device, from, stream);
    device->copy(device, on_card.data, pinned.data, COUNT * sizeof(float), stream);
    device->record(device, to, stream);
    device->wait(device, to, NULL); /* the other stream takes up from here */
    device->copy(device, other.data, on_card.data, COUNT * sizeof(float), NULL);
    CHECK(device->event_sync(device, to, &error) == TESS_OK);
    CHECK(device->sync(device, NULL, &error) == TESS_OK);
    CHECK(memcmp(pinned.data, other.data, COUNT * sizeof(float)) == 0);
    const double seconds = device->elapsed(device, from, to);
    CHECK_MSG(seconds > 0 && seconds < 1, "%g s", seconds);
    device->event_destroy(device, from);
    device->event_destroy(device, to);
    device->stream_destroy(device, stream);
    device->free(device, &on_card);
    device->host_free(device, &pinned);
    device->host_free(device, &other);
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
    CHECK_MSG(device->query(device, &conv, &needs, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(device->prepare(device, &conv, &prepared, &error) == TESS_OK, "%s", error.text);
    const size_t bytes = (size_t)H * W * C * 2;
    tess_block a, b, weights, workspace;
    CHECK(device->alloc(device, &a, TESS_MEM_ACTIVATIONS, bytes, &error) == TESS_OK);
    CHECK(device->alloc(device, &b, TESS_MEM_ACTIVATIONS, bytes, &error) == TESS_OK);
    CHECK(device->alloc(device, &weights, TESS_MEM_WEIGHTS, needs.weights, &error) == TESS_OK);
    CHECK(device->alloc(device, &workspace, TESS_MEM_WORKSPACE, needs.workspace, &error) == TESS_OK);
    enum { KERNEL = C * C * 9 };
    float *kernel = malloc(KERNEL * sizeof *kernel), bias[C] = {0};
    tess_rng_normal((tess_rng_key){4, 5, 6}, 0, KERNEL, kernel);
    for (int i = 0; i < KERNEL; i++)
        kernel[i] *= 0.06f;
    device->pack(device, &conv, TESS_PARAM_KERNEL, 0, C, kernel, weights.data);
    device->pack(device, &conv, TESS_PARAM_BIAS, 0, C, bias, weights.data);
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
    CHECK(device->stream_create(device, &stream, &error) == TESS_OK);
    CHECK_MSG(device->capture_begin(device, stream, &error) == TESS_OK, "%s", error.text);
    device->run(device, prepared, &there, stream);
    device->run(device, prepared, &back, stream);
    device->run(device, prepared, &there, stream);
    CHECK_MSG(device->capture_end(device, stream, &graph, &error) == TESS_OK, "%s", error.text);
    for (int i = 0; i < RUNS && graph; i++) {
        uint64_t calls = tess_mem_calls();
        device->copy(device, a.data, start, bytes, stream);
        if (i > 0) {
            device->graph_launch(device, graph, stream);
        } else {
            device->run(device, prepared, &there, stream);
            device->run(device, prepared, &back, stream);
            device->run(device, prepared, &there, stream);
        }
        device->copy(device, results[i], b.data, bytes, stream);
        CHECK_MSG(device->sync(device, stream, &error) == TESS_OK, "%s", error.text);
        CHECK(tess_mem_calls() == calls);
        CHECK_MSG(memcmp(results[0], results[i], bytes) == 0, "run %d differs from the first", i);
    }
    device->graph_release(device, graph);
    device->stream_destroy(device, stream);
    device->release(device, prepared);
    device->free(device, &a), device->free(device, &b), device->free(device, &weights);
    device->free(device, &workspace);
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
    CHECK(device->query(device, &op, &needs, &error) == TESS_UNSUPPORTED && strlen(error.text) > 0);
    CHECK(device->prepare(device, &op, &prepared, &error) == TESS_UNSUPPORTED && !prepared);
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
