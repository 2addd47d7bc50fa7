/* convert: writes a weight file as safetensors and reports its contents. */
#include <string.h>

#include "io/image.h"
#include "job/common/context.h"
#include "job/common/record.h"
#include "model/describe.h"

static tess_json *record_of(tess_weights *weights, const char *output)
{
    tess_json *record = tess_record_begin("convert", NULL), *convert = tess_json_object();
    int64_t values = 0;
    for (int64_t i = 0; i < tess_weights_count(weights); i++)
        values += tess_weights_at(weights, i)->elements;
    tess_json_set_string(&convert, "input", tess_weights_path(weights));
    tess_json_set_string(&convert, "format", tess_weights_format(weights));
    tess_json_set_string(&convert, "output", output);
    tess_json_set_int(&convert, "tensors", tess_weights_count(weights));
    tess_json_set_int(&convert, "values", values);
    tess_described model;
    if (tess_describe(weights, &model, NULL) == TESS_OK) {
        tess_json_set_string(&convert, "architecture", model.architecture);
        tess_json_set_int(&convert, "channels", model.channels);
        tess_described_clear(&model);
    }
    tess_json_set(&record, "convert", convert);
    return record;
}

tess_status tess_convert(tess_context *context, const char *input, const char *output, char **record)
{
    *record = NULL;
    tess_error *error = &context->error;
    TESS_TRY(tess_context_alone(context, "convert"));
    size_t length = strlen(output), end = strlen(".safetensors");
    if (length <= end || strcmp(output + length - end, ".safetensors") != 0)
        return tess_fail(error, TESS_BAD_OPTION, "%s: the output's name must end in .safetensors", output);
    if (tess_image_same_file(output, input))
        return tess_fail(error, TESS_BAD_OPTION,
                         "%s: the result would be written over the input %s; give another output", output,
                         input);
    tess_weights *weights = NULL;
    TESS_TRY(tess_weights_open(input, &weights, error));
    tess_status status = tess_safetensors_write(&context->memory, output, weights, error);
    if (status == TESS_OK)
        status = tess_record_end(record_of(weights, output), record, error);
    tess_weights_close(weights);
    return status;
}
