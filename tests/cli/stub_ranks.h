/* stub_ranks.h: the ranks of the stub (cli_stub.c). */
#ifndef TESS_TESTS_STUB_RANKS_H
#define TESS_TESTS_STUB_RANKS_H

#include <stdbool.h>

bool stub_is(const char *behaviour); /* whether the variable STUB names it */
bool stub_has_ranks(void);           /* lost, elsewhere, failed */
/* A rank is lost: returns when the program has been told. The process ends 0.3 seconds later. */
void stub_lose_rank(void);

#endif
