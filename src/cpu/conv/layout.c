/* Packs fp32 weights in register blocks. Channels beyond the last are zero, so that kernels need no tail. */
#include "base/checked.h"
#include "cpu/core/cpu.h"

tess_f32_layout tess_f32_layout_of(const tess_cpu *cpu, const tess_op *op)
{
    tess_f32_layout layout = {.taps = tess_op_taps(op), .cin = op->in[0].c};
    layout.block = op->out[0].c <= cpu->f32->vector ? cpu->f32->vector : cpu->f32->block;
    layout.blocks = tess_ceil_div(op->out[0].c, layout.block);
    layout.transposed = op->kind == TESS_OP_CONV_TRANSPOSE;
    layout.bias_at = tess_round_up(layout.blocks * layout.block * layout.taps * layout.cin, 16);
    layout.floats = layout.bias_at + (op->bias ? layout.blocks * layout.block : 0);
    return layout;
}

static int64_t place(const tess_f32_layout *layout, int64_t o, int64_t i, int64_t tap)
{
    int64_t b = o / layout->block, lane = o % layout->block;
    int64_t row;
    if (layout->transposed)
        row = (tap * layout->blocks + b) * layout->cin + i;
    else
        row = (b * layout->taps + tap) * layout->cin + i;
    return row * layout->block + lane;
}

void tess_f32_layout_pack(const tess_f32_layout *layout, const tess_op *op, int param, int64_t first,
                          int64_t count, const float *values, float *packed)
{
    if (param == TESS_PARAM_BIAS) {
        for (int64_t o = 0; o < count; o++)
            packed[layout->bias_at + first + o] = values[o];
        return;
    }
    const int64_t second = layout->transposed ? op->out[0].c : op->in[0].c;
    for (int64_t a = first; a < first + count; a++)
        for (int64_t b = 0; b < second; b++)
            for (int64_t tap = 0; tap < layout->taps; tap++) {
                int64_t o = layout->transposed ? b : a, i = layout->transposed ? a : b;
                packed[place(layout, o, i, tap)] = *values++;
            }
}
