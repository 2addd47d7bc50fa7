#include "dist/share.h"

#include <math.h>
#include <string.h>

int64_t tess_share_first(const tess_share *share)
{
    return tess_share_many(share) ? share->from[share->dist->rank] : 0;
}

int64_t tess_share_rows(const tess_share *share, int64_t rows)
{
    return tess_share_many(share) ? share->from[share->dist->rank + 1] - share->from[share->dist->rank]
                                  : rows;
}

tess_status tess_share_keep(tess_share *share, tess_status status, const tess_error *error)
{
    if (!tess_share_many(share))
        return status;
    if (status != TESS_OK && share->status == TESS_OK) {
        share->status = status;
        share->error = *error;
    }
    return TESS_OK;
}

tess_status tess_share_agree(tess_share *share, tess_status mine, tess_error *error)
{
    if (!tess_share_many(share))
        return mine;
    if (share->status != TESS_OK) { /* it came first */
        mine = tess_fail(error, share->status, "%s", share->error.text);
        share->status = TESS_OK;
    }
    return tess_dist_agree(share->dist, mine, error);
}

static double joined(tess_share_how how, double a, double b)
{
    switch (how) {
    case TESS_SHARE_SUM:
        return a + b;
    case TESS_SHARE_LEAST:
        return fmin(a, b);
    case TESS_SHARE_MOST:
        return fmax(a, b);
    }
    return a;
}

/* The scratch of a communicator has two numbers for each rank: the value, and whether its rank has failed. */
tess_status tess_share_add(tess_share *share, tess_share_how how, double *value, tess_error *error)
{
    if (!tess_share_many(share))
        return TESS_OK;
    tess_dist *dist = share->dist;
    int64_t mine[2] = {0, share->status};
    bool failed = false;
    _Static_assert(sizeof *value == sizeof mine[0], "a value travels as a number");
    memcpy(&mine[0], value, sizeof *value);
    TESS_TRY(tess_dist_gather(dist, mine, sizeof mine, dist->numbers, error));
    for (int r = 0; r < dist->size; r++) {
        double theirs;
        memcpy(&theirs, &dist->numbers[2 * r], sizeof theirs);
        *value = r ? joined(how, *value, theirs) : theirs;
        failed = failed || dist->numbers[2 * r + 1] != TESS_OK;
    }
    return failed ? tess_share_agree(share, TESS_OK, error) : TESS_OK;
}
