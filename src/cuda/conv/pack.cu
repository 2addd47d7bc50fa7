/* Makes the list of items that pack.cuh packs: one for each depth tap of a kernel, and for each copy of a bias. */
#include "cuda/conv/pack.cuh"

extern "C" {
#include "op/row.h"
}

namespace
{

struct packing {
    pack_list list;
    int64_t blocks;
    cudaStream_t stream;
    cudaError_t result;
};

void begin(packing *p, cudaStream_t stream)
{
    p->list.count = 0;
    p->blocks = 0;
    p->stream = stream;
    p->result = cudaSuccess;
}

void flush(packing *p)
{
    if (p->list.count > 0 && p->result == cudaSuccess) {
        pack_kernel<<<(unsigned)p->blocks, THREADS, 0, p->stream>>>(p->list);
        p->result = cudaGetLastError();
    }
    p->list.count = 0;
    p->blocks = 0;
}

int64_t blocks_of(const pack_item &item)
{
    const int64_t pairs = item.rows * item.others;
    switch (item.way) {
    case PACK_OTHERS:
        return (pairs + OTHERS - 1) / OTHERS;
    case PACK_ROWS:
        return ((item.rows + TURN_ROWS - 1) / TURN_ROWS) * ((item.others + TURN_OTHERS - 1) / TURN_OTHERS);
    case PACK_PHASES:
        return (pairs * 16 + THREADS - 1) / THREADS;
    default:
        return (pairs * item.taps + THREADS - 1) / THREADS;
    }
}

void add(packing *p, pack_item item)
{
    const int64_t blocks = blocks_of(item);
    if (p->list.count == ITEMS || p->blocks + blocks > INT32_MAX)
        flush(p);
    if (blocks > INT32_MAX)
        p->result = cudaErrorInvalidValue;
    if (blocks < 1 || p->result != cudaSuccess)
        return;
    item.first = (unsigned)p->blocks;
    p->list.items[p->list.count++] = item;
    p->blocks += blocks;
}

void add_copy(packing *p, int64_t count, const float *values, float *packed)
{
    pack_item item = {};
    item.values = values;
    item.packed = packed;
    item.row_at = 1;
    item.rows = count;
    item.others = item.taps = item.step = 1;
    item.way = PACK_VALUES;
    item.dtype = TESS_F32;
    add(p, item);
}

/* True for an op whose parameters, of one value a channel, are kept as they are, one after the other. */
bool keeps(const tess_op *op)
{
    return op->kind == TESS_OP_GROUP_NORM || op->kind == TESS_OP_CHANNEL_MAP;
}

/* Strides of the packed values, how they are packed, and the place of row `first`. */
void lay_out(pack_item *item, const tess_op *op, bool turned, int64_t first)
{
    const bool transposed = op->kind == TESS_OP_CONV_TRANSPOSE, few = item->taps <= MOST_TAPS;
    if (op->kind == TESS_OP_UP_CONV) {
        item->way = PACK_PHASES;
        item->row_at = 4 * item->others;
        item->tap_at = op->out[0].c * item->row_at;
    } else if (transposed || turned) { /* [tap][other][row], or [other][tap][row] with the taps reversed */
        item->way = few ? PACK_ROWS : PACK_VALUES;
        item->reversed = turned;
        item->row_at = 1;
        item->other_at = op->in[0].c * (turned ? item->taps : 1);
        item->tap_at = op->in[0].c * (turned ? 1 : item->others);
    } else { /* [row][tap][other] */
        item->way = few ? PACK_OTHERS : PACK_VALUES;
        item->other_at = 1;
        item->tap_at = item->others;
        item->row_at = item->others * item->taps;
    }
    const size_t size = tess_dtype_size((tess_dtype)item->dtype);
    item->packed = (char *)item->packed + (size_t)(first * item->row_at) * size;
    /* Strides of what is not a neighbour must be even, or a pair would not be aligned. */
    item->pairs = (item->way == PACK_OTHERS ? item->others : op->in[0].c) % 2 == 0 &&
                  (uintptr_t)item->packed % (2 * size) == 0;
    /* Others, and rows, must be dense in the file and start at multiples of four values. */
    item->vectors = item->step == item->taps && (uintptr_t)item->values % sizeof(float4) == 0 &&
                    (item->way == PACK_OTHERS || item->others * item->taps % 4 == 0);
}

/* Rows [first, first + rows) of a parameter. `turned`: the kernel [in][out][taps] of the convolution whose input gradient
 * the op is. */
void add_piece(packing *p, const tess_op *op, int param, bool turned, int64_t first, int64_t rows,
               const float *values, void *packed)
{
    for (int slice = 0; slice < op->kernel[TESS_DEPTH]; slice++) {
        char *to = (char *)packed + (size_t)slice * tess_cuda_tap_bytes(op);
        if (param == TESS_PARAM_BIAS) { /* one per depth tap: any tap may be the first to reach a slice */
            add_copy(p, rows, values, (float *)(to + tess_cuda_bias_at(op)) + first);
            continue;
        }
        pack_item item = {};
        item.rows = rows;
        item.others = op->kind == TESS_OP_CONV_TRANSPOSE || turned ? op->out[0].c : op->in[0].c;
        item.taps = op->kernel[TESS_HEIGHT] * op->kernel[TESS_WIDTH];
        item.step = item.taps * op->kernel[TESS_DEPTH];
        item.values = values + (turned ? op->kernel[TESS_DEPTH] - 1 - slice : slice) * item.taps;
        item.packed = to;
        item.dtype = (unsigned char)tess_op_precision(op);
        lay_out(&item, op, turned, first);
        add(p, item);
    }
}

} // namespace

extern "C" cudaError_t tess_cuda_pack(const tess_op *op, int param, int64_t first, int64_t count,
                                      const float *values, void *packed, cudaStream_t stream)
{
    packing p;
    begin(&p, stream);
    if (keeps(op))
        add_copy(&p, count, values, (float *)packed + param * op->out[0].c + first);
    else
        add_piece(&p, op, param, false, first, count, values, packed);
    flush(&p);
    return p.result;
}

extern "C" cudaError_t tess_cuda_repack(const tess_repack *list, int count, cudaStream_t stream)
{
    packing p;
    begin(&p, stream);
    for (int i = 0; i < count; i++) {
        const tess_repack *r = &list[i];
        tess_op_param params[TESS_OP_PARAMS];
        if (r->param >= tess_op_params(r->op, params))
            continue;
        const bool turned = r->turned && r->param == TESS_PARAM_KERNEL;
        const int64_t rows = turned ? r->op->in[0].c : params[r->param].rows;
        if (keeps(r->op))
            add_copy(&p, rows, r->values, (float *)r->packed + r->param * rows);
        else
            add_piece(&p, r->op, r->param, turned, 0, rows, r->values, r->packed);
    }
    flush(&p);
    return p.result;
}
