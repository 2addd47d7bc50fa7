/* test_slices.c: slices of vectors, vectors that a whole batch shares, concatenations of concatenations and of a value with itself,
 * and inputs that a run leaves as they are. All layers are ReLUs, so that results are known. */
#include <string.h>

#include "check.h"
#include "counter.h"
#include "net/plan.h"
#include "net/training.h"

enum { IMAGES = 3, MOST = 64 };

static tess_error error;
static tess_device *device;

typedef struct machine {
    tess_bound *bound;
    tess_net_plan *plan;
    tess_block arena;
} machine;

static void make_ready(machine *m, tess_net *net, tess_value out)
{
    *m = (machine){0};
    CHECK_MSG(tess_net_finish(net, out, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_bound_create(net, device, TESS_F32, &m->bound, &error) == TESS_OK &&
                  tess_net_plan_create(m->bound, (tess_plan_shape){.n = IMAGES, .h = 2, .w = 2}, &m->plan,
                                       &error) == TESS_OK &&
                  tess_net_plan_prepare(m->plan, &error) == TESS_OK,
              "%s", error.text);
    CHECK(tess_block_alloc(&test_counter, &m->arena, TESS_MEM_ACTIVATIONS, tess_net_plan_arena_bytes(m->plan),
                           &error) == TESS_OK);
    memset(m->arena.data, 0xff, m->arena.bytes);
}

static void clear(machine *m, tess_net *net)
{
    tess_net_plan_destroy(m->plan);
    tess_bound_destroy(m->bound);
    tess_block_free(&m->arena);
    tess_net_destroy(net);
}

/* Value i of an input: different everywhere, a few negative. */
static float value_at(int64_t i)
{
    return i % 5 == 4 ? -1.0f : (float)i;
}

static float positive_at(int64_t i)
{
    return value_at(i) > 0 ? value_at(i) : 0;
}

static void put(const machine *m, int input, int64_t count)
{
    size_t at;
    const tess_tensor t = tess_net_plan_input_at(m->plan, input, &at);
    float *to = (float *)((char *)m->arena.data + at);
    CHECK(t.dtype == TESS_F32 && t.n * t.stride_n == count);
    for (int64_t i = 0; i < count; i++)
        to[i] = value_at(i);
}

static void run(const machine *m)
{
    tess_net_plan_run(m->plan, m->arena.data, NULL, NULL, NULL);
}

static const float *result(const machine *m, int output, int64_t count)
{
    size_t at;
    const tess_tensor t = tess_net_plan_output_at(m->plan, output, &at);
    CHECK_MSG(t.dtype == TESS_F32 && t.n * t.stride_n == count, "output %d has %lld values", output,
              (long long)(t.n * t.stride_n));
    return (const float *)((const char *)m->arena.data + at);
}

static tess_value relu(tess_net *net, tess_value in)
{
    return tess_net_activate(net, in, TESS_RELU);
}

/* A slice of an input, a slice of that, and a slice of a computed vector. */
static void test_slices(void)
{
    enum { WIDTH = 8 };
    tess_net *net = tess_net_create();
    const tess_value v = tess_net_input_vector(net, WIDTH), part = tess_net_slice(net, v, 2, 5),
                     inner = tess_net_slice(net, part, 1, 3);
    tess_net_output(net, relu(net, inner));
    const tess_value h = relu(net, v), late = tess_net_slice(net, h, 4, 4);
    tess_net_output(net, relu(net, late));
    machine m;
    make_ready(&m, net, relu(net, tess_net_concat(net, tess_net_slice(net, h, 0, 2), part)));
    put(&m, 0, IMAGES * WIDTH);
    run(&m);
    const float *a = result(&m, 0, IMAGES * 3), *b = result(&m, 1, IMAGES * 4),
                *c = result(&m, 2, IMAGES * 7);
    for (int64_t n = 0; n < IMAGES; n++) {
        for (int64_t i = 0; i < 3; i++)
            CHECK(a[n * 3 + i] == positive_at(n * WIDTH + 3 + i));
        for (int64_t i = 0; i < 4; i++)
            CHECK(b[n * 4 + i] == positive_at(n * WIDTH + 4 + i));
        for (int64_t i = 0; i < 7; i++)
            CHECK(c[n * 7 + i] == positive_at(n * WIDTH + i));
    }
    clear(&m, net);
}

/* The storage of a vector ends after the last reader of any slice: `first` must not be placed over `last`. */
static void test_lifetimes(void)
{
    tess_net *net = tess_net_create();
    const tess_value v = tess_net_input_vector(net, 4), first = tess_net_slice(net, v, 0, 2),
                     last = tess_net_slice(net, v, 2, 2);
    tess_value h = relu(net, first);
    for (int i = 0; i < 4; i++)
        h = relu(net, h);
    machine m;
    make_ready(&m, net, tess_net_add(net, relu(net, last), h));
    put(&m, 0, IMAGES * 4);
    run(&m);
    const float *out = result(&m, 0, IMAGES * 2);
    for (int64_t n = 0; n < IMAGES; n++)
        for (int64_t i = 0; i < 2; i++)
            CHECK(out[n * 2 + i] == positive_at(n * 4 + i) + positive_at(n * 4 + 2 + i));
    clear(&m, net);
}

/* What is computed from a shared vector is computed once; the other input has an image for each. */
static void test_shared(void)
{
    tess_net *net = tess_net_create();
    const tess_value v = tess_net_input_shared(net, 6), x = tess_net_input(net, 2);
    tess_net_output(net, relu(net, tess_net_slice(net, v, 1, 3)));
    machine m;
    make_ready(&m, net, relu(net, x));
    put(&m, 0, 6);
    put(&m, 1, IMAGES * 2 * 2 * 2);
    run(&m);
    const float *once = result(&m, 0, 3), *each = result(&m, 1, IMAGES * 2 * 2 * 2);
    for (int64_t i = 0; i < 3; i++)
        CHECK(once[i] == positive_at(1 + i));
    for (int64_t i = 0; i < IMAGES * 2 * 2 * 2; i++)
        CHECK(each[i] == positive_at(i));
    clear(&m, net);
}

/* Vectors are concatenated one after another without copies. */
static void test_long_concat(void)
{
    enum { PARTS = 7, WIDTH = 3 };
    tess_net *net = tess_net_create();
    const tess_value v = tess_net_input_vector(net, PARTS * WIDTH);
    tess_value all = -1;
    for (int i = 0; i < PARTS; i++) {
        const tess_value part = relu(net, tess_net_slice(net, v, i * WIDTH, WIDTH));
        all = i ? tess_net_concat(net, all, part) : part;
    }
    machine m;
    make_ready(&m, net, all);
    CHECK_MSG(tess_net_plan_op_count(m.plan) == PARTS, "%d ops", tess_net_plan_op_count(m.plan));
    put(&m, 0, IMAGES * PARTS * WIDTH);
    run(&m);
    const float *out = result(&m, 0, IMAGES * PARTS * WIDTH);
    for (int64_t i = 0; i < IMAGES * PARTS * WIDTH; i++)
        CHECK(out[i] == positive_at(i));
    clear(&m, net);
}

static void test_concat_with_itself(void)
{
    tess_net *net = tess_net_create();
    const tess_value x = relu(net, tess_net_input(net, 2));
    machine m;
    make_ready(&m, net, relu(net, tess_net_concat(net, x, x)));
    put(&m, 0, IMAGES * 4 * 2);
    run(&m);
    const float *out = result(&m, 0, IMAGES * 4 * 4);
    for (int64_t p = 0; p < IMAGES * 4; p++)
        for (int64_t c = 0; c < 4; c++)
            CHECK(out[p * 4 + c] == positive_at(p * 2 + c % 2));
    clear(&m, net);
}

/* Runs of a network whose last layers could use the memory of its input. */
static void test_kept(bool kept)
{
    tess_net *net = tess_net_create();
    const tess_value x = tess_net_input(net, 2);
    tess_value h = relu(net, x);
    if (kept)
        tess_net_keep(net, x);
    for (int i = 0; i < 3; i++)
        h = relu(net, tess_net_add(net, h, h));
    machine m;
    make_ready(&m, net, h);
    put(&m, 0, IMAGES * 4 * 2);
    for (int i = 0; i < (kept ? 2 : 1); i++) {
        run(&m);
        const float *out = result(&m, 0, IMAGES * 4 * 2);
        for (int64_t k = 0; k < IMAGES * 4 * 2; k++)
            CHECK(out[k] == 8 * positive_at(k));
    }
    clear(&m, net);
}

static void test_not_trained(bool shared)
{
    tess_net *net = tess_net_create();
    tess_training *training = NULL;
    const tess_training_settings settings = {.dtype = TESS_F32,
                                             .n = 1,
                                             .h = 2,
                                             .w = 2,
                                             .micro_batches = 1,
                                             .loss = {.kind = TESS_MSE},
                                             .optimize = {.kind = TESS_SGD}};
    tess_net_train(net);
    const tess_value v =
        shared ? tess_net_input_shared(net, 4) : tess_net_slice(net, tess_net_input_vector(net, 4), 0, 2);
    CHECK(tess_net_finish(net, relu(net, v), &error) == TESS_OK);
    CHECK_MSG(tess_training_create(net, device, &settings, &training, &error) == TESS_UNSUPPORTED &&
                  strstr(error.text, "slices"),
              "%s", error.text);
    tess_net_destroy(net);
}

/* Slices outside a vector, and of images. */
static void test_refused(void)
{
    for (int i = 0; i < 3; i++) {
        tess_net *net = tess_net_create();
        const tess_value v = i < 2 ? tess_net_input_vector(net, 4) : tess_net_input(net, 4);
        const tess_value s = tess_net_slice(net, v, i == 0 ? 3 : i == 1 ? -1 : 0, 2);
        CHECK(s < 0 && tess_net_finish(net, relu(net, s), &error) != TESS_OK);
        tess_net_destroy(net);
    }
}

int main(void)
{
    const tess_device_options options = {.threads = 2, .memory = &test_counter};
    CHECK(tess_registry_open("cpu", &options, &device, &error) == TESS_OK);
    test_slices();
    test_lifetimes();
    test_shared();
    test_long_concat();
    test_concat_with_itself();
    test_kept(false);
    test_kept(true);
    test_not_trained(false);
    test_not_trained(true);
    test_refused();
    tess_registry_close(device);
    CHECK(counted_now() == 0);
    return check_end();
}
