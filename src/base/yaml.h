/* yaml.h: YAML as JSON values, for reading the files of other programs, as untrusted data.
 *
 * A file can only say what JSON can say. Tags are refused, so nothing in it can name a type, and nothing is executed.
 * Anchors are copied where they are used; size, depth, and the number of values with all copies are limited, so that
 * a few lines that double each other stay a few lines. */
#ifndef TESS_BASE_YAML_H
#define TESS_BASE_YAML_H

#include "base/json.h"

enum {
    TESS_YAML_BYTES = 1 << 20,
    TESS_YAML_DEPTH = 32,
    TESS_YAML_VALUES = 20000, /* copies included */
    TESS_YAML_TEXT = 64,      /* so many bytes of a text count as one more value */
    TESS_YAML_ANCHORS = 256
};

/* Parses one document of `length` bytes, as YAML 1.1 resolves plain words: true, yes, 12, 1.0e-06, null, ~, and text. 1e-6
 * is a number too. Messages give the line, not the file. TESS_UNSUPPORTED: built without libyaml. */
tess_status tess_yaml_parse(const char *text, size_t length, tess_json **out,
                            tess_error *error) TESS_MUST_CHECK;
/* Reads and parses a file. Messages do not contain the path. */
tess_status tess_yaml_read(const char *path, tess_json **out, tess_error *error) TESS_MUST_CHECK;

/* The value of a plain word. NULL: no memory. yaml.c uses it. */
tess_json *tess_yaml_plain(const char *word);

#endif
