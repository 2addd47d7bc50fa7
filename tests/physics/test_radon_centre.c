/* An axis that is not in the middle of the detector, and detectors wider or narrower than the image: the formula of
 * physics/radon.h, the transpose, a disk whose line integrals are known, filtered backprojection without loss; and
 * the axis is found again from the views. */
#include "adjoint.h"
#include "counter.h"
#include "device/device.h"
#include "physics/centre.h"
#include "physics/phantom.h"
#include "physics/radon.h"

static const double pi = 3.14159265358979323846;

static tess_operator *make(tess_device *device, const tess_radon_settings *settings)
{
    tess_operator *op = NULL;
    tess_error error = {{0}};
    CHECK_MSG(tess_radon_create_scan(device, settings, &op, &error) == TESS_OK, "%s", error.text);
    return op;
}

static void fill(int64_t count, double span, double first, double *angles)
{
    for (int64_t k = 0; k < count; k++)
        angles[k] = first + span * (double)k / (double)count;
}

static double pixel(const float *image, int64_t size, bool circle, int64_t x, int64_t y)
{
    if (x < 0 || y < 0 || x >= size || y >= size)
        return 0;
    const double u = (double)(2 * x - size + 1), v = (double)(2 * y - size + 1), r = (double)(size - 1);
    return circle && u * u + v * v > r * r ? 0 : (double)image[y * size + x];
}

/* The formula as it stands in physics/radon.h; without the circle, far enough along the ray to leave the
 * image. */
static double plain(const float *image, const tess_radon_settings *s, int64_t view, int64_t column)
{
    const double t = s->angles[view] * pi / 180, c = cos(t), n = sin(t), middle = 0.5 * (double)(s->size - 1);
    const double away = (double)column - s->centres[view];
    double sum = 0;
    for (int64_t k = s->circle ? 0 : -s->size; k < (s->circle ? 1 : 2) * s->size; k++) {
        const double h = (double)k - middle;
        const double x = middle + away * c + h * n, y = middle - away * n + h * c;
        const double fx = x - floor(x), fy = y - floor(y);
        const int64_t i = (int64_t)floor(x), j = (int64_t)floor(y);
        sum += (1 - fy) * ((1 - fx) * pixel(image, s->size, s->circle, i, j) +
                           fx * pixel(image, s->size, s->circle, i + 1, j)) +
               fy * ((1 - fx) * pixel(image, s->size, s->circle, i, j + 1) +
                     fx * pixel(image, s->size, s->circle, i + 1, j + 1));
    }
    return sum;
}

static void test_formula(tess_device *device, int64_t size, int64_t columns, double off, bool circle)
{
    static const double angles[] = {0.5, 45, 90.2, 179, 1.8, 30, 123.4, 135, 181, 269, -20, 333.3};
    enum { VIEWS = sizeof angles / sizeof angles[0] };
    double centres[VIEWS];
    for (int k = 0; k < VIEWS; k++)
        centres[k] = 0.5 * (double)(columns - 1) + off + 0.1 * k;
    const tess_radon_settings s = {size, VIEWS, columns, angles, centres, circle, !circle};
    tess_operator *op = make(device, &s);
    float *image = adjoint_floats(size * size), *views = adjoint_floats(VIEWS * columns);
    void *scratch = adjoint_floats((int64_t)op->scratch_bytes / 4 + 1);
    tess_rng_uniform((tess_rng_key){.seed = 3}, 0, size * size, image);
    op->table->forward(op, image, views, scratch, NULL);
    double worst = 0, largest = 0;
    for (int64_t k = 0; k < VIEWS; k++)
        for (int64_t i = 0; i < columns; i++) {
            const double right = plain(image, &s, k, i);
            worst = fmax(worst, fabs(right - (double)views[k * columns + i]));
            largest = fmax(largest, fabs(right));
        }
    CHECK_MSG(largest > 0 && worst <= 3e-5 * largest, "%lld pixels on %lld columns, off by %g: %g of %g",
              (long long)size, (long long)columns, off, worst, largest);
    if (size < 20)
        check_adjoint_matrices(op);
    check_adjoint_draws(op);
    free(image), free(views), free(scratch);
    tess_operator_destroy(op);
}

