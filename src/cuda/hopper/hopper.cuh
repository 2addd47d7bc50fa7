/* hopper.cuh: the sm_90a instructions that the kernels use: barriers in shared memory, bulk tensor copies,
 * matrix descriptors, moves of 8x8 matrices. */
#ifndef TESS_CUDA_HOPPER_CUH
#define TESS_CUDA_HOPPER_CUH

#include <cuda.h>

#include "cuda/core/early.cuh"
#include "cuda/hopper/wgmma.cuh"

enum { WARPGROUP = 128 };

static __device__ __forceinline__ uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* Barriers count arrivals and the bytes of bulk copies. A wait ends when the phase of the given parity ends. */
static __device__ __forceinline__ void barrier_init(uint32_t barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

static __device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* Named barriers, to alternate between warpgroups. */
static __device__ __forceinline__ void named_sync(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

static __device__ __forceinline__ void named_arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

static __device__ __forceinline__ void load_4d(uint32_t to, const CUtensorMap *map, uint32_t barrier, int c,
                                               int x, int y, int n)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
        "%5, %6}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(c), "r"(x), "r"(y), "r"(n)
        : "memory");
}

/* Contiguous bytes: both addresses and the number are multiples of 16. */
static __device__ __forceinline__ void load_bytes(uint32_t to, const void *from, uint32_t bytes,
                                                  uint32_t barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
        : "memory");
}

/* Loads a tensor map ahead of the first copy that uses it. */
static __device__ __forceinline__ void fetch_map(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

static __device__ __forceinline__ void store_4d(const CUtensorMap *map, uint32_t from, int c, int x, int y,
                                                int n)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
        "r"(from), "r"(c), "r"(x), "r"(y), "r"(n)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until the stores of this thread have read their shared memory. */
static __device__ __forceinline__ void stores_read(void)
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* Makes ordinary writes to shared memory visible to bulk copies and matrix instructions. */
static __device__ __forceinline__ void fence_async(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Swizzled rows of 128 bytes; groups of 8 rows are `group_bytes` apart. The swizzle depends only on the
 * address, so a matrix may start at any row of a tile that starts at a multiple of 1024 bytes. */
static __device__ __forceinline__ uint64_t matrix(uint32_t address, int group_bytes)
{
    return (uint64_t)((address & 0x3FFFF) >> 4) | (uint64_t)(group_bytes >> 4) << 32 | (uint64_t)1 << 62;
}

/* The same for an MN-major matrix: each row holds 64 values of M or N for one K. Rows of the same 8 K follow each other,
 * the next 8 K are `group_bytes` further, the next 64 values of M or N `leading_bytes`. */
static __device__ __forceinline__ uint64_t matrix_mn(uint32_t address, int leading_bytes, int group_bytes)
{
    return matrix(address, group_bytes) | (uint64_t)(leading_bytes >> 4) << 16;
}

static __device__ __forceinline__ void wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> static __device__ __forceinline__ void wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Moves four 8x8 matrices of 16-bit values between registers (transposed) and rows of 16 bytes. */
static __device__ __forceinline__ void store_transposed(uint32_t address, const uint32_t (&m)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
                 : "memory");
}

static __device__ __forceinline__ void load_transposed(uint32_t address, uint32_t (&m)[4])
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(address)
                 : "memory");
}

template <int REGISTERS> static __device__ __forceinline__ void more_registers(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> static __device__ __forceinline__ void fewer_registers(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

static __device__ __forceinline__ uint32_t pair(float low, float high, __half)
{
    __half2 both = __floats2half2_rn(low, high);
    return *(uint32_t *)&both;
}

static __device__ __forceinline__ uint32_t pair(float low, float high, __nv_bfloat16)
{
    __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *(uint32_t *)&both;
}

static __device__ __forceinline__ float2 unpair(uint32_t both, __half)
{
    return __half22float2(*(__half2 *)&both);
}

static __device__ __forceinline__ float2 unpair(uint32_t both, __nv_bfloat16)
{
    return __bfloat1622float2(*(__nv_bfloat162 *)&both);
}

#endif
