/* test_weights_hostile.c: invalid weight files: truncated, with flipped bytes, overflowing, cyclic, exploding; and a
 * full disk. Nothing may crash, leak, loop, or claim more than the file holds; sanitizers check this. A damaged file
 * may be refused or (a flipped value) read, except where a comment says otherwise. */
#define _POSIX_C_SOURCE 200809L
#include "weights/weights.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"
#include "counter.h"
#include "weights_files.h"

enum { KINDS = 3, FLIPS = 24000 };

static char folder[256], path[512], other[512];

static void make_kind(int kind, bytes *b)
{
    if (kind == 0)
        make_safetensors(b);
    else if (kind == 1)
        make_legacy(b);
    else
        make_zip(b, false);
}

/* Opens what is at `path` and, when it opens, reads every value; the status of the opening. */
static tess_status try_file(size_t file_bytes)
{
    tess_error error = {{0}};
    tess_weights *weights = NULL;
    tess_status status = tess_weights_open(path, &weights, &error);
    CHECK((status == TESS_OK) == (weights != NULL));
    CHECK(status == TESS_OK || (strstr(error.text, path) == error.text && !strchr(error.text, '\n')));
    for (int64_t i = 0; weights && i < tess_weights_count(weights); i++) {
        const tess_weight *weight = tess_weights_at(weights, i);
        CHECK(weight->elements >= 0 && (uint64_t)weight->elements <= file_bytes);
        CHECK(tess_weights_find(weights, weight->name) == weight);
        float values[50];
        for (int64_t at = 0, step; at < weight->elements; at += step) {
            step = weight->elements - at < 50 ? weight->elements - at : 50;
            CHECK(tess_weights_read(weights, weight, at, step, values, &error) == TESS_OK);
        }
    }
    tess_weights_close(weights);
    return status;
}

static tess_status try_bytes(const bytes *b)
{
    save(path, b);
    return try_file(b->count);
}

/* Every shorter file is refused: all three kinds end with something that they need. */
static void test_truncation(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        bytes b = {0};
        make_kind(kind, &b);
        CHECK(try_bytes(&b) == TESS_OK);
        for (size_t length = 0; length < b.count; length++) {
            bytes cut = {.data = b.data, .count = length};
            CHECK_MSG(try_bytes(&cut) == TESS_BAD_INPUT, "kind %d cut at %zu of %zu", kind, length, b.count);
        }
        drop(&b);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void test_flips(void)
{
    static const unsigned char evil[] = {0x00, 0xff, 0x7f, 0x80, 'R', 'Q', '(', 'u', 'e', 'h', '.', 0x85};
    uint64_t state = 20240607, opened = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        bytes b = {0};
        make_kind(kind, &b);
        unsigned char *whole = malloc(b.count);
        memcpy(whole, b.data, b.count);
        for (int i = 0; i < FLIPS / KINDS; i++) {
            int changes = i % 4 ? 1 : 2 + (int)(next_random(&state) % 8);
            for (int k = 0; k < changes; k++) {
                size_t at = next_random(&state) % b.count;
                uint64_t how = next_random(&state);
                b.data[at] = how & 1 ? (unsigned char)(how >> 8) : evil[(how >> 8) % sizeof evil];
            }
            opened += try_bytes(&b) == TESS_OK;
            memcpy(b.data, whole, b.count);
        }
        free(whole);
        drop(&b);
    }
    CHECK(opened > 0 && opened < FLIPS); /* some flips hit values only, most do not */
}

/* An object pickle in both containers: never read as weights. */
static void check_object_refused(const bytes *object, const char *what)
{
    bytes b = {0};
    make_zip_of(&b, object, "little", false);
    CHECK_MSG(try_bytes(&b) == TESS_BAD_INPUT, "zip: %s", what);
    drop(&b);
    put_legacy_head(&b, true);
    put_bytes(&b, object);
    put_text(&b, "\x80\x02].");
    CHECK_MSG(try_bytes(&b) == TESS_BAD_INPUT, "legacy: %s", what);
    drop(&b);
}

