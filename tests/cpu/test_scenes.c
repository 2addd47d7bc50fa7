/* test_scenes.c: global RX on real scenes. Needs TESSERA_DATA. Moments, the factor of the inverse covariance and fp32 scores
 * must agree with fp64 to 1e-4, and give the published areas under the ROC curve; local scores of a part of each scene
 * must agree with plain sums to 1e-8. */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "counter.h"
#include "statistics_cases.h"
#include "tensor/symmetric.h"

typedef struct scene {
    const char *name;
    double area;
} scene;

static const scene scenes[] = {{"sandiego", 0.9403},       {"abu_airport_1", 0.8221},
                               {"abu_airport_2", 0.8404},  {"abu_beach_2", 0.9106},
                               {"abu_urban_1", 0.9907},    {"abu_urban_2", 0.9946},
                               {"abu_urban_3", 0.9513},    {"abu_urban_5", 0.9692},
                               {"muufl_gulfport", 0.9919}, {"sandiego_aviris1", 0.8866}};

/* Values of an .npy file of three or two axes, as fp32. */
static float *read_npy(const char *folder, const char *name, const char *suffix, int64_t shape[3])
{
    char path[1024], head[128] = {0};
    snprintf(path, sizeof path, "%s/hsi/%s%s.npy", folder, name, suffix);
    FILE *file = fopen(path, "rb");
    if (!file || fread(head, 1, 10, file) != 10)
        return NULL;
    const int length = (unsigned char)head[8] + 256 * (unsigned char)head[9];
    char text[1024] = {0};
    if (length >= (int)sizeof text || fread(text, 1, (size_t)length, file) != (size_t)length)
        return NULL;
    long long s[3] = {1, 1, 1};
    const int axes = sscanf(strchr(text, '(') + 1, "%lld, %lld, %lld", &s[0], &s[1], &s[2]);
    const size_t count = (size_t)(s[0] * s[1] * s[2]);
    const int bytes = strstr(text, "f4") ? 4 : strstr(text, "u1") ? 1 : 2;
    char *samples = malloc(count * (size_t)bytes);
    float *values = malloc(count * sizeof *values);
    CHECK(axes >= 2 && fread(samples, (size_t)bytes, count, file) == count);
    for (size_t i = 0; i < count; i++)
        values[i] = bytes == 4           ? ((float *)(void *)samples)[i]
                    : bytes == 1         ? (float)((uint8_t *)samples)[i]
                    : strstr(text, "u2") ? (float)((uint16_t *)(void *)samples)[i]
                                         : (float)((int16_t *)(void *)samples)[i];
    for (int i = 0; i < 3; i++)
        shape[i] = s[i];
    fclose(file);
    free(samples);
    return values;
}

typedef struct ranked {
    double score;
    bool target;
} ranked;

static int by_score(const void *a, const void *b)
{
    const double x = ((const ranked *)a)->score, y = ((const ranked *)b)->score;
    return (x > y) - (x < y);
}

/* The area under the ROC curve, from ranks; equal scores share theirs. */
static double area_of(const double *scores, const float *mask, size_t count)
{
    ranked *list = malloc(count * sizeof *list);
    double ranks = 0, targets = 0;
    for (size_t i = 0; i < count; i++)
        list[i] = (ranked){scores[i], mask[i] > 0};
    qsort(list, count, sizeof *list, by_score);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && !(list[end].score > list[i].score); end++)
            ;
        for (size_t k = i; k < end; k++)
            if (list[k].target) {
                ranks += 0.5 * (double)(i + 1 + end);
                targets++;
            }
    }
    free(list);
    return (ranks - targets * (targets + 1) / 2) / (targets * ((double)count - targets));
}

static operand values_operand(tess_tensor t, const float *values, size_t count)
{
    operand o = {t, {malloc(count * sizeof(float)), count * sizeof(float)}, 0};
    memcpy(o.f.data, values, o.f.bytes);
    return o;
}

