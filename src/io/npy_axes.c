/* npy_axes.c: the meaning of an array's axes.
 *
 * An .npy file has a shape but no names for its axes. Arrays of images are (H, W) or (H, W, C) with few
 * channels, arrays of volumes (D, H, W): the sizes distinguish them. (C, H, W), PyTorch's order for images,
 * looks like a thin volume; either choice could give a plausible but wrong result, so the user must specify it. */
#include <stdio.h>

#include "io/npy.h"

enum { MOST_CHANNELS = 4, MOST_IN_PICTURE = 16 };

static const struct {
    const char *name, *words;
    int rank, depth, height, width, channels; /* positions in the shape; -1: none */
} orders[] = {
    [TESS_AXES_HW] = {"HW", "(height, width)", 2, -1, 0, 1, -1},
    [TESS_AXES_HWC] = {"HWC", "(height, width, channels)", 3, -1, 0, 1, 2},
    [TESS_AXES_CHW] = {"CHW", "(channels, height, width)", 3, -1, 1, 2, 0},
    [TESS_AXES_DHW] = {"DHW", "(depth, height, width)", 3, 0, 1, 2, -1},
    [TESS_AXES_DHWC] = {"DHWC", "(depth, height, width, channels)", 4, 0, 1, 2, 3},
    [TESS_AXES_PLAIN] = {NULL, NULL, 0, -1, -1, -1, -1},
    [TESS_AXES_PICTURE] = {NULL, NULL, 0, -1, -1, -1, -1},
};

const char *tess_axes_name(tess_axes axes)
{
    return orders[axes].name ? orders[axes].name : "";
}

void tess_npy_shape(const tess_npy_header *header, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "(");
    for (int i = 0; i < header->rank && used < bytes; i++)
        used +=
            (size_t)snprintf(text + used, bytes - used, "%s%lld", i ? ", " : "", (long long)header->shape[i]);
    if (used < bytes)
        snprintf(text + used, bytes - used, header->rank == 1 ? ",)" : ")");
}

static bool few(int64_t side)
{
    return side <= MOST_CHANNELS;
}

/* True for three axes of which the first is short and the last is not. */
static bool looks_planar(const tess_npy_header *header)
{
    const int64_t *shape = header->shape;
    return header->rank == 3 && !few(shape[2]) && few(shape[0]) && shape[1] > shape[0] && shape[2] > shape[0];
}

static tess_status guess(const tess_npy_header *header, tess_axes *out, tess_error *error)
{
    char shape[128];
    const int64_t *side = header->shape;
    tess_npy_shape(header, shape, sizeof shape);
    if (header->rank < 2 || header->rank > 4)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "has %d dimension(s); an image is (height, width) or (height, width, channels), a volume "
            "(depth, height, width)",
            header->rank);
    if (header->rank == 4 && !few(side[3]))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "has 4 dimensions, %s; a volume of colours is (depth, height, width, channels) with 1 to %d "
            "channels",
            shape, MOST_CHANNELS);
    if (looks_planar(header))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "its shape %s looks like (channels, height, width); give `axes` CHW, or `axes` DHW if it "
            "is a volume of %lld slice(s)",
            shape, (long long)side[0]);
    *out = header->rank == 4   ? TESS_AXES_DHWC
           : header->rank == 2 ? TESS_AXES_HW
           : few(side[2])      ? TESS_AXES_HWC
                               : TESS_AXES_DHW;
    return TESS_OK;
}

static tess_status plain(const tess_npy_header *header, bool picture, tess_axes *out, tess_error *error)
{
    char shape[128];
    tess_npy_shape(header, shape, sizeof shape);
    if (header->rank != 2 && header->rank != 3)
        return tess_fail(error, TESS_BAD_INPUT, "has %d dimension(s); two or three are read here",
                         header->rank);
    if (picture && looks_planar(header))
        return tess_fail(error, TESS_BAD_INPUT,
                         "its shape %s looks like (channels, height, width); a picture is (height, width) or "
                         "(height, width, channels): move its first axis to the end",
                         shape);
    if (picture && header->rank == 3 && header->shape[2] > MOST_IN_PICTURE)
        return tess_fail(error, TESS_BAD_INPUT,
                         "its shape %s would be a picture of %lld channels; a picture is (height, width) or "
                         "(height, width, channels), and more than %d channels need \"axes\": \"HWC\" in the "
                         "problem file: move the channels to the end if they are elsewhere",
                         shape, (long long)header->shape[2], MOST_IN_PICTURE);
    *out = header->rank == 3 ? TESS_AXES_HWC : TESS_AXES_HW;
    return TESS_OK;
}

/* The `axes` that an array of this rank may have. */
static const char *axes_for(int rank)
{
    return rank == 2   ? "`axes` HW"
           : rank == 3 ? "`axes` HWC or CHW for an image with channels, DHW for a volume"
           : rank == 4 ? "`axes` DHWC"
                       : "an array of two to four dimensions";
}

tess_status tess_npy_axes(const tess_npy_header *header, tess_image_info *info, tess_error *error)
{
    tess_axes taken = info->axes;
    char shape[128];
    if (taken == TESS_AXES_AUTO)
        TESS_TRY(guess(header, &taken, error));
    else if (taken == TESS_AXES_PLAIN || taken == TESS_AXES_PICTURE)
        TESS_TRY(plain(header, taken == TESS_AXES_PICTURE, &taken, error));
    tess_npy_shape(header, shape, sizeof shape);
    if (header->rank != orders[taken].rank)
        return tess_fail(error, TESS_BAD_INPUT,
                         "has %d dimension(s), %s, but `axes` %s takes an array of %d: %s; give %s",
                         header->rank, shape, orders[taken].name, orders[taken].rank, orders[taken].words,
                         axes_for(header->rank));
    info->axes = taken;
    info->depth = orders[taken].depth < 0 ? 0 : header->shape[orders[taken].depth];
    info->height = header->shape[orders[taken].height];
    info->width = header->shape[orders[taken].width];
    info->channels = orders[taken].channels < 0 ? 1 : (int)header->shape[orders[taken].channels];
    return TESS_OK;
}
