/* both.h: marks functions that are compiled for host and card, so that both devices compute the same numbers
 * from the same source. */
#ifndef TESS_GEOMETRY_BOTH_H
#define TESS_GEOMETRY_BOTH_H

#ifdef __CUDACC__
#define TESS_BOTH static inline __host__ __device__
#else
#define TESS_BOTH static inline
#endif

#endif
