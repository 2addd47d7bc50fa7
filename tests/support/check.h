/* check.h: the macros of every test program. A failed CHECK prints where it failed and with what values, and
 * continues; the program ends with status 1. Status 77 tells CTest that a test was skipped. */
#ifndef TESS_TESTS_CHECK_H
#define TESS_TESTS_CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures, check_count;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        check_count++;                                                                                       \
        if (!(condition)) {                                                                                  \
            check_failures++;                                                                                \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                          \
        }                                                                                                    \
    } while (0)

#define CHECK_MSG(condition, ...)                                                                            \
    do {                                                                                                     \
        check_count++;                                                                                       \
        if (!(condition)) {                                                                                  \
            check_failures++;                                                                                \
            fprintf(stderr, "%s:%d: failed: %s: ", __FILE__, __LINE__, #condition);                          \
            fprintf(stderr, __VA_ARGS__);                                                                    \
            fputc('\n', stderr);                                                                             \
        }                                                                                                    \
    } while (0)

static inline int check_end(void)
{
    printf("%d checks, %d failed\n", check_count, check_failures);
    return check_failures ? 1 : 0;
}

static inline int check_skip(const char *why)
{
    printf("skipped: %s\n", why);
    return 77;
}

#endif
