#include "train/checksum.h"

#include <string.h>

#define P1 0x9E3779B185EBCA87u
#define P2 0xC2B2AE3D27D4EB4Fu
#define P3 0x165667B19E3779F9u
#define P4 0x85EBCA77C2B2AE63u
#define P5 0x27D4EB2F165667C5u

static uint64_t turn(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static uint64_t word(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

static uint64_t mix(uint64_t lane, uint64_t input)
{
    return turn(lane + input * P2, 31) * P1;
}

static void stripe(tess_xxh64 *sum, const unsigned char *at)
{
    for (int i = 0; i < 4; i++)
        sum->lanes[i] = mix(sum->lanes[i], word(at + 8 * i, 8));
}

void tess_xxh64_begin(tess_xxh64 *sum)
{
    *sum = (tess_xxh64){.lanes = {P1 + P2, P2, 0, 0 - P1}};
}

void tess_xxh64_add(tess_xxh64 *sum, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    const size_t used = (size_t)(sum->total % 32);
    sum->total += bytes;
    if (used) {
        const size_t fill = bytes < 32 - used ? bytes : 32 - used;
        memcpy(sum->rest + used, at, fill);
        at += fill, bytes -= fill;
        if (used + fill < 32)
            return;
        stripe(sum, sum->rest);
    }
    for (; bytes >= 32; at += 32, bytes -= 32)
        stripe(sum, at);
    if (bytes)
        memcpy(sum->rest, at, bytes);
}

uint64_t tess_xxh64_end(const tess_xxh64 *sum)
{
    const uint64_t *lane = sum->lanes;
    uint64_t hash = P5;
    if (sum->total >= 32) {
        hash = turn(lane[0], 1) + turn(lane[1], 7) + turn(lane[2], 12) + turn(lane[3], 18);
        for (int i = 0; i < 4; i++)
            hash = (hash ^ mix(0, lane[i])) * P1 + P4;
    }
    hash += sum->total;
    const unsigned char *at = sum->rest, *end = at + sum->total % 32;
    for (; end - at >= 8; at += 8)
        hash = turn(hash ^ mix(0, word(at, 8)), 27) * P1 + P4;
    for (; end - at >= 4; at += 4)
        hash = turn(hash ^ word(at, 4) * P1, 23) * P2 + P3;
    for (; at < end; at++)
        hash = turn(hash ^ *at * P5, 11) * P1;
    hash = (hash ^ hash >> 33) * P2;
    hash = (hash ^ hash >> 29) * P3;
    return hash ^ hash >> 32;
}

/* Castagnoli's polynomial, bit by bit: the records are some tens of bytes. */
uint32_t tess_crc32c(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}
