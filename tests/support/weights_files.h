/* weights_files.h: weight files of all three kinds, built byte by byte, for the tests of the readers in src/weights.
 *
 * The sample that every kind can hold: "a" (2,3) F32 = 0..5, "b" the transposed view of the same storage, "h" two
 * halves 1 and -2, "n" an I64 scalar 7. Nothing here frees on failure: tests abort if memory runs out. */
#ifndef TESS_TESTS_WEIGHTS_FILES_H
#define TESS_TESTS_WEIGHTS_FILES_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct bytes {
    unsigned char *data;
    size_t count, capacity;
} bytes;

static inline void put(bytes *b, const void *data, size_t count)
{
    if (b->count + count > b->capacity) {
        b->capacity = 2 * (b->count + count) + 256;
        if (!(b->data = realloc(b->data, b->capacity)))
            abort();
    }
    if (count)
        memcpy(b->data + b->count, data, count);
    b->count += count;
}

static inline void put_text(bytes *b, const char *text)
{
    put(b, text, strlen(text));
}

static inline void put_le(bytes *b, uint64_t value, int count)
{
    for (int i = 0; i < count; i++)
        put(b, &(unsigned char){(unsigned char)(i < 8 ? value >> 8 * i : 0)}, 1);
}

static inline void put_bytes(bytes *b, const bytes *other)
{
    put(b, other->data, other->count);
}

static inline void drop(bytes *b)
{
    free(b->data);
    *b = (bytes){0};
}

/* Overwrites in place: truncating to nothing first would make some file systems sync each of thousands of
 * files. */
static inline void save(const char *path, const bytes *b)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0666);
    bool done = fd >= 0 && (b->count == 0 || write(fd, b->data, b->count) == (ssize_t)b->count) &&
                ftruncate(fd, (off_t)b->count) == 0;
    if (!done || close(fd) != 0) {
        perror(path);
        abort();
    }
}

/* Pickle pieces, protocol 2. */
static inline void put_string(bytes *b, const char *text)
{
    put_text(b, "X");
    put_le(b, strlen(text), 4);
    put_text(b, text);
}

static inline void put_int(bytes *b, int64_t value)
{
    put_text(b, "\x8a\x08");
    put_le(b, (uint64_t)value, 8);
}

static inline void put_ints(bytes *b, int count, const int64_t *values)
{
    put_text(b, "(");
    for (int i = 0; i < count; i++)
        put_int(b, values[i]);
    put_text(b, "t");
}

typedef struct sample_tensor {
    const char *type, *key;
    int64_t count, offset; /* of the storage */
    int rank;
    int64_t sizes[12], strides[12];
} sample_tensor;

