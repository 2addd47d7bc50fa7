/* Manual pages in roff with the man macros, made from the tables. */
#include <ctype.h>
#include <string.h>

#include "cli.h"

static void print_upper(const char *text)
{
    for (; *text; text++)
        cli_print(stdout, "%c", toupper((unsigned char)*text));
}

/* Prints text with roff's special characters escaped: backslashes, hyphens that are minus signs, and a dot or quote
 * at the start of a line. */
static void print_plain(const char *text, size_t length, bool begins)
{
    if (begins && length > 0 && (*text == '.' || *text == '\''))
        cli_print(stdout, "\\&");
    for (size_t i = 0; i < length; i++) {
        const bool special = strchr("\\-'`~^", text[i]) != NULL;
        cli_print(stdout,
                  !special          ? "%c"
                  : text[i] == '\\' ? "\\e"
                  : text[i] == '-'  ? "\\-"
                  : text[i] == '\'' ? "\\(aq"
                  : text[i] == '`'  ? "\\(ga"
                  : text[i] == '~'  ? "\\(ti"
                                    : "\\(ha",
                  text[i]);
    }
}

/* Keeps newlines; lines that begin with a space are preformatted. */
static void print_text(const char *text)
{
    bool laid_out = false;
    for (bool first = true; *text; first = false) {
        const size_t length = strcspn(text, "\n");
        const bool now = *text == ' ';
        if (now != laid_out)
            cli_print(stdout, now ? ".nf\n" : ".fi\n");
        else if (!first && !now)
            cli_print(stdout, ".br\n");
        laid_out = now;
        print_plain(text, length, true);
        cli_print(stdout, "\n");
        text += length;
        text += *text == '\n';
    }
    if (laid_out)
        cli_print(stdout, ".fi\n");
}

static void print_head(const cli_verb *verb, const char *what)
{
    cli_print(stdout, ".TH \"TESSERA");
    if (verb) {
        cli_print(stdout, "\\-");
        print_upper(verb->name);
    }
    cli_print(stdout, "\" 1 \"\" \"tessera %s\" \"Tessera manual\"\n.SH NAME\ntessera%s%s \\- ",
              TESSERA_VERSION, verb ? "\\-" : "", verb ? verb->name : "");
    print_text(what);
}

static void print_option(const cli_option *option)
{
    cli_print(stdout, ".TP\n.B ");
    print_plain(option->name, strlen(option->name), false);
    if (option->value) {
        cli_print(stdout, " \\fI");
        print_plain(option->value, strlen(option->value), false);
        cli_print(stdout, "\\fR");
    }
    cli_print(stdout, "\n");
    print_text(option->help);
}

static void print_end(const cli_verb *verb)
{
    const char *before = "";
    cli_print(stdout, ".SH EXIT STATUS\n");
    print_text(cli_exit_status);
    cli_print(stdout, ".SH SEE ALSO\n");
    if (verb) {
        cli_print(stdout, ".BR tessera (1)");
        before = ",\n";
    }
    for (int i = 0; cli_verbs[i]; i++)
        if (cli_verbs[i] != verb) {
            cli_print(stdout, "%s.BR tessera\\-%s (1)", before, cli_verbs[i]->name);
            before = ",\n";
        }
    cli_print(stdout, "\n");
}

static void print_program(void)
{
    print_head(NULL, "restores images that are too large for one pass on one device");
    cli_print(stdout, ".SH SYNOPSIS\n.B tessera\n.I verb\n[words and options]\n.br\n.B tessera \\-\\-help\n"
                      ".br\n.B tessera \\-\\-version\n.SH VERBS\n");
    for (int i = 0; cli_verbs[i]; i++) {
        cli_print(stdout, ".TP\n.BR tessera\\-%s (1)\n", cli_verbs[i]->name);
        print_text(cli_verbs[i]->what);
    }
    cli_print(
        stdout,
        ".SH ENVIRONMENT\n.TP\n.B TESSERA_CACHE\n"
        "folder of the measured rates (default: tessera in $XDG_CACHE_HOME, else in \\(ti/.cache)\n"
        ".TP\n.B TESSERA_MODELS\nfolder of models to look in first\n"
        ".TP\n.B TESSERA_RANKS\noff: a process that mpirun or srun has started is a job of its own\n"
        ".TP\n.B TESSERA_RANK_SECONDS\nsilence after which a rank is taken for lost (default 15)\n"
        ".TP\n.B TESSERA_GRID\nrows and columns of ranks that share one image, as 2x3, in place of the "
        "plan's choice\n"
        ".TP\n.B TESSERA_SPEEDS\nspeeds of the ranks by which they divide the rows of one image, as 1,1,2; "
        "measure: also in short jobs; equal: never\n"
        ".TP\n.B TESSERA_MPI\nthe MPI module to use, a file\n"
        ".TP\n.B TESSERA_NCCL\n0: ranks on cards exchange rows through pinned memory; 1: by NCCL, or the "
        "job ends; a file: the NCCL library to use\n");
}

void cli_print_manual(const cli_verb *verb)
{
    if (!verb) {
        print_program();
        print_end(NULL);
        return;
    }
    char usage[256];
    const cli_option *option;
    bool shared;
    int heading = -1;
    cli_usage_line(verb, usage, sizeof usage);
    print_head(verb, verb->what);
    cli_print(stdout, ".SH SYNOPSIS\n");
    print_text(usage);
    cli_print(stdout, ".SH DESCRIPTION\n");
    print_text(verb->text);
    for (int i = 0; (option = cli_option_at(verb, i, &shared)); i++) {
        const int of_every_verb = shared && !verb->alone && !cli_option_watches(option);
        if (heading != of_every_verb)
            cli_print(stdout, ".SH OPTIONS%s\n", of_every_verb ? " OF EVERY VERB" : "");
        heading = of_every_verb;
        print_option(option);
    }
    if (verb->more) {
        cli_print(stdout, ".SH NOTES\n");
        print_text(verb->more);
    }
    cli_print(stdout, ".SH EXAMPLE\n");
    print_text(verb->example);
    print_end(verb);
}
