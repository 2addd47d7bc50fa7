/* 3x3 convolutions whose transformed weights are large: all of them are transformed first for a large image, and a part at a time
 * for a strip of it. Both have the same bits, with any number of threads. The workspace of one thread falls with the strip. */
#include "counter.h"
#include "op_run.h"

enum { HEIGHT = 200, WIDTH = 24, CIN = 416, COUT = 224, THREADS = 3 };

/* The share of the largest workspace that is enough for a thin strip. */
enum { THIN = 8, SHARE = 3 };

static const int64_t row_in = WIDTH * CIN, row_out = WIDTH * COUT;

typedef struct layer {
    field image, weights, bias;
} layer;

static tess_op conv(int64_t from, int64_t to)
{
    const int64_t first = from > 0 ? from - 1 : 0, last = to < HEIGHT ? to + 1 : HEIGHT;
    return (tess_op){.kind = TESS_OP_CONV,
                     .inputs = 1,
                     .outputs = 1,
                     .in = {tess_tensor_2d(TESS_F32, 1, last - first, WIDTH, CIN)},
                     .out = {tess_tensor_2d(TESS_F32, 1, to - from, WIDTH, COUT)},
                     .kernel = {1, 3, 3},
                     .stride = {1, 1, 1},
                     .pad_before = {0, from == 0, 1},
                     .pad_after = {0, to == HEIGHT, 1},
                     .bias = true};
}

/* Output rows [from, to) of the image. */
static field rows_of(tess_device *device, const layer *l, int64_t from, int64_t to)
{
    const int64_t first = from > 0 ? from - 1 : 0;
    const tess_op op = conv(from, to);
    op_call call = {
        .op = op,
        .in = {{(float *)l->image.data + first * row_in, (size_t)(op.in[0].h * row_in) * sizeof(float)}},
        .param = {l->weights.data, l->bias.data}};
    call.out = random_field(&call.op.out[0], 4);
    const field got = op_run(device, &call, "a convolution");
    free(call.out.data);
    return got;
}

static void check_rows(tess_device *device, const layer *l, const field *whole, int64_t from, int64_t to,
                       int threads)
{
    const field got = rows_of(device, l, from, to);
    CHECK_MSG(got.data && memcmp(got.data, (float *)whole->data + from * row_out,
                                 (size_t)((to - from) * row_out) * sizeof(float)) == 0,
              "rows %lld to %lld, %d threads: other bits", (long long)from, (long long)to, threads);
    free(got.data);
}

/* Plans take the workspace of the largest window for that of all: it must not shrink when the image grows. */
static void check_workspace(tess_device *device, int threads)
{
    size_t before = 0, thin = 0;
    for (int64_t height = 1; height <= HEIGHT; height++) {
        const tess_op op = conv(HEIGHT - height, HEIGHT);
        tess_op_needs needs = {0};
        CHECK(device->ops->query(device, &op, &needs, NULL) == TESS_OK);
        CHECK_MSG(needs.workspace >= before, "%lld rows, %d threads: %zu bytes, fewer rows %zu",
                  (long long)height, threads, needs.workspace, before);
        before = needs.workspace;
        thin = height == THIN ? before : thin;
    }
    CHECK_MSG(threads > 1 || SHARE * thin < before, "%zu bytes for %d rows, %zu for %d", thin, THIN, before,
              HEIGHT);
}

static void check_set(const char *isa, const layer *l)
{
    field whole = {NULL, 0};
    for (int threads = 1; threads <= THREADS; threads++) {
        const tess_device_options options = {.memory = &test_counter, .threads = threads, .isa = isa};
        tess_device *device = NULL;
        if (tess_registry_open("cpu", &options, &device, NULL) != TESS_OK)
            continue;
        if (!whole.data)
            whole = rows_of(device, l, 0, HEIGHT);
        else
            check_rows(device, l, &whole, 0, HEIGHT, threads);
        check_workspace(device, threads);
        check_rows(device, l, &whole, 0, THIN, threads);
        check_rows(device, l, &whole, 8, 52, threads);
        check_rows(device, l, &whole, 96, 128, threads);
        check_rows(device, l, &whole, 100, HEIGHT, threads);
        tess_registry_close(device);
    }
    free(whole.data);
}

int main(void)
{
    static const char *const sets[] = {"neon", "sse", "avx2", "avx512"};
    const tess_tensor image = tess_tensor_2d(TESS_F32, 1, HEIGHT, WIDTH, CIN),
                      weights = tess_tensor_2d(TESS_F32, 1, COUT, 9, CIN),
                      bias = tess_tensor_2d(TESS_F32, 1, 1, 1, COUT);
    layer l = {random_field(&image, 1), random_field(&weights, 2), random_field(&bias, 3)};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++)
        check_set(sets[s], &l);
    free(l.image.data), free(l.weights.data), free(l.bias.data);
    return check_end();
}
