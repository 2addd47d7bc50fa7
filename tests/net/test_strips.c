/* test_strips.c: an image in strips, one thread and device each, that exchange rows inside the network (EXCHANGE steps). The strips
 * together give the bits of the whole image, for any split on the alignment; a plan without neighbours has no exchanges. The same
 * for slabs of a volume, which exchange slices. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/rng.h"
#include "check.h"
#include "counter.h"
#include "net/levels.h"
#include "net/plan.h"
#include "strip_net.h"

enum { STRIPS = 3, COLOURS = STRIP_COLOURS, WIDE = 32, SIDE = 12 };

/* What the strips of one image share. */
typedef struct image_strips {
    int count;
    pthread_barrier_t meet;
    tess_exchange at[STRIPS]; /* what each strip came to the exchange with */
} image_strips;

typedef struct strip {
    image_strips *all;
    int index;
    tess_device *device;
    tess_bound *bound;
    tess_net_plan *plan;
    tess_block arena, workspace;
    const void *weights;
} strip;

static tess_error error;

static tess_device *open_device(void)
{
    const tess_device_options options = {.threads = 1, .memory = &test_counter};
    tess_device *device = NULL;
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    return device;
}

/* The network of strip_net.h in three dimensions: kernels of five slices as well, and one of a single slice, which needs none of others. */
static tess_net *make_volume_net(void)
{
    tess_net *net = tess_net_create();
    const tess_conv_settings head = {"head", WIDE, TESS_WINDOW_3D(3, 1, 1)},
                             down = {"down", 2 * WIDE, TESS_WINDOW_3D(2, 2, 0)},
                             body = {"body", 2 * WIDE, TESS_WINDOW_3D(3, 1, 1)},
                             up = {"up", WIDE, TESS_WINDOW_3D(2, 2, 0)},
                             mix = {"mix", WIDE, TESS_WINDOW_3D(5, 1, 2)},
                             flat = {"flat", WIDE, TESS_WINDOW_2D(3, 1, 1)},
                             tail = {"tail", COLOURS, TESS_WINDOW_3D(3, 1, 1)};
    const tess_value in = tess_net_input(net, COLOURS);
    const tess_value x = tess_net_activate(net, tess_net_conv(net, in, head), TESS_RELU);
    tess_value y = tess_net_conv(net, x, down);
    y = tess_net_add(
        net, tess_net_conv(net, tess_net_activate(net, tess_net_conv(net, y, body), TESS_RELU), body), y);
    y = tess_net_add(net, tess_net_conv_transpose(net, y, up), x);
    y = tess_net_conv(net, tess_net_conv(net, y, mix), flat);
    y = tess_net_concat(net, y, tess_net_conv(net, x, mix));
    CHECK(tess_net_finish(net, tess_net_conv(net, y, tail), &error) == TESS_OK);
    return net;
}

static void begin(void *user, const tess_exchange *mine, tess_stream *stream)
{
    (void)stream;
    const strip *s = user;
    s->all->at[s->index] = *mine;
    pthread_barrier_wait(&s->all->meet);
}

/* Rows above come from the end of the strip above, rows below from the beginning of the one below. */
static void end(void *user, const tess_exchange *mine, tess_stream *stream)
{
    (void)stream;
    const strip *s = user;
    image_strips *all = s->all;
    if (mine->above) {
        const tess_exchange *other = &all->at[s->index - 1];
        memcpy(tess_exchange_row(mine, -mine->above),
               tess_exchange_row(other, tess_exchange_own(other) - mine->above),
               tess_exchange_bytes(mine, mine->above));
    }
    if (mine->below) {
        const tess_exchange *other = &all->at[s->index + 1];
        memcpy(tess_exchange_row(mine, tess_exchange_own(mine)), tess_exchange_row(other, 0),
               tess_exchange_bytes(mine, mine->below));
    }
    pthread_barrier_wait(&all->meet);
}

static void *run_strip(void *user)
{
    static const tess_exchanger exchanger = {begin, end};
    strip *s = user;
    const tess_net_run run = {.arena = s->arena.data,
                              .workspace = s->workspace.data,
                              .weights = s->weights,
                              .exchanger = &exchanger,
                              .exchange_user = s};
    tess_net_plan_execute(s->plan, &run);
    return NULL;
}

