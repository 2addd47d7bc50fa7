/* weights.c: opens a weight file, detects its format, and finds tensors by name.
 *
 * The suffix is never trusted: a download is often a pointer file or an error page instead of the weights, and
 * each of those gets its own message. Lookup uses a sorted list, which also finds duplicate names, however many
 * there are. */
#define _POSIX_C_SOURCE 200809L
#include "weights/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/mem.h"
#include "weights/weights_format.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "weight files hold little-endian values, copied as they are");

static bool begins(const unsigned char *head, size_t bytes, const char *with)
{
    size_t length = strlen(with);
    return bytes >= length && memcmp(head, with, length) == 0;
}

static bool is_web_page(const unsigned char *head, size_t bytes)
{
    size_t at = 0;
    while (at < bytes && (head[at] == ' ' || head[at] == '\t' || head[at] == '\r' || head[at] == '\n'))
        at++;
    return begins(head + at, bytes - at, "<!DOCTYPE") || begins(head + at, bytes - at, "<!doctype") ||
           begins(head + at, bytes - at, "<html") || begins(head + at, bytes - at, "<HTML");
}

/* Detects common files that are not weights, and names them in the message. */
static tess_status refuse(const unsigned char *head, size_t bytes, tess_error *error)
{
    const char *what = "is not a weight file; expected safetensors, or a .pth written by torch.save";
    if (bytes == 0)
        what = "is empty; expected a weight file (safetensors or .pth)";
    else if (begins(head, bytes, "version https://git-lfs"))
        what = "is a Git LFS pointer, not the weights; fetch them with 'git lfs pull'";
    else if (is_web_page(head, bytes))
        what = "is a web page, not the weights; download the file itself";
    else if (bytes > 262 && memcmp(head + 257, "ustar", 5) == 0)
        what = "is a tar archive (PyTorch before 0.1.10, or an archive of files); unpack it, or save it "
               "again with "
               "torch.save";
    else if (begins(head, bytes, "\x89HDF"))
        what = "is an HDF5 file; expected safetensors, or a .pth written by torch.save";
    return tess_fail(error, TESS_BAD_INPUT, "%s", what);
}

static tess_status read_directory(tess_weights *weights, tess_error *error)
{
    unsigned char head[512] = {0};
    size_t bytes = weights->bytes < sizeof head ? (size_t)weights->bytes : sizeof head;
    TESS_TRY(tess_weights_bytes(weights, 0, head, bytes, error));
    if (begins(head, bytes, "PK\x03\x04") || begins(head, bytes, "PK\x05\x06")) {
        weights->format = "pth (zip)";
        return tess_pth_zip_directory(weights, error);
    }
    if (bytes > 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 && head[8] != '{') {
        weights->format = "pth (legacy)";
        return tess_pth_legacy_directory(weights, error);
    }
    if (bytes > 8 && head[8] == '{') {
        weights->format = "safetensors";
        return tess_safetensors_directory(weights, error);
    }
    return refuse(head, bytes, error);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const tess_weight *const *)a)->name, (*(const tess_weight *const *)b)->name);
}

tess_status tess_weights_sort(tess_weights *weights, tess_error *error)
{
    weights->by_name = tess_small_alloc((size_t)weights->count, sizeof *weights->by_name);
    if (!weights->by_name)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the names of %lld tensors",
                         (long long)weights->count);
    for (int64_t i = 0; i < weights->count; i++)
        weights->by_name[i] = &weights->list[i];
    qsort(weights->by_name, (size_t)weights->count, sizeof *weights->by_name, compare_names);
    for (int64_t i = 1; i < weights->count; i++)
        if (strcmp(weights->by_name[i - 1]->name, weights->by_name[i]->name) == 0)
            return tess_fail(error, TESS_BAD_INPUT, "has two tensors named '%s'; names must differ",
                             weights->by_name[i]->name);
    return TESS_OK;
}

