/* The NVIDIA card as a device. Work is enqueued and errors appear later. An error in a call that cannot fail
 * is stored and returned by every later call that can (sync, event_sync, capture_end), on any thread. Every
 * call sets the card, because the runtime's current device is a property of the thread. */
#include "cuda/core/device_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/pool.h"
#include "cuda/conv/volume.h"
#include "op/row.h"

static const size_t SCRATCH = (size_t)1 << 20; /* for pieces of weights that are being packed */
/* Packed bytes of a call in training: it takes twenty microseconds at the rate of the memory, a launch three. */
enum { REPACK_BYTES = 32 << 20 };

bool tess_cuda_is_image_layer(const tess_op *op)
{
    return tess_op_is_layer(op) && !tess_cuda_is_volume(op);
}

bool tess_cuda_has_choice(const tess_op *op)
{
    return tess_cuda_is_image_layer(op) || op->kind == TESS_OP_CONV_GRAD;
}

size_t tess_cuda_weight_bytes(const tess_op *op)
{
    const bool conv =
        op->kind == TESS_OP_CONV || op->kind == TESS_OP_CONV_TRANSPOSE || op->kind == TESS_OP_UP_CONV;
    if (op->kind == TESS_OP_CHANNEL_MAP) /* as they are, one after the other */
        return (size_t)op->in[0].c * (tess_channel_has_bias(op->channel_map.form) ? 2 : 1) * sizeof(float);
    return conv ? tess_cuda_tap_bytes(op) * (size_t)op->kernel[TESS_DEPTH] : 0;
}

/* The values pass through the scratch in pieces of whole rows; it is free again when the stream has packed
 * them. */
void tess_cuda_pack_op(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                       const float *values, void *packed)
{
    tess_cuda *cuda = tess_cuda_of(device);
    const int64_t taps = (int64_t)op->kernel[0] * op->kernel[1] * op->kernel[2];
    const int64_t other = op->kind == TESS_OP_CONV_TRANSPOSE ? op->out[0].c : op->in[0].c;
    const int64_t row = param == TESS_PARAM_BIAS || op->kind == TESS_OP_CHANNEL_MAP ? 1 : other * taps;
    const int64_t most = tess_max_i64(1, (int64_t)(SCRATCH / sizeof(float)) / row);
    if ((size_t)row * sizeof(float) > SCRATCH) {
        tess_cuda_keep_text(device, TESS_UNSUPPORTED,
                            "a row of weights is larger than the scratch of the card");
        return;
    }
    tess_cuda_enter(device);
    pthread_mutex_lock(&cuda->packing);
    for (int64_t done = 0; done < count; done += most) {
        const int64_t rows = tess_min_i64(most, count - done);
        tess_cuda_keep(device,
                       cudaMemcpyAsync(cuda->scratch, values + done * row,
                                       (size_t)(rows * row) * sizeof(float), cudaMemcpyDefault, cuda->stream),
                       "copy of weights");
        tess_cuda_keep(device,
                       tess_cuda_pack(op, param, first + done, rows, cuda->scratch, packed, cuda->stream),
                       "packing of weights");
        tess_cuda_keep(device, cudaStreamSynchronize(cuda->stream), "packing of weights");
    }
    pthread_mutex_unlock(&cuda->packing);
}

static void cuda_repack(tess_device *device, const tess_repack *list, int count, tess_stream *stream)
{
    tess_cuda_enter(device);
    tess_cuda_keep(device, tess_cuda_repack(list, count, tess_cuda_stream_of(device, stream)),
                   "packing of weights");
}

static tess_status cuda_tune(tess_device *device, const tess_op *op, void *scratch, size_t bytes,
                             tess_error *error)
{
    tess_cuda_enter(device);
    return tess_cuda_tune(device, op, scratch, bytes, error);
}

static void cuda_facts(tess_device *device, tess_device_facts *facts)
{
    const tess_cuda *cuda = tess_cuda_of(device);
    size_t left = 0, total = 0;
    tess_cuda_enter(device);
    tess_cuda_keep(device, cudaMemGetInfo(&left, &total), "cudaMemGetInfo");
    *facts = (tess_device_facts){.id = cuda->id,
                                 .memory_total = total,
                                 .memory_free = left,
                                 .driver_bytes = cuda->driver_bytes,
                                 .threads = cuda->threads,
                                 .bf16 = true,
                                 .fp16 = true,
                                 .flops = 400e12,
                                 .bytes = 3e12};
    snprintf(facts->name, sizeof facts->name, "%s", cuda->name);
}

static void cuda_destroy(tess_device *device)
{
    tess_cuda *cuda = tess_cuda_of(device);
    tess_cuda_enter(device);
    tess_cuda_measured_destroy(cuda->measured);
    if (cuda->scratch)
        (void)cudaFree(cuda->scratch);
    if (cuda->stream)
        (void)cudaStreamDestroy(cuda->stream);
    pthread_mutex_destroy(&cuda->lock);
    pthread_mutex_destroy(&cuda->packing);
    tess_small_free(cuda);
}

