/* cube_npy.c: NPY arrays as cubes: which axis is which, and where it lies in the file.
 *
 * A cube is (height, width, bands), several are (count, height, width, bands); any other order must be named. An array
 * in Fortran order is one in C order with its axes reversed, so it needs no code of its own. */
#define _XOPEN_SOURCE 700
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "io/cube_impl.h"
#include "io/npy.h"

static const struct {
    char kind;
    int size;
    tess_dtype dtype;
    bool only_mask;
} kinds[] = {
    {'u', 1, TESS_U8, false},  {'u', 2, TESS_U16, false}, {'i', 2, TESS_I16, false},
    {'u', 4, TESS_U32, false}, {'i', 4, TESS_I32, false}, {'f', 4, TESS_F32, false},
    {'f', 8, TESS_F64, false}, {'b', 1, TESS_BOOL, true}, {'i', 1, TESS_I8, true},
    {'i', 8, TESS_I64, true},  {'u', 8, TESS_I64, true},  {'f', 2, TESS_F16, true},
};

static tess_status find_kind(tess_cube *cube, const tess_npy_header *header, tess_error *error)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (kinds[k].kind == header->kind && kinds[k].size == header->size &&
            (cube->mask || !kinds[k].only_mask)) {
            cube->info.dtype = kinds[k].dtype;
            cube->array.sample_bytes = header->size;
            cube->real = header->kind == 'f';
            return TESS_OK;
        }
    char type[32];
    tess_npy_type(header, type, sizeof type);
    return tess_fail(
        error, TESS_UNSUPPORTED,
        "holds samples of type %s; save it as uint8, uint16, int16, uint32, int32, float32 or float64", type);
}

/* The usual order of so many axes; NULL: there is none. */
static const char *usual_order(const tess_npy_header *header, bool mask)
{
    const bool one = header->rank > 0 && header->shape[header->rank - 1] == 1;
    if (mask)
        return header->rank == 2          ? "HW"
               : header->rank == 3        ? (one ? "HWC" : "BHW")
               : header->rank == 4 && one ? "BHWC"
                                          : NULL;
    return header->rank == 3 ? "HWC" : header->rank == 4 ? "BHWC" : NULL;
}

/* Letters B, H, W, C at most once each, with H and W, and B only in front: images are read one at a time. */
static tess_status check_order(const char *given, char order[5], tess_error *error)
{
    const size_t length = strlen(given);
    bool good = length >= 2 && length <= 4;
    for (size_t i = 0; good && i < length; i++) {
        order[i] = (char)toupper((unsigned char)given[i]);
        good = strchr("BHWC", order[i]) && !memchr(order, order[i], i) && (order[i] != 'B' || i == 0);
    }
    order[good ? length : 0] = '\0';
    if (good && strchr(order, 'H') && strchr(order, 'W'))
        return TESS_OK;
    return tess_fail(
        error, TESS_BAD_OPTION,
        "`axes` %s: name each axis of the array once, by H (height), W (width), C (bands) and, first, B "
        "(several cubes): HWC, CHW, BHWC",
        given);
}

static tess_status find_order(const tess_npy_header *header, const char *axes, bool mask, char order[5],
                              tess_error *error)
{
    char shape[128];
    tess_npy_shape(header, shape, sizeof shape);
    const bool given = axes && !mask && strcasecmp(axes, "auto") != 0;
    if (!given) {
        const char *usual = usual_order(header, mask);
        if (usual)
            return check_order(usual, order, error);
        return tess_fail(error, TESS_BAD_INPUT, "has the shape %s; %s", shape,
                         mask
                             ? "a mask is (height, width), or (count, height, width) for several cubes"
                             : "a cube is (height, width, bands), several are (count, height, width, bands); "
                               "other orders are named by `axes`");
    }
    TESS_TRY(check_order(axes, order, error));
    if ((int)strlen(order) != header->rank)
        return tess_fail(error, TESS_BAD_INPUT, "has the shape %s, %d axes, but `axes` %s names %d", shape,
                         header->rank, order, (int)strlen(order));
    return TESS_OK;
}

static tess_status describe(tess_cube *cube, const tess_npy_header *header, const char *axes,
                            tess_error *error)
{
    tess_cube_info *info = &cube->info;
    char order[5];
    TESS_TRY(find_kind(cube, header, error));
    TESS_TRY(find_order(header, axes, cube->mask, order, error));
    *info = (tess_cube_info){.count = 1, .bands = 1, .dtype = info->dtype, .scale = 1};
    const int rank = header->rank;
    for (int i = 0; i < rank; i++) {
        const int64_t size = header->shape[i];
        if (order[i] == 'B')
            info->count = size;
        else if (order[i] == 'H')
            info->height = size;
        else if (order[i] == 'W')
            info->width = size;
        else
            info->bands = (int)size;
        info->stored[header->fortran ? rank - 1 - i : i] = order[i];
    }
    cube->colours = info->bands;
    /* The images of such a file lie in each other. */
    if (header->fortran && order[0] == 'B' && info->count > 1)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "is stored column by column (fortran_order); save it with numpy.ascontiguousarray");
    if (header->fortran && order[0] == 'B') { /* an axis of size 1 may be anywhere */
        memmove(info->stored + 1, info->stored, (size_t)rank - 1);
        info->stored[0] = 'B';
    }
    return TESS_OK;
}

tess_status tess_cube_npy(tess_cube *cube, const char *axes, tess_error *error)
{
    tess_npy_header header;
    int64_t offset = 0;
    FILE *file = fopen(cube->path, "rb");
    if (!file)
        return tess_fail(error, TESS_IO_FAILED, "cannot be opened for reading (%s)", strerror(errno));
    tess_status status = tess_npy_read_header(file, &header, &offset, error);
    if (status == TESS_OK)
        status = tess_npy_check_size(file, &header, offset, error);
    fclose(file);
    if (status == TESS_OK)
        status = describe(cube, &header, axes, error);
    return status == TESS_OK ? tess_cube_array_open(cube, offset, header.swapped, error) : status;
}
