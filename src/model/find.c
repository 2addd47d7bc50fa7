/* Where a model's weights are: a name with '/' or a known suffix is a file; any other is looked up in
 * $TESSERA_MODELS, in the source tree this was built from, and beside the installed program. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/model.h"

bool tess_model_folder(int index, char *path, size_t size)
{
    const char *named = getenv("TESSERA_MODELS");
    if (named && *named && index-- == 0) {
        snprintf(path, size, "%s", named);
        return true;
    }
    if (index == 0) {
        snprintf(path, size, "%s", TESSERA_SOURCE_MODELS);
        return true;
    }
    if (index > 1)
        return false;
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return false;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    return (size_t)snprintf(path, size, "%s/../share/tessera/models", program) < size;
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);
    return length > end && strcmp(name + length - end, suffix) == 0;
}

tess_status tess_model_find(const char *name, char *path, size_t size, tess_error *error)
{
    static const char *const suffixes[] = {".safetensors", ".pth", ".pt", ".pkl", ".bin", ".ckpt"};
    bool file = strchr(name, '/') != NULL || tess_model_is_random(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        file |= has_suffix(name, suffixes[i]);
    if (file) {
        if ((size_t)snprintf(path, size, "%s", name) >= size)
            return tess_fail(error, TESS_BAD_OPTION, "--model: the path is too long");
        return TESS_OK;
    }
    char folder[4096];
    for (int i = 0; tess_model_folder(i, folder, sizeof folder); i++)
        if ((size_t)snprintf(path, size, "%s/%s.safetensors", folder, name) < size && access(path, R_OK) == 0)
            return TESS_OK;
    return tess_fail(
        error, TESS_BAD_INPUT,
        "--model %s: no bundled model of that name; `tessera info` lists them, or give a weight file", name);
}
