/* cli.h: what the files of the program share.
 *
 * A verb is one file with a table of options and one row in main.c. Parsing, --help, the man pages, shell completion
 * and "did you mean" all read these tables, so they always know the same options. Exit status: 0 success, 1 the job
 * failed, 2 wrong usage, 128 + N stopped by signal N. */
#ifndef TESS_CLI_CLI_H
#define TESS_CLI_CLI_H

#include <stdio.h>

#include "tessera_ranks.h"

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_SIGNAL = 128 };
enum { CLI_COLUMNS = 100 };  /* of the help texts */
enum { CLI_MESSAGE = 1024 }; /* bytes for a text of the library */

/* Targets of the options that every verb has; a verb copies `common` into its settings. */
typedef struct cli_shared {
    tess_common common;
    const char *json; /* NULL: none; "-": standard output */
    bool quiet, verbose;
    bool seed_given;
    const char *verb;
    bool profile;
    int live;   /* port; -1: no page; 0: any port */
    bool steps; /* progress is counted in steps, not in pixels; the job itself gives plain lines */
} cli_shared;

typedef struct cli_option cli_option;
/* Stores a value in the target (`text` is NULL for flags); returns false after printing what is wrong. */
typedef bool (*cli_value_fn)(const cli_option *option, const char *text, void *target);

/* Placeholders for completion, besides plain words. */
#define CLI_FILES  "/files"
#define CLI_MODELS "/models" /* the bundled ones */
#define CLI_VERBS  "/verbs"
#define CLI_PLANS  "/plans" /* the verbs that plan takes */

struct cli_option {
    const char *name;    /* "--sigma" */
    const char *value;   /* name of the value in the help; NULL: a flag */
    cli_value_fn parse;  /* NULL: prints the help */
    size_t offset;       /* of the field in the target, for the parse functions below */
    const char *help;    /* newlines are kept, and lines that begin with a space are not wrapped */
    const char *words;   /* for completion, separated by spaces: words and the placeholders above */
    int64_t least, most; /* bounds of whole numbers */
    const char *letter;  /* "-o": a short name besides; may be NULL */
};

typedef struct cli_verb {
    const char *name, *what; /* `what`: one line in the list of verbs */
    const char *usage;       /* the words after the verb */
    const char *text;        /* a longer description, formatted as an option's help */
    const char *more;        /* follows the options; may be NULL */
    const char *example;
    const char *choices; /* for completion of the words, as an option's `words` */
    const cli_option *options;
    int option_count;
    int least, most; /* number of words */
    int watched;     /* how many of --trace, --profile and --live it takes, in this order */
    bool alone;      /* takes none of the shared options but --help */
    bool plans;      /* `tessera plan` accepts it */
    int (*run)(int argc, char **argv, bool plan);
} cli_verb;

extern const cli_verb cli_denoise, cli_reconstruct, cli_fill, cli_detect, cli_train, cli_plan, cli_bench,
    cli_report, cli_convert, cli_info, cli_top, cli_help;
extern const cli_verb *const cli_verbs[]; /* ends with NULL */
const cli_verb *cli_find_verb(const char *name);

/* parse.c: options and words of a verb. */
/* NULL after the last. *shared: its target is the cli_shared. */
const cli_option *cli_option_at(const cli_verb *verb, int index, bool *shared);
bool cli_option_watches(const cli_option *option); /* --trace, --profile or --live: not of every verb */
int cli_refuse_watching(int argc, char **argv);    /* of a plan, which runs nothing; as cli_begin */
/* Moves the words to the front of argv. Returns -1 to continue, otherwise the exit status. */
int cli_parse(const cli_verb *verb, int argc, char **argv, cli_shared *shared, void *target, int *words);
int cli_unknown_verb(const char *name, bool to_plan);
void cli_names(char *text, size_t bytes, bool to_plan);      /* "a, b or c" */
int cli_complain(const char *format, ...) TESS_PRINTF(1, 2); /* one line; returns CLI_USAGE */

/* suggest.c: the name nearest to a mistyped one. */
typedef struct cli_guess {
    const char *best; /* NULL: none is near */
    int distance;
} cli_guess;
void cli_guess_try(cli_guess *guess, const char *typed, const char *name);

/* values.c: parse functions for tables; the comment gives the type of the field. */
bool cli_flag(const cli_option *option, const char *text, void *target);    /* bool */
bool cli_text(const cli_option *option, const char *text, void *target);    /* const char * */
bool cli_integer(const cli_option *option, const char *text, void *target); /* int64_t */
bool cli_small(const cli_option *option, const char *text, void *target);   /* int */
bool cli_from_0(const cli_option *option, const char *text, void *target);  /* double, 0 or more; also a/b */
bool cli_above_0(const cli_option *option, const char *text, void *target); /* double */
bool cli_share(const cli_option *option, const char *text, void *target);   /* double, 0 to 1 */
bool cli_halo(const cli_option *option, const char *text, void *target);    /* int64_t: auto, exact, pixels */
bool cli_batch(const cli_option *option, const char *text, void *target);   /* int64_t: auto, number */
bool cli_size(const cli_option *option, const char *text, void *target);    /* uint64_t bytes */
/* helpers for further parse functions */
void *cli_field(const cli_option *option, void *target);
bool cli_refuse(const cli_option *option, const char *text, const char *expected); /* false */
bool cli_read_number(const char *text, double *value);                             /* also a/b; finite */
bool cli_read_integer(const cli_option *option, const char *text, int64_t least, int64_t most,
                      int64_t *value);
