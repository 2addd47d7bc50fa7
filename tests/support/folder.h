/* folder.h: a temporary folder for the files of a test, and random numbers to fill and damage them. Needs
 * _XOPEN_SOURCE. */
#ifndef TESS_TESTS_FOLDER_H
#define TESS_TESTS_FOLDER_H

#include <dirent.h>
#include <stdint.h>

#include "check.h"

static char folder[] = "/tmp/tess-test-XXXXXX"; /* mkdtemp(folder) makes it */

/* Valid until the fourth call after this one. */
static inline const char *in_folder(const char *name)
{
    static char path[4][512];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* How many names there are; with `remove_files` they are removed. */
static inline int sweep_folder(bool remove_files)
{
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            count++;
            if (remove_files)
                remove(in_folder(entry->d_name));
        }
    if (dir)
        closedir(dir);
    return count;
}

/* The same numbers in every run. */
static inline uint32_t draw(void)
{
    static uint64_t seed = 7;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

#endif
