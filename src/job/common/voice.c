#include "job/common/voice.h"

#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

/* The own progress of each rank is asked for a stop everywhere; rank 0 shows the sum. */
static bool on_progress(void *user, int64_t done, int64_t total, double seconds)
{
    const tess_voice *voice = user;
    tess_dist_report(voice->dist, done);
    if (voice->dist->rank == 0)
        done = tess_min_i64(done + tess_dist_reported(voice->dist), total);
    return voice->original.progress(voice->original.progress_user, done, total, seconds);
}

static void on_file(void *user, int64_t index, int64_t count, const char *name)
{
    const tess_voice *voice = user;
    if (voice->dist->rank == 0)
        voice->original.file(voice->original.progress_user, index, count, name);
}

/* Keeps the note. A note that there is no memory for is lost. */
static void keep(tess_voice *voice, tess_note_level level, const char *text)
{
    const size_t bytes = strlen(text) + 2;
    if (voice->used + bytes > voice->size) {
        const size_t size = 2 * voice->size + bytes;
        char *grown = tess_small_realloc(voice->text, size, 1);
        if (!grown)
            return;
        voice->text = grown;
        voice->size = size;
    }
    voice->text[voice->used] = (char)level;
    memcpy(voice->text + voice->used + 1, text, bytes - 1);
    voice->used += bytes;
}

static void on_note(void *user, tess_note_level level, const char *text)
{
    tess_voice *voice = user;
    if (voice->dist->rank == 0) {
        voice->original.note(voice->original.progress_user, level, text);
        return;
    }
    pthread_mutex_lock(&voice->mutex);
    if (voice->own)
        keep(voice, level, text);
    pthread_mutex_unlock(&voice->mutex);
}

void tess_voice_begin(tess_voice *voice, tess_dist *dist, tess_common *common)
{
    *voice = (tess_voice){.dist = dist, .original = *common};
    pthread_mutex_init(&voice->mutex, NULL);
    if (dist->size == 1)
        return;
    common->progress = common->progress ? on_progress : NULL;
    common->file = common->file ? on_file : NULL;
    common->note = common->note ? on_note : NULL;
    common->progress_user = voice;
}

void tess_voice_own(tess_voice *voice, bool own)
{
    pthread_mutex_lock(&voice->mutex);
    voice->own = own;
    pthread_mutex_unlock(&voice->mutex);
}

tess_status tess_voice_share(tess_voice *voice, tess_error *error)
{
    void *all = NULL;
    size_t total = 0;
    if (voice->dist->size == 1)
        return TESS_OK;
    TESS_TRY(tess_dist_pool(voice->dist, voice->text, voice->used, &all, &total, error));
    voice->used = 0;
    const char *text = all;
    for (size_t at = 0; at < total && voice->dist->rank == 0; at += strlen(text + at + 1) + 2)
        voice->original.note(voice->original.progress_user, (tess_note_level)text[at], text + at + 1);
    tess_small_free(all);
    return TESS_OK;
}

void tess_voice_end(tess_voice *voice)
{
    pthread_mutex_destroy(&voice->mutex);
    tess_small_free(voice->text);
}
