# The SIMD sources are compiled once per instruction set, with the vector width as a constant; the matrix instructions
# have a file each. What runs is chosen at run time (src/cpu/conv/dispatch.c), so the rest stays at the base set.
set(SIMD_SOURCES ${CMAKE_SOURCE_DIR}/src/cpu/conv/simd_direct.c ${CMAKE_SOURCE_DIR}/src/cpu/conv/simd_winograd.c
    ${CMAKE_SOURCE_DIR}/src/cpu/conv/simd_grad.c ${CMAKE_SOURCE_DIR}/src/cpu/statistics/simd_statistics.c
    ${CMAKE_SOURCE_DIR}/src/cpu/norm/simd_norm.c)
list(FILTER TESSERA_SOURCES EXCLUDE REGEX "src/cpu/[a-z]+/(simd_|bf16_)")

set(SIMD_OBJECTS "")
function(tessera_simd isa vector block_vectors rows)
  add_library(simd_${isa} OBJECT ${SIMD_SOURCES})
  target_include_directories(simd_${isa} PRIVATE include src)
  target_compile_definitions(simd_${isa} PRIVATE TESS_ISA=${isa} TESS_VECTOR=${vector} TESS_BLOCK_VECTORS=${block_vectors}
                             TESS_BLOCK_ROWS=${rows})
  target_compile_options(simd_${isa} PRIVATE -O3 -ffp-contract=fast -Wno-psabi ${ARGN})
  set(SIMD_OBJECTS ${SIMD_OBJECTS} $<TARGET_OBJECTS:simd_${isa}> PARENT_SCOPE)
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  tessera_simd(neon 4 4 5) # 20 sums and what feeds them: 6 rows would spill two of 32 registers, and lose a third
  set(BF16_SOURCE src/cpu/conv/bf16_arm.c src/cpu/conv/bf16_arm_winograd.c)
  set_source_files_properties(${BF16_SOURCE} PROPERTIES COMPILE_OPTIONS "-O3;-march=armv8.2-a+fp16+bf16")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  tessera_simd(sse 4 2 6) # every x86-64 has it
  tessera_simd(avx2 8 2 6 -mavx2 -mfma)
  tessera_simd(avx512 16 2 12 -mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mprefer-vector-width=512)
  set(BF16_SOURCE src/cpu/conv/bf16_amx.c)
  set_source_files_properties(${BF16_SOURCE} PROPERTIES COMPILE_OPTIONS "-O3;-mamx-tile;-mamx-bf16;-mavx512f;-mavx512bw;-mavx512vl")
else()
  message(FATAL_ERROR "no kernels for ${CMAKE_SYSTEM_PROCESSOR}: add a line to cmake/simd.cmake")
endif()
list(APPEND TESSERA_SOURCES ${BF16_SOURCE})
# Loops of a few lanes, written plainly: only -O3 makes vectors of them.
set_source_files_properties(src/cpu/rays/radon_project.c src/cpu/rays/radon_back.c src/cpu/elementwise/pointwise.c
                            src/cpu/norm/gradient_passes.c src/cpu/elementwise/gradients.c src/cpu/train/optimize.c
                            src/cpu/train/loss.c src/cpu/elementwise/channel_map.c src/cpu/elementwise/channel_dot.c src/cpu/statistics/moments.c src/cpu/statistics/score.c src/cpu/conv/grad.c src/cpu/conv/grad_patches.c src/cpu/conv/channel_sum.c
                            src/tensor/terrain/smooth_solve.c src/tensor/terrain/smooth_transfer.c src/tensor/terrain/conditions.c
                            src/tensor/terrain/void_maker.c src/tensor/terrain/roughness.c src/tensor/symmetric.c src/tensor/moments.c src/model/spectral/maps.c
                            PROPERTIES COMPILE_OPTIONS -O3)
set_source_files_properties(src/cpu/attention/attention.c src/cpu/attention/attention_grad.c PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=fast")
