/* cudnn_rates.c: a study of cuDNN's engines on the layers of our networks: are they right, how fast is each, what
 * does it cost to make a plan for a first and for a second size, do ids hold for another size.
 *
 * By hand, from the root, with the CUDA toolkit's include folder known to gcc:
 *   nvcc -O3 -std=c++17 -arch=sm_90 -Iinclude -Isrc -c src/cuda/cudnn/cudnn_bias.cu -o /tmp/cudnn_bias.o
 *   gcc -std=c11 -O2 -Iinclude -Isrc bench/cudnn_rates.c src/cuda/cudnn*.c src/cuda/core/check.c src/base/status.c \
 *       src/base/mem.c src/op/op.c src/tensor/tensor.c /tmp/cudnn_bias.o -lcudart -ldl -lm -lpthread -lstdc++
 *
 * cudnn_rates [MOST_CANDIDATES] */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/cudnn/cudnn.h"

enum { RUNS = 10, WARM_UPS = 2, CANDIDATES = 64, PATTERN = 1 << 20 };

typedef struct layer {
    const char *name;
    tess_op_kind kind;
    int side, in, out, kernel, stride;
    bool bias, relu;
    int residuals;
    tess_dtype dtype;
    bool tf32, wide, lopsided; /* wide: views of tensors twice as wide; lopsided: no padding above and left */
} layer;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(cudaError_t result, const char *what)
{
    if (result == cudaSuccess)
        return;
    printf("FAILED %s: %s\n", what, cudaGetErrorString(result));
    exit(1);
}

static float random_value(uint64_t at)
{
    at = (at + 1) * 0x9e3779b97f4a7c15u;
    at = (at ^ at >> 31) * 0xbf58476d1ce4e5b9u;
    return (float)(int32_t)(at >> 32) * 0x1p-31f;
}

static tess_tensor tensor(const layer *l, int64_t h, int64_t w, int64_t c)
{
    tess_tensor t = tess_tensor_2d(l->dtype, 1, h, w, l->wide ? 2 * c : c);
    return l->wide ? tess_tensor_channels(t, c) : t;
}

static tess_op op_of(const layer *l, int64_t h, int64_t w)
{
    tess_op op = {.kind = l->kind,
                  .outputs = 1,
                  .bias = l->bias,
                  .activation = l->relu ? TESS_RELU : TESS_LINEAR,
                  .tf32 = l->tf32,
                  .inputs = 1 + l->residuals};
    int64_t oh = h * l->stride, ow = w * l->stride;
    for (int s = 0; s < TESS_SPATIAL; s++) {
        op.kernel[s] = s ? l->kernel : 1;
        op.stride[s] = s ? l->stride : 1;
        if (s && l->kernel == 3) {
            op.pad_before[s] = l->lopsided ? 0 : 1;
            op.pad_after[s] = 1;
        }
    }
    if (l->kind == TESS_OP_CONV) {
        oh = (h + op.pad_before[1] + op.pad_after[1] - l->kernel) / l->stride + 1;
        ow = (w + op.pad_before[2] + op.pad_after[2] - l->kernel) / l->stride + 1;
    }
    op.in[0] = tensor(l, h, w, l->in);
    op.out[0] = tensor(l, oh, ow, l->out);
    for (int i = 0; i < l->residuals; i++)
        op.in[1 + i] = op.out[0];
    return op;
}

static float load(const void *from, int64_t at, tess_dtype dtype)
{
    if (dtype == TESS_F32)
        return ((const float *)from)[at];
    uint16_t v = ((const uint16_t *)from)[at];
    return dtype == TESS_F16 ? tess_half_to_float(v) : tess_bf16_to_float(v);
}

static void store(void *to, int64_t at, float value, tess_dtype dtype)
{
    if (dtype == TESS_F32)
        ((float *)to)[at] = value;
    else
        ((uint16_t *)to)[at] = dtype == TESS_F16 ? tess_float_to_half(value) : tess_float_to_bf16(value);
}

typedef struct buffers {
    size_t bytes[5];
    void *host[5], *card[5]; /* in, out, residual 0 and 1, weights */
} buffers;

enum { IN, OUT, RES0, RES1, WEIGHTS, ALL };

