#include "report/store.h"

#include <string.h>

#include "base/mem.h"
#include "report/embed.h"

typedef struct filling {
    tess_store *store;
    int file;
} filling;

/* Bytes of a record in a page: some letters are escaped there, and each record has its place beside it. */
static size_t embedded_bytes(const char *text)
{
    enum { AROUND = 80 };
    return AROUND + tess_embed_json_bytes(text, strlen(text));
}

static void drop(tess_store *store, tess_stored *record)
{
    store->bytes -= record->embedded;
    store->files[record->file].bytes -= record->embedded;
    store->files[record->file].kept--;
    tess_small_free(record->text);
}

/* The file with the most bytes that has more than one record; -1: none. */
static int largest_file(const tess_store *store)
{
    int largest = -1;
    for (int i = 0; i < store->file_count; i++)
        if (store->files[i].kept > 1 && (largest < 0 || store->files[i].bytes > store->files[largest].bytes))
            largest = i;
    return largest;
}

/* Keeps every second record of that file; the first always stays. */
static void halve(tess_store *store, int file)
{
    const int64_t stride = store->files[file].stride *= 2;
    int64_t kept = 0;
    for (int64_t i = 0; i < store->count; i++) {
        tess_stored *record = &store->records[i];
        if (record->file == file && record->index % stride != 0)
            drop(store, record);
        else
            store->records[kept++] = *record;
    }
    store->count = kept;
}

static tess_status keep_budget(tess_store *store, tess_error *error)
{
    while (store->bytes > TESS_STORE_BYTES) {
        const int file = largest_file(store);
        if (file < 0)
            return tess_fail(
                error, TESS_BAD_INPUT,
                "%s: a page holds %d MiB of records, and those of %d files are more; name fewer files",
                store->files[store->file_count - 1].path, TESS_STORE_BYTES >> 20, store->file_count);
        halve(store, file);
    }
    return TESS_OK;
}

static tess_status make_room(tess_store *store, tess_error *error)
{
    if (store->count < store->room)
        return TESS_OK;
    const int64_t room = store->room ? 2 * store->room : 64;
    tess_stored *records = tess_small_realloc(store->records, (size_t)room, sizeof *records);
    if (!records)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld records", (long long)room);
    store->records = records;
    store->room = room;
    return TESS_OK;
}

static bool wants(void *user, int64_t index)
{
    const filling *f = user;
    return index % f->store->files[f->file].stride == 0;
}

/* The text of a record within its limit; frees the record. NULL: no memory. */
static char *text_of(tess_json *record, bool *shortened)
{
    static const struct {
        int64_t most;
        size_t letters;
    } tries[] = {{2048, 4096}, {512, 1024}, {128, 512}, {32, 256}, {8, 64}, {2, 16}};
    char *text = tess_json_dump(record, false);
    for (size_t i = 0; text && strlen(text) > TESS_STORE_RECORD && i < sizeof tries / sizeof tries[0]; i++) {
        *shortened = true;
        tess_small_free(text);
        record = tess_shorten(record, tries[i].most, tries[i].letters);
        text = tess_json_dump(record, false);
    }
    tess_json_free(record);
    return text;
}

static tess_status take(void *user, int64_t index, int64_t line, tess_json *record, tess_error *error)
{
    const filling *f = user;
    tess_store *store = f->store;
    tess_stored *to;
    bool shortened = false;
    tess_status status = make_room(store, error);
    if (status != TESS_OK) {
        tess_json_free(record);
        return status;
    }
    char *text = text_of(record, &shortened);
    if (!text)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the record of line %lld", (long long)line);
    if (strlen(text) > TESS_STORE_RECORD) { /* thousands of lists within one another */
        tess_small_free(text);
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: line %lld: the record is too large; a record has at most %d KiB",
                         store->files[f->file].path, (long long)line, TESS_STORE_RECORD >> 10);
    }
    to = &store->records[store->count++];
    *to = (tess_stored){text, strlen(text), embedded_bytes(text), f->file, index, line, shortened};
    store->files[f->file].kept++;
    store->files[f->file].bytes += to->embedded;
    store->bytes += to->embedded;
    return keep_budget(store, error);
}

tess_status tess_store_read(tess_store *store, const char *path, tess_stop *stop, tess_error *error)
{
    if (store->file_count == TESS_STORE_FILES)
        return tess_fail(error, TESS_BAD_INPUT, "%s: a page is made of at most %d files", path,
                         TESS_STORE_FILES);
    filling f = {store, store->file_count++};
    tess_stored_file *file = &store->files[f.file];
    *file = (tess_stored_file){.path = path, .stride = 1};
    const tess_line_visitor visitor = {wants, take, &f};
    return tess_lines_read(path, &visitor, stop, &file->facts, error);
}

void tess_store_clear(tess_store *store)
{
    for (int64_t i = 0; i < store->count; i++)
        tess_small_free(store->records[i].text);
    tess_small_free(store->records);
    memset(store, 0, sizeof *store);
}
