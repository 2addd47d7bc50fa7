/* Splits the arguments of a verb into words and options, using the verb's table and the table of shared options. */
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "cli.h"

#define SHARED(field) offsetof(cli_shared, field)

/* A file may have a seed of its own, which counts if none is given. */
static bool take_seed(const cli_option *option, const char *text, void *target)
{
    ((cli_shared *)target)->seed_given = true;
    return cli_integer(option, text, target);
}

static const cli_option shared_options[] = {
    {"--json", "FILE", cli_text, SHARED(json),
     "write the record of the job, one JSON object, to FILE; - is standard output", CLI_FILES},
    {"--quiet", NULL, cli_flag, SHARED(quiet), "no progress, no notes, no summary; errors only"},
    {"--verbose", NULL, cli_flag, SHARED(verbose),
     "print every note on what the job decides; without it only warnings"},
    {"--device", "D", cli_text, SHARED(common.device),
     "auto, cpu, cuda or cuda:K (auto: the one that is predicted to be faster)", "auto cpu cuda"},
    {"--threads", "N", cli_small, SHARED(common.threads), "CPU threads (default: all cores)", NULL, 1, 1024},
    {"--precision", "P", cli_text, SHARED(common.precision),
     "auto, fp32, tf32, fp16 or bf16 (auto: fp16 on a GPU, else fp32)", "auto fp32 tf32 fp16 bf16"},
    {"--memory", "SIZE", cli_size, SHARED(common.memory_limit),
     "limit on the device that computes, e.g. 300M, 512MiB or 2G; K, M, G and T are powers of 1024, with or "
     "without B or iB (default: what is free)"},
    {"--seed", "N", take_seed, SHARED(common.seed), "of random numbers (default 0; train: its file's)", NULL,
     0, INT64_MAX},
    {"--help", NULL, NULL, 0, "print this text; -h does the same", .letter = "-h"},
};
static const cli_option watch_options[] = {
    {"--trace", "FILE", cli_text, SHARED(common.trace_file),
     "write where the time went, each layer on each thread, as a trace for ui.perfetto.dev or "
     "chrome://tracing",
     CLI_FILES},
    {"--profile", NULL, cli_flag, SHARED(profile),
     "print the ten most expensive layers; they are also in the record (CPU only)"},
    {"--live", "PORT", cli_small, SHARED(live),
     "serve a page at http://127.0.0.1:PORT while the job runs: progress, loss or PSNR, memory; 0: any free "
     "port, "
     "which is printed. tessera top shows the same in the terminal",
     NULL, 0, 65535},
};
enum { SHARED_COUNT = sizeof shared_options / sizeof shared_options[0] };

