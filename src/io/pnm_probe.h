/* pnm_probe.h: the sample of a Netpbm file that means white (private to this room). */
#ifndef TESS_IO_PNM_PROBE_H
#define TESS_IO_PNM_PROBE_H

/* The number in the header of a binary PGM or PPM after which samples are counted; 0 for every other file. */
int tess_pnm_maximum(const char *path);

#endif
