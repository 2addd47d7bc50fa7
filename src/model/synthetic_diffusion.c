/* Random weights of a diffusion network. Norms set the size of what follows them, so that kernels need no care but in the
 * layers whose result is added to a residual path. */
#include <math.h>
#include <stdio.h>

#include "model/diffusion_blocks.h"
#include "model/synthetic_impl.h"

static const float SMALL = 0.2f; /* gain of a layer whose result is added to a residual path */

/* A kernel of side x side and its bias; of rank 2 and 3 in the file, it has one tap. */
static void kernel(tess_drawer *d, tess_name layer, int64_t in, int64_t out, int side, int rank, float gain)
{
    const int64_t dims[] = {out, in, side, side};
    tess_draw(d, layer.text, "weight", rank, dims,
              (tess_weight_draw){.deviation = sqrtf(gain / (float)(in * side * side))});
    tess_draw(d, layer.text, "bias", 1, &out, (tess_weight_draw){.deviation = 0.02f});
}

static void norm(tess_drawer *d, tess_name layer, int64_t channels)
{
    tess_draw(d, layer.text, "weight", 1, &channels, (tess_weight_draw){1, 0.1f, false});
    tess_draw(d, layer.text, "bias", 1, &channels, (tess_weight_draw){0, 0.1f, false});
}

/* What the visitor needs. */
typedef struct context {
    tess_drawer *drawer;
    int64_t hidden;
} context;

static void residual(const context *c, const tess_diffusion_block *block)
{
    const char *name = block->name.text;
    tess_drawer *d = c->drawer;
    norm(d, tess_name_of(name, ".in_layers.0"), block->in);
    kernel(d, tess_name_of(name, ".in_layers.2"), block->in, block->out, 3, 4, 2);
    kernel(d, tess_name_of(name, ".emb_layers.1"), c->hidden, 2 * block->out, 1, 2, 0.5f);
    norm(d, tess_name_of(name, ".out_layers.0"), block->out);
    kernel(d, tess_name_of(name, ".out_layers.3"), block->out, block->out, 3, 4, SMALL);
    if (block->in != block->out)
        kernel(d, tess_name_of(name, ".skip_connection"), block->in, block->out, 1, 4, 1);
}

static bool draw_block(void *user, const tess_diffusion_block *block)
{
    const context *c = user;
    const char *name = block->name.text;
    switch (block->kind) {
    case TESS_DIFFUSION_CONV:
        kernel(c->drawer, block->name, block->in, block->out, 3, 4, 1);
        break;
    case TESS_DIFFUSION_RESIDUAL:
        residual(c, block);
        break;
    case TESS_DIFFUSION_ATTENTION:
        norm(c->drawer, tess_name_of(name, ".norm"), block->in);
        kernel(c->drawer, tess_name_of(name, ".qkv"), block->in, 3 * block->out, 1, 3, 1);
        kernel(c->drawer, tess_name_of(name, ".proj_out"), block->in, block->out, 1, 3, SMALL);
        break;
    case TESS_DIFFUSION_END:
        norm(c->drawer, tess_name_of(name, ".0"), block->in);
        kernel(c->drawer, tess_name_of(name, ".2"), block->in, block->out, 3, 4, 1);
        break;
    }
    return c->drawer->status == TESS_OK;
}

/* Numbers that names and shapes do not tell go into the metadata. */
static void note(tess_drawer *d, const char *key, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    if (number && d->status == TESS_OK)
        d->status = tess_weights_set_metadata(d->weights, key, text, d->error);
}

void tess_draw_diffusion(tess_drawer *d, const tess_model_shape *shape)
{
    const char *prefix = "denoise_fn.";
    const int64_t levels = shape->widths[0], hidden = 4 * levels;
    kernel(d, tess_name_of(prefix, "cond_embed.0"), levels, hidden, 1, 2, 2);
    kernel(d, tess_name_of(prefix, "cond_embed.2"), hidden, hidden, 1, 2, 2);
    tess_diffusion_each(shape, prefix, draw_block, &(context){d, hidden});
    note(d, "num_head_channels", shape->head_channels);
    note(d, "num_groups", shape->groups);
}
