/* stage.c: the memory of a stage, and its prepared ops. */
#include "train/statistics/stage.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "train/statistics/stage_impl.h"

enum { VALUES = 32 << 20, LEAST_LOCAL_ROWS = 32, KEEP_ALIGNED = 64, HOST_READERS = 4 };
enum { SMALL_SLOT = 8 << 20, FEW_SLOTS = 4, HOST_SLOTS = 2 };

/* True if a tap or the score reads pixels behind a cut, or something that only the host gathers. */
static bool needs_host(const tess_spectral_plan *plan)
{
    bool needs = tess_spectral_score_at(plan) != TESS_NODE_DATA;
    for (int t = 0; t < plan->taps; t++)
        if (!(plan->tap[t].needs & (TESS_NEED_SCORES | TESS_NEED_SCORE_ORDER)))
            needs |= plan->tap[t].at != TESS_NODE_DATA ||
                     (plan->tap[t].needs & (TESS_NEED_CHANNEL_RANGES | TESS_NEED_MEDIANS));
    return needs;
}

static int64_t halo_of(const tess_spectral_plan *plan)
{
    const tess_node *node = &plan->pipeline.nodes[tess_pipeline_score(&plan->pipeline)];
    return tess_node_scope_of(node) == TESS_SCOPE_LOCAL ? (int64_t)node->values[TESS_RX_OUTER] / 2 : 0;
}

static bool is_stream(const tess_spectral_plan *plan)
{
    return tess_node_scope_of(&plan->pipeline.nodes[tess_pipeline_score(&plan->pipeline)]) ==
           TESS_SCOPE_STREAM;
}

static bool in_place(const tess_spectral_plan *plan, const tess_pixel_set *set)
{
    bool fits = set->at && !needs_host(plan);
    for (int64_t i = 0; i < set->images; i++)
        fits = fits && set->image[i].dtype == TESS_F32 && !tess_pixel_has_gaps(&set->image[i]);
    return fits;
}

static int64_t rows_for(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                        const tess_pixel_image *image, bool whole)
{
    const tess_node *score = &plan->pipeline.nodes[tess_pipeline_score(&plan->pipeline)];
    const int64_t row = image->width * tess_spectral_widest(plan) * (int64_t)sizeof(float);
    int64_t rows = whole && !settings->block_rows ? image->height
                   : settings->block_rows         ? settings->block_rows
                                                  : tess_max_i64(1, VALUES / tess_max_i64(row, 1));
    if (halo_of(plan) && !settings->block_rows)
        rows = tess_max_i64(rows, LEAST_LOCAL_ROWS);
    if (is_stream(plan)) /* its steps are part of the result */
        rows = tess_max_i64((int64_t)score->values[TESS_RX_EVERY], (int64_t)score->values[TESS_RX_WARMUP]);
    return rows;
}

int64_t tess_pixel_block_rows(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                              const tess_pixel_image *image)
{
    return tess_min_i64(rows_for(settings, plan, image, false), image->height);
}

int64_t tess_pixel_stage_rows(const tess_pixel_stage *stage, const tess_pixel_image *image)
{
    return tess_min_i64(rows_for(&stage->settings, stage->plan, image, stage->sizes.in_place), image->height);
}

/* Small blocks take as long to hand over as to copy: more of them are on their way. */
static int slots_for(const tess_pixel_stage_sizes *sizes, bool separate, int64_t blocks)
{
    const int most = !separate ? HOST_SLOTS : sizes->samples <= SMALL_SLOT ? TESS_PIXEL_SLOTS : FEW_SLOTS;
    return (int)tess_min_i64(blocks, most);
}

static tess_status workspace_for(const tess_pixel_stage_settings *settings, const tess_op *op,
                                 tess_pixel_stage_sizes *sizes, tess_error *error)
{
    tess_op_needs needs;
    TESS_TRY(settings->device->ops->query(settings->device, op, &needs, error));
    sizes->workspace = needs.workspace > sizes->workspace ? needs.workspace : sizes->workspace;
    return TESS_OK;
}