static tess_status open_file(tess_weights *weights, tess_error *error)
{
    /* Non-blocking, so that a pipe given by mistake is refused and not waited for. */
    weights->fd = open(weights->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (weights->fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return tess_fail(error, TESS_BAD_INPUT, "there is no such file; give a .safetensors or .pth file");
    struct stat facts;
    if (weights->fd < 0 || fstat(weights->fd, &facts) != 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be opened for reading: %s", strerror(errno));
    if (S_ISDIR(facts.st_mode))
        return tess_fail(error, TESS_BAD_INPUT, "is a folder; give a .safetensors or .pth file in it");
    if (!S_ISREG(facts.st_mode))
        return tess_fail(error, TESS_BAD_INPUT, "is not a regular file; weights are read by position");
    weights->bytes = (uint64_t)facts.st_size;
    return TESS_OK;
}

/* Tensors of a .pth may share their values, as tied weights do. If hundreds of them did, the file would become
 * hundreds of times its size when they are written or held separately. */
static tess_status check_shared(const tess_weights *weights, tess_error *error)
{
    int64_t room, total = 0, bytes;
    bool fits = weights->bytes <= INT64_MAX / 8 &&
                tess_add_i64((int64_t)weights->bytes * TESS_WEIGHTS_SHARED, TESS_WEIGHTS_SMALL, &room);
    for (int64_t i = 0; fits && i < weights->count; i++) {
        const tess_weight *weight = &weights->list[i];
        fits = tess_mul_i64(weight->elements, (int64_t)tess_dtype_size(weight->dtype), &bytes) &&
               tess_add_i64(total, bytes, &total) && total <= room;
    }
    if (fits)
        return TESS_OK;
    return tess_fail(
        error, TESS_BAD_INPUT,
        "has %lld tensors that share their values and come to more than %d times the file's %llu "
        "bytes; save each tensor once",
        (long long)weights->count, TESS_WEIGHTS_SHARED, (unsigned long long)weights->bytes);
}

tess_status tess_weights_begin(const char *path, tess_weights **out, tess_error *error)
{
    *out = NULL;
    tess_weights *weights = tess_small_alloc(1, sizeof *weights);
    if (weights) {
        weights->fd = -1;
        weights->path = tess_small_strdup(path);
    }
    if (!weights || !weights->path) {
        tess_weights_close(weights);
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open it", path);
    }
    *out = weights;
    return TESS_OK;
}

static tess_status open_weights(const char *path, bool nested, tess_weights **out, tess_error *error)
{
    *out = NULL;
    tess_weights *weights;
    TESS_TRY(tess_weights_begin(path, &weights, error));
    weights->nested = nested;
    tess_status status = open_file(weights, error);
    if (status == TESS_OK)
        status = read_directory(weights, error);
    if (status == TESS_OK)
        status = check_shared(weights, error);
    if (status == TESS_OK)
        status = tess_weights_sort(weights, error);
    if (status != TESS_OK) {
        tess_weights_close(weights);
        return tess_fail_prefix(error, status, path);
    }
    *out = weights;
    return TESS_OK;
}

tess_status tess_weights_open(const char *path, tess_weights **out, tess_error *error)
{
    return open_weights(path, false, out, error);
}

tess_status tess_weights_open_nested(const char *path, tess_weights **out, tess_error *error)
{
    return open_weights(path, true, out, error);
}

void tess_weights_close(tess_weights *weights)
{
    if (!weights)
        return;
    if (weights->fd >= 0)
        close(weights->fd);
    for (int64_t i = 0; i < weights->count; i++)
        tess_small_free(weights->list[i].name);
    tess_small_free(weights->list);
    tess_small_free(weights->by_name);
    tess_small_free(weights->draws);
    tess_json_free(weights->metadata);
    tess_weights_close(weights->flat);
    tess_small_free(weights->path);
    tess_small_free(weights);
}

const char *tess_weights_path(const tess_weights *weights)
{
    return weights->path;
}

const char *tess_weights_format(const tess_weights *weights)
{
    return weights->format;
}

int64_t tess_weights_count(const tess_weights *weights)
{
    return weights->count;
}

const tess_weight *tess_weights_at(const tess_weights *weights, int64_t index)
{
    return &weights->list[index];
}

const tess_weight *tess_weights_find(const tess_weights *weights, const char *name)
{
    for (int64_t low = 0, high = weights->count; low < high;) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(name, weights->by_name[middle]->name);
        if (order == 0)
            return weights->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

tess_status tess_weights_add(tess_weights *weights, const char *name, size_t length,
                             const tess_weight *weight, tess_error *error)
{
    if (weights->count >= TESS_WEIGHTS_MAX)
        return tess_fail(error, TESS_BAD_INPUT, "has more than %d tensors; no model that is known here has",
                         TESS_WEIGHTS_MAX);
    bool printable = length <= TESS_WEIGHT_NAME_MAX && tess_utf8_valid(name, length);
    for (size_t i = 0; printable && i < length; i++)
        printable = (unsigned char)name[i] >= 32 && name[i] != 127;
    if (!printable)
        return tess_fail(error, TESS_BAD_INPUT,
                         "tensor %lld has a name that is not printable UTF-8 of at most %d bytes",
                         (long long)weights->count, TESS_WEIGHT_NAME_MAX);
    if (weights->count == weights->capacity) {
        int64_t capacity = weights->capacity ? 2 * weights->capacity : 64;
        tess_weight *grown = tess_small_realloc(weights->list, (size_t)capacity, sizeof *grown);
        if (!grown)
            return tess_fail(error, TESS_NO_MEMORY, "no memory for a list of %lld tensors",
                             (long long)capacity);
        weights->list = grown;
        weights->capacity = capacity;
    }
    char *copy = tess_small_alloc(length + 1, 1);
    if (!copy)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a tensor's name");
    memcpy(copy, name, length);
    weights->list[weights->count] = *weight;
    weights->list[weights->count++].name = copy;
    return TESS_OK;
}

bool tess_weight_row_major(tess_weight *weight)
{
    /* A size of zero counts as 1 here, so that strides and overflow are checked whatever the order of the
     * sizes. */
    int64_t step = 1;
    weight->elements = 1;
    for (int i = weight->rank - 1; i >= 0; i--) {
        weight->strides[i] = step;
        if (weight->dims[i] < 0 || !tess_mul_i64(step, tess_max_i64(weight->dims[i], 1), &step))
            return false;
        weight->elements = weight->dims[i] ? weight->elements : 0;
    }
    weight->elements *= step;
    return true;
}

tess_status tess_weights_bytes(const tess_weights *weights, uint64_t offset, void *data, size_t bytes,
                               tess_error *error)
{
    if (offset > weights->bytes || bytes > weights->bytes - offset)
        return tess_fail(error, TESS_BAD_INPUT,
                         "ends at byte %llu, before what it should hold; it is cut short",
                         (unsigned long long)weights->bytes);
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(weights->fd, (char *)data + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tess_fail(error, TESS_IO_FAILED, "cannot be read: %s", strerror(errno));
        if (got == 0)
            return tess_fail(error, TESS_IO_FAILED, "became shorter while it was read");
        done += (size_t)got;
    }
    return TESS_OK;
}
