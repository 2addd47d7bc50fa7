/* Selects the kernels that this CPU supports, at run time. */
#define _GNU_SOURCE
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu/conv/kernels.h"

#if defined(__aarch64__)
#include <sys/auxv.h>

extern const tess_f32_kernels tess_f32_kernels_neon;
extern const tess_bf16_kernels tess_bf16_kernels_arm;

static const tess_f32_kernels *const known[] = {&tess_f32_kernels_neon};

static bool runs_here(const tess_f32_kernels *kernels)
{
    (void)kernels;
    return true; /* every AArch64 has NEON */
}

const tess_bf16_kernels *tess_cpu_bf16_kernels(void)
{
    const unsigned long hwcap2_bf16 = 1ul << 14;
    return getauxval(AT_HWCAP2) & hwcap2_bf16 ? &tess_bf16_kernels_arm : NULL;
}
#else
#include <cpuid.h>

extern const tess_f32_kernels tess_f32_kernels_avx512, tess_f32_kernels_avx2, tess_f32_kernels_sse;
extern const tess_bf16_kernels tess_bf16_kernels_amx;

static const tess_f32_kernels *const known[] = {&tess_f32_kernels_avx512, &tess_f32_kernels_avx2,
                                                &tess_f32_kernels_sse};

static bool runs_here(const tess_f32_kernels *kernels)
{
    __builtin_cpu_init();
    if (kernels == &tess_f32_kernels_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    if (kernels == &tess_f32_kernels_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return true;
}

/* Linux (5.16) requires a request for the tile registers before their first use. */
const tess_bf16_kernels *tess_cpu_bf16_kernels(void)
{
    const long request_permission = 0x1023, tile_data = 18;
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 22 & 1) || !(d >> 24 & 1))
        return NULL;
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0 ? &tess_bf16_kernels_amx : NULL;
}
#endif

const tess_f32_kernels *tess_cpu_f32_kernels(const char *isa)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if ((!isa || strcmp(known[i]->isa, isa) == 0) && runs_here(known[i]))
            return known[i];
    return NULL;
}