int cli_complain(const char *format, ...)
{
    char text[4 * CLI_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (cli_keep_message(text))
        return CLI_USAGE;
    cli_end_line();
    fprintf(stderr, "tessera: %s\n", text);
    return CLI_USAGE;
}

const cli_option *cli_option_at(const cli_verb *verb, int index, bool *shared)
{
    const int own = verb->option_count;
    const int skipped = verb->alone ? SHARED_COUNT - 1 : 0; /* --help is the last */
    *shared = index >= own;
    if (index < own)
        return &verb->options[index];
    if (index < own + verb->watched)
        return &watch_options[index - own];
    index += skipped - own - verb->watched;
    return index < SHARED_COUNT ? &shared_options[index] : NULL;
}

bool cli_option_watches(const cli_option *option)
{
    return option >= watch_options && option < watch_options + sizeof watch_options / sizeof watch_options[0];
}

int cli_refuse_watching(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        for (size_t k = 0; k < sizeof watch_options / sizeof watch_options[0]; k++) {
            const size_t length = strlen(watch_options[k].name);
            if (strncmp(argv[i], watch_options[k].name, length) == 0 &&
                (argv[i][length] == '\0' || argv[i][length] == '='))
                return cli_complain("plan: %s is for a job that runs; leave it out of a plan",
                                    watch_options[k].name);
        }
    return -1;
}

void cli_names(char *text, size_t bytes, bool to_plan)
{
    int total = 0, done = 0;
    for (int i = 0; cli_verbs[i]; i++)
        total += !to_plan || cli_verbs[i]->plans;
    size_t used = 0;
    for (int i = 0; cli_verbs[i]; i++)
        if (!to_plan || cli_verbs[i]->plans) {
            const char *before = done == 0 ? "" : done == total - 1 ? " or " : ", ";
            const int length = snprintf(text + used, bytes - used, "%s%s", before, cli_verbs[i]->name);
            used += length > 0 && used + (size_t)length < bytes ? (size_t)length : 0;
            done++;
        }
}

int cli_unknown_verb(const char *name, bool to_plan)
{
    cli_guess guess = {NULL, 0};
    for (int i = 0; cli_verbs[i]; i++)
        if (!to_plan || cli_verbs[i]->plans)
            cli_guess_try(&guess, name, cli_verbs[i]->name);
    char names[256];
    cli_names(names, sizeof names, to_plan);
    if (guess.best)
        return cli_complain("unknown verb %s; did you mean %s?", name, guess.best);
    return cli_complain(to_plan ? "plan: cannot plan %s; use %s" : "unknown verb %s; use %s", name, names);
}

static int unknown_option(const cli_verb *verb, const char *name)
{
    cli_guess guess = {NULL, 0};
    const cli_option *option;
    bool shared;
    for (int i = 0; (option = cli_option_at(verb, i, &shared)); i++)
        cli_guess_try(&guess, name, option->name);
    if (guess.best)
        return cli_complain("%s: unknown option %s; did you mean %s?", verb->name, name, guess.best);
    return cli_complain("%s: unknown option %s; see tessera help %s", verb->name, name, verb->name);
}

/* Parses the option at argv[*at] and advances *at to its last word. Returns as cli_parse. */
static int take_option(const cli_verb *verb, int argc, char **argv, int *at, cli_shared *shared, void *target)
{
    char *word = argv[*at], *equals = strchr(word, '=');
    const cli_option *option = NULL;
    bool is_shared;
    if (equals)
        *equals = '\0'; /* the word is now the name alone */
    for (int i = 0; (option = cli_option_at(verb, i, &is_shared)); i++)
        if (strcmp(word, option->name) == 0 || (option->letter && strcmp(word, option->letter) == 0))
            break;
    if (!option)
        return unknown_option(verb, word);
    if (!option->value && equals)
        return cli_complain("%s: option %s takes no value", verb->name, option->name);
    if (!option->parse) {
        cli_print_help(verb);
        return CLI_DONE;
    }
    const char *value = equals ? equals + 1 : NULL;
    /* A word that looks like an option is not taken as a value, so that a missing value is noticed. --range -32,4310
     * is a value. */
    if (option->value && !equals && *at + 1 < argc && strncmp(argv[*at + 1], "--", 2) != 0)
        value = argv[++*at];
    if (option->value && (!value || !*value))
        return cli_complain("%s: option %s lacks its value: %s %s", verb->name, option->name, option->name,
                            option->value);
    return option->parse(option, value, is_shared ? shared : target) ? -1 : CLI_USAGE;
}

int cli_parse(const cli_verb *verb, int argc, char **argv, cli_shared *shared, void *target, int *words)
{
    char usage[256];
    bool options_end = false;
    *words = 0;
    *shared = (cli_shared){.verb = verb->name, .live = -1};
    tess_common_init(&shared->common);
    cli_usage_line(verb, usage, sizeof usage);
    for (int i = 0; i < argc; i++) {
        if (options_end || argv[i][0] != '-' || argv[i][1] == '\0') {
            if (*words == verb->most)
                return cli_complain("%s: one argument too many: %s; usage: %s", verb->name, argv[i], usage);
            argv[(*words)++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            options_end = true;
        } else {
            const int status = take_option(verb, argc, argv, &i, shared, target);
            if (status >= 0)
                return status;
        }
    }
    if (*words < verb->least)
        return cli_complain("%s: an argument is missing; usage: %s", verb->name, usage);
    if (shared->json && strcmp(shared->json, "-") != 0)
        shared->common.record_file = shared->json;
    return -1;
}
