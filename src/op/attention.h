/* attention.h: the positions of a head's parts among the channels of the input of an attention, and of its gradient. */
#ifndef TESS_OP_ATTENTION_H
#define TESS_OP_ATTENTION_H

#include "op/op.h"

typedef struct tess_head {
    int64_t channels;          /* of the head */
    int64_t query, key, value; /* first channel of each in the input */
    int64_t out;               /* first channel in the output */
} tess_head;

static inline tess_head tess_head_of(const tess_op *op, int64_t head)
{
    const int64_t all = op->kind == TESS_OP_ATTENTION ? op->out[0].c : op->in[0].c,
                  own = all / op->attention.heads;
    const int64_t first = head * own * (op->attention.by_head ? 3 : 1),
                  step = op->attention.by_head ? own : all;
    return (tess_head){own, first, first + step, first + 2 * step, head * own};
}

#endif
