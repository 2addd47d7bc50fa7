/* test_weights_limits.c: limits on what a small file or a size may request: tensors that share their values, and
 * products of sizes that do not fit 64 bits (which the sanitized build would report as signed overflow). */
#define _XOPEN_SOURCE 700
#include "check.h"
#include "counter.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tensor/tensor.h"
#include "weights/weights.h"
#include "weights_files.h"

enum { VALUES = 1 << 18 }; /* floats in the one storage: 1 MiB */

/* torch.save of `count` tensors, all of which are the same storage. */
static void make_shared(bytes *file, int count)
{
    bytes object = {0}, values = {0};
    put_text(&object, "\x80\x02"
                      "ccollections\nOrderedDict\n)R(");
    const sample_tensor t = {"FloatStorage", "0", VALUES, 0, 2, {512, VALUES / 512}, {VALUES / 512, 1}};
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "body.%d.weight", i);
        put_string(&object, name);
        put_tensor(&object, &t);
    }
    put_text(&object, "u.");
    for (int i = 0; i < VALUES; i++)
        put_le(&values, 0x3f800000u, 4);
    zip z = {0};
    zip_add(&z, "net/data.pkl", &object);
    zip_add(&z, "net/data/0", &values);
    zip_end(&z);
    *file = z.file;
    drop(&object);
    drop(&values);
}

static void check_shared(const char *folder, int count, bool good)
{
    char path[300], converted[300];
    tess_error error = {""};
    tess_weights *weights = NULL;
    bytes file = {0};
    snprintf(path, sizeof path, "%s/shared.pth", folder);
    snprintf(converted, sizeof converted, "%s/shared.safetensors", folder);
    make_shared(&file, count);
    save(path, &file);
    tess_status status = tess_weights_open(path, &weights, &error);
    CHECK_MSG(status == (good ? TESS_OK : TESS_BAD_INPUT), "%d tensors: %s", count, error.text);
    if (good)
        CHECK(tess_weights_count(weights) == count);
    else
        CHECK_MSG(strstr(error.text, "share their values") && strstr(error.text, path), "%s", error.text);
    if (status == TESS_OK) {
        struct stat about;
        CHECK(tess_safetensors_write(&test_counter, converted, weights, &error) == TESS_OK);
        CHECK(stat(converted, &about) == 0 && (size_t)about.st_size <= 4 * file.count + (1 << 20) + 65536);
        unlink(converted);
    }
    tess_weights_close(weights);
    drop(&file);
    unlink(path);
}

static void check_no_size(tess_tensor tensor)
{
    size_t size = 0;
    CHECK(!tess_tensor_bytes(&tensor, &size));
}

static void test_sizes(void)
{
    const int64_t large = (int64_t)1 << 29;
    size_t size = 0;
    check_no_size(tess_tensor_2d(TESS_F32, 1, large, large, 64)); /* 2^58 pixels of a network's first layer */
    check_no_size(tess_tensor_2d(TESS_F32, 1, large, large, 16)); /* the count fits, the bytes do not */
    check_no_size(tess_tensor_2d(TESS_F32, 1, 1, INT64_MAX / 2, 3));
    check_no_size(tess_tensor_2d(TESS_F32, 2, INT64_MAX, INT64_MAX, INT64_MAX));
    check_no_size(tess_tensor_3d(TESS_U8, 1, large, large, large, 1));
    check_no_size(tess_tensor_3d(TESS_U8, 3, large, large, 16, 1));
    tess_tensor most = tess_tensor_2d(TESS_U8, 1, large, large, 16);
    CHECK(tess_tensor_bytes(&most, &size) && size == (size_t)1 << 62);
}

int main(void)
{
    char folder[] = "/tmp/tessera-limits-XXXXXX";
    if (!mkdtemp(folder))
        return check_skip("no folder in /tmp");
    check_shared(folder, 1, true);
    check_shared(folder, 2, true); /* tied weights */
    check_shared(folder, 4, true);
    check_shared(folder, 6, false);
    check_shared(folder, 400, false);
    test_sizes();
    CHECK(rmdir(folder) == 0);
    return check_end();
}