/* Asks the device about every op that the stage will run on its largest block. */
static tess_status ask(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                       const tess_pixel_image *image, tess_pixel_stage_sizes *sizes, tess_error *error)
{
    const int score = tess_pipeline_score(&plan->pipeline);
    const tess_node *node = &plan->pipeline.nodes[score];
    const int64_t n = sizes->pixels;
    tess_op op = tess_pixel_import_op(image->dtype, n, plan->bands);
    if (image->dtype != TESS_F32)
        TESS_TRY(workspace_for(settings, &op, sizes, error));
    for (int t = 0; t < plan->taps; t++) {
        const tess_tap *tap = &plan->tap[t];
        if (tap->needs & (TESS_NEED_SCORES | TESS_NEED_SCORE_ORDER))
            continue;
        op = tess_pixel_moments_op(n, tess_spectral_gives(plan, tap->at), tap->needs & TESS_NEED_COVARIANCE,
                                   true);
        TESS_TRY(workspace_for(settings, &op, sizes, error));
    }
    if (tess_node_scope_of(node) == TESS_SCOPE_LOCAL) {
        op = tess_pixel_local_op(n / image->width, image->width, tess_spectral_reads(plan, score),
                                 (int)node->values[TESS_RX_INNER], (int)node->values[TESS_RX_OUTER],
                                 node->values[TESS_RX_EPS], true);
        return workspace_for(settings, &op, sizes, error);
    }
    if (tess_spectral_by_network(plan)) { /* its input may be condensed */
        op = tess_pixel_moments_op(n, tess_spectral_gives(plan, tess_spectral_network_at(plan)), true, true);
        return workspace_for(settings, &op, sizes, error);
    }
    const int channels = tess_spectral_gives(plan, tess_spectral_cut_before(plan, score));
    if (is_stream(plan)) {
        op = tess_pixel_moments_op(n, channels, true, true);
        TESS_TRY(workspace_for(settings, &op, sizes, error));
    }
    op = tess_pixel_score_op(n, channels, tess_spectral_reads(plan, score));
    return workspace_for(settings, &op, sizes, error);
}

static tess_status plan_network(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                                tess_pixel_stage_sizes *sizes, tess_error *error)
{
    tess_pixel_network network;
    TESS_TRY(tess_pixel_network_create(settings->device, plan, sizes->pixels, &network, error));
    sizes->n_weights = network.weight_bytes;
    sizes->n_arena = network.arena_bytes;
    sizes->n_workspace = network.workspace_bytes;
    tess_pixel_network_destroy(&network);
    return TESS_OK;
}

/* A pixel whose inner window covers the whole image has no ring. */
static tess_status check_rings(const tess_spectral_plan *plan, const tess_pixel_image *image,
                               tess_error *error)
{
    const tess_node *node = &plan->pipeline.nodes[tess_pipeline_score(&plan->pipeline)];
    const int64_t inner = halo_of(plan) ? (int64_t)node->values[TESS_RX_INNER] : 0;
    if (image->height > inner || image->width > inner)
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT,
                     "node '%s' (rx): an image of %lld x %lld pixels has no ring around an inner window of "
                     "%lld; set a smaller inner",
                     node->name, (long long)image->height, (long long)image->width, (long long)inner);
}

tess_status tess_pixel_stage_plan(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                                  const tess_pixel_set *set, tess_pixel_stage_sizes *sizes, tess_error *error)
{
    const bool separate = !settings->device->host_memory;
    *sizes = (tess_pixel_stage_sizes){.halo = halo_of(plan),
                                      .widest = tess_spectral_widest(plan),
                                      .on_host = needs_host(plan),
                                      .in_place = in_place(plan, set)};
    size_t sample = 1;
    bool nodata = false, imported = false;
    int64_t blocks = 0;
    for (int64_t i = 0; i < set->images; i++) {
        const tess_pixel_image *image = &set->image[i];
        const int64_t rows = tess_min_i64(rows_for(settings, plan, image, sizes->in_place), image->height);
        TESS_TRY(check_rings(plan, image, error));
        const int64_t pixels = tess_min_i64(rows + 2 * sizes->halo, image->height) * image->width;
        sizes->rows = tess_max_i64(sizes->rows, rows);
        sizes->pixels = tess_max_i64(sizes->pixels, pixels);
        sample = tess_dtype_size(image->dtype) > sample ? tess_dtype_size(image->dtype) : sample;
        nodata |= tess_pixel_has_gaps(image);
        imported |= image->dtype != TESS_F32;
        blocks += tess_min_i64(TESS_PIXEL_SLOTS, tess_ceil_div(image->height, tess_max_i64(rows, 1)));
    }
    for (int64_t i = 0; i < set->images; i++)
        if (i == 0 || set->image[i].width != set->image[i - 1].width ||
            set->image[i].dtype != set->image[i - 1].dtype)
            TESS_TRY(ask(settings, plan, &set->image[i], sizes, error));
    if (sizes->in_place)
        TESS_TRY(tess_pixel_ask_joined(settings, plan, set, &sizes->workspace, error));
    const size_t n = (size_t)sizes->pixels, bands = (size_t)plan->bands, widest = (size_t)sizes->widest;
    blocks = sizes->in_place ? 0 : blocks;
    sizes->uploads = separate ? (int)tess_min_i64(blocks, TESS_PIXEL_UPLOADS) : 0;
    sizes->keep_at = tess_align_size(n * bands * sample, KEEP_ALIGNED);
    sizes->samples = sizes->keep_at + (nodata ? n : 0);
    sizes->slots = slots_for(sizes, separate, blocks);
    sizes->values = sizes->on_host ? n * bands * sizeof(float) : 0;
    sizes->behind = sizes->on_host ? n * widest * sizeof(float) : 0;
    sizes->trimmed = plan->trim_tap >= 0 && !settings->sums ? n : 0;
    sizes->scores = settings->sums ? 0 : n * sizeof(float);
    sizes->d_samples = separate ? sizes->samples : 0;
    sizes->d_values = imported ? n * bands * sizeof(float) : 0;
    sizes->d_behind = separate ? sizes->behind : 0;
    sizes->d_trimmed = separate ? sizes->trimmed : 0;
    sizes->d_scores = separate ? sizes->scores : 0;
    if (settings->sums)
        return TESS_OK;
    if (tess_spectral_by_network(plan))
        return plan_network(settings, plan, sizes, error);
    sizes->d_centre = widest * sizeof(float);
    sizes->d_factor = widest * widest * sizeof(float);
    return TESS_OK;
}

