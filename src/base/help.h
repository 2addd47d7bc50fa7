/* help.h: the ranks of one host compute parts of each other's work.
 *
 * Each rank has a segment of memory that all ranks of its host have mapped: a page with its present job, the board, and behind it the
 * blocks that its network computes in. The owner of a job divides it into parts, which it and whoever waits for something else take one
 * by one. A helper reads and writes the owner's blocks, and needs no memory of its own but scratch that it does not use while it waits.
 *
 * One atomic word of the board has the job's number, its parts and the next one. A part is taken by a compare-and-swap of this word, so
 * nobody gets a part of a job that has ended, and what the board says does not change before all parts that were taken are done:
 *   owner   writes the board, then stores the word (release);
 *   helper  takes a part (acquire: it sees the board and all that the owner wrote before), computes it, adds 1 to `done` (release);
 *   owner   closes the word, and waits until `done` (acquire) is the number of parts that others took: it sees their results.
 * A helper that dies or is stopped leaves its owner waiting, as one that waits for its messages: the watch of ranks ends the job. */
#ifndef TESS_BASE_HELP_H
#define TESS_BASE_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tess_help tess_help;
enum { TESS_HELP_TEXT = 3072 }; /* most bytes of a description */

/* A job. The description is plain data, with places in the owner's segment instead of pointers. */
typedef struct tess_help_job {
    uint64_t kind;  /* what computes it: ranks that compute another kind do not help */
    size_t scratch; /* bytes that a helper needs */
    int parts;      /* 1 to 65535 */
    const void *text;
    size_t bytes;
} tess_help_job;

/* A part for a helper. */
typedef struct tess_help_part {
    int owner, part;
    int before; /* the part of the same job that this scratch was used for last; -1: for something else */
    const void *text;
    void *scratch;
} tess_help_part;
typedef void (*tess_help_fn)(void *user, const tess_help *help, const tess_help_part *part);

/* One of `locals` ranks; NULL: no memory to share, more ranks than processors, or TESSERA_HELP is 0. */
tess_help *tess_help_create(int here, int locals);
void tess_help_destroy(tess_help *help); /* accepts NULL; its blocks must have been released */
/* How another rank finds this one's segment, and the way to it. */
typedef struct tess_help_address {
    int64_t pid, file;
    uint64_t secret, bytes; /* bytes 0: it has none */
} tess_help_address;
tess_help_address tess_help_address_of(const tess_help *help); /* accepts NULL */
bool tess_help_join(tess_help *help, int local, const tess_help_address *address);

/* Zeroed memory in this rank's segment; NULL: there is no room. */
void *tess_help_alloc(tess_help *help, size_t bytes);
void tess_help_release(tess_help *help, void *data);
/* Where in its owner's segment something is; 0: it is not there. And the way back. */
uint64_t tess_help_place(const tess_help *help, const void *data);
void *tess_help_at(const tess_help *help, int owner, uint64_t place);

/* The owner: begin; take parts until -1, or stop earlier; end, which waits for the others. */
void tess_help_begin(tess_help *help, const tess_help_job *job);
int tess_help_take(tess_help *help);
void tess_help_end(tess_help *help);

/* How this rank helps. */
void tess_help_serve(tess_help *help, uint64_t kind, tess_help_fn compute, void *user);
/* Scratch for it, while this rank waits: lent before it waits, and taken back (0 bytes) after. Of the first bytes, `keep` are in use until
 * the next call. Both accept a NULL help. */
void tess_help_lend(tess_help *help, void *scratch, size_t bytes);
void tess_help_keep(tess_help *help, size_t keep);
bool tess_help_ready(const tess_help *help); /* there is scratch; accepts NULL */
/* Computes a part of the job that is the furthest behind; -1: there is none, or no scratch; else its owner. Accepts NULL. */
int tess_help_once(tess_help *help);
int64_t tess_help_parts(const tess_help *help); /* that this rank has computed for others; accepts NULL */

#endif