static inline void put_tensor(bytes *b, const sample_tensor *t)
{
    put_text(b, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_string(b, "storage");
    put_text(b, "ctorch\n");
    put_text(b, t->type);
    put_text(b, "\n");
    put_string(b, t->key);
    put_string(b, "cpu");
    put_int(b, t->count);
    put_text(b, "tQ");
    put_int(b, t->offset);
    put_ints(b, t->rank, t->sizes);
    put_ints(b, t->rank, t->strides);
    put_text(b, "\x89"
                "ccollections\nOrderedDict\n)RtR");
}

static inline void put_sample_object(bytes *b)
{
    static const sample_tensor a = {"FloatStorage", "0", 6, 0, 2, {2, 3}, {3, 1}};
    static const sample_tensor t = {"FloatStorage", "0", 6, 0, 2, {3, 2}, {1, 3}};
    static const sample_tensor h = {"HalfStorage", "1", 2, 0, 1, {2}, {1}};
    static const sample_tensor n = {"LongStorage", "2", 1, 0, 0, {0}, {0}};
    put_text(b, "\x80\x02"
                "ccollections\nOrderedDict\n)Rq");
    put_le(b, 0, 1);
    put_text(b, "(");
    put_string(b, "a");
    put_tensor(b, &a);
    put_string(b, "b");
    put_tensor(b, &t);
    put_string(b, "h");
    put_tensor(b, &h);
    put_string(b, "n");
    put_tensor(b, &n);
    put_text(b, "u}");
    put_string(b, "_metadata");
    put_text(b, "Nsb.");
}

static inline void put_sample_storage(bytes *b, int key)
{
    if (key == 0)
        for (int i = 0; i < 6; i++)
            put(b, &(float){(float)i}, 4);
    else if (key == 1)
        put_le(b, 0xc0003c00, 4);
    else
        put_le(b, 7, 8);
}

/* The four pickles' worth of head that stands before the object. */
static inline void put_legacy_head(bytes *b, bool little)
{
    put_text(b, "\x80\x02\x8a\x0al\xfc\x9c"
                "F\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}(");
    put_string(b, "protocol_version");
    put_text(b, "M\xe9\x03");
    put_string(b, "little_endian");
    put_text(b, little ? "\x88u." : "\x89u.");
}

static inline void make_legacy(bytes *b)
{
    put_legacy_head(b, true);
    put_sample_object(b);
    put_text(b, "\x80\x02](");
    put_string(b, "1");
    put_string(b, "0");
    put_string(b, "2");
    put_text(b, "e.");
    put_le(b, 2, 8);
    put_sample_storage(b, 1);
    put_le(b, 6, 8);
    put_sample_storage(b, 0);
    put_le(b, 1, 8);
    put_sample_storage(b, 2);
}

typedef struct zip {
    bytes file, directory;
    uint64_t entries;
    bool wide; /* zip64 fields and end record, as torch writes beyond 4 GiB */
    int method;
} zip;

static inline void zip_add(zip *z, const char *name, const bytes *content)
{
    uint64_t local = z->file.count, bytes_ = content->count;
    size_t length = strlen(name);
    put_text(&z->file, "PK\x03\x04");
    put_le(&z->file, 0, 14); /* version, flags, method, time, date, crc */
    put_le(&z->file, bytes_, 4);
    put_le(&z->file, bytes_, 4);
    put_le(&z->file, length, 2);
    put_le(&z->file, 5, 2);
    put_text(&z->file, name);
    put_text(&z->file, "FB\x01"); /* an extra field that only the local header has, as torch's padding */
    put_le(&z->file, 0, 2);
    put_bytes(&z->file, content);
    put_text(&z->directory, "PK\x01\x02");
    put_le(&z->directory, 0, 6);
    put_le(&z->directory, (uint64_t)z->method, 2);
    put_le(&z->directory, 0, 8);
    put_le(&z->directory, z->wide ? UINT32_MAX : bytes_, 4);
    put_le(&z->directory, z->wide ? UINT32_MAX : bytes_, 4);
    put_le(&z->directory, length, 2);
    put_le(&z->directory, z->wide ? 28 : 0, 2);
    put_le(&z->directory, 0, 10); /* comment, disk, attributes */
    put_le(&z->directory, z->wide ? UINT32_MAX : local, 4);
    put_text(&z->directory, name);
    if (z->wide) {
        put_le(&z->directory, 1 | 24 << 16, 4);
        put_le(&z->directory, bytes_, 8);
        put_le(&z->directory, bytes_, 8);
        put_le(&z->directory, local, 8);
    }
    z->entries++;
}

static inline void zip_add_text(zip *z, const char *name, const char *text)
{
    bytes content = {0};
    put_text(&content, text);
    zip_add(z, name, &content);
    drop(&content);
}

/* Leaves the archive in z->file. */
static inline void zip_end(zip *z)
{
    uint64_t begin = z->file.count, length = z->directory.count, end64;
    put_bytes(&z->file, &z->directory);
    drop(&z->directory);
    end64 = z->file.count;
    if (z->wide) {
        put_text(&z->file, "PK\x06\x06");
        put_le(&z->file, 44, 8);
        put_le(&z->file, 0, 12);
        put_le(&z->file, z->entries, 8);
        put_le(&z->file, z->entries, 8);
        put_le(&z->file, length, 8);
        put_le(&z->file, begin, 8);
        put_text(&z->file, "PK\x06\x07");
        put_le(&z->file, 0, 4);
        put_le(&z->file, end64, 8);
        put_le(&z->file, 1, 4);
    }
    put_text(&z->file, "PK\x05\x06");
    put_le(&z->file, 0, 4);
    put_le(&z->file, z->entries, 2);
    put_le(&z->file, z->entries, 2);
    put_le(&z->file, z->wide ? UINT32_MAX : length, 4);
    put_le(&z->file, z->wide ? UINT32_MAX : begin, 4);
    put_le(&z->file, 0, 2);
}

/* torch.save of the object: `byteorder` NULL leaves that entry out. */
static inline void make_zip_of(bytes *b, const bytes *object, const char *byteorder, bool wide)
{
    zip z = {.wide = wide};
    zip_add(&z, "net/data.pkl", object);
    if (byteorder)
        zip_add_text(&z, "net/byteorder", byteorder);
    for (int key = 0; key < 3; key++) {
        char name[16];
        bytes storage = {0};
        snprintf(name, sizeof name, "net/data/%d", key);
        put_sample_storage(&storage, key);
        zip_add(&z, name, &storage);
        drop(&storage);
    }
    zip_add_text(&z, "net/version", "3\n");
    zip_end(&z);
    *b = z.file;
}

static inline void make_zip(bytes *b, bool wide)
{
    bytes object = {0};
    put_sample_object(&object);
    make_zip_of(b, &object, "little", wide);
    drop(&object);
}

/* A safetensors file from its header and `data` bytes of values 0, 1, 2... */
static inline void make_safetensors_of(bytes *b, const char *header, size_t data)
{
    put_le(b, strlen(header), 8);
    put_text(b, header);
    for (size_t i = 0; i < data; i++)
        put_le(b, i, 1);
}

static inline void make_safetensors(bytes *b)
{
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":["
                                 "2,3],\"data_offsets\":[0,24]},"
                                 "\"h\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[24,28]},"
                                 "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[28,36]}}   ";
    make_safetensors_of(b, header, 0);
    put_sample_storage(b, 0);
    put_sample_storage(b, 1);
    put_sample_storage(b, 2);
}

#endif
