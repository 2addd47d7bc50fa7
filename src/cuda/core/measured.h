/* measured.h: the fastest kernel for a class of layers. `tune` measures it once and stores it in the cache;
 * without a measurement it is the first row that does not refuse. The class includes the order of magnitude of
 * the image size, so a new size needs no timing and no search, and not the batch, so an image gets the same kernel in any
 * batch (a gradient's class includes it). No kernel's order of sums depends on the batch, but cuDNN's may. */
#ifndef TESS_CUDA_MEASURED_H
#define TESS_CUDA_MEASURED_H

#include <pthread.h>

#include "base/cache.h"
#include "cuda/cudnn/cudnn.h"
#include "device/kernel.h"

enum { TESS_CUDA_CLASS = 128, TESS_CUDA_PLANS = 96 };
#define TESS_CUDA_WORKSPACE ((size_t)32 << 20) /* most that a cuDNN plan may ask for */

/* What is known about a class: the row to use. */
typedef struct tess_cuda_known {
    char op_class[TESS_CUDA_CLASS];
    char kernel[16]; /* "hopper", "cudnn", "generic" */
    int64_t setting; /* cuDNN's engine id */
    /* 0 or TESS_CUDA_WORKSPACE: the same for all sizes, so that planned memory grows steadily. */
    size_t workspace;
    double seconds; /* < 0: not measured */
} tess_cuda_known;

/* A cuDNN plan, shared by the ops of one shape. */
typedef struct tess_cuda_plan {
    tess_op op;
    int64_t setting;
    tess_cudnn_plan *plan;
    int users;
} tess_cuda_plan;

typedef struct tess_cuda_measured { /* owned by the device */
    pthread_mutex_t lock;           /* protects all below, and cuDNN, which takes one thread at a time */
    char card[128], forced[16];
    char path[TESS_CACHE_PATH];
    bool cudnn_tried;
    char measured_with[48]; /* the cuDNN version of the cached figures; empty: none */
    tess_cudnn *cudnn;      /* opened at first use: that takes a second and memory of the card */
    tess_cuda_known *known;
    int64_t count, capacity;
    tess_cuda_plan *plans[TESS_CUDA_PLANS];
    int plan_count;
} tess_cuda_measured;

/* `card` names the card and its driver; measurements are valid only for them. */
tess_status tess_cuda_measured_create(const char *card, tess_cuda_measured **out,
                                      tess_error *error) TESS_MUST_CHECK;
void tess_cuda_measured_destroy(tess_cuda_measured *measured);

void tess_cuda_class(const tess_op *op, char text[TESS_CUDA_CLASS]);
tess_cuda_known *tess_cuda_find(tess_cuda_measured *measured, const char *op_class);
/* Adds or replaces; false if out of memory. */
bool tess_cuda_remember(tess_cuda_measured *measured, const tess_cuda_known *known);
void tess_cuda_save(const tess_cuda_measured *measured);
/* The stored choice for the op's class, or the default. */
tess_cuda_known tess_cuda_known_of(tess_device *device, const tess_op *op);
/* Entry of the device's table: the best row for this op; NULL if there is no choice to make. */
const tess_kernel *tess_cuda_prefers(tess_device *device, const tess_op *op);
/* Measures every row on the op in `scratch`, keeps the fastest and writes the cache. */
tess_status tess_cuda_tune(tess_device *device, const tess_op *op, void *scratch, size_t bytes,
                           tess_error *error) TESS_MUST_CHECK;

/* cuDNN's part, in cudnn/cudnn_row.c; call with the lock held. NULL if cuDNN is missing or refuses the op. */
tess_cudnn *tess_cuda_cudnn(tess_cuda_measured *measured, const tess_op *op);
tess_status tess_cuda_plan_take(tess_cuda_measured *measured, const tess_op *op, int64_t setting,
                                size_t limit, tess_cuda_plan **out, tess_error *error) TESS_MUST_CHECK;
void tess_cuda_plans_clear(tess_cuda_measured *measured);

#endif
