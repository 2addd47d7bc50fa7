/* The input files of workloads. Their values do not matter, as long as they are neither constant nor all equal in size. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "io/image.h"
#include "job/study/bench_device.h"

static const float NODATA = -9999;

typedef char file_name[TESS_WORKLOAD_PATH + 64];

static tess_status failed(const char *path, tess_error *error)
{
    return tess_fail(error, TESS_IO_FAILED, "%s: cannot be written: %s", path, strerror(errno));
}

static tess_status make_folder(const char *path, tess_error *error)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? TESS_OK : failed(path, error);
}

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *where)
{
    (void)facts, (void)type, (void)where;
    return remove(path);
}

void tess_workload_remove(const char *folder)
{
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Noise, once; the rows of a file are this line, turned, so that drawing takes no time beside writing. */
static void draw_noise(int64_t count, uint32_t item, float *noise)
{
    tess_rng_normal((tess_rng_key){7, item, 0}, 0, count, noise);
    for (int64_t i = 0; i < count; i++)
        noise[i] = 130 + 10 * noise[i];
}

static void draw_row(int64_t row, int64_t count, const float *noise, float *values)
{
    const int64_t first = row * 7919 % count;
    memcpy(values, noise + first, (size_t)(count - first) * sizeof *values);
    memcpy(values + count - first, noise, (size_t)first * sizeof *values);
}

static tess_status write_image(const char *path, const tess_workload *w, uint32_t item, tess_memory *memory,
                               tess_error *error)
{
    const int64_t row = w->size * w->channels;
    const tess_image_info info = {
        .height = w->size, .width = w->size, .channels = w->channels, .dtype = TESS_U8, .full_scale = 255};
    tess_writer *writer = NULL;
    float *values = tess_small_alloc((size_t)(2 * row), sizeof *values),
          *noise = values ? values + row : NULL;
    uint8_t *samples = tess_small_alloc((size_t)row, 1);
    if (noise)
        draw_noise(row, item, noise);
    tess_status status = values && samples ? tess_writer_open(memory, path, &info, NULL, &writer, error)
                                           : tess_fail(error, TESS_NO_MEMORY, "no memory for an image");
    for (int64_t y = 0; y < w->size && status == TESS_OK; y++) {
        draw_row(y, row, noise, values);
        for (int64_t i = 0; i < row; i++)
            samples[i] = (uint8_t)(values[i] < 0 ? 0 : values[i] > 255 ? 255 : values[i]);
        status = tess_writer_rows(writer, 1, samples, error);
    }
    if (status == TESS_OK)
        status = tess_writer_commit(writer, error);
    tess_writer_close(writer);
    tess_small_free(values);
    tess_small_free(samples);
    return status;
}

/* The header of an NPY file; padded, so that the samples begin at a multiple of 64. */
static void npy_header(FILE *file, const char *type, const tess_workload *w)
{
    char text[118];
    const int used =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%lld, %lld, %lld), }",
                 type, (long long)w->size, (long long)w->size, (long long)w->channels);
    memset(text + used, ' ', sizeof text - (size_t)used);
    text[sizeof text - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(text, 1, sizeof text, file);
}

static void write_cube_row(FILE *file, const tess_workload *w, const float *values, uint16_t *samples)
{
    const int64_t row = w->size * w->channels;
    for (int64_t i = 0; i < row; i++)
        samples[i] = (uint16_t)(20 * (values[i] < 0 ? 0 : values[i]));
    if (w->data == TESS_DATA_CUBE16)
        fwrite(samples, sizeof *samples, (size_t)row, file);
    else
        fwrite(values, sizeof *values, (size_t)row, file);
}

/* Cubes and maps: rows of floats, or of integers. A map has square voids; ENVI's header is written beside it. */
static tess_status write_rows(const char *path, const tess_workload *w, uint32_t item, tess_error *error)
{
    const bool map = w->data == TESS_DATA_MAP;
    const int64_t row = w->size * w->channels, side = map && w->count > 1 ? w->size / 3 : w->size,
                  across = w->size / side;
    float *values = tess_small_alloc((size_t)(2 * row), sizeof *values),
          *noise = values ? values + row : NULL;
    uint16_t *samples = tess_small_alloc((size_t)row, sizeof *samples);
    FILE *file = values && samples ? fopen(path, "wb") : NULL;
    if (noise)
        draw_noise(row, item, noise);
    if (file && !map)
        npy_header(file, w->data == TESS_DATA_CUBE16 ? "<u2" : "<f4", w);
    for (int64_t y = 0; file && y < w->size; y++) {
        draw_row(y, row, noise, values);
        for (int64_t x = 0; map && x < row; x++) {
            const int64_t number = y / side * across + x / side, dx = x % side, dy = y % side;
            if (number < w->count && dx > side / 2 - 8 && dx < side / 2 + 8 && dy > side / 2 - 8 &&
                dy < side / 2 + 8)
                values[x] = NODATA;
        }
        write_cube_row(file, w, values, samples);
    }
    const bool written = file && !ferror(file);
    const bool closed = file && fclose(file) == 0;
    tess_small_free(values);
    tess_small_free(samples);
    return written && closed ? TESS_OK : failed(path, error);
}

