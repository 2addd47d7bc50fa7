/* Statistics of pixels with many bands on the CPU, of every instruction set, against plain sums; threads change no bit. */
#include "counter.h"
#include "statistics_cases.h"

static void check_device(tess_device *device)
{
    check_each_image(device);
    for (int i = 0; i < PIXELS_CASES; i++) {
        const pixels_case *k = &pixels_cases[i];
        check_moments(device, k, true, i % 2);
        check_moments(device, k, true, i % 2 == 0);
        check_moments(device, k, false, i % 2);
        check_score(device, k, k->c, 2e-5);
        check_score(device, k, 1 + k->c / 3, 2e-5);
    }
    for (int i = 0; i < LOCAL_CASES; i++) {
        check_local(device, &local_cases[i], 7, 3, TESS_F64);
        check_local(device, &local_cases[i], 9, 1, TESS_F64);
        check_local(device, &local_cases[i], 3, 1, TESS_F32);
    }
}

/* One call for a whole image, and one for each block of rows in any order: the same to 1e-12. */
static void check_blocks(tess_device *device, double level)
{
    enum { C = 33, H = 101, W = 64 };
    const pixels_case whole = {"whole", {1, 1, H, W}, C, 0, 0, level, 0, 0};
    const size_t values = tess_moments_values(C, true);
    operand pixels = case_operand(&whole);
    const int64_t rows[] = {H, 50, 7, 1};
    double *results[8];
    for (int r = 0; r < 8; r++) {
        const int64_t step = rows[r / 2], blocks = (H + step - 1) / step;
        results[r] = malloc(values * sizeof(double));
        tess_moments_clear(results[r], C, true);
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t first = (r % 2 ? blocks - 1 - b : b) * step,
                          count = first + step < H ? step : H - first;
            train_call call = {.op = {.kind = TESS_OP_MOMENTS, .inputs = 1, .outputs = 1, .moments = {true}},
                               .out = {case_vector(values)}};
            operand got[TESS_OP_OUTPUTS];
            call.in[0] =
                (operand){tess_tensor_2d(TESS_F32, 1, count, W, C), {NULL, (size_t)(count * W * C) * 4}, 0};
            call.in[0].f.data = malloc(call.in[0].f.bytes);
            memcpy(call.in[0].f.data, (float *)pixels.f.data + first * W * C, call.in[0].f.bytes);
            memcpy(call.out[0].f.data, results[r], values * sizeof(double));
            if (train_run(device, &call, got, "block")) {
                memcpy(results[r], got[0].f.data, values * sizeof(double));
                free(got[0].f.data);
            }
            train_free(&call);
        }
        compare_moments(results[r], results[0], C, true, 1e-12, "blocks of rows");
    }
    for (int r = 0; r < 8; r++)
        free(results[r]);
    free(pixels.f.data);
}

static void check_threads(void)
{
    const pixels_case k = {"threads", {1, 1, 100, 83}, 30, 0, 0, 10, 0, 17};
    const tess_op_kind kinds[] = {TESS_OP_MOMENTS, TESS_OP_LOCAL_RX};
    for (int which = 0; which < 2; which++) {
        field results[2];
        for (int i = 0; i < 2; i++) {
            const tess_device_options options = {.memory = &test_counter, .threads = 1 + 2 * i};
            tess_device *device = NULL;
            CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
            train_call call = {.op = {.kind = kinds[which], .inputs = 1, .outputs = 1},
                               .in = {case_operand(&k)}};
            operand got[TESS_OP_OUTPUTS];
            if (which) {
                call.op.kernel[0] = 1;
                call.op.kernel[1] = call.op.kernel[2] = 5;
                call.op.local_rx = (tess_op_local_rx){1, 0.1};
                call.out[0] = case_vector((size_t)case_pixels(&k));
                call.out[0].t = tess_tensor_2d(TESS_F64, 1, k.size[2], k.size[3], 1);
            } else {
                call.op.moments.covariance = true;
                call.out[0] = case_vector(tess_moments_values((int)k.c, true));
            }
            CHECK(train_run(device, &call, got, "threads"));
            results[i] = got[0].f;
            train_free(&call);
            tess_registry_close(device);
        }
        CHECK(memcmp(results[0].data, results[1].data, results[0].bytes) == 0);
        free(results[0].data), free(results[1].data);
    }
}

static void check_refusal(tess_device *device, const tess_op *op, const char *words)
{
    tess_op_needs needs;
    tess_error error = {{0}};
    CHECK(device->ops->query(device, op, &needs, &error) == TESS_UNSUPPORTED);
    CHECK_MSG(strstr(error.text, words), "\"%s\" does not say \"%s\"", error.text, words);
}

static void check_refusals(void)
{
    const tess_device_options options = {.memory = &test_counter, .threads = 1};
    tess_device *device = NULL;
    CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
    tess_op op = {.kind = TESS_OP_LOCAL_RX,
                  .inputs = 1,
                  .outputs = 1,
                  .kernel = {1, 5, 5},
                  .local_rx = {5, 0},
                  .in = {tess_tensor_2d(TESS_F32, 1, 8, 8, 4)},
                  .out = {tess_tensor_2d(TESS_F32, 1, 8, 8, 1)}};
    check_refusal(device, &op, "two odd windows");
    op.local_rx = (tess_op_local_rx){3, NAN};
    check_refusal(device, &op, "epsilon");
    op.in[0].dtype = TESS_BF16;
    check_refusal(device, &op, "fp32");
    tess_op same = op;
    same.local_rx.inner = 1;
    CHECK(!tess_op_same(&op, &same));
    tess_op moments = {.kind = TESS_OP_MOMENTS,
                       .inputs = 1,
                       .outputs = 1,
                       .moments = {true},
                       .in = {tess_tensor_2d(TESS_F32, 1, 8, 8, 4)},
                       .out = {tess_tensor_2d(TESS_F64, 1, 1, 1, 7)}};
    check_refusal(device, &moments, "tess_moments_values");
    same = moments;
    same.moments.covariance = false;
    CHECK(!tess_op_same(&moments, &same));
    CHECK(tess_op_row_of(TESS_OP_LOCAL_RX)->reach == TESS_REACH_WINDOW);
    tess_registry_close(device);
}

int main(void)
{
    static const char *const sets[] = {"reference", "neon", "sse", "avx2", "avx512"};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++)
        for (int threads = 1; threads <= 3; threads += 2) {
            const tess_device_options options = {.memory = &test_counter, .threads = threads, .isa = sets[s]};
            tess_device *device = NULL;
            if (tess_registry_open("cpu", &options, &device, NULL) != TESS_OK)
                continue;
            if (s || threads == 1)
                check_device(device);
            check_blocks(device, 0);
            check_blocks(device, 1000);
            tess_registry_close(device);
        }
    check_threads();
    check_refusals();
    return check_end();
}
