/* The verb help, and the texts of --help. */
#include <stddef.h>
#include <string.h>

#include "cli.h"

typedef struct help_target {
    bool manual;
    const char *shell;
} help_target;

static bool shell(const cli_option *option, const char *text, void *target)
{
    if (strcmp(text, "bash") != 0 && strcmp(text, "zsh") != 0)
        return cli_refuse(option, text, "bash or zsh");
    return cli_text(option, text, target);
}

static const cli_option options[] = {
    {"--man", NULL, cli_flag, offsetof(help_target, manual),
     "print the manual page instead, of VERB or of the program, for man -l -"},
    {"--completion", "SHELL", shell, offsetof(help_target, shell),
     "print the completion of bash or zsh, e.g. for: source <(tessera help --completion bash)", "bash zsh"},
};

static int run(int argc, char **argv, bool plan)
{
    (void)plan;
    help_target target = {false, NULL};
    cli_shared shared;
    int count, status = cli_parse(&cli_help, argc, argv, &shared, &target, &count);
    if (status >= 0)
        return status;
    const cli_verb *verb = count > 0 ? cli_find_verb(argv[0]) : NULL;
    if (count > 0 && !verb)
        return cli_unknown_verb(argv[0], false);
    if (target.shell)
        cli_print_completion(strcmp(target.shell, "zsh") == 0);
    else if (target.manual)
        cli_print_manual(verb);
    else if (verb)
        cli_print_help(verb);
    else
        cli_print_overview(stdout);
    return CLI_DONE;
}

const cli_verb cli_help = {
    .name = "help",
    .what = "this text, help on a verb, manual pages, completion for shells",
    .usage = "[VERB]",
    .text = "Prints the help of VERB, or without one the list of verbs.",
    .example = "tessera help denoise",
    .choices = CLI_VERBS,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .most = 1,
    .alone = true,
    .run = run,
};

const char cli_exit_status[] =
    "0 done, 1 the job or a file of it failed, 2 wrong usage, 128+N stopped by signal N.";

void cli_usage_line(const cli_verb *verb, char *text, size_t bytes)
{
    snprintf(text, bytes, "tessera %s%s%s%s", verb->name, *verb->usage ? " " : "", verb->usage,
             strstr(verb->usage, "[options]") ? "" : " [options]");
}

/* Wraps words at the last column and indents the next lines; `column` is where the text begins. */
static void print_wrapped(int indent, const char *text)
{
    int column = indent;
    while (*text) {
        if (*text == '\n') {
            cli_print(stdout, "\n%*s", text[1] && text[1] != '\n' ? indent : 0, "");
            column = indent;
            text++;
            continue;
        }
        const bool kept = column == indent && *text == ' '; /* a preformatted line */
        const int length = (int)(kept ? strcspn(text, "\n") : strcspn(text, " \n"));
        if (column > indent && column + 1 + length > CLI_COLUMNS) {
            cli_print(stdout, "\n%*s", indent, "");
            column = indent;
        }
        cli_print(stdout, "%s%.*s", column > indent ? " " : "", length, text);
        column += length + (column > indent);
        text += length;
        text += !kept && *text == ' ';
    }
    cli_print(stdout, "\n");
}

static void print_option(const cli_option *option)
{
    enum { INDENT = 24 };
    char name[96];
    const int length = snprintf(name, sizeof name, "  %s%s%s", option->name, option->value ? " " : "",
                                option->value ? option->value : "");
    if (length > INDENT - 2)
        cli_print(stdout, "%s\n%*s", name, INDENT, "");
    else
        cli_print(stdout, "%-*s", INDENT, name);
    print_wrapped(INDENT, option->help);
}

void cli_print_help(const cli_verb *verb)
{
    char usage[256];
    const cli_option *option;
    bool shared;
    int heading = -1;
    cli_usage_line(verb, usage, sizeof usage);
    cli_print(stdout, "Usage: %s\n\n", usage);
    print_wrapped(0, verb->text);
    for (int i = 0; (option = cli_option_at(verb, i, &shared)); i++) {
        const int of_every_verb = shared && !verb->alone && !cli_option_watches(option);
        if (heading != of_every_verb)
            cli_print(stdout, "\n%s:\n", of_every_verb ? "Options of every verb" : "Options");
        heading = of_every_verb;
        print_option(option);
    }
    if (verb->more) {
        cli_print(stdout, "\n");
        print_wrapped(0, verb->more);
    }
    cli_print(stdout, "\nExample: %s\n", verb->example);
}

void cli_print_overview(FILE *to)
{
    cli_print(to, "tessera %s: restores images that are too large for one pass on one device\n\n",
              TESSERA_VERSION);
    for (int i = 0; cli_verbs[i]; i++)
        cli_print(to, "  tessera %-12s %s\n", cli_verbs[i]->name, cli_verbs[i]->what);
    cli_print(to, "\ntessera help VERB, or tessera VERB --help, lists its options, with an example.\n");
    cli_print(to, "tessera --version prints the version.\n");
    cli_print(to, "Exit status: %s\n", cli_exit_status);
}
