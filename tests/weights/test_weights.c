/* test_weights.c: valid weight files: every type, layout and container is read to the last value, and what convert
 * writes is read back unchanged. With TESSERA_DATA set, the published DnCNN files are counted too. */
#define _POSIX_C_SOURCE 200809L
#include "weights/weights.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"
#include "counter.h"
#include "weights_files.h"

static char folder[256], path[512], other[512];

static tess_weights *open_bytes(bytes *b)
{
    tess_error error = {{0}};
    tess_weights *weights = NULL;
    save(path, b);
    drop(b);
    CHECK_MSG(tess_weights_open(path, &weights, &error) == TESS_OK, "%s", error.text);
    return weights;
}

/* The file is refused with a message of one line that begins with its name and has `part` in it. */
static void check_refused(bytes *b, const char *part)
{
    tess_error error = {{0}};
    tess_weights *weights = NULL;
    save(path, b);
    drop(b);
    CHECK(tess_weights_open(path, &weights, &error) == TESS_BAD_INPUT && !weights);
    CHECK_MSG(strncmp(error.text, path, strlen(path)) == 0 && strstr(error.text, part) &&
                  !strchr(error.text, '\n'),
              "'%s' in '%s'", part, error.text);
}

/* Values of tensor `name`, read whole and in every pair of pieces. */
static void check_values(tess_weights *weights, const char *name, int64_t count, const float *expected)
{
    tess_error error = {{0}};
    const tess_weight *weight = tess_weights_find(weights, name);
    CHECK_MSG(weight && weight->elements == count, "%s", name);
    if (!weight || weight->elements != count)
        return;
    float values[64];
    for (int64_t cut = 0; cut <= count; cut++) {
        memset(values, 0xff, sizeof values);
        CHECK_MSG(tess_weights_read(weights, weight, 0, cut, values, &error) == TESS_OK, "%s", error.text);
        CHECK(tess_weights_read(weights, weight, cut, count - cut, values + cut, &error) == TESS_OK);
        CHECK_MSG(memcmp(values, expected, (size_t)count * sizeof *values) == 0, "%s cut at %lld", name,
                  (long long)cut);
    }
    CHECK(tess_weights_read(weights, weight, 0, count + 1, values, &error) == TESS_INTERNAL);
    CHECK(tess_weights_read(weights, weight, -1, 1, values, &error) == TESS_INTERNAL);
}

static void check_sample(tess_weights *weights, bool with_view)
{
    static const float a[] = {0, 1, 2, 3, 4, 5}, b[] = {0, 3, 1, 4, 2, 5}, h[] = {1, -2}, n[] = {7};
    CHECK(tess_weights_count(weights) == (with_view ? 4 : 3));
    CHECK(strcmp(tess_weights_at(weights, 0)->name, "a") == 0);
    CHECK(!tess_weights_find(weights, "") && !tess_weights_find(weights, "zz") &&
          !tess_weights_find(weights, "aa"));
    check_values(weights, "a", 6, a);
    check_values(weights, "h", 2, h);
    check_values(weights, "n", 1, n);
    if (with_view)
        check_values(weights, "b", 6, b);
    const tess_weight *weight = tess_weights_find(weights, "a");
    CHECK(weight && weight->rank == 2 && weight->dims[0] == 2 && weight->dims[1] == 3 &&
          weight->strides[0] == 3);
    weight = tess_weights_find(weights, "n");
    CHECK(weight && weight->rank == 0 && weight->dtype == TESS_I64);
}