static tess_status write_text(const char *path, const char *text, tess_error *error)
{
    FILE *file = fopen(path, "w");
    const bool written = file && fputs(text, file) >= 0;
    return file && fclose(file) == 0 && written ? TESS_OK : failed(path, error);
}

static tess_status write_header(const char *folder, const tess_workload *w, tess_error *error)
{
    char text[512];
    file_name path;
    snprintf(path, sizeof path, "%s/map.hdr", folder);
    snprintf(text, sizeof text,
             "ENVI\nsamples = %lld\nlines = %lld\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\n"
             "data type = 4\ninterleave = bsq\nbyte order = 0\ndata ignore value = %g\n",
             (long long)w->size, (long long)w->size, (double)NODATA);
    return write_text(path, text, error);
}

/* One file, or a folder of numbered ones. *input: what the verb is given. */
static tess_status write_input(const tess_workload *w, const char *folder, tess_memory *memory,
                               file_name input, tess_error *error)
{
    const bool image = w->data == TESS_DATA_IMAGE || w->data == TESS_DATA_CONFIG,
               many = w->data != TESS_DATA_MAP && (w->count > 1 || w->data == TESS_DATA_CONFIG);
    snprintf(input, sizeof(file_name), "%s/%s", folder, w->data == TESS_DATA_CONFIG ? "photographs" : "many");
    if (many)
        TESS_TRY(make_folder(input, error));
    for (int64_t i = 0; i < (many ? w->count : 1); i++) {
        file_name path;
        snprintf(path, sizeof path, "%s/%s%lld.%s", many ? input : folder, many ? "n" : "one", (long long)i,
                 image                      ? "png"
                 : w->data == TESS_DATA_MAP ? "img"
                                            : "npy");
        if (w->data == TESS_DATA_MAP)
            snprintf(path, sizeof path, "%s/map.img", folder);
        TESS_TRY(image ? write_image(path, w, (uint32_t)i, memory, error)
                       : write_rows(path, w, (uint32_t)i, error));
        if (!many)
            memcpy(input, path, sizeof path);
    }
    return w->data == TESS_DATA_MAP ? write_header(folder, w, error) : TESS_OK;
}

static tess_status write_config(const tess_workload *w, const char *folder, file_name input,
                                tess_error *error)
{
    char text[2048];
    snprintf(input, sizeof(file_name), "%s/config.json", folder);
    snprintf(text, sizeof text, "{%s,\"output\":\"../out/result.safetensors\"}", w->arguments);
    return write_text(input, text, error);
}

static const char two_lines[] = {'-', '-', '\0'};

/* Puts a word into the command. `option`: with the two lines that options begin with. */
static void add_word(tess_workload_command *c, size_t *used, const char *word, size_t length, bool option)
{
    const size_t left = sizeof c->text - *used;
    if (c->count >= TESS_WORKLOAD_ARGUMENTS - 1 || length + 3 > left)
        return;
    c->list[c->count++] = c->text + *used;
    c->list[c->count] = NULL;
    *used +=
        (size_t)snprintf(c->text + *used, left, "%s%.*s", option ? two_lines : "", (int)length, word) + 1;
}

static void compose(tess_workload_command *c, const char *verb, const char *input, const char *output,
                    const char *arguments)
{
    const char *const first[] = {verb, input, output};
    size_t used = 0;
    c->count = 0;
    for (int i = 0; i < 3; i++)
        if (first[i][0])
            add_word(c, &used, first[i], strlen(first[i]), false);
    for (bool option = true; *arguments; option = !option) {
        const size_t length = strcspn(arguments, " ");
        add_word(c, &used, arguments, length, option);
        arguments += length + (arguments[length] == ' ');
    }
}

tess_status tess_workload_make(const tess_workload *w, const char *folder, tess_memory *memory,
                               tess_workload_command *command, tess_error *error)
{
    char in[TESS_WORKLOAD_PATH];
    file_name input = "", output = "";
    snprintf(in, sizeof in, "%s/in", folder);
    tess_workload_remove(in);
    TESS_TRY(make_folder(in, error));
    if (w->data != TESS_DATA_NONE)
        TESS_TRY(write_input(w, in, memory, input, error));
    const bool folder_out = w->count > 1 && w->data != TESS_DATA_MAP;
    switch (w->data) {
    case TESS_DATA_CONFIG:
        TESS_TRY(write_config(w, in, input, error));
        break;
    case TESS_DATA_IMAGE:
        snprintf(output, sizeof output, folder_out ? "%s/out/many" : "%s/out/result.png", folder);
        break;
    case TESS_DATA_NONE:
    case TESS_DATA_CUBE:
    case TESS_DATA_CUBE16:
        snprintf(output, sizeof output, folder_out ? "%s/out/many" : "%s/out/result.npy", folder);
        break;
    case TESS_DATA_MAP:
        snprintf(output, sizeof output, "%s/out/result.tif", folder);
        break;
    }
    compose(command, w->verb, input, output, w->data == TESS_DATA_CONFIG ? "" : w->arguments);
    return TESS_OK;
}
