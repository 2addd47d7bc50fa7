/* Times reading a cube in blocks of rows: a JSON line for each file with the order of its axes, the rows of a block, and MB/s of
 * the first pass and of the best of three more. The file is in the system's cache after the first pass, if it fits there.
 *
 *   cube_rates FILE...
 *   cube_rates --make FOLDER [ROWS COLUMNS BANDS]     writes cube.bsq, cube.bil, cube.img (BIP) and cube.npy of uint16,
 *                                                     1000 x 1000 x 200 by default, with ENVI headers */
#define _XOPEN_SOURCE 700
#include <string.h>

#include "io/cube.h"
#include "rates.h"

static tess_memory counter;
static tess_error error;

static double pass(tess_cube *cube, char *block)
{
    const tess_cube_info *info = tess_cube_describe(cube);
    const double start = tess_clock();
    for (int64_t image = 0; image < info->count; image++)
        for (int64_t y = 0; y < info->height; y += info->block_rows) {
            const int64_t left = info->height - y;
            need(tess_cube_read(cube, image, y, left < info->block_rows ? left : info->block_rows, block,
                                &error),
                 &error);
        }
    return (double)tess_cube_bytes(info, info->height * info->count) / (tess_clock() - start) / 1e6;
}

static void time_file(const char *path)
{
    const tess_cube_settings settings = {.memory = &counter};
    tess_cube *cube = NULL;
    tess_block block = {0};
    need(tess_cube_open(path, &settings, &cube, &error), &error);
    const tess_cube_info *info = tess_cube_describe(cube);
    need(tess_block_alloc(&counter, &block, TESS_MEM_HOST, tess_cube_bytes(info, info->block_rows), &error),
         &error);
    const double first = pass(cube, block.data);
    double best = 0;
    for (int i = 0; i < 3; i++) {
        const double rate = pass(cube, block.data);
        best = rate > best ? rate : best;
    }
    printf(
        "{\"file\": \"%s\", \"order\": \"%s\", \"dtype\": \"%s\", \"block_rows\": %lld, \"held_bytes\": %zu, "
        "\"first_mb_s\": %.0f, \"mb_s\": %.0f}\n",
        path, info->stored, tess_dtype_word(info->dtype), (long long)info->block_rows, info->held_bytes,
        first, best);
    tess_block_free(&block);
    tess_cube_close(cube);
}

static void make_file(const char *folder, const char *name, const char *interleave, const long size[3])
{
    char path[4096], head[256];
    const size_t samples = (size_t)(size[0] * size[1] * size[2]);
    uint16_t values[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(1);
    }
    if (!interleave) {
        memset(head, ' ', 128);
        memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
        head[10 + snprintf(head + 10, 110,
                           "{'descr': '<u2', 'fortran_order': False, 'shape': (%ld, %ld, %ld), }", size[0],
                           size[1], size[2])] = ' ';
        head[127] = '\n';
        fwrite(head, 1, 128, file);
    }
    for (size_t i = 0; i < samples; i += 4096) {
        for (size_t k = 0; k < 4096; k++)
            values[k] = (uint16_t)((i + k) * 2654435761u >> 13);
        fwrite(values, 2, samples - i < 4096 ? samples - i : 4096, file);
    }
    fclose(file);
    if (!interleave)
        return;
    snprintf(path, sizeof path, "%s/%s.hdr", folder, name);
    file = fopen(path, "wb");
    fprintf(file,
            "ENVI\nsamples = %ld\nlines = %ld\nbands = %ld\nheader offset = 0\nfile type = ENVI Standard\n"
            "data type = 12\ninterleave = %s\nbyte order = 0\n",
            size[1], size[0], size[2], interleave);
    fclose(file);
}

int main(int count, char **args)
{
    if (count >= 3 && strcmp(args[1], "--make") == 0) {
        long size[3] = {1000, 1000, 200};
        for (int i = 0; i < 3 && count == 6; i++)
            size[i] = strtol(args[3 + i], NULL, 10);
        make_file(args[2], "cube.bsq", "bsq", size);
        make_file(args[2], "cube.bil", "bil", size);
        make_file(args[2], "cube.img", "bip", size);
        make_file(args[2], "cube.npy", NULL, size);
        return 0;
    }
    for (int i = 1; i < count; i++)
        time_file(args[i]);
    return 0;
}
