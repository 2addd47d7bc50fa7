/* Packing of weights on the card: `pack` in pieces from the host, `repack` of one op and `repack` of all ops by one call,
 * all against the layout that cuda/core/cuda.h describes, bit for bit. */
#include "fields.h"
#include "gpu.h"
#include "op/row.h"

typedef enum repack_way { BY_PACK, BY_REPACK, BY_REPACK_OF_ALL, WAYS } repack_way;
static const char *const way_names[WAYS] = {"pack", "repack", "repack of all ops"};

typedef struct repack_case {
    tess_op op;
    bool turned;
    int params;
    size_t bytes;
    unsigned char *want;
    tess_block packed[WAYS], values[TESS_OP_PARAMS];
} repack_case;

enum { MOST_CASES = 256 };
static repack_case cases[MOST_CASES];
static int case_count;
static tess_device *device;
static tess_error error;

static tess_block upload(const void *data, size_t bytes)
{
    tess_block block;
    CHECK_MSG(device->memory->alloc(device, &block, TESS_MEM_IO, bytes, &error) == TESS_OK, "%s", error.text);
    device->memory->copy(device, block.data, data, bytes, NULL);
    CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
    return block;
}

static tess_op op_of(tess_op_kind kind, int kernel, tess_dtype dtype, int64_t cin, int64_t cout)
{
    enum { SIDE = 12 };
    const bool up = kind == TESS_OP_CONV_TRANSPOSE, down = !up && kernel % 2 == 0;
    const int64_t side = up ? SIDE * kernel : down ? SIDE / kernel : SIDE;
    tess_op op = {.kind = kind, .inputs = 1, .outputs = 1, .kernel = {1, 1, 1}, .stride = {1, 1, 1}};
    op.in[0] = tess_tensor_2d(dtype, 1, SIDE, SIDE, cin);
    op.out[0] = tess_tensor_2d(dtype, 1, side, side, cout);
    for (int s = TESS_HEIGHT; s <= TESS_WIDTH; s++) {
        op.kernel[s] = kernel;
        op.stride[s] = up || down ? kernel : 1;
        op.pad_before[s] = op.pad_after[s] = up || down ? 0 : kernel / 2;
    }
    return op;
}

static tess_op norm_of(tess_dtype dtype, int64_t channels)
{
    tess_op op = {.kind = TESS_OP_GROUP_NORM, .inputs = 1, .outputs = 1, .group_norm = {1, 1e-5, false}};
    op.in[0] = op.out[0] = tess_tensor_2d(dtype, 1, 6, 6, channels);
    return op;
}

/* The packed kernel of one op: [out][tap][in], or [tap][out][in] for a transposed convolution. */
static void lay_out(repack_case *one, const float *values)
{
    const tess_op *op = &one->op;
    const int64_t in = op->in[0].c, out = op->out[0].c, taps = tess_op_taps(op);
    const bool transposed = op->kind == TESS_OP_CONV_TRANSPOSE;
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
            for (int64_t t = 0; t < taps; t++) {
                const int64_t from = one->turned  ? (i * out + o) * taps + taps - 1 - t
                                     : transposed ? (i * out + o) * taps + t
                                                  : (o * in + i) * taps + t,
                              to = transposed ? (t * out + o) * in + i : (o * taps + t) * in + i;
                put_value(op->in[0].dtype, one->want, (size_t)to, values[from]);
            }
}

/* As a weight file gives them, some rows at a time. */
static void pack_in_pieces(const repack_case *one, int param, const tess_op_param *p, const float *values)
{
    enum { ROWS = 13 };
    for (int64_t first = 0; first < p->rows; first += ROWS) {
        const int64_t count = p->rows - first < ROWS ? p->rows - first : ROWS;
        device->ops->pack(device, &one->op, param, first, count, values + first * p->row,
                          one->packed[BY_PACK].data);
    }
}

