/* The journal of a run: what was added is there after it was opened again, also when the file was cut off anywhere; another
 * run's, one in use and one of another kind are refused. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "job/fill/fill_journal.h"

enum { TILES = 5, MOST = 40 };

static tess_memory memory;
static char output[300], path[320];

static float value_of(int64_t tile, int64_t i)
{
    return (float)(tile * 1000 + i);
}

static int64_t count_of(int64_t tile)
{
    return tile * 9 + 1;
}

static int64_t values_of(const void *user, int64_t tile)
{
    (void)user;
    return count_of(tile);
}

static tess_status open_with(uint64_t fingerprint, bool resume, tess_fill_journal **out, tess_error *error)
{
    const tess_fill_journal_settings settings = {.output = output,
                                                 .fingerprint = fingerprint,
                                                 .tiles = TILES,
                                                 .most = MOST,
                                                 .count_of = values_of,
                                                 .resume = resume,
                                                 .memory = &memory};
    return tess_fill_journal_open(&settings, out, error);
}

static void write_all(void)
{
    tess_fill_journal *journal = NULL;
    tess_error error = {{0}};
    float values[MOST];
    unlink(path);
    CHECK_MSG(open_with(7, false, &journal, &error) == TESS_OK, "%s", error.text);
    for (int64_t tile = 0; journal && tile < TILES; tile++) {
        for (int64_t i = 0; i < count_of(tile); i++)
            values[i] = value_of(tile, i);
        CHECK(tess_fill_journal_add(journal, tile, values, count_of(tile), &error) == TESS_OK);
    }
    tess_fill_journal_close(journal, false);
}

/* Returns the number of tiles, which must be those from `first` on, and right. */
static int64_t read_from(int64_t first)
{
    tess_fill_journal *journal = NULL;
    tess_error error = {{0}};
    float values[MOST];
    CHECK_MSG(open_with(7, true, &journal, &error) == TESS_OK, "%s", error.text);
    const int64_t count = journal ? tess_fill_journal_count(journal) : 0;
    for (int64_t tile = 0; journal && tile < TILES; tile++) {
        CHECK(tess_fill_journal_has(journal, tile) == (tile >= first && tile < first + count));
        if (tile < first || tile >= first + count)
            continue;
        CHECK(tess_fill_journal_read(journal, tile, values, count_of(tile), &error) == TESS_OK);
        for (int64_t i = 0; i < count_of(tile); i++)
            CHECK(values[i] == value_of(tile, i));
    }
    tess_fill_journal_close(journal, false);
    return count;
}

static int64_t read_all(void)
{
    return read_from(0);
}

static void test_cut_off(void)
{
    write_all();
    struct stat facts;
    CHECK(stat(path, &facts) == 0);
    CHECK(read_all() == TILES);
    for (off_t size = facts.st_size - 1; size >= 33; size -= 97) {
        write_all();
        CHECK(truncate(path, size) == 0);
        const int64_t count = read_all();
        CHECK_MSG(count < TILES && count >= 0, "%lld tiles of %lld bytes", (long long)count, (long long)size);
    }
}

static void test_damaged(void)
{
    write_all();
    FILE *file = fopen(path, "r+b");
    CHECK(file && fseek(file, 4096 + 24, SEEK_SET) == 0 && fputc('x', file) == 'x' && fclose(file) == 0);
    CHECK(read_from(1) == TILES - 1); /* the others keep theirs */
}

static void test_refused(void)
{
    tess_fill_journal *journal = NULL, *other = NULL;
    tess_error error = {{0}};
    write_all();
    CHECK(open_with(7, false, &journal, &error) == TESS_BAD_INPUT && strstr(error.text, "finished tiles"));
    CHECK(open_with(8, true, &journal, &error) == TESS_BAD_INPUT && strstr(error.text, "other settings"));
    CHECK(open_with(7, true, &journal, &error) == TESS_OK);
    CHECK(open_with(7, true, &other, &error) == TESS_BAD_INPUT && strstr(error.text, "another run"));
    tess_fill_journal_close(journal, true);
    CHECK(access(path, F_OK) != 0);
    FILE *file = fopen(path, "wb");
    CHECK(file && fputs("an important file of somebody, 40 bytes...", file) > 0 && fclose(file) == 0);
    CHECK(open_with(7, true, &journal, &error) == TESS_BAD_INPUT);
    CHECK(access(path, F_OK) == 0);
    unlink(path);
    CHECK(symlink("/nowhere/else", path) == 0 && open_with(7, true, &journal, &error) == TESS_BAD_INPUT);
    unlink(path);
    CHECK(open_with(7, false, &journal, &error) == TESS_OK);
    tess_fill_journal_close(journal, false);
    CHECK(access(path, F_OK) != 0); /* one without tiles */
}

/* Before the fingerprint is known: only a journal with tiles stands in the way of a run that does not resume. */
static void test_checked(void)
{
    tess_fill_journal *journal = NULL;
    tess_error error = {{0}};
    CHECK(tess_fill_journal_check(output, false, &error) == TESS_OK && access(path, F_OK) != 0);
    write_all();
    CHECK(tess_fill_journal_check(output, false, &error) == TESS_BAD_INPUT && strstr(error.text, "`resume`"));
    CHECK(tess_fill_journal_check(output, true, &error) == TESS_OK && read_all() == TILES);
    CHECK(open_with(7, true, &journal, &error) == TESS_OK);
    CHECK(tess_fill_journal_check(output, true, &error) == TESS_BAD_INPUT &&
          strstr(error.text, "another run"));
    tess_fill_journal_close(journal, false);
    CHECK(truncate(path, 4096 + 26) == 0); /* in the middle of the first tile */
    CHECK(tess_fill_journal_check(output, false, &error) == TESS_OK);
    for (int resume = 0; resume < 2; resume++) { /* nor does one of other settings */
        write_all();
        CHECK(truncate(path, 4096 + 26) == 0);
        CHECK_MSG(open_with(8, resume, &journal, &error) == TESS_OK, "%s", error.text);
        CHECK(journal && tess_fill_journal_count(journal) == 0);
        tess_fill_journal_close(journal, false);
        journal = NULL;
    }
    unlink(path);
    CHECK(symlink("/nowhere/else", path) == 0);
    CHECK(tess_fill_journal_check(output, false, &error) == TESS_BAD_INPUT);
    unlink(path);
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    char folder[256];
    snprintf(folder, sizeof folder, "%s/tessera-journal-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return check_skip("no folder for temporary files");
    snprintf(output, sizeof output, "%s/out.tif", folder);
    snprintf(path, sizeof path, "%s.unfinished", output);
    test_cut_off();
    test_damaged();
    test_refused();
    test_checked();
    tess_mem_usage held;
    tess_memory_held(&memory, TESS_MEM_OF_PROCESS, &held);
    CHECK(held.total == 0);
    rmdir(folder);
    return check_end();
}
