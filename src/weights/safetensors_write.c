/* safetensors_write.c: writes an open weight file of any format as a safetensors file.
 *
 * The header lists tensors in the source's order. The values are ordered by element size, largest first (source
 * order within a size), because readers that map the file need each tensor aligned to its type. The bytes go to
 * a temporary name beside the target, which is synced and renamed only after everything was written: a full
 * disk leaves the old target, or none, and no temporary file. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/temp.h"
#include "weights/weights_format.h"

enum { PIECE = 1 << 20 };
static const size_t sizes_in_order[] = {8, 4, 2, 1};
enum { SIZES = sizeof sizes_in_order / sizeof *sizes_in_order };

static tess_status write_all(int fd, const void *data, size_t bytes, tess_error *error)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t put = write(fd, (const char *)data + done, bytes - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return tess_fail(error, TESS_IO_FAILED, "cannot be written: %s",
                             strerror(put < 0 ? errno : ENOSPC));
        done += (size_t)put;
    }
    return TESS_OK;
}

/* Loops over the tensors in the order of their values in the file. */
#define FOR_EACH_LAID_OUT(weights, weight)                                                                   \
    for (int pass = 0; pass < SIZES; pass++)                                                                 \
        for (const tess_weight *weight = (weights)->list; weight < (weights)->list + (weights)->count;       \
             weight++)                                                                                       \
            if (tess_dtype_size(weight->dtype) == sizes_in_order[pass])

/* Computes where each tensor's values begin, in the order of the list. */
static bool lay_out(const tess_weights *weights, int64_t *begins)
{
    int64_t next = 0;
    FOR_EACH_LAID_OUT(weights, weight)
    {
        int64_t bytes;
        begins[weight - weights->list] = next;
        if (!tess_mul_i64(weight->elements, (int64_t)sizes_in_order[pass], &bytes) ||
            !tess_add_i64(next, bytes, &next))
            return false;
    }
    return true;
}

static tess_json *describe(const tess_weight *weight, int64_t begin)
{
    tess_json *entry = tess_json_object(), *shape = tess_json_array(), *offsets = tess_json_array();
    for (int i = 0; i < weight->rank; i++)
        tess_json_append_int(&shape, weight->dims[i]);
    tess_json_append_int(&offsets, begin);
    tess_json_append_int(&offsets, begin + weight->elements * (int64_t)tess_dtype_size(weight->dtype));
    tess_json_set_string(&entry, "dtype", tess_dtype_name(weight->dtype));
    tess_json_set(&entry, "shape", shape);
    tess_json_set(&entry, "data_offsets", offsets);
    return entry;
}

/* Returns NULL when memory is out. `begins` has one number for each tensor. */
static char *make_header(const tess_weights *weights, const int64_t *begins)
{
    tess_json *header = tess_json_object(), *metadata = tess_json_object();
    for (const char *key = NULL; weights->metadata && (key = tess_json_next_key(weights->metadata, key));)
        tess_json_set_string(&metadata, key, tess_weights_metadata(weights, key));
    tess_json_set_string(&metadata, "format", "pt"); /* PyTorch's loaders require it */
    tess_json_set(&header, "__metadata__", metadata);
    for (int64_t i = 0; i < weights->count; i++)
        tess_json_set(&header, weights->list[i].name, describe(&weights->list[i], begins[i]));
    char *text = tess_json_dump(header, false);
    tess_json_free(header);
    return text;
}

static tess_status write_header(int fd, const char *text, tess_error *error)
{
    size_t length = strlen(text), padded = tess_align_size(length, 8);
    if (padded > TESS_SAFETENSORS_MAX)
        return tess_fail(error, TESS_BAD_INPUT, "would need a header of %zu bytes; safetensors allows %d",
                         padded, TESS_SAFETENSORS_MAX);
    unsigned char head[8];
    for (int i = 0; i < 8; i++)
        head[i] = (unsigned char)((uint64_t)padded >> 8 * i);
    TESS_TRY(write_all(fd, head, sizeof head, error));
    TESS_TRY(write_all(fd, text, length, error));
    return write_all(fd, "       ", padded - length, error);
}

static tess_status write_values(int fd, tess_weights *weights, void *piece, tess_error *error)
{
    FOR_EACH_LAID_OUT(weights, weight)
    {
        int64_t most = PIECE / (int64_t)sizes_in_order[pass];
        for (int64_t done = 0, step; done < weight->elements; done += step) {
            step = tess_min_i64(most, weight->elements - done);
            tess_status status = tess_weights_read_stored(weights, weight, done, step, piece, error);
            if (status != TESS_OK)
                return tess_fail_prefix(error, status, weights->path);
            TESS_TRY(write_all(fd, piece, (size_t)step * sizes_in_order[pass], error));
        }
    }
    return TESS_OK;
}

static tess_status write_contents(tess_memory *memory, int fd, tess_weights *weights, tess_error *error)
{
    int64_t *begins = tess_small_alloc((size_t)weights->count, sizeof *begins);
    char *text = NULL;
    tess_block piece = {0};
    tess_status status = begins ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the header");
    if (status == TESS_OK && (tess_weights_find(weights, "__metadata__") || !lay_out(weights, begins)))
        status = tess_fail(error, TESS_BAD_INPUT,
                           "cannot hold these tensors (a reserved name, or too many bytes)");
    if (status == TESS_OK && !(text = make_header(weights, begins)))
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for the header");
    if (status == TESS_OK)
        status = write_header(fd, text, error);
    if (status == TESS_OK)
        status = tess_block_alloc(memory, &piece, TESS_MEM_HOST, PIECE, error);
    if (status == TESS_OK)
        status = write_values(fd, weights, piece.data, error);
    tess_block_free(&piece);
    tess_small_free(text);
    tess_small_free(begins);
    return status;
}

static tess_status write_temp(tess_memory *memory, const tess_temp *temp, tess_weights *weights,
                              tess_error *error)
{
    FILE *file = tess_temp_open(temp);
    if (!file)
        return tess_fail(error, TESS_IO_FAILED, "cannot be created: %s", strerror(errno));
    tess_status status = write_contents(memory, fileno(file), weights, error);
    if (status == TESS_OK && fsync(fileno(file)) != 0)
        status = tess_fail(error, TESS_IO_FAILED, "cannot be written: %s", strerror(errno));
    if (fclose(file) != 0 && status == TESS_OK)
        status = tess_fail(error, TESS_IO_FAILED, "cannot be written: %s", strerror(errno));
    return status;
}

size_t tess_safetensors_bytes(void)
{
    return tess_block_granted(PIECE);
}

static tess_status write_beside(tess_memory *memory, const char *path, tess_weights *weights,
                                tess_error *error)
{
    struct stat facts;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode))
        return tess_fail(error, TESS_BAD_OPTION, "is %s; give the name of a .safetensors file",
                         S_ISDIR(facts.st_mode) ? "a folder" : "not a regular file");
    tess_temp *temp = NULL;
    TESS_TRY(tess_temp_create(path, &temp, error));
    tess_status status = write_temp(memory, temp, weights, error);
    if (status == TESS_OK)
        status = tess_temp_commit(temp, path, error);
    tess_temp_remove(temp);
    return status;
}

tess_status tess_safetensors_write(tess_memory *memory, const char *path, tess_weights *weights,
                                   tess_error *error)
{
    tess_status status = write_beside(memory, path, weights, error);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}
