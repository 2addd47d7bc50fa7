/* blur_exchange.h: how ranks share blurs with an unknown boundary, for records. */
#ifndef TESS_JOB_BLUR_EXCHANGE_H
#define TESS_JOB_BLUR_EXCHANGE_H

#include "base/json.h"
#include "plan/ranks/blurs.h"

typedef struct tess_blur_exchange {
    int64_t reach; /* rows */
    tess_blurs_way way;
    tess_blurs_cost costs[TESS_BLURS_WAYS]; /* of a step of conjugate gradients, as planned */
    enum { TESS_BLURS_BY_COST, TESS_BLURS_BY_MEMORY, TESS_BLURS_BY_ENVIRONMENT } because;
} tess_blur_exchange;

/* Seconds of a step in one of the ways. */
double tess_blur_exchange_seconds(const tess_blur_exchange *exchange, tess_blurs_way way);
/* What ranks share, and why so: "the blurs by ..." */
void tess_blur_exchange_say(const tess_blur_exchange *exchange, char *text, size_t bytes);
tess_json *tess_blur_exchange_record(const tess_blur_exchange *exchange);

#endif
