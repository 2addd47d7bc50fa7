/* weights_format.h: what the weight-file formats share, private to weights*.c, safetensors*.c, pickle.c and
 * pth*.c.
 *
 * A format's part is one function: it reads its directory from the open file and adds the tensors it finds.
 * Everything that follows (finding by name, reading pieces, gathering strides, converting) knows only file
 * offsets. Messages written below do not carry the file's name: tess_weights_open and tess_weights_read put
 * it in front. */
#ifndef TESS_WEIGHTS_WEIGHTS_FORMAT_H
#define TESS_WEIGHTS_WEIGHTS_FORMAT_H

#include "weights/weights.h"

/* Bounds on what a directory may ask of us, far above every real file. */
enum {
    TESS_WEIGHTS_MAX = 100000,   /* tensors */
    TESS_WEIGHT_NAME_MAX = 1024, /* bytes */
    TESS_WEIGHTS_SHARED = 4, /* times the file's size: what its tensors may come to, shared values counted */
    TESS_WEIGHTS_SMALL = 1 << 20,     /* bytes that they may come to in any file */
    TESS_WEIGHTS_PIECE = 64 << 10,    /* bytes read at once when values are converted or gathered */
    TESS_DIRECTORY_MAX = 64 << 20,    /* bytes of a pickle, or of a zip's central directory */
    TESS_SAFETENSORS_MAX = 100000000, /* bytes of a header, as the format itself bounds it */
};

struct tess_weights {
    char *path;
    int fd;
    uint64_t bytes; /* of the file */
    const char *format;
    tess_weight *list; /* owns the names */
    int64_t count, capacity;
    const tess_weight **by_name; /* sorted, once the directory is read */
    tess_weight_draw *draws; /* of synthetic weights, in the order of the list; NULL when there is a file */
    uint64_t seed;
    tess_weights *flat; /* of an inflated network: the 2-D one's, owned */
    bool (*whole)(const char *name);
    unsigned char piece[TESS_WEIGHTS_PIECE];
};

/* A weights object without file or tensors. */
tess_status tess_weights_begin(const char *path, tess_weights **out, tess_error *error) TESS_MUST_CHECK;
/* Sorts the names for lookup, once all tensors are there; two of one name are an error. */
tess_status tess_weights_sort(tess_weights *weights, tess_error *error) TESS_MUST_CHECK;
/* Elements of a synthetic tensor. */
void tess_weights_draw_values(const tess_weights *weights, const tess_weight *weight, int64_t first,
                              int64_t count, float *values);

/* Elements of an inflated tensor. */
tess_status tess_weights_inflate_values(tess_weights *weights, const tess_weight *weight, int64_t first,
                                        int64_t count, float *values, tess_error *error) TESS_MUST_CHECK;
/* Is it a kernel whose side slices were all made of one constant? */
bool tess_weights_inflated_side(const tess_weights *weights, const tess_weight *weight, float *side);

/* Fills the directory; on failure what was added so far is freed by tess_weights_close. */
tess_status tess_safetensors_directory(tess_weights *weights, tess_error *error) TESS_MUST_CHECK;
tess_status tess_pth_zip_directory(tess_weights *weights, tess_error *error) TESS_MUST_CHECK;
tess_status tess_pth_legacy_directory(tess_weights *weights, tess_error *error) TESS_MUST_CHECK;

/* Copies `weight`, with a name of `length` bytes at `name`, which must be UTF-8 without control characters.
 */
tess_status tess_weights_add(tess_weights *weights, const char *name, size_t length,
                             const tess_weight *weight, tess_error *error) TESS_MUST_CHECK;

/* All `bytes` at `offset`, or an error: the end of the file is checked first. */
tess_status tess_weights_bytes(const tess_weights *weights, uint64_t offset, void *data, size_t bytes,
                               tess_error *error) TESS_MUST_CHECK;

/* Elements [first, first+count) in row-major order, in their stored type. */
tess_status tess_weights_read_stored(tess_weights *weights, const tess_weight *weight, int64_t first,
                                     int64_t count, void *stored, tess_error *error) TESS_MUST_CHECK;

/* Row-major strides and the element count from rank and dims; false when a size is negative or the count
 * overflows. */
bool tess_weight_row_major(tess_weight *weight);

static inline uint64_t tess_le(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

#endif
