/* npy.c: NumPy's .npy files as images, (H, W) or (H, W, C), and volumes, (D, H, W) or (D, H, W, C).
 *
 * The file has the samples in the caller's order, so rows are read directly into the caller's memory and
 * nothing is held (except for planes, npy_planes.c). Other byte orders are swapped in place; half and double
 * precision are converted to float32 in pieces through a few KiB of stack. The file's size must match the shape
 * exactly, so that an incomplete copy is found before any work. */
#define _XOPEN_SOURCE 700
#include "io/npy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "io/format.h"

enum { PIECE = 1024 };

static const struct {
    char kind;
    int size;
    tess_dtype dtype;  /* sample type for the caller */
    const char *descr; /* in written files; NULL: this type is only read */
    double full_scale;
} kinds[] = {
    {'u', 1, TESS_U8, "|u1", 255},        {'u', 2, TESS_U16, "u2", 65535},
    {'i', 2, TESS_I16, "i2", 32767},      {'u', 4, TESS_U32, "u4", 4294967295},
    {'i', 4, TESS_I32, "i4", 2147483647}, {'f', 4, TESS_F32, "f4", 1},
    {'f', 2, TESS_F32, NULL, 1},          {'f', 8, TESS_F32, NULL, 1},
    {'f', 8, TESS_F64, "f8", 1}, /* if doubles are to stay */
};

void tess_npy_swap(const tess_npy_header *header, void *samples, int64_t count)
{
    if (header->swapped)
        tess_swap_samples(samples, count, header->size);
}

static int find_kind(const tess_npy_header *header, bool doubles)
{
    for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++)
        if (kinds[k].kind == header->kind && kinds[k].size == header->size &&
            (header->kind != 'f' || header->size != 8 || doubles == (kinds[k].dtype == TESS_F64)))
            return k;
    return -1;
}

static void lay_out(tess_npy_file *npy, const tess_image_info *info, int64_t offset)
{
    npy->height = tess_image_rows(info);
    npy->width = info->width;
    npy->channels = info->channels;
    npy->row_samples = info->width * info->channels;
    npy->planar = info->axes == TESS_AXES_CHW;
    npy->offset = offset;
}

static tess_status describe(tess_npy_file *npy, tess_image_info *info, int64_t offset, tess_error *error)
{
    const tess_npy_header *header = &npy->header;
    int kind = find_kind(header, info->dtype == TESS_F64);
    if (header->kind == 'b')
        return tess_fail(error, TESS_UNSUPPORTED,
                         "holds booleans; save 0 and 255 with (a * 255).astype(numpy.uint8)");
    if (kind < 0) {
        char type[32];
        tess_npy_type(header, type, sizeof type);
        return tess_fail(error, TESS_UNSUPPORTED,
                         "holds samples of type %s; save it as uint8, uint16, int16, uint32, int32 or float",
                         type);
    }
    int long_sides = 0;
    for (int i = 0; i < header->rank; i++)
        long_sides += header->shape[i] > 1;
    if (header->fortran && long_sides > 1)
        return tess_npy_fail_fortran(error);
    TESS_TRY(tess_npy_check_size(npy->file, header, offset, error));
    *info = (tess_image_info){.axes = info->axes,
                              .dtype = kinds[kind].dtype,
                              .doubles = header->kind == 'f' && header->size == 8,
                              .full_scale = kinds[kind].full_scale};
    npy->as_float = info->dtype == TESS_F32 && header->size != 4;
    TESS_TRY(tess_npy_axes(header, info, error));
    lay_out(npy, info, offset);
    info->held_bytes = npy->planar ? tess_npy_plane_bytes(info->width, header->size) : 0;
    return TESS_OK;
}

void tess_npy_close(void *state)
{
    tess_npy_file *npy = state;
    if (npy->file)
        fclose(npy->file);
    tess_block_free(&npy->plane);
    tess_small_free(npy);
}

tess_status tess_npy_open(tess_memory *memory, const char *path, tess_image_info *info, void **state,
                          tess_error *error)
{
    tess_npy_file *npy = tess_small_alloc(1, sizeof *npy);
    if (!npy)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    npy->memory = memory;
    tess_status status = TESS_OK;
    int64_t offset = 0;
    npy->file = fopen(path, "rb");
    if (!npy->file)
        status = tess_fail(error, TESS_IO_FAILED, "cannot be opened for reading (%s)", strerror(errno));
    if (status == TESS_OK)
        status = tess_npy_read_header(npy->file, &npy->header, &offset, error);
    if (status == TESS_OK)
        status = describe(npy, info, offset, error);
    if (status == TESS_OK)
        *state = npy;
    else
        tess_npy_close(npy);
    return status;
}

bool tess_npy_samples(tess_npy_file *npy, void *to, int64_t samples)
{
    int size = npy->header.size;
    if (fread(to, (size_t)size, (size_t)samples, npy->file) != (size_t)samples)
        return false;
    tess_npy_swap(&npy->header, to, samples);
    return true;
}

/* *beyond: a sample is too large for a float. */
static bool read_as_float(tess_npy_file *npy, float *to, int64_t samples, bool *beyond)
{
    union {
        double f8[PIECE];
        uint16_t f2[PIECE];
    } piece;
    for (int64_t done = 0; done < samples; done += PIECE) {
        int64_t count = tess_min_i64(PIECE, samples - done);
        if (!tess_npy_samples(npy, &piece, count))
            return false;
        for (int64_t i = 0; i < count; i++) {
            to[done + i] = npy->header.size == 8 ? (float)piece.f8[i] : tess_half_to_float(piece.f2[i]);
            *beyond = *beyond || (npy->header.size == 8 && tess_beyond_float(piece.f8[i]));
        }
    }
    return true;
}

