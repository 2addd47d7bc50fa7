/* test_convolve_ranks.c: blurs that ranks share, by columns of the spectrum and by halos of rows, against one rank with the whole
 * image: forward, adjoint and their inner products, gradient, preconditioner, a few steps of conjugate gradients. Kernels are odd,
 * even (padded with zeros), off centre, and of one row; margins are as wide as the kernels reach, narrower, and none; strips are of
 * different heights, and lower than the reach; some blurs have masks. */
#define _POSIX_C_SOURCE 200809L
#include "adjoint.h"
#include "failing_create.h"
#include "physics/convolve.h"
#include "rank_threads.h"
#include "solve/cg.h"
#include "solver_ops.h"

static const double odd[] = {1, 2, 3, 4, 5, 6, 5, 4, 3, 9, 1, 0.5, 0, 2, 2},
                    even[] = {1, 2, 3, 4, 0, 2, 3, 1, 5, 0, 6, 1, 2, 2, 0, 1, 1, 7, 3, 0, 0, 0, 0, 0, 0},
                    corner[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3},
                    streak[] = {1, 0.5, 0.25, 4, 1};
static const tess_blur_kernel kernels[] = {{.values = odd, .height = 5, .width = 3},
                                           {.values = even, .height = 5, .width = 5},
                                           {.values = corner, .height = 7, .width = 3},
                                           {.values = streak, .height = 1, .width = 5},
                                           {.gaussian = {1.1, 0.7, 30}}};

enum { OUTPUTS = 5, STEPS = 2 };
/* Each step of conjugate gradients amplifies rounding. */
static const double close_by[OUTPUTS] = {1e-6, 1e-6, 1e-6, 1e-6, 1e-5};
static const char *const names[OUTPUTS] = {"forward", "adjoint", "gradient", "preconditioned", "solved"};

typedef struct shared {
    tess_convolve_settings settings;
    const float *x, *y;
    float *out[OUTPUTS]; /* of the whole image, or of all measurements */
    bool failed[MOST_RANK_THREADS];
} shared;

/* Copies the rows of this rank between its measurement and that of all ranks. */
static void copy_seen(const shared *s, const tess_operator *op, int64_t first, float *own, float *all,
                      bool out)
{
    const tess_tensor *m = &op->measurement;
    const int64_t row = m->w * m->c,
                  above = first > s->settings.margin_rows ? first - s->settings.margin_rows : 0;
    for (int64_t i = 0; i < m->n; i++) {
        float *there = all + (i * s->settings.seen_height + above) * row, *here = own + i * m->h * row;
        memcpy(out ? there : here, out ? here : there, (size_t)(m->h * row) * sizeof *own);
    }
}

static bool solve(tess_operator *op, const float *y, float *x)
{
    const int64_t pixels = adjoint_count(&op->image);
    size_t bytes, residual;
    tess_data_term term;
    tess_cg_result result;
    tess_error error;
    if (tess_data_term_bytes(op, &bytes, &residual, &error) != TESS_OK)
        return false;
    float *r = random_floats(1, pixels), *p = random_floats(2, pixels), *q = random_floats(3, pixels);
    void *memory = calloc(1, bytes), *const vectors[] = {r, p, q};
    bool good = tess_data_term_open(&term, op, NULL, NULL, memory, &error) == TESS_OK;
    const tess_cg_settings cg = {.iterations = STEPS, .tolerance = 1e-4, .shift = 0.05, .warm = true};
    op->table->absorb(op, y, term.scratch, NULL);
    good = good && tess_cg(&term, &cg, vectors, x, &result, &error) == TESS_OK;
    tess_data_term_close(&term);
    free(r), free(p), free(q), free(memory);
    return good;
}

/* Sets the masks of this rank's rows; their values depend on the place in the whole measurement. */
static void set_masks(const shared *s, tess_operator *op, int64_t first)
{
    const tess_tensor *m = &op->measurement;
    const int64_t row = m->w * m->c,
                  above = first > s->settings.margin_rows ? first - s->settings.margin_rows : 0;
    for (int64_t i = 0; i < m->n; i++) {
        float *mask = op->table->mask(op, i);
        for (int64_t k = 0; mask && k < m->h * row; k++)
            mask[k] = (i + above * row + k) % 7 > 2;
    }
}

