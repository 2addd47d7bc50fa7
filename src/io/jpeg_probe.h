/* jpeg_probe.h: what decoding a JPEG will cost (private to this room). */
#ifndef TESS_IO_JPEG_PROBE_H
#define TESS_IO_JPEG_PROBE_H

#include <stddef.h>

/* Bytes of coefficients that libjpeg must hold to decode this file; 0 for sequential files and for what is no
 * JPEG. */
size_t tess_jpeg_coefficients(const char *path);

#endif
