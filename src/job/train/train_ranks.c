/* What ranks that train together do at the same time: add gradients and losses, and keep one state. Alone, all of these do
 * nothing. */
#include "job/train/train_job.h"
#include "train/checksum.h"

enum { PIECE = 1 << 14 }; /* values that move at a time */

bool tess_train_leads(const tess_train_job *job)
{
    return job->dist->rank == 0;
}

tess_status tess_train_follow(tess_train_job *job, tess_status lead, tess_error *error)
{
    struct {
        int64_t status;
        tess_error error;
    } said = {lead, {""}};
    if (job->dist->size == 1)
        return lead;
    if (lead != TESS_OK && tess_train_leads(job))
        said.error = *error;
    TESS_TRY(tess_dist_broadcast(job->dist, 0, &said, sizeof said, error));
    return said.status == TESS_OK ? TESS_OK
                                  : tess_fail(error, (tess_status)said.status, "%s", said.error.text);
}

static void set_bytes(tess_train_job *job, const tess_parameters *parameters)
{
    const int ranks = job->dist->size;
    const size_t running = (size_t)parameters->running * sizeof(float);
    job->sum_bytes = tess_rank_sum_bytes(parameters->running, ranks, false) +
                     (ranks > 1 && running ? tess_block_granted(running) : 0);
    if (job->links.by_nccl)
        job->card_sum_bytes = tess_card_sum_bytes(job->engine.device, parameters->trained, ranks);
    else
        job->sum_bytes += tess_rank_sum_bytes(parameters->trained, ranks, job->engine.separate_memory);
    if (!job->settings->resume && tess_train_leads(job))
        job->values_bytes = tess_block_granted((size_t)parameters->trained * sizeof(float)) +
                            tess_block_granted((size_t)(parameters->running + 1) * sizeof(float));
}

tess_status tess_train_link(tess_train_job *job, tess_error *error)
{
    tess_parameters parameters;
    if (job->dist->size > 1 && job->engine.separate_memory)
        TESS_TRY(
            tess_card_links_open(&job->links, &job->engine, &job->settings->common, !job->plans_only, error));
    TESS_TRY(tess_dist_agree(job->dist, tess_parameters_list(job->model.net, &parameters, error), error));
    set_bytes(job, &parameters);
    tess_parameters_clear(&parameters);
    return TESS_OK;
}

/* The others' cards wait for messages of this one, where nothing tells them. */
static void lose(const tess_train_job *job, tess_status status, const tess_error *error)
{
    if (job->card_sum && status == TESS_DEVICE_LOST)
        tess_dist_lose(job->dist, error->text);
}

tess_status tess_train_open_sums(tess_train_job *job, tess_error *error)
{
    const tess_parameters *parameters = tess_training_parameters(job->training);
    float *gradients = tess_training_gradients(job->training);
    if (job->dist->size == 1)
        return TESS_OK;
    TESS_TRY(job->links.nccl
                 ? tess_card_sum_open(job->dist, job->links.nccl, job->engine.device, gradients,
                                      parameters->trained, &job->card_sum, error)
                 : tess_rank_sum_open(job->dist, job->engine.device, gradients, parameters->trained,
                                      job->engine.separate_memory, &job->sum, error));
    if (!parameters->running)
        return TESS_OK;
    TESS_TRY(job->engine.device->memory->host_alloc(job->engine.device, &job->running,
                                                    (size_t)parameters->running * sizeof(float), error));
    return tess_rank_sum_open(job->dist, job->engine.device, job->running.data, parameters->running, false,
                              &job->running_sum, error);
}

void tess_train_close_sums(tess_train_job *job)
{
    tess_rank_sum_close(job->sum);
    tess_rank_sum_close(job->running_sum);
    tess_card_sum_close(job->card_sum);
    job->sum = job->running_sum = NULL;
    job->card_sum = NULL;
    if (job->running.data)
        job->engine.device->memory->host_free(job->engine.device, &job->running);
}

tess_status tess_train_last_pass(tess_train_job *job, int index, tess_error *error)
{
    if (!job->sum) {
        tess_training_pass(job->training, index, NULL);
        const tess_status status = job->card_sum ? tess_card_sum_run(job->card_sum, NULL, error) : TESS_OK;
        lose(job, status, error);
        return status;
    }
    tess_training_last_pass(job->training, index, tess_rank_sum_ready, job->sum, NULL);
    return tess_rank_sum_end(job->sum, error);
}

