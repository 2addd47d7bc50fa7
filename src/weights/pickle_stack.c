/* pickle_stack.c: the state of the pickle machine: bytes, stack, marks and memo.
 *
 * Bytes are loaded as needed, because in the legacy stream the end of a pickle is known only when STOP is
 * reached, and gigabytes of values may follow it. Values below the last mark cannot be accessed until the mark
 * is popped, so that a damaged pickle cannot corrupt a container that is being built. */
#include "base/mem.h"
#include "weights/pickle.h"

enum { STACK_MAX = 1 << 21, MEMO_MAX = 1 << 22 };

tess_status tess_pickle_damaged(tess_pickle *p, const char *what)
{
    return tess_fail(p->error, TESS_BAD_INPUT, "its pickle is damaged at byte %llu: %s",
                     (unsigned long long)(p->begin + p->at), what);
}

tess_status tess_pickle_need(tess_pickle *p, uint64_t count)
{
    if (count <= p->loaded - p->at)
        return TESS_OK;
    if (count > p->limit - p->at && p->limit == TESS_DIRECTORY_MAX)
        return tess_fail(p->error, TESS_BAD_INPUT, "its pickle has more than %d MiB; save a plain state dict",
                         TESS_DIRECTORY_MAX >> 20);
    if (count > p->limit - p->at)
        return tess_pickle_damaged(p, "it ends before its STOP");
    size_t wanted = p->at + (size_t)count, capacity = p->capacity ? p->capacity : 16 << 10;
    while (capacity < wanted)
        capacity *= 2;
    capacity = capacity > p->limit ? (size_t)p->limit : capacity;
    if (capacity > p->capacity) {
        unsigned char *grown = tess_small_realloc(p->bytes, capacity, 1);
        if (!grown)
            return tess_fail(p->error, TESS_NO_MEMORY, "no memory for a pickle of %zu bytes", capacity);
        p->bytes = grown;
        p->capacity = capacity;
    }
    TESS_TRY(tess_weights_bytes(p->weights, p->begin + p->loaded, p->bytes + p->loaded, capacity - p->loaded,
                                p->error));
    p->loaded = capacity;
    return TESS_OK;
}

tess_status tess_pickle_take(tess_pickle *p, int count, uint64_t *value)
{
    TESS_TRY(tess_pickle_need(p, (uint64_t)count));
    *value = tess_le(p->bytes + p->at, count);
    p->at += (size_t)count;
    return TESS_OK;
}

tess_status tess_pickle_push(tess_pickle *p, int32_t node)
{
    TESS_TRY(tess_pickle_grow(p, &p->stack, sizeof node, STACK_MAX, "values on its stack"));
    ((int32_t *)p->stack.items)[p->stack.count++] = node;
    return TESS_OK;
}

int32_t tess_pickle_reachable(const tess_pickle *p)
{
    int32_t marks = p->marks.count;
    return p->stack.count - (marks ? ((const int32_t *)p->marks.items)[marks - 1] : 0);
}

tess_status tess_pickle_pop(tess_pickle *p, int32_t *node)
{
    if (tess_pickle_reachable(p) < 1)
        return tess_pickle_damaged(p, "a value is missing");
    *node = ((const int32_t *)p->stack.items)[--p->stack.count];
    return TESS_OK;
}

tess_status tess_pickle_pop_mark(tess_pickle *p, int32_t *count)
{
    if (p->marks.count == 0)
        return tess_pickle_damaged(p, "a mark is missing");
    *count = tess_pickle_reachable(p);
    p->marks.count--;
    return TESS_OK;
}

tess_status tess_pickle_mark(tess_pickle *p)
{
    TESS_TRY(tess_pickle_grow(p, &p->marks, sizeof(int32_t), STACK_MAX, "marks"));
    ((int32_t *)p->marks.items)[p->marks.count++] = p->stack.count;
    return TESS_OK;
}

/* A pickler numbers its memo roughly in sequence (from 0, or from 1 in Python 2), so a number beyond the bytes
 * read so far means damage, not a reason to allocate. */
tess_status tess_pickle_remember(tess_pickle *p, uint64_t slot)
{
    if (slot > p->at || tess_pickle_reachable(p) < 1)
        return tess_pickle_damaged(p, "it remembers what is not there");
    while (slot >= (uint64_t)p->memo.count) {
        TESS_TRY(tess_pickle_grow(p, &p->memo, sizeof(int32_t), MEMO_MAX, "memo entries"));
        ((int32_t *)p->memo.items)[p->memo.count++] = -1;
    }
    ((int32_t *)p->memo.items)[slot] = ((const int32_t *)p->stack.items)[p->stack.count - 1];
    return TESS_OK;
}

tess_status tess_pickle_recall(tess_pickle *p, uint64_t slot)
{
    if (slot >= (uint64_t)p->memo.count || ((const int32_t *)p->memo.items)[slot] < 0)
        return tess_pickle_damaged(p, "it recalls what its memo does not hold");
    return tess_pickle_push(p, ((const int32_t *)p->memo.items)[slot]);
}
