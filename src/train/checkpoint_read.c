#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "train/checkpoint_impl.h"

/* A checkpoint that was opened and found whole. */
typedef struct source {
    int fd;
    uint64_t bytes, blocks; /* size of the file; where the blocks begin */
    tess_json *header;
} source;

static void close_source(source *s)
{
    if (s->fd >= 0)
        close(s->fd);
    tess_json_free(s->header);
    *s = (source){.fd = -1};
}

static tess_status get(const source *s, uint64_t offset, void *data, size_t bytes, tess_error *error)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(s->fd, (char *)data + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) /* a place of the disk that cannot be read is damage, too */
            return tess_fail(error, errno == EIO ? TESS_BAD_INPUT : TESS_IO_FAILED, "cannot be read: %s",
                             strerror(errno));
        if (got == 0)
            return tess_fail(error, TESS_BAD_INPUT, "is cut short");
        done += (size_t)got;
    }
    return TESS_OK;
}

static uint64_t from_bytes(const unsigned char bytes[8])
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* The whole file is summed before any of it is believed. */
static tess_status check_sum(const source *s, const tess_block *buffer, tess_error *error)
{
    tess_xxh64 sum;
    unsigned char tail[TESS_CHECKPOINT_TAIL];
    const uint64_t end = s->bytes - sizeof tail;
    tess_xxh64_begin(&sum);
    for (uint64_t done = 0, step; done < end; done += step) {
        step = end - done < buffer->bytes ? end - done : buffer->bytes;
        TESS_TRY(get(s, done, buffer->data, (size_t)step, error));
        tess_xxh64_add(&sum, buffer->data, (size_t)step);
    }
    TESS_TRY(get(s, end, tail, sizeof tail, error));
    if (from_bytes(tail) == tess_xxh64_end(&sum))
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT, "is damaged or cut short: its checksum is wrong");
}

static tess_status read_header(source *s, const unsigned char *head, tess_error *error)
{
    const uint64_t length = from_bytes(head + 16);
    if (length > TESS_CHECKPOINT_HEADER_MOST ||
        length > s->bytes - TESS_CHECKPOINT_HEAD - TESS_CHECKPOINT_TAIL)
        return tess_fail(error, TESS_BAD_INPUT, "is damaged or cut short: its header does not fit");
    s->blocks = TESS_CHECKPOINT_HEAD + length;
    char *text = tess_small_alloc((size_t)length + 1, 1);
    if (!text)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for its header");
    tess_status status = get(s, TESS_CHECKPOINT_HEAD, text, (size_t)length, error);
    if (status == TESS_OK)
        status = tess_json_parse(text, (size_t)length, &s->header, error);
    tess_small_free(text);
    return status;
}

static int64_t block_size(const source *s, int state)
{
    return tess_json_get_int(tess_json_get(s->header, "blocks"),
                             tess_checkpoint_block_name((tess_training_state)state), 0);
}

static tess_status check_sizes(const source *s, tess_error *error)
{
    int64_t values = 0, bytes = 0;
    bool fits = true;
    for (int state = 0; state < TESS_STATES; state++)
        fits = fits && block_size(s, state) >= 0 && tess_add_i64(values, block_size(s, state), &values);
    fits = fits && tess_mul_i64(values, (int64_t)sizeof(float), &bytes);
    if (!fits || (uint64_t)bytes != s->bytes - s->blocks - TESS_CHECKPOINT_TAIL)
        return tess_fail(error, TESS_BAD_INPUT,
                         "is damaged: its blocks do not have the size that its header says");
    return TESS_OK;
}

static tess_status open_source(const char *path, const tess_block *buffer, source *s, tess_error *error)
{
    struct stat about;
    unsigned char head[TESS_CHECKPOINT_HEAD];
    s->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (s->fd < 0 || fstat(s->fd, &about) != 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be opened: %s", strerror(errno));
    if (!S_ISREG(about.st_mode) || about.st_size < TESS_CHECKPOINT_HEAD + TESS_CHECKPOINT_TAIL)
        return tess_fail(error, TESS_BAD_INPUT, "is cut short");
    s->bytes = (uint64_t)about.st_size;
    TESS_TRY(get(s, 0, head, sizeof head, error));
    if (memcmp(head, TESS_CHECKPOINT_MAGIC, 8) != 0)
        return tess_fail(error, TESS_BAD_INPUT, "is damaged, or no checkpoint");
    if (from_bytes(head + 8) != TESS_CHECKPOINT_VERSION)
        return tess_fail(error, TESS_BAD_INPUT, "has format %llu; this version reads format %d",
                         (unsigned long long)from_bytes(head + 8), TESS_CHECKPOINT_VERSION);
    TESS_TRY(check_sum(s, buffer, error));
    TESS_TRY(read_header(s, head, error));
    return check_sizes(s, error);
}

static void shape_text(const tess_json *shape, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < tess_json_length(shape) && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, i ? "x%lld" : "%lld",
                                 (long long)tess_json_as_int(tess_json_at(shape, i), 0));
}

static bool same_shape(const tess_json *shape, const tess_parameter *p)
{
    bool same = tess_json_length(shape) == p->rank;
    for (int i = 0; same && i < p->rank; i++)
        same = tess_json_as_int(tess_json_at(shape, i), -1) == p->dims[i];
    return same;
}

