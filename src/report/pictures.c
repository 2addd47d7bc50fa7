#include "report/pictures.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "report/picture.h"

typedef enum drawing { AS_IT_IS, HEAT, HILLSHADE, FALSE_COLOURS } drawing;

/* Which of a record's `paths` are shown, and how. */
static const struct {
    const char *command, *key, *role;
    drawing how;
} wanted[] = {
    {"fill", "input", "before", HILLSHADE},
    {"fill", "output", "after", HILLSHADE},
    {"fill", "deviation", "uncertainty", HEAT},
    {"fill", "truth", "truth", HILLSHADE},
    {"detect", "input", "false colours", FALSE_COLOURS},
    {"detect", "output", "scores", HEAT},
    {"detect", "overlay", "overlay", AS_IT_IS},
    {"detect", "truth", "truth", HEAT},
    {"denoise", "input", "before", AS_IT_IS},
    {"denoise", "output", "after", AS_IT_IS},
    {"reconstruct", "output", "result", AS_IT_IS},
    {"reconstruct", "image", "truth", AS_IT_IS},
};

typedef struct finding {
    tess_pictures *pictures;
    tess_memory *memory;
    const char *near;
    tess_stop *stop;
    double steepness; /* shared by the maps of one record */
} finding;

static bool is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* A record names its files as they were given: from the folder of that run, which may be this one, or that of the record. */
static bool find_file(const char *name, const char *records, char *path, size_t room)
{
    const char *slash = strrchr(records, '/'), *last = strrchr(name, '/');
    const int folder = slash ? (int)(slash - records) + 1 : 0;
    if (strlen(name) < room && is_file(name)) {
        strcpy(path, name);
        return true;
    }
    if (name[0] != '/' && snprintf(path, room, "%.*s%s", folder, records, name) < (int)room && is_file(path))
        return true;
    return snprintf(path, room, "%.*s%s", folder, records, last ? last + 1 : name) < (int)room &&
           is_file(path);
}

static const char *draw(drawing how, const tess_reduced *image, double *steepness, unsigned char *pixels)
{
    switch (how) {
    case AS_IT_IS:
        tess_draw_plain(image, pixels);
        return "as it is";
    case HEAT:
        tess_draw_heat(image, pixels);
        return "colours from dark (low) to yellow (high)";
    case HILLSHADE:
        tess_draw_hillshade(image, steepness, pixels);
        return "hillshade, voids red";
    case FALSE_COLOURS:
        tess_draw_plain(image, pixels);
        return "three of its bands";
    }
    return "";
}

static tess_status make_picture(finding *f, const char *path, drawing how, tess_picture *picture,
                                tess_error *error)
{
    tess_reduced image = {0};
    unsigned char *pixels = NULL;
    tess_status status = how == FALSE_COLOURS
                             ? tess_reduce_cube(f->memory, path, TESS_PICTURE_SIDE, f->stop, &image, error)
                             : tess_reduce_image(f->memory, path, TESS_PICTURE_SIDE, f->stop, &image, error);
    if (status == TESS_OK) {
        pixels = tess_small_alloc((size_t)(image.height * image.width), 3);
        status = pixels ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a picture");
    }
    if (status == TESS_OK) {
        picture->shown = draw(how, &image, &f->steepness, pixels);
        picture->height = image.full_height;
        picture->width = image.full_width;
        status = tess_encode_png(f->memory, f->near, image.height, image.width, pixels, &picture->png,
                                 &picture->bytes, error);
    }
    tess_small_free(pixels);
    tess_reduced_clear(&image);
    return status;
}

/* A file that gives no picture is left out; only a stop, and no memory, end the search. */
static tess_status add_picture(finding *f, int64_t record, const char *role, const char *name,
                               const char *path, drawing how, tess_error *error)
{
    tess_pictures *p = f->pictures;
    tess_picture picture = {.record = record, .role = role};
    if (p->count == TESS_PICTURES_MOST) {
        p->left_out++;
        return TESS_OK;
    }
    const tess_status status = make_picture(f, path, how, &picture, error);
    if (status != TESS_OK)
        return status == TESS_INTERRUPTED || status == TESS_NO_MEMORY ? status : TESS_OK;
    picture.name = tess_small_strdup(name);
    if (!picture.name) {
        tess_small_free(picture.png);
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a picture");
    }
    p->list[p->count++] = picture;
    return TESS_OK;
}

static tess_status of_record(finding *f, const tess_store *store, int64_t index, tess_error *error)
{
    const tess_stored *stored = &store->records[index];
    tess_json *record = NULL;
    char path[4096];
    if (!strstr(stored->text, "\"paths\"")) /* most records of studies: not worth parsing */
        return TESS_OK;
    TESS_TRY(tess_json_parse(stored->text, stored->bytes, &record, error));
    const char *command = tess_json_get_string(record, "command", "");
    const tess_json *paths = tess_json_get(record, "paths");
    tess_status status = TESS_OK;
    f->steepness = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && status == TESS_OK; i++) {
        const char *name =
            strcmp(command, wanted[i].command) == 0 ? tess_json_get_string(paths, wanted[i].key, NULL) : NULL;
        if (name && find_file(name, store->files[stored->file].path, path, sizeof path))
            status = add_picture(f, index, wanted[i].role, name, path, wanted[i].how, error);
    }
    tess_json_free(record);
    return status;
}

tess_status tess_pictures_find(tess_pictures *pictures, const tess_store *store, tess_memory *memory,
                               const char *near, tess_stop *stop, tess_error *error)
{
    finding f = {pictures, memory, near, stop, 0};
    for (int64_t i = 0; i < store->count; i++)
        TESS_TRY(of_record(&f, store, i, error));
    return TESS_OK;
}

void tess_pictures_clear(tess_pictures *pictures)
{
    for (int i = 0; i < pictures->count; i++) {
        tess_small_free(pictures->list[i].name);
        tess_small_free(pictures->list[i].png);
    }
    pictures->count = 0;
}
