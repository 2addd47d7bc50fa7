/* test_rays_ranks.c: a volume that ranks share by slabs, which may be thin, thick and uneven, on one node and on several, also with ranks
 * dealt out to the nodes in turn. Projections are those of the slabs added up in the order of ranks, to the bit on one node; backprojection and FDK
 * are those of the whole volume. Ranks send less than whole views. */
#define _POSIX_C_SOURCE 200809L
#include "adjoint.h"
#include "failing_create.h"
#include "odd_views.h"
#include "physics/rays.h"
#include "plan/ranks/slabs.h"
#include "rank_threads.h"
#include "solver_ops.h"

enum { FORWARD, ADJOINT, INVERSE, OUTPUTS };
static const char *const names[OUTPUTS] = {"forward", "adjoint", "inverse"};

typedef struct shared {
    tess_rays_settings settings;
    const float *x, *y;
    float *out[OUTPUTS];
    int nodes;
    bool dealt; /* neighbours are on different nodes */
    uint64_t sent[MOST_RANK_THREADS][OUTPUTS];
    bool failed[MOST_RANK_THREADS];
} shared;

static int64_t pixels_of(const tess_rays_settings *s)
{
    return s->views * s->rows * s->columns;
}

static int64_t voxels_of(const tess_rays_settings *s)
{
    return s->depth * s->height * s->width;
}

static void apply(shared *s, tess_operator *op, const tess_dist *dist, int64_t first_slice,
                  int64_t first_view)
{
    const int64_t slab = first_slice * s->settings.height * s->settings.width,
                  seen = first_view * s->settings.rows * s->settings.columns;
    uint64_t *sent = s->sent[dist->rank], before = dist->sent;
    void *scratch = malloc(op->scratch_bytes + 1);
    memset(scratch, 0xff, op->scratch_bytes); /* not a number */
    const uint64_t calls = dist->size == 1 ? tess_mem_calls() : 0;
    op->table->forward(op, s->x + slab, s->out[FORWARD] + seen, scratch, NULL);
    sent[FORWARD] = dist->sent - before, before = dist->sent;
    op->table->adjoint(op, s->y + seen, s->out[ADJOINT] + slab, scratch, NULL);
    sent[ADJOINT] = dist->sent - before, before = dist->sent;
    CHECK(dist->size > 1 || tess_mem_calls() == calls);
    if (op->table->inverse)
        op->table->inverse(op, s->y + seen, s->out[INVERSE] + slab, scratch, NULL);
    sent[INVERSE] = dist->sent - before;
    free(scratch);
}

static void run_rank(rank_thread *t)
{
    shared *s = t->user;
    const int rank = t->dist.rank, size = t->dist.size;
    tess_dist_place places[MOST_RANK_THREADS] = {0};
    tess_operator *op = NULL;
    tess_error error;
    tess_device *device = open_cpu(1);
    for (int r = 0; r < size; r++)
        places[r].host[0] = (char)('a' + (s->dealt ? r % s->nodes : r * s->nodes / size));
    t->dist.places = places;
    tess_rays_settings settings = s->settings;
    settings.share = &t->share;
    if (tess_rays_create_shared(device, &settings, &op, &error) !=
        TESS_OK) { /* the others would wait for it */
        fprintf(stderr, "rank %d: %s\n", rank, error.text);
        exit(1);
    }
    apply(s, op, &t->dist, tess_share_first(&t->share), settings.views * rank / size);
    s->failed[rank] = t->share.status != TESS_OK;
    tess_operator_destroy(op);
    tess_registry_close(device);
}

static shared begin(const tess_rays_settings *settings, const float *x, const float *y)
{
    shared s = {.settings = *settings, .x = x, .y = y, .nodes = 1};
    for (int i = 0; i < OUTPUTS; i++)
        s.out[i] = adjoint_floats(i == FORWARD ? pixels_of(settings) : voxels_of(settings));
    return s;
}

static void end(shared *s)
{
    for (int i = 0; i < OUTPUTS; i++)
        free(s->out[i]);
}

static double apart(const float *a, const float *b, int64_t count)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)a[i] * a[i];
    }
    return sqrt(difference / size);
}

