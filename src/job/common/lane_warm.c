/* The first run of everything: kernels and library tables are loaded lazily, and would otherwise look like memory
 * that the plan forgot. Weights are zeros, the image is one small window. */
#include <string.h>

#include "job/common/lane.h"

typedef struct warm_image {
    tess_pixels pixels;
    tess_lane_window window;
    tess_lane_sizes sizes;
    tess_block rows;
} warm_image;

static tess_status describe(tess_memory *memory, warm_image *image, const tess_bound *bound,
                            const tess_net *net, tess_error *error)
{
    const int64_t side = tess_net_grid(net, TESS_HEIGHT);
    tess_net_plan *plan = NULL;
    TESS_TRY(tess_net_plan_create(bound, (tess_plan_shape){1, side, side, TESS_INFER}, &plan, error));
    size_t at;
    const int64_t channels = tess_net_plan_output(plan, &at).c;
    const bool noise_map = tess_net_plan_input(plan, &at).c > channels;
    const size_t samples = (size_t)(side * side * channels);
    image->sizes = (tess_lane_sizes){tess_net_plan_arena_bytes(plan), tess_net_plan_workspace_bytes(plan),
                                     samples, samples};
    tess_net_plan_destroy(plan);
    const tess_axis axis = tess_axis_cut(side, 0, 0, side);
    image->pixels = (tess_pixels){.image = {.height = side,
                                            .width = side,
                                            .channels = (int)channels,
                                            .dtype = TESS_U8,
                                            .full_scale = 255},
                                  .colours = channels,
                                  .planes = 1,
                                  .noise_map = noise_map};
    TESS_TRY(tess_block_alloc(memory, &image->rows, TESS_MEM_HOST, 2 * samples, error));
    image->window = (tess_lane_window){.bound = bound, .pixels = &image->pixels, .cols = axis, .n = 1};
    image->window.strip = (tess_strip){.span = tess_axis_span(&axis, 0),
                                       .count = side,
                                       .out = (char *)image->rows.data + samples,
                                       .in = image->rows.data,
                                       .in_capacity = side,
                                       .image_rows = side,
                                       .in_row_bytes = samples / (size_t)side,
                                       .out_row_bytes = samples / (size_t)side};
    return TESS_OK;
}

tess_status tess_lane_warm(tess_device *device, const tess_bound *bound, const tess_net *net,
                           tess_error *error)
{
    warm_image image;
    memset(&image, 0, sizeof image);
    tess_lane *lane = NULL;
    tess_block weights = {0};
    tess_flight flight;
    memset(&flight, 0, sizeof flight);
    tess_status status = describe(device->memory, &image, bound, net, error);
    if (status == TESS_OK)
        status = device->alloc(device, &weights, TESS_MEM_WEIGHTS, tess_bound_weight_bytes(bound), error);
    if (status == TESS_OK)
        status = tess_lane_open(device, &image.sizes, &lane, error);
    if (status == TESS_OK) {
        image.window.weights = weights.data;
        status = tess_lane_submit(lane, &image.window, &flight, error);
        tess_status landed = tess_lane_settle(lane, &flight, status == TESS_OK ? error : NULL);
        status = status == TESS_OK ? landed : status;
    }
    tess_lane_close(lane);
    device->free(device, &weights);
    tess_block_free(&image.rows);
    return status;
}
