/* Images in the device's memory: nothing passes through the host. With the caller's stream the work is enqueued
 * there, and the call returns at once. */
#include "job/library/library.h"
#include "window/resident.h"

static tess_tensor tensor_of(const tess_denoiser *plan, const tess_image *image)
{
    tess_tensor t =
        tess_tensor_3d(plan->type.dtype, 1, image->depth, image->height, image->width, image->channels);
    t.stride_d = image->stride_depth;
    t.stride_h = image->stride_height;
    t.stride_w = image->stride_width;
    return t;
}

tess_status tess_denoiser_run_resident(tess_denoiser *plan, const tess_image *in, const tess_image *out,
                                       tess_stream *stream, tess_error *error)
{
    tess_device *device = plan->model->opened->engine.device;
    const tess_cut *cut = &plan->cut;
    if (in->data == out->data && cut->axis[TESS_HEIGHT].tiles * cut->axis[TESS_WIDTH].tiles > 1)
        return tess_fail(error, TESS_BAD_OPTION,
                         "tess_denoiser_run: the plan has several windows; on the device `out` must then be "
                         "another image than `in`");
    if (device->host_memory && stream)
        return tess_fail(error, TESS_BAD_OPTION, "tess_denoiser_run: the CPU has no streams; pass NULL");
    const tess_resident images = {.in = tensor_of(plan, in),
                                  .out = tensor_of(plan, out),
                                  .in_channel_stride = in->stride_channel,
                                  .out_channel_stride = out->stride_channel,
                                  .in_data = in->data,
                                  .out_data = out->data,
                                  .full_scale = plan->type.scale.high,
                                  .level_channel = plan->model->loaded.model.noise_map,
                                  .level = tess_denoiser_level(plan, 0)};
    TESS_TRY(tess_windows_run_resident(plan->windows, &plan->net, cut, &images, stream, error));
    return stream ? TESS_OK : device->streams->sync(device, NULL, error);
}
