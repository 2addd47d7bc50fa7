/* work.h: what a job will do, as plain data that says nothing of a device: how much of each class of op, how many bytes go
 * to a device with separate memory and back, and what is done once. With the rates of a device it gives seconds
 * (plan/choose.h), whether that device is open, remembered or described in a file.
 *
 * Work is listed from plans made on the CPU. Another device may cut an image in another way, but the classes and the pixels
 * are nearly the same. */
#ifndef TESS_PLAN_WORK_H
#define TESS_PLAN_WORK_H

#include "plan/cut.h"
#include "plan/rates.h"

enum { TESS_WORK_PHASES = 4, TESS_WORK_NAME = 32 };

typedef enum tess_work_kind {
    TESS_WORK_OP,       /* a class of ops; unmeasured: by operations and bytes */
    TESS_WORK_OPERATOR, /* a linear operator: operations and bytes, times the factor of its name */
    TESS_WORK_BEYOND,   /* what a run costs beyond its ops; unmeasured: nothing */
    TESS_WORK_HOST,     /* done by the host, whatever the device; the rates are the host's */
    TESS_WORK_READ      /* the same, by a thread of its own while the device computes */
} tess_work_kind;

typedef struct tess_work_item {
    char op_class[TESS_RATES_CLASS];
    tess_work_kind kind;
    bool layer; /* of a network: computed in the precision that the device uses for networks */
    tess_op_amount amount;
} tess_work_item;

typedef struct tess_work_phase {
    char name[TESS_WORK_NAME];
    tess_work_item *items; /* owned */
    int count, capacity;
    double up, down, copies; /* bytes to and from separate memory, in so many copies */
    /* What overlaps is done in so many pieces, one after another; 1: nothing overlaps. */
    double pieces;
    bool copies_overlap;         /* with ops */
    char factor[TESS_WORK_NAME]; /* an operator by whose factor the ops' sum is corrected; "": none */
} tess_work_phase;

typedef struct tess_work {
    const char *verb;
    int phases;
    tess_work_phase phase[TESS_WORK_PHASES];
    double weight_bytes, shapes; /* fp32 weights that are packed; shapes of networks that are prepared */
    const char *card_precision;  /* in which a card computes networks: "F16", "BF16", "TF32", "F32" */
    uint64_t least_memory;       /* of a device with separate memory; 0: any is enough */
    bool failed;                 /* no memory for the list */
} tess_work;

/* The next phase, empty. */
tess_work_phase *tess_work_begin(tess_work *work, const char *verb, const char *name);
void tess_work_clear(tess_work *work);

void tess_work_add(tess_work *work, tess_work_phase *phase, const tess_work_item *item);
/* So many runs of an op. */
void tess_work_add_op(tess_work *work, tess_work_phase *phase, const tess_rates *rates, const tess_op *op,
                      bool layer, double runs);
/* All ops of a network's plan. `runs` may have a fraction: windows at edges are smaller than the plan's. */
void tess_work_add_net(tess_work *work, tess_work_phase *phase, const tess_rates *rates,
                       const tess_net_plan *plan, double runs);
/* A cut image or volume, `times` times. */
tess_status tess_work_add_cut(tess_work *work, tess_work_phase *phase, const tess_rates *rates,
                              const tess_bound *bound, const tess_cut_request *request,
                              const tess_cut_plan *plan, double times, tess_error *error) TESS_MUST_CHECK;

#endif
