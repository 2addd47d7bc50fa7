#include "net/exchange.h"

#include <string.h>

/* Positions [from, to) along one axis, counted from the block's own first one. */
typedef struct range {
    int64_t from, to;
} range;

static int64_t length(range r)
{
    return r.to - r.from;
}

/* What goes to a neighbour on this side of one axis, or what comes from there: own positions next to the edge, or those beyond
 * it. Beside the block, all of its own. */
static range along(int side, int64_t own, int before, int after, bool received)
{
    if (side < 0)
        return received ? (range){-before, 0} : (range){0, before};
    if (side > 0)
        return received ? (range){own, own + after} : (range){own - after, own};
    return (range){0, own};
}

static range rows_of(const tess_exchange *e, const tess_exchange_side *side, bool received)
{
    return along(side->down, e->rows.h, e->above, e->below, received);
}

static range columns_of(const tess_exchange *e, const tess_exchange_side *side, bool received)
{
    return along(side->across, e->rows.w, e->left, e->right, received);
}

int tess_exchange_sides(const tess_exchange *e, tess_exchange_side sides[TESS_EXCHANGE_SIDES])
{
    int count = 0;
    size_t used = 0;
    for (int down = -1; down <= 1; down++)
        for (int across = -1; across <= 1; across++) {
            tess_exchange_side side = {.down = down, .across = across};
            side.bytes = (size_t)(length(rows_of(e, &side, true)) * length(columns_of(e, &side, true)) *
                                  e->rows.n * e->rows.c) *
                         tess_dtype_size(e->rows.dtype);
            if (side.bytes == 0 || (down == 0 && across == 0))
                continue;
            side.sent = used;
            side.received = used + side.bytes;
            used += 2 * side.bytes;
            sides[count++] = side;
        }
    return count;
}

size_t tess_exchange_packed_bytes(const tess_exchange *e)
{
    tess_exchange_side sides[TESS_EXCHANGE_SIDES];
    const int count = tess_exchange_in_block(e) ? tess_exchange_sides(e, sides) : 0;
    return count ? sides[count - 1].received + sides[count - 1].bytes : 0;
}

static void move(const tess_exchange *e, range rows, range columns, char *packed, bool in)
{
    const tess_tensor *t = &e->rows;
    const size_t value = tess_dtype_size(t->dtype), pixel = (size_t)t->c * value;
    const bool dense = t->stride_w == t->c;
    const int64_t runs = dense ? 1 : length(columns);
    const size_t bytes = dense ? (size_t)length(columns) * pixel : pixel;
    for (int64_t n = 0; n < t->n; n++)
        for (int64_t y = rows.from; y < rows.to; y++) {
            char *at = (char *)e->data +
                       (n * t->stride_n + y * t->stride_h + columns.from * t->stride_w) * (int64_t)value;
            for (int64_t x = 0; x < runs; x++, packed += bytes, at += t->stride_w * (int64_t)value)
                memcpy(in ? packed : at, in ? at : packed, bytes);
        }
}

static void move_all(const tess_exchange *e, bool received)
{
    tess_exchange_side sides[TESS_EXCHANGE_SIDES];
    const int count = tess_exchange_sides(e, sides);
    for (int i = 0; i < count; i++)
        move(e, rows_of(e, &sides[i], received), columns_of(e, &sides[i], received),
             (char *)e->packed + (received ? sides[i].received : sides[i].sent), !received);
}

void tess_exchange_pack(const tess_exchange *e)
{
    move_all(e, false);
}

void tess_exchange_unpack(const tess_exchange *e)
{
    move_all(e, true);
}

tess_op tess_exchange_copy(const tess_exchange *e, const tess_exchange_side *side, bool received, int64_t *at)
{
    const range rows = rows_of(e, side, received), columns = columns_of(e, side, received);
    tess_tensor edge = e->rows;
    edge.h = length(rows);
    edge.w = length(columns);
    const tess_tensor packed = tess_tensor_2d(edge.dtype, edge.n, edge.h, edge.w, edge.c);
    *at = (rows.from * edge.stride_h + columns.from * edge.stride_w) * (int64_t)tess_dtype_size(edge.dtype);
    return (tess_op){.kind = TESS_OP_UPSAMPLE, /* by 1: the copy that every device has */
                     .inputs = 1,
                     .outputs = 1,
                     .in = {received ? packed : edge},
                     .out = {received ? edge : packed},
                     .kernel = {1, 1, 1},
                     .stride = {1, 1, 1}};
}

size_t tess_exchange_host_bytes(const tess_exchange *e)
{
    return tess_exchange_in_block(e)
               ? tess_exchange_packed_bytes(e)
               : 2 * (tess_exchange_bytes(e, e->above) + tess_exchange_bytes(e, e->below));
}
