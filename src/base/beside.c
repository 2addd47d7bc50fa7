#define _GNU_SOURCE
#include "base/beside.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_PATH = 4096 };

/* Path of the file that contains this function. */
static bool own_file(char path[FILE_PATH])
{
    Dl_info found;
    char *real = NULL;
    /* dladdr gives the program's name as it was typed: only the name of a shared library is a path. */
    if (dladdr((void *)(size_t)&tess_beside, &found) && found.dli_fname && strchr(found.dli_fname, '/'))
        real = realpath(found.dli_fname, NULL);
    const bool fits = real && strlen(real) < FILE_PATH;
    if (fits)
        strcpy(path, real);
    free(real);
    return fits;
}

static bool program_file(char path[FILE_PATH])
{
    const ssize_t length = readlink("/proc/self/exe", path, FILE_PATH - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    return true;
}

bool tess_beside(int index, char *folder, size_t size)
{
    char own[FILE_PATH], program[FILE_PATH];
    const char *files[2];
    int count = 0;
    if (own_file(own))
        files[count++] = own;
    if (program_file(program) && (count == 0 || strcmp(own, program) != 0))
        files[count++] = program;
    if (index >= count)
        return false;
    const char *slash = strrchr(files[index], '/');
    const int length = slash ? (int)(slash - files[index]) : 0;
    /* Skip a path that does not fit; the next one may. */
    if ((size_t)snprintf(folder, size, "%.*s", length, files[index]) >= size)
        folder[0] = '\0';
    return true;
}
