/* cli.h: what the verbs of the program share. Exit status: 0 done, 1 the job failed, 2 wrong usage. */
#ifndef TESS_CLI_CLI_H
#define TESS_CLI_CLI_H

#include "tessera.h"

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* Options that every verb has. */
typedef struct cli_shared {
    tess_common *common;
    const char *json; /* NULL: none; "-": standard output */
    bool quiet;
} cli_shared;

/* One option of a verb, given with its value; false after saying what is wrong. */
typedef bool (*cli_option_fn)(void *target, const char *name, const char *value, bool *known);

typedef struct cli_verb {
    const char *name, *help;
    int positional_least, positional_most;
    cli_option_fn option;
    const char *flags; /* options without a value, separated by spaces */
} cli_verb;

/* Splits the arguments; positionals into `words`. Returns -1 to go on, else the exit status. */
int cli_parse(const cli_verb *verb, int argc, char **argv, cli_shared *shared, void *target,
              const char **words, int *word_count);
bool cli_number(const char *name, const char *text, double *value); /* also a/b */
bool cli_integer(const char *name, const char *text, int64_t least, int64_t most, int64_t *value);
bool cli_halo(const char *name, const char *text, int64_t *halo); /* auto, exact or pixels */
bool cli_tile(const char *name, const char *text, int64_t *height, int64_t *width); /* auto, whole, N, HxW */
/* Besides those DxHxW. N is a cube, HxW leaves the depth 0. */
bool cli_tile_3d(const char *name, const char *text, int64_t *depth, int64_t *height, int64_t *width);
bool cli_size(const char *name, const char *text, uint64_t *bytes); /* K, M, G */
int cli_complain(const char *format, ...) TESS_PRINTF(1, 2);        /* one line; returns CLI_USAGE */
/* Before the work: the record can be written, and over none of the files that the job was given; NULLs are passed
 * over. Returns -1 to go on, else the exit status. */
int cli_json_ready(const cli_shared *shared, const char *const *files, int count);
/* Ends a verb: says the error or shows the record where it is wanted. */
int cli_finish(tess_context *context, tess_status status, char *record, const cli_shared *shared);

/* Progress on standard error; stops at Ctrl-C. */
bool cli_progress(void *user, int64_t done, int64_t total, double seconds);
void cli_watch_interrupts(void);

int cli_denoise(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_convert(int argc, char **argv);
int cli_info(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_denoise_like(int argc, char **argv, bool plan);
int cli_reconstruct(int argc, char **argv);
int cli_reconstruct_like(int argc, char **argv, bool plan);

extern const char cli_shared_help[];

#endif