/* Line integrals of a disk off the axis, as a detector with the axis at column a sees it; and its image. */
static void disk(int64_t size, int64_t count, int64_t columns, const double *angles, double a, float *views,
                 float *image)
{
    enum { SUB = 5 };
    const double x = 0.11 * (double)size, y = -0.07 * (double)size, r = 0.2 * (double)size;
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = 0; i < columns; i++) {
            const double t = angles[k] * pi / 180, at = a + x * cos(t) - y * sin(t);
            double sum = 0;
            for (int q = 0; q < SUB; q++) { /* the mean over a detector's pixel */
                const double away = (double)i + (q + 0.5) / SUB - 0.5 - at;
                sum += fabs(away) < r ? 2 * sqrt(r * r - away * away) / SUB : 0;
            }
            views[k * columns + i] = (float)sum;
        }
    for (int64_t i = 0; image && i < size * size; i++) {
        int inside = 0;
        for (int q = 0; q < SUB * SUB; q++) {
            const double u = (double)(i % size) - 0.5 * (double)(size - 1) + (q % SUB + 0.5) / SUB - 0.5 - x,
                         v = (double)(i / size) - 0.5 * (double)(size - 1) + (q / SUB + 0.5) / SUB - 0.5 - y;
            inside += u * u + v * v <= r * r;
        }
        image[i] = (float)inside / (SUB * SUB);
    }
}

static double psnr(const float *result, const float *truth, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double difference = fmin(fmax((double)result[i], 0), 1) - (double)truth[i];
        sum += difference * difference;
    }
    return -10 * log10(sum / (double)count);
}

/* Filtered backprojection of the disk, with the axis at `seen` and taken to be at `taken`. */
static double reconstruct(tess_device *device, int64_t columns, double seen, double taken)
{
    enum { SIZE = 96, VIEWS = 150 };
    double angles[VIEWS], centres[VIEWS];
    fill(VIEWS, 180, 0, angles);
    for (int k = 0; k < VIEWS; k++)
        centres[k] = taken;
    const tess_radon_settings s = {SIZE, VIEWS, columns, angles, centres, true, false};
    tess_operator *op = make(device, &s);
    float *views = adjoint_floats(VIEWS * columns), *truth = adjoint_floats(SIZE * SIZE),
          *result = adjoint_floats(SIZE * SIZE), *projected = adjoint_floats(VIEWS * columns);
    void *scratch = adjoint_floats((int64_t)op->scratch_bytes / 4 + 1);
    disk(SIZE, VIEWS, columns, angles, seen, views, truth);
    double worst = 0;
    op->table->forward(op, truth, projected, scratch, NULL);
    for (int64_t i = 0; i < VIEWS * columns && seen == taken; i++)
        worst += fabs((double)(projected[i] - views[i])) / (VIEWS * (double)columns);
    CHECK_MSG(worst < 0.15, "a disk's line integrals are off by %g on average", worst);
    double is = 0;
    if (op->table->inverse) {
        op->table->inverse(op, views, result, scratch, NULL);
        is = psnr(result, truth, SIZE * SIZE);
    }
    free(views), free(truth), free(result), free(projected), free(scratch);
    tess_operator_destroy(op);
    return is;
}

static void test_disk(tess_device *device)
{
    const double middle = reconstruct(device, 96, 47.5, 47.5), off = reconstruct(device, 96, 48, 48),
                 wrong = reconstruct(device, 96, 48, 47.5), wide = reconstruct(device, 131, 52.3, 52.3);
    printf(
        "a disk: %.2f dB; the axis half a column off: %.2f dB, not told %.2f dB; a wider detector: %.2f dB\n",
        middle, off, wrong, wide);
    CHECK(middle == 0 || (off > middle - 0.5 && wide > middle - 0.5 && wrong < middle - 5));
}

static tess_status find(const float *views, int64_t count, int64_t columns, const double *angles,
                        tess_centre *centre, tess_error *error)
{
    void *memory = malloc(tess_centre_bytes(count, columns));
    const tess_status status =
        tess_centre_find(&(tess_centre_views){views, angles, count, columns, NULL}, memory, centre, error);
    free(memory);
    return status;
}

