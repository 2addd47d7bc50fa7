/* Jobs: see help.h for the order of what is read and written. */
#include "base/help.h"

#include <sched.h>
#include <string.h>

#include "base/help_impl.h"

enum { PART_BITS = 16, PART_MASK = (1 << PART_BITS) - 1 };

static uint64_t word_of(uint32_t number, int parts, int next)
{
    return (uint64_t)number << 32 | (uint64_t)parts << PART_BITS | (uint64_t)next;
}

static uint32_t number_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static int parts_of(uint64_t word)
{
    return (int)(word >> PART_BITS & PART_MASK);
}

static int next_of(uint64_t word)
{
    return (int)(word & PART_MASK);
}

void tess_help_begin(tess_help *help, const tess_help_job *job)
{
    help_board *board = help_board_of(help, help->here);
    help->taken = 0;
    memcpy(board->text, job->text, job->bytes);
    atomic_store_explicit(&board->kind, job->kind, memory_order_relaxed);
    atomic_store_explicit(&board->scratch, job->scratch, memory_order_relaxed);
    atomic_store_explicit(&board->done, 0, memory_order_relaxed);
    atomic_store_explicit(&board->word, word_of(++help->number, job->parts, 0), memory_order_release);
}

int tess_help_take(tess_help *help)
{
    help_board *board = help_board_of(help, help->here);
    uint64_t word = atomic_load_explicit(&board->word, memory_order_relaxed);
    while (next_of(word) < parts_of(word))
        if (atomic_compare_exchange_weak_explicit(&board->word, &word, word + 1, memory_order_acq_rel,
                                                  memory_order_relaxed)) {
            help->taken++;
            return next_of(word);
        }
    return -1;
}

void tess_help_end(tess_help *help)
{
    help_board *board = help_board_of(help, help->here);
    const uint64_t word =
        atomic_exchange_explicit(&board->word, word_of(help->number, 0, 0), memory_order_acq_rel);
    const uint32_t others = (uint32_t)(next_of(word) - help->taken);
    while (atomic_load_explicit(&board->done, memory_order_acquire) != others)
        sched_yield(); /* a helper may need this core */
}

void tess_help_serve(tess_help *help, uint64_t kind, tess_help_fn compute, void *user)
{
    help->kind = kind;
    help->compute = compute;
    help->user = user;
}

void tess_help_lend(tess_help *help, void *scratch, size_t bytes)
{
    if (!help)
        return;
    help->scratch = scratch;
    help->scratch_bytes = bytes;
    help->before_owner = -1; /* it was used for something else */
}

void tess_help_keep(tess_help *help, size_t keep)
{
    if (help)
        help->keep = keep;
}

/* Whether this rank can compute parts of the job that the word is of. If the job ends meanwhile, taking a part of it fails: had this read
 * what the owner wrote for the next job, the word would have changed before. */
static bool suits(const tess_help *help, const help_board *board, uint64_t word)
{
    return next_of(word) < parts_of(word) &&
           atomic_load_explicit(&board->kind, memory_order_relaxed) == help->kind &&
           atomic_load_explicit(&board->scratch, memory_order_relaxed) <= help->scratch_bytes - help->keep;
}

/* The rank that began the fewest jobs, of those with parts left; -1: none. */
static int find_last(const tess_help *help, uint64_t *word)
{
    int found = -1;
    for (int i = 1; i < help->locals; i++) {
        const int r = (help->here + i) % help->locals;
        const help_board *board = help_board_of(help, r);
        const uint64_t theirs = atomic_load_explicit(&board->word, memory_order_acquire);
        if (suits(help, board, theirs) && (found < 0 || number_of(theirs) < number_of(*word))) {
            found = r;
            *word = theirs;
        }
    }
    return found;
}

bool tess_help_ready(const tess_help *help)
{
    return help && help->compute && help->scratch_bytes > help->keep;
}

int tess_help_once(tess_help *help)
{
    if (!tess_help_ready(help))
        return -1;
    uint64_t word = 0;
    const int owner = find_last(help, &word);
    if (owner < 0)
        return -1;
    help_board *board = help_board_of(help, owner);
    if (!atomic_compare_exchange_strong_explicit(&board->word, &word, word + 1, memory_order_acq_rel,
                                                 memory_order_relaxed))
        return -1;
    const bool same = help->before_owner == owner && help->before_number == number_of(word);
    const tess_help_part part = {.owner = owner,
                                 .part = next_of(word),
                                 .before = same ? help->before : -1,
                                 .text = board->text,
                                 .scratch = help->scratch + help->keep};
    help->compute(help->user, help, &part);
    atomic_fetch_add_explicit(&board->done, 1, memory_order_release);
    help->before_owner = owner;
    help->before_number = number_of(word);
    help->before = part.part;
    help->parts++;
    return owner;
}

int64_t tess_help_parts(const tess_help *help)
{
    return help ? help->parts : 0;
}