/* Converted, read back, converted again: the same values, and in the end the same bytes. */
static void check_round_trip(tess_weights *weights, bool with_view)
{
    tess_error error = {{0}};
    tess_weights *again = NULL;
    CHECK_MSG(tess_safetensors_write(&test_counter, other, weights, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_weights_open(other, &again, &error) == TESS_OK, "%s", error.text);
    if (!again)
        return;
    CHECK(strcmp(tess_weights_format(again), "safetensors") == 0 &&
          strcmp(tess_weights_path(again), other) == 0);
    check_sample(again, with_view);
    struct stat first, second;
    CHECK(stat(other, &first) == 0 && first.st_size % 2 == 0);
    CHECK(tess_safetensors_write(&test_counter, other, again, &error) ==
          TESS_OK); /* onto itself, while it is open */
    CHECK(stat(other, &second) == 0 && first.st_size == second.st_size);
    tess_weights_close(again);
    unlink(other);
}

static void test_sample_of_every_kind(void)
{
    static const char *const formats[] = {"safetensors", "pth (legacy)", "pth (zip)", "pth (zip)"};
    for (int kind = 0; kind < 4; kind++) {
        bytes b = {0};
        if (kind == 0)
            make_safetensors(&b);
        else if (kind == 1)
            make_legacy(&b);
        else
            make_zip(&b, kind == 3);
        tess_weights *weights = open_bytes(&b);
        if (!weights)
            continue;
        CHECK(strcmp(tess_weights_format(weights), formats[kind]) == 0);
        check_sample(weights, kind != 0);
        check_round_trip(weights, kind != 0);
        tess_weights_close(weights);
    }
}

static void test_every_dtype(void)
{
    static const struct {
        const char *dtype;
        size_t size;
        uint64_t bits[3];
        float values[3];
    } cases[] = {
        {"F32", 4, {0x3f800000, 0xc0200000, 0x7f800000}, {1, -2.5f, INFINITY}},
        {"F64", 8, {0x3ff8000000000000, 0xc000000000000000, 0x7fefffffffffffff}, {1.5f, -2, INFINITY}},
        {"F16", 2, {0x3c00, 0xc100, 0x0001}, {1, -2.5f, 0x1p-24f}},
        {"BF16", 2, {0x3f80, 0xc020, 0x4049}, {1, -2.5f, 3.140625f}},
        {"U8", 1, {0, 200, 255}, {0, 200, 255}},
        {"I8", 1, {0, 0x80, 0x7f}, {0, -128, 127}},
        {"U16", 2, {0, 0x8000, 0xffff}, {0, 32768, 65535}},
        {"I16", 2, {0, 0x8000, 0xffff}, {0, -32768, -1}},
        {"U32", 4, {0, 0x80000000, 5}, {0, 0x1p31f, 5}},
        {"I32", 4, {0, 0x80000000, 5}, {0, -0x1p31f, 5}},
        {"I64", 8, {0, 0x8000000000000000, 5}, {0, -0x1p63f, 5}},
        {"BOOL", 1, {0, 1, 2}, {0, 1, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[128];
        bytes b = {0};
        snprintf(header, sizeof header, "{\"x\":{\"dtype\":\"%s\",\"shape\":[3,1],\"data_offsets\":[0,%zu]}}",
                 cases[i].dtype, 3 * cases[i].size);
        make_safetensors_of(&b, header, 0);
        for (int k = 0; k < 3; k++)
            put_le(&b, cases[i].bits[k], (int)cases[i].size);
        tess_weights *weights = open_bytes(&b);
        if (!weights)
            continue;
        CHECK(strcmp(tess_dtype_name(tess_weights_at(weights, 0)->dtype), cases[i].dtype) == 0);
        check_values(weights, "x", 3, cases[i].values);
        tess_weights_close(weights);
    }
}

/* {"epoch": 3, KEY: {...}} and relatives: which dict is taken, and the names it gives. */
static void test_wrapped(void)
{
    static const sample_tensor one = {"LongStorage", "2", 1, 0, 1, {1}, {1}};
    static const char *const keys[] = {"params", "params_ema", "state_dict",
                                       "model",  "net",        "model_state_dict"};
    static const float seven[] = {7};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        bytes object = {0}, b = {0};
        put_text(&object, "\x80\x02}(");
        put_string(&object, "epoch");
        put_text(&object, "K\x03");
        put_string(&object, "params");
        put_text(&object, "}(");
        put_string(&object, "plain");
        put_tensor(&object, &one);
        put_text(&object, "u");
        put_string(&object, i ? keys[i] : "other");
        put_text(&object, "}(");
        put_string(&object, "x");
        put_tensor(&object, &one);
        put_string(&object, "lr");
        put_text(&object, "G\x3f\xf0zzzzzzuu.");
        make_zip_of(&b, &object, NULL, false);
        drop(&object);
        tess_weights *weights = open_bytes(&b);
        if (!weights)
            continue;
        CHECK(tess_weights_count(weights) == 1);
        check_values(weights, i == 1 ? "x" : "plain", 1, seven);
        tess_weights_close(weights);
    }
    bytes object = {0}, b = {0};
    put_text(&object, "\x80\x04}(\x8c\x03"
                      "enc}(\x8c\x01w");
    put_tensor(&object, &one);
    put_text(&object, "K\x05");
    put_tensor(&object, &one);
    put_text(&object, "uu.");
    make_zip_of(&b, &object, "little", false);
    drop(&object);
    tess_weights *weights = open_bytes(&b);
    if (weights) {
        check_values(weights, "enc.w", 1, seven);
        check_values(weights, "enc.5", 1, seven);
    }
    tess_weights_close(weights);
}

static void test_refusals(void)
{
    bytes b = {0}, object = {0};
    check_refused(&b, "is empty");
    put_text(&b, "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
    check_refused(&b, "Git LFS pointer");
    put_text(&b, "\n <!DOCTYPE html><html>");
    check_refused(&b, "web page");
    put_text(&b, "just a text file of some length");
    check_refused(&b, "not a weight file");
    put_text(&b, "\x80\x04}.");
    check_refused(&b, "not one that torch.save wrote");
    put_legacy_head(&b, false);
    check_refused(&b, "big-endian");
    put_sample_object(&object);
    make_zip_of(&b, &object, "big", false);
    check_refused(&b, "big-endian");
    drop(&object);
    put_text(&object, "\x80\x02"
                      "cmy.models\nNet\n)R.");
    make_zip_of(&b, &object, "little", false);
    check_refused(&b, "class my.models.Net; save a plain state dict");
    drop(&object);
    put_text(&object, "\x80\x02}.");
    make_zip_of(&b, &object, "little", false);
    check_refused(&b, "holds no tensors");
    drop(&object);
    zip script = {0};
    zip_add_text(&script, "m/data.pkl", "\x80\x02}.");
    zip_add_text(&script, "m/constants.pkl", "\x80\x02).");
    zip_add_text(&script, "m/code/__torch__.py", "pass");
    zip_end(&script);
    check_refused(&script.file, "TorchScript archive");
    zip packed = {.method = 8};
    zip_add_text(&packed, "m/data.pkl", "\x80\x02}.");
    zip_end(&packed);
    check_refused(&packed.file, "compressed");
    zip foreign = {0};
    zip_add_text(&foreign, "readme", "hello");
    zip_end(&foreign);
    check_refused(&foreign.file, "without a data.pkl");
    make_safetensors_of(&b, "{\"x\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    check_refused(&b, "type F8_E4M3");
}

static void test_paths(void)
{
    tess_error error = {{0}};
    tess_weights *weights = NULL;
    CHECK(tess_weights_open(folder, &weights, &error) == TESS_BAD_INPUT && strstr(error.text, "folder"));
    unlink(path);
    CHECK(tess_weights_open(path, &weights, &error) == TESS_BAD_INPUT && strstr(error.text, "no such file"));
    CHECK(tess_weights_open("/dev/null", &weights, &error) == TESS_BAD_INPUT &&
          strstr(error.text, "regular"));
    bytes b = {0};
    make_legacy(&b);
    weights = open_bytes(&b);
    if (!weights)
        return;
    CHECK(tess_safetensors_write(&test_counter, folder, weights, &error) == TESS_BAD_OPTION &&
          strstr(error.text, "folder"));
    CHECK(tess_safetensors_write(&test_counter, "/dev/full", weights, &error) == TESS_BAD_OPTION);
    CHECK(tess_safetensors_write(&test_counter, "/nonexistent/x.safetensors", weights, &error) ==
          TESS_IO_FAILED);
    tess_weights_close(weights);
    if (geteuid() == 0)
        return; /* root reads everything */
    CHECK(chmod(path, 0) == 0);
    CHECK(tess_weights_open(path, &weights, &error) == TESS_IO_FAILED && strstr(error.text, "denied"));
}

/* Counts from the data's README; values as PyTorch 2.x reads them. */
static void test_published(void)
{
    const char *data = getenv("TESSERA_DATA"); /* make passes it on, empty when it is not set */
    data = data && *data ? data : NULL;
    static const struct {
        const char *file, *name;
        int64_t tensors, values;
        float first, last;
    } cases[] = {
        {"kair_dncnn_25.pth", "model.2.weight", 34, 555137, -0x1.2e54ccp-5f, 0x1.1cc45cp-5f},
        {"saoyan_dncnn_s25.pth", "module.dncnn.3.weight", 77, 557952, 0x1.f0a5d6p-3f, 0x1.434732p-3f},
    };
    if (!data)
        printf("published weights skipped: set TESSERA_DATA to the folder that holds weights/\n");
    for (size_t i = 0; data && i < sizeof cases / sizeof *cases; i++) {
        char file[1024];
        tess_error error = {{0}};
        tess_weights *weights = NULL;
        snprintf(file, sizeof file, "%s/weights/%s", data, cases[i].file);
        CHECK_MSG(tess_weights_open(file, &weights, &error) == TESS_OK, "%s", error.text);
        if (!weights)
            continue;
        int64_t total = 0;
        for (int64_t k = 0; k < tess_weights_count(weights); k++)
            total += tess_weights_at(weights, k)->elements;
        CHECK(tess_weights_count(weights) == cases[i].tensors && total == cases[i].values);
        const tess_weight *weight = tess_weights_find(weights, cases[i].name);
        float first = 0, last = 0;
        CHECK(weight && tess_weights_read(weights, weight, 0, 1, &first, &error) == TESS_OK);
        CHECK(weight &&
              tess_weights_read(weights, weight, weight->elements - 1, 1, &last, &error) == TESS_OK);
        CHECK(first == cases[i].first && last == cases[i].last);
        tess_weights_close(weights);
    }
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tessera-weights-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return check_skip("no folder for temporary files");
    snprintf(path, sizeof path, "%s/in.bin", folder);
    snprintf(other, sizeof other, "%s/out.safetensors", folder);
    test_sample_of_every_kind();
    test_every_dtype();
    test_wrapped();
    test_refusals();
    test_paths();
    test_published();
    unlink(path);
    unlink(other);
    CHECK(rmdir(folder) == 0); /* nothing else was left behind */
    return check_end();
}
