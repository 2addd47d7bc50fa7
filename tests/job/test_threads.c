/* Two contexts in two threads are independent: each denoises its own images with its own model at the same time, and
 * both give the results that they give alone. `make check-thread` runs this under the thread sanitizer. */
#define _GNU_SOURCE
#include <pthread.h>

#include "library_images.h"

enum { H = 40, W = 56, RUNS = 3 };

typedef struct work {
    const char *model;
    int64_t channels;
    uint32_t seed;
    int64_t tile;
    float out[H * W * 3];
    char error[256];
} work;

static void *denoise(void *arg)
{
    work *w = arg;
    handles h = open_handles(w->model, 2);
    static const double sigmas[RUNS] = {0.05, 0.1, 0.2};
    float *in = malloc(sizeof w->out);
    draw(in, H, W, w->channels, w->seed);
    tess_denoiser_settings s;
    tess_denoiser_settings_init(&s);
    s.height = H;
    s.width = W;
    s.channels = w->channels;
    s.tile_height = s.tile_width = w->tile;
    tess_denoiser *plan = NULL;
    tess_status status = tess_denoiser_plan(h.model, &s, &plan);
    tess_image image, result;
    tess_image_init(&image, in, TESS_ELEMENT_F32, H, W, w->channels);
    tess_image_init(&result, w->out, TESS_ELEMENT_F32, H, W, w->channels);
    for (int i = 0; i < RUNS && status == TESS_OK; i++) {
        status = tess_denoiser_run(plan, &image, &result, sigmas[i], NULL);
        memcpy(in, w->out, sizeof w->out);
    }
    if (status == TESS_OK) { /* each has its own error text */
        s.channels = 7 * w->channels + 1;
        s.height = -(int64_t)w->seed;
        tess_denoiser *none = NULL;
        if (tess_denoiser_plan(h.model, &s, &none) == TESS_BAD_OPTION)
            snprintf(w->error, sizeof w->error, "%s", tess_context_error(h.context));
    } else {
        snprintf(w->error, sizeof w->error, "%s", tess_context_error(h.context));
    }
    tess_denoiser_release(plan);
    free(in);
    close_handles(&h);
    return NULL;
}

int main(void)
{
    static work alone[2] = {{"drunet-color-small", 3, 11, 32, {0}, ""},
                            {"drunet-gray-small", 1, 12, 0, {0}, ""}},
                together[2];
    memcpy(together, alone, sizeof alone);
    for (int i = 0; i < 2; i++)
        denoise(&alone[i]);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, denoise, &together[i]) != 0)
            abort();
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_MSG(memcmp(alone[i].out, together[i].out, sizeof alone[i].out) == 0, "thread %d", i);
        CHECK_MSG(strcmp(alone[i].error, together[i].error) == 0, "%s", together[i].error);
        CHECK(strstr(together[i].error, i == 0 ? "-11" : "-12") != NULL);
    }
    return check_end();
}