/* The scores in fp64 from the same moments, and those of the op. */
static void check_global(tess_device *device, const scene *s, const float *cube, const float *mask,
                         const int64_t shape[3])
{
    const int c = (int)shape[2];
    const size_t pixels = (size_t)(shape[0] * shape[1]), cc = (size_t)c * (size_t)c;
    const tess_tensor t = tess_tensor_2d(TESS_F32, 1, shape[0], shape[1], c);
    tess_error error = {{0}};
    train_call moments = {.op = {.kind = TESS_OP_MOMENTS, .inputs = 1, .outputs = 1, .moments = {true}},
                          .in = {values_operand(t, cube, pixels * (size_t)c)},
                          .out = {case_vector(tess_moments_values(c, true))}};
    operand got[TESS_OP_OUTPUTS];
    tess_moments_clear(moments.out[0].f.data, c, true);
    if (!train_run(device, &moments, got, s->name))
        return;
    double *m = got[0].f.data, *mean = m + TESS_MOMENTS_MEAN, *second = m + tess_moments_second(c);
    double *values = malloc((size_t)c * sizeof *values), *factor = malloc(cc * sizeof *factor),
           *work = malloc(tess_symmetric_workspace(c) * sizeof *work), *plain = calloc(pixels, sizeof *plain),
           *scores = calloc(pixels, sizeof *scores), most = 0;
    int rank = 0;
    for (size_t i = 0; i < cc; i++)
        second[i] /= m[TESS_MOMENTS_COUNT] - 1;
    CHECK_MSG(tess_symmetric_whiten(second, c, 0, values, factor, &rank, work, &error) == TESS_OK, "%s",
              error.text);
    CHECK(rank == c && m[TESS_MOMENTS_COUNT] == (double)pixels);
    train_call score = {.op = {.kind = TESS_OP_SCORE, .inputs = 3, .outputs = 1},
                        .in = {operand_copy(&moments.in[0]),
                               operand_random(tess_tensor_2d(TESS_F32, 1, 1, 1, c), 0, 1),
                               operand_random(tess_tensor_2d(TESS_F32, 1, 1, c, c), 0, 1)},
                        .out = {operand_random(tess_tensor_2d(TESS_F32, 1, shape[0], shape[1], 1), 0, 1)}};
    for (int i = 0; i < c; i++)
        ((float *)score.in[1].f.data)[i] = (float)mean[i];
    for (size_t i = 0; i < cc; i++)
        ((float *)score.in[2].f.data)[i] = (float)factor[i];
    operand result[TESS_OP_OUTPUTS];
    CHECK(train_run(device, &score, result, s->name));
    for (size_t p = 0; p < pixels; p++) {
        plain[p] = 0;
        for (int k = 0; k < c; k++) {
            double sum = 0;
            for (int i = 0; i < c; i++)
                sum += factor[(size_t)k * (size_t)c + (size_t)i] *
                       ((double)cube[p * (size_t)c + (size_t)i] - mean[i]);
            plain[p] += sum * sum;
        }
        scores[p] = (double)((float *)result[0].f.data)[p];
        most = fmax(most, fabs(scores[p] / plain[p] - 1));
    }
    const double area = area_of(plain, mask, pixels), fp32 = area_of(scores, mask, pixels);
    printf("%s: condition %.2g, area %.6f, of fp32 scores %.6f, scores off by %.2g\n", s->name,
           values[c - 1] / values[0], area, fp32, most);
    CHECK_MSG(most <= 1e-4, "%s: scores off by %.3g", s->name, most);
    CHECK_MSG(fabs(area - s->area) <= 1e-4 && fabs(fp32 - s->area) <= 1e-4,
              "%s: area %.6f and %.6f, not %.4f", s->name, area, fp32, s->area);
    free(values), free(factor), free(work), free(plain), free(scores), free(m), free(result[0].f.data);
    train_free(&moments), train_free(&score);
}

/* Every fourth band of a part of the scene: every ring has more pixels than that, so that its covariance has an inverse by
 * itself. Otherwise epsilon decides, and the condition number, 1e13, leaves no more than three digits to any fp64 solution. */
static void check_part(tess_device *device, const scene *s, const float *cube, const int64_t shape[3])
{
    enum { H = 10, W = 30, STEP = 4, OUTER = 21, INNER = 3 };
    const int64_t c = shape[2] / STEP;
    train_call call = {.op = {.kind = TESS_OP_LOCAL_RX,
                              .inputs = 1,
                              .outputs = 1,
                              .kernel = {1, OUTER, OUTER},
                              .local_rx = {INNER, 1e-6}},
                       .in = {operand_random(tess_tensor_2d(TESS_F32, 1, H, W, c), 0, 1)},
                       .out = {case_vector(H * W)}};
    operand got[TESS_OP_OUTPUTS], want[TESS_OP_OUTPUTS];
    call.out[0].t = tess_tensor_2d(TESS_F64, 1, H, W, 1);
    for (int64_t p = 0; p < H * W; p++)
        for (int64_t i = 0; i < c; i++)
            ((float *)call.in[0].f.data)[p * c + i] =
                cube[((40 + p / W) * shape[1] + 30 + p % W) * shape[2] + i * STEP];
    if (train_run(device, &call, got, s->name)) {
        case_reference(&call, want);
        compare_scores(&got[0], &want[0], 1e-8, s->name);
        free(got[0].f.data), free(want[0].f.data);
    }
    train_free(&call);
}

int main(void)
{
    const char *data = getenv("TESSERA_DATA");
    const tess_device_options options = {.memory = &test_counter};
    tess_device *device = NULL;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/hsi", data ? data : "");
    if (!data || !*data || access(folder, F_OK) != 0)
        return check_skip("TESSERA_DATA names no folder with hsi");
    CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        int64_t shape[3], size[3];
        float *cube = read_npy(data, scenes[i].name, "", shape),
              *mask = read_npy(data, scenes[i].name, "_mask", size);
        CHECK_MSG(cube && mask, "%s/hsi lacks %s", data, scenes[i].name);
        if (cube && mask) {
            check_global(device, &scenes[i], cube, mask, shape);
            check_part(device, &scenes[i], cube, shape);
        }
        free(cube), free(mask);
    }
    tess_registry_close(device);
    return check_end();
}
