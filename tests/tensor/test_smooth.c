/* test_smooth.c: compares the smooth fill with a dense solution of the same energy, written down from its definition, on
 * small windows with random voids; and checks that it reproduces polynomials, ignores its scratch's contents and survives
 * degenerate windows. */
#define _POSIX_C_SOURCE 200809L
#include "tensor/terrain/smooth.h"

#include "base/rng.h"
#include "check.h"
#include "tensor/terrain/void_maker.h"

enum { CANARY = 64 };

static void *room(size_t bytes)
{
    void *data = NULL;
    if (posix_memalign(&data, 64, bytes + CANARY))
        abort();
    memset(data, 0xff, bytes + CANARY); /* NaN */
    return data;
}

/* kind < 0: one tension for all. */
static tess_status fill(float *values, const uint8_t *flags, int64_t h, int64_t w, int kind, double tension)
{
    const size_t bytes = tess_smooth_bytes(h, w);
    unsigned char *scratch = room(bytes);
    tess_error error = {{0}};
    const tess_smooth_window window = {values, flags, h, w, scratch};
    tess_status status = kind < 0 ? tess_smooth_fill_tension(&window, tension, &error)
                                  : tess_smooth_fill(&window, (tess_smooth_kind)kind, &error);
    CHECK(status == TESS_OK || error.text[0]);
    for (int i = 0; i < CANARY; i++)
        CHECK(scratch[bytes + (size_t)i] == 0xff);
    free(scratch);
    return status;
}

/* Adds weight * (sum of factors * u)^2 to the matrix of the energy. */
static void add_square(double *matrix, int64_t n, const int64_t *pixels, const double *factors, int count,
                       double weight)
{
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++)
            matrix[pixels[a] * n + pixels[b]] += weight * factors[a] * factors[b];
}

static void add_energy(double *m, int64_t h, int64_t w, double plate, double tension)
{
    const int64_t n = h * w;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const int64_t i = y * w + x;
            const double second[3] = {1, -2, 1}, first[2] = {1, -1}, mixed[4] = {1, -1, -1, 1};
            if (x > 0 && x + 1 < w)
                add_square(m, n, (int64_t[]){i - 1, i, i + 1}, second, 3, plate);
            if (y > 0 && y + 1 < h)
                add_square(m, n, (int64_t[]){i - w, i, i + w}, second, 3, plate);
            if (x + 1 < w && y + 1 < h)
                add_square(m, n, (int64_t[]){i, i + 1, i + w, i + w + 1}, mixed, 4, 2 * plate);
            if (x + 1 < w)
                add_square(m, n, (int64_t[]){i, i + 1}, first, 2, tension);
            if (y + 1 < h)
                add_square(m, n, (int64_t[]){i, i + w}, first, 2, tension);
        }
}

/* Gaussian elimination; the row of a valid pixel says that it keeps its value. */
static void solve_dense(double *m, int64_t n, const uint8_t *flags, double *u)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++)
            m[i * n + k] = flags[i] ? m[i * n + k] : i == k;
    for (int64_t i = 0; i < n; i++)
        u[i] = flags[i] ? 0 : u[i];
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = i + 1; k < n; k++) {
            const double factor = m[k * n + i] / m[i * n + i];
            for (int64_t c = i; c < n; c++)
                m[k * n + c] -= factor * m[i * n + c];
            u[k] -= factor * u[i];
        }
    for (int64_t i = n; i-- > 0;) {
        double sum = u[i];
        for (int64_t k = i + 1; k < n; k++)
            sum -= m[i * n + k] * u[k];
        u[i] = sum / m[i * n + i];
    }
}

