/* Compares rays on the card with the CPU on the same data: the Radon transform, volumes with cone and parallel rays,
 * FDK's steps; odd sizes, slabs, padded rows; each runs twice and must give the same bits. Also checks that the
 * card's pair is matched. */
#include "adjoint.h"
#include "counter.h"
#include "device/device.h"
#include "geometry/ray2.h"
#include "geometry/ray3.h"
#include "gpu.h"
#include "odd_views.h"
#include "physics/rays.h"

static const double pi = 3.14159265358979323846;
static tess_device *card, *cpu;

static void need(tess_status status, const tess_error *error)
{
    if (status == TESS_OK)
        return;
    fprintf(stderr, "%s\n", error->text);
    exit(1);
}

static int64_t floats_of(const tess_tensor *t)
{
    size_t bytes = 0;
    CHECK(tess_tensor_bytes(t, &bytes));
    return (int64_t)(bytes / sizeof(float));
}

/* Runs an op on a device, with data from the host and back; `out` also gives what there was before. */
static void run_on(tess_device *device, const tess_op *op, const double *table, int64_t numbers,
                   const float *in, float *out)
{
    const size_t sizes[4] = {(size_t)floats_of(&op->in[0]) * sizeof(float),
                             (size_t)floats_of(&op->out[0]) * sizeof(float), (size_t)numbers * sizeof(double),
                             0};
    const void *from[3] = {in, out, table};
    tess_block blocks[4] = {{0}};
    tess_prepared *prepared = NULL;
    tess_op_needs needs;
    tess_error error = {{0}};
    need(device->ops->query(device, op, &needs, &error), &error);
    need(device->ops->prepare(device, op, &prepared, &error), &error);
    for (int i = 0; i < 4; i++) {
        const size_t bytes = i == 3 ? needs.workspace + 1 : sizes[i];
        need(device->memory->alloc(device, &blocks[i], TESS_MEM_WORKSPACE, bytes, &error), &error);
        if (i < 3)
            device->memory->copy(device, blocks[i].data, from[i], bytes, NULL);
    }
    const tess_op_buffers call = {.in = {blocks[0].data},
                                  .out = {blocks[1].data},
                                  .weights = blocks[2].data,
                                  .workspace = blocks[3].data};
    device->ops->run(device, prepared, &call, NULL);
    device->memory->copy(device, out, blocks[1].data, sizes[1], NULL);
    need(device->streams->sync(device, NULL, &error), &error);
    device->ops->release(device, prepared);
    for (int i = 0; i < 4; i++)
        device->memory->free(device, &blocks[i]);
}

/* Both devices on the same data, the card twice. */
static void compare(const char *name, const tess_op *op, const double *table, int64_t numbers)
{
    const int64_t count_in = floats_of(&op->in[0]), count = floats_of(&op->out[0]);
    const size_t bytes = (size_t)count * sizeof(float);
    float *in = adjoint_floats(count_in), *start = adjoint_floats(count), *want = adjoint_floats(count),
          *got = adjoint_floats(count), *again = adjoint_floats(count);
    tess_rng_uniform((tess_rng_key){.seed = 1}, 0, count_in, in);
    tess_rng_uniform((tess_rng_key){.seed = 2}, 0, count, start);
    memcpy(want, start, bytes), memcpy(got, start, bytes), memcpy(again, start, bytes);
    run_on(cpu, op, table, numbers, in, want);
    run_on(card, op, table, numbers, in, got);
    run_on(card, op, table, numbers, in, again);
    double largest = 0, difference = 0;
    int64_t worst = 0;
    for (int64_t i = 0; i < count; i++) {
        const double apart = fabs((double)got[i] - want[i]);
        largest = fmax(largest, fabs((double)want[i]));
        if (!(apart <= difference))
            difference = apart, worst = i;
    }
    CHECK_MSG(difference <= 1e-5 * largest, "%s: %lld: %g, not %g; largest %g", name, (long long)worst,
              (double)got[worst], (double)want[worst], largest);
    CHECK_MSG(memcmp(got, again, bytes) == 0, "%s: another run, other bits", name);
    free(in), free(start), free(want), free(got), free(again);
}

