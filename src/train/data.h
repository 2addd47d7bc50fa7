/* data.h: the samples that a network trains on, and the queue that prepares them ahead of use.
 *
 * A source gives one sample at a time: everything that is random about it is drawn from (seed, step, index in the
 * batch) by counter (base/rng.h). So a run does not depend on the number of workers, on how a batch is divided, or
 * on being resumed. Images are drawn with replacement: a permutation for each epoch would make a sample depend on
 * the batch size of all steps before it.
 *
 * Worker threads fill batches in pinned memory, a few ahead of the trainer. All memory is known before the run
 * (`bytes` of the source, tess_data_bytes of the queue) and is counted as TESS_MEM_HOST. */
#ifndef TESS_TRAIN_DATA_H
#define TESS_TRAIN_DATA_H

#include "base/rng.h"
#include "device/device.h"

enum { TESS_DATA_ARRAYS = 4 };

/* What a sample is drawn from, and what may end its drawing early. */
typedef struct tess_sample {
    uint64_t seed;
    int64_t step, index; /* index: in the whole batch of the step; both below 2^32 */
    int64_t more;    /* samples after it that are drawn with it: see `group` and `copies` of tess_source */
    int worker;      /* of this number of workers; chooses scratch memory, never values */
    tess_stop *stop; /* polled by long draws, which then return TESS_INTERRUPTED */
} tess_sample;

/* What an array is for, so that a trainer need not know the kind of source. Without INPUT, the op NOISE makes the
 * input from TARGET, with the rows of NOISE. */
typedef enum tess_data_role {
    TESS_DATA_TARGET,
    TESS_DATA_INPUT,
    TESS_DATA_VECTOR,     /* the network's second input: of each image, e.g. its noise level */
    TESS_DATA_MASK,       /* weights of MASKED_MSE */
    TESS_DATA_NOISE_TABLE /* F64 (n, 1, 1, 1, 4): see tess_op_random */
} tess_data_role;

typedef struct tess_source tess_source;
struct tess_images;

typedef struct tess_source_table {
    const char *name;
    /* Bytes of host memory that `begin` allocates and that draws hold at most, as counted. */
    size_t (*bytes)(const tess_source *, int workers);
    tess_status (*begin)(tess_source *, int workers, tess_error *);
    /* Writes a sample, item 0 of each array, and those after it. Called by several threads, each with its own `worker`. */
    tess_status (*draw)(tess_source *, const tess_sample *, void *const arrays[TESS_DATA_ARRAYS],
                        tess_error *);
    void (*close)(tess_source *);
} tess_source_table;

/* The first member of each kind of source, which has an opening function of its own (data_folder.h). Opening checks
 * everything that can be known without decoding, and allocates nothing large. */
struct tess_source {
    const tess_source_table *table;
    int arrays;
    tess_data_role role[TESS_DATA_ARRAYS];
    tess_tensor array[TESS_DATA_ARRAYS]; /* one sample (n = 1), dense */
    int64_t items;                       /* images, for reports */
    int64_t
        group; /* samples, from a multiple of this index on, whose drawing shares most of its work; 0 and 1: none */
    bool copies; /* a draw only copies memory: a worker draws a whole micro-batch, and wakes up nobody else */
    const struct tess_images *images; /* the files behind it (data_images.h) */
};

/* The array with this role, or -1. */
static inline int tess_source_array(const tess_source *source, tess_data_role role)
{
    for (int i = 0; i < source->arrays; i++)
        if (source->role[i] == role)
            return i;
    return -1;
}

static inline void tess_source_close(tess_source *source)
{
    if (source)
        source->table->close(source);
}

/* Purposes of one seed: each gives numbers that are independent of the others'. */
typedef enum tess_data_purpose {
    TESS_DATA_CHOICE,
    TESS_DATA_NOISE,
    TESS_DATA_DROPOUT,
    TESS_DATA_VOID
} tess_data_purpose;
/* NOISE is the seed of the op NOISE that adds noise to the samples of a run with this seed; DROPOUT is that of its
 * training step. */
uint64_t tess_data_seed(uint64_t seed, tess_data_purpose purpose);

typedef struct tess_data_settings {
    tess_source *source; /* must outlive the queue; the queue calls its `begin` */
    tess_device *device; /* for pinned memory */
    tess_stop *stop;     /* of the job; take() returns TESS_INTERRUPTED when it is set; may be NULL */
    uint64_t seed;
    int64_t batch;      /* samples of a step, or those of them that this rank draws */
    int64_t first;      /* place of the first one in the whole batch */
    int parts;          /* micro-batches of a step: a divisor of `batch` */
    int64_t first_step; /* where the run starts or is resumed */
    int depth;          /* micro-batches that are held, including those taken: at least 2 */
    int workers;        /* 0: as many as this process may use, at most TESS_DATA_WORKERS */
} tess_data_settings;

enum { TESS_DATA_WORKERS = 64, TESS_DATA_DEPTH = 66 }; /* 64 micro-batches of a step and two ahead */

/* A micro-batch: samples [first, first + n) of the step's batch. */
typedef struct tess_batch {
    int64_t step, first, n;
    int part, arrays;
    void *data[TESS_DATA_ARRAYS]; /* pinned; valid until released */
    tess_tensor array[TESS_DATA_ARRAYS];
    int slot;
} tess_batch;

typedef struct tess_data_queue tess_data_queue; /* owned by the caller: tess_data_close */

/* Host memory of the queue and its source together, for plans. */
size_t tess_data_bytes(const tess_data_settings *settings);
tess_status tess_data_open(const tess_data_settings *settings, tess_data_queue **out,
                           tess_error *error) TESS_MUST_CHECK;
/* The next micro-batch in order. Waits for it. A sample that failed gives its error here, when its step is reached. */
tess_status tess_data_take(tess_data_queue *queue, tess_batch *batch, tess_error *error) TESS_MUST_CHECK;
/* The workers may fill its memory again. Copies from it must be complete. */
void tess_data_release(tess_data_queue *queue, const tess_batch *batch);
/* Seconds that take() has waited so far: the time that a device was kept idle. */
double tess_data_waited(const tess_data_queue *queue);
/* Ends the workers, also in the middle of an image. */
void tess_data_close(tess_data_queue *queue);

#endif