static void open_strip(strip *s, const tess_net *net, tess_plan_shape shape)
{
    s->device = open_device();
    CHECK(tess_bound_create(net, s->device, TESS_F32, &s->bound, &error) == TESS_OK);
    CHECK_MSG(tess_net_plan_create(s->bound, shape, &s->plan, &error) == TESS_OK, "%s", error.text);
    CHECK((tess_net_plan_exchange_count(s->plan) > 0) == (shape.above || shape.below));
    CHECK(tess_net_plan_prepare(s->plan, &error) == TESS_OK);
    CHECK(tess_block_alloc(&test_counter, &s->arena, TESS_MEM_ACTIVATIONS, tess_net_plan_arena_bytes(s->plan),
                           &error) == TESS_OK);
    CHECK(tess_block_alloc(&test_counter, &s->workspace, TESS_MEM_WORKSPACE,
                           tess_net_plan_workspace_bytes(s->plan), &error) == TESS_OK);
}

static void close_strip(strip *s)
{
    tess_net_plan_destroy(s->plan);
    tess_bound_destroy(s->bound);
    tess_block_free(&s->arena);
    tess_block_free(&s->workspace);
    tess_registry_close(s->device);
}

/* Copies rows of a dense image into the network's input, or its output out of it. */
static void move_rows(const strip *s, float *rows, bool in)
{
    size_t offset;
    const tess_tensor t = in ? tess_net_plan_input(s->plan, &offset) : tess_net_plan_output(s->plan, &offset);
    float *data = (float *)((char *)s->arena.data + offset);
    const int64_t row = t.w * t.c;
    for (int64_t y = 0; y < t.d * t.h; y++) {
        float *here = data + y / t.h * t.stride_d + y % t.h * t.stride_h, *there = rows + y * row;
        memcpy(in ? here : there, in ? there : here, (size_t)row * sizeof *rows);
    }
}

/* An image of columns, or a volume of squares of `side`, as one strip or slab of `length`. */
static tess_plan_shape shape_of(int64_t side, bool volume, int64_t length)
{
    return (tess_plan_shape){
        .n = 1, .d = volume ? length : 1, .h = volume ? side : length, .w = side, .slices = volume};
}

static void test_split(const tess_net *net, const void *weights, int64_t side, bool volume,
                       const int64_t *lengths, const tess_level_rows *levels, int count, float *image,
                       const float *whole)
{
    image_strips all = {.count = count};
    strip strips[STRIPS] = {{0}};
    pthread_t threads[STRIPS];
    const int64_t row = (volume ? side * side : side) * COLOURS;
    int64_t first = 0, total = 0;
    for (int i = 0; i < count; i++)
        total += lengths[i];
    float *out = calloc((size_t)(total * row), sizeof *out);
    CHECK(pthread_barrier_init(&all.meet, NULL, (unsigned)count) == 0);
    for (int i = 0; i < count; i++, first += lengths[i - 1]) {
        strip *s = &strips[i];
        *s = (strip){.all = &all, .index = i, .weights = weights};
        tess_plan_shape shape = shape_of(side, volume, lengths[i]);
        shape.above = i > 0;
        shape.below = i + 1 < count;
        if (levels)
            shape.levels = levels[i];
        open_strip(s, net, shape);
        move_rows(s, image + first * row, true);
    }
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, run_strip, &strips[i]) == 0);
    first = 0;
    for (int i = 0; i < count; i++, first += lengths[i - 1]) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        move_rows(&strips[i], out + first * row, false);
    }
    CHECK_MSG(memcmp(out, whole, (size_t)(total * row) * sizeof *out) == 0, "%d %s differ", count,
              volume ? "slabs" : "strips");
    for (int i = 0; i < count; i++)
        close_strip(&strips[i]);
    pthread_barrier_destroy(&all.meet);
    free(out);
}

static int ops_of(const tess_net *net, int64_t rows, bool cut)
{
    strip s = {0};
    tess_plan_shape shape = shape_of(8, false, rows);
    shape.above = shape.below = cut;
    open_strip(&s, net, shape);
    const int count = tess_net_plan_op_count(s.plan);
    close_strip(&s);
    return count;
}

/* In a thin strip the edges of a convolution would be ops that cost more than to wait for the neighbours' rows. */
static void test_divided(tess_net *net)
{
    strip one = {0};
    open_strip(&one, net, shape_of(8, false, 8));
    const int64_t step = tess_bound_alignment(one.bound);
    close_strip(&one);
    CHECK(ops_of(net, 7 * step, true) == ops_of(net, 7 * step, false));
    CHECK(ops_of(net, 8 * step, true) > ops_of(net, 8 * step, false));
    tess_net_destroy(net);
}