/* The card's pair: inner products of five draws. */
static void matched(const char *name, const tess_op *forward, const tess_op *back, const double *table,
                    int64_t numbers)
{
    const int64_t columns = floats_of(&forward->in[0]), rows = floats_of(&forward->out[0]);
    float *x = adjoint_floats(columns), *seen = adjoint_floats(rows);
    float *y = adjoint_floats(rows), *spread = adjoint_floats(columns);
    for (uint32_t draw = 0; draw < 5; draw++) {
        tess_rng_uniform((tess_rng_key){.seed = 7, .item = draw}, 0, columns, x);
        tess_rng_uniform((tess_rng_key){.seed = 8, .item = draw}, 0, rows, y);
        run_on(card, forward, table, numbers, x, seen);
        run_on(card, back, table, numbers, y, spread);
        const double ahead = adjoint_dot(seen, y, rows), behind = adjoint_dot(x, spread, columns);
        CHECK_MSG(ahead != 0 && fabs(ahead - behind) <= 1e-6 * fabs(ahead),
                  "%s, draw %u: <Ax,y> %.9g, <x,A'y> %.9g", name, draw, ahead, behind);
    }
    free(x), free(seen), free(y), free(spread);
}

/* The card's pair as matrices, to 1e-6 of the largest entry. */
static void matrices(const char *name, const tess_op *forward, const tess_op *back, const double *table,
                     int64_t numbers)
{
    const int64_t columns = floats_of(&forward->in[0]), rows = floats_of(&forward->out[0]);
    float *ahead = adjoint_floats(rows * columns), *behind = adjoint_floats(rows * columns),
          *unit = adjoint_floats(rows + columns);
    for (int64_t i = 0; i < columns; i++) {
        unit[i] = 1;
        run_on(card, forward, table, numbers, unit, ahead + i * rows);
        unit[i] = 0;
    }
    for (int64_t i = 0; i < rows; i++) {
        unit[i] = 1;
        run_on(card, back, table, numbers, unit, behind + i * columns);
        unit[i] = 0;
    }
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < rows * columns; i++) {
        const double entry = ahead[i % columns * rows + i / columns];
        largest = fmax(largest, fabs(entry));
        difference = fmax(difference, fabs(entry - behind[i]));
    }
    CHECK_MSG(largest > 0 && difference <= 1e-6 * largest, "%s: entries differ by %g of %g", name, difference,
              largest);
    free(ahead), free(behind), free(unit);
}

static tess_op radon_op(tess_op_kind kind, int64_t size, int64_t columns, int64_t views, bool circle)
{
    const tess_tensor image = tess_tensor_2d(TESS_F32, 1, size, size, 1),
                      sinogram = tess_tensor_2d(TESS_F32, 1, views, columns, 1);
    const bool forward = kind == TESS_OP_PROJECT;
    tess_op op = {.kind = kind,
                  .inputs = 1,
                  .outputs = 1,
                  .in = {forward ? image : sinogram},
                  .out = {forward ? sinogram : image}};
    op.rays = (tess_op_rays){.geometry = TESS_PARALLEL_2D, .spacing = 1, .circle = circle};
    for (int k = 0; k < TESS_SPATIAL; k++)
        op.kernel[k] = op.stride[k] = 1;
    return op;
}

enum { VIEWS = 77 };