/* Projections of slabs, added up one after another. */
static void project_slabs(tess_device *device, const shared *one, int size, const int64_t *from, float *sum)
{
    const tess_rays_settings *s = &one->settings;
    const int64_t pixels = pixels_of(s);
    float *seen = adjoint_floats(pixels);
    memset(sum, 0, (size_t)pixels * sizeof *sum);
    for (int r = 0; r < size; r++) {
        const tess_op op = tess_rays_slab(s, TESS_OP_PROJECT, from[r], from[r + 1] - from[r], false);
        run_op(device, op,
               (tess_op_buffers){
                   .in = {one->x + from[r] * s->height * s->width}, .out = {seen}, .weights = s->vectors});
        for (int64_t i = 0; i < pixels; i++)
            sum[i] += seen[i];
    }
    free(seen);
}

static void check_ranks(tess_device *device, const shared *one, int size, const int64_t *from, int nodes,
                        bool dealt)
{
    const tess_rays_settings *s = &one->settings;
    const int64_t pixels = pixels_of(s);
    shared many = begin(s, one->x, one->y);
    float *sum = adjoint_floats(pixels);
    many.nodes = nodes;
    many.dealt = dealt;
    rank_threads_run(size, from, run_rank, &many);
    project_slabs(device, one, size, from, sum);
    CHECK_MSG(nodes > 1 || memcmp(sum, many.out[FORWARD], (size_t)pixels * sizeof *sum) == 0,
              "%d ranks: projections are the sums of slabs", size);
    for (int i = 0; i < OUTPUTS; i++) {
        const double off = apart(one->out[i], many.out[i], i == FORWARD ? pixels : voxels_of(s));
        CHECK_MSG(off < 1e-6, "%s, %d ranks on %d nodes, dealt %d: off by %g", names[i], size, nodes, dealt,
                  off);
    }
    for (int r = 0; r < size; r++)
        CHECK_MSG(!many.failed[r], "rank %d of %d", r, size);
    free(sum);
    end(&many);
}

static void check_settings(tess_device *device, const tess_rays_settings *settings)
{
    static const int sizes[] = {2, 3, 5, 8};
    float *x = adjoint_floats(voxels_of(settings)), *y = adjoint_floats(pixels_of(settings));
    tess_dist alone;
    tess_operator *op = NULL;
    tess_error error = {""};
    tess_dist_init_solo(&alone);
    tess_rng_uniform((tess_rng_key){.seed = 1}, 0, voxels_of(settings), x);
    tess_rng_uniform((tess_rng_key){.seed = 2}, 0, pixels_of(settings), y);
    shared one = begin(settings, x, y);
    CHECK_MSG(tess_rays_create(device, settings, &op, &error) == TESS_OK, "%s", error.text);
    if (op)
        apply(&one, op, &alone, 0, 0);
    tess_operator_destroy(op);
    for (int i = 0; i < 4; i++)
        for (int uneven = 0; uneven < 2; uneven++) {
            int64_t from[MOST_RANK_THREADS + 1];
            for (int r = 0; r <= sizes[i]; r++) /* uneven: the first ones have one or two slices */
                from[r] = uneven && r < sizes[i] ? r + r / 2 : settings->depth * r / sizes[i];
            for (int nodes = 1; nodes <= 3 && nodes <= sizes[i]; nodes++)
                for (int dealt = 0; dealt < (nodes > 1 ? 2 : 1); dealt++)
                    check_ranks(device, &one, sizes[i], from, nodes, dealt);
        }
    end(&one);
    free(x), free(y);
}

/* Bytes that all ranks send, and the most that one sends or receives: what arrives to project is sent to backproject. */
static uint64_t sent_by(const shared *many, int size, int what)
{
    uint64_t sent = 0;
    for (int r = 0; r < size; r++)
        sent += many->sent[r][what];
    return sent;
}

static double busiest(const shared *many, int size)
{
    uint64_t most = 0;
    for (int r = 0; r < size; r++)
        for (int i = FORWARD; i <= ADJOINT; i++)
            most = many->sent[r][i] > most ? many->sent[r][i] : most;
    return (double)most;
}

