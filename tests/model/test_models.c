/* test_models.c: weight files of every architecture and spelling are recognised, with their channels and
 * sizes, load, and run; files with a tensor missing or misshapen are refused with a message that names it. */
#define _POSIX_C_SOURCE 200809L
#include "model/model.h"

#include <unistd.h>

#include "counter.h"
#include "support.h"

static char path[512];
static tess_device *device;

typedef struct expectation {
    const char *architecture;
    int64_t channels, grid;
    bool noise_map;
} expectation;

static tess_weights *open_list(tensor_list *list, int64_t *elements)
{
    tess_weights *weights = NULL;
    tess_error error = {{0}};
    *elements = save_tensors(list, path);
    CHECK_MSG(tess_weights_open(path, &weights, &error) == TESS_OK, "%s", error.text);
    return weights;
}

/* Recognised as expected, and it runs: finite, not constant, and the same twice. */
static void check_known(tensor_list *list, const expectation *expected, const char *what)
{
    int64_t elements;
    tess_weights *weights = open_list(list, &elements);
    tess_model_net model;
    tess_error error = {{0}};
    tess_status status = tess_model_recognise(weights, &model, &error);
    CHECK_MSG(status == TESS_OK, "%s: %s", what, error.text);
    if (status == TESS_OK) {
        CHECK_MSG(strcmp(model.architecture, expected->architecture) == 0, "%s: %s", what,
                  model.architecture);
        CHECK_MSG(model.channels == expected->channels && model.noise_map == expected->noise_map, "%s", what);
        CHECK_MSG(model.parameters == elements, "%s: %lld parameters, expected %lld", what,
                  (long long)model.parameters, (long long)elements);
        CHECK_MSG(tess_net_grid(model.net, TESS_HEIGHT) == expected->grid, "%s: grid %lld", what,
                  (long long)tess_net_grid(model.net, TESS_HEIGHT));
        CHECK(tess_net_value(model.net, tess_net_input_value(model.net, 0))->channels ==
              expected->channels + expected->noise_map);
        CHECK(tess_net_value(model.net, tess_net_output_value(model.net, 0))->channels == expected->channels);
        CHECK(model.halo > 0 && !model.halo_seen);
        enum { SIDE = 16 };
        float image[SIDE * SIDE * 5], results[2][SIDE * SIDE * 4] = {{0}};
        tess_rng_uniform((tess_rng_key){41, 0, 0}, 0, SIDE * SIDE * 5, image);
        ready r;
        status =
            ready_make(model.net, device, TESS_F32, weights, (tess_plan_shape){1, SIDE, SIDE}, &r, &error);
        CHECK_MSG(status == TESS_OK, "%s: %s", what, error.text);
        if (status == TESS_OK) {
            for (int i = 0; i < 2; i++)
                ready_run(&r, image, results[i]);
            int odd = 0;
            for (int64_t i = 0; i < SIDE * SIDE * model.channels; i++)
                odd += !isfinite(results[0][i]);
            CHECK_MSG(odd == 0 && results[0][0] != results[0][100], "%s: %d values are not finite", what,
                      odd);
            CHECK(memcmp(results[0], results[1], sizeof results[0]) == 0);
        }
        ready_clear(&r);
    }
    tess_model_clear(&model);
    tess_weights_close(weights);
}

/* Refused when recognised, or at the latest when loaded; the message has `part` in it. */
static void check_broken(tensor_list *list, const char *part, const char *what)
{
    int64_t elements;
    tess_weights *weights = open_list(list, &elements);
    tess_model_net model;
    ready r = {0};
    tess_error error = {{0}};
    tess_status status = tess_model_recognise(weights, &model, &error);
    if (status == TESS_OK)
        status = ready_make(model.net, device, TESS_F32, weights, (tess_plan_shape){1, 16, 16}, &r, &error);
    else
        CHECK(!model.net);
    CHECK_MSG(status == TESS_BAD_INPUT, "%s: status %d, '%s'", what, status, error.text);
    CHECK_MSG(strstr(error.text, part) && strncmp(error.text, path, strlen(path)) == 0, "%s: '%s' in '%s'",
              what, part, error.text);
    ready_clear(&r);
    tess_model_clear(&model);
    tess_weights_close(weights);
}

static void test_drunet(void)
{
    static const char *const prefixes[] = {"", "module.", "model.", "net.", "denoiser."};
    for (int i = 0; i < 16; i++) {
        drunet_shape shape = {prefixes[i % 5], i & 1 ? 3 : 1, {16, 32, 48, 64}, i & 2 ? 2 : 1, i & 4};
        if (i & 8)
            shape.widths[1] = 24;
        tensor_list list = {0};
        char what[80];
        snprintf(what, sizeof what, "drunet %d, prefix '%s'", i, shape.prefix);
        add_drunet(&list, &shape);
        check_known(&list, &(expectation){"drunet", shape.channels, 8, shape.noise_map}, what);
    }
}