static void add_case(tess_op op, bool bias, bool turned)
{
    CHECK(case_count < MOST_CASES);
    repack_case *one = &cases[case_count++];
    tess_op_needs needs;
    tess_op_param params[TESS_OP_PARAMS];
    *one = (repack_case){.op = op, .turned = turned};
    one->op.bias = bias;
    CHECK_MSG(device->ops->query(device, &one->op, &needs, &error) == TESS_OK, "%s", error.text);
    one->bytes = needs.weights;
    one->want = calloc(1, one->bytes);
    for (int k = 0; k < WAYS; k++)
        one->packed[k] = upload(one->want, one->bytes);
    one->params = tess_op_params(&one->op, params);
    for (int p = 0; p < one->params; p++) {
        const tess_tensor t = tess_tensor_2d(TESS_F32, 1, 1, params[p].rows, params[p].row);
        field f = random_field(&t, (uint32_t)(2 * case_count + p));
        one->values[p] = upload(f.data, f.bytes);
        if (!turned)
            pack_in_pieces(one, p, &params[p], f.data);
        if (op.kind == TESS_OP_GROUP_NORM) { /* as they are, one after the other */
            memcpy(one->want + (size_t)p * f.bytes, f.data, f.bytes);
        } else if (p == TESS_PARAM_KERNEL) {
            lay_out(one, f.data);
        } else { /* the rest, up to zeros that fill it up */
            const size_t kernel = (size_t)(params[0].rows * params[0].row) * tess_dtype_size(op.in[0].dtype);
            memcpy(one->want + (kernel + 63) / 64 * 64, f.data, f.bytes);
        }
        free(f.data);
    }
}

static void add_cases(tess_dtype dtype)
{
    static const int64_t channels[][2] = {{64, 64}, {72, 40}, {3, 64},    {64, 3},  {130, 66},
                                          {33, 70}, {7, 5},   {256, 130}, {512, 8}, {8, 300}};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
        const int64_t in = channels[i][0], out = channels[i][1];
        for (int kernel = 1; kernel <= 5; kernel += kernel < 3 ? 1 : 2)
            add_case(op_of(TESS_OP_CONV, kernel, dtype, in, out), kernel > 1, false);
        add_case(op_of(TESS_OP_CONV, 1, dtype, in, out), false, true);
        add_case(op_of(TESS_OP_CONV, 3, dtype, in, out), false, true);
        add_case(op_of(TESS_OP_CONV_TRANSPOSE, 2, dtype, in, out), i % 2, false);
        add_case(norm_of(dtype, in), false, false);
    }
}

/* As a captured graph that reads the card's memory. */
static void repack_captured(const tess_repack *list, int count)
{
    tess_stream *stream = NULL;
    tess_graph *graph = NULL;
    CHECK(device->streams->create(device, &stream, &error) == TESS_OK);
    CHECK_MSG(device->graphs->begin(device, stream, &error) == TESS_OK, "%s", error.text);
    device->ops->repack(device, list, count, stream);
    CHECK_MSG(device->graphs->end(device, stream, &graph, &error) == TESS_OK, "%s", error.text);
    if (graph) {
        device->graphs->launch(device, graph, stream);
        CHECK_MSG(device->streams->sync(device, stream, &error) == TESS_OK, "%s", error.text);
        device->graphs->release(device, graph);
    }
    device->streams->destroy(device, stream);
}

static void repack_all(void)
{
    static tess_repack list[MOST_CASES * TESS_OP_PARAMS];
    int count = 0;
    for (int i = 0; i < case_count; i++) {
        const repack_case *one = &cases[i];
        const int first = count;
        for (int p = 0; p < one->params; p++)
            list[count++] =
                (tess_repack){&one->op, p, one->turned, one->values[p].data, one->packed[BY_REPACK].data};
        repack_captured(list + first, count - first);
        for (int p = 0; p < one->params; p++)
            list[first + p].packed = one->packed[BY_REPACK_OF_ALL].data;
    }
    repack_captured(list, count);
}

static void check_case(repack_case *one)
{
    unsigned char *got = malloc(one->bytes);
    for (int k = one->turned ? BY_REPACK : BY_PACK; k < WAYS; k++) {
        device->memory->copy(device, got, one->packed[k].data, one->bytes, NULL);
        CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
        CHECK_MSG(memcmp(got, one->want, one->bytes) == 0, "%s is wrong: %s%s %d %s %lld>%lld", way_names[k],
                  one->turned ? "turned " : "", tess_op_kind_name(one->op.kind), one->op.kernel[TESS_HEIGHT],
                  tess_dtype_name(one->op.in[0].dtype), (long long)one->op.in[0].c,
                  (long long)one->op.out[0].c);
    }
    free(got);
    free(one->want);
    for (int k = 0; k < WAYS; k++)
        device->memory->free(device, &one->packed[k]);
    for (int p = 0; p < one->params; p++)
        device->memory->free(device, &one->values[p]);
}

int main(void)
{
    static const tess_dtype types[] = {TESS_F32, TESS_F16, TESS_BF16};
    int status;
    device = gpu_open(&status);
    if (!device)
        return status;
    for (int t = 0; t < 3; t++)
        add_cases(types[t]);
    repack_all();
    for (int i = 0; i < case_count; i++)
        check_case(&cases[i]);
    tess_registry_close(device);
    return check_end();
}
