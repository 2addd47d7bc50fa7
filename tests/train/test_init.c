/* Start values: mean, deviation and bounds by the formulas, orthogonality, and the same bits for the same seed. */
#include "train/init.h"
#include "train_blocks.h"

typedef struct moments {
    double mean, deviation, least, most;
} moments;

static moments moments_of(const float *values, int64_t count)
{
    moments m = {0, 0, 1e9, -1e9};
    for (int64_t i = 0; i < count; i++) {
        m.mean += values[i] / (double)count;
        m.least = fmin(m.least, values[i]);
        m.most = fmax(m.most, values[i]);
    }
    for (int64_t i = 0; i < count; i++)
        m.deviation += (values[i] - m.mean) * (values[i] - m.mean) / (double)count;
    m.deviation = sqrt(m.deviation);
    return m;
}

static train_list list;
static float *trained, *running;

static const float *start(tess_train_init kind, uint64_t seed, const char *name, int64_t *count)
{
    tess_error error = {""};
    const tess_status status = tess_train_init_values(&list.parameters, kind, seed, trained, running, &error);
    CHECK_MSG(status == TESS_OK, "%s", error.text);
    for (int i = 0; i < list.parameters.count; i++)
        if (strcmp(list.list[i].name, name) == 0) {
            *count = list.list[i].elements;
            return (list.list[i].running ? running : trained) + list.list[i].offset;
        }
    abort();
}

/* Five standard errors of mean and deviation; a uniform distribution also keeps its bounds. */
static void expect(tess_train_init kind, const char *name, double deviation, double bound)
{
    int64_t count;
    const float *values = start(kind, 3, name, &count);
    const moments m = moments_of(values, count);
    const double error = 5 / sqrt((double)count);
    CHECK_MSG(fabs(m.mean) < error * deviation && fabs(m.deviation / deviation - 1) < error,
              "%s: mean %g, deviation %g, expected %g", name, m.mean, m.deviation, deviation);
    if (bound > 0)
        CHECK_MSG(m.most <= bound && m.least >= -bound && m.most > 0.95 * bound && m.least < -0.95 * bound,
                  "%s: %g to %g, expected +-%g", name, m.least, m.most, bound);
}

static void expect_constant(const char *name, float value)
{
    for (int kind = TESS_INIT_KAIMING; kind <= TESS_INIT_DRUNET; kind++) {
        int64_t count;
        const float *values = start((tess_train_init)kind, 3, name, &count);
        const moments m = moments_of(values, count);
        CHECK_MSG(m.least == value && m.most == value, "%s: %g to %g", name, m.least, m.most);
    }
}

static void expect_orthogonal(const char *name, int64_t rows, int64_t columns, bool of_rows)
{
    int64_t count;
    const float *v = start(TESS_INIT_ORTHOGONAL, 3, name, &count);
    CHECK(count == rows * columns);
    const int64_t vectors = of_rows ? rows : columns, length = of_rows ? columns : rows;
    for (int64_t i = 0; i < vectors; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t k = 0; k < length; k++)
                sum += of_rows ? (double)v[i * columns + k] * v[j * columns + k]
                               : (double)v[k * columns + i] * v[k * columns + j];
            CHECK_MSG(fabs(sum - (i == j)) < 1e-6, "%s: %lld.%lld = %g", name, (long long)i, (long long)j,
                      sum);
        }
}

static void test_repeats(void)
{
    int64_t count;
    float *copy = calloc((size_t)list.parameters.trained, sizeof *copy);
    (void)start(TESS_INIT_KAIMING, 3, "head.weight", &count);
    memcpy(copy, trained, (size_t)list.parameters.trained * sizeof *copy);
    (void)start(TESS_INIT_KAIMING, 3, "head.weight", &count);
    CHECK(memcmp(copy, trained, (size_t)list.parameters.trained * sizeof *copy) == 0);
    const float *other = start(TESS_INIT_KAIMING, 4, "head.weight", &count);
    CHECK(memcmp(copy, other, (size_t)count * sizeof *copy) != 0);
    /* Two kernels of one shape differ. */
    const float *a = start(TESS_INIT_KAIMING, 3, "m_down1.0.res.0.weight", &count);
    CHECK(memcmp(a, a + count, (size_t)count * sizeof *a) != 0);
    free(copy);
}

