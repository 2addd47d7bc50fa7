/* The queue to a device with separate memory, tested on the CPU: threads with images of different sizes, sample
 * types, alpha, tiles, batches and models share one queue, and each gets the bits of the whole image computed
 * directly. Then whole jobs: equal files, equal counters, and failing allocations do no harm. */
#define _GNU_SOURCE
#include "window/queue.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/pool.h"
#include "check.h"
#include "counter.h"
#include "job/denoise/run/image.h"
#include "model/model.h"
#include "support.h"
#include "tensor/samples.h"

enum { IMAGES = 6, MODELS = 2, ROUNDS = 3 };

typedef struct network {
    tess_weights *file;
    tess_model_net model;
    tess_bound *bound;
    tess_block weights;
} network;

/* One image, how it is cut, and what the queue made of it. */
typedef struct picture {
    tess_pixels pixels;
    const network *net;
    tess_cut cut;
    size_t in_row, out_row;
    char *in, *out, *expected;
    tess_queue *queue;
} picture;

static char folder[256];

/* Keeps the file: the name lets a caller read it again. */
static void make_network(tess_device *device, int64_t channels, char path[320], network *n)
{
    snprintf(path, 320, "%s/net%lld.safetensors", folder, (long long)channels);
    tensor_list list = {0};
    tess_error error = {{0}};
    add_drunet(&list, &(drunet_shape){"", channels, {16, 16, 16, 16}, 1, true});
    save_tensors(&list, path);
    CHECK_MSG(tess_weights_open(path, &n->file, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_model_recognise(n->file, &n->model, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_bound_create(n->model.net, device, TESS_F32, &n->bound, &error) == TESS_OK);
    CHECK(device->memory->alloc(device, &n->weights, TESS_MEM_WEIGHTS, tess_bound_weight_bytes(n->bound),
                                &error) == TESS_OK);
    CHECK(tess_bound_load(n->bound, n->file, n->weights.data, &error) == TESS_OK);
}

static void drop_network(tess_device *device, network *n)
{
    device->memory->free(device, &n->weights);
    tess_bound_destroy(n->bound);
    tess_model_clear(&n->model);
    tess_weights_close(n->file);
}

static void make_picture(dice *d, int index, const network *nets, tess_pool *pool, picture *p)
{
    static const tess_dtype types[IMAGES] = {TESS_U8, TESS_U8, TESS_U16, TESS_F32, TESS_U8, TESS_I16};
    const bool alpha = index % 3 == 1, planes = index % 2 == 1;
    const int64_t height = pick(d, 40, 300), width = pick(d, 40, 400);
    memset(p, 0, sizeof *p);
    p->net = &nets[planes];
    p->pixels = (tess_pixels){.image = {.height = height,
                                        .width = width,
                                        .channels = 3 + alpha,
                                        .alpha = alpha,
                                        .dtype = types[index],
                                        .full_scale = types[index] == TESS_U8    ? 255
                                                      : types[index] == TESS_U16 ? 65535
                                                      : types[index] == TESS_I16 ? 32767
                                                                                 : 1},
                              .colours = 3,
                              .planes = planes ? 3 : 1,
                              .noise_map = true,
                              .float_out = index == 4,
                              .sigma = {0.1f, 0.1f, 0.1f},
                              .pool = pool};
    const size_t samples = (size_t)(width * p->pixels.image.channels), size = tess_dtype_size(types[index]);
    p->in_row = samples * size;
    p->out_row = samples * (p->pixels.float_out ? sizeof(float) : size);
    p->in = room(p->in_row * (size_t)height);
    p->out = room(p->out_row * (size_t)height);
    p->expected = room(p->out_row * (size_t)height);
    for (int64_t i = 0; i < height * (int64_t)samples; i++) {
        float value = (float)(roll(d) % 1000) / 1000;
        tess_samples_from_float(types[index], p->pixels.image.full_scale, &value, 1,
                                p->in + (size_t)i * size);
    }
    const int64_t align = tess_bound_alignment(p->net->bound);
    const int64_t halo = tess_round_up(tess_bound_reach(p->net->bound), align);
    const tess_axis rows =
        tess_axis_cut(tess_round_up(height, 8), pick(d, 0, 1) ? pick(d, 32, 200) : 0, halo, align);
    const tess_axis cols = pick(d, 0, 1)
                               ? tess_axis_cut(tess_round_up(width, 8), pick(d, 32, 200), halo, align)
                               : tess_axis_split(tess_round_up(width, 8), pick(d, 2, 4), halo, align);
    p->cut = tess_cut_image(&rows, &cols, pick(d, 1, 4));
}

/* The whole image at once, gathered and scattered on the host. */
static void expect(const picture *p, tess_device *device, tess_pool *pool)
{
    const tess_axis rows = tess_axis_cut(p->cut.axis[TESS_HEIGHT].size, 0, 0, 8),
                    cols = tess_axis_cut(p->cut.axis[TESS_WIDTH].size, 0, 0, 8);
    const tess_plan_shape shape = {1, rows.size, cols.size};
    tess_error error = {{0}};
    ready r;
    CHECK_MSG(ready_make(p->net->model.net, device, TESS_F32, p->net->file, shape, &r, &error) == TESS_OK,
              "%s", error.text);
    tess_pixels pixels = p->pixels;
    const tess_span span = tess_axis_span(&cols, 0);
    pixels.scratch = room(tess_pixels_scratch(&pixels, tess_pool_threads(pool)) *
                          (size_t)(span.window_to - span.window_from));
    const tess_strip strip = {.span = tess_axis_span(&rows, 0),
                              .count = pixels.image.height,
                              .out = p->expected,
                              .in = p->in,
                              .in_capacity = pixels.image.height,
                              .image_rows = pixels.image.height,
                              .in_row_bytes = p->in_row,
                              .out_row_bytes = p->out_row};
    size_t in_at, out_at;
    const tess_tensor in = tess_net_plan_input(r.plan, &in_at), out = tess_net_plan_output(r.plan, &out_at);
    for (int64_t plane = 0; plane < pixels.planes; plane++) {
        tess_pixels_gather(&pixels, &strip, &span, plane, &in, 0, (char *)r.arena.data + in_at);
        tess_net_plan_run(r.plan, r.arena.data, r.workspace.data, r.weights.data, NULL);
        tess_pixels_scatter(&pixels, &strip, &span, plane, &out, 0, (char *)r.arena.data + out_at);
    }
    free(pixels.scratch);
    ready_clear(&r);
}

static void grow(size_t *most, size_t wanted)
{
    *most = wanted > *most ? wanted : *most;
}

static void fit_queue(const picture *p, tess_queue_sizes *sizes)
{
    const int64_t h = tess_axis_largest_window(&p->cut.axis[TESS_HEIGHT]),
                  w = tess_axis_largest_window(&p->cut.axis[TESS_WIDTH]), batch = p->cut.batch;
    tess_net_plan *plan = NULL;
    tess_error error = {{0}};
    CHECK(tess_net_plan_create(p->net->bound, (tess_plan_shape){batch, h, w}, &plan, &error) == TESS_OK);
    grow(&sizes->arena, tess_net_plan_arena_bytes(plan));
    grow(&sizes->workspace, tess_net_plan_workspace_bytes(plan));
    tess_net_plan_destroy(plan);
    const size_t width = (size_t)p->pixels.image.width;
    grow(&sizes->in_stage, (size_t)(batch * h * w) * (p->in_row / width));
    grow(&sizes->out_stage, (size_t)(batch * h * w) * (p->out_row / width));
}

static tess_status source(void *user, int64_t first, int64_t count, void *rows, tess_error *error)
{
    (void)error;
    const picture *p = user;
    memcpy(rows, p->in + (size_t)first * p->in_row, (size_t)count * p->in_row);
    return TESS_OK;
}

static tess_status sink(void *user, int64_t first, int64_t count, const void *rows, tess_error *error)
{
    (void)error;
    const picture *p = user;
    memcpy(p->out + (size_t)first * p->out_row, rows, (size_t)count * p->out_row);
    return TESS_OK;
}

static tess_status worker(void *user, const tess_strip *strip, tess_error *error)
{
    const picture *p = user;
    const tess_window_net net = {p->net->bound, p->net->weights.data, p->pixels.planes};
    tess_image_strip s;
    memset(&s, 0, sizeof s);
    tess_image_strip_set(&s, &p->pixels, strip);
    const tess_status status =
        tess_queue_submit(p->queue, &net, &p->cut, strip->index, &s.image, &s.ticket, error);
    const tess_status done = tess_queue_wait(p->queue, &s.ticket, status == TESS_OK ? error : NULL);
    return status == TESS_OK ? done : status;
}

static tess_status run_picture(void *arg, tess_error *error)
{
    picture *p = arg;
    const tess_ring_settings ring = {.rows = p->cut.axis[TESS_HEIGHT],
                                     .image_rows = p->pixels.image.height,
                                     .in_row_bytes = p->in_row,
                                     .out_row_bytes = p->out_row,
                                     .source = source,
                                     .worker = worker,
                                     .sink = sink,
                                     .user = p};
    void *buffer = room(tess_ring_bytes(&ring.rows, ring.image_rows, p->in_row, p->out_row));
    tess_status status = tess_ring_run(&ring, buffer, error);
    free(buffer);
    return status;
}

static void test_shared_queue(tess_device *device, tess_pool *pool, const network *nets, dice *d)
{
    picture pictures[IMAGES];
    tess_worker *workers[IMAGES];
    tess_queue_sizes sizes = {0};
    tess_queue *queue = NULL;
    tess_error error = {{0}};
    for (int i = 0; i < IMAGES; i++) {
        make_picture(d, i, nets, pool, &pictures[i]);
        expect(&pictures[i], device, pool);
        fit_queue(&pictures[i], &sizes);
    }
    CHECK(tess_queue_host_bytes(&sizes) <= (size_t)256 << 20);
    CHECK_MSG(tess_queue_open(device, &sizes, &queue, &error) == TESS_OK, "%s", error.text);
    for (int i = 0; i < IMAGES; i++) {
        pictures[i].queue = queue;
        CHECK(tess_worker_create(&workers[i], &error) == TESS_OK);
        tess_worker_start(workers[i], run_picture, &pictures[i]);
    }
    for (int i = 0; i < IMAGES; i++) {
        picture *p = &pictures[i];
        CHECK_MSG(tess_worker_wait(workers[i], &error) == TESS_OK, "%s", error.text);
        CHECK_MSG(memcmp(p->out, p->expected, p->out_row * (size_t)p->pixels.image.height) == 0,
                  "image %d, %lld x %lld, %lld x %lld tiles, batch %lld", i,
                  (long long)p->pixels.image.height, (long long)p->pixels.image.width,
                  (long long)p->cut.axis[TESS_HEIGHT].tiles, (long long)p->cut.axis[TESS_WIDTH].tiles,
                  (long long)p->cut.batch);
        tess_worker_destroy(workers[i]);
        free(p->in), free(p->out), free(p->expected);
    }
    tess_queue_figures figures;
    tess_queue_measured(queue, &figures);
    CHECK(figures.seconds > 0 && figures.busy > 0 && figures.busy <= 1.0001 && figures.shapes >= 2);
    tess_queue_close(queue);
}

/* A window that is larger than the queue was opened for is refused, and the queue goes on. */
static void test_too_large(tess_device *device, tess_pool *pool, const network *nets, dice *d)
{
    picture p;
    tess_queue_sizes sizes = {0};
    tess_error error = {{0}};
    make_picture(d, 0, nets, pool, &p);
    fit_queue(&p, &sizes);
    sizes.in_stage = 64;
    CHECK(tess_queue_open(device, &sizes, &p.queue, &error) == TESS_OK);
    CHECK(run_picture(&p, &error) == TESS_INTERNAL);
    tess_queue_close(p.queue);
    free(p.in), free(p.out), free(p.expected);
}

static tess_status (*event_sync)(tess_device *, tess_event *, tess_error *);
static _Atomic int good_syncs;
static bool only_once; /* as the runtime reports errors that it recovers from */

static tess_status failing_sync(tess_device *device, tess_event *event, tess_error *error)
{
    const int left = atomic_fetch_sub(&good_syncs, 1);
    if (left > 0 || (left < 0 && only_once))
        return event_sync(device, event, error);
    return tess_fail(error, only_once ? TESS_INTERNAL : TESS_DEVICE_LOST, "the card fell off the bus");
}

/* If the device fails, every user of the queue gets an error and none waits forever. A failed sync may concern any
 * window, so after one all fail. */
static void test_lost(tess_device *device, tess_pool *pool, const network *nets, dice *d)
{
    const tess_device_streams *streams = device->streams;
    tess_device_streams failing = *streams;
    event_sync = streams->event_sync;
    failing.event_sync = failing_sync;
    for (int turn = 0; turn < 24; turn++) {
        const int syncs = turn / 2;
        only_once = turn % 2;
        picture p[2];
        tess_worker *workers[2];
        tess_queue_sizes sizes = {0};
        tess_queue *queue = NULL;
        tess_error error = {{0}};
        for (int i = 0; i < 2; i++) {
            make_picture(d, i, nets, pool, &p[i]);
            fit_queue(&p[i], &sizes);
        }
        CHECK(tess_queue_open(device, &sizes, &queue, &error) == TESS_OK);
        device->streams = &failing;
        atomic_store(&good_syncs, syncs);
        for (int i = 0; i < 2; i++) {
            p[i].queue = queue;
            CHECK(tess_worker_create(&workers[i], &error) == TESS_OK);
            tess_worker_start(workers[i], run_picture, &p[i]);
        }
        int lost = 0;
        for (int i = 0; i < 2; i++) {
            tess_status status = tess_worker_wait(workers[i], &error);
            CHECK(status == TESS_OK || status == TESS_DEVICE_LOST || (only_once && status == TESS_INTERNAL));
            lost += status != TESS_OK;
            tess_worker_destroy(workers[i]);
        }
        const bool failed = atomic_load(&good_syncs) < 0;
        CHECK(lost > 0 || !failed);
        CHECK(!failed || run_picture(&p[0], &error) == TESS_DEVICE_LOST);
        for (int i = 0; i < 2; i++)
            free(p[i].in), free(p[i].out), free(p[i].expected);
        tess_queue_close(queue);
        device->streams = streams;
    }
}

static void write_npy(const char *to, int64_t height, int64_t width, dice *d)
{
    char header[128];
    snprintf(header, sizeof header, "{'descr': '|u1', 'fortran_order': False, 'shape': (%lld, %lld, 3), }",
             (long long)height, (long long)width);
    FILE *file = fopen(to, "wb");
    if (!file)
        abort();
    fprintf(file, "%cNUMPY%c%c%c%c%-117s\n", 0x93, 1, 0, 118, 0, header);
    for (int64_t i = 0; i < height * width * 3; i++)
        fputc((int)(roll(d) % 256), file);
    fclose(file);
}

/* A job whose n-th allocation fails ends with a message or, planned again, with the right file. */
static void test_failing_door(const char *model, dice *d)
{
    char in[320], out[320], whole[320];
    snprintf(in, sizeof in, "%s/in.npy", folder);
    snprintf(out, sizeof out, "%s/out.npy", folder);
    snprintf(whole, sizeof whole, "%s/whole.npy", folder);
    write_npy(in, 50, 70, d);
    tess_context *context = NULL;
    CHECK(tess_context_create(&context) == TESS_OK);
    tess_denoise_settings settings;
    tess_denoise_settings_init(&settings);
    settings.common.device = "cpu";
    settings.common.threads = 2;
    settings.input = in;
    settings.output = whole;
    settings.model = model;
    settings.sigma = 0.1;
    char *record = NULL;
    CHECK(tess_denoise(context, &settings, &record) == TESS_OK);
    tess_record_free(record);
    settings.output = out;
    setenv("TESSERA_QUEUE", "1", 1);
    int failed = 0, done = 0, replanned = 0;
    for (uint64_t n = 1; n < 2000 && done < 400; n += n < 250 ? 1 : 23) {
        unlink(out);
        tess_mem_fail_at(n);
        tess_status status = tess_denoise(context, &settings, &record);
        tess_mem_fail_at(0);
        struct stat facts, expected;
        const bool there = stat(out, &facts) == 0; /* also when only the record could not be made */
        CHECK(!there || (stat(whole, &expected) == 0 && facts.st_size == expected.st_size));
        CHECK_MSG(status == TESS_OK ? there : tess_context_error(context)[0] != '\0', "%d", (int)status);
        done += status == TESS_OK;
        replanned += record && strstr(record, "re-planned: the card had");
        failed += status != TESS_OK;
        tess_record_free(record);
        record = NULL;
    }
    CHECK_MSG(failed > 20 && done > 0 && replanned > 0, "%d failed, %d done, %d re-planned", failed, done,
              replanned);
    unsetenv("TESSERA_QUEUE");
    tess_context_destroy(context);
    unlink(in), unlink(out), unlink(whole);
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tessera-queue-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return check_skip("no folder for temporary files");
    setenv("TESSERA_CACHE", folder, 1);
    const tess_device_options options = {.memory = &test_counter, .threads = 2};
    tess_device *device = NULL;
    tess_pool *pool = NULL;
    tess_error error = {{0}};
    dice d = {7};
    network nets[MODELS];
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_pool_create(2, &pool, &error) == TESS_OK);
    char colour[320], gray[320];
    make_network(device, 3, colour, &nets[0]);
    make_network(device, 1, gray, &nets[1]);
    CHECK_MSG(tess_queue_warm(device, nets[0].bound, nets[0].model.net, &error) == TESS_OK, "%s", error.text);
    for (int i = 0; i < ROUNDS; i++)
        test_shared_queue(device, pool, nets, &d);
    test_too_large(device, pool, nets, &d);
    test_lost(device, pool, nets, &d);
    for (int i = 0; i < MODELS; i++)
        drop_network(device, &nets[i]);
    tess_pool_destroy(pool);
    tess_registry_close(device);
    test_failing_door(colour, &d);
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
    return check_end();
}
