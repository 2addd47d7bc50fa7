/* writer.c: writes an image row by row, all or nothing.
 *
 * The rows go to a temporary file (base/temp.h) beside the target. So a folder that is not writable is found at
 * opening, and the rename at commit stays within one file system and is atomic. Closing without commit removes
 * the temporary file. A link is followed first (target.c): the file behind it is replaced, not the link.
 * Devices and folders are refused as targets, since a rename would replace them. */
#define _XOPEN_SOURCE 700
#include "io/writer_impl.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/trace.h"
#include "io/target.h"
#include "io/world.h"

static tess_status format_for(const char *path, const tess_write_format **out, tess_error *error)
{
    const tess_suffix *known = tess_suffix_of(path);
    *out = known ? known->write : NULL;
    if (*out)
        return TESS_OK;
    char list[160];
    tess_suffix_list(list, sizeof list);
    return tess_fail(error, TESS_BAD_OPTION, "%s: images cannot be written with this suffix; use one of %s",
                     path, list);
}

/* Also ensures, for the formats, that the image's bytes fit an int64_t. */
static tess_status check_info(const char *path, const tess_image_info *info, tess_error *error)
{
    int64_t bytes, rows = info->height;
    if (info->depth < 0 || info->depth > INT32_MAX ||
        (info->depth > 0 && !tess_mul_i64(info->depth, info->height, &rows)) || info->height < 1 ||
        info->width < 1 || info->channels < 1 || info->height > INT32_MAX || info->width > INT32_MAX ||
        !tess_mul_i64(rows, info->width, &bytes) || !tess_mul_i64(bytes, info->channels, &bytes) ||
        !tess_mul_i64(bytes, 8, &bytes))
        return tess_fail(error, TESS_BAD_OPTION, "%s: an image of %lld x %lld x %d cannot be written", path,
                         (long long)info->height, (long long)info->width, info->channels);
    return TESS_OK;
}

size_t tess_writer_held_bytes(const char *path, const tess_image_info *info)
{
    const tess_suffix *known = tess_suffix_of(path);
    bool possible = known && known->write && check_info(path, info, NULL) == TESS_OK;
    return possible ? known->write->held_bytes(path, info) + info->extras_bytes : 0;
}

bool tess_writer_is_picture(const char *path)
{
    const tess_suffix *known = tess_suffix_of(path);
    return known && known->write && known->write->only_rgb && known->write->only_rgb(path);
}

tess_status tess_writer_check_folder(const char *path, tess_error *error)
{
    char folder[4096], *target = NULL;
    TESS_TRY(tess_target_resolve(path, &target, error));
    (void)tess_target_folder(target, folder, sizeof folder);
    const bool too_long = access(target, F_OK) != 0 && errno == ENAMETOOLONG;
    tess_small_free(target);
    if (!too_long && access(folder, W_OK | X_OK) == 0)
        return TESS_OK;
    return tess_fail_prefix(error, tess_temp_fail(too_long ? ENAMETOOLONG : errno, error), path);
}

/* Finds the file to write and its format, and checks that the format can hold such an image. The caller frees
 * *target. */
static tess_status find_target(const char *path, const tess_image_info *info, char **target,
                               const tess_write_format **format, tess_error *error)
{
    TESS_TRY(format_for(path, format, error));
    TESS_TRY(check_info(path, info, error));
    if (info->depth > 0 && *format != &tess_write_npy)
        return tess_fail(error, TESS_BAD_OPTION,
                         "%s: a volume of %lld slices is written to .npy only; write NAME.npy", path,
                         (long long)info->depth);
    TESS_TRY(tess_target_resolve(path, target, error));
    tess_status status = (*format)->accepts(*target, info, error);
    if (status == TESS_OK)
        return TESS_OK;
    tess_small_free(*target);
    *target = NULL;
    return tess_fail_prefix(error, status, path);
}

tess_status tess_writer_check(const char *path, const tess_image_info *info, tess_error *error)
{
    const tess_write_format *format = NULL;
    char *target = NULL;
    tess_status status = find_target(path, info, &target, &format, error);
    tess_small_free(target);
    return status;
}

