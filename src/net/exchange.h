/* exchange.h: what an image's parts on several ranks fetch from their neighbours inside a network.
 *
 * A strip fetches rows, a slab of a volume slices. These are contiguous in the arena, and are sent from it and received into it
 * directly. A block of a grid of blocks also fetches columns and corners, from up to eight neighbours. Columns are not contiguous, so
 * all that a block sends is packed into a compact buffer, and what it receives arrives in one and is then copied into the margins
 * around its own pixels. The interior is never copied. */
#ifndef TESS_NET_EXCHANGE_H
#define TESS_NET_EXCHANGE_H

#include "device/device.h"
#include "tensor/tensor.h"

/* What is needed of one value: `above` rows before the part's own and `below` rows after them; of a block also `left` and `right`
 * columns beside them. As much goes to each neighbour as comes from it. */
typedef struct tess_exchange {
    tess_tensor rows; /* the part's own rows */
    void *data;  /* first of its own values; the neighbours' lie directly around, at the tensor's strides */
    bool slices; /* slices instead of rows */
    int above, below, left, right;
    void *packed; /* compact buffer; NULL unless there are columns */
} tess_exchange;

/* The strip's own rows, or slices. */
static inline int64_t tess_exchange_own(const tess_exchange *exchange)
{
    return exchange->slices ? exchange->rows.d : exchange->rows.h;
}
/* Where one of these rows begins, and the bytes from the first value of one row to the last of the `count`-th. If the value
 * shares its storage with others, theirs are in between; they are the same value on all ranks, or not yet read. */
static inline char *tess_exchange_row(const tess_exchange *exchange, int64_t row)
{
    return (char *)exchange->data +
           row * (exchange->slices ? exchange->rows.stride_d : exchange->rows.stride_h) *
               (int64_t)tess_dtype_size(exchange->rows.dtype);
}
static inline size_t tess_exchange_bytes(const tess_exchange *exchange, int64_t count)
{
    const tess_tensor *t = &exchange->rows;
    const int64_t row = (t->w - 1) * t->stride_w + t->c,
                  values = exchange->slices ? (count - 1) * t->stride_d + (t->h - 1) * t->stride_h + row
                                            : (count - 1) * t->stride_h + row;
    return count > 0 ? (size_t)values * tess_dtype_size(t->dtype) : 0;
}

/* One neighbour of a block. */
typedef struct tess_exchange_side {
    int down, across;      /* where it is: -1, 0 or 1 in the rows and in the columns of the grid */
    size_t bytes;          /* that go there, and that come from there */
    size_t sent, received; /* where these are in the compact buffer */
} tess_exchange_side;
enum { TESS_EXCHANGE_SIDES = 8 };

static inline bool tess_exchange_in_block(const tess_exchange *exchange)
{
    return exchange->left || exchange->right;
}
/* The neighbours of a block, from the upper left to the lower right; returns their number. */
int tess_exchange_sides(const tess_exchange *exchange, tess_exchange_side sides[TESS_EXCHANGE_SIDES]);
/* The size of the compact buffer, for what is sent and what is received. */
size_t tess_exchange_packed_bytes(const tess_exchange *exchange);
/* Copies own pixels at the edges into the buffer; copies what has arrived there into the margins. In host memory. */
void tess_exchange_pack(const tess_exchange *exchange);
void tess_exchange_unpack(const tess_exchange *exchange);
/* The same for one neighbour, as an op of a device with separate memory. *at: bytes from the value's own first pixel to those that are
 * copied. */
tess_op tess_exchange_copy(const tess_exchange *exchange, const tess_exchange_side *side, bool received,
                           int64_t *at);

/* All that is sent and received, which passes through the host if the device has separate memory. */
size_t tess_exchange_host_bytes(const tess_exchange *exchange);

/* Fills the surrounding rows and columns in stream order: `begin` starts, and they are there after `end`. Until then the part's own
 * pixels do not change. All neighbours make the same exchanges in the same order, also when they are stopped. */
typedef struct tess_exchanger {
    void (*begin)(void *user, const tess_exchange *exchange, tess_stream *stream);
    void (*end)(void *user, const tess_exchange *exchange, tess_stream *stream);
} tess_exchanger;

#endif
