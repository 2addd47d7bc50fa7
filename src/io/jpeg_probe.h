/* jpeg_probe.h: the markers of a JPEG, and what decoding it will cost (private to this room). */
#ifndef TESS_IO_JPEG_PROBE_H
#define TESS_IO_JPEG_PROBE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The next marker with its payload's length; 0 at the end, or where the file is damaged. */
int tess_jpeg_next_marker(FILE *file, int *length);
/* Bytes of coefficients that libjpeg must hold to decode this file; 0 for sequential files and for what is no
 * JPEG. */
size_t tess_jpeg_coefficients(const char *path);
/* The same for a JPEG to be written by GDAL: its tables are optimised, so libjpeg sees all coefficients
 * first. Gray, or three channels with the usual halved colour planes. */
size_t tess_jpeg_write_coefficients(int64_t height, int64_t width, int channels);

#endif
