/* fill_journal.h: the finished tiles of a run, in a file beside its output, so that a run that was killed can be continued.
 *
 * Each tile has a place of its own in the file, which follows from the sizes of the tiles before it, so ranks write their
 * tiles without asking each other, and a run may be continued with another number of ranks. An entry has a checksum; one that
 * was cut short is ignored. The file begins with the fingerprint of everything that decides the result. It is locked, by
 * rank 0, while a run uses it. */
#ifndef TESS_JOB_FILL_JOURNAL_H
#define TESS_JOB_FILL_JOURNAL_H

#include "base/memory.h"
#include "base/status.h"
#include "dist/dist.h"

typedef struct tess_fill_journal tess_fill_journal; /* owned by the caller: tess_fill_journal_close */

typedef struct tess_fill_journal_settings {
    const char *output;                                  /* the journal is OUTPUT.unfinished */
    uint64_t fingerprint;                                /* of another run: refused */
    int64_t tiles;                                       /* entries are numbered from 0 */
    int64_t most;                                        /* values of an entry */
    int64_t (*count_of)(const void *user, int64_t tile); /* values of this entry */
    const void *user;
    bool resume; /* false: refuses a journal that has entries */
    tess_memory *memory;
    tess_dist *dist; /* the ranks that use it; NULL: alone */
} tess_fill_journal_settings;

/* What it holds while it is open. */
size_t tess_fill_journal_bytes(const tess_fill_journal_settings *settings);
/* Collective. All ranks know the same tiles, also behind tess_fill_journal_share. */
tess_status tess_fill_journal_open(const tess_fill_journal_settings *settings, tess_fill_journal **out,
                                   tess_error *error) TESS_MUST_CHECK;
/* Refuses a journal that is there and must not be, or that cannot be, before its fingerprint is known. */
tess_status tess_fill_journal_check(const char *output, bool resume, tess_error *error) TESS_MUST_CHECK;
/* Collective: makes the tiles that each rank has added known to all, and readable. */
tess_status tess_fill_journal_share(tess_fill_journal *journal, tess_error *error) TESS_MUST_CHECK;
/* Tiles that were there when it was opened, and those since that this rank knows. */
int64_t tess_fill_journal_count(const tess_fill_journal *journal);
bool tess_fill_journal_has(const tess_fill_journal *journal, int64_t tile);
/* At most as many values as count_of says. */
tess_status tess_fill_journal_add(tess_fill_journal *journal, int64_t tile, const float *values,
                                  int64_t count, tess_error *error) TESS_MUST_CHECK;
/* Reads the `count` values of a tile that it has. */
tess_status tess_fill_journal_read(tess_fill_journal *journal, int64_t tile, float *values, int64_t count,
                                   tess_error *error) TESS_MUST_CHECK;
/* Accepts NULL. `done`: rank 0 removes the file. */
void tess_fill_journal_close(tess_fill_journal *journal, bool done);

#endif
