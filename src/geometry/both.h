/* both.h: marks functions that host and card compile alike, so that both devices take the same numbers from one
 * place. */
#ifndef TESS_GEOMETRY_BOTH_H
#define TESS_GEOMETRY_BOTH_H

#ifdef __CUDACC__
#define TESS_BOTH static inline __host__ __device__
#else
#define TESS_BOTH static inline
#endif

#endif
