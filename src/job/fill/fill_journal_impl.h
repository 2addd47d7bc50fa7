/* fill_journal_impl.h: the file of a journal, shared by fill_journal*.c. */
#ifndef TESS_JOB_FILL_JOURNAL_IMPL_H
#define TESS_JOB_FILL_JOURNAL_IMPL_H

#include "base/mem.h"
#include "job/fill/fill_journal.h"

enum { TESS_JOURNAL_PAGE = 4096 }; /* places begin at multiples: hosts cache whole pages */

typedef struct tess_journal_head {
    char magic[8];
    uint64_t fingerprint;
    int64_t tiles, most;
} tess_journal_head;

/* Followed by the values. The checksum is of tile, count and the values. */
typedef struct tess_journal_entry {
    int64_t tile, count;
    uint64_t checksum;
} tess_journal_entry;

struct tess_fill_journal {
    tess_dist *dist; /* NULL: alone */
    int file;
    char *path;
    bool mine;  /* rank 0's, and not another run's */
    bool doubt; /* other ranks may have added tiles that this one does not know */
    int64_t tiles, most, count;
    int64_t *at; /* of each tile's entry in the file; one more: where the last one ends */
    uint8_t *has;
    tess_block block;
    float *values; /* of one entry, for reading */
};

extern const char tess_journal_magic[8];
uint64_t tess_journal_checksum(const tess_journal_entry *head, const float *values);
bool tess_journal_read_at(int file, void *data, size_t bytes, int64_t at);
/* Whether a file of ours has a whole entry. The places of entries need not be known. */
bool tess_journal_has_entry(int file);
/* False: no memory. */
bool tess_journal_name(tess_fill_journal *j, const char *output);
/* `create`: O_CREAT, or 0: a file that is not there stays so. Only rank 0 locks it. */
tess_status tess_journal_open_file(tess_fill_journal *j, int create, bool lock,
                                   tess_error *error) TESS_MUST_CHECK;

#endif