static void test_impossible_tensors(void)
{
    static const struct {
        const char *what;
        sample_tensor tensor;
    } cases[] = {
        {"product overflows", {"FloatStorage", "0", 6, 0, 3, {1LL << 31, 1LL << 31, 4}, {0, 0, 1}}},
        {"zero hides overflow", {"FloatStorage", "0", 6, 0, 3, {0, INT64_MAX, INT64_MAX}, {0, 0, 1}}},
        {"reach overflows", {"FloatStorage", "0", 6, 0, 2, {2, 2}, {INT64_MAX, INT64_MAX}}},
        {"reach beyond", {"FloatStorage", "0", 6, 0, 2, {2, 3}, {4, 1}}},
        {"offset beyond", {"FloatStorage", "0", 6, 5, 1, {2}, {1}}},
        {"offset huge", {"FloatStorage", "0", 6, INT64_MAX, 1, {1}, {1}}},
        {"offset negative", {"FloatStorage", "0", 6, -1, 1, {1}, {1}}},
        {"size negative", {"FloatStorage", "0", 6, 0, 1, {-2}, {1}}},
        {"stride negative", {"FloatStorage", "0", 6, 5, 1, {2}, {-1}}},
        {"expanded", {"FloatStorage", "0", 6, 0, 1, {1LL << 40}, {0}}},
        {"rank 9", {"FloatStorage", "0", 6, 0, 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}}},
        {"count wrong", {"FloatStorage", "0", 7, 0, 1, {2}, {1}}},
        {"count overflows", {"DoubleStorage", "0", INT64_MAX, 0, 1, {2}, {1}}},
        {"count negative", {"FloatStorage", "0", -6, 0, 1, {2}, {1}}},
        {"type wrong", {"DoubleStorage", "0", 6, 0, 1, {2}, {1}}},
        {"no such storage", {"FloatStorage", "../0", 6, 0, 1, {2}, {1}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes object = {0};
        put_text(&object, "\x80\x02}");
        put_string(&object, "x");
        put_tensor(&object, &cases[i].tensor);
        put_text(&object, "s.");
        check_object_refused(&object, cases[i].what);
        drop(&object);
    }
}

static void test_impossible_headers(void)
{
    static const char *const headers[] = {
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}",
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}",
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}",
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}",
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}",
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[0,9223372036854775807,3],\"data_offsets\":[0,0]}}",
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}",
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}",
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,8]}}",
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16]},"
        "\"y\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16]}}",
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
        "\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
        "{\"x\\u0000y\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
        "{\"x\\ny\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
        "{\"x\":[]}",
        "{\"x\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,1]}}",
        "{\"x\":{\"dtype\":\"U8\",\"shape\":{},\"data_offsets\":[0,1]}}",
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}",
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[1]}}",
        "{\"x\":",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        bytes b = {0};
        make_safetensors_of(&b, headers[i], 16);
        CHECK_MSG(try_bytes(&b) == TESS_BAD_INPUT, "%s", headers[i]);
        drop(&b);
    }
    static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 8, INT64_MAX, 100000001, 1 << 20, 0, 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        bytes b = {0};
        put_le(&b, lengths[i], 8);
        put_text(&b, "{}                  ");
        CHECK(try_bytes(&b) == TESS_BAD_INPUT);
        drop(&b);
    }
    bytes deep = {0};
    put_le(&deep, 100000, 8);
    put_text(&deep, "{\"x\":");
    for (int i = 0; i < 100000; i++)
        put_text(&deep, "[");
    CHECK(try_bytes(&deep) == TESS_BAD_INPUT);
    drop(&deep);
}

static void put_repeated(bytes *b, const char *text, int count)
{
    for (int i = 0; i < count; i++)
        put_text(b, text);
}