static tess_status check_parameters(const source *s, const tess_parameters *parameters, tess_error *error)
{
    const tess_json *list = tess_json_get(s->header, "parameters");
    const int64_t count = tess_json_length(list);
    for (int i = 0; i < parameters->count || i < count; i++) {
        const tess_json *entry = tess_json_at(list, i);
        const char *name = tess_json_get_string(entry, "name", NULL);
        const tess_parameter *p = i < parameters->count ? &parameters->list[i] : NULL;
        if (!p || !name || strcmp(name, p->name) != 0)
            return tess_fail(error, TESS_BAD_INPUT,
                             "is of another network: it has the parameter %s where this one has %s",
                             name ? name : "(none)", p ? p->name : "(none)");
        if (same_shape(tess_json_get(entry, "shape"), p))
            continue;
        char shape[96], wanted[96];
        size_t used = 0;
        shape_text(tess_json_get(entry, "shape"), shape, sizeof shape);
        for (int k = 0; k < p->rank && used < sizeof wanted; k++)
            used += (size_t)snprintf(wanted + used, sizeof wanted - used, k ? "x%lld" : "%lld",
                                     (long long)p->dims[k]);
        return tess_fail(error, TESS_BAD_INPUT,
                         "is of another network: its %s is %s, and that of this one %s", p->name, shape,
                         wanted);
    }
    return TESS_OK;
}

static tess_status check_contents(const source *s, const tess_checkpoint_contents *contents,
                                  tess_train_state *state, tess_error *error)
{
    TESS_TRY(check_parameters(s, contents->parameters, error));
    TESS_TRY(tess_train_config_continues(tess_json_get(s->header, "config"), contents->config, error));
    const char *images = tess_json_get_string(s->header, "images", NULL);
    if (images && contents->images && strlen(images) % 8 == 0)
        TESS_TRY(tess_images_unchanged(contents->images, images, error));
    for (int i = 0; i < TESS_STATES; i++)
        if (block_size(s, i) != contents->blocks.sizes[i])
            return tess_fail(error, TESS_BAD_INPUT, "holds %lld values of %s, and this run needs %lld",
                             (long long)block_size(s, i), tess_checkpoint_block_name((tess_training_state)i),
                             (long long)contents->blocks.sizes[i]);
    return tess_train_state_read(tess_json_get(s->header, "state"), state, error);
}

static tess_status load_blocks(const source *s, const tess_checkpoint_blocks *blocks,
                               const tess_block *buffer, tess_error *error)
{
    const int64_t most = (int64_t)(buffer->bytes / sizeof(float));
    uint64_t offset = s->blocks;
    for (int state = 0; state < TESS_STATES; state++)
        for (int64_t done = 0, step; done < blocks->sizes[state]; done += step) {
            step = tess_min_i64(most, blocks->sizes[state] - done);
            TESS_TRY(get(s, offset, buffer->data, (size_t)step * sizeof(float), error));
            TESS_TRY(blocks->set(blocks->user, (tess_training_state)state, done, step, buffer->data, error));
            offset += (uint64_t)step * sizeof(float);
        }
    return TESS_OK;
}

/* Where the lines about damaged files go. */
typedef struct listener {
    tess_note_fn note;
    void *user;
} listener;

/* Opens the newest whole one. If there is none, the message is about the newest. Other failures than damage end the search:
 * an older checkpoint would silently undo work. */
static tess_status open_newest(tess_checkpoints *checkpoints, const int64_t *steps, int count, listener to,
                               source *s, char **path, tess_error *error)
{
    tess_status status = TESS_OK;
    for (int i = 0; i < count; i++) {
        tess_error why = {""};
        if (!(*path = tess_checkpoint_path(checkpoints, steps[i])))
            return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open it", checkpoints->folder);
        status = open_source(*path, &checkpoints->buffer, s, &why);
        if (status == TESS_OK)
            return TESS_OK;
        close_source(s);
        if (status != TESS_BAD_INPUT) {
            status = tess_fail(error, status, "%s: %s", *path, why.text);
            tess_small_free(*path);
            return status;
        }
        if (i == 0)
            tess_fail(error, status, "%s: %s; there is no other checkpoint that is whole", *path, why.text);
        tess_error line;
        tess_fail(&line, status, "%s: %s; it is skipped", *path, why.text);
        if (to.note)
            to.note(to.user, TESS_NOTE_WARNING, line.text);
        tess_small_free(*path);
        *path = NULL;
    }
    return status;
}

tess_status tess_checkpoint_read(tess_checkpoints *checkpoints, const tess_checkpoint_contents *contents,
                                 tess_note_fn note, void *user, tess_train_state *state, tess_error *error)
{
    int64_t *steps;
    int count;
    source s = {.fd = -1};
    char *path = NULL;
    TESS_TRY(tess_checkpoints_list(checkpoints, &steps, &count, error));
    tess_status status =
        count ? open_newest(checkpoints, steps, count, (listener){note, user}, &s, &path, error)
              : tess_fail(error, TESS_BAD_INPUT, "%s: has no checkpoint to continue from; start a new run",
                          checkpoints->folder);
    tess_small_free(steps);
    if (status != TESS_OK)
        return status;
    tess_train_state found = {0};
    status = check_contents(&s, contents, &found, error);
    if (status == TESS_OK)
        status = load_blocks(&s, &contents->blocks, &checkpoints->buffer, error);
    if (status == TESS_OK)
        *state = found;
    else
        status = tess_fail_prefix(error, status, path);
    close_source(&s);
    tess_small_free(path);
    return status;
}
