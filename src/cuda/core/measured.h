/* measured.h: which kernel does a class of layers best. Measured once by `tune` and kept in the cache, else guessed: the first row
 * that does not refuse. The class has the order of the image's size in it; no timing and no search when a new size comes. */
#ifndef TESS_CUDA_MEASURED_H
#define TESS_CUDA_MEASURED_H

#include <pthread.h>

#include "base/cache.h"
#include "cuda/cudnn/cudnn.h"
#include "device/kernel.h"

enum { TESS_CUDA_CLASS = 112, TESS_CUDA_PLANS = 96 };
#define TESS_CUDA_WORKSPACE ((size_t)32 << 20) /* the most a cuDNN plan may ask for */

/* What is known of a class: the row that does it. */
typedef struct tess_cuda_known {
    char op_class[TESS_CUDA_CLASS];
    char kernel[16];  /* "hopper", "cudnn", "generic" */
    int64_t setting;  /* cuDNN's engine id */
    size_t workspace; /* 0, or TESS_CUDA_WORKSPACE: one figure for all sizes, so that plans grow smoothly */
    double seconds;   /* < 0: not measured, only the first that fits */
} tess_cuda_known;

/* A cuDNN plan, shared by the ops of one shape. */
typedef struct tess_cuda_plan {
    tess_op op;
    int64_t setting;
    tess_cudnn_plan *plan;
    int users;
} tess_cuda_plan;

typedef struct tess_cuda_measured { /* owned by the device */
    pthread_mutex_t lock;           /* of all below, and of cuDNN, which takes one thread at a time */
    char card[128], forced[16];
    char path[TESS_CACHE_PATH];
    bool cudnn_tried;
    char measured_with[48]; /* the cuDNN of the cache's figures; empty: none was there */
    tess_cudnn *cudnn;      /* opened when first wanted: it takes a second and memory of the card */
    tess_cuda_known *known;
    int64_t count, capacity;
    tess_cuda_plan *plans[TESS_CUDA_PLANS];
    int plan_count;
} tess_cuda_measured;

/* `card` names the card and its driver: what was measured holds for them. */
tess_status tess_cuda_measured_create(const char *card, tess_cuda_measured **out,
                                      tess_error *error) TESS_MUST_CHECK;
void tess_cuda_measured_destroy(tess_cuda_measured *measured);

void tess_cuda_class(const tess_op *op, char text[TESS_CUDA_CLASS]);
tess_cuda_known *tess_cuda_find(tess_cuda_measured *measured, const char *op_class);
/* Adds or replaces; false without memory. */
bool tess_cuda_remember(tess_cuda_measured *measured, const tess_cuda_known *known);
void tess_cuda_save(const tess_cuda_measured *measured);
/* What is known of the op's class, or guessed now. */
tess_cuda_known tess_cuda_known_of(tess_device *device, const tess_op *op);
/* The entry of the device's table: the row that is best for this op; NULL where there is no choice. */
const tess_kernel *tess_cuda_prefers(tess_device *device, const tess_op *op);
/* Measures every row on the op in `scratch`, keeps the fastest and writes the cache. */
tess_status tess_cuda_tune(tess_device *device, const tess_op *op, void *scratch, size_t bytes,
                           tess_error *error) TESS_MUST_CHECK;

/* cuDNN's part, in cudnn/cudnn_row.c; with the lock held. NULL when there is no cuDNN here, or it refuses. */
tess_cudnn *tess_cuda_cudnn(tess_cuda_measured *measured, const tess_op *op);
tess_status tess_cuda_plan_take(tess_cuda_measured *measured, const tess_op *op, int64_t setting,
                                size_t limit, tess_cuda_plan **out, tess_error *error) TESS_MUST_CHECK;
void tess_cuda_plans_clear(tess_cuda_measured *measured);

#endif
