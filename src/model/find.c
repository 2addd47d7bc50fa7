/* Finds the weights of a model. A name with '/' or a known suffix is a file. Any other name is searched for in
 * $TESSERA_MODELS, then in share/tessera/models beside this installation (base/beside.h); the build folder has its
 * own share/. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/beside.h"
#include "model/model.h"

enum { FILE_PATH = 4096 };

/* Relative to bin/ or lib/; to lib/ARCHITECTURE/, as on Debian; to the build folder or a Python package. */
static const char *const beside[] = {"../share/tessera/models", "../../share/tessera/models",
                                     "share/tessera/models"};
enum { BESIDE = sizeof beside / sizeof beside[0] };

bool tess_model_folder(int index, char *path, size_t size)
{
    const char *named = getenv("TESSERA_MODELS");
    if (named && *named && index-- == 0) {
        snprintf(path, size, "%s", named);
        return true;
    }
    char folder[FILE_PATH];
    if (!tess_beside(index / BESIDE, folder, sizeof folder))
        return false;
    /* Skip a path that does not fit; the next ones may. */
    if ((size_t)snprintf(path, size, "%s/%s", folder, beside[index % BESIDE]) >= size)
        path[0] = '\0';
    return true;
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
            return tess_fail(error, TESS_BAD_OPTION, "`model`: the path is too long");
        return TESS_OK;
    }
    char folder[FILE_PATH];
    for (int i = 0; tess_model_folder(i, folder, sizeof folder); i++)
        if ((size_t)snprintf(path, size, "%s/%s.safetensors", folder, name) < size && access(path, R_OK) == 0)
            return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT,
                     "`model` %s: no bundled model of that name; `tessera info` lists them, TESSERA_MODELS "
                     "names their folder, or "
                     "give a weight file",
                     name);
}
