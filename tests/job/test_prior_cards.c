/* test_prior_cards.c: the denoiser of a solver on the cards of ranks, whose images are in host memory. The ranks are threads, and their cards do
 * nothing before somebody waits for them, so that a wait that is missing shows. Strips and slabs have the bits of the whole image; the planned bytes
 * are counted; a card that fails keeps no other rank waiting. */
#define _POSIX_C_SOURCE 200809L
#include "counter.h"
#include "job/common/beside.h"
#include "job/common/prior.h"
#include "late_device.h"
#include "rank_threads.h"
#include "support.h"

enum { RANKS = 3, CHANNELS = 3 };

static tess_error error;

/* An image or volume that ranks share. */
typedef struct trial {
    const char *model;
    tess_tensor whole; /* (1, d, h, w, c) */
    bool slices;       /* ranks have slices, else rows */
    const int64_t *from;
    const float *in;
    float *out;
    int lost; /* the rank whose card fails; -1: none */
    tess_status status[RANKS];
} trial;

static void open_engine(tess_engine *engine, tess_memory *memory)
{
    tess_common common;
    tess_common_init(&common);
    common.device = "cpu";
    common.threads = 1;
    CHECK_MSG(tess_engine_open(engine, memory, &common, &error) == TESS_OK, "%s", error.text);
}

static void load_model(tess_engine *engine, const trial *t, tess_engine_model **model)
{
    const bool volume = t->slices && t->whole.c == 1;
    CHECK_MSG((volume ? tess_engine_volume_of(engine, t->model, TESS_INFLATE_HALVES, model, &error)
                      : tess_engine_model_of(engine, t->model, model, &error)) == TESS_OK,
              "%s", error.text);
    CHECK_MSG(tess_engine_load(engine, &error) == TESS_OK, "%s", error.text);
}

static int64_t values_of(const tess_tensor *t)
{
    return t->d * t->h * t->w * t->c;
}

static void check_bytes(const tess_prior *prior, tess_memory *memory)
{
    tess_mem_usage peak;
    tess_memory_peak(memory, TESS_MEM_OF_DEVICE, &peak);
    const tess_mem_bytes *planned = &prior->choice.bytes;
    CHECK_MSG(peak.total == tess_mem_total(planned), "%llu bytes planned, %llu counted",
              (unsigned long long)tess_mem_total(planned), (unsigned long long)peak.total);
    CHECK_MSG(peak.bytes.by[TESS_MEM_HOST] == planned->by[TESS_MEM_HOST], "%llu bytes pinned, %llu planned",
              (unsigned long long)peak.bytes.by[TESS_MEM_HOST],
              (unsigned long long)planned->by[TESS_MEM_HOST]);
    CHECK(planned->by[TESS_MEM_IO] > 0);
}

static void run_rank(rank_thread *thread)
{
    trial *t = thread->user;
    const int rank = thread->dist.rank;
    const int64_t first = t->from[rank], count = t->from[rank + 1] - first;
    const int64_t row = values_of(&t->whole) / (t->slices ? t->whole.d : t->whole.h);
    static const tess_card_links links; /* pinned memory */
    tess_memory memory = {0};
    tess_engine engine;
    open_engine(&engine, &memory);
    engine.dist = &thread->dist;
    engine.separate_memory = true;
    tess_prior prior = {.engine = &engine,
                        .share = &thread->share,
                        .slices = t->slices,
                        .links = &links,
                        .image = t->slices
                                     ? tess_tensor_3d(TESS_F32, 1, count, t->whole.h, t->whole.w, t->whole.c)
                                     : tess_tensor_2d(TESS_F32, 1, count, t->whole.w, t->whole.c)};
    load_model(&engine, t, &prior.model);
    const tess_device_ops *ops = engine.device->ops;
    const tess_device_memory *copies = engine.device->memory;
    const tess_device_streams *streams = engine.device->streams;
    pthread_mutex_lock(&late_lock); /* late devices share their tables */
    late_device(engine.device);
    pthread_mutex_unlock(&late_lock);
    late_is_lost = rank == t->lost;
    const tess_prior_request request = {.limit = UINT64_MAX, .halo = TESS_HALO_AUTO};
    tess_error mine = {""};
    CHECK_MSG(tess_prior_choose(&prior, &request, &mine) == TESS_OK, "%s", mine.text);
    CHECK_MSG(tess_prior_open(&prior, &mine) == TESS_OK, "%s", mine.text);
    memset(prior.stage.data, 0xff, prior.stage.bytes);
    for (int again = 0; again < 2; again++) /* the pinned memory and the stage are used again */
        t->status[rank] = tess_prior_denoise(&prior, t->in + first * row, t->out + first * row, 0.1, &mine);
    CHECK_MSG(t->status[rank] == (rank == t->lost ? TESS_DEVICE_LOST : TESS_OK), "rank %d: %s", rank,
              mine.text);
    CHECK((tess_share_agree(&thread->share, t->status[rank], &mine) == TESS_OK) == (t->lost < 0));
    check_bytes(&prior, &memory);
    tess_prior_close(&prior);
    engine.device->ops = ops;
    engine.device->memory = copies;
    engine.device->streams = streams;
    late_is_lost = false;
    tess_engine_close(&engine);
}

