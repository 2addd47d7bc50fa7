/* config_impl.h: the table of keys and the kinds of values, shared by config*.c. */
#ifndef TESS_TRAIN_CONFIG_IMPL_H
#define TESS_TRAIN_CONFIG_IMPL_H

#include "train/config.h"

typedef struct tess_config_field tess_config_field;

enum { TESS_CONFIG_PATH = 128, TESS_CONFIG_FIELDS_MOST = 64 };

/* Where a value is read: for messages and relative paths. */
typedef struct tess_config_reader {
    const char *folder;
    char path[TESS_CONFIG_PATH]; /* of the key: "optimizer.rate" */
    tess_error *error;
} tess_config_reader;

typedef struct tess_config_word {
    const char *word; /* NULL ends a list */
    int value;
} tess_config_word;

/* A kind of value. `target` is the member of the configuration. write gives null for what a file leaves out. */
typedef struct tess_config_kind {
    tess_status (*read)(tess_config_reader *reader, const tess_config_field *field, const tess_json *value,
                        void *target);
    tess_json *(*write)(const tess_config_field *field, const void *target);
} tess_config_kind;

extern const tess_config_kind tess_config_integer, tess_config_number, tess_config_bool, tess_config_words,
    tess_config_size, tess_config_automatic, tess_config_pair, tess_config_range, tess_config_widths,
    tess_config_scales, tess_config_numbers, tess_config_one_path, tess_config_folders, tess_config_names,
    tess_config_device, tess_config_phases, tess_config_pipeline;

struct tess_config_field {
    const char *section, *key; /* section "": the top level */
    const tess_config_kind *kind;
    size_t offset;
    double low, high;
    const tess_config_word *words;
    const char *expected;
    bool above;   /* low itself is refused */
    bool matters; /* a run with another value gives another result */
    /* Used only if the word at offset `of` is one of the bits of `values`; 0: always. */
    size_t of;
    unsigned values;
};

extern const tess_config_field tess_config_fields[];
extern const int tess_config_field_count;
extern const char *const tess_config_sections[]; /* NULL ends the list; "" is the top level */

/* True for a key of the validation if there is none. */
bool tess_config_field_lacks_folder(const tess_config_field *field, const tess_train_config *config);
bool tess_config_field_used(const tess_config_field *field, const tess_train_config *config);
/* The index of a key, or -1. */
int tess_config_field_find(const char *section, const char *key);
/* The field that is stored at `offset`. */
const tess_config_field *tess_config_field_at(size_t offset);
bool tess_config_given(const tess_train_config *config, size_t offset);
const char *tess_config_word_of(const tess_config_word *words, int value);

/* "PATH: expected EXPECTED, got VALUE". */
tess_status tess_config_refuse(tess_config_reader *reader, const char *expected, const tess_json *value);
/* Sets the reader's path to "SECTION.KEY", or "KEY" at the top level. */
void tess_config_enter(tess_config_reader *reader, const char *section, const char *key);
/* The same checks for a value that is not a field of its own. */
tess_status tess_config_read_integer(tess_config_reader *reader, const tess_json *value, int64_t low,
                                     int64_t high, const char *expected, int64_t *out);
tess_status tess_config_read_path(tess_config_reader *reader, const tess_json *value, const char *expected,
                                  tess_train_path *out);
void tess_config_clear_path(tess_train_path *path);
/* Finds the key nearest to a misspelt one, for the message about it. */
tess_status tess_config_unknown(tess_config_reader *reader, const char *section, const char *key);

/* Fills what the file left out, and checks what involves several keys. */
void tess_config_defaults(tess_train_config *config);
tess_status tess_config_complete(tess_train_config *config, tess_config_reader *reader);
/* The same for a diffusion network. */
tess_status tess_config_complete_diffusion(tess_train_config *config, tess_config_reader *reader);
/* The same for a pipeline, as far as its cubes need not be known. */
tess_status tess_config_complete_pipeline(tess_train_config *config, tess_config_reader *reader);
/* Rates and steps that depend on each other, in a configuration whose steps are known. */
tess_status tess_config_complete_steps(tess_train_config *config, tess_config_reader *reader);
tess_status tess_config_complete_phases(tess_train_config *config, bool steps_given, tess_error *error);

#endif
