/* The first run: kernels and library tables are loaded on first use, and would otherwise look like memory
 * missing from the plan. Weights and image are zeros; the image is one small window. */
#include <string.h>

#include "window/queue.h"

static void read_zeros(void *user, int64_t y, int64_t x, int64_t count, void *to)
{
    (void)y, (void)x;
    const tess_queue_image *image = user;
    memset(to, 0, (size_t)(count * image->channels) * tess_dtype_size(image->in));
}

static void write_nowhere(void *user, int64_t y, int64_t x, int64_t count, const void *from)
{
    (void)user, (void)y, (void)x, (void)count, (void)from;
}

static tess_status describe(const tess_bound *bound, int64_t side, tess_queue_image *image,
                            tess_queue_sizes *sizes, tess_error *error)
{
    tess_net_plan *plan = NULL;
    TESS_TRY(tess_net_plan_create(bound, (tess_plan_shape){1, side, side}, &plan, error));
    size_t at;
    const int64_t channels = tess_net_plan_output(plan, &at).c;
    const size_t samples = (size_t)(side * side * channels);
    *image = (tess_queue_image){.height = side,
                                .width = side,
                                .channels = channels,
                                .in = TESS_U8,
                                .out = TESS_U8,
                                .full_scale = 255,
                                .level_channel = tess_net_plan_input(plan, &at).c > channels,
                                .read = read_zeros,
                                .write = write_nowhere,
                                .user = image};
    *sizes = (tess_queue_sizes){tess_net_plan_arena_bytes(plan), tess_net_plan_workspace_bytes(plan), samples,
                                samples};
    tess_net_plan_destroy(plan);
    return TESS_OK;
}

tess_status tess_queue_warm(tess_device *device, const tess_bound *bound, const tess_net *net,
                            tess_error *error)
{
    const int64_t side = tess_net_grid(net, TESS_HEIGHT);
    const tess_axis axis = tess_axis_cut(side, 0, 0, side);
    const tess_cut cut = tess_cut_image(&axis, &axis, 1);
    tess_queue_image image;
    tess_queue_sizes sizes;
    tess_queue *queue = NULL;
    tess_block weights = {0};
    tess_ticket ticket;
    memset(&ticket, 0, sizeof ticket);
    tess_status status = describe(bound, side, &image, &sizes, error);
    if (status == TESS_OK)
        status =
            device->memory->alloc(device, &weights, TESS_MEM_WEIGHTS, tess_bound_weight_bytes(bound), error);
    if (status == TESS_OK)
        status = tess_queue_open(device, &sizes, &queue, error);
    if (status == TESS_OK) {
        const tess_window_net weighted = {bound, weights.data, 1};
        status = tess_queue_submit(queue, &weighted, &cut, TESS_ALL_STRIPS, &image, &ticket, error);
        const tess_status done = tess_queue_wait(queue, &ticket, status == TESS_OK ? error : NULL);
        status = status == TESS_OK ? done : status;
    }
    tess_queue_close(queue);
    device->memory->free(device, &weights);
    return status;
}
