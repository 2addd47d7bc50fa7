#include "job/common/rank_speeds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/process.h"
#include "plan/ranks/speeds.h"

/* Seconds. Less than LEAST does not tell slow cores from others. */
static const double SHARE = 0.03, LEAST = 0.045, MOST = 0.3;

typedef enum way { EQUAL, MEASURE, GIVEN } way;

static tess_status read_list(const char *text, double *speeds, int count, tess_error *error)
{
    char *end = NULL;
    for (int r = 0; r < count; r++) {
        speeds[r] = strtod(text, &end);
        if (end == text || !(speeds[r] > 0) || isinf(speeds[r]) || *end != (r + 1 < count ? ',' : '\0'))
            return tess_fail(error, TESS_BAD_OPTION,
                             "TESSERA_SPEEDS: must be `equal`, `measure`, or %d positive numbers with commas "
                             "between them, "
                             "one for each rank",
                             count);
        text = end + 1;
    }
    return TESS_OK;
}

/* The way that TESSERA_SPEEDS asks for; `otherwise` if it asks for none. */
static way asked(const char *text, way otherwise)
{
    return !text || !text[0]              ? otherwise
           : strcmp(text, "equal") == 0   ? EQUAL
           : strcmp(text, "measure") == 0 ? MEASURE
                                          : GIVEN;
}

bool tess_rank_speeds_given(void)
{
    return asked(getenv("TESSERA_SPEEDS"), EQUAL) == GIVEN;
}

static tess_status choose(const tess_engine *engine, double seconds, way *chosen, double *speeds,
                          tess_error *error)
{
    const char *wanted = getenv("TESSERA_SPEEDS");
    *chosen = asked(wanted, SHARE * seconds >= LEAST ? MEASURE : EQUAL);
    return *chosen == GIVEN ? read_list(wanted, speeds, engine->dist->size, error) : TESS_OK;
}

static tess_status measure(tess_engine *engine, const tess_rank_work *w, double *speeds, tess_error *error)
{
    const tess_net *net = w->model->model.net;
    const tess_speeds_work work = {.bound = w->model->bound,
                                   .rows = tess_round_up(w->rows, tess_net_grid(net, TESS_HEIGHT)),
                                   .width = tess_round_up(w->width, tess_net_grid(net, TESS_WIDTH)),
                                   .ranks = (int)w->ranks,
                                   .seconds = fmin(fmax(SHARE * w->seconds, LEAST), MOST),
                                   .bytes = (size_t)w->limit};
    const tess_status status = tess_speeds_measure(engine->dist, engine->rates, &work, speeds, error);
    /* What this took is free again, and not of the job. */
    tess_memory_reset_peak(engine->memory);
    tess_process_reset_peak();
    return status;
}

tess_status tess_rank_speeds(tess_engine *engine, const tess_rank_work *work, double **out, tess_error *error)
{
    tess_dist *dist = engine->dist;
    way chosen = EQUAL;
    *out = NULL;
    if (engine->separate_memory || work->ranks < 2)
        return TESS_OK;
    const size_t bytes = (size_t)dist->size * sizeof(double);
    double *speeds = tess_small_alloc(1, bytes);
    tess_status status = speeds ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    if (status == TESS_OK && dist->rank == 0)
        status = choose(engine, work->seconds, &chosen, speeds, error);
    status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK)
        status = tess_dist_broadcast(dist, 0, &chosen, sizeof chosen, error);
    if (status == TESS_OK && chosen == MEASURE)
        status = measure(engine, work, speeds, error);
    if (status == TESS_OK && chosen != EQUAL)
        status = tess_dist_broadcast(dist, 0, speeds, bytes, error);
    if (status == TESS_OK && chosen != EQUAL)
        *out = speeds;
    else
        tess_small_free(speeds);
    return status;
}
