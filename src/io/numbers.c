#include "io/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "io/npy.h"

enum { MOST_BYTES = 16 << 20, HEAD = 10 };

/* Reads a sample of an NPY file as a double; NAN when the type is not numeric. */
static double sample(const tess_npy_header *header, const unsigned char *at)
{
    unsigned char bytes[8] = {0};
    const int size = header->size;
    for (int i = 0; i < size && i < 8; i++)
        bytes[i] = at[header->swapped ? size - 1 - i : i];
    union {
        uint16_t h;
        float f;
        double d;
        int64_t i;
        uint64_t u;
    } is;
    memcpy(&is, bytes, 8);
    if (header->kind == 'f')
        return size == 2   ? (double)tess_half_to_float(is.h)
               : size == 4 ? (double)is.f
               : size == 8 ? is.d
                           : (double)NAN;
    if (header->kind == 'u' && size <= 8)
        return (double)is.u;
    if (header->kind == 'i' && size <= 8) /* the sign is the highest bit of `size` bytes */
        return (double)((int64_t)(is.u << (64 - 8 * size)) >> (64 - 8 * size));
    return NAN;
}

static tess_status from_array(const unsigned char *bytes, size_t length, int64_t most, double *values,
                              int64_t *count, tess_error *error)
{
    tess_npy_header header;
    size_t start = HEAD, text = 0;
    if (length >= 12) {
        text = bytes[8] | (size_t)bytes[9] << 8;
        if (bytes[6] > 1) {
            text |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
            start = 12;
        }
    }
    if (length < start || text > length - start)
        return tess_fail(error, TESS_BAD_INPUT, "truncated inside its header; copy the file again");
    TESS_TRY(tess_npy_parse((const char *)bytes + start, text, &header, error));
    int64_t total = 1;
    int long_sides = 0;
    for (int i = 0; i < header.rank; i++) {
        long_sides += header.shape[i] > 1;
        if (header.shape[i] < 0 || header.shape[i] > most)
            return tess_fail(error, TESS_BAD_INPUT, "holds more than %lld numbers", (long long)most);
        total *= header.shape[i] <= most && total <= most ? header.shape[i] : 1;
    }
    if (total > most || header.size < 1 || header.size > 8 ||
        (size_t)total * (size_t)header.size != length - start - text)
        return tess_fail(error, TESS_BAD_INPUT,
                         "has a shape that its size does not fit, or more than %lld numbers",
                         (long long)most);
    if (header.fortran && long_sides > 1)
        return tess_npy_fail_fortran(error);
    for (*count = 0; *count < total; ++*count)
        values[*count] = sample(&header, bytes + start + text + *count * header.size);
    return TESS_OK;
}

static tess_status from_text(char *text, int64_t most, double *values, int64_t *count, tess_error *error)
{
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0) /* a byte-order mark, as some editors write */
        text += 3;
    for (char *at = text; *at; at++) /* replace comments by blanks */
        if (*at == '#')
            while (*at && *at != '\n')
                *at++ = ' ';
    *count = 0;
    for (char *at = text;;) {
        char *end;
        at += strspn(at, " \t\r\n,;");
        if (!*at)
            return TESS_OK;
        const double value = strtod(at, &end);
        if (end == at || *count == most)
            return tess_fail(error, TESS_BAD_INPUT, "is no list of at most %lld numbers: it holds \"%.20s\"",
                             (long long)most, at);
        values[(*count)++] = value;
        at = end;
    }
}

static tess_status read_bytes(const char *path, unsigned char *bytes, size_t *length, tess_error *error)
{
    FILE *file = NULL;
    TESS_TRY(tess_file_open(path, &file, error));
    *length = fread(bytes, 1, MOST_BYTES, file);
    const bool failed = ferror(file);
    fclose(file);
    if (failed)
        return tess_fail(error, TESS_IO_FAILED, "cannot be read");
    if (*length == MOST_BYTES)
        return tess_fail(error, TESS_BAD_INPUT, "is larger than 16 MiB; a list of numbers is not");
    bytes[*length] = 0;
    return TESS_OK;
}

tess_status tess_numbers_read(const char *path, int64_t most, double **values, int64_t *count,
                              tess_error *error)
{
    size_t length = 0;
    unsigned char *bytes = tess_small_alloc(MOST_BYTES + 1, 1);
    *values = tess_small_alloc((size_t)most, sizeof **values);
    *count = 0;
    tess_status status = TESS_OK;
    if (!bytes || !*values)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to read it");
    if (status == TESS_OK)
        status = read_bytes(path, bytes, &length, error);
    if (status == TESS_OK)
        status = length >= HEAD && memcmp(bytes, "\x93NUMPY", 6) == 0
                     ? from_array(bytes, length, most, *values, count, error)
                     : from_text((char *)bytes, most, *values, count, error);
    for (int64_t i = 0; i < *count && status == TESS_OK; i++)
        if (!isfinite((*values)[i]))
            status = tess_fail(error, TESS_BAD_INPUT, "number %lld is not finite, or of an unknown type",
                               (long long)i);
    tess_small_free(bytes);
    if (status == TESS_OK)
        return TESS_OK;
    tess_small_free(*values);
    *values = NULL;
    return tess_fail_prefix(error, status, path);
}