/* A strip without the rows that a neighbour would read. */
static void refuse_far(const tess_net *net)
{
    const tess_plan_shape shape = {
        .n = 1, .h = 4, .w = 8, .above = true, .below = true, .levels = {{12, 12}, {4, 4}}};
    strip one = {.device = open_device()};
    CHECK(tess_bound_create(net, one.device, TESS_F32, &one.bound, &error) == TESS_OK);
    CHECK(tess_net_plan_create(one.bound, shape, &one.plan, &error) == TESS_INTERNAL);
    close_strip(&one);
}

/* Strips that begin elsewhere at each level: layers between levels read rows of the neighbour, or leave some out. */
static void test_levels(const tess_net *net, const void *weights, int64_t side, int64_t length, float *image,
                        const float *whole)
{
    enum { STEP = 4 };
    static const int borders[][2][STRIPS - 1] = {{{20, 30}, {10, 15}}, {{20, 30}, {11, 14}},
                                                 {{20, 30}, {9, 17}},  {{3, 5}, {2, 3}},
                                                 {{19, 37}, {9, 18}},  {{21, 35}, {13, 16}}};
    strip one = {0};
    open_strip(&one, net, shape_of(8, false, 8));
    const tess_levels l = tess_levels_of(one.bound);
    close_strip(&one);
    if (!l.count)
        return; /* no kernel computes several rows at a time */
    CHECK(l.count == 2 && l.least[0] == 2 && l.least[1] == 1 && l.share[0] > 0 && l.share[1] > 0);
    CHECK(STEP % l.step[0] == 0 && STEP % l.step[1] == 0);
    CHECK(fabs(l.share[0] + l.share[1] - 1) < 1e-12);
    refuse_far(net);
    for (size_t k = 0; k < sizeof borders / sizeof *borders; k++) {
        tess_level_rows levels[STRIPS] = {{{0}, {0}}};
        int64_t lengths[STRIPS];
        for (int level = 0; level < 2; level++)
            for (int i = 0; i < STRIPS; i++) {
                const int64_t first = i ? STEP * borders[k][level][i - 1] : 0,
                              end = i + 1 < STRIPS ? STEP * borders[k][level][i] : length >> level;
                levels[i].first[level] = (int32_t)first;
                levels[i].rows[level] = (int32_t)(end - first);
                lengths[i] = levels[i].rows[0];
            }
        test_split(net, weights, side, false, lengths, levels, STRIPS, image, whole);
    }
}

/* `units` steps of the alignment, divided in several ways. */
static void test_net(tess_net *net, int64_t side, bool volume, int64_t units)
{
    strip one = {0};
    open_strip(&one, net, shape_of(8, volume, 8));
    const int64_t step = volume ? tess_bound_least_slab(one.bound) : tess_bound_alignment(one.bound),
                  length = units * step;
    const size_t bytes = tess_bound_weight_bytes(one.bound);
    close_strip(&one);
    tess_block weights;
    CHECK(tess_block_alloc(&test_counter, &weights, TESS_MEM_WEIGHTS, bytes, &error) == TESS_OK);
    tess_rng_normal((tess_rng_key){1, 2, 3}, 0, (int64_t)(bytes / sizeof(float)), weights.data);
    const size_t values = (size_t)(length * (volume ? side * side : side) * COLOURS);
    float *image = calloc(values, sizeof *image), *whole = calloc(values, sizeof *whole);
    tess_rng_normal((tess_rng_key){4, 5, 6}, 0, (int64_t)values, image);
    one = (strip){.weights = weights.data};
    open_strip(&one, net, shape_of(side, volume, length));
    move_rows(&one, image, true);
    (void)run_strip(&one);
    move_rows(&one, whole, false);
    close_strip(&one);
    const int64_t half = units / 2;
    const int64_t lengths[][STRIPS] = {
        {length}, {half * step, half * step}, {step, length - step}, {(half - 1) * step, step, half * step}};
    const int counts[] = {1, 2, 2, 3};
    for (int i = 0; i < 4; i++)
        test_split(net, weights.data, side, volume, lengths[i], NULL, counts[i], image, whole);
    if (!volume)
        test_levels(net, weights.data, side, length, image, whole);
    free(image), free(whole);
    tess_block_free(&weights);
    tess_net_destroy(net);
}

int main(void)
{
    test_divided(make_strip_net());
    test_net(make_strip_net(), 40, false, 20);
    test_net(make_volume_net(), SIDE, true, 10);
    return check_end();
}