/* The axis is seen `off` columns from the middle of the detector, and a little elsewhere in every view. */
static void fill_table(int64_t columns, double off, double *table)
{
    static const double odd[] = {0, 45, 90, 179, 1.8, 30, 123.4, 135, 180, 270, -20, 333.3};
    for (int k = 0; k < VIEWS; k++) {
        const double turn = (k < 12 ? odd[k] : 2.9 * k) * pi / 180;
        table[TESS_RAY2_NUMBERS * k] = cos(turn);
        table[TESS_RAY2_NUMBERS * k + 1] = sin(turn);
        table[TESS_RAY2_NUMBERS * k + 2] = 0.5 * (double)(columns - 1) + off * (1 + 0.01 * k);
    }
}

static void test_radon_pair(int64_t size, int64_t columns, double off, bool circle)
{
    double table[TESS_RAY2_NUMBERS * VIEWS];
    const int64_t views = size == 5 ? 4 : size % 2 ? VIEWS : 12, numbers = TESS_RAY2_NUMBERS * views;
    tess_op forward = radon_op(TESS_OP_PROJECT, size, columns, views, circle),
            back = radon_op(TESS_OP_BACKPROJECT, size, columns, views, circle);
    if (columns > size)
        forward.rays.along = back.rays.along = size + 2 * (size / 4);
    fill_table(columns, off, table);
    compare("radon", &forward, table, numbers);
    compare("radon transposed", &back, table, numbers);
    if (size == 5)
        matrices("radon", &forward, &back, table, numbers);
    if (size > 5)
        matched("radon", &forward, &back, table, numbers);
}

static void test_radon(void)
{
    static const int64_t sizes[] = {2, 3, 5, 31, 64, 129, 257, 500};
    for (int i = 0; i < 16; i++) {
        const int64_t size = sizes[i / 2];
        test_radon_pair(size, size, 0, i % 2);
        test_radon_pair(size, size + size / 2, 0.5, i % 2);
        test_radon_pair(size, size - size / 4, -0.2 * (double)size, i % 2);
    }
    double table[TESS_RAY2_NUMBERS * VIEWS];
    fill_table(65, 0, table);
    tess_op back =
        radon_op(TESS_OP_BACKPROJECT, 65, 65, 9, true); /* views in longer rows, as filters leave them */
    back.in[0] = tess_tensor_2d(TESS_F32, 1, 9, 128, 1);
    back.in[0].w = 65;
    compare("radon transposed, padded", &back, table, 9 * TESS_RAY2_NUMBERS);
}

static void test_pair(const tess_rays_settings *s, const char *name, bool tiny)
{
    const int64_t numbers = s->views * TESS_VIEW3_NUMBERS;
    const tess_op forward = tess_rays_slab(s, TESS_OP_PROJECT, 0, s->depth, false),
                  back = tess_rays_slab(s, TESS_OP_BACKPROJECT, 0, s->depth, false);
    compare(name, &forward, s->vectors, numbers);
    compare(name, &back, s->vectors, numbers);
    (tiny ? matrices : matched)(name, &forward, &back, s->vectors, numbers);
}

static void test_volumes(void)
{
    double vectors[19 * TESS_VIEW3_NUMBERS];
    for (int cone = 0; cone < 2; cone++) {
        tess_rays_settings s = {cone ? TESS_CONE_3D : TESS_PARALLEL_3D, 4, 5, 6, 0.7, 4, 6, 5, vectors};
        odd_views(s.views, cone, 9, 1.1, vectors);
        test_pair(&s, "rays, tiny", true);
        s = (tess_rays_settings){s.geometry, 23, 19, 31, 0.1, 19, 17, 29, vectors};
        for (int fine = 0; fine < 3; fine++) { /* pixels larger than voxels, and much smaller */
            odd_views(s.views, cone, 5, fine == 0 ? 0.25 : fine == 1 ? 0.15 : 0.04, vectors);
            test_pair(&s, fine == 0 ? "rays, coarse" : fine == 1 ? "rays" : "rays, fine", false);
        }
        tess_rays_circle(s.views = 4, 5, 4, 0.2, vectors); /* rays on the diagonal, where two axes tie */
        for (int k = 0; k < 4 * TESS_VIEW3_NUMBERS; k += 3) {
            const double x = vectors[k], y = vectors[k + 1];
            vectors[k] = (x - y) * sqrt(0.5), vectors[k + 1] = (x + y) * sqrt(0.5);
        }
        test_pair(&s, "rays, ties", false);
        s = (tess_rays_settings){s.geometry, 64, 64, 64, 0.1, 8, 80, 70, vectors};
        tess_rays_circle(s.views, 20, 10, 0.15, vectors);
        test_pair(&s, "rays, circle", false);
    }
}