static void test_dense(void)
{
    static const struct {
        int64_t h, w;
        double share, tension;
    } cases[] = {{9, 12, 0.3, 0},        {12, 9, 0.6, INFINITY}, {13, 11, 0.8, 0.05},
                 {16, 17, 0.5, 0},       {5, 24, 0.5, 2},        {1, 30, 0.5, 0.1},
                 {2, 15, 0.5, INFINITY}, {3, 20, 0.4, 0.3},      {20, 4, 0.5, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int64_t h = cases[c].h, w = cases[c].w, n = h * w;
        float *values = room((size_t)n * 4), *draw = room((size_t)n * 4);
        uint8_t *flags = room((size_t)n);
        double *m = room((size_t)(n * n) * 8), *u = room((size_t)n * 8);
        memset(m, 0, (size_t)(n * n) * 8);
        tess_rng_normal((tess_rng_key){3, (uint32_t)c, 0}, 0, n, values);
        tess_rng_uniform((tess_rng_key){3, (uint32_t)c, 1}, 0, n, draw);
        const bool membrane = isinf(cases[c].tension);
        add_energy(m, h, w, membrane ? 0 : 1, membrane ? 1 : cases[c].tension);
        for (int64_t i = 0; i < n; i++) /* a solid void over one corner, and single pixels */
            flags[i] = (i / w < h / 2 && i % w < w / 2) || (double)draw[i] < cases[c].share / 2;
        for (int64_t i = 0; i < n; i++)
            u[i] = (double)values[i];
        solve_dense(m, n, flags, u);
        for (int64_t i = 0; i < n; i++)
            values[i] = flags[i] ? NAN : values[i];
        CHECK(fill(values, flags, h, w, -1, cases[c].tension) == TESS_OK);
        double worst = 0;
        for (int64_t i = 0; i < n; i++)
            worst = fmax(worst, fabs((double)values[i] - u[i]) / fmax(1, fabs(u[i])));
        CHECK_MSG(worst < 1e-4, "case %zu: %g", c, worst);
        free(values), free(draw), free(flags), free(m), free(u);
    }
}

/* A plate continues what has no fourth derivatives through an inner void, and planes to the raster's edge. */
static void test_polynomials(void)
{
    enum { H = 70, W = 90 };
    static float values[H * W], truth[H * W];
    static uint8_t flags[H * W];
    for (int form = 0; form < 4; form++) {
        for (int i = 0; i < H * W; i++) {
            const double y = (i / W - 35) / 20.0, x = (i % W - 45) / 20.0;
            const double cubic = 100 * (x * x * x - 2 * x * x * y + y * y + x);
            const double plane = 50 * x - 80 * y + 1000, saddle = 30 * (x * x - y * y) + x * y;
            truth[i] = (float)(form == 0 ? cubic : form == 3 ? saddle : plane);
            flags[i] = abs(i / W - 35) < 25 && abs(i % W - 45) < 28;
            if (form == 1) /* to the edge */
                flags[i] = i / W < 30 || i % W > 60;
            if (form == 2) /* all but a corner */
                flags[i] = i / W > 14 || i % W > 14;
            values[i] = flags[i] ? -9999 : truth[i];
        }
        CHECK(fill(values, flags, H, W, form == 3 ? TESS_SMOOTH_MEMBRANE : TESS_SMOOTH_BIHARMONIC, 0) ==
              TESS_OK);
        double worst = 0;
        for (int i = 0; i < H * W; i++)
            if (fabs((double)(values[i] - truth[i])) > worst)
                worst = fabs((double)(values[i] - truth[i]));
        CHECK_MSG(worst < 0.02, "form %d: %g", form, worst);
        for (int i = 0; i < H * W; i++)
            CHECK(flags[i] || values[i] == truth[i]);
    }
}

/* The blend is a plate on a smooth slope and close to a membrane on steps, and as good as the better one. */
static void test_blend(void)
{
    enum { N = 128 };
    static float truth[N * N], fills[3][N * N], noise[N * N];
    static uint8_t flags[N * N];
    tess_rng_normal((tess_rng_key){5, 0, 0}, 0, N * N, noise);
    for (int form = 0; form < 2; form++) {
        double errors[3];
        for (int i = 0; i < N * N; i++) {
            const int y = i / N, x = i % N;
            const int block = y / 5 * 26 + x / 5;
            truth[i] = form ? 10 * noise[block] + noise[i] : 100 * sinf((float)x / 30) * cosf((float)y / 25);
            flags[i] = abs(y - 64) < 24 && abs(x - 64) < 24;
        }
        for (int kind = 0; kind < 3; kind++) {
            for (int i = 0; i < N * N; i++)
                fills[kind][i] = flags[i] ? 0 : truth[i];
            CHECK(fill(fills[kind], flags, N, N, kind, 0) == TESS_OK);
            errors[kind] = 0;
            for (int i = 0; i < N * N; i++)
                errors[kind] += (double)(fills[kind][i] - truth[i]) * (double)(fills[kind][i] - truth[i]);
        }
        const double best = fmin(errors[TESS_SMOOTH_MEMBRANE], errors[TESS_SMOOTH_BIHARMONIC]);
        CHECK_MSG((errors[TESS_SMOOTH_MEMBRANE] < errors[TESS_SMOOTH_BIHARMONIC]) == (form == 1), "%d: %g %g",
                  form, errors[TESS_SMOOTH_MEMBRANE], errors[TESS_SMOOTH_BIHARMONIC]);
        CHECK_MSG(errors[TESS_SMOOTH_BLEND] < 1.1 * best, "%d: %g of %g", form, errors[TESS_SMOOTH_BLEND],
                  best);
        float *again = fills[0];
        for (int i = 0; i < N * N; i++)
            again[i] = flags[i] ? 1e30f : truth[i]; /* void values are not read */
        CHECK(fill(again, flags, N, N, TESS_SMOOTH_BLEND, 0) == TESS_OK);
        CHECK(memcmp(again, fills[TESS_SMOOTH_BLEND], sizeof fills[0]) == 0);
    }
}

static void test_degenerate(void)
{
    float one[1] = {5}, row[6] = {1, 0, 0, 0, 0, 6}, few[9] = {0, 0, 0, 0, 7, 0, 0, 0, 0};
    const uint8_t valid[9] = {0}, all[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    CHECK(fill(one, valid, 1, 1, TESS_SMOOTH_BLEND, 0) == TESS_OK && one[0] == 5);
    CHECK(fill(one, all, 1, 1, TESS_SMOOTH_BLEND, 0) == TESS_BAD_INPUT && one[0] == 5);
    CHECK(fill(few, all, 3, 3, TESS_SMOOTH_MEMBRANE, 0) == TESS_BAD_INPUT);
    for (int kind = 0; kind < 3; kind++) {
        const uint8_t middle[6] = {0, 1, 1, 1, 1, 0};
        CHECK(fill(row, middle, 1, 6, kind, 0) == TESS_OK);
        for (int i = 0; i < 6; i++) /* a straight line either way */
            CHECK_MSG(fabsf(row[i] - 1 - (float)i) < 1e-4f, "%d: %g", kind, (double)row[i]);
        const uint8_t around[9] = {1, 1, 1, 1, 0, 1, 1, 1, 1};
        CHECK(fill(few, around, 3, 3, kind, 0) == TESS_OK); /* one valid pixel: level */
        for (int i = 0; i < 9; i++)
            CHECK_MSG(fabsf(few[i] - 7) < 1e-3f, "%d: %g", kind, (double)few[i]);
        float hole[9] = {1, 1, 1, 1, NAN, 1, 1, INFINITY, 1};
        CHECK(fill(hole, valid, 3, 3, kind, 0) == TESS_OK); /* not finite: void */
        for (int i = 0; i < 9; i++)
            CHECK(fabsf(hole[i] - 1) < 1e-4f);
    }
    CHECK(tess_smooth_bytes(0, 5) == SIZE_MAX && tess_smooth_bytes(INT64_MAX / 2, 4) == SIZE_MAX);
}

/* Many windows with voids of all kinds: finite everywhere, valid pixels untouched. */
static void test_made(void)
{
    enum { N = 64 };
    static float truth[N * N], values[N * N];
    static uint8_t flags[N * N];
    tess_void_request request;
    tess_void_request_init(&request, N, N);
    void *scratch = room(tess_void_maker_bytes(N, N));
    for (uint32_t i = 0; i < 60; i++) {
        request.index = i;
        tess_void_make(&request, flags, scratch);
        tess_rng_normal((tess_rng_key){6, i, 0}, 0, N * N, truth);
        for (int k = 0; k < N * N; k++) {
            truth[k] = 8000 + 50 * truth[k] * (float)(i % 3); /* level, rough, rougher */
            values[k] = flags[k] ? NAN : truth[k];
        }
        CHECK(fill(values, flags, N, N, TESS_SMOOTH_BLEND, 0) == TESS_OK);
        for (int k = 0; k < N * N; k++)
            CHECK(flags[k] ? isfinite(values[k]) && fabsf(values[k] - 8000) < 4000 : values[k] == truth[k]);
    }
    free(scratch);
}

int main(void)
{
    test_dense();
    test_polynomials();
    test_blend();
    test_degenerate();
    test_made();
    return check_end();
}