static void add_double_conv(tensor_list *list, const char *sequence, int64_t in, int64_t out, int first,
                            int count, bool norm)
{
    for (int i = 0, place = first; i < count; i++, place += norm ? 3 : 2) {
        char layer[128];
        snprintf(layer, sizeof layer, "%s.%d", sequence, place);
        add_conv(list, layer, out, i ? out : in, 3, true);
        snprintf(layer, sizeof layer, "%s.%d", sequence, place + 1);
        if (norm)
            add_norm(list, layer, out);
    }
}

static void add_unet(tensor_list *list, const char *prefix, int64_t channels, int scales, bool norm)
{
    char name[96];
    const int64_t width = 6;
    for (int k = 1; k <= scales; k++) {
        snprintf(name, sizeof name, "%sConv%d", prefix, k);
        add_double_conv(list, name, k == 1 ? channels : width << (k - 2), width << (k - 1), 0, 2, norm);
    }
    for (int k = scales; k >= 2; k--) {
        snprintf(name, sizeof name, "%sUp%d", prefix, k);
        add_double_conv(list, name, width << (k - 1), width << (k - 2), 1, 1, norm);
        snprintf(name, sizeof name, "%sUp_conv%d", prefix, k);
        add_double_conv(list, name, width << (k - 1), width << (k - 2), 0, 2, norm);
    }
    snprintf(name, sizeof name, "%sConv_1x1", prefix);
    add_conv(list, name, channels, width, 1, true);
}

static void test_unet(void)
{
    for (int scales = 2; scales <= 4; scales++)
        for (int norm = 0; norm < 2; norm++)
            for (int i = 0; i < 2; i++) {
                tensor_list list = {0};
                char what[80];
                snprintf(what, sizeof what, "unet, %d scales, batch norm %d", scales, norm);
                add_unet(&list, i ? "module." : "", i ? 1 : 3, scales, norm);
                check_known(&list, &(expectation){"unet", i ? 1 : 3, (int64_t)1 << (scales - 1), false},
                            what);
            }
}

enum { DEEPINV, KAIR, SAOYAN };

/* Six convolutions, in one of the three spellings. */
static void add_dncnn(tensor_list *list, const char *prefix, int64_t channels, int spelling)
{
    char layer[96];
    for (int i = 0, place = 0; i < 6; i++) {
        bool norm = spelling == SAOYAN && i > 0 && i < 5;
        if (spelling == DEEPINV && (i == 0 || i == 5))
            snprintf(layer, sizeof layer, i ? "%sout_conv" : "%sin_conv", prefix);
        else if (spelling == DEEPINV)
            snprintf(layer, sizeof layer, "%sconv_list.%d", prefix, i - 1);
        else
            snprintf(layer, sizeof layer, spelling == KAIR ? "%smodel.%d" : "%sdncnn.%d", prefix, place);
        add_conv(list, layer, i == 5 ? channels : 9, i ? 9 : channels, 3, spelling != SAOYAN);
        snprintf(layer, sizeof layer, "%sdncnn.%d", prefix, place + 1);
        if (norm)
            add_norm(list, layer, 9);
        place += norm ? 3 : 2;
    }
}

static void test_dncnn(void)
{
    for (int spelling = DEEPINV; spelling <= SAOYAN; spelling++)
        for (int i = 0; i < 4; i++) {
            tensor_list list = {0};
            char what[80];
            snprintf(what, sizeof what, "dncnn, spelling %d, %s", spelling, i & 1 ? "module." : "plain");
            add_dncnn(&list, i & 1 ? "module." : "", i & 2 ? 3 : 1, spelling);
            check_known(&list, &(expectation){"dncnn", i & 2 ? 3 : 1, 1, false}, what);
        }
}

/* Deepinv's model adds what it predicts, the others subtract it: with equal weights the results are on opposite sides
 * of the image. */
