/* The room window on the CPU: every window is visited once; any size of the plan cache gives the bits of the whole
 * image; a run of prepared shapes allocates nothing; strided images of 8-bit samples are read and written in place;
 * graphs are released, and a failed capture stops the queue. */
#define _POSIX_C_SOURCE 200809L
#include "window/window.h"

#include <unistd.h>

#include "counter.h"
#include "support.h"
#include "window/queue.h"
#include "window/resident.h"

enum { HEIGHT = 90, WIDTH = 117, COLOURS = 3 };

static tess_error error;
static tess_device *device;

typedef struct network {
    tess_weights *file;
    tess_model_net model;
    tess_bound *bound;
    tess_block weights;
} network;

/* Three convolutions, gray: planes are done one by one, and the reach is small. */
static void make_network(network *n)
{
    char path[128];
    snprintf(path, sizeof path, "/tmp/tessera-test-window-%d.safetensors", (int)getpid());
    tensor_list list = {0};
    add_conv(&list, "in_conv", 16, 1, 3, true);
    add_conv(&list, "conv_list.0", 16, 16, 3, true);
    add_conv(&list, "out_conv", 1, 16, 3, true);
    save_tensors(&list, path);
    CHECK_MSG(tess_weights_open(path, &n->file, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_model_recognise(n->file, &n->model, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_bound_create(n->model.net, device, TESS_F32, &n->bound, &error) == TESS_OK);
    CHECK(device->memory->alloc(device, &n->weights, TESS_MEM_WEIGHTS, tess_bound_weight_bytes(n->bound),
                                &error) == TESS_OK);
    CHECK(tess_bound_load(n->bound, n->file, n->weights.data, &error) == TESS_OK);
    unlink(path);
}

static void drop_network(network *n)
{
    device->memory->free(device, &n->weights);
    tess_bound_destroy(n->bound);
    tess_model_clear(&n->model);
    tess_weights_close(n->file);
}

static tess_cut cut_of(const network *n, int64_t tile, int64_t batch)
{
    const int64_t align = tess_bound_alignment(n->bound), grid = tess_net_grid(n->model.net, TESS_HEIGHT),
                  halo = tess_round_up(tess_bound_reach(n->bound), align);
    const tess_axis rows = tess_axis_cut(tess_round_up(HEIGHT, grid), tile, halo, align),
                    cols = tess_axis_cut(tess_round_up(WIDTH, grid), tile, halo, align);
    return tess_cut_image(&rows, &cols, batch);
}

static void test_walk(void)
{
    dice d = {3};
    for (int round = 0; round < 50; round++) {
        const int64_t size[TESS_SPATIAL] = {pick(&d, 1, 9), pick(&d, 1, 60), pick(&d, 1, 60)};
        tess_cut cut = {.batch = pick(&d, 1, 5)};
        for (int s = 0; s < TESS_SPATIAL; s++)
            cut.axis[s] = tess_axis_cut(tess_round_up(size[s], 4), pick(&d, 0, 20), pick(&d, 0, 3) * 4, 4);
        int64_t pixels = 0, windows = 0, count = 0;
        tess_plan_shape known[512];
        tess_window_batch b;
        for (bool more = tess_batch_first(&cut, TESS_ALL_STRIPS, &b); more;
             more = tess_batch_next(&cut, TESS_ALL_STRIPS, &b)) {
            const tess_plan_shape shape = tess_batch_shape(&b);
            int64_t k = 0;
            while (k < count && (known[k].n != shape.n || known[k].d != shape.d || known[k].h != shape.h ||
                                 known[k].w != shape.w))
                k++;
            if (k == count && count < 512)
                known[count++] = shape;
            for (int64_t i = 0; i < b.n; i++) {
                const tess_span cols = tess_batch_cols(&b, i);
                CHECK(cols.window_to - cols.window_from == shape.w);
            }
            pixels += tess_batch_pixels(&b, size);
            windows += b.n;
        }
        CHECK(pixels == size[0] * size[1] * size[2]);
        CHECK(windows == cut.axis[0].tiles * cut.axis[1].tiles * cut.axis[2].tiles);
        CHECK(count == tess_cut_shapes(&cut));
    }
}

/* Dense fp32 images on the host. */
typedef struct picture {
    const float *in;
    float *out;
} picture;

static int64_t clamp(int64_t value, int64_t size)
{
    return value < size ? value : size - 1;
}

static tess_status gather(void *user, const tess_window_batch *b, int64_t plane, const tess_window_end *input,
                          tess_error *e)
{
    (void)e;
    const picture *p = user;
    const tess_tensor *t = &input->tensor;
    for (int64_t i = 0; i < t->n; i++) {
        const tess_span cols = tess_batch_cols(b, i);
        for (int64_t y = 0; y < t->h; y++)
            for (int64_t x = 0; x < t->w; x++)
                ((float *)input->data)[i * t->stride_n + y * t->stride_h + x * t->stride_w] =
                    p->in[(clamp(b->rows.window_from + y, HEIGHT) * WIDTH +
                           clamp(cols.window_from + x, WIDTH)) *
                              COLOURS +
                          plane];
    }
    return TESS_OK;
}

static tess_status scatter(void *user, const tess_window_batch *b, int64_t plane,
                           const tess_window_end *output, tess_error *e)
{
    (void)e;
    const picture *p = user;
    const tess_tensor *t = &output->tensor;
    for (int64_t i = 0; i < t->n; i++) {
        const tess_span cols = tess_batch_cols(b, i);
        for (int64_t y = b->rows.from; y < tess_min_i64(b->rows.to, HEIGHT); y++)
            for (int64_t x = cols.from; x < tess_min_i64(cols.to, WIDTH); x++)
                p->out[(y * WIDTH + x) * COLOURS + plane] =
                    ((const float *)output->data)[i * t->stride_n + (y - b->rows.window_from) * t->stride_h +
                                                  (x - cols.window_from) * t->stride_w];
    }
    return TESS_OK;
}

static const tess_mover HOST = {.gather = gather, .scatter = scatter, .wait = true, .under_way = 1};

static tess_windows *open_windows(const network *n, const tess_cut *cut, int keep)
{
    const tess_windows_settings settings = {.device = device, .keep = keep};
    tess_windows *windows = NULL;
    tess_windows_needs needs;
    CHECK(tess_windows_create(&settings, &windows, &error) == TESS_OK);
    CHECK(tess_windows_needed(windows, n->bound, cut, &needs, &error) == TESS_OK);
    CHECK(needs.operations > 0 && needs.input > 0 && needs.output > 0);
    CHECK(tess_windows_alloc(windows, needs.arena, needs.workspace, &error) == TESS_OK);
    CHECK(tess_windows_holds(windows, needs.arena, needs.workspace) && !tess_windows_holds(windows, 1, 0));
    return windows;
}

static tess_status run_host(tess_windows *windows, const network *n, const tess_cut *cut, const float *in,
                            float *out)
{
    const tess_window_net net = {n->bound, n->weights.data, COLOURS};
    picture p = {in, out};
    const tess_window_run run = {.net = &net,
                                 .cut = cut,
                                 .strip = TESS_ALL_STRIPS,
                                 .size = {1, HEIGHT, WIDTH},
                                 .mover = &HOST,
                                 .user = &p};
    return tess_windows_run(windows, &run, &error);
}

/* As many plans as there are shapes, fewer, and one: the same bits. Prepared shapes run without an allocation. */
static void test_cache(const network *n, const float *in, const float *whole)
{
    float *out = room(HEIGHT * WIDTH * COLOURS * sizeof *out);
    const tess_cut cut = cut_of(n, 32, 2);
    const tess_window_net net = {n->bound, n->weights.data, COLOURS};
    const int keeps[] = {1, 3, (int)tess_cut_shapes(&cut)};
    CHECK(keeps[2] > 3);
    for (int k = 0; k < 3; k++) {
        tess_windows *windows = open_windows(n, &cut, keeps[k]);
        CHECK(tess_windows_prepare(windows, &net, &cut, &error) == TESS_OK);
        const uint64_t calls = tess_mem_calls();
        CHECK_MSG(run_host(windows, n, &cut, in, out) == TESS_OK, "%s", error.text);
        CHECK(k < 2 || tess_mem_calls() == calls);
        CHECK(memcmp(out, whole, HEIGHT * WIDTH * COLOURS * sizeof *out) == 0);
        /* Smaller blocks than planned are refused, and can be mended. */
        CHECK(tess_windows_alloc(windows, 4096, 0, &error) == TESS_OK);
        CHECK(run_host(windows, n, &cut, in, out) == TESS_INTERNAL);
        tess_windows_destroy(windows);
    }
    free(out);
}

/* A crop of a larger 8-bit image into a crop of another one, through the device's own ops. */
static void test_resident(const network *n)
{
    enum { STRIDE = (WIDTH + 13) * COLOURS, BYTES = (HEIGHT + 2) * STRIDE };
    const tess_cut whole = cut_of(n, 0, 1), tiles = cut_of(n, 32, 3);
    unsigned char *in = room(BYTES), *out[2] = {room(BYTES), room(BYTES)};
    dice d = {9};
    for (int i = 0; i < BYTES; i++)
        in[i] = (unsigned char)roll(&d), out[0][i] = out[1][i] = 77;
    tess_tensor image = tess_tensor_2d(TESS_U8, 1, HEIGHT, WIDTH, COLOURS);
    image.stride_h = STRIDE;
    image.stride_d = image.stride_n = STRIDE * HEIGHT;
    const int first = STRIDE + 5 * COLOURS;
    const tess_window_net net = {n->bound, n->weights.data, COLOURS};
    for (int k = 0; k < 2; k++) {
        const tess_cut *cut = k ? &tiles : &whole;
        tess_windows *windows = open_windows(n, cut, (int)tess_cut_shapes(cut));
        const tess_resident images = {
            .in = image, .out = image, .in_data = in + first, .out_data = out[k] + first, .full_scale = 255};
        CHECK_MSG(tess_windows_run_resident(windows, &net, cut, &images, NULL, &error) == TESS_OK, "%s",
                  error.text);
        const uint64_t calls = tess_mem_calls();
        CHECK(tess_windows_run_resident(windows, &net, cut, &images, NULL, &error) == TESS_OK);
        CHECK(k || tess_mem_calls() == calls);
        tess_windows_destroy(windows);
    }
    int outside = 0, inside = 0;
    for (int i = 0; i < BYTES; i++) {
        const int y = (i - first) / STRIDE, x = (i - first) % STRIDE;
        const bool crop = i >= first && y < HEIGHT && x < WIDTH * COLOURS;
        outside += !crop && out[0][i] != 77;
        inside += crop && out[0][i] != 77;
    }
    CHECK_MSG(outside == 0 && inside > HEIGHT * WIDTH, "%d bytes outside were written, %d inside", outside,
              inside);
    CHECK(memcmp(out[0], out[1], BYTES) == 0);
    free(in), free(out[0]), free(out[1]);
}

/* A device with graphs that count themselves. */
static int graphs, most_graphs, launches;
static bool capture_fails;

static tess_status capture_begin(tess_device *on, tess_stream *stream, tess_error *e)
{
    (void)on, (void)stream, (void)e;
    return TESS_OK;
}

static tess_status capture_end(tess_device *on, tess_stream *stream, tess_graph **out, tess_error *e)
{
    (void)on, (void)stream;
    *out = NULL;
    if (capture_fails)
        return tess_fail(e, TESS_DEVICE_LOST, "the card fell off the bus");
    *out = (tess_graph *)&graphs;
    graphs++;
    most_graphs = graphs > most_graphs ? graphs : most_graphs;
    return TESS_OK;
}

static void graph_launch(tess_device *on, tess_graph *graph, tess_stream *stream)
{
    (void)on, (void)stream;
    CHECK(graph == (tess_graph *)&graphs);
    launches++;
}

static void graph_release(tess_device *on, tess_graph *graph)
{
    (void)on, (void)graph;
    graphs--;
}

static void read_zeros(void *user, int64_t y, int64_t x, int64_t count, void *to)
{
    (void)user;
    CHECK(y >= 0 && y < HEIGHT && x >= 0 && count > 0 && x + count <= WIDTH);
    memset(to, 0, (size_t)count * COLOURS);
}

static void count_pixels(void *user, int64_t y, int64_t x, int64_t count, const void *from)
{
    (void)y, (void)x, (void)from;
    *(int64_t *)user += count;
}

static void test_graphs(const network *n, const float *in)
{
    const tess_cut cut = cut_of(n, 32, 2);
    const tess_windows_settings settings = {.device = device, .keep = 2, .graphs = true};
    const tess_window_net net = {n->bound, n->weights.data, COLOURS};
    float *out = room(HEIGHT * WIDTH * COLOURS * sizeof *out);
    tess_windows_needs needs;
    tess_windows *windows = NULL;
    static const tess_device_graphs counted = {capture_begin, capture_end, graph_launch, graph_release};
    device->graphs = &counted;
    CHECK(tess_windows_create(&settings, &windows, &error) == TESS_OK);
    CHECK(tess_windows_needed(windows, n->bound, &cut, &needs, &error) == TESS_OK && graphs == 0);
    CHECK(tess_windows_alloc(windows, needs.arena, needs.workspace, &error) == TESS_OK);
    CHECK(run_host(windows, n, &cut, in, out) == TESS_OK);
    CHECK(launches > 0 && most_graphs == 2);
    tess_windows_free(windows);
    CHECK(graphs == 0);
    tess_windows_destroy(windows);
    int64_t written = 0;
    const tess_queue_image image = {.height = HEIGHT,
                                    .width = WIDTH,
                                    .channels = COLOURS,
                                    .in = TESS_U8,
                                    .out = TESS_U8,
                                    .full_scale = 255,
                                    .read = read_zeros,
                                    .write = count_pixels,
                                    .user = &written};
    const tess_queue_sizes sizes = {needs.arena, needs.workspace, needs.input * COLOURS,
                                    needs.output * COLOURS};
    tess_queue *queue = NULL;
    tess_ticket ticket;
    memset(&ticket, 0, sizeof ticket);
    CHECK(tess_queue_open(device, &sizes, &queue, &error) == TESS_OK);
    CHECK(tess_queue_submit(queue, &net, &cut, 0, &image, &ticket, &error) == TESS_OK);
    CHECK(tess_queue_wait(queue, &ticket, &error) == TESS_OK);
    const tess_span rows = tess_axis_span(&cut.axis[TESS_HEIGHT], 0);
    CHECK(written == (rows.to - rows.from) * WIDTH && ticket.seconds >= 0);
    /* The device reports earlier errors when a capture ends: nothing that is under way can be trusted. */
    capture_fails = true;
    const tess_cut other = cut_of(n, 24, 1); /* shapes that it has no plan for */
    CHECK(tess_queue_submit(queue, &net, &other, 0, &image, &ticket, &error) == TESS_DEVICE_LOST);
    capture_fails = false;
    CHECK(tess_queue_submit(queue, &net, &cut, 0, &image, &ticket, &error) == TESS_DEVICE_LOST);
    (void)!tess_queue_wait(queue, &ticket, NULL);
    tess_queue_close(queue);
    CHECK(graphs == 0);
    free(out);
}

int main(void)
{
    const tess_device_options options = {.threads = 2, .memory = &test_counter};
    network n;
    test_walk();
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    make_network(&n);
    float *in = room(HEIGHT * WIDTH * COLOURS * sizeof *in),
          *whole = room(HEIGHT * WIDTH * COLOURS * sizeof *in);
    tess_rng_uniform((tess_rng_key){1, 2, 3}, 0, HEIGHT * WIDTH * COLOURS, in);
    const tess_cut one = cut_of(&n, 0, 1);
    tess_windows *windows = open_windows(&n, &one, 1);
    CHECK(run_host(windows, &n, &one, in, whole) == TESS_OK);
    tess_windows_destroy(windows);
    test_cache(&n, in, whole);
    test_resident(&n);
    test_graphs(&n, in);
    free(in), free(whole);
    drop_network(&n);
    tess_registry_close(device);
    return check_end();
}
