/* Compares the Radon transform with its formula in fp64; its transpose, and filtered backprojection. */
#include <string.h>

#include "adjoint.h"
#include "counter.h"
#include "device/device.h"
#include "physics/phantom.h"
#include "physics/radon.h"

static const double pi = 3.14159265358979323846;

static tess_device *open_cpu(int threads)
{
    tess_device *device = NULL;
    tess_error error = {{0}};
    tess_device_options options = {.memory = &test_counter, .threads = threads};
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    return device;
}

static tess_operator *make(tess_device *device, int64_t size, int64_t views, const double *angles,
                           bool circle)
{
    tess_operator *op = NULL;
    tess_error error = {{0}};
    CHECK_MSG(tess_radon_create(device, size, views, angles, circle, &op, &error) == TESS_OK, "%s",
              error.text);
    return op;
}

static double *even_angles(int64_t views)
{
    double *angles = malloc((size_t)views * sizeof *angles);
    for (int64_t k = 0; angles && k < views; k++)
        angles[k] = 180.0 * (double)k / (double)views;
    return angles;
}

/* The pixel, or zero outside the image or the circle. */
static double pixel(const float *image, int64_t size, bool circle, int64_t x, int64_t y)
{
    if (x < 0 || y < 0 || x >= size || y >= size)
        return 0;
    const double gx = 2.0 * (double)x / (double)(size - 1) - 1, gy = 2.0 * (double)y / (double)(size - 1) - 1;
    return circle && gx * gx + gy * gy > 1 + 1e-12 ? 0 : (double)image[y * size + x];
}

/* The formula of physics/radon.h as it stands there. */
static double plain(const float *image, int64_t size, bool circle, double degrees, int64_t s)
{
    const double c = cos(degrees * pi / 180), n = sin(degrees * pi / 180), last = (double)(size - 1);
    const double gs = 2 * (double)s / last - 1;
    double sum = 0;
    for (int64_t h = 0; h < size; h++) {
        const double gh = 2 * (double)h / last - 1;
        const double x = (gs * c + gh * n + 1) * last / 2, y = (-gs * n + gh * c + 1) * last / 2;
        const double fx = x - floor(x), fy = y - floor(y);
        const int64_t i = (int64_t)floor(x), j = (int64_t)floor(y);
        sum += (1 - fy) *
                   ((1 - fx) * pixel(image, size, circle, i, j) + fx * pixel(image, size, circle, i + 1, j)) +
               fy * ((1 - fx) * pixel(image, size, circle, i, j + 1) +
                     fx * pixel(image, size, circle, i + 1, j + 1));
    }
    return sum;
}

static void test_formula(tess_device *device, int64_t size, bool circle)
{
    const double angles[] = {0, 45, 90, 179, 1.8, 30, 123.4, 135, 180, 270, -20, 333.3};
    enum { VIEWS = sizeof angles / sizeof angles[0] };
    tess_operator *op = make(device, size, VIEWS, angles, circle);
    float *image = adjoint_floats(size * size), *views = adjoint_floats(VIEWS * size);
    void *scratch = adjoint_floats((int64_t)op->scratch_bytes / 4 + 1);
    tess_rng_uniform((tess_rng_key){.seed = 3}, 0, size * size, image);
    op->table->forward(op, image, views, scratch, NULL);
    double worst = 0, largest = 0;
    for (int64_t k = 0; k < VIEWS; k++)
        for (int64_t s = 0; s < size; s++) {
            const double right = plain(image, size, circle, angles[k], s);
            worst = fmax(worst, fabs(right - (double)views[k * size + s]));
            largest = fmax(largest, fabs(right));
        }
    /* The sine of 180 degrees is not quite zero, so samples on the image's edge may fall off it: by nothing. */
    CHECK_MSG(worst <= 2e-6 * largest, "size %lld, circle %d: off by %g of %g", (long long)size, circle,
              worst, largest);
    free(image), free(views), free(scratch);
    tess_operator_destroy(op);
}