/* Everything that an operator does, on this rank's rows. The scratch begins as garbage. */
static bool apply(shared *s, tess_operator *op, int64_t first)
{
    const int64_t pixels = adjoint_count(&op->image), seen = adjoint_count(&op->measurement),
                  row = op->image.w * op->image.c;
    float *y = random_floats(4, seen + 1), *ax = random_floats(5, seen + 1), *z = random_floats(6, pixels);
    void *scratch = malloc(op->scratch_bytes);
    memset(scratch, 0xff, op->scratch_bytes); /* not a number */
    const float *x = s->x + first * row;
    set_masks(s, op, first);
    copy_seen(s, op, first, y, (float *)(size_t)s->y, false);
    op->table->forward(op, x, ax, scratch, NULL);
    copy_seen(s, op, first, ax, s->out[0], true);
    op->table->adjoint(op, y, s->out[1] + first * row, scratch, NULL);
    for (int round = 0; round < 2; round++) { /* absorbing begins afresh */
        op->table->absorb(op, y, scratch, NULL);
        op->table->normal(op, true, x, s->out[2] + first * row, scratch, NULL);
    }
    op->table->precondition(op, 0.1, x, s->out[3] + first * row, scratch, NULL);
    free(scratch), free(ax), free(z);
    memcpy(s->out[4] + first * row, x, (size_t)pixels * sizeof *x);
    const bool good = solve(op, y, s->out[4] + first * row);
    free(y);
    return good;
}

static void run_rank(rank_thread *t)
{
    shared *s = t->user;
    tess_convolve_settings settings = s->settings;
    tess_operator *op = NULL, sketch;
    tess_error error;
    tess_device *device = open_cpu(1);
    settings.share = &t->share;
    bool good = tess_convolve_sketch(device, &settings, &sketch, &error) == TESS_OK &&
                tess_convolve_create(device, &settings, &op, &error) == TESS_OK;
    if (!good) { /* the others would wait for it */
        fprintf(stderr, "rank %d: %s\n", t->dist.rank, error.text);
        exit(1);
    }
    good = sketch.held_bytes == op->held_bytes && sketch.scratch_bytes == op->scratch_bytes &&
           sketch.making_bytes == op->making_bytes;
    s->failed[t->dist.rank] =
        !apply(s, op, tess_share_first(&t->share)) || !good || t->share.status != TESS_OK;
    tess_operator_destroy(op);
    tess_registry_close(device);
}

static shared begin(const tess_convolve_settings *settings, float *x, float *y)
{
    shared s = {.settings = *settings, .x = x, .y = y};
    const int64_t pixels = settings->height * settings->width * settings->channels,
                  seen = settings->count * settings->seen_height * settings->seen_width * settings->channels;
    for (int i = 0; i < OUTPUTS; i++)
        s.out[i] = adjoint_floats(i == 0 ? seen : pixels);
    return s;
}

static void end(shared *s)
{
    for (int i = 0; i < OUTPUTS; i++)
        free(s->out[i]);
}

/* |a - b| / |beside|: a gradient is the small difference of two large vectors. */
static double apart(const float *a, const float *b, const float *beside, int64_t count)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)beside[i] * beside[i];
    }
    return sqrt(difference / size);
}

static void check_ranks(const tess_convolve_settings *settings, const shared *one, int size,
                        const int64_t *from)
{
    const int64_t pixels = settings->height * settings->width * settings->channels,
                  seen = settings->count * settings->seen_height * settings->seen_width * settings->channels;
    for (int halo = 0; halo < 2; halo++) {
        tess_convolve_settings way = *settings;
        way.halo = halo;
        shared many = begin(&way, (float *)(size_t)one->x, (float *)(size_t)one->y);
        rank_threads_run(size, from, run_rank, &many);
        for (int r = 0; r < size; r++)
            CHECK_MSG(!many.failed[r], "rank %d of %d, halo %d", r, size, halo);
        for (int i = 0; i < OUTPUTS; i++) {
            const double off =
                apart(one->out[i], many.out[i], one->out[i == 2 ? 1 : i], i == 0 ? seen : pixels);
            CHECK_MSG(off < close_by[i], "%s, %d ranks, halo %d, %lld rows: off by %g", names[i], size, halo,
                      (long long)settings->height, off);
        }
        const double ax = adjoint_dot(many.out[0], one->y, seen),
                     ay = adjoint_dot(one->x, many.out[1], pixels);
        CHECK_MSG(fabs(ax - ay) <= 1e-6 * fabs(ax), "%d ranks, halo %d: <Ax,y> %.9g, <x,A'y> %.9g", size,
                  halo, ax, ay);
        end(&many);
    }
}

