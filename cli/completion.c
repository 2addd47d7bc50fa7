/* Completion for bash and zsh. Both scripts need two answers from the tables: which options a verb has, and which
 * words an option takes. /files and /models stand for file names and bundled models. */
#include <string.h>

#include "cli.h"

/* The words of a table, with verbs filled in. */
static void print_words(const char *words)
{
    const bool plans = words && strcmp(words, CLI_PLANS) == 0;
    if (!plans && (!words || strcmp(words, CLI_VERBS) != 0)) {
        cli_print(stdout, "%s", words ? words : "");
        return;
    }
    const char *before = "";
    for (int i = 0; cli_verbs[i]; i++)
        if (!plans || cli_verbs[i]->plans) {
            cli_print(stdout, "%s%s", before, cli_verbs[i]->name);
            before = " ";
        }
}

static void print_bash_tables(void)
{
    const cli_option *option;
    bool shared;
    cli_print(stdout, "_tessera_options() # VERB\n{\n    case $1 in\n");
    for (int v = 0; cli_verbs[v]; v++) {
        cli_print(stdout, "        %s) echo '", cli_verbs[v]->name);
        for (int i = 0; (option = cli_option_at(cli_verbs[v], i, &shared)); i++)
            cli_print(stdout, "%s%s", i ? " " : "", option->name);
        cli_print(stdout, "' ;;\n");
    }
    cli_print(
        stdout,
        "    esac\n}\n\n# VERB OPTION: what may follow; without an option, what words VERB takes. Fails "
        "for a flag.\n_tessera_values()\n{\n    case \"$1 $2\" in\n");
    for (int v = 0; cli_verbs[v]; v++) {
        cli_print(stdout, "        '%s ') echo '", cli_verbs[v]->name);
        print_words(cli_verbs[v]->choices);
        cli_print(stdout, "' ;;\n");
        for (int i = 0; (option = cli_option_at(cli_verbs[v], i, &shared)); i++)
            if (option->value) {
                cli_print(stdout, "        '%s %s') echo '", cli_verbs[v]->name, option->name);
                print_words(option->words);
                cli_print(stdout, "' ;;\n");
            }
    }
    cli_print(stdout, "        *) return 1 ;;\n    esac\n}\n\n");
}

static const char bash_function[] =
    "_tessera()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]}\n"
    "    local takes word models IFS=$' \\t\\n'\n"
    "    COMPREPLY=()\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        COMPREPLY=($(compgen -W \"$(_tessera_values help '') --help --version\" -- \"$cur\"))\n"
    "        return\n"
    "    fi\n"
    "    if [[ $verb == plan ]] && ((COMP_CWORD > 2)); then verb=${COMP_WORDS[2]}; fi\n"
    "    # bash makes three words of --option=value\n"
    "    if [[ $cur == = ]]; then cur=''\n"
    "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
    "    if [[ $prev != -* ]] || ! takes=$(_tessera_values \"$verb\" \"$prev\"); then\n"
    "        if [[ $cur == -* ]]; then\n"
    "            COMPREPLY=($(compgen -W \"$(_tessera_options \"$verb\")\" -- \"$cur\"))\n"
    "            return\n"
    "        fi\n"
    "        takes=$(_tessera_values \"$verb\" '')\n"
    "    fi\n"
    "    for word in $takes; do\n"
    "        case $word in\n"
    "            /files)\n"
    "                compopt -o filenames 2>/dev/null\n"
    "                IFS=$'\\n' COMPREPLY+=($(IFS=$'\\n'; compgen -f -- \"$cur\")) ;;\n"
    "            /models)\n"
    "                models=$(\"${COMP_WORDS[0]}\" info --device cpu 2>/dev/null | sed -n 's/^model "
    "*\\([^:]*\\):.*/\\1/p')\n"
    "                COMPREPLY+=($(compgen -W \"$models\" -- \"$cur\")) ;;\n"
    "            *) COMPREPLY+=($(compgen -W \"$word\" -- \"$cur\")) ;;\n"
    "        esac\n"
    "    done\n"
    "}\n\n"
    "complete -F _tessera tessera\n";

/* Prints the beginning of a help text, quoted for single quotes of the shell and brackets of _arguments. */
static void print_zsh_text(const char *text)
{
    for (; *text && *text != '\n' && *text != ';' && strncmp(text, " (", 2) != 0; text++) {
        if (*text == '\'')
            cli_print(stdout, "'\\''");
        else
            cli_print(stdout, strchr("[]:\\", *text) ? "\\%c" : "%c", *text);
    }
}

static void print_zsh_verb(const cli_verb *verb)
{
    const cli_option *option;
    bool shared;
    cli_print(stdout, "        %s)\n            _arguments", verb->name);
    for (int i = 0; (option = cli_option_at(verb, i, &shared)); i++) {
        cli_print(stdout, " \\\n                '%s%s[", option->name, option->value ? "=" : "");
        print_zsh_text(option->help);
        cli_print(stdout, "]");
        if (option->value) {
            cli_print(stdout, ":");
            print_zsh_text(option->value);
            cli_print(stdout, ": _tessera_take ");
            print_words(option->words);
        }
        cli_print(stdout, "'");
    }
    cli_print(stdout, " \\\n                '*:word: _tessera_take ");
    print_words(verb->choices);
    cli_print(stdout, "' ;;\n");
}

static const char zsh_head[] = "#compdef tessera\n"
                               "# Made by: tessera help --completion zsh\n\n"
                               "_tessera_take()\n"
                               "{\n"
                               "    local word\n"
                               "    for word in \"$@\"; do\n"
                               "        case $word in\n"
                               "            /files) _files ;;\n"
                               "            /models) compadd -- ${(f)\"$($program info --device cpu "
                               "2>/dev/null | sed -n 's/^model *\\([^:]*\\):.*/\\1/p')\"} ;;\n"
                               "            *) compadd -- $word ;;\n"
                               "        esac\n"
                               "    done\n"
                               "}\n\n"
                               "_tessera()\n"
                               "{\n"
                               "    local program=$words[1]\n"
                               "    if (( CURRENT == 2 )); then\n"
                               "        local -a verbs=(\n";

static const char zsh_dispatch[] = "        )\n"
                                   "        _describe -t verbs verb verbs\n"
                                   "        return\n"
                                   "    fi\n"
                                   "    shift words\n"
                                   "    (( CURRENT-- ))\n"
                                   "    if [[ $words[1] == plan ]] && (( CURRENT > 2 )); then\n"
                                   "        shift words\n"
                                   "        (( CURRENT-- ))\n"
                                   "    fi\n"
                                   "    case $words[1] in\n";

void cli_print_completion(bool zsh)
{
    if (!zsh) {
        cli_print(stdout, "# Made by: tessera help --completion bash\n\n");
        print_bash_tables();
        cli_print(stdout, "%s", bash_function);
        return;
    }
    cli_print(stdout, "%s", zsh_head);
    for (int i = 0; cli_verbs[i]; i++) {
        cli_print(stdout, "            '%s:", cli_verbs[i]->name);
        print_zsh_text(cli_verbs[i]->what);
        cli_print(stdout, "'\n");
    }
    cli_print(stdout, "%s", zsh_dispatch);
    for (int i = 0; cli_verbs[i]; i++)
        print_zsh_verb(cli_verbs[i]);
    cli_print(stdout, "    esac\n}\n\n_tessera \"$@\"\n");
}
