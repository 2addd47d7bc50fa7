#include "job/common/context.h"

#include "base/mem.h"
#include "base/temp.h"
#include "base/trace.h"

const char *tess_version(void)
{
    return TESSERA_VERSION;
}

tess_status tess_context_create(tess_context **out)
{
    if (!out)
        return TESS_BAD_OPTION;
    *out = tess_small_alloc(1, sizeof **out);
    if (!*out)
        return TESS_NO_MEMORY;
    tess_dist_init_solo(&(*out)->alone);
    (*out)->dist = &(*out)->alone;
    return TESS_OK;
}

void tess_context_destroy(tess_context *context)
{
    if (context && context->dist != &context->alone)
        tess_dist_close(context->dist);
    if (context)
        tess_trace_destroy(context->memory.trace);
    tess_small_free(context);
}

static void on_lost(void *user, const char *text)
{
    const tess_context *context = user;
    /* The report comes first: a job whose temporary files are gone fails, and its program should know why. */
    if (context->lost)
        context->lost(text);
    tess_temp_remove_all();
}

tess_status tess_context_join(tess_context *context, const char *const *words, int count, tess_lost_fn lost)
{
    const tess_dist_settings settings = {
        .version = TESSERA_VERSION, .words = words, .word_count = count, .lost = on_lost, .user = context};
    if (context->dist != &context->alone)
        return tess_fail(&context->error, TESS_BAD_OPTION, "this context has joined its ranks already");
    context->lost = lost;
    tess_dist *joined = NULL;
    TESS_TRY(tess_dist_open(&settings, &joined, &context->rank, &context->error));
    context->dist = joined;
    return TESS_OK;
}

int tess_context_rank(const tess_context *context)
{
    return context->rank;
}

int tess_context_ranks(const tess_context *context)
{
    return context->dist->size;
}

tess_status tess_context_agree(tess_context *context, tess_status mine, const char *message)
{
    if (mine != TESS_OK)
        (void)tess_fail(&context->error, mine, "%s", message ? message : "");
    return tess_dist_agree(context->dist, mine, &context->error);
}

void *tess_context_job(tess_context *context, size_t bytes, tess_status *status)
{
    void *job = tess_small_alloc(1, bytes);
    *status = job ? TESS_OK : tess_fail(&context->error, TESS_NO_MEMORY, "no memory for a job");
    *status = tess_dist_agree(context->dist, *status, &context->error);
    if (*status == TESS_OK)
        return job;
    tess_small_free(job);
    return NULL;
}

tess_status tess_context_alone(tess_context *context, const char *verb)
{
    if (context->dist->size == 1)
        return TESS_OK;
    return tess_fail(&context->error, TESS_UNSUPPORTED,
                     "%s cannot share its work among %d ranks yet; start it once, without mpirun or srun",
                     verb, context->dist->size);
}

const char *tess_context_error(const tess_context *context)
{
    return context ? context->error.text : "there is no context";
}

void tess_emergency_cleanup(void)
{
    tess_temp_remove_all();
}

void tess_record_free(char *record)
{
    tess_small_free(record);
}

void tess_common_init(tess_common *common)
{
    *common = (tess_common){.device = "auto", .precision = "auto"};
}

void tess_denoise_settings_init(tess_denoise_settings *settings)
{
    *settings = (tess_denoise_settings){.sigma = -1, .strength = 1, .halo = TESS_HALO_AUTO};
    tess_common_init(&settings->common);
}