static void test_bombs(void)
{
    bytes o = {0};
    put_text(&o, "\x80\x02}q\x01X\x01"); /* d = {}; d["a"] = d, by the memo */
    put_le(&o, 0, 3);
    put_text(&o, "ah\x01s.");
    check_object_refused(&o, "dict in itself");
    drop(&o);

    put_text(&o, "\x80\x02}q\x01("); /* the same under every key that is looked into */
    static const char *const keys[] = {"params_ema",       "params", "state_dict",
                                       "model_state_dict", "model",  "net"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        put_string(&o, keys[i]);
        put_text(&o, "h\x01");
    }
    put_text(&o, "u.");
    check_object_refused(&o, "wrapper in itself");
    drop(&o);

    put_text(&o, "\x80\x02}q\x01"); /* each dict holds the one before many times: 100^12 paths */
    for (int level = 0; level < 12; level++) {
        put_text(&o, "}(");
        for (int i = 0; i < 100; i++) {
            put_text(&o, "K");
            put_le(&o, (uint64_t)i, 1);
            put_text(&o, "h\x01");
        }
        put_text(&o, "uq\x01");
    }
    put_text(&o, ".");
    check_object_refused(&o, "dicts of dicts of dicts");
    drop(&o);

    put_text(&o, "\x80\x02");
    put_repeated(&o, "}K\x01", 300000);
    put_repeated(&o, "}", 1);
    put_repeated(&o, "s", 300000);
    put_text(&o, ".");
    check_object_refused(&o, "nested 300000 deep");
    drop(&o);

    put_text(&o, "\x80\x02");
    put_repeated(&o, "(", 3000000);
    check_object_refused(&o, "marks only");
    drop(&o);

    put_text(&o, "\x80\x02Nq\x01");
    put_repeated(&o, "h\x01", 3000000);
    check_object_refused(&o, "stack of millions");
    drop(&o);

    put_text(&o, "\x80\x02}r\xff\xff\xff\xff."); /* memo slot 4294967295 */
    check_object_refused(&o, "memo slot out of reach");
    drop(&o);

    put_text(&o, "\x80\x02X\xff\xff\xff\x7f"
                 "abc."); /* a string of 2 GiB in a file of bytes */
    check_object_refused(&o, "string beyond the file");
    drop(&o);

    put_text(&o, "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                 "abc.");
    check_object_refused(&o, "string of 2^64 bytes");
    drop(&o);

    put_text(&o, "\x80\x02](]q\x01q\x02"); /* OrderedDict(big list), again and again */
    put_text(&o, "(");
    put_repeated(&o, "NN\x86", 20000);
    put_text(&o, "eq\x03");
    for (int i = 0; i < 1000; i++)
        put_text(&o, "ccollections\nOrderedDict\nh\x03\x85R");
    put_text(&o, "e.");
    check_object_refused(&o, "dicts from one list");
    drop(&o);
}

/* Pickles that are short, wrong in grammar, or ask for what is not on the list. */
static void test_bad_pickles(void)
{
    static const char *const pickles[] = {
        ".",
        "N.",
        "(.",
        "t.",
        "u.",
        "e.",
        "s.",
        "a.",
        "R.",
        "Q.",
        "b.",
        "N(N.",
        "(NNu.",
        "}(Nu.",
        "](Na.",
        "NNa.",
        "NNNs.",
        "h\x01.",
        "\x94.",
        "q\x01.",
        "Ni.",
        "cos\nsystem\n.",
        "cbuiltins\neval\n.",
        "\x93.",
        "NN\x93.",
        "N)R.",
        "ctorch\nFloatStorage\n)R.",
        "ccollections\nOrderedDict\nNR.",
        "ccollections\nOrderedDict\nN\x85R.",
        "ccollections\nOrderedDict\n]N\x61\x85R.",
        "ctorch\nSize\n)R.",
        "ctorch._utils\n_rebuild_parameter\nN\x85R.",
        "ctorch._utils\n_rebuild_tensor\n(NK\x01)).tR.",
        "(tQ.",
        "(NNNNNtQ.",
        "N)\x81.",
        "}N.",
        "P1\n.",
        "I1\n.",
        "0.",
        "1.",
        "2.",
        "\x8f.",
        "c\n\n.",
        "cnonewline",
        "\x82\x01.",
        "}}b",
    };
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
        bytes o = {0};
        put_text(&o, "\x80\x02");
        put_text(&o, pickles[i]);
        check_object_refused(&o, pickles[i]);
        drop(&o);
    }
    bytes o = {0};
    put_text(&o, "\x80\x02"
                 "c");
    put_repeated(&o, "x", 1000);
    put_text(&o, "\ny\n.");
    check_object_refused(&o, "long name");
    drop(&o);
}