static void make_buffers(const tess_op *op, buffers *b, bool on_host)
{
    const tess_tensor *t[4] = {&op->in[0], &op->out[0], &op->in[1], &op->in[2]};
    memset(b, 0, sizeof *b);
    for (int i = 0; i < ALL; i++) {
        if (i == WEIGHTS)
            b->bytes[i] = tess_cuda_bias_at(op) + (size_t)op->out[0].c * 4;
        else if (i < RES0 + tess_op_residuals(op))
            b->bytes[i] = (size_t)(t[i]->n * t[i]->stride_n) * tess_dtype_size(t[i]->dtype);
        if (b->bytes[i])
            must(cudaMalloc(&b->card[i], b->bytes[i]), "cudaMalloc");
        size_t part = on_host ? b->bytes[i] : b->bytes[i] < PATTERN ? b->bytes[i] : PATTERN;
        tess_dtype dtype = op->in[0].dtype;
        float scale = i == WEIGHTS ? 1.7f / sqrtf((float)(op->in[0].c * op->kernel[1] * op->kernel[2])) : 1;
        b->host[i] = calloc(part + 4, 1);
        for (size_t at = 0; at < part / tess_dtype_size(dtype); at++)
            store(b->host[i], (int64_t)at, scale * random_value(at + 7777777u * (unsigned)i), dtype);
        if (i == WEIGHTS && on_host)
            for (int64_t k = 0; k < op->out[0].c; k++)
                ((float *)((char *)b->host[i] + tess_cuda_bias_at(op)))[k] = random_value((uint64_t)k + 99);
        for (size_t at = 0; at < b->bytes[i]; at += part)
            must(cudaMemcpy((char *)b->card[i] + at, b->host[i],
                            b->bytes[i] - at < part ? b->bytes[i] - at : part, cudaMemcpyHostToDevice),
                 "cudaMemcpy");
    }
}

static void free_buffers(buffers *b)
{
    for (int i = 0; i < ALL; i++) {
        cudaFree(b->card[i]);
        free(b->host[i]);
    }
}

static tess_op_buffers op_buffers(const buffers *b, void *workspace)
{
    return (tess_op_buffers){.in = {b->card[IN], b->card[RES0], b->card[RES1]},
                             .out = {b->card[OUT]},
                             .weights = b->card[WEIGHTS],
                             .workspace = workspace};
}

static double truth(const tess_op *op, const buffers *b, int64_t y, int64_t x, int64_t k)
{
    const tess_dtype t = op->in[0].dtype;
    const int64_t kh = op->kernel[1], kw = op->kernel[2], c = op->in[0].c;
    double sum = op->bias ? ((float *)((char *)b->host[WEIGHTS] + tess_cuda_bias_at(op)))[k] : 0;
    for (int64_t r = 0; r < kh; r++)
        for (int64_t s = 0; s < kw; s++) {
            int64_t iy = y * op->stride[1] + r - op->pad_before[1],
                    ix = x * op->stride[2] + s - op->pad_before[2];
            int64_t w = ((k * kh + r) * kw + s) * c;
            if (op->kind == TESS_OP_CONV_TRANSPOSE) {
                if (y % kh != r || x % kw != s)
                    continue;
                iy = y / kh, ix = x / kw, w = ((r * kw + s) * op->out[0].c + k) * c;
            }
            if (iy < 0 || ix < 0 || iy >= op->in[0].h || ix >= op->in[0].w)
                continue;
            for (int64_t i = 0; i < c; i++)
                sum += (double)load(b->host[IN], iy * op->in[0].stride_h + ix * op->in[0].stride_w + i, t) *
                       load(b->host[WEIGHTS], w + i, t);
        }
    for (int i = 0; i < tess_op_residuals(op); i++)
        sum += load(b->host[RES0 + i], y * op->in[1 + i].stride_h + x * op->in[1 + i].stride_w + k, t);
    return tess_op_relu(op) && sum < 0 ? 0 : sum;
}

/* The largest error over a sample of the output, of values of about 1; -1 when something outside was written. */
static double compare(const tess_op *op, const buffers *b, const void *got, const void *before)
{
    double worst = 0;
    for (int64_t y = 0; y < op->out[0].h; y++)
        for (int64_t x = 0; x < op->out[0].w; x++)
            for (int64_t k = 0; k < op->out[0].stride_w; k++) {
                int64_t at = y * op->out[0].stride_h + x * op->out[0].stride_w + k;
                bool edge = y < 2 || x < 2 || y >= op->out[0].h - 2 || x >= op->out[0].w - 2;
                if (k >= op->out[0].c) {
                    if (load(got, at, op->in[0].dtype) != load(before, at, op->in[0].dtype))
                        return -1;
                } else if ((uint64_t)(at * 2654435761) % (edge ? 16 : 64) == 0) {
                    double error = fabs(load(got, at, op->in[0].dtype) - truth(op, b, y, x, k));
                    worst = error > worst ? error : worst;
                }
            }
    return worst;
}