/* Takes memory to put blue, green and red, or any other order, in the order red, green, blue, if the target has no
 * other. */
static tess_status take_order(tess_writer *writer, const tess_reader *like, tess_error *error)
{
    const tess_image_info *info = &writer->info;
    const short *order = like->info.order;
    const bool sorted = !like->info.rgb || (order[0] <= order[1] && order[1] <= order[2]);
    if (sorted || like->info.channels != info->channels || !writer->format->only_rgb ||
        !writer->format->only_rgb(writer->target))
        return TESS_OK;
    writer->row = tess_small_alloc((size_t)(info->width * info->channels), tess_dtype_size(info->dtype));
    return writer->row ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a row");
}

/* Copies a row into writer->row. Alpha, after the colours, stays where it is. */
static void sort_colours(const tess_writer *writer, const char *row)
{
    const tess_image_info *info = &writer->info;
    const size_t size = tess_dtype_size(info->dtype), pixel = size * (size_t)info->channels;
    char *to = writer->row;
    memcpy(to, row, pixel * (size_t)info->width);
    for (int64_t x = 0; x < info->width; x++, to += pixel, row += pixel)
        for (size_t c = 0; c < 3; c++)
            memcpy(to + c * size, row + (size_t)info->order[c] * size, size);
}

static tess_status pass_rows(tess_writer *writer, int64_t count, const char *rows, tess_error *error)
{
    const tess_image_info *info = &writer->info;
    const size_t bytes = (size_t)(info->width * info->channels) * tess_dtype_size(info->dtype);
    if (!writer->row)
        return writer->format->rows(writer->state, writer->next_row, count, rows, error);
    for (int64_t y = 0; y < count; y++) {
        sort_colours(writer, rows + (size_t)y * bytes);
        TESS_TRY(writer->format->rows(writer->state, writer->next_row + y, 1, writer->row, error));
    }
    return TESS_OK;
}

/* `temp`: the file that another process has created; NULL: it is created here. */
static tess_status open_writer(tess_memory *memory, const char *path, const tess_image_info *info,
                               const tess_reader *like, const char *temp, tess_writer **out,
                               tess_error *error)
{
    *out = NULL;
    const tess_write_format *format = NULL;
    char *target = NULL;
    TESS_TRY(find_target(path, info, &target, &format, error));
    tess_writer *writer = tess_small_alloc(1, sizeof *writer);
    if (!writer || !(writer->path = tess_small_strdup(path))) {
        tess_small_free(target);
        tess_small_free(writer);
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", path);
    }
    writer->memory = memory;
    writer->format = format;
    writer->info = *info;
    writer->info.says = like ? like->info.says : 0;
    if (like) {
        memcpy(writer->info.transform, like->info.transform, sizeof writer->info.transform);
        memcpy(writer->info.order, like->info.order, sizeof writer->info.order);
        /* else they say nothing of the written samples */
        const bool same = like->info.dtype == info->dtype || info->same_numbers;
        writer->info.scale = same ? like->info.scale : 1;
        writer->info.offset = same ? like->info.offset : 0;
    }
    writer->target = target;
    if (info->axes == TESS_AXES_AUTO && like && info->depth == like->info.depth)
        writer->info.axes = like->info.axes;
    if (like && !(writer->like = tess_small_strdup(like->path))) {
        tess_writer_close(writer);
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", path);
    }
    writer->parts = temp != NULL;
    tess_status status = TESS_OK;
    if (!temp)
        status =
            tess_temp_create(target, &writer->temp, error); /* fails here if the folder is not writable */
    if (status == TESS_OK && like && !temp)
        status = tess_writer_take_extras(writer, like, error);
    if (status == TESS_OK && like && !info->only_place)
        status = take_order(writer, like, error);
    if (status == TESS_OK) {
        bool related = like && like->format == format->like_format;
        tess_create create = {.target = target,
                              .temp = temp ? temp : tess_temp_path(writer->temp),
                              .part = temp != NULL,
                              .memory = memory,
                              .info = &writer->info,
                              .like = related ? like->state : NULL,
                              .like_path = writer->like,
                              .extras = &writer->extras};
        status = format->create(&create, &writer->state, error);
    }
    if (status != TESS_OK) {
        tess_fail_prefix(error, status, path);
        tess_writer_close(writer);
        return status;
    }
    *out = writer;
    return TESS_OK;
}

