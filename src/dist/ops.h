/* ops.h: what a communication library must provide. Everything else in dist is made of these. `solo` is always there;
 * MPI is a module of its own (mpi.c), which the program opens only if it was started as one of several. */
#ifndef TESS_DIST_OPS_H
#define TESS_DIST_OPS_H

#include "dist/dist.h"

/* Memory for the requests of an exchange: the owner is the caller. */
typedef struct tess_dist_requests {
    int most;    /* transfers */
    int started; /* requests under way */
    void *memory;
} tess_dist_requests;

struct tess_dist_ops {
    const char *name;
    size_t size;         /* of this struct, and the version: a module of another build is refused */
    const char *version; /* TESSERA_VERSION */
    /* Joins the others; `described` gets a line about the library. */
    tess_status (*open)(int *rank, int *size, char *described, size_t bytes, tess_error *error);
    void (*close)(void);
    /* Ends the process and, as far as the library can, the whole job. */
    void (*abort)(void);
    tess_status (*gather)(const void *mine, size_t bytes, void *all, tess_error *error);
    tess_status (*broadcast)(int root, void *data, size_t bytes, tess_error *error);
    tess_status (*sum_f32)(float *values, int64_t count, tess_error *error);
    tess_status (*sum_f64)(double *values, int64_t count, tess_error *error);
    tess_status (*barrier)(tess_error *error);
    size_t (*request_bytes)(int most);
    tess_status (*begin)(tess_dist_requests *requests, const tess_dist_transfer *list, int count,
                         tess_error *error);
    /* Also without requests: moves on whatever the library still has to send. */
    tess_status (*poll)(tess_dist_requests *requests, tess_error *error);
    tess_status (*end)(tess_dist_requests *requests, tess_error *error);
};

/* The table of a library. Its file names its functions as the entries; those that C or POSIX have too end in the name
 * of the library. */
#define TESS_DIST_TABLE(library)                                                                             \
    {                                                                                                        \
        .name = #library, .size = sizeof(tess_dist_ops), .version = TESSERA_VERSION, .open = open_##library, \
        .close = close_##library, .abort = abort_##library, .gather = gather, .broadcast = broadcast,        \
        .sum_f32 = sum_f32, .sum_f64 = sum_f64, .barrier = barrier, .request_bytes = request_bytes,          \
        .begin = begin, .poll = poll_##library, .end = end                                                   \
    }

extern const tess_dist_ops tess_dist_solo;
/* Records the time since `start` in the trace, and returns the status. */
tess_status tess_dist_timed(const tess_dist *dist, const char *name, double start, tess_status status);
/* The symbol of a module. */
#define TESS_DIST_MODULE_SYMBOL "tess_dist_module"

#endif