/* Values that no flip would find: offsets near 2^32 and 2^64 in every field of the end records. */
static void test_zip_fields(void)
{
    static const uint64_t evil[] = {0,          1,         0x7fffffff, 0xfffffffe,
                                    0xffffffff, INT64_MAX, UINT64_MAX, UINT64_MAX - 29};
    for (int wide = 0; wide < 2; wide++) {
        bytes b = {0};
        make_zip(&b, wide);
        unsigned char *whole = malloc(b.count);
        memcpy(whole, b.data, b.count);
        for (size_t i = 0; i < sizeof evil / sizeof *evil; i++)
            for (size_t at = b.count - (wide ? 400 : 200); at < b.count; at++) {
                for (size_t k = 0; k < (wide ? 8u : 4u) && at + k < b.count; k++)
                    b.data[at + k] = (unsigned char)(evil[i] >> 8 * k);
                (void)try_bytes(&b);
                memcpy(b.data, whole, b.count);
            }
        free(whole);
        drop(&b);
    }
}

static int files_in_folder(void)
{
    int count = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));)
        count += entry->d_name[0] != '.';
    if (open)
        closedir(open);
    return count;
}

static void write_text(const char *name, const char *text)
{
    bytes b = {0};
    put_text(&b, text);
    save(name, &b);
    drop(&b);
}

/* A disk that fills up at every point of the file: the old target stays, nothing is left beside it. */
static void test_full_disk(void)
{
    tess_error error = {{0}};
    tess_weights *weights = NULL;
    bytes b = {0};
    make_legacy(&b);
    save(path, &b);
    drop(&b);
    CHECK(tess_weights_open(path, &weights, &error) == TESS_OK);
    if (!weights)
        return;
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    bool written = false;
    write_text(other, "old");
    for (rlim_t most = 0; most < 2048 && !written; most += 8) {
        limit = before;
        limit.rlim_cur = most;
        setrlimit(RLIMIT_FSIZE, &limit);
        tess_status status = tess_safetensors_write(&test_counter, other, weights, &error);
        setrlimit(RLIMIT_FSIZE, &before);
        written = status == TESS_OK;
        char text[4] = {0};
        FILE *old = fopen(other, "rb");
        CHECK(old && fread(text, 1, 3, old) == 3);
        if (old)
            fclose(old);
        CHECK(written || (status == TESS_IO_FAILED && strcmp(text, "old") == 0 && strstr(error.text, other)));
        CHECK(files_in_folder() == 2);
    }
    CHECK(written);
    tess_weights_close(weights);
    unlink(other);
}

/* The n-th allocation fails, for every n: an error or success, never a crash or a leak. */
static void test_no_memory(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        bytes b = {0};
        make_kind(kind, &b);
        save(path, &b);
        drop(&b);
        bool done = false;
        for (uint64_t n = 1; n < 2000 && !done; n++) {
            tess_error error = {{0}};
            tess_weights *weights = NULL;
            tess_mem_fail_at(n);
            tess_status status = tess_weights_open(path, &weights, &error);
            if (status == TESS_OK)
                status = tess_safetensors_write(&test_counter, other, weights, &error);
            tess_mem_fail_at(0);
            done = status == TESS_OK;
            CHECK_MSG(done || status == TESS_NO_MEMORY, "%d %s", (int)status, error.text);
            CHECK(files_in_folder() == (done ? 2 : 1));
            tess_weights_close(weights);
        }
        CHECK(done);
        unlink(other);
    }
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tessera-hostile-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return check_skip("no folder for temporary files");
    snprintf(path, sizeof path, "%s/in.bin", folder);
    snprintf(other, sizeof other, "%s/out.safetensors", folder);
    test_truncation();
    test_flips();
    test_impossible_tensors();
    test_impossible_headers();
    test_bombs();
    test_bad_pickles();
    test_zip_fields();
    test_full_disk();
    test_no_memory();
    unlink(path);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
