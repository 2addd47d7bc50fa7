/* npy_header.c: the Python dictionary at the head of an .npy file.
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (480, 640, 3), }
 *
 * It is a Python literal that always has these three keys. A scanner over (pointer, end) reads exactly these
 * and refuses everything else, so that no header can make it recurse, allocate or read past its end. */
#define _XOPEN_SOURCE 700
#include "io/npy.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"

enum { HEADER_LIMIT = 65536 };

typedef struct scan {
    const char *at, *end;
} scan;

static void skip_space(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
        s->at++;
}

static bool take(scan *s, char wanted)
{
    skip_space(s);
    if (s->at >= s->end || *s->at != wanted)
        return false;
    s->at++;
    return true;
}

static bool take_word(scan *s, const char *word)
{
    skip_space(s);
    size_t length = strlen(word);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0)
        return false;
    s->at += length;
    return true;
}

/* Reads a quoted string without escapes, truncated to `bytes`. */
static bool take_string(scan *s, char *out, size_t bytes)
{
    skip_space(s);
    if (s->at >= s->end || (*s->at != '\'' && *s->at != '"'))
        return false;
    char quote = *s->at++;
    size_t used = 0;
    while (s->at < s->end && *s->at != quote) {
        if (used + 1 < bytes)
            out[used++] = *s->at;
        s->at++;
    }
    out[used] = '\0';
    return take(s, quote);
}

static bool take_number(scan *s, int64_t *out)
{
    skip_space(s);
    const char *first = s->at;
    int64_t value = 0;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
        if (!tess_mul_i64(value, 10, &value) || !tess_add_i64(value, *s->at - '0', &value))
            return false;
    *out = value;
    bool any = s->at > first;
    if (any && s->at < s->end && *s->at == 'L') /* written by Python 2 */
        s->at++;
    return any;
}

static bool take_shape(scan *s, tess_npy_header *out)
{
    if (!take(s, '('))
        return false;
    out->rank = 0;
    while (!take(s, ')')) {
        if (out->rank == 8 || !take_number(s, &out->shape[out->rank++]))
            return false;
        if (!take(s, ','))
            return take(s, ')');
    }
    return true;
}

static bool read_descr(const char *text, tess_npy_header *out)
{
    bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    if (!text[0] || !strchr("<>|=", text[0]) || !text[1] || text[2] < '1' || text[2] > '9')
        return false;
    out->kind = text[1];
    out->size = text[2] - '0';
    if (text[3]) /* 16 bytes and more: complex, strings, … */
        out->size = text[3] >= '0' && text[3] <= '9' && !text[4] ? 10 * out->size + text[3] - '0' : 99;
    out->swapped = (text[0] == '<' && !little) || (text[0] == '>' && little);
    return true;
}

void tess_npy_type(const tess_npy_header *header, char *text, size_t bytes)
{
    static const struct {
        char kind;
        const char *name;
    } names[] = {{'i', "int"}, {'u', "uint"}, {'f', "float"}, {'c', "complex"}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k].kind == header->kind) {
            snprintf(text, bytes, "%s%d", names[k].name, 8 * header->size);
            return;
        }
    snprintf(text, bytes, "%c%d", header->kind > 32 && header->kind < 127 ? header->kind : '?', header->size);
}

