/* A rank's part of an image on a device with separate memory. It passes through a queue, as the files of a job of one rank do: the
 * queue uploads the samples, the network exchanges rows with its neighbours by NCCL or through pinned memory (net/neighbours.h), and the
 * queue downloads the result. The thread that submits a strip or block makes its exchanges. Rows of tiles are submitted by the ring. */
#include "base/process.h"
#include "job/denoise/ranks/part.h"

void tess_card_plan(tess_denoise_job *job)
{
    const tess_cut_plan *choice = &job->files[0].choice;
    job->queue_sizes = (tess_queue_sizes){.arena = choice->arena_bytes,
                                          .workspace = choice->workspace_bytes,
                                          .in_stage = choice->in_stage,
                                          .out_stage = choice->out_stage};
    job->host_bytes = tess_block_granted(tess_queue_host_bytes(&job->queue_sizes)) +
                      tess_card_links_pinned(&job->links, choice->exchange_bytes);
}

tess_status tess_card_open(tess_denoise_part *part, tess_error *error)
{
    tess_denoise_job *job = part->job;
    const tess_denoise_file *file = &job->files[0];
    tess_device *device = job->engine.device;
    tess_queue *queue = NULL;
    device->facts(device, &job->engine.facts);
    job->baseline = job->engine.facts.memory_free;
    TESS_TRY(tess_queue_open(device, &job->queue_sizes, &queue, error));
    part->blocks.queue = queue;
    if (job->strips.tiles)
        return TESS_OK;
    const tess_cut cut = tess_cut_of(&file->choice);
    const tess_window_net net = {file->model->bound, file->model->weights.data, part->image.pixels.planes};
    TESS_TRY(
        tess_card_links_join(&job->links, device, file->choice.exchange_bytes, &part->neighbours, error));
    return tess_queue_prepare(queue, &net, &cut, error); /* nothing may fail between exchanges */
}

tess_status tess_card_run(tess_denoise_part *part, tess_error *error)
{
    tess_image_job *image = &part->image;
    tess_error other;
    const tess_status submitted = tess_image_submit(image, &part->strip, error);
    const tess_status done =
        tess_queue_wait(part->blocks.queue, &image->strips[0].ticket, submitted == TESS_OK ? error : &other);
    return submitted != TESS_OK ? submitted : done;
}

void tess_card_close(tess_denoise_part *part)
{
    if (!part->blocks.queue)
        return;
    tess_image_wait_all(&part->image);
    tess_queue_measured(part->blocks.queue, &part->job->figures);
    tess_queue_close(part->blocks.queue);
    part->blocks.queue = NULL;
}
