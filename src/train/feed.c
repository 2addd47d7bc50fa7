#include "train/feed.h"

enum { TABLE = 4 }; /* numbers for each image */

static size_t table_bytes(const tess_source *source, int64_t micro_batch)
{
    return tess_source_array(source, TESS_DATA_NOISE_TABLE) < 0
               ? 0
               : (size_t)micro_batch * TABLE * sizeof(double);
}

size_t tess_feed_bytes(tess_device *device, const tess_source *source, int64_t micro_batch)
{
    const size_t bytes = table_bytes(source, micro_batch);
    return bytes ? device->memory->granted(device, bytes) : 0;
}

tess_status tess_feed_open(tess_feed *feed, tess_device *device, tess_training *training,
                           const tess_source *source, uint64_t seed, tess_error *error)
{
    *feed = (tess_feed){.device = device, .training = training, .source = source};
    tess_op op = {.kind = TESS_OP_NOISE,
                  .inputs = 2,
                  .outputs = 1,
                  .kernel = {1, 1, 1},
                  .stride = {1, 1, 1},
                  .random = {.seed = tess_data_seed(seed, TESS_DATA_NOISE)}};
    tess_training_target(training, &op.in[0]);
    tess_training_input(training, 0, &op.out[0]);
    op.in[1] = tess_tensor_2d(TESS_F64, op.in[0].n, 1, 1, TABLE);
    const size_t bytes = table_bytes(source, op.in[0].n);
    if (!bytes)
        return TESS_OK;
    TESS_TRY(device->memory->alloc(device, &feed->table, TESS_MEM_IO, bytes, error));
    return device->ops->prepare(device, &op, &feed->noise, error);
}

void tess_feed_close(tess_feed *feed)
{
    if (!feed->device)
        return;
    if (feed->noise)
        feed->device->ops->release(feed->device, feed->noise);
    feed->device->memory->free(feed->device, &feed->table);
    *feed = (tess_feed){0};
}

static void copy(tess_feed *feed, const tess_batch *batch, tess_data_role role, void *to)
{
    const int at = tess_source_array(feed->source, role);
    size_t bytes = 0;
    if (at >= 0 && to && tess_tensor_bytes(&batch->array[at], &bytes))
        feed->device->memory->copy(feed->device, to, batch->data[at], bytes, NULL);
}

void tess_feed_batch(tess_feed *feed, const tess_batch *batch)
{
    tess_tensor tensor;
    void *target = tess_training_target(feed->training, &tensor),
         *input = tess_training_input(feed->training, 0, &tensor);
    copy(feed, batch, TESS_DATA_TARGET, target);
    copy(feed, batch, TESS_DATA_INPUT, input);
    copy(feed, batch, TESS_DATA_MASK, tess_training_mask(feed->training, &tensor));
    if (tess_source_array(feed->source, TESS_DATA_VECTOR) >= 0)
        copy(feed, batch, TESS_DATA_VECTOR, tess_training_input(feed->training, 1, &tensor));
    if (!feed->noise)
        return;
    copy(feed, batch, TESS_DATA_NOISE_TABLE, feed->table.data);
    const tess_op_buffers buffers = {.in = {target, feed->table.data}, .out = {input}};
    feed->device->ops->run(feed->device, feed->noise, &buffers, NULL);
}
