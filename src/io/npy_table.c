/* Tables of numbers from two-dimensional NPY files. */
#define _XOPEN_SOURCE 700
#include <string.h>
#include <sys/stat.h>

#include "io/npy.h"
#include "io/table.h"

/* One number of less than 8 bytes; tess_npy_open accepts no other types. */
static double number_of(const tess_npy_header *header, const void *number)
{
    union {
        float f4;
        uint16_t f2;
        uint8_t u1;
        uint16_t u2;
        uint32_t u4;
        int16_t i2;
        int32_t i4;
    } value = {0};
    memcpy(&value, number, (size_t)header->size);
    if (header->kind == 'f')
        return header->size == 2 ? (double)tess_half_to_float(value.f2) : (double)value.f4;
    if (header->kind == 'u')
        return header->size == 1 ? value.u1 : header->size == 2 ? value.u2 : value.u4;
    return header->size == 2 ? value.i2 : value.i4;
}

static tess_status read_table(tess_npy_file *npy, int64_t most, tess_table *out, tess_error *error)
{
    const tess_npy_header *header = &npy->header;
    if (header->rank != 2 || header->size > 8) {
        char type[32];
        tess_npy_type(header, type, sizeof type);
        return tess_fail(error, TESS_BAD_INPUT,
                         "has %d dimensions of type %s; a table is (rows, columns) of floats or integers",
                         header->rank, type);
    }
    const int64_t count = header->shape[0] * header->shape[1];
    if (count > most)
        return tess_fail(error, TESS_BAD_INPUT, "holds %lld numbers; a table has at most %lld",
                         (long long)count, (long long)most);
    *out = (tess_table){header->shape[0], header->shape[1],
                        tess_small_alloc((size_t)count, sizeof *out->values), header->kind != 'f'};
    if (!out->values)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld numbers", (long long)count);
    if (!tess_npy_samples(npy, out->values, count)) {
        tess_small_free(out->values);
        out->values = NULL;
        return tess_fail(error, TESS_IO_FAILED, "cannot be read");
    }
    /* Shorter numbers are at the beginning of the buffer; going backwards, none is overwritten before it is read. */
    for (int64_t i = header->size < 8 ? count - 1 : -1; i >= 0; i--) {
        char number[8];
        memcpy(number, (const char *)out->values + i * header->size, (size_t)header->size);
        out->values[i] = number_of(header, number);
    }
    return TESS_OK;
}

tess_status tess_table_read(const char *path, int64_t most, tess_table *out, tess_error *error)
{
    tess_image_info info = {.axes = TESS_AXES_PLAIN};
    void *npy = NULL;
    struct stat about;
    *out = (tess_table){0};
    tess_status status = TESS_OK;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) /* opening a pipe would block */
        status = tess_fail(error, TESS_BAD_INPUT, "is not a regular file; tables are read from files");
    if (status == TESS_OK)
        status = tess_npy_open(NULL, path, &info, &npy, error);
    if (status == TESS_OK) {
        status = read_table(npy, most, out, error);
        tess_npy_close(npy);
    }
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}
