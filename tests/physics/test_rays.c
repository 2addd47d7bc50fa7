/* Rays through volumes: the pair is matched, for devices that add and for those that gather; integrals of ellipsoids
 * approach the exact ones as the grid becomes finer; threads and slabs do not change the result; FDK reconstructs a
 * phantom; invalid geometries are refused with a message. */
#include "adjoint.h"
#include "counter.h"
#include "device/device.h"
#include "geometry/column3.h"
#include "odd_views.h"
#include "op/scan3.h"
#include "physics/phantom.h"
#include "physics/rays.h"

static const double pi = 3.14159265358979323846;

static tess_device *open_cpu(int threads)
{
    tess_device *device = NULL;
    tess_error error;
    if (tess_registry_open("cpu", &(tess_device_options){.memory = &test_counter, .threads = threads},
                           &device, &error) != TESS_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return device;
}

static tess_operator *make(tess_device *device, const tess_rays_settings *settings)
{
    tess_operator *op = NULL;
    tess_error error;
    if (tess_rays_create(device, settings, &op, &error) != TESS_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return op;
}

/* The adjoint as a device does it that gathers: each voxel looks for its rays; by ray3.h's weights, or in fp32 from the
 * voxel's shadow. */
static void gather(const tess_rays_settings *s, const float *views, bool by_shadow, float *volume)
{
    const tess_op op = tess_rays_slab(s, TESS_OP_BACKPROJECT, 0, s->depth, false);
    const tess_scan3 scan = tess_scan3_of(&op.rays, &op.out[0], &op.in[0]);
    for (int64_t i = 0; i < s->depth * s->height * s->width; i++) {
        const int voxel[3] = {(int)(i % s->width), (int)(i / s->width % s->height),
                              (int)(i / s->width / s->height)};
        double sum = 0;
        for (int64_t at = 0; at < s->views; at++) {
            if (by_shadow) {
                const tess_gather3 g = tess_gather3_of(&scan, s->vectors + at * TESS_VIEW3_NUMBERS);
                sum += tess_gather3_voxel(&scan, &g, voxel, views + at * s->rows * s->columns, s->columns, 1);
                continue;
            }
            const tess_view3 view = tess_view3_of(&scan, s->vectors + at * TESS_VIEW3_NUMBERS);
            const tess_shadow3 shadow = tess_view3_shadow(&view);
            const int axes = tess_view3_axes(&view, s->rows, s->columns);
            for (int axis = 0; axis < 3; axis++) {
                int box[4] = {0, -1, 0, -1};
                if (axes >> axis & 1)
                    tess_view3_box(&scan, &shadow, voxel, axis, box);
                for (int row = box[2]; row <= box[3]; row++)
                    for (int column = box[0]; column <= box[1]; column++) {
                        const tess_ray3 ray = tess_view3_ray(&view, row, column);
                        if (ray.axis == axis)
                            sum += tess_ray3_weight(&ray, voxel) *
                                   views[(at * s->rows + row) * s->columns + column];
                    }
            }
        }
        volume[i] = (float)sum;
    }
}

/* The same box by box, as in column3.h, in boxes of odd sizes. Values that no view gave stay NaN in the patch:
 * nothing may read them. */
static void gather_boxes(const tess_rays_settings *s, const float *views, float *volume)
{
    enum { WIDE = 9, TALL = 5, DEEP = 7 };
    static float patch[TESS_PATCH3_TALL * TESS_PATCH3_PITCH];
    const tess_op op = tess_rays_slab(s, TESS_OP_BACKPROJECT, 0, s->depth, false);
    const tess_scan3 scan = tess_scan3_of(&op.rays, &op.out[0], &op.in[0]);
    for (int z = 0; z < s->depth; z += DEEP)
        for (int y = 0; y < s->height; y += TALL)
            for (int x = 0; x < s->width; x += WIDE) {
                const tess_box3 box = {{x, y, z},
                                       {(int)fmin(WIDE, (double)(s->width - x)),
                                        (int)fmin(TALL, (double)(s->height - y)), DEEP}};
                float sums[TALL][WIDE][DEEP] = {{{0}}};
                for (int64_t at = 0; at < s->views; at++) {
                    const double *numbers = s->vectors + at * TESS_VIEW3_NUMBERS;
                    const float *values = views + at * s->rows * s->columns;
                    const tess_patch3 p = tess_patch3_of(&scan, numbers, &box);
                    for (int a = 0; a < 3; a++) {
                        if (!p.fits || !(p.axes >> a & 1))
                            continue;
                        for (int k = 0; k < TESS_PATCH3_TALL * TESS_PATCH3_PITCH; k++)
                            patch[k] = NAN;
                        for (int j = 0; j < p.high; j++)
                            for (int i = 0; i < p.wide; i++)
                                patch[j * TESS_PATCH3_PITCH + i] =
                                    tess_patch3_mixed(&p) && !tess_patch3_follows(&p, &scan, numbers, a, i, j)
                                        ? 0
                                        : tess_patch3_value(&p, &scan, a, i, j, values, s->columns, 1);
                        for (int i = 0; i < box.size[0] * box.size[1]; i++)
                            tess_column3_gather(&p, a, i % box.size[0], i / box.size[0], DEEP, patch,
                                                sums[i / box.size[0]][i % box.size[0]]);
                    }
                    const tess_gather3 g = tess_gather3_of(&scan, numbers);
                    for (int i = 0; i < box.size[0] * box.size[1] * box.size[2] && !p.fits; i++) {
                        const int l[3] = {i % box.size[0], i / box.size[0] % box.size[1],
                                          i / box.size[0] / box.size[1]},
                                  voxel[3] = {x + l[0], y + l[1], z + l[2]};
                        sums[l[1]][l[0]][l[2]] +=
                            tess_gather3_voxel(&scan, &g, voxel, values, s->columns, 1) / (float)s->spacing;
                    }
                }
                for (int i = 0; i < box.size[0] * box.size[1] * box.size[2]; i++) {
                    const int lx = i % box.size[0], ly = i / box.size[0] % box.size[1],
                              lz = i / box.size[0] / box.size[1];
                    if (z + lz < s->depth)
                        volume[((z + lz) * s->height + y + ly) * s->width + x + lx] =
                            sums[ly][lx][lz] * (float)s->spacing;
                }
            }
}

static void check_gather(tess_operator *op, const tess_rays_settings *s)
{
    const int64_t voxels = adjoint_count(&op->image), pixels = adjoint_count(&op->measurement);
    float *views = adjoint_floats(pixels), *added = adjoint_floats(voxels),
          *gathered = adjoint_floats(voxels);
    tess_rng_uniform((tess_rng_key){.seed = 5}, 0, pixels, views);
    op->table->adjoint(op, views, added, NULL, NULL);
    for (int way = 0; way < 3; way++) {
        if (way < 2)
            gather(s, views, way == 1, gathered);
        else
            gather_boxes(s, views, gathered);
        double largest = 0, difference = 0;
        for (int64_t i = 0; i < voxels; i++) {
            largest = fmax(largest, added[i]);
            const double apart = fabs((double)added[i] - gathered[i]);
            difference = apart <= difference ? difference : apart; /* NaN stays */
        }
        CHECK_MSG(difference <= 1e-5 * largest, "gathered and added differ by %g of %g", difference, largest);
    }
    free(views), free(added), free(gathered);
}

static void test_adjoint(tess_device *device)
{
    double vectors[7 * TESS_VIEW3_NUMBERS];
    for (int cone = 0; cone < 2; cone++) {
        tess_rays_settings s = {cone ? TESS_CONE_3D : TESS_PARALLEL_3D, 4, 5, 6, 0.7, 4, 6, 5, vectors};
        odd_views(s.views, cone, 9, 1.1, vectors);
        tess_operator *op = make(device, &s);
        check_adjoint_matrices(op);
        check_gather(op, &s);
        tess_operator_destroy(op);
        s = (tess_rays_settings){s.geometry, 23, 19, 31, 0.1, 7, 17, 29, vectors};
        for (int fine = 0; fine < 3; fine++) { /* pixels larger than voxels, and much smaller */
            odd_views(s.views, cone, 5, fine == 0 ? 0.25 : fine == 1 ? 0.15 : 0.04, vectors);
            op = make(device, &s);
            check_adjoint_draws(op);
            check_gather(op, &s);
            tess_operator_destroy(op);
        }
        /* Rays on the diagonal, where two axes tie. */
        tess_rays_circle(s.views = 4, 5, 4, 0.2, vectors);
        for (int k = 0; k < 4 * TESS_VIEW3_NUMBERS; k += 3) {
            const double x = vectors[k], y = vectors[k + 1];
            vectors[k] = (x - y) * sqrt(0.5), vectors[k + 1] = (x + y) * sqrt(0.5);
        }
        op = make(device, &s);
        check_adjoint_draws(op);
        check_gather(op, &s);
        tess_operator_destroy(op);
        for (int fine = 0; fine < 3; fine++) { /* a usual scanner; rows upside down */
            tess_rays_circle(s.views = 7, 5, 4, fine == 0 ? 0.3 : fine == 1 ? 0.13 : 0.05, vectors);
            for (int k = 11; k < 7 * TESS_VIEW3_NUMBERS; k += TESS_VIEW3_NUMBERS)
                vectors[k] *= fine == 1 ? -1.3 : 1;
            op = make(device, &s);
            check_adjoint_draws(op);
            check_gather(op, &s);
            tess_operator_destroy(op);
        }
    }
}

/* Exact integral along the line of a pixel; the phantom fills a cube of side 2 `half`. */
static double exact(const tess_ellipsoid *parts, int count, double half, const double from[3],
                    const double to[3])
{
    double sum = 0;
    const double length = sqrt(tess_dot3(to, to));
    for (int i = 0; i < count; i++) {
        const tess_ellipsoid *e = &parts[i];
        const double c = cos(e->angle * pi / 180), s = sin(e->angle * pi / 180);
        const double p[3] = {from[0] / half - e->centre[0], from[1] / half - e->centre[1],
                             from[2] / half - e->centre[2]};
        const double start[3] = {(c * p[0] + s * p[1]) / e->axis[0], (-s * p[0] + c * p[1]) / e->axis[1],
                                 p[2] / e->axis[2]};
        const double step[3] = {(c * to[0] + s * to[1]) / (half * e->axis[0]),
                                (-s * to[0] + c * to[1]) / (half * e->axis[1]), to[2] / (half * e->axis[2])};
        const double a = tess_dot3(step, step), b = tess_dot3(start, step), r = tess_dot3(start, start) - 1;
        if (b * b > a * r)
            sum += e->value * 2 * sqrt(b * b - a * r) / a * length;
    }
    return sum;
}

static double analytic_error(tess_device *device, const tess_ellipsoid *parts, int count, int64_t size,
                             bool cone)
{
    enum { VIEWS = 9 };
    double vectors[VIEWS * TESS_VIEW3_NUMBERS];
    const double half = 10, spacing = 2 * half / (double)size;
    tess_rays_circle(VIEWS, 40, 20, 1.5 * spacing, vectors);
    for (int i = 0; i < VIEWS && !cone; i++)
        for (int k = 0; k < 3; k++)
            vectors[i * TESS_VIEW3_NUMBERS + k] *= -1;
    const tess_rays_settings s = {
        cone ? TESS_CONE_3D : TESS_PARALLEL_3D, size, size, size, spacing, VIEWS, size, size, vectors};
    tess_operator *op = make(device, &s);
    float *volume = adjoint_floats(size * size * size), *views = adjoint_floats(VIEWS * size * size);
    tess_ellipsoids_draw(parts, count, size, size, size, 4, volume);
    op->table->forward(op, volume, views, NULL, NULL);
    double norm = 0, error = 0;
    for (int64_t i = 0; i < VIEWS * size * size; i++) {
        const double *view = vectors + i / (size * size) * TESS_VIEW3_NUMBERS;
        const double r = (double)(i / size % size) - 0.5 * (double)(size - 1),
                     c = (double)(i % size) - 0.5 * (double)(size - 1);
        double pixel[3], to[3];
        for (int k = 0; k < 3; k++) {
            pixel[k] = view[3 + k] + c * view[6 + k] + r * view[9 + k];
            to[k] = cone ? pixel[k] - view[k] : view[k];
        }
        const double truth = exact(parts, count, half, pixel, to);
        norm += truth * truth;
        error += (views[i] - truth) * (views[i] - truth);
    }
    tess_operator_destroy(op);
    free(volume), free(views);
    return sqrt(error / norm);
}

/* Edges, blurred over a voxel, make the error: it falls as the voxel does. 1 % is asked for at 256; the thin shell of
 * the head has more of them. */
static void test_analytic(tess_device *device, int64_t coarse_size, int64_t fine_size)
{
    static const tess_ellipsoid blobs[] = {{1, {0.7, 0.5, 0.6}, {0.05, -0.1, 0.1}, 20},
                                           {-0.4, {0.2, 0.3, 0.25}, {0.2, 0.1, 0}, -35},
                                           {0.8, {0.15, 0.12, 0.3}, {-0.3, 0.1, -0.1}, 50}};
    for (int way = 0; way < 3; way++) {
        const bool cone = way > 0, head = way == 2;
        const tess_ellipsoid *parts = head ? tess_shepp_logan_3d : blobs;
        const int count = head ? TESS_PHANTOM_PARTS : 3;
        const double allowed = 0.01 * 256 * (head ? 2.2 : 1);
        const double coarse = analytic_error(device, parts, count, coarse_size, cone),
                     fine = analytic_error(device, parts, count, fine_size, cone);
        printf("%s, %s: relative error %.3f %% at %lld, %.3f %% at %lld\n", cone ? "cone" : "parallel",
               head ? "Shepp-Logan" : "ellipsoids", 100 * coarse, (long long)coarse_size, 100 * fine,
               (long long)fine_size);
        CHECK_MSG(coarse < allowed / (double)coarse_size && fine < allowed / (double)fine_size &&
                      fine < 0.8 * coarse,
                  "%g, %g", coarse, fine);
    }
}

static void run_op(tess_device *device, const tess_op *op, const tess_op_buffers *call)
{
    tess_prepared *prepared;
    tess_error error;
    if (device->ops->prepare(device, op, &prepared, &error) != TESS_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    device->ops->run(device, prepared, call, NULL);
    device->ops->release(device, prepared);
}

/* Whole and in slabs, by one thread and by several. */
static void test_slabs(void)
{
    double vectors[7 * TESS_VIEW3_NUMBERS];
    for (int cone = 0; cone < 2; cone++) {
        const tess_rays_settings s = {
            cone ? TESS_CONE_3D : TESS_PARALLEL_3D, 23, 19, 31, 0.1, 7, 17, 29, vectors};
        odd_views(s.views, cone, 5, 0.15, vectors);
        const int64_t slice = s.height * s.width, voxels = s.depth * slice,
                      pixels = s.views * s.rows * s.columns;
        float *x = adjoint_floats(voxels), *y = adjoint_floats(pixels), *whole_x = adjoint_floats(voxels),
              *whole_y = adjoint_floats(pixels), *out_x = adjoint_floats(voxels),
              *out_y = adjoint_floats(pixels);
        tess_rng_uniform((tess_rng_key){.seed = 3}, 0, voxels, x);
        tess_rng_uniform((tess_rng_key){.seed = 4}, 0, pixels, y);
        for (int threads = 1; threads <= 5; threads += 2) {
            tess_device *device = open_cpu(threads);
            tess_operator *op = make(device, &s);
            const uint64_t calls = tess_mem_calls();
            op->table->forward(op, x, threads == 1 ? whole_y : out_y, NULL, NULL);
            op->table->adjoint(op, y, threads == 1 ? whole_x : out_x, NULL, NULL);
            CHECK(tess_mem_calls() == calls); /* no allocation while running */
            if (threads > 1) {
                CHECK(memcmp(whole_y, out_y, (size_t)pixels * sizeof *y) == 0);
                CHECK(memcmp(whole_x, out_x, (size_t)voxels * sizeof *x) == 0);
            }
            tess_operator_destroy(op);
            memset(out_x, 0xff, (size_t)voxels * sizeof *x);
            memset(out_y, 0xff, (size_t)pixels * sizeof *y);
            for (int64_t first = 0; first < s.depth; first += 5) {
                const int64_t slices = s.depth - first < 5 ? s.depth - first : 5;
                const tess_op ops[2] = {tess_rays_slab(&s, TESS_OP_PROJECT, first, slices, first > 0),
                                        tess_rays_slab(&s, TESS_OP_BACKPROJECT, first, slices, false)};
                const tess_op_buffers calls_of[2] = {
                    {.in = {x + first * slice}, .out = {out_y}, .weights = vectors},
                    {.in = {y}, .out = {out_x + first * slice}, .weights = vectors}};
                for (int i = 0; i < 2; i++)
                    run_op(device, &ops[i], &calls_of[i]);
            }
            CHECK(memcmp(whole_x, out_x, (size_t)voxels * sizeof *x) ==
                  0); /* a slab alone is the whole's slab */
            double largest = 0, difference = 0;
            for (int64_t i = 0; i < pixels; i++) {
                largest = fmax(largest, whole_y[i]);
                difference = fmax(difference, fabs((double)whole_y[i] - out_y[i]));
            }
            CHECK_MSG(difference <= 1e-6 * largest, "sum of slabs differs by %g of %g", difference, largest);
            tess_registry_close(device);
        }
        free(x), free(y), free(whole_x), free(whole_y), free(out_x), free(out_y);
    }
}

/* FDK's sum over views, in slabs of the volume and of the views. */
static void test_spread_slabs(tess_device *device)
{
    enum { DEPTH = 11, VOXELS = DEPTH * 13 * 9, VIEWS = 6, PIXELS = 12 * 17 };
    double vectors[VIEWS * TESS_VIEW3_NUMBERS];
    static float whole[VOXELS], slabs[VOXELS], views[VIEWS * PIXELS];
    tess_rays_circle(VIEWS, 30, 10, 1.2, vectors);
    tess_rng_uniform((tess_rng_key){.seed = 6}, 0, VIEWS * PIXELS, views);
    const tess_rays_settings s = {TESS_CONE_3D, DEPTH, 13, 9, 1, VIEWS, 12, 17, vectors};
    tess_op op = tess_rays_slab(&s, TESS_OP_RAY_SPREAD, 0, DEPTH, false);
    op.rays.scale = 0.3;
    run_op(device, &op, &(tess_op_buffers){.in = {views}, .out = {whole}, .weights = vectors});
    for (int64_t first = 0; first < DEPTH; first += 4)
        for (int64_t view = 0; view < VIEWS; view += 2) {
            const int64_t slices = DEPTH - first < 4 ? DEPTH - first : 4;
            op = tess_rays_slab(&s, TESS_OP_RAY_SPREAD, first, slices, view > 0);
            op.rays.scale = 0.3;
            op.in[0].d = 2;
            run_op(device, &op,
                   &(tess_op_buffers){.in = {views + view * PIXELS},
                                      .out = {slabs + first * 13 * 9},
                                      .weights = vectors + view * TESS_VIEW3_NUMBERS});
        }
    CHECK(memcmp(whole, slabs, sizeof whole) == 0);
}

/* The middle plane of a phantom comes back within a few percent, for cones and for half a circle of parallel rays. */
static void test_inverse(tess_device *device)
{
    enum { SIZE = 64, VIEWS = 180, COLUMNS = 96 };
    static const tess_ellipsoid blobs[] = {{1, {0.7, 0.6, 0.5}, {0, 0, 0}, 0},
                                           {0.5, {0.3, 0.25, 0.4}, {0.2, 0.1, 0}, 30}};
    static double vectors[2 * VIEWS * TESS_VIEW3_NUMBERS];
    const double spacing = 0.25;
    float *volume = adjoint_floats(SIZE * SIZE * SIZE), *back = adjoint_floats(SIZE * SIZE * SIZE);
    float *views = adjoint_floats(VIEWS * SIZE * COLUMNS);
    tess_ellipsoids_draw(blobs, 2, SIZE, SIZE, SIZE, 4, volume);
    for (int cone = 0; cone < 2; cone++) {
        if (cone)
            tess_rays_circle(VIEWS, 50, 25, 1.5 * spacing, vectors);
        else
            tess_rays_circle(2 * VIEWS, 1, 25, spacing, vectors);
        const tess_rays_settings s = {
            cone ? TESS_CONE_3D : TESS_PARALLEL_3D, SIZE, SIZE, SIZE, spacing, VIEWS, SIZE, COLUMNS, vectors};
        tess_operator *op = make(device, &s);
        CHECK(op->table->inverse);
        if (op->table->inverse) {
            void *scratch = adjoint_floats((int64_t)(op->scratch_bytes / sizeof(float)) + 1);
            op->table->forward(op, volume, views, scratch, NULL);
            for (int filter = TESS_FILTER_RAM_LAK; filter <= TESS_FILTER_HANN; filter++) {
                tess_rays_set_filter(op, (tess_filter)filter);
                op->table->inverse(op, views, back, scratch, NULL);
                double inside = 0, count = 0, error = 0, norm = 0;
                for (int64_t i = SIZE / 2 * SIZE * SIZE; i < (SIZE / 2 + 1) * SIZE * SIZE; i++) {
                    error += pow(back[i] - volume[i], 2), norm += pow(volume[i], 2);
                    if (volume[i] == 1.5f)
                        inside += back[i], count++;
                }
                const char *name = filter == TESS_FILTER_HANN ? "Hann" : "Ram-Lak";
                printf("%s, %s: 1.5 comes back as %.4f, relative error of the middle plane %.2f %%\n",
                       cone ? "FDK" : "parallel", name, inside / count, 100 * sqrt(error / norm));
                CHECK_MSG(fabs(inside / count - 1.5) < 0.03, "mean inside %g", inside / count);
                CHECK_MSG(sqrt(error / norm) < 0.12, "relative error %g", sqrt(error / norm));
            }
            free(scratch);
        }
        tess_operator_destroy(op);
    }
    free(volume), free(back), free(views);
}

static void refuse(tess_rays_settings s, int number, double value, const char *words)
{
    double vectors[4 * TESS_VIEW3_NUMBERS];
    tess_error error = {""};
    tess_rays_circle(4, 20, 10, 0.5, vectors);
    if (number >= 0)
        vectors[2 * TESS_VIEW3_NUMBERS + number] = value;
    s.vectors = vectors;
    const tess_status status = tess_rays_check(&s, &error);
    CHECK_MSG(status == (words ? TESS_BAD_INPUT : TESS_OK) && (!words || strstr(error.text, words)),
              "\"%s\" is not \"%s\"", error.text, words ? words : "");
}

static void test_refused(void)
{
    const tess_rays_settings good = {TESS_CONE_3D, 16, 16, 16, 0.5, 4, 20, 20, NULL};
    tess_rays_settings s = good;
    refuse(good, -1, 0, NULL);
    refuse(good, 4, NAN, "view 2: number 4 of its vectors is not finite");
    refuse(good, 1, INFINITY, "not finite");
    refuse(good, 1, 1, "view 2: the source lies inside the volume");
    refuse(good, 4, 30, "beside or behind the source");
    refuse(good, 3, 500, "view 2: the volume's shadow misses the detector");
    refuse(good, 5, -100, "misses the detector: it falls on rows");
    refuse(good, 11, 0, "must not be zero or parallel");
    refuse(good, 1, 1e12, "the source is more than");
    s.spacing = 0;
    refuse(s, -1, 0, "voxel size");
    s.spacing = 4;
    refuse(s, -1, 0, "inside the volume");
    s = good, s.rows = 0;
    refuse(s, -1, 0, "rows is 0");
    s = good, s.rows = 1 << 19;
    refuse(s, -1, 0, "rows is 524288; it must be from 1 to 262144");
    s = good, s.geometry = TESS_PARALLEL_3D;
    refuse(s, 1, 0, "runs along the detector");
}

int main(void)
{
    tess_device *device = open_cpu(0);
    test_adjoint(device);
    test_analytic(device, 128, 256);
    test_slabs();
    test_spread_slabs(device);
    test_inverse(device);
    test_refused();
    tess_registry_close(device);
    return check_end();
}