/* Slabs against the CPU's, and the transposes of slabs against the whole, bit by bit. */
static void test_slabs(void)
{
    double vectors[7 * TESS_VIEW3_NUMBERS];
    const tess_rays_settings s = {TESS_CONE_3D, 23, 19, 31, 0.1, 7, 17, 29, vectors};
    const int64_t numbers = s.views * TESS_VIEW3_NUMBERS, slice = s.height * s.width;
    odd_views(s.views, true, 5, 0.15, vectors);
    float *views = adjoint_floats(s.views * s.rows * s.columns), *whole = adjoint_floats(s.depth * slice),
          *slabs = adjoint_floats(s.depth * slice);
    tess_rng_uniform((tess_rng_key){.seed = 4}, 0, s.views * s.rows * s.columns, views);
    const tess_op all = tess_rays_slab(&s, TESS_OP_BACKPROJECT, 0, s.depth, false);
    run_on(card, &all, vectors, numbers, views, whole);
    for (int64_t first = 0; first < s.depth; first += 5) {
        const int64_t slices = s.depth - first < 5 ? s.depth - first : 5;
        const tess_op forward = tess_rays_slab(&s, TESS_OP_PROJECT, first, slices, true),
                      back = tess_rays_slab(&s, TESS_OP_BACKPROJECT, first, slices, false),
                      more = tess_rays_slab(&s, TESS_OP_BACKPROJECT, first, slices, true);
        compare("slab", &forward, vectors, numbers);
        compare("slab transposed", &more, vectors, numbers);
        run_on(card, &back, vectors, numbers, views, slabs + first * slice);
    }
    CHECK(memcmp(whole, slabs, (size_t)(s.depth * slice) * sizeof *whole) == 0);
    free(views), free(whole), free(slabs);
}

static void test_fdk(void)
{
    double vectors[37 * TESS_VIEW3_NUMBERS];
    for (int cone = 0; cone < 2; cone++) {
        const tess_rays_settings s = {
            cone ? TESS_CONE_3D : TESS_PARALLEL_3D, 11, 13, 39, 1, 37, 12, 17, vectors};
        const int64_t numbers = s.views * TESS_VIEW3_NUMBERS;
        tess_rays_circle(s.views, 60, 20, 1.2, vectors);
        tess_op cosine = tess_rays_slab(&s, TESS_OP_RAY_COSINE, 0, s.depth, false);
        cosine.out[0] = tess_tensor_3d(TESS_F32, 1, s.views, s.rows, 64, 1);
        compare("cosine", &cosine, vectors, numbers);
        for (int slab = 0; slab < 2; slab++) {
            tess_op spread =
                tess_rays_slab(&s, TESS_OP_RAY_SPREAD, slab ? 3 : 0, slab ? 5 : s.depth, slab == 1);
            spread.rays.scale = 0.3;
            compare("spread", &spread, vectors, numbers);
        }
    }
}

int main(void)
{
    int status;
    tess_error error = {{0}};
    card = gpu_open(&status);
    if (!card)
        return status;
    need(tess_registry_open("cpu", &(tess_device_options){.memory = &test_counter}, &cpu, &error), &error);
    test_radon();
    test_volumes();
    test_slabs();
    test_fdk();
    tess_registry_close(cpu);
    tess_registry_close(card);
    return check_end();
}
