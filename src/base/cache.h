/* cache.h: measurements of this machine, kept between runs in small JSON files in $TESSERA_CACHE, else
 * $XDG_CACHE_HOME/tessera, else ~/.cache/tessera. A cache that cannot be read or written is not an error: the
 * measurement is made again. */
#ifndef TESS_BASE_CACHE_H
#define TESS_BASE_CACHE_H

#include "base/json.h"

enum { TESS_CACHE_PATH = 1400 };

/* Builds the path of the cache file from this version of Tessera and the letters and digits of `key`. */
void tess_cache_path(const char *key, char path[TESS_CACHE_PATH]);
/* Returns NULL when the file is missing or damaged, or is not a regular file of this user (a link, a pipe). The
 * caller frees the result with tess_json_free. */
tess_json *tess_cache_read(const char *path);
/* Replaces the file atomically. Fails where tess_cache_read would refuse to read. Callers may ignore the
 * status: the measurement is then made again. */
tess_status tess_cache_write(const char *path, const tess_json *record, tess_error *error);

#endif
