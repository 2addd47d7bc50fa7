#include "model/describe.h"

#include "model/diffusion_blocks.h"

tess_status tess_describe(tess_weights *weights, tess_described *out, tess_error *error)
{
    *out = (tess_described){0};
    if (tess_diffusion_prefix(weights)) {
        TESS_TRY(tess_diffusion_recognise(weights, &out->diffusion, error));
        out->architecture = "diffusion";
        out->channels = out->diffusion.channels;
        out->parameters = out->diffusion.parameters;
        out->net = out->diffusion.step;
        return TESS_OK;
    }
    TESS_TRY(tess_model_recognise(weights, &out->model, error));
    out->architecture = out->model.architecture;
    out->channels = out->model.channels;
    out->parameters = out->model.parameters;
    out->net = out->model.net;
    return TESS_OK;
}

void tess_described_clear(tess_described *described)
{
    tess_model_clear(&described->model);
    tess_diffusion_clear(&described->diffusion);
    *described = (tess_described){0};
}
