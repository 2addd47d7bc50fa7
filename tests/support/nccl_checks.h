/* nccl_checks.h: exchanges of one rank with itself, and sums of one rank, on any device with separate memory: the bytes, and the order of streams. */
#ifndef TESS_TESTS_NCCL_CHECKS_H
#define TESS_TESTS_NCCL_CHECKS_H

#include "check.h"
#include "dist/nccl.h"

enum { NCCL_MESSAGES = 4, NCCL_ROUNDS = 50 };
/* Also bytes that are no whole words, at places that are none. */
static const size_t nccl_sizes[NCCL_MESSAGES] = {1, 1003, 65536, ((size_t)3 << 20) + 5};

typedef struct nccl_bench {
    tess_nccl *nccl;
    tess_device *device;
    tess_stream *first,
        *second; /* what is sent is computed on the first; what is received is used on the second */
    tess_block there, given, taken;
    size_t bytes; /* of all messages */
} nccl_bench;

/* Waits for nothing but its last round: a message that is sent too early or used too early has the bytes of another round. */
static inline void check_rounds(nccl_bench *b)
{
    tess_device *device = b->device;
    tess_error error = {{0}};
    char *sent = b->there.data, *received = sent + b->bytes;
    tess_dist_transfer list[NCCL_MESSAGES];
    size_t at = 0;
    for (int i = 0; i < NCCL_MESSAGES; at += nccl_sizes[i++])
        list[i] = (tess_dist_transfer){0, sent + at, nccl_sizes[i], received + at, nccl_sizes[i]};
    for (int round = 0; round < NCCL_ROUNDS; round++) {
        char *given = (char *)b->given.data + (size_t)(round % 2) * b->bytes;
        CHECK_MSG(device->streams->sync(device, b->second, &error) == TESS_OK, "%s", error.text);
        for (size_t i = 0; i < b->bytes; i++)
            given[i] = (char)(i * 31 + i / 251 + (size_t)round * 7);
        device->memory->copy(device, sent, given, b->bytes, b->first);
        CHECK_MSG(tess_nccl_begin(b->nccl, list, NCCL_MESSAGES, b->first, &error) == TESS_OK, "%s",
                  error.text);
        CHECK_MSG(tess_nccl_end(b->nccl, b->second, &error) == TESS_OK, "%s", error.text);
        device->memory->copy(device, b->taken.data, received, b->bytes, b->second);
        CHECK_MSG(device->streams->sync(device, b->second, &error) == TESS_OK, "%s", error.text);
        CHECK_MSG(memcmp(b->taken.data, given, b->bytes) == 0, "round %d", round);
    }
}

static inline void check_sum(nccl_bench *b)
{
    enum { VALUES = 100000 };
    tess_device *device = b->device;
    tess_error error = {{0}};
    float *given = b->given.data, *taken = b->taken.data;
    for (int i = 0; i < VALUES; i++)
        given[i] = (float)i * 0.37f - 11;
    device->memory->copy(device, b->there.data, given, VALUES * sizeof *given, b->first);
    CHECK_MSG(tess_nccl_sum_f32(b->nccl, b->there.data, VALUES, b->first, &error) == TESS_OK, "%s",
              error.text);
    device->memory->copy(device, taken, b->there.data, VALUES * sizeof *given, b->first);
    CHECK_MSG(device->streams->sync(device, b->first, &error) == TESS_OK, "%s", error.text);
    CHECK(memcmp(given, taken, VALUES * sizeof *given) == 0);
}

static inline void check_nccl(tess_device *device, const tess_nccl_api *api)
{
    tess_error error = {{0}};
    tess_dist alone;
    nccl_bench b = {.device = device};
    tess_dist_init_solo(&alone);
    for (int i = 0; i < NCCL_MESSAGES; i++)
        b.bytes += nccl_sizes[i];
    CHECK_MSG(tess_nccl_open(&alone, device, api, &b.nccl, &error) == TESS_OK, "%s", error.text);
    if (!b.nccl)
        return;
    printf("NCCL took %.1f MiB of the device\n", (double)tess_nccl_bytes(b.nccl) / (1 << 20));
    CHECK(device->streams->create(device, &b.first, &error) == TESS_OK);
    CHECK(device->streams->create(device, &b.second, &error) == TESS_OK);
    CHECK(device->memory->alloc(device, &b.there, TESS_MEM_IO, 2 * b.bytes, &error) == TESS_OK);
    CHECK(device->memory->host_alloc(device, &b.given, 2 * b.bytes, &error) == TESS_OK);
    CHECK(device->memory->host_alloc(device, &b.taken, b.bytes, &error) == TESS_OK);
    check_rounds(&b);
    check_sum(&b);
    device->memory->free(device, &b.there);
    device->memory->host_free(device, &b.given);
    device->memory->host_free(device, &b.taken);
    tess_nccl_close(b.nccl);
    device->streams->destroy(device, b.first);
    device->streams->destroy(device, b.second);
}

#endif
