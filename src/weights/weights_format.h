/* weights_format.h: declarations shared by the weight-file formats, private to weights*.c, safetensors*.c,
 * pickle*.c and pth*.c.
 *
 * A format is one function: it reads its directory from the open file and adds the tensors that it finds.
 * Everything else (finding by name, reading pieces, gathering strides, converting) uses only file offsets.
 * Messages of these functions do not contain the file's name: tess_weights_open and tess_weights_read add it. */
#ifndef TESS_WEIGHTS_WEIGHTS_FORMAT_H
#define TESS_WEIGHTS_WEIGHTS_FORMAT_H

#include "base/json.h"
#include "weights/weights.h"

/* Limits on what a directory may request, far above every real file. */
enum {
    TESS_WEIGHTS_MAX = 100000,   /* tensors */
    TESS_WEIGHT_NAME_MAX = 1024, /* bytes */
    TESS_WEIGHTS_SHARED = 4, /* times the file's size: limit on all tensors, shared values counted again */
    TESS_WEIGHTS_SMALL = 1 << 20,     /* total bytes that are allowed in any file */
    TESS_WEIGHTS_PIECE = 64 << 10,    /* bytes read at once when values are converted or gathered */
    TESS_DIRECTORY_MAX = 64 << 20,    /* bytes of a pickle, or of a zip's central directory */
    TESS_SAFETENSORS_MAX = 100000000, /* bytes of a header; the format itself has this limit */
};

struct tess_weights {
    char *path;
    int fd;
    uint64_t bytes; /* of the file */
    const char *format;
    tess_weight *list; /* owns the names */
    int64_t count, capacity;
    const tess_weight **by_name; /* sorted, once the directory is read */
    tess_weight_draw *draws;     /* for synthetic weights, in the order of the list; NULL for a file */
    uint64_t seed;
    tess_weights_fetch fetch; /* for weights that are held elsewhere; NULL for a file */
    void *fetch_user;
    tess_json *metadata; /* object of strings, or NULL; owned */
    tess_weights *flat;  /* for an inflated network: the 2-D weights, owned */
    bool (*whole)(const char *name);
    bool nested; /* all tensors of a .pth, not those of one network */
    _Alignas(8) unsigned char piece[TESS_WEIGHTS_PIECE];
};

/* A weights object without file or tensors. */
tess_status tess_weights_begin(const char *path, tess_weights **out, tess_error *error) TESS_MUST_CHECK;
/* Sorts the names for lookup, after all tensors were added. Duplicate names are an error. */
tess_status tess_weights_sort(tess_weights *weights, tess_error *error) TESS_MUST_CHECK;
/* Generates elements of a synthetic tensor. */
void tess_weights_draw_values(const tess_weights *weights, const tess_weight *weight, int64_t first,
                              int64_t count, float *values);

/* Fetches elements of a tensor that is held elsewhere, in their stored type. */
tess_status tess_weights_fetch_values(const tess_weights *weights, const tess_weight *weight, int64_t first,
                                      int64_t count, void *stored, tess_error *error) TESS_MUST_CHECK;

/* Computes elements of an inflated tensor. */
tess_status tess_weights_inflate_values(tess_weights *weights, const tess_weight *weight, int64_t first,
                                        int64_t count, float *values, tess_error *error) TESS_MUST_CHECK;
/* True for a kernel whose side slices were all set to one constant. */
bool tess_weights_inflated_side(const tess_weights *weights, const tess_weight *weight, float *side);

/* Reads the directory. On failure, tess_weights_close frees what was added so far. */
tess_status tess_safetensors_directory(tess_weights *weights, tess_error *error) TESS_MUST_CHECK;
tess_status tess_pth_zip_directory(tess_weights *weights, tess_error *error) TESS_MUST_CHECK;
tess_status tess_pth_legacy_directory(tess_weights *weights, tess_error *error) TESS_MUST_CHECK;

/* Adds a copy of `weight`. Its name is the `length` bytes at `name`, which must be UTF-8 without control
 * characters. */
tess_status tess_weights_add(tess_weights *weights, const char *name, size_t length,
                             const tess_weight *weight, tess_error *error) TESS_MUST_CHECK;

/* Reads `bytes` at `offset`, or fails: the end of the file is checked first. */
tess_status tess_weights_bytes(const tess_weights *weights, uint64_t offset, void *data, size_t bytes,
                               tess_error *error) TESS_MUST_CHECK;

/* Reads elements [first, first+count) in row-major order, in their stored type. */
tess_status tess_weights_read_stored(tess_weights *weights, const tess_weight *weight, int64_t first,
                                     int64_t count, void *stored, tess_error *error) TESS_MUST_CHECK;

/* Computes row-major strides and the element count from rank and dims; false when a size is negative or the
 * count overflows. */
bool tess_weight_row_major(tess_weight *weight);

static inline uint64_t tess_le(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

#endif
