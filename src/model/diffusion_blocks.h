/* diffusion_blocks.h: the order of the blocks of a diffusion network, which its recognition and its random weights share. */
#ifndef TESS_MODEL_DIFFUSION_BLOCKS_H
#define TESS_MODEL_DIFFUSION_BLOCKS_H

#include "model/architecture.h"

enum { TESS_DIFFUSION_BLOCKS = 16 }; /* most residual blocks at a scale */

typedef enum tess_diffusion_kind {
    TESS_DIFFUSION_CONV,      /* the first layer */
    TESS_DIFFUSION_RESIDUAL,  /* two convolutions with norms */
    TESS_DIFFUSION_ATTENTION, /* over all pixels */
    TESS_DIFFUSION_END        /* a norm and a convolution to one channel */
} tess_diffusion_kind;

typedef struct tess_diffusion_block {
    tess_diffusion_kind kind;
    tess_name name; /* of its tensors, up to the last part */
    int64_t in, out;
    int resample; /* RESIDUAL: 1 halves the image, -1 doubles it */
    bool
        joins; /* its input is concatenated with the last output that was saved and not yet used; `in` counts both */
    bool saves; /* its output is saved for the second half */
} tess_diffusion_block;

/* Calls visit for each block in the order of the forward pass, until it returns false. */
typedef bool (*tess_diffusion_visit)(void *user, const tess_diffusion_block *block);
void tess_diffusion_each(const tess_model_shape *shape, const char *prefix, tess_diffusion_visit visit,
                         void *user);

/* Channels of an attention head, and groups of the norms. */
int64_t tess_diffusion_head(const tess_model_shape *shape);
int64_t tess_diffusion_groups(const tess_model_shape *shape);

/* What the names of the network's tensors begin with; NULL when the file has no such network, complete or not. */
const char *tess_diffusion_prefix(const tess_weights *weights);
/* Reads the shape of the network from names and shapes. Fails when they fit no network of this kind; other tensors that
 * are missing or misshapen are found when layers are added. */
tess_status tess_diffusion_shape(const tess_weights *weights, const char *prefix, tess_model_shape *shape,
                                 tess_error *error) TESS_MUST_CHECK;

#endif
