/* pool.h: all threads. A pool runs one loop at a time on all its threads (the caller is one of them). A worker
 * is one thread that takes single calls, for reading and writing during computation. Neither allocates after
 * creation. */
#ifndef TESS_BASE_POOL_H
#define TESS_BASE_POOL_H

#include <stdint.h>

#include "base/status.h"
#include "base/stop.h"

typedef struct tess_pool tess_pool;
typedef struct tess_worker tess_worker;
typedef struct tess_trace tess_trace; /* base/trace.h */

typedef void (*tess_loop_fn)(void *arg, int64_t item, int thread);
typedef tess_status (*tess_call_fn)(void *arg, tess_error *error);

int tess_cpu_count(void);

/* `threads` 0: as many as this process may use. */
tess_status tess_pool_create(int threads, tess_pool **out, tess_error *error) TESS_MUST_CHECK;
void tess_pool_destroy(tess_pool *pool);
int tess_pool_threads(const tess_pool *pool);
/* From now on, loops end early when `stop` is set, and the thread that calls tess_pool_run polls it between
 * items. With NULL, loops always run to the end. `stop` must outlive the pool or be replaced by NULL. */
void tess_pool_watch(tess_pool *pool, tess_stop *stop);
/* From now on, the parts of loops that the helper threads do are recorded; NULL: they are not. */
void tess_pool_trace(tess_pool *pool, tess_trace *trace);
/* Calls fn(arg, item, thread) for every item in [0, items), in any order. Returns when all items are done, or,
 * when the job is to stop, when the items already started are done. */
void tess_pool_run(tess_pool *pool, int64_t items, tess_loop_fn fn, void *arg);

tess_status tess_worker_create(tess_worker **out, tess_error *error) TESS_MUST_CHECK;
void tess_worker_destroy(tess_worker *worker);
/* Starts fn(arg) on the worker. The previous call must have been waited for. */
void tess_worker_start(tess_worker *worker, tess_call_fn fn, void *arg);
/* Waits at most `seconds`; returns true when the call is still running. */
bool tess_worker_busy(tess_worker *worker, double seconds);
/* Waits for the started call, if any, and returns its status and message. */
tess_status tess_worker_wait(tess_worker *worker, tess_error *error) TESS_MUST_CHECK;

#endif
