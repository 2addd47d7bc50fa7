/* cache.h: what was measured on this machine and is kept between runs: small JSON files in $TESSERA_CACHE, else
 * $XDG_CACHE_HOME/tessera, else ~/.cache/tessera. A cache that cannot be read or written is no error: things
 * are measured again. */
#ifndef TESS_BASE_CACHE_H
#define TESS_BASE_CACHE_H

#include "base/json.h"

enum { TESS_CACHE_PATH = 1400 };

/* The file for `key`, of which letters and digits are kept, and this version of Tessera. */
void tess_cache_path(const char *key, char path[TESS_CACHE_PATH]);
/* NULL when there is none, a damaged one, or something other than a plain file of this user (a link, a pipe).
 * Freed by the caller: tess_json_free. */
tess_json *tess_cache_read(const char *path);
/* Replaces the file in one step; refuses where tess_cache_read would not read it. Callers may ignore the answer: what is
 * not kept is measured again. */
tess_status tess_cache_write(const char *path, const tess_json *record, tess_error *error);

#endif
