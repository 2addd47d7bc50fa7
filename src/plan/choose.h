/* choose.h: which device a job, or each phase of it, should use: the one decision for all verbs. It is a pure function of the
 * work and the rates of the devices, so that tests and studies can ask it about machines that are not there.
 *
 * seconds of a phase = its ops on the device, its copies over the bus, the host's part, and reading. Of what overlaps, in n
 * pieces, the longest counts, and 1/n of the others. A device that is used adds its fixed costs once: opening it, packing
 * weights, preparing networks, and what the verb's job takes besides. */
#ifndef TESS_PLAN_CHOOSE_H
#define TESS_PLAN_CHOOSE_H

#include "plan/machine.h"
#include "plan/work.h"

enum { TESS_CHOOSE_DEVICES = 8, TESS_CHOOSE_WHY = 240 };

typedef struct tess_predicted_phase {
    double compute, transfer, host, reading; /* each by itself */
    double seconds;                          /* together, overlapped as the run does */
} tess_predicted_phase;

typedef struct tess_prediction {
    char kind[16], name[96];
    bool calibrated;        /* every rate was measured */
    bool phases_calibrated; /* the rates of phases, without those of fixed costs */
    bool possible;          /* has the memory */
    double fixed;           /* of the device, once */
    double open;            /* the part of `fixed` that is opening the device */
    double seconds;         /* of the whole job on this device alone */
    tess_predicted_phase phase[TESS_WORK_PHASES];
} tess_prediction;

typedef struct tess_decision {
    int devices, phases;
    tess_prediction device[TESS_CHOOSE_DEVICES];
    char phase_name[TESS_WORK_PHASES][TESS_WORK_NAME];
    int chosen[TESS_WORK_PHASES]; /* the device of each phase */
    double seconds;               /* of the choice */
    char why[TESS_CHOOSE_WHY];    /* one sentence */
} tess_decision;

/* The seconds of the work on a device. `host`: the rates of the CPU, for what it does in any case. */
void tess_predict(const tess_work *work, const tess_rates *rates, const tess_rates *host,
                  tess_prediction *prediction);
/* Predicts all devices and chooses. The first is the host. Of equal ones the first is chosen. `candidates`: only the first
 * so many may be chosen, the others are only predicted. */
void tess_choose(const tess_work *work, const tess_rates *const *devices, int count, int candidates,
                 tess_decision *decision);

#endif
