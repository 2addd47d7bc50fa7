/* update.h: the optimizer's step as a part of the program. */
#ifndef TESS_NET_TRAINING_UPDATE_H
#define TESS_NET_TRAINING_UPDATE_H

#include "net/parameters.h"
#include "net/training.h"
#include "net/training/program.h"

enum {
    UPDATE_GROUPS = 16,
    /* F64 values of the control block: TESS_CONTROLS, then these. */
    LOSS_AT = TESS_CONTROLS,
    NORM_AT, /* the sum of squares of each group's gradients */
    ZERO_AT = NORM_AT + UPDATE_GROUPS,
    CONTROL_VALUES = ZERO_AT + TESS_PARAMETER_ALIGN / 2 /* zeros: TESS_PARAMETER_ALIGN in fp32 */
};

/* Parameters that are updated together. */
typedef struct tess_update_group {
    int64_t first, count; /* values of the parameters' block */
    tess_cell gradients;  /* in the arena; -1: they are in the gradients' block */
} tess_update_group;

typedef struct tess_update {
    tess_update_group groups[UPDATE_GROUPS]; /* in the order of the backward pass */
    int count;
    bool in_pass; /* each group is updated inside the pass; otherwise all parameters are one group */
} tess_update;

/* Divides the parameters into groups and adds cells for their gradients. */
void tess_update_divide(tess_update *update, tess_program *program, const tess_net *net,
                        const tess_parameters *parameters, const tess_training_settings *settings);
/* The cell of the gradients of parameters [first, first + elements), of one layer. */
tess_cell tess_update_gradients(const tess_update *update, tess_program *program, int64_t first,
                                int64_t elements);
/* Emits the step of all groups. In a pass, that of a group moves up behind the last step that reads its parameters or
 * writes its gradients. */
void tess_update_emit(const tess_update *update, tess_program *program, const tess_parameters *parameters,
                      const tess_training_settings *settings);

#endif
