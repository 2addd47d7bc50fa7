/* Event files, read back by a parser of their own that checks every checksum, and the log of JSON lines across a resumed
 * run. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "base/mem.h"
#include "folder.h"
#include "train/events.h"
#include "train/log.h"

/* The other way to compute CRC-32C: by polynomial division with a table. */
static uint32_t crc32c(const unsigned char *data, size_t bytes)
{
    uint32_t table[256], crc = 0xffffffffu;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] & 1 ? table[i] >> 1 ^ 0x82F63B78u : table[i] >> 1;
    }
    for (size_t i = 0; i < bytes; i++)
        crc = table[(crc ^ data[i]) & 255] ^ crc >> 8;
    return ~crc;
}

static uint64_t little(const unsigned char *at, int count)
{
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

static bool mask_matches(const unsigned char *data, size_t bytes, const unsigned char *stored)
{
    const uint32_t crc = crc32c(data, bytes);
    return (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8u) == (uint32_t)little(stored, 4);
}

/* One field of a protobuf message. */
typedef struct field {
    int number, wire;
    uint64_t value; /* of numbers, and the length of bytes */
    const unsigned char *bytes;
} field;

static uint64_t varint(const unsigned char **at)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        value |= (uint64_t)(**at & 127) << shift;
        if (!(*(*at)++ & 128))
            return value;
    }
}

static bool next_field(const unsigned char **at, const unsigned char *end, field *f)
{
    if (*at >= end)
        return false;
    const uint64_t key = varint(at);
    *f = (field){.number = (int)(key >> 3), .wire = (int)(key & 7)};
    if (f->wire == 0)
        f->value = varint(at);
    else if (f->wire == 1 || f->wire == 5) {
        f->value = little(*at, f->wire == 1 ? 8 : 4);
        *at += f->wire == 1 ? 8 : 4;
    } else {
        CHECK(f->wire == 2);
        f->value = varint(at);
        f->bytes = *at;
        *at += f->value;
    }
    CHECK(*at <= end);
    return true;
}

typedef struct event {
    double wall;
    int64_t step;
    char version[32], tag[160];
    float value;
    bool restart;
} event;

static void parse_value(const field *summary, event *e)
{
    const unsigned char *at = summary->bytes, *end = at + summary->value;
    field value, inner;
    CHECK(next_field(&at, end, &value) && value.number == 1 && at == end);
    at = value.bytes, end = at + value.value;
    while (next_field(&at, end, &inner)) {
        const uint32_t bits = (uint32_t)inner.value;
        if (inner.number == 1)
            snprintf(e->tag, sizeof e->tag, "%.*s", (int)inner.value, (const char *)inner.bytes);
        else if (inner.number == 2 && inner.wire == 5)
            memcpy(&e->value, &bits, 4);
        else
            CHECK(false);
    }
}

static event parse_event(const unsigned char *at, const unsigned char *end)
{
    event e = {0};
    field f;
    while (next_field(&at, end, &f)) {
        if (f.number == 1 && f.wire == 1)
            memcpy(&e.wall, &f.value, 8);
        else if (f.number == 2)
            e.step = (int64_t)f.value;
        else if (f.number == 3)
            snprintf(e.version, sizeof e.version, "%.*s", (int)f.value, (const char *)f.bytes);
        else if (f.number == 5)
            parse_value(&f, &e);
        else if (f.number == 7)
            e.restart = f.value == 2 && f.bytes[0] == 8 && f.bytes[1] == 1; /* status: START */
        else
            CHECK(false);
    }
    return e;
}

/* Parses all records of the only event file. */
static int parse_file(event *events, int most)
{
    static unsigned char bytes[1 << 16];
    char path[512] = "";
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strstr(entry->d_name, "tfevents"))
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (dir)
        closedir(dir);
    FILE *file = fopen(path, "rb");
    const size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    CHECK(file && fclose(file) == 0);
    for (size_t at = 0; at < size && count < most;) {
        const size_t length = (size_t)little(bytes + at, 8);
        CHECK(at + 16 + length <= size && mask_matches(bytes + at, 8, bytes + at + 8) &&
              mask_matches(bytes + at + 12, length, bytes + at + 12 + length));
        events[count++] = parse_event(bytes + at + 12, bytes + at + 12 + length);
        at += 16 + length;
    }
    remove(path);
    return count;
}

