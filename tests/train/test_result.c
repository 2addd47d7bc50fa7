/* The weight file of a run: values, signs, types and metadata are read back by the reader of weight files. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "base/mem.h"
#include "counter.h"
#include "folder.h"
#include "train/result.h"
#include "train_blocks.h"

static train_list list;
static train_memory values;

static tess_train_config config_of(const char *output)
{
    char text[512];
    tess_train_config config;
    tess_error error = {""};
    snprintf(text, sizeof text,
             "{\"network\":{\"architecture\":\"dncnn\"},\"data\":{\"folders\":[\"a\"]},\"output\":\"%s\"}",
             output);
    CHECK_MSG(tess_train_config_parse(text, strlen(text), folder, &config, &error) == TESS_OK, "%s",
              error.text);
    return config;
}

static float expected(const tess_parameter *p, int64_t i, tess_training_state state, tess_dtype dtype)
{
    const float value = p->factor * values.blocks[p->running ? TESS_STATE_RUNNING : state][p->offset + i];
    return dtype == TESS_F16 ? tess_half_to_float(tess_float_to_half(value)) : value;
}

static void check_values(tess_weights *weights, tess_training_state state, tess_dtype dtype)
{
    float read[400];
    tess_error error = {""};
    CHECK(tess_weights_count(weights) == list.parameters.count);
    for (int k = 0; k < list.parameters.count; k++) {
        const tess_parameter *p = &list.list[k];
        const tess_weight *weight = tess_weights_find(weights, p->name);
        CHECK(weight && weight->dtype == dtype && weight->rank == p->rank && weight->elements == p->elements);
        if (!weight)
            continue;
        CHECK_MSG(tess_weights_read(weights, weight, 0, p->elements, read, &error) == TESS_OK, "%s",
                  error.text);
        for (int64_t i = 0; i < p->elements; i++)
            CHECK(read[i] == expected(p, i, state, dtype));
        CHECK(tess_weights_read(weights, weight, 2, 3, read, &error) == TESS_OK &&
              read[0] == expected(p, 2, state, dtype));
    }
}

static void test_round_trip(tess_training_state state, tess_dtype dtype)
{
    tess_error error = {""};
    tess_train_config config = config_of("result.safetensors");
    tess_train_source source = {&list.parameters, train_blocks(&values), state};
    tess_weights *weights = NULL, *read = NULL;
    tess_json *figures = tess_json_object();
    tess_json_set_double(&figures, "psnr", 32.5);
    CHECK_MSG(tess_train_weights(&source, dtype, &weights, &error) == TESS_OK, "%s", error.text);
    check_values(weights, state, dtype); /* without a file */
    CHECK_MSG(tess_train_write_result(&test_counter, &config, weights, figures, &error) == TESS_OK, "%s",
              error.text);
    tess_weights_close(weights);
    CHECK_MSG(tess_weights_open(in_folder("result.safetensors"), &read, &error) == TESS_OK, "%s", error.text);
    check_values(read, state, dtype);
    const char *text = tess_weights_metadata(read, "training");
    CHECK_MSG(text && strcmp(text, "{\"psnr\":32.5}") == 0, "%s", text);
    text = tess_weights_metadata(read, "format");
    CHECK(text && strcmp(text, "pt") == 0 && !tess_weights_metadata(read, "none"));
    /* The configuration in the file starts the same run again. */
    text = tess_weights_metadata(read, "config");
    tess_train_config again;
    CHECK_MSG(text && tess_train_config_parse(text, strlen(text), folder, &again, &error) == TESS_OK, "%s",
              error.text);
    CHECK(again.network.depth == 20 && strcmp(again.output.given, "result.safetensors") == 0);
    tess_train_config_clear(&again);
    /* A copy keeps the metadata. */
    CHECK(tess_safetensors_write(&test_counter, in_folder("copy.safetensors"), read, &error) == TESS_OK);
    tess_weights_close(read);
    CHECK(tess_weights_open(in_folder("copy.safetensors"), &read, &error) == TESS_OK);
    CHECK(tess_weights_metadata(read, "config") && tess_weights_metadata(read, "training"));
    tess_weights_close(read);
    CHECK(sweep_folder(true) == 2 && counted_now() == 0);
    tess_json_free(figures);
    tess_train_config_clear(&config);
}

static tess_status lost(void *user, tess_training_state state, int64_t first, int64_t count, float *to,
                        tess_error *error)
{
    (void)user, (void)state, (void)first, (void)count, (void)to;
    return tess_fail(error, TESS_DEVICE_LOST, "the device failed");
}

static void test_failures(void)
{
    tess_error error = {""};
    tess_train_config config = config_of("none/result.safetensors");
    tess_train_source source = {&list.parameters, train_blocks(&values), TESS_STATE_PARAMETERS};
    tess_weights *weights = NULL;
    CHECK(tess_train_weights(&source, TESS_F32, &weights, &error) == TESS_OK);
    CHECK(tess_train_write_result(&test_counter, &config, weights, NULL, &error) == TESS_IO_FAILED);
    CHECK_MSG(strstr(error.text, "none/result.safetensors: cannot be written"), "%s", error.text);
    tess_train_config_clear(&config);
    config = config_of("result.safetensors");
    source.blocks.get = lost;
    CHECK(tess_train_write_result(&test_counter, &config, weights, NULL, &error) == TESS_DEVICE_LOST);
    CHECK(sweep_folder(false) == 0);
    tess_weights_close(weights);
    CHECK(tess_train_weights(&source, TESS_BF16, &weights, &error) == TESS_INTERNAL && !weights);
    tess_train_config_clear(&config);
}

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    train_small(&list);
    train_fill(&values, &list.parameters, 3);
    test_round_trip(TESS_STATE_PARAMETERS, TESS_F32);
    test_round_trip(TESS_STATE_AVERAGE, TESS_F16);
    test_failures();
    train_clear(&values);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