/* Captured before the plan has ever run: kernels may have to be loaded during the capture. */
static tess_status run_captured(tess_cudnn_plan *plan, const tess_op_buffers *at, tess_error *error)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    must(cudaStreamCreate(&stream), "stream");
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    tess_status status = tess_cudnn_plan_run(plan, at, stream, error);
    must(cudaStreamEndCapture(stream, &graph), "end of capture");
    must(cudaGraphInstantiate(&ready, graph, 0), "instantiate");
    must(cudaGraphLaunch(ready, stream), "launch");
    must(cudaStreamSynchronize(stream), "graph");
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return status;
}

static double check_one(tess_cudnn_plan *plan, const tess_op *op, const buffers *b, void *workspace, int way)
{
    static const char *const ways[] = {"captured", "apart", "in place"};
    tess_error error = {""};
    tess_op_buffers at = op_buffers(b, workspace);
    if (way == 2)
        at.in[1] = at.out[0];
    must(cudaMemcpy(b->card[OUT], b->host[way == 2 ? RES0 : OUT], b->bytes[OUT], cudaMemcpyHostToDevice),
         "copy");
    tess_status status = way ? tess_cudnn_plan_run(plan, &at, NULL, &error) : run_captured(plan, &at, &error);
    if (status != TESS_OK) {
        printf("  no run (%s): %s\n", ways[way], error.text);
        return 99;
    }
    void *got = malloc(b->bytes[OUT]);
    must(cudaMemcpy(got, b->card[OUT], b->bytes[OUT], cudaMemcpyDeviceToHost), ways[way]);
    double worst = compare(op, b, got, b->host[way == 2 ? RES0 : OUT]);
    free(got);
    return worst;
}

