/* Piece k has its place in slot k % SLOTS. It takes two exchanges: `give`, in which each rank gets its part of the piece from
 * all others, and `back`, in which all get the sums. Between two ranks, messages match by their order, so that all ranks
 * begin exchanges in one order, whatever is done first: give 0, give 1, give 2, back 0, give 3, back 1, and so on. */
#include "train/rank_sum.h"

#include <string.h>

#include "base/checked.h"

enum { SLOTS = 4, LAG = 2 };                          /* back k begins after give k + LAG */
enum { PIECES = 8, LEAST = 1 << 12, MOST = 1 << 20 }; /* at least so many pieces, of so many values */

typedef struct slot {
    float *values;   /* of the piece, in the array, or a copy */
    float *received; /* parts of the other ranks */
    tess_dist_exchange *exchange;
} slot;

struct tess_rank_sum {
    tess_dist *dist;
    tess_device *device;
    float *values;
    int64_t count, piece;
    int64_t pieces, given, added; /* in this sum */
    bool staged;
    tess_status status;
    tess_error error;
    tess_block block;
    tess_dist_transfer *list; /* one for each rank */
    slot slots[SLOTS];
};

static int64_t piece_size(int64_t count)
{
    return tess_min_i64(tess_max_i64(count / PIECES, LEAST), MOST);
}

/* The values of the parts of all other ranks, at most. */
static size_t received_values(int64_t piece, int ranks)
{
    return (size_t)(ranks - 1) * (size_t)(piece / ranks + 1);
}

static size_t block_bytes(int64_t count, int ranks, bool staged)
{
    const int64_t piece = piece_size(count);
    return SLOTS * (received_values(piece, ranks) + (staged ? (size_t)piece : 0)) * sizeof(float);
}

size_t tess_rank_sum_bytes(int64_t count, int ranks, bool staged)
{
    return ranks > 1 && count > 0 ? tess_block_granted(block_bytes(count, ranks, staged)) : 0;
}

tess_status tess_rank_sum_open(tess_dist *dist, tess_device *device, float *values, int64_t count,
                               bool staged, tess_rank_sum **out, tess_error *error)
{
    tess_rank_sum *s = *out = tess_small_alloc(1, sizeof *s);
    if (!s)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the sums of the ranks");
    *s = (tess_rank_sum){.dist = dist,
                         .device = device,
                         .values = values,
                         .count = count,
                         .piece = piece_size(count),
                         .staged = staged};
    s->pieces = (count + s->piece - 1) / s->piece;
    s->list = tess_small_alloc((size_t)dist->size, sizeof *s->list);
    if (!s->list)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the sums of the ranks");
    TESS_TRY(device->memory->host_alloc(device, &s->block, block_bytes(count, dist->size, staged), error));
    float *at = s->block.data;
    for (int i = 0; i < SLOTS; i++) {
        s->slots[i].received = at;
        at += received_values(s->piece, dist->size);
        s->slots[i].values = staged ? at : NULL;
        at += staged ? s->piece : 0;
        TESS_TRY(tess_dist_exchange_create(dist, dist->size, &s->slots[i].exchange, error));
    }
    return TESS_OK;
}

void tess_rank_sum_close(tess_rank_sum *s)
{
    if (!s)
        return;
    for (int i = 0; i < SLOTS; i++)
        tess_dist_exchange_destroy(s->slots[i].exchange);
    s->device->memory->host_free(s->device, &s->block);
    tess_small_free(s->list);
    tess_small_free(s);
}

static int64_t piece_first(const tess_rank_sum *s, int64_t k)
{
    return tess_max_i64(s->count - (k + 1) * s->piece, 0);
}

static int64_t piece_count(const tess_rank_sum *s, int64_t k)
{
    return s->count - k * s->piece - piece_first(s, k);
}

/* Where the part of a rank begins in piece k. */
static int64_t part_first(const tess_rank_sum *s, int64_t k, int rank)
{
    return piece_count(s, k) * rank / s->dist->size;
}

static size_t part_bytes(const tess_rank_sum *s, int64_t k, int rank)
{
    return (size_t)(part_first(s, k, rank + 1) - part_first(s, k, rank)) * sizeof(float);
}

