/* status.h: how all code reports failure: a status that the compiler makes the caller check, and one line of
 * text in a tess_error that the caller owns. There is no global error state, so two contexts never mix their
 * messages. */
#ifndef TESS_BASE_STATUS_H
#define TESS_BASE_STATUS_H

#include "tessera.h"

enum { TESS_ERROR_TEXT = 768 };

typedef struct tess_error {
    char text[TESS_ERROR_TEXT];
} tess_error;

/* Writes the message (one line: what is wrong, and what would be right) and returns `status`. `error` may be
 * NULL. */
tess_status tess_fail(tess_error *error, tess_status status, const char *format, ...) TESS_PRINTF(3, 4);

/* Puts "prefix: " before an existing message and returns `status` unchanged. */
tess_status tess_fail_prefix(tess_error *error, tess_status status, const char *prefix);

#define TESS_TRY(call)                                                                                       \
    do {                                                                                                     \
        tess_status tess_try_status = (call);                                                                \
        if (tess_try_status != TESS_OK)                                                                      \
            return tess_try_status;                                                                          \
    } while (0)

#endif
