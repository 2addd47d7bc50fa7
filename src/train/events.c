#define _POSIX_C_SOURCE 200809L
#include "train/events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "train/checksum.h"

enum { TAG_MOST = 128, RECORD_MOST = 512 };

struct tess_events {
    FILE *file;
    char *path;
};

/* A protobuf message under construction. Numbers of fields are those of tensorflow/core/util/event.proto and
 * summary.proto. */
typedef struct message {
    size_t count;
    unsigned char bytes[RECORD_MOST];
} message;

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 }; /* wire types */

static void add_bytes(message *m, const void *data, size_t count)
{
    memcpy(m->bytes + m->count, data, count);
    m->count += count;
}

static void add_varint(message *m, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        m->bytes[m->count++] = (unsigned char)(value | 128);
    m->bytes[m->count++] = (unsigned char)value;
}

static void add_little(message *m, uint64_t value, int count)
{
    for (int i = 0; i < count; i++)
        m->bytes[m->count++] = (unsigned char)(value >> 8 * i);
}

static void add_key(message *m, int field, int wire)
{
    add_varint(m, (uint64_t)(field << 3 | wire));
}

static void add_text(message *m, int field, const char *text)
{
    add_key(m, field, LENGTH);
    add_varint(m, strlen(text));
    add_bytes(m, text, strlen(text));
}

static void add_message(message *m, int field, const message *inner)
{
    add_key(m, field, LENGTH);
    add_varint(m, inner->count);
    add_bytes(m, inner->bytes, inner->count);
}

static message new_event(void)
{
    struct timespec now;
    double seconds;
    uint64_t bits;
    message event = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    memcpy(&bits, &seconds, sizeof bits);
    add_key(&event, 1, FIXED64); /* wall_time */
    add_little(&event, bits, 8);
    return event;
}

/* TFRecord stores a checksum of data that may itself contain checksums, so it is masked. */
static uint32_t masked(const void *data, size_t bytes)
{
    const uint32_t crc = tess_crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static tess_status write_record(tess_events *events, const message *event, tess_error *error)
{
    message head = {0}, tail = {0};
    add_little(&head, event->count, 8);
    add_little(&head, masked(head.bytes, 8), 4);
    add_little(&tail, masked(event->bytes, event->count), 4);
    if (fwrite(head.bytes, 1, head.count, events->file) == head.count &&
        fwrite(event->bytes, 1, event->count, events->file) == event->count &&
        fwrite(tail.bytes, 1, tail.count, events->file) == tail.count && fflush(events->file) == 0)
        return TESS_OK;
    return tess_fail(error, TESS_IO_FAILED, "%s: cannot be written: %s", events->path, strerror(errno));
}

/* events.out.tfevents.SECONDS.HOST is the name that TensorBoard looks for; files are read in the order of their names, and
 * a run may be resumed within a second: microseconds begin what is the host in other programs' names. */
static FILE *create(const char *folder, char *path, size_t size)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(path, size, "%s/events.out.tfevents.%010lld.%06ld.tessera.%d", folder, (long long)now.tv_sec,
                 now.tv_nsec / 1000, (int)getpid());
        const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
        if (fd >= 0 && !file)
            close(fd);
        if (file || errno != EEXIST)
            return file;
    }
    return NULL;
}

static tess_status begin(tess_events *events, int64_t resumed_at, tess_error *error)
{
    message first = new_event(), restart = new_event(), start = {0};
    add_text(&first, 3, "brain.Event:2"); /* file_version */
    TESS_TRY(write_record(events, &first, error));
    add_key(
        &restart, 2,
        VARINT); /* step: from here on, earlier files are not valid; all of them, in a run from the start */
    add_varint(&restart, resumed_at < 0 ? 0 : (uint64_t)resumed_at + 1);
    add_key(&start, 1, VARINT); /* status: START */
    add_varint(&start, 1);
    add_message(&restart, 7, &start); /* session_log */
    return write_record(events, &restart, error);
}

tess_status tess_events_open(const char *folder, int64_t resumed_at, tess_events **out, tess_error *error)
{
    const size_t size = strlen(folder) + 96;
    tess_events *events = tess_small_alloc(1, sizeof *events);
    *out = NULL;
    if (!events || !(events->path = tess_small_alloc(size, 1))) {
        tess_events_close(events);
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open it", folder);
    }
    tess_status status = TESS_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        status = tess_fail(error, TESS_IO_FAILED, "%s: cannot be made: %s", folder, strerror(errno));
    else if (!(events->file = create(folder, events->path, size)))
        status = tess_fail(error, TESS_IO_FAILED, "%s: cannot be created: %s", events->path, strerror(errno));
    if (status == TESS_OK)
        status = begin(events, resumed_at, error);
    if (status == TESS_OK)
        *out = events;
    else
        tess_events_close(events);
    return status;
}

tess_status tess_events_scalar(tess_events *events, const char *tag, int64_t step, double value,
                               tess_error *error)
{
    if (strlen(tag) > TAG_MOST)
        return tess_fail(error, TESS_INTERNAL, "the tag %.32s is longer than %d characters", tag, TAG_MOST);
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    message entry = {0}, summary = {0}, event = new_event();
    add_text(&entry, 1, tag);
    add_key(&entry, 2, FIXED32); /* simple_value */
    add_little(&entry, bits, 4);
    add_message(&summary, 1, &entry);
    add_key(&event, 2, VARINT); /* step */
    add_varint(&event, (uint64_t)step);
    add_message(&event, 5, &summary);
    return write_record(events, &event, error);
}

void tess_events_close(tess_events *events)
{
    if (!events)
        return;
    if (events->file)
        fclose(events->file);
    tess_small_free(events->path);
    tess_small_free(events);
}
