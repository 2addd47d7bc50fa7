/* weights.h: a weight file as a list of named tensors, treated as hostile input.
 *
 * safetensors and PyTorch's .pth (zip and legacy stream) have the same interface. Opening reads only the
 * directory and checks every size against the file's. Values are read in pieces and converted to fp32, so that
 * a caller can pack them without ever holding a whole file or even a whole tensor. Files are read, not mapped:
 * mapped pages would count as our memory. */
#ifndef TESS_WEIGHTS_WEIGHTS_H
#define TESS_WEIGHTS_WEIGHTS_H

#include "base/memory.h"
#include "base/status.h"
#include "tensor/tensor.h"

enum { TESS_WEIGHT_RANK = 8 };

typedef struct tess_weight {
    char *name;
    tess_dtype dtype; /* as stored */
    int rank;
    int64_t dims[TESS_WEIGHT_RANK];
    int64_t strides[TESS_WEIGHT_RANK]; /* in elements; row-major, except in some .pth files */
    int64_t elements;
    uint64_t offset; /* of the first element, in the file */
} tess_weight;

typedef struct tess_weights tess_weights; /* owned by the caller: tess_weights_close */

/* Detects the format from the content, not from the name. */
tess_status tess_weights_open(const char *path, tess_weights **out, tess_error *error) TESS_MUST_CHECK;
/* The same, with every tensor of a .pth under all the keys that lead to it, joined with points: for files that hold the
 * parts of something larger than one network, which tess_weights_open would search for a state dict. */
tess_status tess_weights_open_nested(const char *path, tess_weights **out, tess_error *error) TESS_MUST_CHECK;
void tess_weights_close(tess_weights *weights);

const char *tess_weights_path(const tess_weights *weights);
const char *tess_weights_format(const tess_weights *weights); /* "safetensors", "pth (zip)", ..., "random" */
int64_t tess_weights_count(const tess_weights *weights);
const tess_weight *tess_weights_at(const tess_weights *weights, int64_t index);
/* Returns NULL when there is no such tensor. */
const tess_weight *tess_weights_find(const tess_weights *weights, const char *name);

/* Weights without a file: tensors are added by name and shape, and their values are generated when they are
 * read, so a network of any size needs no disk and no memory. The same path and seed give the same values. */
typedef struct tess_weight_draw {
    float mean, deviation;
    bool positive; /* absolute values: for variances */
} tess_weight_draw;

tess_status tess_weights_synthetic(const char *path, uint64_t seed, tess_weights **out,
                                   tess_error *error) TESS_MUST_CHECK;
tess_status tess_weights_draw(tess_weights *weights, const char *name, int rank, const int64_t *dims,
                              tess_weight_draw draw, tess_error *error) TESS_MUST_CHECK;
/* Call after the last tensor was added; then tensors can be found and read. */
tess_status tess_weights_drawn(tess_weights *weights, tess_error *error) TESS_MUST_CHECK;

/* Weights whose values are held elsewhere, as those of a network that is being trained. They are fetched in pieces when they
 * are read, so that no copy is held. `tensor` counts the tensors in the order in which they were added. */
typedef tess_status (*tess_weights_fetch)(void *user, int64_t tensor, int64_t first, int64_t count,
                                          void *values, tess_error *error); /* fp32; fp64 of an F64 tensor */
tess_status tess_weights_fetched(const char *path, tess_weights_fetch fetch, void *user, tess_weights **out,
                                 tess_error *error) TESS_MUST_CHECK;
/* `dtype` F32, F16 or F64: as the values are stored in a file that is written from these weights. Call
 * tess_weights_drawn after the last one. */
tess_status tess_weights_add_fetched(tess_weights *weights, const char *name, int rank, const int64_t *dims,
                                     tess_dtype dtype, tess_error *error) TESS_MUST_CHECK;

/* Text that a safetensors file holds beside its tensors. NULL when there is none of that name. */
const char *tess_weights_metadata(const tess_weights *weights, const char *key);
tess_status tess_weights_set_metadata(tess_weights *weights, const char *key, const char *text,
                                      tess_error *error) TESS_MUST_CHECK;

/* Presents the weights of a 2-D network as those of a 3-D one, computed when they are read: see
 * weights_inflate.c. `whole`, which may be NULL, returns true for the names of even kernels that are not
 * halved. Takes ownership of `flat`, even when it fails. */
tess_status tess_weights_inflate(tess_weights *flat, bool (*whole)(const char *name), tess_weights **out,
                                 tess_error *error) TESS_MUST_CHECK;
/* The 2-D weights that these were made from, or NULL. */
tess_weights *tess_weights_flat(tess_weights *weights);

/* Reads elements [first, first+count) in row-major order as fp32. Accepts F32, F16, BF16, F64 and integers. */
tess_status tess_weights_read(tess_weights *weights, const tess_weight *weight, int64_t first, int64_t count,
                              float *values, tess_error *error) TESS_MUST_CHECK;
/* The same as fp64: tensors of F64 lose nothing. */
tess_status tess_weights_read_doubles(tess_weights *weights, const tess_weight *weight, int64_t first,
                                      int64_t count, double *values, tess_error *error) TESS_MUST_CHECK;

/* What writing such a file holds. */
size_t tess_safetensors_bytes(void);
/* Writes every tensor of `weights` and its metadata to a safetensors file: row-major, types kept (temporary name, then
 * renamed). */
tess_status tess_safetensors_write(tess_memory *memory, const char *path, tess_weights *weights,
                                   tess_error *error) TESS_MUST_CHECK;

#endif