static void test_events(void)
{
    tess_events *events = NULL;
    tess_error error = {""};
    event found[16];
    CHECK_MSG(tess_events_open(folder, -1, &events, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_events_scalar(events, "loss/train", 0, 0.125, &error) == TESS_OK);
    CHECK(tess_events_scalar(events, "psnr/kodak24 25", 5000000000, 32.5, &error) == TESS_OK);
    CHECK(tess_events_scalar(events, "loss/train", 127, NAN, &error) == TESS_OK);
    /* Before it is closed: a killed run leaves this much. */
    CHECK(parse_file(found, 16) == 5);
    CHECK(strcmp(found[0].version, "brain.Event:2") == 0 && found[0].wall > 1.6e9);
    CHECK(found[1].restart &&
          found[1].step == 0); /* a run that was killed before its first checkpoint left a file, too */
    CHECK(strcmp(found[2].tag, "loss/train") == 0 && found[2].step == 0 && found[2].value == 0.125f);
    CHECK(strcmp(found[3].tag, "psnr/kodak24 25") == 0 && found[3].step == 5000000000 &&
          found[3].value == 32.5f);
    CHECK(found[4].step == 127 && isnan(found[4].value) && found[4].wall >= found[0].wall);
    char tag[200];
    memset(tag, 'a', sizeof tag - 1), tag[sizeof tag - 1] = '\0';
    CHECK(tess_events_scalar(events, tag, 1, 1, &error) == TESS_INTERNAL);
    tess_events_close(events);

    CHECK(tess_events_open(folder, 40, &events, &error) == TESS_OK);
    tess_events_close(events);
    CHECK(parse_file(found, 16) == 2 && found[1].restart && found[1].step == 41);
    CHECK(tess_events_open("/proc/none/events", -1, &events, &error) == TESS_IO_FAILED && !events);
    CHECK_MSG(strstr(error.text, "/proc/none/events: cannot be made"), "%s", error.text);
}

static void add_line(tess_log *log, int64_t step)
{
    tess_error error = {""};
    tess_json *record = tess_json_object();
    tess_json_set_int(&record, "step", step);
    tess_json_set_double(&record, "loss", 0.5);
    CHECK_MSG(tess_log_line(log, record, &error) == TESS_OK, "%s", error.text);
}

static void expect_log(const char *path, const char *text)
{
    char found[1024] = "";
    FILE *file = fopen(path, "r");
    CHECK(file);
    found[file ? fread(found, 1, sizeof found - 1, file) : 0] = '\0';
    if (file)
        fclose(file);
    CHECK_MSG(strcmp(found, text) == 0, "%s", found);
}

static void test_log(void)
{
    tess_log *log = NULL;
    tess_error error = {""};
    const char *path = in_folder("log.jsonl");
    CHECK(tess_log_open(path, &log, &error) == TESS_OK);
    add_line(log, 10), add_line(log, 20), add_line(log, 30);
    expect_log(path, "{\"step\":10,\"loss\":0.5}\n{\"step\":20,\"loss\":0.5}\n{\"step\":30,\"loss\":0.5}\n");
    CHECK(tess_log_line(log, NULL, &error) == TESS_NO_MEMORY);
    tess_log_close(log);
    /* Killed in the middle of a line after step 30, resumed at step 20. */
    FILE *file = fopen(path, "a");
    CHECK(file && fputs("{\"step\":4", file) >= 0 && fclose(file) == 0);
    CHECK(tess_log_open(path, &log, &error) == TESS_OK);
    tess_log_resume(log, 20);
    add_line(log, 25);
    tess_log_close(log);
    expect_log(path, "{\"step\":10,\"loss\":0.5}\n{\"step\":20,\"loss\":0.5}\n{\"step\":25,\"loss\":0.5}\n");
    CHECK(tess_log_open(path, &log, &error) == TESS_OK);
    tess_log_resume(log, 25);
    tess_log *second = NULL; /* no two runs write one log */
    CHECK(tess_log_open(path, &second, &error) == TESS_BAD_INPUT && !second);
    CHECK_MSG(strstr(error.text, "another run is writing this log"), "%s", error.text);
    add_line(log, 26);
    tess_log_close(log);
    expect_log(path, "{\"step\":10,\"loss\":0.5}\n{\"step\":20,\"loss\":0.5}\n{\"step\":25,\"loss\":0.5}\n{"
                     "\"step\":26,\"loss\":0.5}\n");
    /* A new run that fails before its first line leaves the file as it was. */
    CHECK(tess_log_open(path, &log, &error) == TESS_OK);
    tess_log_close(log);
    expect_log(path, "{\"step\":10,\"loss\":0.5}\n{\"step\":20,\"loss\":0.5}\n{\"step\":25,\"loss\":0.5}\n{"
                     "\"step\":26,\"loss\":0.5}\n");
    CHECK(tess_log_open(path, &log, &error) == TESS_OK);
    add_line(log, 10);
    tess_log_close(log);
    expect_log(path, "{\"step\":10,\"loss\":0.5}\n");
    /* A file that was made is removed again, and one that is no log is kept. */
    const char *none = in_folder("none.jsonl");
    CHECK(tess_log_open(none, &log, &error) == TESS_OK && access(none, F_OK) == 0);
    tess_log_close(log);
    CHECK(access(none, F_OK) != 0);
    for (int i = 0; i < 3; i++) {
        static const char *const texts[] = {"{\"steps\":10}\n", "PNG", "\n{\"step\":1}\n"};
        const char *other = in_folder("other");
        file = fopen(other, "w");
        CHECK(file && fputs(texts[i], file) >= 0 && fclose(file) == 0);
        CHECK(tess_log_open(other, &log, &error) == TESS_BAD_INPUT && !log);
        CHECK_MSG(strstr(error.text, "is not a log of training"), "%s", error.text);
        expect_log(other, texts[i]);
    }
    CHECK(tess_log_open(folder, &log, &error) == TESS_IO_FAILED && !log);
    CHECK_MSG(strstr(error.text, folder), "%s", error.text);
}

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    test_events();
    test_log();
    sweep_folder(true);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