static void check(tess_cudnn *cudnn, const layer *l, int most)
{
    char class[96], text[256];
    const bool down = l->kernel == 2 && l->kind == TESS_OP_CONV;
    const double tolerance = l->dtype == TESS_BF16 ? 0.03 : l->dtype == TESS_F32 && !l->tf32 ? 1e-5 : 0.005;
    tess_op op = op_of(l, down ? 38 : 37, down ? 54 : 53);
    int64_t engines[CANDIDATES];
    buffers b;
    tess_op_class(&op, class, sizeof class);
    int count = tess_cudnn_candidates(cudnn, &op, 1 << 28, engines, CANDIDATES);
    const char *why = tess_cudnn_refuses(&op);
    printf("\ncheck %s (%s): %d candidates%s%s\n", class, l->name, count, why ? ", refused: " : "",
           why ? why : "");
    make_buffers(&op, &b, true);
    void *workspace = NULL;
    must(cudaMalloc(&workspace, 1 << 28), "cudaMalloc");
    for (int i = 0; i < count && i < most; i++) {
        tess_cudnn_plan *plan = NULL;
        tess_error error = {""};
        /* The last few are of the compiled kind, if there are any. */
        int64_t engine = engines[most < count && i >= most / 2 ? count - most + i : i];
        if (tess_cudnn_plan_create(cudnn, &op, engine, 1 << 28, &plan, &error) != TESS_OK) {
            printf("  no plan: %s\n", error.text);
            continue;
        }
        double worst[3] = {0, 0, 0};
        bool good = true;
        for (int way = 0; way < 2 + (tess_op_residuals(&op) > 0); way++) {
            worst[way] = check_one(plan, &op, &b, workspace, way);
            good = good && worst[way] >= 0 && worst[way] < tolerance;
        }
        tess_cudnn_plan_describe(plan, text, sizeof text);
        printf("  %s captured %.2g, apart %.2g, in place %.2g, workspace %zu  %s\n", good ? "ok   " : "WRONG",
               worst[0], worst[1], worst[2], tess_cudnn_plan_workspace(plan), text);
        tess_cudnn_plan_destroy(plan);
    }
    cudaFree(workspace);
    free_buffers(&b);
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double milliseconds(tess_cudnn_plan *plan, const tess_op_buffers *at)
{
    float ms[RUNS];
    cudaEvent_t from, to;
    must(cudaEventCreate(&from), "event");
    must(cudaEventCreate(&to), "event");
    for (int i = -WARM_UPS; i < RUNS; i++) {
        if (i == 1 && ms[0] > 20) { /* not a serious one */
            for (int j = 1; j < RUNS; j++)
                ms[j] = ms[0];
            break;
        }
        tess_error error = {""};
        cudaEventRecord(from, NULL);
        if (tess_cudnn_plan_run(plan, at, NULL, &error) != TESS_OK)
            printf("  no run: %s\n", error.text);
        cudaEventRecord(to, NULL);
        must(cudaEventSynchronize(to), "timed run");
        if (i >= 0)
            cudaEventElapsedTime(&ms[i], from, to);
    }
    qsort(ms, RUNS, sizeof *ms, ascending);
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    return 0.5 * (ms[RUNS / 2 - 1] + ms[RUNS / 2]);
}

static void rate(tess_cudnn *cudnn, const layer *l, int most)
{
    tess_op op = op_of(l, l->side, l->side), other = op_of(l, l->side / 2 + 32, l->side - 96);
    int64_t engines[CANDIDATES], others[CANDIDATES];
    char class[96], text[256], again[256];
    buffers b;
    tess_op_class(&op, class, sizeof class);
    double start = now();
    int count = tess_cudnn_candidates(cudnn, &op, (size_t)1 << 30, engines, CANDIDATES);
    double search = now() - start;
    int other_count = tess_cudnn_candidates(cudnn, &other, (size_t)1 << 30, others, CANDIDATES), shared = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < other_count; j++)
            shared += engines[i] == others[j];
    printf("\n%s at %d (%s): %d candidates in %.2f ms; %d at another size, %d of them the same\n", class,
           l->side, l->name, count, 1e3 * search, other_count, shared);
    make_buffers(&op, &b, false);
    void *workspace = NULL;
    must(cudaMalloc(&workspace, (size_t)1 << 30), "cudaMalloc");
    for (int i = 0; i < count && i < most; i++) {
        tess_cudnn_plan *plan = NULL, *second = NULL;
        tess_error error = {""};
        tess_op_buffers at = op_buffers(&b, workspace);
        double t0 = now();
        tess_status status = tess_cudnn_plan_create(cudnn, &op, engines[i], (size_t)1 << 30, &plan, &error);
        double t1 = now();
        if (status != TESS_OK) {
            printf("  no plan (%.1f ms): %s\n", 1e3 * (t1 - t0), error.text);
            continue;
        }
        tess_cudnn_plan_describe(plan, text, sizeof text);
        double ms = milliseconds(plan, &at), t2 = now();
        status = tess_cudnn_plan_create(cudnn, &other, engines[i], (size_t)1 << 30, &second, &error);
        double t3 = now();
        again[0] = '\0';
        if (second)
            tess_cudnn_plan_describe(second, again, sizeof again);
        printf("  %7.3f ms %6.1f TFLOP/s, workspace %7.2f MiB, plan %7.2f ms, second size %6.2f ms%s  id "
               "%lld %s\n",
               ms, 1e-9 * tess_op_flops(&op) / ms, (double)tess_cudnn_plan_workspace(plan) / 0x1p20,
               1e3 * (t1 - t0), 1e3 * (t3 - t2),
               second ? strcmp(text, again) ? " OTHER KNOBS" : "" : " NO SECOND PLAN", (long long)engines[i],
               text);
        fflush(stdout);
        tess_cudnn_plan_destroy(plan);
        tess_cudnn_plan_destroy(second);
    }
    cudaFree(workspace);
    free_buffers(&b);
}

#define CONV3(name, side, in, out, bias, relu, residuals, dtype, tf32)                                       \
    {                                                                                                        \
        name, TESS_OP_CONV, side, in, out, 3, 1, bias, relu, residuals, dtype, tf32, false, false            \
    }

