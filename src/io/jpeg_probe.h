/* jpeg_probe.h: the markers of a JPEG, and the memory that decoding it needs (private to this room). */
#ifndef TESS_IO_JPEG_PROBE_H
#define TESS_IO_JPEG_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the next marker and the length of its payload; 0 at the end or in a damaged file. */
int tess_jpeg_next_marker(FILE *file, int *length);
/* Whether an end marker follows the first scan, wherever; true for files that have no scan or are not JPEG. libjpeg takes
 * zeros in place of lost data for a picture, without a warning. */
bool tess_jpeg_has_end(const char *path);
/* Bytes of coefficients that libjpeg must hold to decode this file; 0 for sequential files and files that are
 * not JPEG. */
size_t tess_jpeg_coefficients(const char *path);
/* The same for a JPEG that GDAL writes. Its tables are optimised, so libjpeg needs all coefficients first.
 * Gray, or three channels with the usual half-size chroma planes. */
size_t tess_jpeg_write_coefficients(int64_t height, int64_t width, int channels);

/* True when a colour JPEG's chroma planes have more than half the height or width of its brightness. GDAL writes
 * half of both, whatever the input had. */
bool tess_jpeg_full_chroma(const char *path);
/* Bits of a sample; 0: damaged, or no JPEG. */
int tess_jpeg_precision(const char *path);
/* True for CMYK without Adobe's marker, by which readers know that 0 is all ink and 255 none. */
bool tess_jpeg_has_unclear_inks(const char *path);

#endif
