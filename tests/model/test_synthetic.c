/* test_synthetic.c: networks with random weights are recognised by their architecture, have the published number of
 * parameters, and give values that fp16 can hold; weights read in pieces equal the whole, and seeds differ. */
#define _POSIX_C_SOURCE 200809L
#include "model/model.h"

#include "counter.h"
#include "support.h"

static tess_device *device;

/* The largest value anywhere is not seen, but the residual paths carry the sizes of all stages to the end. */
static void check_runs(const tess_model_net *model, tess_weights *weights, const char *name)
{
    enum { SIDE = 16 };
    static float image[SIDE * SIDE * 4], result[SIDE * SIDE * 4];
    ready r;
    tess_error error = {{0}};
    tess_rng_uniform((tess_rng_key){5, 0, 0}, 0, SIDE * SIDE * 4, image);
    tess_status status =
        ready_make(model->net, device, TESS_F32, weights, (tess_plan_shape){1, SIDE, SIDE}, &r, &error);
    CHECK_MSG(status == TESS_OK, "%s: %s", name, error.text);
    if (status == TESS_OK) {
        ready_run(&r, image, result);
        double squares = 0;
        const int64_t count = SIDE * SIDE * model->channels;
        for (int64_t i = 0; i < count; i++)
            squares += (double)result[i] * result[i];
        double size = sqrt(squares / (double)count);
        CHECK_MSG(size > 0.05 && size < 20, "%s: results of size %g", name, size);
    }
    ready_clear(&r);
}

static void check_network(const char *name, const char *architecture, int64_t channels, int64_t parameters)
{
    char path[64];
    tess_weights *weights = NULL;
    tess_model_net model;
    tess_error error = {{0}};
    CHECK_MSG(tess_model_find(name, path, sizeof path, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_model_open(path, &weights, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_model_recognise(weights, &model, &error) == TESS_OK, "%s", error.text);
    CHECK(strcmp(model.architecture, architecture) == 0 && model.channels == channels);
    CHECK_MSG(model.parameters == parameters, "%s: %lld parameters", name, (long long)model.parameters);
    check_runs(&model, weights, name);
    tess_model_clear(&model);
    tess_weights_close(weights);
}

static void check_values(void)
{
    tess_weights *first = NULL, *second = NULL;
    float whole[1000], piece[300];
    CHECK(tess_model_open("random:dncnn", &first, NULL) == TESS_OK);
    CHECK(tess_model_open("random:dncnn:7", &second, NULL) == TESS_OK);
    const tess_weight *kernel = tess_weights_find(first, "conv_list.3.weight");
    CHECK(tess_weights_read(first, kernel, 0, 1000, whole, NULL) == TESS_OK);
    CHECK(tess_weights_read(first, kernel, 501, 300, piece, NULL) == TESS_OK);
    CHECK(memcmp(whole + 501, piece, sizeof piece) == 0);
    CHECK(tess_weights_read(second, tess_weights_find(second, "conv_list.3.weight"), 501, 300, piece, NULL) ==
          TESS_OK);
    CHECK(memcmp(whole + 501, piece, sizeof piece) != 0);
    CHECK(tess_weights_read(first, kernel, kernel->elements - 1, 2, piece, NULL) != TESS_OK);
    tess_weights_close(first);
    tess_weights_close(second);
}

static void check_refused(const char *path)
{
    tess_weights *weights = NULL;
    tess_error error = {{0}};
    CHECK(tess_model_open(path, &weights, &error) == TESS_BAD_OPTION && !weights);
    CHECK_MSG(strstr(error.text, "random:drunet"), "%s", error.text);
}

int main(void)
{
    tess_device_options options = {.memory = &test_counter};
    tess_error error = {{0}};
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    check_network("random:drunet", "drunet", 3, 32640960);
    check_network("random:drunet-gray", "drunet", 1, 32638656);
    /* 8,564,163 parameters, and the 6,528 running means and variances that batch norm keeps besides. */
    check_network("random:unet", "unet", 3, 8564163 + 6528);
    check_network("random:dncnn", "dncnn", 3, 668227);
    check_values();
    check_refused("random:");
    check_refused("random:drunet2");
    check_refused("random:drunet:x");
    check_refused("random:drunet:-1");
    tess_registry_close(device);
    return check_end();
}
