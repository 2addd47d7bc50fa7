#include "cuda/core/tensor_map.h"

#include <stdatomic.h>
#include <string.h>

#include "cuda/core/load.h"

typedef CUresult (*encode_fn)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                              const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                              CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                              CUtensorMapFloatOOBfill);

enum { MOST_DIMENSIONS = 5, ENCODER_SINCE = 12000 };

/* Looked up once per process, because a network has hundreds of maps and a new shape must stay cheap. Two
 * threads that look it up at once get the same address. */
static encode_fn encoder(void)
{
    static _Atomic(encode_fn) known;
    encode_fn encode = atomic_load(&known);
    if (encode)
        return encode;
    void *entry = tess_cuda_driver_function("cuTensorMapEncodeTiled", ENCODER_SINCE);
    if (!entry)
        return NULL;
    memcpy(&encode, &entry, sizeof encode);
    atomic_store(&known, encode);
    return encode;
}

static bool type_of(tess_dtype dtype, CUtensorMapDataType *type)
{
    switch (dtype) {
    case TESS_F32:
        *type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
        return true;
    case TESS_F16:
        *type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
        return true;
    case TESS_BF16:
        *type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
        return true;
    default:
        return false;
    }
}

static CUtensorMapSwizzle swizzle_of(int bytes)
{
    return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
           : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
           : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                         : CU_TENSOR_MAP_SWIZZLE_NONE;
}

bool tess_cuda_tensor_map(CUtensorMap *map, tess_dtype dtype, int rank, void *base, const uint64_t *sizes,
                          const uint64_t *stride_bytes, const uint32_t *box, const uint32_t *element_strides,
                          int swizzle_bytes)
{
    CUtensorMapDataType type;
    encode_fn encode = encoder();
    if (!encode || rank < 1 || rank > MOST_DIMENSIONS || !type_of(dtype, &type))
        return false;
    cuuint64_t size[MOST_DIMENSIONS], stride[MOST_DIMENSIONS];
    cuuint32_t boxes[MOST_DIMENSIONS], steps[MOST_DIMENSIONS];
    for (int i = 0; i < rank; i++) {
        size[i] = sizes[i];
        boxes[i] = box[i];
        steps[i] = element_strides ? element_strides[i] : 1;
        if (i + 1 < rank)
            stride[i] = stride_bytes[i];
    }
    return encode(map, type, (cuuint32_t)rank, base, size, stride, boxes, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(swizzle_bytes),
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
