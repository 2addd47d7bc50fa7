#include "report/names.h"

#include <string.h>

#include "base/mem.h"

/* FNV-1a. A file that makes many names collide only slows its own page down. */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

/* Where a string is, or would be. */
static int32_t *place_of(const tess_names *names, const char *text)
{
    uint32_t at = hash_of(text) & (uint32_t)(names->place_count - 1);
    while (names->places[at] && strcmp(names->list[names->places[at] - 1], text) != 0)
        at = (at + 1) & (uint32_t)(names->place_count - 1);
    return &names->places[at];
}

static bool grow(tess_names *names)
{
    const int32_t room = names->room ? 2 * names->room : 64;
    char **list = tess_small_realloc(names->list, (size_t)room, sizeof *list);
    if (!list)
        return false;
    names->list = list;
    int32_t *places = tess_small_alloc((size_t)room * 2, sizeof *places);
    if (!places)
        return false;
    tess_small_free(names->places);
    names->places = places;
    names->room = room;
    names->place_count = 2 * room;
    for (int32_t i = 0; i < names->count; i++)
        *place_of(names, names->list[i]) = i + 1;
    return true;
}

tess_status tess_names_number(tess_names *names, const char *text, int32_t most, int32_t *number,
                              tess_error *error)
{
    if (names->count == names->room && !grow(names))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the names of a trace");
    int32_t *place = place_of(names, text);
    *number = *place - 1;
    if (*place || names->count >= most)
        return TESS_OK;
    char *copy = tess_small_strdup(text);
    if (!copy)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the names of a trace");
    names->list[names->count++] = copy;
    *place = names->count;
    *number = names->count - 1;
    return TESS_OK;
}

void tess_names_clear(tess_names *names)
{
    for (int32_t i = 0; i < names->count; i++)
        tess_small_free(names->list[i]);
    tess_small_free(names->list);
    tess_small_free(names->places);
    memset(names, 0, sizeof *names);
}