static void test_found(int64_t count, double span, double first, double noise, double most)
{
    enum { COLUMNS = 128, MOST = 400 };
    static const double columns[] = {63.5, 64, 60.2, 71.87, 40.1};
    double angles[MOST];
    float *views = adjoint_floats(count * COLUMNS), *draws = adjoint_floats(count * COLUMNS);
    fill(count, span, first, angles);
    for (int i = 0; i < 5; i++) {
        tess_centre centre = {0};
        tess_error error = {{0}};
        disk(100, count, COLUMNS, angles, columns[i], views, NULL);
        tess_rng_normal((tess_rng_key){.seed = (uint64_t)i}, 0, count * COLUMNS, draws);
        for (int64_t k = 0; k < count * COLUMNS; k++)
            views[k] += (float)noise * draws[k];
        const tess_status status = find(views, count, COLUMNS, angles, &centre, &error);
        CHECK_MSG(status == TESS_OK, "%s", error.text);
        CHECK_MSG(fabs(centre.column - columns[i]) < most, "%lld views over %g degrees: %g is found as %g",
                  (long long)count, span, columns[i], centre.column);
        CHECK(centre.pairs == (span == 360 ? count / 2 : 0));
    }
    free(views), free(draws);
}

/* Thin wires in noise, over half a turn without opposite views: their centres of mass are off by up to a column. */
static void test_wires(int64_t count, double span, double noise, double background, double most)
{
    enum { COLUMNS = 128, WIRES = 6, SEEDS = 6, MOST = 600 };
    double angles[MOST], squares = 0;
    float *views = adjoint_floats(count * COLUMNS), *draws = adjoint_floats(count * COLUMNS);
    fill(count, span, 10, angles);
    for (int seed = 0; seed < SEEDS; seed++) {
        const double axis = 60.3 + 1.37 * seed;
        tess_centre centre = {0};
        tess_error error = {{0}};
        tess_rng_normal((tess_rng_key){.seed = (uint64_t)seed + 20}, 0, count * COLUMNS, draws);
        for (int64_t i = 0; i < count * COLUMNS; i++) {
            const double t = angles[i / COLUMNS] * pi / 180;
            double sum = background + noise * (double)draws[i];
            for (int w = 0; w < WIRES; w++) {
                const double at = axis + 8 * w * cos(t + 2.1 * w + seed), away = (double)(i % COLUMNS) - at;
                sum += exp(-0.5 * away * away);
            }
            views[i] = (float)sum;
        }
        const tess_status status = find(views, count, COLUMNS, angles, &centre, &error);
        CHECK_MSG(status == TESS_OK && centre.pairs == 0 && centre.spectrum, "%s", error.text);
        CHECK_MSG(fabs(centre.column - axis) < fmin(most, 4 * centre.within), "%g is found as %g +- %g", axis,
                  centre.column, centre.within);
        squares += (centre.column - axis) * (centre.column - axis) / SEEDS;
    }
    printf("wires in %lld views: the axis is found to %.4f columns\n", (long long)count, sqrt(squares));
    free(views), free(draws);
}

/* An object that is wider than the detector: opposite views still give the axis, centres of mass do not. */
static void test_cut_off(void)
{
    enum { COLUMNS = 100, VIEWS = 120 };
    static const double columns[] = {35, 40.2, 60.7};
    static const struct {
        double x, y, r, value;
    } disks[] = {{0, 0, 50, 0.4}, {20, -10, 10, 0.5}, {-25, -20, 6, 0.3}, {-10, 30, 4, 0.6}};
    double angles[VIEWS];
    float *views = adjoint_floats(VIEWS * COLUMNS);
    for (int i = 0; i < 6; i++) {
        tess_centre centre = {0};
        tess_error error = {{0}};
        fill(VIEWS, i < 3 ? 180 : 360, 0, angles);
        for (int64_t k = 0; k < VIEWS * COLUMNS; k++) {
            const double t = angles[k / COLUMNS] * pi / 180;
            double sum = 0;
            for (int d = 0; d < 4; d++) {
                const double away =
                    (double)(k % COLUMNS) - columns[i % 3] - disks[d].x * cos(t) + disks[d].y * sin(t);
                sum += 2 * disks[d].value * sqrt(fmax(0, disks[d].r * disks[d].r - away * away));
            }
            views[k] = (float)sum;
        }
        const tess_status status = find(views, VIEWS, COLUMNS, angles, &centre, &error);
        if (i < 3)
            CHECK_MSG(status == TESS_BAD_INPUT && strstr(error.text, "wider than the detector"),
                      "%g is found as %g: %s", columns[i], centre.column, error.text);
        else
            CHECK_MSG(status == TESS_OK && fabs(centre.column - columns[i - 3]) < 0.03,
                      "%g is found as %g: %s", columns[i - 3], centre.column, error.text);
    }
    free(views);
}