static tess_status find_card(tess_cuda *cuda, bool in_turn, tess_error *error)
{
    int count = 0, driver = 0;
    cudaError_t result = cudaGetDeviceCount(&count);
    (void)cudaGetLastError();
    if (result == cudaErrorInsufficientDriver || (cudaDriverGetVersion(&driver), driver == 0))
        return tess_fail(error, TESS_UNSUPPORTED,
                         "`device` cuda: no NVIDIA driver found that serves CUDA %d.%d; install one, or use "
                         "`device` cpu",
                         CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100);
    if (result != cudaSuccess || count == 0)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "`device` cuda: no NVIDIA card found (%s); use `device` cpu",
                         result == cudaSuccess ? "the driver lists none" : cudaGetErrorString(result));
    if (in_turn && cuda->index >= 0)
        cuda->index %= count;
    if (cuda->index < 0 || cuda->index >= count)
        return tess_fail(error, TESS_BAD_OPTION, "`device` cuda:%d: there are cards 0 to %d", cuda->index,
                         count - 1);
    return TESS_OK;
}

static tess_status open_card(tess_cuda *cuda, bool in_turn, tess_error *error)
{
    static const int OLDEST = 80;
    struct cudaDeviceProp card;
    int driver = 0;
    TESS_TRY(find_card(cuda, in_turn, error));
    TESS_TRY(tess_cuda_check(cudaSetDevice(cuda->index), "cudaSetDevice", error));
    TESS_TRY(tess_cuda_check(cudaGetDeviceProperties(&card, cuda->index), "cudaGetDeviceProperties", error));
    TESS_TRY(tess_cuda_check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion", error));
    cuda->capability = 10 * card.major + card.minor;
    uint64_t halves[2];
    memcpy(halves, &card.uuid, sizeof halves);
    cuda->id = halves[0] ^ halves[1] ? halves[0] ^ halves[1] : 1;
    snprintf(cuda->name, sizeof cuda->name, "%.90s", card.name);
    if (cuda->capability < OLDEST)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "`device` cuda: %s is older than Ampere (compute capability 8.0); use `device` cpu",
                         cuda->name);
    TESS_TRY(tess_cuda_check(cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking),
                             "cudaStreamCreate", error));
    TESS_TRY(tess_cuda_check(cudaMalloc(&cuda->scratch, SCRATCH), "cudaMalloc", error));
    char key[128];
    snprintf(key, sizeof key, "%.90s-%d", cuda->name, driver);
    TESS_TRY(tess_cuda_measured_create(key, &cuda->measured, error));
    TESS_TRY(tess_cuda_load_kernels(cuda->capability, error));
    size_t left = 0, total = 0;
    TESS_TRY(tess_cuda_check(cudaMemGetInfo(&left, &total), "cudaMemGetInfo", error));
    cuda->driver_bytes = total - left;
    return TESS_OK;
}

static const tess_device_ops cuda_ops = {.query = tess_kernel_query,
                                         .prepare = tess_kernel_prepare,
                                         .pack = tess_kernel_pack,
                                         .repack = cuda_repack,
                                         .repack_bytes = REPACK_BYTES,
                                         .packs_turned = true,
                                         .run = tess_kernel_run,
                                         .release = tess_kernel_release,
                                         .kernels = tess_cuda_kernels,
                                         .prefers = tess_cuda_prefers,
                                         .tune = cuda_tune};

static tess_status cuda_open(const tess_device_options *options, tess_device **out, tess_error *error)
{
    *out = NULL;
    tess_cuda *cuda = tess_small_alloc(1, sizeof *cuda);
    if (!cuda)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the NVIDIA device");
    cuda->index = options->index;
    cuda->threads = options->threads > 0 ? options->threads : tess_cpu_count();
    pthread_mutex_init(&cuda->lock, NULL);
    pthread_mutex_init(&cuda->packing, NULL);
    cuda->device = (tess_device){.kind = "cuda",
                                 .destroy = cuda_destroy,
                                 .facts = cuda_facts,
                                 .memory = &tess_cuda_memory,
                                 .streams = &tess_cuda_streams,
                                 .graphs = &tess_cuda_graphs,
                                 .meters = &tess_cuda_meters,
                                 .ops = &cuda_ops};
    tess_status status = open_card(cuda, options->in_turn, error);
    if (status != TESS_OK) {
        cuda_destroy(&cuda->device);
        return status;
    }
    *out = &cuda->device;
    return TESS_OK;
}

extern const tess_driver tess_cuda_driver;
const tess_driver tess_cuda_driver = {"cuda", cuda_open};