typedef struct piece {
    size_t bytes;
    tess_block *block;
    tess_mem_category category;
    bool host, pinned;
} piece;

enum { PIECES = 15 + TESS_PIXEL_SLOTS + TESS_PIXEL_UPLOADS };

static void list_pieces(const tess_pixel_stage_sizes *s, tess_pixel_stage *e, piece pieces[PIECES])
{
    const piece list[] = {{s->values, &e->values, TESS_MEM_HOST, true, false},
                          {s->behind, &e->behind, TESS_MEM_HOST, true, false},
                          {s->trimmed, &e->trimmed, TESS_MEM_HOST, true, false},
                          {s->scores, &e->scores, TESS_MEM_HOST, true, false},
                          {s->d_values, &e->d_values, TESS_MEM_ACTIVATIONS, false, false},
                          {s->d_behind, &e->d_behind, TESS_MEM_ACTIVATIONS, false, false},
                          {s->d_trimmed, &e->d_trimmed, TESS_MEM_IO, false, false},
                          {s->d_scores, &e->d_scores, TESS_MEM_IO, false, false},
                          {s->n_weights, &e->network.weights, TESS_MEM_WEIGHTS, false, false},
                          {s->n_arena, &e->network.arena, TESS_MEM_ACTIVATIONS, false, false},
                          {s->n_workspace, &e->network.workspace, TESS_MEM_WORKSPACE, false, false},
                          {s->d_centre, &e->d_centre, TESS_MEM_WEIGHTS, false, false},
                          {s->d_factor, &e->d_factor, TESS_MEM_WEIGHTS, false, false},
                          {s->workspace, &e->workspace, TESS_MEM_WORKSPACE, false, false}};
    int count = 0;
    memset(pieces, 0, PIECES * sizeof *pieces);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        pieces[count++] = list[i];
    for (int i = 0; i < s->slots; i++)
        pieces[count++] = (piece){s->samples, &e->samples[i], TESS_MEM_HOST, true, true};
    for (int i = 0; i < s->uploads; i++)
        pieces[count++] = (piece){s->d_samples, &e->d_samples[i], TESS_MEM_IO, false, false};
}

void tess_pixel_stage_bytes(const tess_pixel_stage_settings *settings, const tess_pixel_stage_sizes *sizes,
                            tess_mem_bytes *bytes)
{
    tess_pixel_stage none;
    piece pieces[PIECES];
    tess_device *device = settings->device;
    list_pieces(sizes, &none, pieces);
    for (int i = 0; i < PIECES; i++)
        if (pieces[i].bytes)
            bytes->by[pieces[i].category] += pieces[i].host
                                                 ? tess_block_granted(pieces[i].bytes)
                                                 : device->memory->granted(device, pieces[i].bytes);
}