tess_status tess_writer_open(tess_memory *memory, const char *path, const tess_image_info *info,
                             const tess_reader *like, tess_writer **out, tess_error *error)
{
    return open_writer(memory, path, info, like, NULL, out, error);
}

bool tess_writer_takes_parts(const char *path)
{
    const tess_suffix *known = tess_suffix_of(path);
    return known && known->write && known->write->takes_parts;
}

const char *tess_writer_file(const tess_writer *writer)
{
    return tess_temp_path(writer->temp);
}

tess_status tess_writer_open_part(tess_memory *memory, const char *path, const tess_image_info *info,
                                  const tess_reader *like, const char *file, tess_writer **out,
                                  tess_error *error)
{
    return open_writer(memory, path, info, like, file, out, error);
}

void tess_writer_seek(tess_writer *writer, int64_t row)
{
    writer->next_row = row;
    writer->parts = true;
}

tess_status tess_writer_rows(tess_writer *writer, int64_t count, const void *rows, tess_error *error)
{
    if (writer->failed || count < 0 || count > tess_image_rows(&writer->info) - writer->next_row)
        return tess_fail(error, TESS_INTERNAL, "%s: more rows than the image has, or rows after a failure",
                         writer->path);
    if (count == 0)
        return TESS_OK;
    if (!writer->counted)
        tess_memory_count(writer->memory, TESS_MEM_HOST,
                          (int64_t)(writer->held = tess_extras_held(&writer->extras)));
    writer->counted = true;
    const double start = tess_trace_begin(writer->memory->trace);
    tess_status status = pass_rows(writer, count, rows, error);
    tess_trace_end(writer->memory->trace, TESS_TRACE_WRITE, "write rows", start);
    if (status != TESS_OK) {
        writer->failed = true;
        return tess_fail_prefix(error, status, writer->path);
    }
    writer->next_row += count;
    return TESS_OK;
}

static tess_status place_world(const tess_writer *writer, tess_error *error)
{
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s.world", tess_temp_path(writer->temp));
    tess_status status = tess_world_write(writer->info.transform, name, writer->target, error);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, writer->path);
}

tess_status tess_writer_commit(tess_writer *writer, tess_error *error)
{
    if (writer->failed || (!writer->parts && writer->next_row != tess_image_rows(&writer->info)))
        return tess_fail(error, TESS_INTERNAL, "%s: commit after %lld of %lld rows", writer->path,
                         (long long)writer->next_row, (long long)tess_image_rows(&writer->info));
    writer->failed = true; /* no call may follow, whatever happens */
    const double start = tess_trace_begin(writer->memory->trace);
    tess_status status = writer->format->finish(writer->state, error);
    tess_trace_end(writer->memory->trace, TESS_TRACE_WRITE, "finish a file", start);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, writer->path);
    if (!writer->temp)
        return TESS_OK; /* the process that created the file renames it */
    const bool placed = writer->info.says & TESS_SAYS_TRANSFORM;
    if (placed && tess_world_used(writer->target))
        TESS_TRY(place_world(writer, error));
    const bool own = writer->like && tess_image_same_file(writer->like, writer->target);
    status = tess_temp_commit(writer->temp, writer->target, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, writer->path);
    tess_remove_stale_sides(writer->target, own, placed, writer->like);
    return TESS_OK;
}

void tess_writer_close(tess_writer *writer)
{
    if (!writer)
        return;
    if (writer->state)
        writer->format->close(writer->state);
    tess_temp_remove(writer->temp);
    tess_memory_count(writer->memory, TESS_MEM_HOST, -(int64_t)writer->held);
    tess_extras_free(&writer->extras);
    tess_small_free(writer->row);
    tess_small_free(writer->like);
    tess_small_free(writer->target);
    tess_small_free(writer->path);
    tess_small_free(writer);
}