tess_status tess_npy_parse(const char *text, size_t bytes, tess_npy_header *out, tess_error *error)
{
    static const char usual[] = "expected {'descr': '<f4', 'fortran_order': False, 'shape': (H, W, C)}";
    scan s = {text, text + bytes};
    unsigned seen = 0;
    *out = (tess_npy_header){0};
    if (!take(&s, '{'))
        return tess_fail(error, TESS_BAD_INPUT, "damaged NPY header; %s", usual);
    while (!take(&s, '}')) {
        char key[32], descr[16];
        bool good = take_string(&s, key, sizeof key) && take(&s, ':');
        if (good && strcmp(key, "descr") == 0) {
            if (take(&s, '['))
                return tess_fail(error, TESS_UNSUPPORTED, "holds records, not numbers; save one plain array");
            good = take_string(&s, descr, sizeof descr) && read_descr(descr, out);
            seen |= 1;
        } else if (good && strcmp(key, "fortran_order") == 0) {
            out->fortran = take_word(&s, "True");
            good = out->fortran || take_word(&s, "False");
            seen |= 2;
        } else if (good && strcmp(key, "shape") == 0) {
            good = take_shape(&s, out);
            seen |= 4;
        } else {
            good = false;
        }
        if (!good)
            return tess_fail(error, TESS_BAD_INPUT, "damaged NPY header; %s", usual);
        if (!take(&s, ',')) {
            if (take(&s, '}'))
                break;
            return tess_fail(error, TESS_BAD_INPUT, "damaged NPY header; %s", usual);
        }
    }
    skip_space(&s);
    if (seen != 7 || s.at != s.end)
        return tess_fail(error, TESS_BAD_INPUT, "damaged NPY header; %s", usual);
    return TESS_OK;
}

tess_status tess_npy_fail_fortran(tess_error *error)
{
    return tess_fail(error, TESS_UNSUPPORTED,
                     "is stored column by column (fortran_order); save it with numpy.ascontiguousarray");
}

tess_status tess_npy_read_header(FILE *file, tess_npy_header *out, int64_t *offset, tess_error *error)
{
    unsigned char fixed[12];
    char text[4096], *big = NULL;
    if (fread(fixed, 1, 10, file) != 10)
        return tess_fail(error, TESS_BAD_INPUT, "truncated inside its header; copy the file again");
    if (memcmp(fixed, "\x93NUMPY", 6) != 0)
        return tess_fail(error, TESS_BAD_INPUT, "is no NPY file; write it with numpy.save");
    size_t length = fixed[8] | (size_t)fixed[9] << 8, start = 10;
    if (fixed[6] < 1 || fixed[6] > 3)
        return tess_fail(error, TESS_UNSUPPORTED, "NPY version %d.%d; versions 1 to 3 are read", fixed[6],
                         fixed[7]);
    if (fixed[6] > 1) {
        if (fread(fixed + 10, 1, 2, file) != 2)
            return tess_fail(error, TESS_BAD_INPUT, "truncated inside its header; copy the file again");
        length |= (size_t)fixed[10] << 16 | (size_t)fixed[11] << 24;
        start = 12;
    }
    if (length > HEADER_LIMIT)
        return tess_fail(error, TESS_BAD_INPUT,
                         "damaged NPY header: its length reads %zu, at most %d is sensible", length,
                         HEADER_LIMIT);
    if (length > sizeof text && !(big = tess_small_alloc(length, 1)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory to read the header");
    tess_status status = TESS_OK;
    if (fread(big ? big : text, 1, length, file) != length)
        status = tess_fail(error, TESS_BAD_INPUT, "truncated inside its header; copy the file again");
    else
        status = tess_npy_parse(big ? big : text, length, out, error);
    tess_small_free(big);
    *offset = (int64_t)(start + length);
    return status;
}

tess_status tess_npy_check_size(FILE *file, const tess_npy_header *header, int64_t offset, tess_error *error)
{
    int64_t samples = 1, wanted;
    struct stat about;
    for (int i = 0; i < header->rank; i++)
        if (header->shape[i] < 1 || header->shape[i] > INT32_MAX ||
            !tess_mul_i64(samples, header->shape[i], &samples))
            return tess_fail(error, TESS_BAD_INPUT, "has an impossible shape (side %d is %lld)", i,
                             (long long)header->shape[i]);
    if (fstat(fileno(file), &about) != 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be read (%s)", strerror(errno));
    if (!tess_mul_i64(samples, header->size, &wanted) || !tess_add_i64(wanted, offset, &wanted))
        return tess_fail(error, TESS_BAD_INPUT, "has an impossible shape of %lld samples",
                         (long long)samples);
    if (wanted != about.st_size)
        return tess_fail(error, TESS_BAD_INPUT,
                         "has %lld bytes where its shape needs %lld; copy the file again",
                         (long long)about.st_size, (long long)wanted);
    return TESS_OK;
}
