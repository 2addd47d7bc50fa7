/* The blocks of the network, as guided-diffusion numbers them. Each scale has `blocks` residual blocks on the way down and one
 * more on the way up, each followed by attention at some scales; residual blocks also change the scale. */
#include "model/diffusion_blocks.h"

typedef struct walk {
    const tess_model_shape *shape;
    const char *prefix;
    tess_diffusion_visit visit;
    void *user;
    int64_t width; /* of the last output */
    int64_t saved[TESS_MODEL_WIDTHS * (TESS_DIFFUSION_BLOCKS + 1)];
    int saved_count;
    bool stopped;
} walk;

static void visit(walk *w, tess_diffusion_block block)
{
    block.in = w->width;
    if (block.joins)
        block.in += w->saved[--w->saved_count];
    w->stopped = w->stopped || !w->visit(w->user, &block);
    w->width = block.out;
    if (block.saves)
        w->saved[w->saved_count++] = block.out;
}

static void way_down(walk *w)
{
    const tess_model_shape *shape = w->shape;
    int index = 1;
    for (int scale = 0; scale < shape->width_count; scale++) {
        const int64_t width = shape->widths[scale];
        const bool attention = shape->attention[scale];
        for (int i = 0; i < shape->blocks; i++, index++) {
            visit(w, (tess_diffusion_block){.kind = TESS_DIFFUSION_RESIDUAL,
                                            .name = tess_name_of(w->prefix, "input_blocks.%d.0", index),
                                            .out = width,
                                            .saves = !attention});
            if (attention)
                visit(w, (tess_diffusion_block){.kind = TESS_DIFFUSION_ATTENTION,
                                                .name = tess_name_of(w->prefix, "input_blocks.%d.1", index),
                                                .out = width,
                                                .saves = true});
        }
        if (scale + 1 < shape->width_count)
            visit(w, (tess_diffusion_block){.kind = TESS_DIFFUSION_RESIDUAL,
                                            .name = tess_name_of(w->prefix, "input_blocks.%d.0", index++),
                                            .out = width,
                                            .resample = 1,
                                            .saves = true});
    }
}

static void way_up(walk *w)
{
    const tess_model_shape *shape = w->shape;
    int index = 0;
    for (int scale = shape->width_count - 1; scale >= 0; scale--) {
        const int64_t width = shape->widths[scale];
        const bool attention = shape->attention[scale];
        for (int i = 0; i <= shape->blocks; i++, index++) {
            visit(w, (tess_diffusion_block){.kind = TESS_DIFFUSION_RESIDUAL,
                                            .name = tess_name_of(w->prefix, "output_blocks.%d.0", index),
                                            .out = width,
                                            .joins = true});
            if (attention)
                visit(w, (tess_diffusion_block){.kind = TESS_DIFFUSION_ATTENTION,
                                                .name = tess_name_of(w->prefix, "output_blocks.%d.1", index),
                                                .out = width});
            if (i == shape->blocks && scale > 0)
                visit(w, (tess_diffusion_block){
                             .kind = TESS_DIFFUSION_RESIDUAL,
                             .name = tess_name_of(w->prefix, "output_blocks.%d.%d", index, attention ? 2 : 1),
                             .out = width,
                             .resample = -1});
        }
    }
}

void tess_diffusion_each(const tess_model_shape *shape, const char *prefix, tess_diffusion_visit function,
                         void *user)
{
    walk w = {.shape = shape, .prefix = prefix, .visit = function, .user = user, .width = shape->channels};
    visit(&w, (tess_diffusion_block){.kind = TESS_DIFFUSION_CONV,
                                     .name = tess_name_of(prefix, "input_blocks.0.0"),
                                     .out = shape->widths[0],
                                     .saves = true});
    way_down(&w);
    for (int i = 0; i < 3; i++)
        visit(&w, (tess_diffusion_block){.kind = i == 1 ? TESS_DIFFUSION_ATTENTION : TESS_DIFFUSION_RESIDUAL,
                                         .name = tess_name_of(prefix, "middle_block.%d", i),
                                         .out = w.width});
    way_up(&w);
    visit(&w,
          (tess_diffusion_block){.kind = TESS_DIFFUSION_END, .name = tess_name_of(prefix, "out"), .out = 1});
}

int64_t tess_diffusion_head(const tess_model_shape *shape)
{
    return shape->head_channels ? shape->head_channels : 8;
}

int64_t tess_diffusion_groups(const tess_model_shape *shape)
{
    int64_t groups = shape->groups ? shape->groups : 32;
    for (int i = 0; i < shape->width_count; i++)
        while (!shape->groups && shape->widths[i] % groups)
            groups /= 2;
    return groups;
}