/* Rows are moved in any order; mostly the next ones. */
static bool go_to(tess_npy_file *npy, int64_t row)
{
    const int64_t row_bytes = npy->row_samples * npy->header.size;
    return row == npy->next || fseeko(npy->file, (off_t)(npy->offset + row * row_bytes), SEEK_SET) == 0;
}

static tess_status read_rows(void *state, int64_t first, int64_t count, void *rows, tess_error *error)
{
    tess_npy_file *npy = state;
    if (npy->planar)
        return tess_npy_read_planes(npy, first, count, rows, error);
    bool beyond = false;
    int64_t samples = npy->row_samples * count;
    const bool there = go_to(npy, first);
    npy->next = first + count;
    if (there &&
        (npy->as_float ? read_as_float(npy, rows, samples, &beyond) : tess_npy_samples(npy, rows, samples)))
        return beyond ? tess_fail_beyond_float(error) : TESS_OK;
    return tess_fail(error, TESS_IO_FAILED, "cannot be read after row %lld of %lld (%s)", (long long)first,
                     (long long)npy->height, ferror(npy->file) ? strerror(errno) : "the file became shorter");
}

static const char *descr_of(tess_dtype dtype)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (kinds[k].dtype == dtype && kinds[k].descr)
            return kinds[k].descr;
    return NULL;
}

static tess_status accepts(const char *target, const tess_image_info *info, tess_error *error)
{
    (void)target;
    if (!descr_of(info->dtype))
        return tess_fail(error, TESS_BAD_OPTION, "images of %s are not written to NPY; use float32",
                         tess_dtype_word(info->dtype));
    return TESS_OK;
}

static size_t held_bytes(const char *target, const tess_image_info *info)
{
    (void)target;
    return info->axes == TESS_AXES_CHW ? tess_npy_plane_bytes(info->width, (int)tess_dtype_size(info->dtype))
                                       : 0;
}

/* The sizes in the order in which they are written. */
static void shape_of(const tess_image_info *info, tess_npy_header *header)
{
    const bool channels = info->channels > 1 || info->axes == TESS_AXES_HWC || info->axes == TESS_AXES_DHWC;
    int64_t *side = header->shape;
    if (info->depth > 0)
        *side++ = info->depth;
    if (info->axes == TESS_AXES_CHW)
        *side++ = info->channels;
    *side++ = info->height;
    *side++ = info->width;
    if (channels && info->axes != TESS_AXES_CHW)
        *side++ = info->channels;
    header->rank = (int)(side - header->shape);
}

static tess_status create_writer(const tess_create *create, void **state, tess_error *error)
{
    const tess_image_info *info = create->info;
    const char *descr = descr_of(info->dtype);
    const char *order = descr[0] == '|' ? "" : __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "<" : ">";
    char head[256], shape[128];
    tess_npy_file *npy = tess_small_alloc(1, sizeof *npy);
    if (!npy)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    npy->memory = create->memory;
    npy->header.size = (int)tess_dtype_size(info->dtype);
    shape_of(info, &npy->header);
    tess_npy_shape(&npy->header, shape, sizeof shape);
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    int length =
        10 + snprintf(head + 10, sizeof head - 10, "{'descr': '%s%s', 'fortran_order': False, 'shape': %s, }",
                      order, descr, shape);
    size_t whole = tess_align_size((size_t)length + 1, 64);
    memset(head + length, ' ', whole - (size_t)length);
    head[whole - 1] = '\n';
    head[8] = (char)(whole - 10);
    head[9] = 0;
    lay_out(npy, info, (int64_t)whole);
    npy->file = fopen(create->temp, create->part ? "r+b" : "wb");
    npy->next = create->part ? -1 : 0;
    if (!npy->file || (!create->part && fwrite(head, 1, whole, npy->file) != whole)) {
        tess_status status = tess_fail(error, TESS_IO_FAILED, "cannot be written (%s)", strerror(errno));
        tess_npy_close(npy);
        return status;
    }
    *state = npy;
    return TESS_OK;
}

static tess_status write_rows(void *state, int64_t first, int64_t count, const void *rows, tess_error *error)
{
    tess_npy_file *npy = state;
    if (npy->planar)
        return tess_npy_write_planes(npy, first, count, rows, error);
    size_t samples = (size_t)(npy->row_samples * count);
    const bool there = go_to(npy, first);
    npy->next = first + count;
    if (there && fwrite(rows, (size_t)npy->header.size, samples, npy->file) == samples)
        return TESS_OK;
    return tess_fail(error, TESS_IO_FAILED, "cannot be written after row %lld of %lld (%s)", (long long)first,
                     (long long)npy->height, strerror(errno));
}

static tess_status finish(void *state, tess_error *error)
{
    tess_npy_file *npy = state;
    FILE *file = npy->file;
    npy->file = NULL;
    if (fclose(file) != 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be written (%s)", strerror(errno));
    return TESS_OK;
}

const tess_read_format tess_read_npy = {
    .name = "NPY", .open = tess_npy_open, .rows = read_rows, .close = tess_npy_close, .any_order = true};
const tess_write_format tess_write_npy = {.name = "NPY",
                                          .like_format = &tess_read_npy,
                                          .accepts = accepts,
                                          .held_bytes = held_bytes,
                                          .create = create_writer,
                                          .rows = write_rows,
                                          .finish = finish,
                                          .takes_parts = true,
                                          .close = tess_npy_close};