static void test_adjoint(tess_device *device)
{
    const int64_t tiny[] = {2, 3, 9, 12, 17}, real[] = {33, 100, 257};
    for (int circle = 0; circle < 2; circle++) {
        for (int i = 0; i < 5; i++) {
            double *angles = even_angles(11);
            tess_operator *op = make(device, tiny[i], 11, angles, circle);
            if (tiny[i] > 3 || !circle)
                check_adjoint_matrices(op);
            tess_operator_destroy(op);
            free(angles);
        }
        for (int i = 0; i < 3; i++) {
            double *angles = even_angles(37);
            tess_operator *op = make(device, real[i], 37, angles, circle);
            check_adjoint_draws(op);
            tess_operator_destroy(op);
            free(angles);
        }
    }
}

static void test_threads(void)
{
    enum { SIZE = 131, VIEWS = 23 };
    double *angles = even_angles(VIEWS);
    float *image = adjoint_floats(SIZE * SIZE), *views[2], *back[2];
    tess_phantom_2d(SIZE, 2, image);
    for (int i = 0; i < 2; i++) {
        tess_device *device = open_cpu(i + 1);
        tess_operator *op = make(device, SIZE, VIEWS, angles, true);
        void *scratch = adjoint_floats((int64_t)op->scratch_bytes / 4 + 1);
        views[i] = adjoint_floats(VIEWS * SIZE), back[i] = adjoint_floats(SIZE * SIZE);
        const uint64_t calls = tess_mem_calls();
        op->table->forward(op, image, views[i], scratch, NULL);
        op->table->adjoint(op, views[i], back[i], scratch, NULL);
        CHECK(tess_mem_calls() == calls); /* no allocation while running */
        tess_operator_destroy(op);
        tess_registry_close(device);
        free(scratch);
    }
    CHECK(memcmp(views[0], views[1], VIEWS * SIZE * sizeof(float)) == 0);
    CHECK(memcmp(back[0], back[1], SIZE * SIZE * sizeof(float)) == 0);
    for (int i = 0; i < 2; i++)
        free(views[i]), free(back[i]);
    free(image), free(angles);
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

/* A smooth hill comes back as it was, and the head above a bar; the corners stay zero. */
static void test_filtered(tess_device *device)
{
    enum { SIZE = 128, VIEWS = 180 };
    double *angles = even_angles(VIEWS);
    tess_operator *op = make(device, SIZE, VIEWS, angles, true);
    if (!op->table->inverse) {
        printf("no FFT on this device: filtered backprojection is not tested\n");
    } else {
        float *truth = adjoint_floats(SIZE * SIZE), *views = adjoint_floats(VIEWS * SIZE);
        float *result = adjoint_floats(SIZE * SIZE);
        void *scratch = adjoint_floats((int64_t)op->scratch_bytes / 4 + 1);
        for (int64_t i = 0; i < SIZE * SIZE; i++) {
            const double x = (double)(i % SIZE) - 70, y = (double)(i / SIZE) - 58;
            truth[i] = (float)exp(-(x * x + 2 * y * y) / (2 * 12.0 * 12.0));
        }
        op->table->forward(op, truth, views, scratch, NULL);
        op->table->inverse(op, views, result, scratch, NULL);
        const double hill = psnr(result, truth, SIZE * SIZE);
        tess_phantom_2d(SIZE, 4, truth);
        op->table->forward(op, truth, views, scratch, NULL);
        op->table->inverse(op, views, result, scratch, NULL);
        const double sharp = psnr(result, truth, SIZE * SIZE);
        CHECK(result[0] == 0 && result[SIZE * SIZE - 1] == 0);
        tess_radon_set_filter(op, TESS_FILTER_HANN);
        op->table->inverse(op, views, result, scratch, NULL);
        const double soft = psnr(result, truth, SIZE * SIZE);
        printf("filtered backprojection: hill %.1f dB, head %.1f dB (Ram-Lak), %.1f dB (Hann)\n", hill, sharp,
               soft);
        CHECK(hill > 50);
        CHECK(sharp > 24 && soft > 20);
        free(truth), free(views), free(result), free(scratch);
    }
    tess_operator_destroy(op);
    free(angles);
}

/* Rows of a backprojection alone have the bits that they have in the whole. */
static void test_strip(tess_device *device)
{
    enum { SIZE = 37, VIEWS = 9, FIRST = 11, ROWS = 15 };
    double *angles = even_angles(VIEWS), table[VIEWS * 3];
    for (int k = 0; k < VIEWS; k++) {
        table[3 * k] = cos(angles[k] * pi / 180);
        table[3 * k + 1] = sin(angles[k] * pi / 180);
        table[3 * k + 2] = 0.5 * (SIZE - 1);
    }
    float views[VIEWS * SIZE], whole[SIZE * SIZE], strip[ROWS * SIZE];
    for (int i = 0; i < VIEWS * SIZE; i++)
        views[i] = (float)(i * 7919 % 1000) / 1000;
    for (int part = 0; part < 2; part++) {
        tess_op op = {
            .kind = TESS_OP_BACKPROJECT,
            .inputs = 1,
            .outputs = 1,
            .in = {tess_tensor_2d(TESS_F32, 1, VIEWS, SIZE, 1)},
            .out = {tess_tensor_2d(TESS_F32, 1, part ? ROWS : SIZE, SIZE, 1)},
            .rays = {.geometry = TESS_PARALLEL_2D, .spacing = 1, .circle = true, .first = part ? FIRST : 0}};
        tess_prepared *prepared = NULL;
        tess_error error = {{0}};
        CHECK_MSG(device->ops->prepare(device, &op, &prepared, &error) == TESS_OK, "%s", error.text);
        device->ops->run(device, prepared,
                         &(tess_op_buffers){.in = {views}, .out = {part ? strip : whole}, .weights = table},
                         NULL);
        device->ops->release(device, prepared);
        op.rays.first = SIZE - ROWS + 1;
        op.out[0].h = ROWS;
        CHECK(device->ops->prepare(device, &op, &prepared, &error) == TESS_UNSUPPORTED);
    }
    CHECK(memcmp(strip, whole + FIRST * SIZE, sizeof strip) == 0);
    free(angles);
}

static void test_refused(tess_device *device)
{
    tess_operator *op;
    tess_error error;
    const double bad = NAN, good = 0;
    CHECK(tess_radon_create(device, 1, 1, &good, true, &op, &error) == TESS_BAD_OPTION && !op);
    CHECK(tess_radon_create(device, 16, 0, &good, true, &op, &error) == TESS_BAD_OPTION && !op);
    CHECK(tess_radon_create(device, 16, 1, &bad, true, &op, &error) == TESS_BAD_OPTION && !op);
    for (uint64_t n = 1; n < 40; n++) { /* the n-th allocation fails */
        tess_mem_fail_at(n);
        const tess_status status = tess_radon_create(device, 16, 1, &good, true, &op, &error);
        tess_mem_fail_at(0);
        CHECK(status == TESS_OK || (status == TESS_NO_MEMORY && !op));
        tess_operator_destroy(op);
        if (status == TESS_OK)
            break;
        CHECK(n < 39);
    }
}

int main(void)
{
    tess_device *device = open_cpu(2);
    const int64_t sizes[] = {2, 5, 17, 32, 75};
    for (int i = 0; i < 5; i++) {
        test_formula(device, sizes[i], true);
        test_formula(device, sizes[i], false);
    }
    test_adjoint(device);
    test_threads();
    test_filtered(device);
    test_strip(device);
    test_refused(device);
    tess_registry_close(device);
    return check_end();
}
