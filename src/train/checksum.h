/* checksum.h: XXH64 (Collet, xxHash specification 0.1.1), in pieces: detects damage, and is as fast as memory. CRC-32C
 * for TFRecords. */
#ifndef TESS_TRAIN_CHECKSUM_H
#define TESS_TRAIN_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

typedef struct tess_xxh64 {
    uint64_t lanes[4], total;
    unsigned char rest[32]; /* bytes that do not fill a stripe yet: total % 32 of them */
} tess_xxh64;

void tess_xxh64_begin(tess_xxh64 *sum); /* seed 0 */
void tess_xxh64_add(tess_xxh64 *sum, const void *data, size_t bytes);
uint64_t tess_xxh64_end(const tess_xxh64 *sum);

uint32_t tess_crc32c(const void *data, size_t bytes);

#endif
