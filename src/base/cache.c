#define _GNU_SOURCE
#include "base/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

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

tess_json *tess_cache_read(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
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

void tess_cache_write(const char *path, const tess_json *record)
{
    char *text = tess_json_dump(record, true), temporary[TESS_CACHE_PATH + 40];
    snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
    make_folders_of(path);
    FILE *file = text ? fopen(temporary, "w") : NULL;
    if (file) {
        bool good = fputs(text, file) >= 0;
        good = fclose(file) == 0 && good;
        if (!good || rename(temporary, path) != 0)
            (void)unlink(temporary);
    }
    tess_small_free(text);
}
