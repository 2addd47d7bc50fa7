/* gdal_open.c: checks an input file and opens it with GDAL.
 *
 * GDAL accepts more than files: names with prefixes ("GTIFF_DIR:", "/vsicurl/"), texts that describe a network
 * service, files that name other files. So a path must be a regular file, is passed to GDAL in a form that no
 * prefix can match, and is offered only to drivers of plain local formats (gdal_api.c registers no others). The
 * references that these still follow are checked before: the sample file of Erdas Imagine, the sources of a
 * VRT, pipes in place of side files.
 *
 * GDAL is written in C++ and throws when memory runs out, which would end a C program. So before each call, the
 * memory that GDAL may need for opening and reading is allocated once and freed again. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/checked.h"
#include "io/gdal_api.h"
#include "io/hfa_probe.h"
#include "io/jpeg_probe.h"
#include "io/target.h"
#include "io/vrt_check.h"

tess_status tess_gdal_have_room(int64_t bytes, tess_error *error)
{
    void *room =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return tess_fail(
            error, TESS_NO_MEMORY,
            "the GDAL library needs %lld MiB of memory that this process does not get (%s); raise its "
            "limit (ulimit -v)",
            (long long)(bytes >> 20), strerror(errno));
    munmap(room, (size_t)bytes);
    return TESS_OK;
}

/* The last folder that contained only regular files and folders, so that a folder with many images is not
 * scanned again for each of them. It is identified by its modification time; a time within the last seconds may
 * hide a later change. */
static pthread_mutex_t plain_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stat plain_folder;

static bool is_plain(const struct stat *folder)
{
    pthread_mutex_lock(&plain_lock);
    const struct stat *known = &plain_folder;
    const bool same = known->st_ino == folder->st_ino && known->st_dev == folder->st_dev &&
                      known->st_mtim.tv_sec == folder->st_mtim.tv_sec &&
                      known->st_mtim.tv_nsec == folder->st_mtim.tv_nsec;
    pthread_mutex_unlock(&plain_lock);
    return same;
}

static void remember_plain(const struct stat *folder)
{
    if (time(NULL) - folder->st_mtim.tv_sec <= 2)
        return;
    pthread_mutex_lock(&plain_lock);
    plain_folder = *folder;
    pthread_mutex_unlock(&plain_lock);
}

/* Whether GDAL may open this file with an image whose name has a stem of `stem` bytes: f.aux, f.tif.msk, f_rpc.txt and
 * so on with f.tif. */
static bool may_belong(const char *file, const char *name, size_t stem)
{
    const char *rest = file + stem;
    return strncmp(file, name, stem) == 0 &&
           (*rest == '.' || *rest == '\0' || strncasecmp(rest, "_rpc", 4) == 0 ||
            strncasecmp(rest, "_metadata", 9) == 0);
}

/* GDAL opens any file beside an image whose name it knows, and would wait forever on a pipe. */
static tess_status check_neighbours(const char *path, tess_error *error)
{
    char folder[PATH_MAX], odd[NAME_MAX + 1] = "";
    struct stat before, about;
    const char *name = tess_target_folder(path, folder, sizeof folder), *dot = strrchr(name, '.');
    const size_t stem = dot && dot != name ? (size_t)(dot - name) : strlen(name);
    const bool known = stat(folder, &before) == 0;
    if (known && is_plain(&before))
        return TESS_OK;
    DIR *list = opendir(folder);
    bool plain = known && list;
    for (struct dirent *entry; list && !odd[0] && (entry = readdir(list));) {
        if (entry->d_type == DT_REG || entry->d_type == DT_DIR)
            continue;
        plain = false;
        if (may_belong(entry->d_name, name, stem) && fstatat(dirfd(list), entry->d_name, &about, 0) == 0 &&
            !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode))
            snprintf(odd, sizeof odd, "%s", entry->d_name);
    }
    if (list)
        closedir(list);
    if (plain)
        remember_plain(&before);
    if (!odd[0])
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT,
                     "%s beside it is not a regular file, and may not be opened with it", odd);
}

static tess_status check_file(const char *path, tess_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be opened for reading (%s)", strerror(errno));
    if (!S_ISREG(about.st_mode))
        return tess_fail(error, TESS_BAD_INPUT, "is not a regular file; images are read from files");
    if (strncmp(path, "/vsi", 4) == 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         "has a name that GDAL takes for another place; rename its folder");
    if (tess_suffix_is(path, ".zip"))
        return tess_fail(error, TESS_BAD_INPUT, "is an archive; unpack it, and name an image in it");
    TESS_TRY(check_neighbours(path, error));
    if (!tess_hfa_stays_in_folder(path))
        return tess_fail(error, TESS_BAD_INPUT,
                         "keeps its samples in a file outside its folder, or is damaged; convert it to TIFF");
    return TESS_OK;
}