static void test_signs(void)
{
    enum { SIDE = 8 };
    float image[SIDE * SIDE], results[2][SIDE * SIDE];
    tess_rng_uniform((tess_rng_key){43, 0, 0}, 0, SIDE * SIDE, image);
    for (int spelling = DEEPINV; spelling <= KAIR; spelling++) { /* the same values: they are made by order */
        tensor_list list = {0};
        int64_t elements;
        tess_model_net model;
        ready r = {0};
        tess_error error = {{0}};
        add_dncnn(&list, "", 1, spelling);
        tess_weights *weights = open_list(&list, &elements);
        CHECK(tess_model_recognise(weights, &model, &error) == TESS_OK);
        CHECK(ready_make(model.net, device, TESS_F32, weights, (tess_plan_shape){1, SIDE, SIDE}, &r,
                         &error) == TESS_OK);
        ready_run(&r, image, results[spelling]);
        ready_clear(&r);
        tess_model_clear(&model);
        tess_weights_close(weights);
    }
    double moved = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        moved = fmax(moved, fabs(results[0][i] - image[i]));
        CHECK_MSG(fabs(results[0][i] + results[1][i] - 2 * image[i]) < 1e-5, "%g and %g around %g",
                  results[0][i], results[1][i], image[i]);
    }
    CHECK(moved > 0.01);
}

typedef struct breakage {
    char model; /* d, u, or 0..2 for DnCNN's spelling */
    const char *tensor;
    int rank; /* 0: left out */
    int64_t dims[5];
    const char *part; /* of the message */
} breakage;

static const breakage breakages[] = {
    {'d', "m_head.weight", 0, {0}, "known are"},
    {'d', "m_tail.weight", 0, {0}, "known are"},
    {'d', "m_down2.0.res.2.weight", 0, {0}, "m_down2.0.res.2.weight"},
    {'d', "m_down2.1.weight", 0, {0}, "m_down2.1.weight"},
    {'d', "m_up2.0.weight", 0, {0}, "m_up2.0.weight"},
    {'d', "m_up1.1.res.2.weight", 0, {0}, "m_up1.1.res.2.weight"},
    {'d', "m_down1.0.res.0.weight", 4, {16, 15, 3, 3}, "m_down1.0.res.0.weight"},
    {'d', "m_down3.1.weight", 4, {60, 48, 2, 2}, "m_body.0.res.0.weight"},
    {'d', "m_up3.0.weight", 4, {64, 48, 3, 3}, "m_up3.0.weight"},
    {'d', "m_up3.0.weight", 4, {63, 48, 2, 2}, "m_up3.0.weight"},
    {'d', "m_tail.weight", 4, {3, 17, 3, 3}, "m_tail.weight"},
    {'d', "m_head.weight", 4, {16, 7, 3, 3}, "m_head"},
    {'d', "m_head.weight", 5, {16, 4, 3, 3, 3}, "2-D kernels"},
    {'d', "m_tail.weight", 5, {3, 16, 1, 3, 3}, "2-D kernels"},
    {'d', "m_up2.1.res.0.weight", 5, {32, 32, 1, 3, 3}, "m_up2"},
    {'d', "m_up2.1.res.0.weight", 0, {0}, "m_up2.1.res"}, /* half a block is not the end of a stage */
    {'d', "m_down1.1.weight", 4, {32, 16, 3, 3}, "m_down1.1.weight"},
    {'d', "m_head.weight", 4, {16, 4, 4, 4}, "m_head"}, /* an even kernel has no middle */
    {'d', "m_up2.1.res.2.weight", 5, {32, 32, 1, 3, 3}, "m_up2.1.res.2.weight"},
    {'d', "m_head.weight", 4, {16, 4, 3, 5}, "known are"},
    {'d', "m_head.weight", 4, {16, 4, 9, 9}, "known are"},
    {'d', "m_head.weight", 2, {16, 36}, "known are"},
    {'u', "Conv1.0.weight", 0, {0}, "known are"},
    {'u', "Conv2.3.weight", 0, {0}, "Conv2.3.weight"},
    {'u', "Conv3.0.weight", 0, {0}, "3."}, /* Up3 is there, so this is no smaller UNet */
    {'u', "Up3.1.weight", 0, {0}, "Up3.1.weight"},
    {'u', "Up_conv3.0.weight", 4, {12, 23, 3, 3}, "Up_conv3.0.weight"},
    {'u', "Conv_1x1.weight", 4, {2, 6, 1, 1}, "Conv_1x1"},
    {'u', "Conv_1x1.weight", 4, {3, 5, 1, 1}, "Conv_1x1.weight"},
    {'u', "Conv1.1.running_var", 0, {0}, "Conv1.1.running_var"},
    {'u', "Conv1.1.weight", 0, {0}, "Conv1.1.weight"},
    {'u', "Conv1.1.running_mean", 1, {5}, "Conv1.1.running_mean"},
    {'u', "Conv2.0.bias", 1, {13}, "Conv2.0.bias"},
    {'u', "Up_conv2.0.weight", 5, {6, 12, 3, 3, 3}, "2-D kernels"},
    {0, "out_conv.weight", 0, {0}, "known are"},
    {0, "out_conv.weight", 4, {2, 9, 3, 3}, "channels"},
    {0, "conv_list.2.weight", 4, {9, 8, 3, 3}, "conv_list.2.weight"},
    {0, "conv_list.2.weight", 0, {0}, "conv_list."}, /* a gap in the chain */
    {0, "in_conv.weight", 5, {9, 3, 3, 3, 3}, "2-D kernels"},
    {1, "model.0.weight", 0, {0}, "known are"},
    {1, "model.4.weight", 0, {0}, "model.4"},
    {1, "model.4.weight", 4, {9, 10, 3, 3}, "model.4.weight"},
    {1, "model.10.weight", 4, {4, 9, 3, 3}, "channels"},
    {1, "model.6.bias", 1, {3}, "model.6.bias"},
    {2, "dncnn.3.running_var", 0, {0}, "dncnn.3.running_var"},
    {2, "dncnn.5.weight", 4, {8, 9, 3, 3}, "dncnn."},
};