static const layer checks[] = {
    CONV3("relu", 0, 64, 64, false, true, 0, TESS_F16, false),
    CONV3("residual", 0, 128, 64, false, false, 1, TESS_F16, false),
    CONV3("bias, two residuals, relu", 0, 64, 128, true, true, 2, TESS_F16, false),
    CONV3("bias, relu, bf16", 0, 64, 64, true, true, 0, TESS_BF16, false),
    CONV3("fp32", 0, 64, 64, true, true, 0, TESS_F32, false),
    CONV3("TF32", 0, 64, 64, true, true, 0, TESS_F32, true),
    {"views, lopsided", TESS_OP_CONV, 0, 64, 64, 3, 1, true, true, 1, TESS_F16, false, true, true},
    {"views", TESS_OP_CONV, 0, 64, 64, 3, 1, false, true, 1, TESS_F16, false, true, false},
    {"lopsided", TESS_OP_CONV, 0, 64, 64, 3, 1, false, true, 0, TESS_F16, false, false, true},
    {"down", TESS_OP_CONV, 0, 64, 128, 2, 2, false, false, 0, TESS_F16, false, false, false},
    {"up", TESS_OP_CONV_TRANSPOSE, 0, 128, 64, 2, 2, false, false, 0, TESS_F16, false, false, false},
    {"up into a view", TESS_OP_CONV_TRANSPOSE, 0, 128, 64, 2, 2, false, false, 0, TESS_F16, false, true,
     false},
    {"up, residual", TESS_OP_CONV_TRANSPOSE, 0, 128, 64, 2, 2, false, false, 1, TESS_F16, false, false,
     false}};

static const layer rates[] = {
    CONV3("relu", 2048, 64, 64, false, true, 0, TESS_F16, false),
    CONV3("residual", 2048, 64, 64, false, false, 1, TESS_F16, false),
    CONV3("relu", 1024, 128, 128, false, true, 0, TESS_F16, false),
    CONV3("residual", 1024, 128, 128, false, false, 1, TESS_F16, false),
    CONV3("relu", 512, 256, 256, false, true, 0, TESS_F16, false),
    CONV3("residual", 512, 256, 256, false, false, 1, TESS_F16, false),
    CONV3("relu", 256, 512, 512, false, true, 0, TESS_F16, false),
    CONV3("residual", 256, 512, 512, false, false, 1, TESS_F16, false),
    {"down", TESS_OP_CONV, 2048, 64, 128, 2, 2, false, false, 0, TESS_F16, false, false, false},
    {"up", TESS_OP_CONV_TRANSPOSE, 1024, 128, 64, 2, 2, false, false, 0, TESS_F16, false, false, false},
    CONV3("bias, relu", 2048, 128, 64, true, true, 0, TESS_F16, false),
    CONV3("bias, relu", 1024, 256, 128, true, true, 0, TESS_F16, false),
    CONV3("bias, relu", 2048, 64, 64, true, true, 0, TESS_F16, false),
    CONV3("two residuals", 2048, 64, 64, false, false, 2, TESS_F16, false),
    CONV3("two residuals", 512, 256, 256, false, false, 2, TESS_F16, false),
    CONV3("plain", 2048, 64, 64, false, false, 0, TESS_F16, false),
    CONV3("relu", 2048, 64, 64, false, true, 0, TESS_BF16, false),
    CONV3("relu", 2048, 64, 64, false, true, 0, TESS_F32, true),
    CONV3("relu", 512, 256, 256, false, true, 0, TESS_F32, true),
    CONV3("relu", 512, 256, 256, false, true, 0, TESS_F32, false)};

int main(int argc, char **argv)
{
    int most = argc > 1 ? atoi(argv[1]) : CANDIDATES;
    tess_cudnn *cudnn = NULL;
    tess_error error = {""};
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(cudaFree(NULL), "CUDA");
    size_t before = 0, after = 0, total = 0;
    cudaMemGetInfo(&before, &total);
    double start = now();
    if (tess_cudnn_open(&cudnn, &error) != TESS_OK) {
        printf("%s\n", error.text);
        return 1;
    }
    cudaMemGetInfo(&after, &total);
    printf("cuDNN %s, opened in %.0f ms, took %.1f MiB of the card\n", tess_cudnn_version(cudnn),
           1e3 * (now() - start), (double)(before - after) / 0x1p20);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        check(cudnn, &checks[i], most < 6 ? most : 6);
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        rate(cudnn, &rates[i], most);
    cudaMemGetInfo(&after, &total);
    printf("\nat the end %.1f MiB of the card are taken\n", (double)(before - after) / 0x1p20);
    tess_cudnn_close(cudnn);
    return 0;
}