static void test(const char *model, tess_tensor whole, bool slices, const int64_t *from, int lost)
{
    const int64_t count = values_of(&whole);
    float *in = room((size_t)count * sizeof *in), *alone = room((size_t)count * sizeof *alone),
          *together = room((size_t)count * sizeof *together);
    tess_engine engine;
    tess_rng_normal((tess_rng_key){5, 0, 0}, 0, count, in);
    trial t = {model, whole, slices, from, in, together, lost, {TESS_OK}};
    tess_prior prior = {.engine = &engine, .image = whole};
    open_engine(&engine, &test_counter);
    load_model(&engine, &t, &prior.model);
    const tess_prior_request one = {.limit = UINT64_MAX, .tile_height = TESS_TILE_WHOLE};
    CHECK_MSG(tess_prior_choose(&prior, &one, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_prior_open(&prior, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_prior_denoise(&prior, in, alone, 0.1, &error) == TESS_OK, "%s", error.text);
    tess_prior_close(&prior);
    tess_engine_close(&engine);
    rank_threads_run(RANKS, from, run_rank, &t);
    CHECK_MSG(lost >= 0 || memcmp(alone, together, (size_t)count * sizeof *alone) == 0,
              "%s: ranks have the bits of the whole", model);
    free(in), free(alone), free(together);
}

/* The CPU beside a card: whatever it allocates is host memory, and not in the card's total. */
static void test_beside(void)
{
    tess_memory memory = {0};
    tess_engine engine;
    tess_beside beside = {NULL, NULL};
    tess_block block;
    tess_mem_usage held;
    open_engine(&engine, &memory);
    engine.separate_memory = true;
    CHECK_MSG(tess_beside_open(&beside, &engine, &error) == TESS_OK, "%s", error.text);
    tess_device *device = beside.device;
    CHECK(device != engine.device && device->stop == &engine.stop && beside.rates);
    CHECK(device->memory->alloc(device, &block, TESS_MEM_WORKSPACE, 10000, &error) == TESS_OK);
    tess_memory_held(&memory, tess_engine_scope(&engine), &held);
    CHECK(held.total == 0 && held.bytes.by[TESS_MEM_HOST] == device->memory->granted(device, 10000));
    device->memory->free(device, &block);
    tess_memory_held(&memory, tess_engine_scope(&engine), &held);
    CHECK(held.bytes.by[TESS_MEM_HOST] == 0);
    tess_beside_close(&beside);
    tess_beside_close(&beside);
    tess_engine_close(&engine);
}

int main(void)
{
    static const int64_t rows[] = {0, 32, 96, 137}, slices[] = {0, 8, 16, 22}, single[] = {0, 1, 4, 5};
    const tess_tensor colours = tess_tensor_2d(TESS_F32, 1, 137, 45, CHANNELS),
                      gray = tess_tensor_2d(TESS_F32, 1, 137, 45, 1);
    test_beside();
    test("drunet-color-small", colours, false, rows, -1);
    test("drunet-gray-small", colours, false, rows, -1); /* plane by plane */
    test("drunet-gray-small", gray, false, rows, -1);
    test("drunet-gray-small", tess_tensor_3d(TESS_F32, 1, 22, 24, 19, 1), true, slices, -1); /* made 3-D */
    test("drunet-color-small", tess_tensor_3d(TESS_F32, 1, 5, 24, 19, CHANNELS), true, single, -1);
    test("drunet-gray-small", gray, false, rows, 1);
    return check_end();
}