int main(void)
{
    train_add(&list, "head.weight", 0, false, 1, DIMS(64, 4, 3, 3));
    train_add(&list, "head.bias", 0, false, 1, DIMS(64));
    train_add(&list, "m_down1.0.res.0.weight", 1, false, 1, DIMS(64, 64, 3, 3));
    train_add(&list, "m_down1.0.res.2.weight", 2, false, 1, DIMS(64, 64, 3, 3));
    train_add(&list, "m_down1.1.weight", 3, false, 1, DIMS(128, 64, 2, 2));
    train_add(&list, "m_up1.0.weight", 4, false, 1, DIMS(128, 64, 2, 2));
    train_add(&list, "norm.weight", 5, false, 1, DIMS(64));
    train_add(&list, "norm.bias", 5, false, 1, DIMS(64));
    train_add(&list, "norm.running_mean", 5, true, 1, DIMS(64));
    train_add(&list, "norm.running_var", 5, true, 1, DIMS(64));
    train_add(&list, "linear.weight", 6, false, 1, DIMS(256, 128));
    train_add(&list, "linear.bias", 6, false, 1, DIMS(256));
    train_add(&list, "m_tail.weight", 7, false, -1, DIMS(3, 64, 3, 3));
    trained = calloc((size_t)list.parameters.trained, sizeof *trained);
    running = calloc((size_t)list.parameters.running, sizeof *running);

    expect(TESS_INIT_KAIMING, "head.weight", sqrt(2.0 / 36), 0);
    expect(TESS_INIT_KAIMING, "linear.weight", sqrt(2.0 / 128), 0);
    expect(TESS_INIT_XAVIER, "m_down1.1.weight", sqrt(2.0 / (4 * (64 + 128))), sqrt(6.0 / (4 * (64 + 128))));
    expect(TESS_INIT_PYTORCH, "m_down1.0.res.0.weight", sqrt(1.0 / 3 / 576), sqrt(1.0 / 576));
    expect(TESS_INIT_PYTORCH, "m_up1.0.weight", sqrt(1.0 / 3 / 256), sqrt(1.0 / 256)); /* torch's count */
    expect(TESS_INIT_PYTORCH, "linear.bias", sqrt(1.0 / 3 / 128), sqrt(1.0 / 128));
    expect(TESS_INIT_PYTORCH, "head.bias", sqrt(1.0 / 3 / 36), 0);
    expect(TESS_INIT_DRUNET, "head.weight", sqrt(1.0 / 36), 0);
    expect(TESS_INIT_DRUNET, "m_down1.0.res.0.weight", sqrt(2.0 / 576), 0);
    expect(TESS_INIT_DRUNET, "m_down1.0.res.2.weight", 0.1 * sqrt(1.0 / 576), 0);
    expect(TESS_INIT_DRUNET, "m_down1.1.weight", sqrt(1.0 / 256), 0);
    expect(TESS_INIT_DRUNET, "m_up1.0.weight", 0.5 * sqrt(1.0 / 128), 0);
    expect(TESS_INIT_DRUNET, "m_tail.weight", 0.1 * sqrt(1.0 / 576), 0);
    expect_orthogonal("head.weight", 64, 36, false);
    expect_orthogonal("m_down1.0.res.0.weight", 64, 576, true);
    expect_orthogonal("linear.weight", 256, 128, false);
    expect_constant("norm.weight", 1);
    expect_constant("norm.bias", 0);
    expect_constant("norm.running_mean", 0);
    expect_constant("norm.running_var", 1);
    test_repeats();
    free(trained), free(running);
    return check_end();
}