static void check_settings(tess_device *device, const tess_convolve_settings *settings)
{
    static const int sizes[] = {2, 3, 4, 7};
    const int64_t pixels = settings->height * settings->width * settings->channels,
                  seen = settings->count * settings->seen_height * settings->seen_width * settings->channels;
    float *x = adjoint_floats(pixels), *y = adjoint_floats(seen);
    tess_operator *op = NULL;
    tess_error error = {""};
    tess_rng_uniform((tess_rng_key){.seed = 1}, 0, pixels, x);
    tess_rng_uniform((tess_rng_key){.seed = 2}, 0, seen, y);
    shared one = begin(settings, x, y);
    tess_convolve_settings alone = *settings;
    alone.halo = true; /* alone it does not matter */
    CHECK_MSG(tess_convolve_create(device, &alone, &op, &error) == TESS_OK, "%s", error.text);
    CHECK(op && apply(&one, op, 0));
    tess_operator_destroy(op);
    for (int i = 0; i < 4; i++)
        for (int uneven = 0; uneven < 2; uneven++) {
            int64_t from[MOST_RANK_THREADS + 1];
            for (int r = 0; r <= sizes[i]; r++) /* uneven: the first ones have one or two rows */
                from[r] = uneven && r < sizes[i] ? r + r / 2 : settings->height * r / sizes[i];
            check_ranks(settings, &one, sizes[i], from);
        }
    end(&one);
    free(x), free(y);
}

/* Rows and columns around what is seen. */
static tess_convolve_settings settings_of(int64_t height, int64_t width, int64_t margin, int first, int count)
{
    return (tess_convolve_settings){.height = height,
                                    .width = width,
                                    .channels = 3,
                                    .margin_rows = margin,
                                    .margin_columns = 2,
                                    .seen_height = height - 2 * margin,
                                    .seen_width = width - 5,
                                    .count = count,
                                    .kernels = kernels + first};
}

/* Kernels that are as high as the image would be folded, and circular blurs divide by the whole spectrum. Whatever allocation
 * fails, creating says so and loses nothing. */
static tess_status create(tess_device *device, const void *settings, tess_operator **op, tess_error *error)
{
    return tess_convolve_create(device, settings, op, error);
}

static void test_refuses(tess_device *device)
{
    static const int64_t from[] = {0, 5, 12};
    rank_thread rank;
    tess_operator *op = NULL;
    tess_error error = {""};
    rank_init(&rank, 1, 2, from);
    tess_convolve_settings low = settings_of(6, 20, 0, 2, 1), circular = settings_of(12, 20, 0, 0, 2),
                           good = settings_of(12, 20, 2, 0, 2);
    circular.seen_height = circular.seen_width = circular.margin_columns = 0;
    low.halo = circular.halo = good.halo = true;
    low.share = circular.share = good.share = &rank.share;
    CHECK(!tess_convolve_can_halo(&low) && !tess_convolve_can_halo(&circular) &&
          tess_convolve_can_halo(&good));
    CHECK(tess_convolve_create(device, &low, &op, &error) == TESS_BAD_OPTION && !op);
    CHECK(tess_convolve_create(device, &circular, &op, &error) == TESS_BAD_OPTION && !op);
    check_failing_create(device, create, &good);
}

int main(void)
{
    tess_device *device = open_cpu(1);
    static const bool masked[] = {true, false, true, true, false};
    tess_convolve_settings cases[] = {
        settings_of(41, 26, 5, 0, 5), /* margins as wide as the reach of a Gaussian, or wider */
        settings_of(36, 21, 1, 0, 3), /* narrower: rows come from the other edge */
        settings_of(24, 18, 0, 1, 2), /* none */
        settings_of(30, 20, 3, 2, 1), settings_of(28, 30, 0, 3, 1),
        settings_of(41, 26, 5, 0, 5), settings_of(36, 21, 1, 0, 3)}; /* with masks */
    cases[5].masked = cases[6].masked = masked;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_settings(device, &cases[i]);
    test_refuses(device);
    tess_registry_close(device);
    return check_end();
}
