/* engines_impl.h: what engines.c (choosing), engines_cudnn.c (plans) and engines_tune.c (measuring) share. */
#ifndef TESS_CUDA_ENGINES_IMPL_H
#define TESS_CUDA_ENGINES_IMPL_H

#include <pthread.h>

#include "base/cache.h"
#include "cuda/conv/volume.h"
#include "cuda/core/engines.h"
#include "cuda/cudnn/cudnn.h"

enum { TESS_CUDA_CLASS = 112, TESS_CUDA_PLANS = 96 };
#define TESS_CUDA_WORKSPACE ((size_t)32 << 20) /* the most a cuDNN engine may ask for */

/* What is known of a class: the engine that does it. */
typedef struct tess_cuda_known {
    char op_class[TESS_CUDA_CLASS];
    char engine[16];  /* "hopper", "cudnn", "generic" */
    int64_t setting;  /* cuDNN's engine id */
    size_t workspace; /* 0, or TESS_CUDA_WORKSPACE: one figure for all sizes, so that plans grow smoothly */
    double seconds;   /* < 0: not measured, only the first that fits */
} tess_cuda_known;

struct tess_cuda_plan {
    tess_op op;
    int64_t setting;
    tess_cudnn_plan *plan;
    int users;
};

struct tess_cuda_engines {
    pthread_mutex_t lock; /* of all below, and of cuDNN, which takes one thread at a time */
    int capability;
    char card[128], forced[16];
    char path[TESS_CACHE_PATH];
    bool cudnn_tried;
    char measured_with[48]; /* the cuDNN of the cache's figures; empty: none was there */
    tess_cudnn *cudnn;      /* opened when first wanted: it takes a second and memory of the card */
    tess_cuda_known *known;
    int64_t count, capacity;
    tess_cuda_plan *plans[TESS_CUDA_PLANS];
    int plan_count;
};

void tess_cuda_class(const tess_op *op, char text[TESS_CUDA_CLASS]);
/* The engine of our own that has this name and does the op, or NULL. */
const tess_cuda_engine *tess_cuda_own_engine(const tess_cuda_engines *engines, const tess_op *op,
                                             const char *name);
/* Is this an op that one engine alone does, so that there is nothing to measure or remember? */
static inline bool tess_cuda_no_choice(const tess_op *op)
{
    return !tess_op_is_layer(op) || op->kind == TESS_OP_ACTIVATE || tess_cuda_is_volume(op);
}

tess_cuda_known *tess_cuda_find(tess_cuda_engines *engines, const char *op_class);
/* Adds or replaces; false without memory. */
bool tess_cuda_remember(tess_cuda_engines *engines, const tess_cuda_known *known);
void tess_cuda_save(const tess_cuda_engines *engines);

/* With the lock held. NULL when there is no cuDNN here, or it refuses. */
tess_cudnn *tess_cuda_cudnn(tess_cuda_engines *engines, const tess_op *op);
tess_status tess_cuda_plan_take(tess_cuda_engines *engines, const tess_op *op, int64_t setting, size_t limit,
                                tess_cuda_plan **out, tess_error *error) TESS_MUST_CHECK;
void tess_cuda_plans_clear(tess_cuda_engines *engines);

#endif
