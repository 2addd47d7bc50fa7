#define _GNU_SOURCE
#include "base/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/temp.h"

enum { FOLDER = 1024, KEY = 256 };

static void folder_of(char *folder, size_t size)
{
    const char *own = getenv("TESSERA_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own && *own)
        snprintf(folder, size, "%s", own);
    else if (xdg && *xdg)
        snprintf(folder, size, "%s/tessera", xdg);
    else
        snprintf(folder, size, "%s/.cache/tessera", home && *home ? home : "/tmp");
}

void tess_cache_path(const char *key, char path[TESS_CACHE_PATH])
{
    char name[KEY], folder[FOLDER];
    snprintf(name, sizeof name, "%s", key);
    for (char *p = name; *p; p++) {
        bool plain = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        *p = plain ? *p : '-';
    }
    folder_of(folder, sizeof folder);
    snprintf(path, TESS_CACHE_PATH, "%s/%s-%s.json", folder, name, TESSERA_VERSION);
}

/* True for a regular file owned by this user. Other users' numbers are not trusted, and a pipe would block. */
static bool is_own(const struct stat *about)
{
    return S_ISREG(about->st_mode) && about->st_uid == geteuid();
}

tess_json *tess_cache_read(const char *path)
{
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat about;
    FILE *file = fd >= 0 && fstat(fd, &about) == 0 && is_own(&about) ? fdopen(fd, "r") : NULL;
    if (!file) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    static const size_t LIMIT = 1 << 20;
    char *text = tess_small_alloc(LIMIT, 1);
    tess_json *record = NULL;
    if (text && tess_json_parse(text, fread(text, 1, LIMIT, file), &record, NULL) != TESS_OK)
        record = NULL;
    tess_small_free(text);
    fclose(file);
    return record;
}

static void make_folders_of(const char *path)
{
    char part[TESS_CACHE_PATH];
    snprintf(part, sizeof part, "%s", path);
    for (char *p = part + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(part, 0777);
            *p = '/';
        }
}

/* False in another user's folder: that user could exchange the file while it is written. */
static bool may_write(const char *path)
{
    char folder[TESS_CACHE_PATH];
    struct stat about;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    if (stat(folder, &about) != 0 || about.st_uid != geteuid())
        return false;
    return lstat(path, &about) != 0 || is_own(&about);
}

tess_status tess_cache_write(const char *path, const tess_json *record, tess_error *error)
{
    make_folders_of(path);
    if (!may_write(path))
        return tess_fail(
            error, TESS_IO_FAILED,
            "%s: is not a file that this user may keep; set TESSERA_CACHE to a folder of your own", path);
    char *text = tess_json_dump(record, true);
    tess_temp *temp = NULL;
    tess_status status = text ? tess_temp_create(path, &temp, error)
                              : tess_fail(error, TESS_NO_MEMORY, "no memory to write %s", path);
    if (status == TESS_OK) {
        FILE *file = tess_temp_open(temp);
        bool good = file && fputs(text, file) >= 0;
        good = file && fclose(file) == 0 && good;
        status = good ? tess_temp_commit(temp, path, error)
                      : tess_fail(error, TESS_IO_FAILED, "cannot be written (%s)", strerror(errno));
        tess_temp_remove(temp);
    }
    tess_small_free(text);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}