static tess_status allocate(const tess_pixel_stage *stage, const piece *p, tess_error *error)
{
    tess_device *device = stage->settings.device;
    if (p->pinned)
        return device->memory->host_alloc(device, p->block, p->bytes, error);
    if (p->host)
        return tess_block_alloc_watched(stage->settings.memory, p->block, p->category, p->bytes,
                                        stage->settings.stop, error);
    return device->memory->alloc(device, p->block, p->category, p->bytes, error);
}

static tess_status make_streams(tess_pixel_stage *stage, tess_error *error)
{
    tess_device *device = stage->settings.device;
    if (!stage->sizes.uploads)
        return TESS_OK;
    TESS_TRY(device->streams->create(device, &stage->upload, error));
    for (int i = 0; i < stage->sizes.slots; i++)
        TESS_TRY(device->streams->event_create(device, &stage->uploaded[i], error));
    for (int i = 0; i < stage->sizes.uploads; i++)
        TESS_TRY(device->streams->event_create(device, &stage->used[i], error));
    return TESS_OK;
}

static tess_status make_all(tess_pixel_stage *stage, const tess_pixel_set *set, tess_error *error)
{
    piece pieces[PIECES];
    TESS_TRY(tess_pixel_stage_plan(&stage->settings, stage->plan, set, &stage->sizes, error));
    if (tess_spectral_by_network(stage->plan) && !stage->settings.sums)
        TESS_TRY(tess_pixel_network_create(stage->settings.device, stage->plan, stage->sizes.pixels,
                                           &stage->network, error));
    list_pieces(&stage->sizes, stage, pieces);
    for (int i = 0; i < PIECES; i++)
        if (pieces[i].bytes)
            TESS_TRY(allocate(stage, &pieces[i], error));
    TESS_TRY(make_streams(stage, error));
    for (int i = 0; i < stage->sizes.slots; i++) {
        stage->blocks.slot[i].samples = stage->samples[i].data;
        stage->blocks.slot[i].keep = (uint8_t *)stage->samples[i].data + stage->sizes.keep_at;
    }
    if (stage->sizes.in_place)
        return TESS_OK;
    /* A link takes what several threads copy; beside a computation on the same processors, few are enough. */
    const int most = stage->settings.device->host_memory ? HOST_READERS : TESS_PIXEL_READERS,
              threads = tess_cpu_count() < most ? tess_cpu_count() : most;
    return tess_pixel_blocks_open(&stage->blocks, stage->sizes.slots, threads, stage->settings.stop, error);
}

tess_status tess_pixel_stage_create(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                                    const tess_pixel_set *set, tess_pixel_stage *stage, tess_error *error)
{
    *stage = (tess_pixel_stage){.settings = *settings, .plan = plan};
    const tess_status status = make_all(stage, set, error);
    if (status != TESS_OK)
        tess_pixel_stage_destroy(stage);
    return status;
}

static void destroy_streams(tess_pixel_stage *stage)
{
    tess_device *device = stage->settings.device;
    tess_error unused;
    if (!stage->sizes.uploads)
        return;
    (void)!device->streams->sync(device, stage->upload, &unused); /* copies of pinned memory end here */
    for (int i = 0; i < TESS_PIXEL_SLOTS; i++)
        if (stage->uploaded[i])
            device->streams->event_destroy(device, stage->uploaded[i]);
    for (int i = 0; i < TESS_PIXEL_UPLOADS; i++)
        if (stage->used[i])
            device->streams->event_destroy(device, stage->used[i]);
    device->streams->destroy(device, stage->upload);
}

void tess_pixel_stage_destroy(tess_pixel_stage *stage)
{
    tess_device *device = stage->settings.device;
    piece pieces[PIECES];
    if (!device)
        return;
    tess_pixel_blocks_close(&stage->blocks); /* after what is being read */
    destroy_streams(stage);
    for (int i = 0; i < TESS_PIXEL_OPS; i++)
        if (stage->ops[i].prepared)
            device->ops->release(device, stage->ops[i].prepared);
    tess_pixel_network_destroy(&stage->network);
    list_pieces(&stage->sizes, stage, pieces);
    for (int i = 0; i < PIECES; i++) {
        if (!pieces[i].block || !pieces[i].block->data)
            continue;
        if (pieces[i].pinned)
            device->memory->host_free(device, pieces[i].block);
        else if (pieces[i].host)
            tess_block_free(pieces[i].block);
        else
            device->memory->free(device, pieces[i].block);
    }
    *stage = (tess_pixel_stage){0};
}
