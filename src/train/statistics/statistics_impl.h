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
};

static inline bool tess_tap_of_scores(const tess_tap *tap)
{
    return tap->needs & (TESS_NEED_SCORES | TESS_NEED_SCORE_ORDER);
}

/* Sets the parameters of a node from what its tap gathered. */
tess_status tess_statistics_fit_node(tess_statistics *s, int node, tess_error *error) TESS_MUST_CHECK;
/* Makes centre and factor of the score node from its parameters, and gives them to the stage; rows of the factor. */
tess_status tess_statistics_make_factor(tess_statistics *s, tess_error *error) TESS_MUST_CHECK;
int tess_statistics_factor_rows(const tess_statistics *s);
/* Fits the nodes of one image that are at or before `node`. */
tess_status tess_statistics_fit_image(tess_statistics *s, const tess_pixel_set *set, int64_t image, int node,
                                      tess_error *error) TESS_MUST_CHECK;
/* As tess_statistics_score, without the logit. */
tess_status tess_statistics_raw_scores(tess_statistics *s, const tess_pixel_set *set, int64_t image,
                                       tess_score_sink sink, void *user, tess_error *error) TESS_MUST_CHECK;

#endif
