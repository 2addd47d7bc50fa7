#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/temp.h"
#include "train/checkpoint_impl.h"

/* A file under construction: what is written is also summed. */
typedef struct sink {
    FILE *file; /* unbuffered: pieces are large */
    tess_xxh64 sum;
} sink;

static tess_status put(sink *s, const void *data, size_t bytes, tess_error *error)
{
    tess_xxh64_add(&s->sum, data, bytes);
    if (fwrite(data, 1, bytes, s->file) == bytes)
        return TESS_OK;
    return tess_fail(error, TESS_IO_FAILED, "cannot be written: %s", strerror(errno));
}

static void to_bytes(uint64_t value, unsigned char bytes[8])
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
}

static tess_json *parameters_json(const tess_parameters *parameters)
{
    tess_json *list = tess_json_array();
    for (int i = 0; i < parameters->count; i++) {
        const tess_parameter *p = &parameters->list[i];
        tess_json *entry = tess_json_object(), *shape = tess_json_array();
        for (int k = 0; k < p->rank; k++)
            tess_json_append_int(&shape, p->dims[k]);
        tess_json_set_string(&entry, "name", p->name);
        tess_json_set(&entry, "shape", shape);
        tess_json_append(&list, entry);
    }
    return list;
}

static char *header_text(const tess_checkpoint_contents *contents, const tess_train_state *state)
{
    tess_json *header = tess_json_object(), *blocks = tess_json_object();
    for (int i = 0; i < TESS_STATES; i++)
        if (contents->blocks.sizes[i])
            tess_json_set_int(&blocks, tess_checkpoint_block_name((tess_training_state)i),
                              contents->blocks.sizes[i]);
    tess_json_set_string(&header, "tessera", TESSERA_VERSION);
    tess_json_set(&header, "config", tess_train_config_json(contents->config));
    tess_json_set(&header, "state", tess_train_state_json(state));
    tess_json_set(&header, "parameters", parameters_json(contents->parameters));
    tess_json_set(&header, "blocks", blocks);
    if (contents->images) {
        char *sums = tess_images_sums(contents->images);
        tess_json_set(&header, "images", sums ? tess_json_string(sums) : NULL);
        tess_small_free(sums);
    }
    char *text = tess_json_dump(header, false);
    tess_json_free(header);
    return text;
}

static tess_status put_header(sink *s, const char *text, tess_error *error)
{
    static const char spaces[64] = "                                                                ";
    unsigned char head[TESS_CHECKPOINT_HEAD];
    const size_t length = strlen(text);
    const size_t padded = tess_align_size(length + TESS_CHECKPOINT_HEAD, 64) - TESS_CHECKPOINT_HEAD;
    memcpy(head, TESS_CHECKPOINT_MAGIC, 8);
    to_bytes(TESS_CHECKPOINT_VERSION, head + 8);
    to_bytes(padded, head + 16);
    TESS_TRY(put(s, head, sizeof head, error));
    TESS_TRY(put(s, text, length, error));
    return put(s, spaces, padded - length, error);
}

static tess_status put_blocks(sink *s, const tess_checkpoint_blocks *blocks, const tess_block *buffer,
                              tess_error *error)
{
    const int64_t most = (int64_t)(buffer->bytes / sizeof(float));
    for (int state = 0; state < TESS_STATES; state++)
        for (int64_t done = 0, step; done < blocks->sizes[state]; done += step) {
            step = tess_min_i64(most, blocks->sizes[state] - done);
            TESS_TRY(blocks->get(blocks->user, (tess_training_state)state, done, step, buffer->data, error));
            TESS_TRY(put(s, buffer->data, (size_t)step * sizeof(float), error));
        }
    return TESS_OK;
}

static tess_status put_all(sink *s, tess_checkpoints *checkpoints, const tess_checkpoint_contents *contents,
                           const tess_train_state *state, tess_error *error)
{
    char *text = header_text(contents, state);
    if (!text)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for its header");
    setvbuf(s->file, NULL, _IONBF, 0);
    tess_xxh64_begin(&s->sum);
    tess_status status = put_header(s, text, error);
    tess_small_free(text);
    if (status == TESS_OK)
        status = put_blocks(s, &contents->blocks, &checkpoints->buffer, error);
    unsigned char tail[TESS_CHECKPOINT_TAIL];
    to_bytes(tess_xxh64_end(&s->sum), tail);
    if (status == TESS_OK)
        status = put(s, tail, sizeof tail, error);
    if (status == TESS_OK && fsync(fileno(s->file)) != 0)
        status = tess_fail(error, TESS_IO_FAILED, "cannot be written: %s", strerror(errno));
    return status;
}

static tess_status write_file(tess_checkpoints *checkpoints, const tess_checkpoint_contents *contents,
                              const tess_train_state *state, const char *path, tess_error *error)
{
    tess_temp *temp = NULL;
    TESS_TRY(tess_temp_create(path, &temp, error));
    sink s = {.file = tess_temp_open(temp)};
    tess_status status = s.file ? put_all(&s, checkpoints, contents, state, error)
                                : tess_fail(error, TESS_IO_FAILED, "cannot be created: %s", strerror(errno));
    if (s.file && fclose(s.file) != 0 && status == TESS_OK)
        status = tess_fail(error, TESS_IO_FAILED, "cannot be written: %s", strerror(errno));
    if (status == TESS_OK)
        status = tess_temp_commit(temp, path, error);
    tess_temp_remove(temp);
    if (status == TESS_OK && fsync(checkpoints->lock) != 0 && errno != EINVAL) /* EINVAL: cannot be synced */
        status = tess_fail(error, TESS_IO_FAILED, "its folder cannot be written: %s", strerror(errno));
    return status;
}

/* Keeps the new one and the one before it. Later steps are of a run that was resumed before them, because they were
 * damaged. */
static tess_status remove_others(const tess_checkpoints *checkpoints, int64_t newest, tess_error *error)
{
    int64_t *steps;
    int count, kept = 0;
    TESS_TRY(tess_checkpoints_list(checkpoints, &steps, &count, error));
    for (int i = 0; i < count; i++) {
        if (steps[i] <= newest && kept++ < TESS_CHECKPOINT_KEPT)
            continue;
        char *path = tess_checkpoint_path(checkpoints, steps[i]);
        if (path)
            (void)unlink(path); /* one that stays does no harm */
        tess_small_free(path);
    }
    tess_small_free(steps);
    return TESS_OK;
}

tess_status tess_checkpoint_write(tess_checkpoints *checkpoints, const tess_checkpoint_contents *contents,
                                  const tess_train_state *state, tess_error *error)
{
    char *path = tess_checkpoint_path(checkpoints, state->step);
    if (!path)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to write a checkpoint");
    tess_status status = write_file(checkpoints, contents, state, path, error);
    if (status != TESS_OK)
        status = tess_fail_prefix(error, status, path);
    tess_small_free(path);
    return status == TESS_OK ? remove_others(checkpoints, state->step, error) : status;
}
