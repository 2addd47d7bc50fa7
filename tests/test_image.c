/* test_image.c: every kind of image goes out and comes back unchanged, with its metadata, in uneven bites of rows;
 * what a reader or writer says it holds is what the counter sees; what is not committed leaves no trace. */
#define _XOPEN_SOURCE 700
#include "check.h"

#include <dirent.h>
#include <png.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/image.h"

static char folder[] = "/tmp/tess-image-XXXXXX";
static uint64_t seed = 1;

static uint32_t draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

static const char *in_folder(const char *name)
{
    static char path[4][512];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static int files_in_folder(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count;
}

static void empty_folder(void)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            unlink(in_folder(entry->d_name));
    if (dir)
        closedir(dir);
}

static tess_image_info describe(int64_t height, int64_t width, int channels, bool alpha, tess_dtype dtype)
{
    double scale = dtype == TESS_U8    ? 255
                   : dtype == TESS_U16 ? 65535
                   : dtype == TESS_I16 ? 32767
                   : dtype == TESS_U32 ? 4294967295.0
                   : dtype == TESS_I32 ? 2147483647
                                       : 1;
    return (tess_image_info){
        .height = height, .width = width, .channels = channels, .alpha = alpha, .dtype = dtype, .full_scale = scale};
}

static size_t row_bytes(const tess_image_info *info)
{
    return (size_t)info->width * (size_t)info->channels * tess_dtype_size(info->dtype);
}

/* Random samples; floats are sane numbers with a NaN and an infinity among them. */
static unsigned char *random_image(const tess_image_info *info)
{
    size_t bytes = row_bytes(info) * (size_t)info->height;
    unsigned char *data = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)draw();
    if (info->dtype == TESS_F32) {
        float *values = (float *)data;
        for (size_t i = 0; i < bytes / 4; i++)
            values[i] = (float)draw() / 1e9f - 1;
        values[0] = NAN;
        values[bytes / 8] = INFINITY;
    }
    return data;
}

static uint64_t io_peak(void)
{
    tess_mem_bytes peak;
    uint64_t total;
    tess_mem_peak(&peak, &total);
    return peak.by[TESS_MEM_IO];
}

static bool write_image(const char *path, const tess_image_info *info, const tess_reader *like, const void *data)
{
    tess_error error = {""};
    tess_writer *writer = NULL;
    tess_mem_reset_peak();
    uint64_t before = io_peak();
    bool good = tess_writer_open(path, info, like, &writer, &error) == TESS_OK;
    for (int64_t y = 0, bite = 1; good && y < info->height; y += bite, bite = bite * 2 + 1) {
        bite = bite > info->height - y ? info->height - y : bite;
        good = tess_writer_rows(writer, bite, (const char *)data + (size_t)y * row_bytes(info), &error) == TESS_OK;
    }
    good = good && tess_writer_commit(writer, &error) == TESS_OK;
    tess_writer_close(writer);
    CHECK_MSG(good, "%s: %s", path, error.text);
    CHECK_MSG(io_peak() - before == tess_writer_held_bytes(path, info), "%s: writer held %llu, said %zu", path,
              (unsigned long long)(io_peak() - before), tess_writer_held_bytes(path, info));
    return good;
}

/* The whole image, to be freed; *info is filled. NULL after a reported failure. */
static unsigned char *read_image(const char *path, tess_image_info *info)
{
    tess_error error = {""};
    tess_reader *reader = NULL;
    tess_mem_reset_peak();
    uint64_t before = io_peak();
    if (tess_reader_open(path, &reader, &error) != TESS_OK) {
        CHECK_MSG(false, "%s", error.text);
        return NULL;
    }
    *info = *tess_reader_info(reader);
    CHECK(io_peak() == before);
    unsigned char *data = malloc(row_bytes(info) * (size_t)info->height);
    bool good = true;
    for (int64_t y = 0, bite = 2; good && y < info->height; y += bite, bite = bite + 3) {
        bite = bite > info->height - y ? info->height - y : bite;
        good = tess_reader_rows(reader, bite, data + (size_t)y * row_bytes(info), &error) == TESS_OK;
    }
    CHECK_MSG(good, "%s", error.text);
    CHECK_MSG(io_peak() - before == info->held_bytes, "%s: reader held %llu, said %zu", path,
              (unsigned long long)(io_peak() - before), info->held_bytes);
    CHECK(tess_reader_rows(reader, 1, data, &error) == TESS_INTERNAL);
    tess_reader_close(reader);
    tess_mem_reset_peak();
    CHECK(io_peak() == before);
    return data;
}

static bool same_info(const tess_image_info *a, const tess_image_info *b)
{
    return a->height == b->height && a->width == b->width && a->channels == b->channels && a->alpha == b->alpha &&
           a->dtype == b->dtype && a->full_scale == b->full_scale;
}

/* Largest difference allowed: 0 = bit for bit. */
static void round_trip(const char *name, tess_image_info info)
{
    unsigned char *data = random_image(&info);
    tess_image_info back = {0};
    if (write_image(in_folder(name), &info, NULL, data)) {
        unsigned char *again = read_image(in_folder(name), &back);
        CHECK_MSG(same_info(&info, &back), "%s %lldx%lldx%d %s", name, (long long)info.height, (long long)info.width,
                  info.channels, tess_dtype_name(info.dtype));
        CHECK_MSG(again && same_info(&info, &back) &&
                      memcmp(data, again, row_bytes(&info) * (size_t)info.height) == 0,
                  "%s %lldx%lldx%d %s alpha %d", name, (long long)info.height, (long long)info.width, info.channels,
                  tess_dtype_name(info.dtype), info.alpha);
        free(again);
    }
    free(data);
}

static const int64_t sizes[][2] = {{1, 1}, {1, 37}, {53, 1}, {41, 67}, {130, 259}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void test_png(void)
{
    for (int s = 0; s < SIZES; s++)
        for (int channels = 1; channels <= 4; channels++)
            for (int deep = 0; deep < 2; deep++)
                round_trip("a.png", describe(sizes[s][0], sizes[s][1], channels, channels % 2 == 0,
                                             deep ? TESS_U16 : TESS_U8));
}

static void test_npy(void)
{
    static const tess_dtype dtypes[] = {TESS_U8, TESS_U16, TESS_I16, TESS_U32, TESS_I32, TESS_F32};
    for (int s = 0; s < SIZES; s++)
        for (int channels = 1; channels <= 7; channels += 2)
            for (int d = 0; d < 6; d++)
                round_trip("a.npy", describe(sizes[s][0], sizes[s][1], channels, false, dtypes[d]));
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    test_png();
    test_npy();
    empty_folder();
    CHECK(files_in_folder() == 0);
    rmdir(folder);
    return check_end();
}