/* The VRT driver is registered only while a VRT is opened, so that no other file can be taken for one. GDAL
 * gets the text that was checked, so that it cannot change in between. */
static tess_status open_vrt(const char *path, unsigned flags, GDALDatasetH *out, tess_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *const only[] = {"VRT", NULL};
    char *text = NULL, folder[PATH_MAX];
    TESS_TRY(tess_vrt_check(path, check_file, &text, error));
    (void)tess_target_folder(path, folder, sizeof folder);
    char **options = tess_gdal.CSLSetNameValue(NULL, "ROOT_PATH", folder);
    pthread_mutex_lock(&lock);
    void *driver = tess_gdal_add_vrt();
    if (driver) {
        *out = tess_gdal.GDALOpenEx(text, flags, only, (const char *const *)options, NULL);
        tess_gdal.GDALDeregisterDriver(driver);
    }
    pthread_mutex_unlock(&lock);
    tess_gdal.CSLDestroy(options);
    tess_small_free(text);
    return *out ? TESS_OK : tess_gdal_fail(error, TESS_BAD_INPUT, "damaged, or not a VRT that GDAL can read");
}

/* Size of a BMP's information header, which follows the 14 bytes of the file header; 0: not a BMP. */
static unsigned bmp_header(const char *path)
{
    unsigned char head[18] = {0};
    FILE *file = fopen(path, "rb");
    const bool whole = file && fread(head, 1, sizeof head, file) == sizeof head;
    if (file)
        fclose(file);
    return whole && memcmp(head, "BM", 2) == 0 ? head[14] | (unsigned)head[15] << 8 : 0;
}

/* The header of an extended WebP has a flag for animations, whose frames GDAL does not find. */
static bool is_animated_webp(const char *path)
{
    enum { FLAGS = 20, ANIMATION = 2 };
    unsigned char head[FLAGS + 1] = {0};
    FILE *file = fopen(path, "rb");
    const bool whole = file && fread(head, 1, sizeof head, file) == sizeof head;
    if (file)
        fclose(file);
    return whole && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WEBPVP8X", 8) == 0 &&
           head[FLAGS] & ANIMATION;
}

tess_status tess_gdal_open(const char *path, uint64_t page, GDALDatasetH *out, tess_error *error)
{
    static const char *const tiff[] = {"GTiff", NULL};
    const unsigned flags = GDAL_OF_RASTER | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR;
    char name[PATH_MAX], prefix[48] = "";
    *out = NULL;
    TESS_TRY(check_file(path, error));
    TESS_TRY(tess_gdal_have_room(TESS_GDAL_ROOM, error));
    if (is_animated_webp(path))
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "is an animation, which GDAL cannot read; take one frame of it (webpmux -get frame 1 "
            "IN -o OUT.webp)");
    tess_gdal.CPLErrorReset();
    if (page)
        snprintf(prefix, sizeof prefix, "GTIFF_DIR:off:%llu:", (unsigned long long)page);
    else if (tess_suffix_is(path, ".vrt"))
        return open_vrt(path, flags, out, error);
    if (snprintf(name, sizeof name, "%s%s%s", prefix, path[0] == '/' ? "" : "./", path) >= (int)sizeof name)
        return tess_fail(error, TESS_BAD_INPUT, "has a name that is too long");
    *out = tess_gdal.GDALOpenEx(name, flags, page ? tiff : tess_gdal_drivers, NULL, NULL);
    if (*out)
        return TESS_OK;
    const unsigned bmp = bmp_header(path);
    if (bmp > 64) /* headers of Windows 95 and later, with masks and colour spaces */
        return tess_fail(error, TESS_UNSUPPORTED,
                         "is a BMP with a header of %u bytes, which GDAL cannot read; convert it, to PNG say",
                         bmp);
    const int bits = tess_jpeg_precision(path);
    if (bits > 0 && bits != 8) /* 12 needs a GDAL with a second libjpeg, and lossless ones have up to 16 */
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "is a JPEG of %d bits, which this GDAL cannot read; convert it to PNG or TIFF of 16 bits", bits);
    if (tess_suffix_of(path))
        return tess_gdal_fail(error, TESS_BAD_INPUT, "damaged, or not an image that GDAL can read");
    return tess_gdal_fail(error, TESS_BAD_INPUT,
                          "damaged, or of a format that is not read here; convert it to TIFF (gdal_translate "
                          "reads many formats) or to "
                          "a NumPy array (.npy)");
}