/* The mean over the ranks, by their crops: each has taken the statistics of its own crops into them. */
static tess_status share_running(tess_train_job *job, tess_error *error)
{
    const int64_t count = tess_training_parameters(job->training)->running;
    const double share = (double)job->part.count / (double)job->phase->batch;
    float *values = job->running.data;
    TESS_TRY(tess_training_get(job->training, TESS_STATE_RUNNING, 0, count, values, error));
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(share * (double)values[i]);
    TESS_TRY(tess_rank_sum_end(job->running_sum, error));
    return tess_training_set(job->training, TESS_STATE_RUNNING, 0, count, values, error);
}

tess_status tess_train_share_result(tess_train_job *job, tess_status mine, tess_error *error)
{
    tess_dist *dist = job->dist;
    if (dist->size == 1)
        return mine;
    lose(job, mine, error);
    TESS_TRY(tess_dist_agree(dist, mine, error));
    const double loss = job->state.loss;
    TESS_TRY(tess_dist_gather(dist, &loss, sizeof loss, job->losses, error));
    job->state.loss = 0;
    for (int r = 0; r < dist->size; r++)
        job->state.loss += job->losses[r];
    return job->running_sum ? share_running(job, error) : TESS_OK;
}

static tess_status share_block(tess_train_job *job, tess_training_state state, float *values,
                               tess_error *error)
{
    const int64_t count = tess_training_state_size(job->training, state);
    for (int64_t at = 0; at < count; at += PIECE) {
        const int64_t part = count - at < PIECE ? count - at : PIECE;
        if (tess_train_leads(job))
            TESS_TRY(tess_training_get(job->training, state, at, part, values, error));
        TESS_TRY(tess_dist_broadcast(job->dist, 0, values, (size_t)part * sizeof *values, error));
        if (!tess_train_leads(job))
            TESS_TRY(tess_training_set(job->training, state, at, part, values, error));
    }
    return TESS_OK;
}

tess_status tess_train_share_state(tess_train_job *job, tess_error *error)
{
    if (job->dist->size == 1)
        return TESS_OK;
    float *values = tess_small_alloc(PIECE, sizeof *values);
    tess_status status = tess_dist_agree(
        job->dist, values ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks"), error);
    if (status == TESS_OK)
        status = tess_dist_broadcast(job->dist, 0, &job->state, sizeof job->state, error);
    for (int i = 0; i < TESS_STATES && status == TESS_OK; i++)
        status = share_block(job, (tess_training_state)i, values, error);
    tess_small_free(values);
    return status;
}

static tess_status sum_of_parameters(tess_train_job *job, uint64_t *out, tess_error *error)
{
    const int64_t count = tess_training_state_size(job->training, TESS_STATE_PARAMETERS);
    float *values = tess_small_alloc(PIECE, sizeof *values);
    tess_status status = values ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    tess_xxh64 sum;
    tess_xxh64_begin(&sum);
    for (int64_t at = 0; at < count && status == TESS_OK; at += PIECE) {
        const int64_t part = count - at < PIECE ? count - at : PIECE;
        status = tess_training_get(job->training, TESS_STATE_PARAMETERS, at, part, values, error);
        tess_xxh64_add(&sum, values, (size_t)part * sizeof *values);
    }
    *out = tess_xxh64_end(&sum);
    tess_small_free(values);
    return status;
}

tess_status tess_train_compare(tess_train_job *job, tess_error *error)
{
    tess_dist *dist = job->dist;
    uint64_t mine = 0, first = 0;
    if (dist->size == 1)
        return TESS_OK;
    tess_status status = sum_of_parameters(job, &mine, error);
    first = mine;
    TESS_TRY(tess_dist_agree(dist, status, error));
    TESS_TRY(tess_dist_broadcast(dist, 0, &first, sizeof first, error));
    if (mine != first)
        status =
            tess_fail(error, TESS_DEVICE_LOST,
                      "on host %s the parameters after step %lld are others than those of rank 0 on host "
                      "%s; use hosts whose processors or cards are of one kind",
                      dist->places[dist->rank].host, (long long)job->state.step, dist->places[0].host);
    return tess_dist_agree(dist, status, error);
}