/* Ends what the slot of piece k did for an earlier piece, or for the same. */
static tess_status take_back(tess_rank_sum *s, int64_t k, tess_error *error)
{
    const slot *at = &s->slots[k % SLOTS];
    TESS_TRY(tess_dist_exchange_end(at->exchange, error));
    if (s->staged)
        s->device->memory->copy(s->device, s->values + piece_first(s, k), at->values,
                                (size_t)piece_count(s, k) * sizeof(float), NULL);
    return TESS_OK;
}

static tess_status give(tess_rank_sum *s, int64_t k, tess_error *error)
{
    slot *at = &s->slots[k % SLOTS];
    const size_t mine = part_bytes(s, k, s->dist->rank);
    int count = 0;
    if (k >= SLOTS)
        TESS_TRY(take_back(s, k - SLOTS, error));
    if (s->staged) {
        s->device->memory->copy(s->device, at->values, s->values + piece_first(s, k),
                                (size_t)piece_count(s, k) * sizeof(float), NULL);
        TESS_TRY(s->device->streams->sync(s->device, NULL, error));
    } else {
        at->values = s->values + piece_first(s, k);
    }
    for (int r = 0; r < s->dist->size; r++) {
        if (r == s->dist->rank)
            continue;
        s->list[count] = (tess_dist_transfer){.peer = r,
                                              .send = at->values + part_first(s, k, r),
                                              .send_bytes = part_bytes(s, k, r),
                                              .receive = (char *)at->received + (size_t)count * mine,
                                              .receive_bytes = mine};
        count++;
    }
    return tess_dist_exchange_begin(at->exchange, s->list, count, error);
}

static void add(float *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* Adds this rank's part of the piece, in the order of the ranks. */
static void add_part(const tess_rank_sum *s, int64_t k)
{
    const slot *at = &s->slots[k % SLOTS];
    const int rank = s->dist->rank;
    const int64_t first = part_first(s, k, rank), count = part_first(s, k, rank + 1) - first;
    float *own = at->values + first, *sum = rank == 0 ? own : at->received;
    const float *next = at->received + (rank == 0 ? 0 : count);
    for (int r = 1; r < s->dist->size; r++) {
        add(sum, r == rank ? own : next, count);
        next += r == rank ? 0 : count;
    }
    if (sum != own && count > 0)
        memcpy(own, sum, (size_t)count * sizeof *own);
}

static tess_status give_back(tess_rank_sum *s, int64_t k, tess_error *error)
{
    slot *at = &s->slots[k % SLOTS];
    const int rank = s->dist->rank;
    int count = 0;
    TESS_TRY(tess_dist_exchange_end(at->exchange, error));
    add_part(s, k);
    for (int r = 0; r < s->dist->size; r++)
        if (r != rank)
            s->list[count++] = (tess_dist_transfer){.peer = r,
                                                    .send = at->values + part_first(s, k, rank),
                                                    .send_bytes = part_bytes(s, k, rank),
                                                    .receive = at->values + part_first(s, k, r),
                                                    .receive_bytes = part_bytes(s, k, r)};
    return tess_dist_exchange_begin(at->exchange, s->list, count, error);
}

static tess_status move_on(tess_rank_sum *s, int64_t from, tess_error *error)
{
    for (int i = 0; i < SLOTS; i++)
        TESS_TRY(tess_dist_exchange_poll(s->slots[i].exchange, error));
    while (s->given < s->pieces && piece_first(s, s->given) >= from) {
        TESS_TRY(give(s, s->given, error));
        s->given++;
        if (s->given > LAG)
            TESS_TRY(give_back(s, s->added++, error));
    }
    return TESS_OK;
}

void tess_rank_sum_ready(void *sum, int64_t from)
{
    tess_rank_sum *s = sum;
    if (s->status == TESS_OK)
        s->status = move_on(s, from, &s->error);
}

tess_status tess_rank_sum_end(tess_rank_sum *s, tess_error *error)
{
    tess_rank_sum_ready(s, 0);
    if (s->status != TESS_OK)
        return tess_fail(error, s->status, "%s", s->error.text);
    while (s->added < s->pieces)
        TESS_TRY(give_back(s, s->added++, error));
    for (int64_t k = tess_max_i64(s->pieces - SLOTS, 0); k < s->pieces; k++)
        TESS_TRY(take_back(s, k, error));
    s->given = s->added = 0;
    return TESS_OK;
}
