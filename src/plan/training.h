/* training.h: chooses micro-batches and recomputation for a training step within a memory limit. */
#ifndef TESS_PLAN_TRAINING_H
#define TESS_PLAN_TRAINING_H

#include "net/training.h"
#include "plan/rates.h"

enum { TESS_TRAINING_WHY = 200 };

typedef struct tess_training_request {
    tess_training_settings settings; /* n: the whole batch; micro_batches 0: automatic */
    bool recompute_auto;             /* settings.recompute is chosen too */
    uint64_t limit;                  /* bytes for everything */
    /* Bytes of the limit that the job needs for other things if the batch is divided into so many parts. */
    uint64_t (*besides)(const void *user, int micro_batches);
    const void *user;
    const char *factor; /* the operator by which measured steps correct the sum of their ops; NULL: none */
} tess_training_request;

typedef struct tess_training_choice {
    int micro_batches;
    tess_recompute recompute;
    int blocks, blocks_of;       /* blocks that are computed again; how many the network has */
    uint64_t bytes, besides;     /* of the step; of other things: see the request */
    double seconds;              /* of one step */
    bool calibrated;             /* all rates behind `seconds` were measured */
    bool first;                  /* a larger limit would not change it */
    char why[TESS_TRAINING_WHY]; /* one sentence */
} tess_training_choice;

/* Plans the fastest combination that fits. Micro-batches cost little, computing activations again costs up to a third of
 * the time; if that is chosen here, no more blocks are computed again than the limit requires. A network with batch norm is divided last, because its statistics are those of a micro-batch. If nothing
 * fits, *least is the smallest limit that would do, in bytes; else it is not changed. */
tess_status tess_plan_training(const tess_net *net, tess_device *device, const tess_rates *rates,
                               const tess_training_request *request, tess_training_choice *choice,
                               tess_training **out, uint64_t *least, tess_error *error) TESS_MUST_CHECK;

const char *tess_recompute_name(tess_recompute recompute);
/* Seconds of one step by the rates. */
double tess_training_seconds(const tess_rates *rates, const tess_training *training, int micro_batches,
                             bool *measured);

#endif
