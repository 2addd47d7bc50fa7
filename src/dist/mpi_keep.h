/* mpi_keep.h: keeps a part of Open MPI in memory that it would unload too early. */
#ifndef TESS_DIST_MPI_KEEP_H
#define TESS_DIST_MPI_KEEP_H

/* To be called after MPI_Init. MPI_Finalize unloads Open MPI's component for PMIx, but PMIx's thread still calls it when another rank
 * ends with an error at this moment: the process then ended with a segmentation fault. */
void tess_mpi_keep_components(void);

#endif
