/* statistics_impl.h: shared by statistics*.c. */
#ifndef TESS_TRAIN_STATISTICS_STATISTICS_IMPL_H
#define TESS_TRAIN_STATISTICS_STATISTICS_IMPL_H

#include "train/statistics/order.h"
#include "train/statistics/statistics.h"

/* Memory of the host, in one block: pointers that one function places. */
typedef struct tess_statistics_buffers {
    double *moments[TESS_TAPS]; /* of each tap; of scores too */
    double *ranges[TESS_TAPS];  /* least, then largest of each channel */
    void *orders[TESS_TAPS];
    double *path[TESS_TAPS]; /* matrices of the path to each tap */
    double *score_path;
    double *round; /* of ranks: the moments of the own block, then those of all ranks */
    double *mapped, *block, *a, *b, *square, *values, *work;
    float *centre, *factor;
} tess_statistics_buffers;

struct tess_statistics {
    tess_pixel_stage stage;
    tess_spectral_state *state;
    const tess_spectral_plan *plan;
    tess_block host, device;
    tess_statistics_buffers at;
    double *gathered[TESS_TAPS]; /* moments of each tap, in the device's memory */
    double *streamed;            /* those of RX over a stream */
    tess_order order[TESS_TAPS];
    tess_path paths[TESS_TAPS], score_path;
    bool trimmed;      /* the score node is fitted from its second tap */
    bool factor_known; /* centre and factor are of the parameters of now */
    int rank;
    int64_t pixels;
    double solve_seconds, solves;
    tess_dist *dist; /* NULL: alone */
    bool own;        /* this rank works on an image of its own */
    tess_dist_exchange *exchange;
    tess_block received; /* on rank 0: scores of another rank's block */
};

/* The taps that a pass (or reading) has. */
typedef struct tess_statistics_pass {
    tess_node_scope scope;
    int number;
    int count, tap[TESS_PIPELINE_NODES];
    int scores; /* the tap of scores; -1: none */
} tess_statistics_pass;

/* Scores of some images, as logits if `logits`: scale * (score - bias). */
typedef struct tess_score_task {
    const tess_pixel_set *set;
    int64_t image, end;
    bool logits;
    double scale, bias;
    tess_score_sink sink;
    void *user;
} tess_score_task;

static inline bool tess_tap_of_scores(const tess_tap *tap)
{
    return tap->needs & (TESS_NEED_SCORES | TESS_NEED_SCORE_ORDER);
}

/* Whether its moments have products of channels. */
static inline bool tess_tap_covariance(const tess_tap *tap)
{
    return tess_tap_of_scores(tap) || (tap->needs & TESS_NEED_COVARIANCE);
}

/* statistics_gather.c. Tap t gathers from nothing. */
void tess_statistics_clear_tap(tess_statistics *s, int t);
/* Gathers images [image, end) of the set at the taps of the pass. Collective, if ranks share the work. */
tess_status tess_statistics_gather(tess_statistics *s, const tess_pixel_set *set, int64_t image, int64_t end,
                                   const tess_statistics_pass *p, tess_error *error) TESS_MUST_CHECK;
/* The sink of scores that gathers at their tap; `user` is the tess_statistics. */
tess_status tess_statistics_add_scores(void *user, int64_t image, int64_t first_row, int64_t rows,
                                       const float *scores, tess_error *error) TESS_MUST_CHECK;

/* Sets the parameters of a node from what its tap gathered. */
tess_status tess_statistics_fit_node(tess_statistics *s, int node, tess_error *error) TESS_MUST_CHECK;
/* Makes centre and factor of the score node from its parameters, and gives them to the stage; rows of the factor. */
tess_status tess_statistics_make_factor(tess_statistics *s, tess_error *error) TESS_MUST_CHECK;
int tess_statistics_factor_rows(const tess_statistics *s);
/* Fits the nodes of one image that are at or before `node`. */
tess_status tess_statistics_fit_image(tess_statistics *s, const tess_pixel_set *set, int64_t image, int node,
                                      tess_error *error) TESS_MUST_CHECK;
/* The same for images [image, end), of which each rank has one if there are several. */
tess_status tess_statistics_fit_images(tess_statistics *s, const tess_pixel_set *set, int64_t image,
                                       int64_t end, int node, tess_error *error) TESS_MUST_CHECK;
/* Collective, if ranks share the work: only rank 0's sink gets the scores, all of them. */
tess_status tess_statistics_run_scores(tess_statistics *s, const tess_score_task *task,
                                       tess_error *error) TESS_MUST_CHECK;

/* statistics_ranks.c. The number of ranks that share what is done now, and, collective, their status. */
int tess_statistics_ranks(const tess_statistics *s);
tess_status tess_statistics_agree(tess_statistics *s, tess_status mine, tess_error *error) TESS_MUST_CHECK;
/* This rank's blocks of images [image, end). */
tess_pixel_walk tess_statistics_walk(const tess_statistics *s, const tess_pixel_set *set, int64_t image,
                                     int64_t end);
/* How many of the images [image, end) are worked on at the same time: one, by all ranks, or one by each rank, if each of them
 * is one block. */
int64_t tess_statistics_together(const tess_statistics *s, const tess_pixel_set *set, int64_t image,
                                 int64_t end);
/* The rank's own image among those; -1: none. */
int64_t tess_statistics_own_image(const tess_statistics *s, int64_t image, int64_t end);
/* Rounds of the walk that has begun: in each, every rank has a block or none. */
int64_t tess_statistics_rounds(const tess_statistics *s);
/* Before a round, tap t gathers from nothing; after it, collective, what all ranks have gathered is merged into at.moments[t]. */
void tess_statistics_round_begin(tess_statistics *s, int t, bool covariance);
tess_status tess_statistics_round_end(tess_statistics *s, int t, bool covariance, int64_t round,
                                      tess_status mine, tess_error *error) TESS_MUST_CHECK;
/* Collective: all ranks get what the pass gathered besides moments. */
tess_status tess_statistics_share_pass(tess_statistics *s, const tess_statistics_pass *p,
                                       tess_error *error) TESS_MUST_CHECK;
/* Collective: all ranks get the parameters of the rank that may have had the last image, so that those that are fitted for each
 * image are what one rank would leave. */
tess_status tess_statistics_share_state(tess_statistics *s, const tess_pixel_set *set,
                                        tess_error *error) TESS_MUST_CHECK;
/* Collective: computes the next own block of the walk that has begun, if there is one, and brings the scores of all to rank 0's sink
 * in order. */
typedef tess_status (*tess_score_block_fn)(tess_statistics *s, const tess_score_task *task,
                                           const float **scores, tess_error *error);
tess_status tess_statistics_score_shared(tess_statistics *s, const tess_score_task *task,
                                         tess_score_block_fn compute, tess_status begun,
                                         tess_error *error) TESS_MUST_CHECK;

#endif