/* The simulator has the schedule of the run: over links of one byte a second it takes as many seconds as the busiest rank has bytes. */
static void check_simulated(const tess_rays_settings *s, const shared *many, int ranks)
{
    const tess_links links = {.per_node = many->nodes == 1 ? ranks : 1,
                              .inside = {0, 1e30, 1},
                              .outside = {.rate = 1, .adapters = 1, .shared = 1}};
    const tess_strips slabs = tess_strips_of(1, s->depth, ranks);
    double seconds = 0;
    tess_error error;
    CHECK(tess_slabs_seconds(s, &slabs, &links, &seconds, &error) == TESS_OK);
    CHECK_MSG(seconds == busiest(many, ranks), "%d nodes: %.0f bytes simulated, %.0f sent", many->nodes,
              seconds, busiest(many, ranks));
}

/* What is sent of a usual problem, against whole views. */
static void check_sent(void)
{
    enum { SIZE = 64, RANKS = 4, VIEWS = 32, ROWS = 72 };
    static const int64_t from[] = {0, 16, 32, 48, 64};
    static double vectors[VIEWS * TESS_VIEW3_NUMBERS];
    tess_rays_circle(VIEWS, 2 * SIZE, SIZE, 1.5, vectors);
    const tess_rays_settings s = {TESS_CONE_3D, SIZE, SIZE, SIZE, 1, VIEWS, ROWS, ROWS, vectors};
    float *x = adjoint_floats(voxels_of(&s)), *y = adjoint_floats(pixels_of(&s));
    const uint64_t whole = (uint64_t)pixels_of(&s) * sizeof(float) * (RANKS - 1);
    for (int nodes = 1; nodes <= RANKS; nodes += RANKS - 1) {
        shared many = begin(&s, x, y);
        many.nodes = nodes;
        rank_threads_run(RANKS, from, run_rank, &many);
        check_simulated(&s, &many, RANKS);
        for (int i = 0; i < OUTPUTS; i++) {
            /* FDK pads rows to 256 values. */
            const uint64_t sent = sent_by(&many, RANKS, i),
                           before = i == INVERSE ? whole / ROWS * 256 : whole;
            if (nodes == 1)
                printf("%s of %d^3 on %d ranks: %llu bytes are sent, %llu with whole views\n", names[i], SIZE,
                       RANKS, (unsigned long long)sent, (unsigned long long)before);
            CHECK_MSG(sent > 0 && 2 * sent < before, "%s: %llu bytes are sent", names[i],
                      (unsigned long long)sent);
        }
        end(&many);
    }
    free(x), free(y);
}

static tess_status create(tess_device *device, const void *settings, tess_operator **op, tess_error *error)
{
    return tess_rays_create_shared(device, settings, op, error);
}

static void check_allocations(tess_device *device, const tess_rays_settings *settings)
{
    static const int64_t from[] = {0, 5, 12};
    rank_thread rank;
    tess_rays_settings s = *settings;
    rank_init(&rank, 1, 2, from);
    s.share = &rank.share;
    check_failing_create(device, create, &s);
}

int main(void)
{
    enum { VIEWS = 19 }; /* two ranks need two rounds */
    static double circle[VIEWS * TESS_VIEW3_NUMBERS], odd[2][VIEWS * TESS_VIEW3_NUMBERS];
    tess_device *device = open_cpu(1);
    tess_rays_circle(VIEWS, 60, 20, 1.1, circle);
    for (int cone = 0; cone < 2; cone++)
        odd_views(VIEWS, cone, 50, 1.3, odd[cone]);
    const tess_rays_settings cases[] = {{TESS_CONE_3D, 23, 17, 19, 1, VIEWS, 31, 27, circle},
                                        {TESS_CONE_3D, 16, 11, 13, 1, 8, 25, 20, odd[1]},
                                        {TESS_PARALLEL_3D, 12, 13, 11, 1, VIEWS, 21, 24, odd[0]}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_settings(device, &cases[i]);
    check_sent();
    check_allocations(device, &cases[2]);
    tess_registry_close(device);
    return check_end();
}
