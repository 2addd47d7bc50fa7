/* jp2_probe.h: the memory that decoding a JPEG 2000 file needs (private to this room). */
#ifndef TESS_IO_JP2_PROBE_H
#define TESS_IO_JP2_PROBE_H

#include <stdint.h>

/* Bytes that OpenJPEG holds while it decodes windows of this many pixels out of a larger tile; 0 if the file's tiles are
 * not larger than the window, or if it is no JPEG 2000 file. */
int64_t tess_jp2_decoder_bytes(const char *path, int64_t window_pixels);

#endif
