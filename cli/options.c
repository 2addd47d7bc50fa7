#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

const char cli_shared_help[] = "\nEvery verb also takes:\n"
                               "  --json FILE         one machine-readable record; - is standard output\n"
                               "  --quiet             no progress, no summary\n"
                               "  --device D          auto, cpu, cuda or cuda:K (auto: the GPU when there "
                               "is one)\n"
                               "  --threads N         CPU threads (default: all)\n"
                               "  --precision P       auto, fp32, tf32, fp16 or bf16 (auto: fp16 on a "
                               "GPU, else fp32)\n"
                               "  --memory SIZE       limit on the computing device, e.g. 300M or 2G\n"
                               "  --seed N            of random numbers\n";

int cli_complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("tessera: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return CLI_USAGE;
}

bool cli_number(const char *name, const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end != text && *end == '/') {
        const char *below = end + 1;
        double divisor = strtod(below, &end);
        if (end == below || divisor == 0)
            end = (char *)text;
        *value /= divisor;
    }
    if (end == text || *end != '\0' || !isfinite(*value)) {
        cli_complain("%s %s: expected a number such as 0.098 or 25/255", name, text);
        return false;
    }
    return true;
}

bool cli_integer(const char *name, const char *text, int64_t least, int64_t most, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (end == text || *end || errno || *value < least || *value > most) {
        cli_complain("%s %s: expected a whole number from %lld to %lld", name, text, (long long)least,
                     (long long)most);
        return false;
    }
    return true;
}

bool cli_halo(const char *name, const char *text, int64_t *halo)
{
    if (strcmp(text, "auto") == 0)
        *halo = TESS_HALO_AUTO;
    else if (strcmp(text, "exact") == 0)
        *halo = TESS_HALO_EXACT;
    else
        return cli_integer(name, text, 0, 1 << 20, halo);
    return true;
}

bool cli_tile(const char *name, const char *text, int64_t *height, int64_t *width)
{
    long long h = 0, w = 0;
    char end = 0;
    if (strcmp(text, "auto") == 0)
        *height = *width = 0;
    else if (strcmp(text, "whole") == 0)
        *height = *width = TESS_TILE_WHOLE;
    else {
        int got = sscanf(text, "%lldx%lld%c", &h, &w, &end);
        if (got == 1 && sscanf(text, "%lld%c", &h, &end) == 1)
            w = h;
        else if (got != 2)
            h = 0;
        if (h < 1 || w < 1 || h > 1 << 24 || w > 1 << 24) {
            cli_complain("%s %s: use auto, whole, N or HxW", name, text);
            return false;
        }
        *height = h;
        *width = w;
    }
    return true;
}

bool cli_tile_3d(const char *name, const char *text, int64_t *depth, int64_t *height, int64_t *width)
{
    long long d = 0, h = 0, w = 0;
    char end = 0;
    if (sscanf(text, "%lldx%lldx%lld%c", &d, &h, &w, &end) == 3) {
        if (d < 1 || h < 1 || w < 1 || d > 1 << 24 || h > 1 << 24 || w > 1 << 24) {
            cli_complain("%s %s: use auto, whole, N, HxW or DxHxW", name, text);
            return false;
        }
        *depth = d;
        *height = h;
        *width = w;
        return true;
    }
    *depth = 0;
    if (!cli_tile(name, text, height, width))
        return false;
    if (!strchr(text, 'x') && *height > 0)
        *depth = TESS_TILE_CUBE;
    return true;
}

bool cli_size(const char *name, const char *text, uint64_t *bytes)
{
    char *end;
    double value = strtod(text, &end);
    double unit = 1;
    if (*end == 'K' || *end == 'k')
        unit = 1024.0;
    else if (*end == 'M' || *end == 'm')
        unit = 1048576.0;
    else if (*end == 'G' || *end == 'g')
        unit = 1073741824.0;
    bool suffix_right = *end == '\0' || (unit > 1 && end[1] == '\0');
    if (end == text || !suffix_right || !(value * unit >= 1) || value * unit > 1e18) {
        cli_complain("%s %s: expected a size such as 300M or 2G", name, text);
        return false;
    }
    *bytes = (uint64_t)(value * unit);
    return true;
}

static bool shared_option(cli_shared *shared, const char *name, const char *value, bool *known)
{
    int64_t number = 0;
    *known = true;
    if (strcmp(name, "--json") == 0) {
        shared->json = value;
        shared->common->record_file = strcmp(value, "-") == 0 ? NULL : value;
    } else if (strcmp(name, "--device") == 0)
        shared->common->device = value;
    else if (strcmp(name, "--precision") == 0)
        shared->common->precision = value;
    else if (strcmp(name, "--memory") == 0)
        return cli_size(name, value, &shared->common->memory_limit);
    else if (strcmp(name, "--threads") == 0) {
        if (!cli_integer(name, value, 1, 1024, &number))
            return false;
        shared->common->threads = (int)number;
    } else if (strcmp(name, "--seed") == 0) {
        if (!cli_integer(name, value, 0, INT64_MAX, &number))
            return false;
        shared->common->seed = (uint64_t)number;
    } else
        *known = false;
    return true;
}

/* A whole word of `flags`. */
static bool is_flag(const char *flags, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = flags; at && (at = strstr(at, name)); at += length)
        if ((at == flags || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

int cli_parse(const cli_verb *verb, int argc, char **argv, cli_shared *shared, void *target,
              const char **words, int *word_count)
{
    *word_count = 0;
    bool options_end = false;
    for (int i = 0; i < argc; i++) {
        char name[64];
        const char *equals = strchr(argv[i], '='), *value = NULL;
        if (options_end || argv[i][0] != '-' || argv[i][1] == '\0') {
            if (*word_count == verb->positional_most)
                return cli_complain("%s: one argument too many: %s; see tessera %s --help", verb->name,
                                    argv[i], verb->name);
            words[(*word_count)++] = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--") == 0) {
            options_end = true;
            continue;
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            printf("%s%s", verb->help, cli_shared_help);
            return CLI_DONE;
        }
        if (argv[i][1] != '-')
            return cli_complain("%s: unknown option %s; see tessera %s --help", verb->name, argv[i],
                                verb->name);
        if (strcmp(argv[i], "--quiet") == 0) {
            shared->quiet = true;
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - argv[i] : (long)strlen(argv[i])),
                 argv[i]);
        bool known = false;
        if (is_flag(verb->flags, name)) {
            if (equals)
                return cli_complain("%s: option %s takes no value", verb->name, name);
            if (!verb->option(target, name, NULL, &known))
                return CLI_USAGE;
            continue;
        }
        value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (!value || !*value)
            return cli_complain("%s: option %s is unknown or lacks its value; see tessera %s --help",
                                verb->name, name, verb->name);
        if (!shared_option(shared, name, value, &known))
            return CLI_USAGE;
        if (!known && verb->option && !verb->option(target, name, value, &known))
            return CLI_USAGE;
        if (!known)
            return cli_complain("%s: unknown option %s; see tessera %s --help", verb->name, name, verb->name);
    }
    if (*word_count < verb->positional_least)
        return cli_complain("%s: an argument is missing; see tessera %s --help", verb->name, verb->name);
    return -1;
}