static void test_no_shadow(tess_device *device)
{
    static const double angles[] = {0, 60, 120}, far[] = {635, 635, 635}, before[] = {-80, -80, -80};
    for (int circle = 0; circle < 2; circle++)
        for (int i = 0; i < 2; i++) {
            const tess_radon_settings s = {128, 3, 128, angles, i ? before : far, circle, !circle};
            tess_operator *op = NULL;
            tess_error error = {{0}};
            CHECK_MSG(tess_radon_create_scan(device, &s, &op, &error) == TESS_BAD_OPTION &&
                          strstr(error.text, "misses the detector"),
                      "%s", error.text);
        }
}

static void test_not_found(void)
{
    enum { COLUMNS = 64, VIEWS = 60 };
    double angles[VIEWS];
    float *views = adjoint_floats(VIEWS * COLUMNS);
    tess_centre centre;
    tess_error error = {{0}};
    fill(VIEWS, 360, 0, angles);
    tess_rng_uniform((tess_rng_key){.seed = 5}, 0, VIEWS * COLUMNS, views);
    for (int64_t i = 0; i < VIEWS * COLUMNS; i++)
        views[i] -= 0.5f;
    CHECK(find(views, VIEWS, COLUMNS, angles, &centre, &error) == TESS_BAD_INPUT);
    fill(VIEWS, 180, 0, angles); /* more than the detector sees */
    disk(200, VIEWS, COLUMNS, angles, 31.5, views, NULL);
    CHECK(find(views, VIEWS, COLUMNS, angles, &centre, &error) == TESS_BAD_INPUT);
    fill(VIEWS, 5, 0, angles); /* the wave cannot be separated from its mean */
    disk(50, VIEWS, COLUMNS, angles, 31.5, views, NULL);
    CHECK(find(views, VIEWS, COLUMNS, angles, &centre, &error) == TESS_BAD_INPUT);
    memset(views, 0, VIEWS * COLUMNS * sizeof *views);
    CHECK(find(views, VIEWS, COLUMNS, angles, &centre, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, "all its values are zero"), "%s", error.text);
    fill(VIEWS, 360, 0, angles);
    CHECK(find(views, VIEWS, COLUMNS, angles, &centre, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, "all its values are zero"), "%s", error.text);
    for (uint64_t n = 1; n <= 3; n++) {
        tess_mem_fail_at(n);
        CHECK(find(views, VIEWS, COLUMNS, angles, &centre, &error) == TESS_NO_MEMORY);
        tess_mem_fail_at(0);
    }
    free(views);
}

int main(void)
{
    tess_device *device = NULL;
    tess_error error = {{0}};
    const tess_device_options options = {.memory = &test_counter, .threads = 2};
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    for (int circle = 0; circle < 2; circle++) {
        test_formula(device, 9, 9, 0.5, circle);
        test_formula(device, 12, 19, -0.3, circle);
        test_formula(device, 17, 7, 1.7, circle);
        test_formula(device, 75, 75, 0.5, circle);
        test_formula(device, 64, 101, -9.25, circle);
        test_formula(device, 101, 40, 20, circle);
    }
    test_disk(device);
    test_no_shadow(device);
    test_cut_off();
    test_found(360, 360, 0, 0, 0.01);
    test_found(120, 360, 3, 1, 0.1);
    test_found(180, 180, 0, 0, 0.05);
    test_found(121, 180, -30, 0.5, 0.25);
    test_wires(90, 180, 0.05, 0, 0.1);
    test_wires(600, 180, 0.05, 0, 0.05);
    test_wires(91, 360, 0.05, 0, 0.1);
    test_wires(90, 180, 0, 0.02, 0.05);
    test_not_found();
    tess_registry_close(device);
    return check_end();
}