static void test_broken(void)
{
    for (size_t i = 0; i < sizeof breakages / sizeof breakages[0]; i++) {
        const breakage *b = &breakages[i];
        tensor_list list = {0};
        char what[120];
        snprintf(what, sizeof what, "%s with rank %d", b->tensor, b->rank);
        *(b->rank ? &list.bent : &list.without) = b->tensor;
        list.bent_rank = b->rank;
        memcpy(list.bent_dims, b->dims, sizeof b->dims);
        if (b->model == 'd')
            add_drunet(&list, &(drunet_shape){"", 3, {16, 32, 48, 64}, 1, true});
        else if (b->model == 'u')
            add_unet(&list, "", 3, 3, true);
        else
            add_dncnn(&list, "", 3, b->model);
        check_broken(&list, b->part, what);
    }
    tensor_list list = {0};
    add_conv(&list, "encoder.layer", 4, 4, 3, true);
    check_broken(&list, "encoder.layer.weight", "unknown names");
    add_conv(&list, "encoder.layer", 4, 4, 3, true);
    check_broken(&list, "drunet (m_head", "unknown names");
    check_broken(&list, "its 0 tensors", "no tensors");
}

/* A residual block must give back the channels it took: otherwise the sum reads beside the smaller one. */
static void test_residual_channels(void)
{
    for (int more = -16; more <= 16; more += 32) {
        tensor_list list = {
            .bent = "m_body.0.res.2.weight", .bent_rank = 4, .bent_dims = {64 + more, 64, 3, 3}};
        tensor_list whole = list;
        add_drunet(&whole, &(drunet_shape){"", 3, {16, 32, 48, 64}, 1, true});
        check_broken(&whole, "m_body.0.res.2",
                     "a body of other channels"); /* the sum with the stage's input notices */
    }
    /* Here every layer takes what the one before gives; only the sum does not fit. */
    tensor_list list = {0};
    add_conv(&list, "m_head", 16, 4, 3, false);
    for (int k = 1; k <= 3; k++) {
        char layer[64];
        snprintf(layer, sizeof layer, "m_down%d.0", k);
        add_conv(&list, layer, 16, 16, 2, false);
    }
    add_conv(&list, "m_body.0.res.0", 16, 16, 3, false);
    add_conv(&list, "m_body.0.res.2", 48, 16, 3, false);
    for (int k = 3; k >= 1; k--) {
        char layer[64];
        snprintf(layer, sizeof layer, "m_up%d.0", k);
        add_conv(&list, layer, k == 3 ? 48 : 16, 16, 2, false);
    }
    add_conv(&list, "m_tail", 3, 16, 3, false);
    check_broken(&list, "m_body.0.res.2", "a sum of 48 and 16 channels");
}

/* Without a place for the message the status must say the same. */
static void test_no_message(void)
{
    tensor_list list = {.without = "m_down2.1.weight"};
    int64_t elements;
    tess_model_net model;
    add_drunet(&list, &(drunet_shape){"", 3, {16, 32, 48, 64}, 1, true});
    tess_weights *weights = open_list(&list, &elements);
    CHECK(tess_model_recognise(weights, &model, NULL) == TESS_BAD_INPUT && !model.net);
    tess_weights_close(weights);
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    char folder[256];
    snprintf(folder, sizeof folder, "%s/tessera-models-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return check_skip("no folder for temporary files");
    snprintf(path, sizeof path, "%s/net.safetensors", folder);
    const tess_device_options options = {.memory = &test_counter, .threads = 2};
    tess_error error = {{0}};
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    test_drunet();
    test_unet();
    test_dncnn();
    test_signs();
    test_broken();
    test_residual_channels();
    test_no_message();
    tess_registry_close(device);
    unlink(path);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