/* auto, whole, N, HxW and, if depth is not NULL, DxHxW: N is then a cube, and HxW sets the depth to 0. */
bool cli_read_tile(const cli_option *option, const char *text, int64_t *depth, int64_t *height,
                   int64_t *width);

/* help.c, manual.c, completion.c: text generated from the tables. */
void cli_usage_line(const cli_verb *verb, char *text, size_t bytes);
void cli_print_help(const cli_verb *verb);
void cli_print_overview(FILE *to);
void cli_print_manual(const cli_verb *verb); /* NULL: of the whole program */
void cli_print_completion(bool zsh);
extern const char cli_exit_status[];

/* output.c: standard output, and the start and end of every job. */
void cli_print(FILE *to, const char *format, ...) TESS_PRINTF(2, 3);
bool cli_output_failed(void);
int cli_close_output(int status); /* called last: status 1 and a message if standard output is incomplete */
/* Hands out the context and installs signal handlers, after the checks of cli_record_ready and when all ranks have come
 * so far. Returns -1 to continue, otherwise the exit status. */
int cli_begin(cli_shared *shared, bool polls, const char *output, tess_context **context);
/* Reports the error, prints and writes the record if requested, and frees it. */
int cli_finish(tess_context *context, tess_status status, char *record, const cli_shared *shared);

/* ranks.c: several processes that do one job. The program has one context, which has joined them. Until the ranks have
 * agreed to begin, a message is kept and not printed; afterwards rank 0 alone prints. */
int cli_join(int argc, char **argv); /* as cli_begin */
void cli_leave(void);
tess_context *cli_context(void);
bool cli_speaks(void); /* this rank prints */
/* Returns true if the message must not be printed now. Does not return if a rank is lost: this process is about to end,
 * and that was its line. */
bool cli_keep_message(const char *text);
/* Collective, once: main calls it for a rank that did not come to cli_begin. `status` is -1 or an exit status; returns
 * the same, or that of the lowest rank that failed. */
int cli_agree(int status);

/* words.c: texts of the library name settings, `memory_limit`; the program shows them with its options, --memory. */
void cli_name_options(char *text);
void cli_name_options_in_record(char *record); /* in JSON */

/* record.c: the file of --json. */
int cli_record_apart(const cli_shared *shared, const char *const *files, int count); /* as cli_begin */
int cli_record_ready(const cli_shared *shared,
                     const char *output); /* `output`: a folder that does not exist yet */
bool cli_record_write(const char *path, const char *record);
void cli_record_cleanup(void); /* async-signal-safe */

/* live.c: the page of --live, by rank 0. The job goes on whatever happens to it. */
int cli_live_begin(const cli_shared *shared, tess_context *context); /* as cli_begin */
void cli_live_end(void);
void cli_live_cleanup(void); /* async-signal-safe */
void cli_live_progress(int64_t done, int64_t total, double seconds);
void cli_live_file(int64_t index, int64_t count, const char *name);
size_t cli_live_state(char *text, size_t bytes); /* as JSON; any thread */
/* Names the file that says where the page of process `pid` is; false: there is no folder for it. */
bool cli_live_place(long pid, char *path, size_t bytes);
extern const char cli_live_page[];

/* live_http.c, or without_http.c: serves the page and the state on a socket that listens on loopback, which it takes
 * over. Returns false, with the reason, if it cannot. */
bool cli_http_start(int listening, int port, char *why, size_t bytes);
void cli_http_stop(void);

/* command_line.c: what the user typed, for records. Parsing changes the words, so they are kept before. */
void cli_remember(int argc, char **argv);
char *cli_with_command(const char *record); /* a copy with it, which the caller frees; NULL: there is none */

/* progress.c: lines on standard error. `user` is the cli_shared. */
void cli_progress_connect(tess_common *common, const cli_shared *shared);
bool cli_poll(void *user, int64_t done, int64_t total, double seconds); /* only checks whether to stop */
void cli_end_line(void); /* so that a message starts on a new line */

/* signals.c. The first signal stops a job that polls at its next poll. A second signal that comes a tenth of a second later or more,
 * or the first one if the job does not poll, removes temporary files and ends the program. */
void cli_watch_signals(bool polls);
void cli_hold_signals(bool hold); /* while it is set, the program is not ended, but when it is cleared */
int cli_signal_caught(void);      /* 0: none */

#endif
