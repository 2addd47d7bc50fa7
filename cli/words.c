/* The library names a setting as its header does, in backquotes: `memory_limit`. Who runs the program knows it as an
 * option. No option is longer than its setting in backquotes, so that texts are changed where they are. */
#include <string.h>

#include "cli.h"

typedef struct word {
    const char *setting, *option;
} word;

/* tools/check_rooms compares it with the options of the verbs and with what the library's messages name. */
static const word words[] = {
    /* all verbs */
    {"device", "--device"},
    {"memory_limit", "--memory"},
    {"precision", "--precision"},
    {"record_file", "--json"},
    {"threads", "--threads"},
    {"trace_file", "--trace"},
    /* several verbs */
    {"batch", "--batch"},
    {"halo", "--halo"},
    {"model", "--model"},
    {"sigma", "--sigma"},
    {"tile", "--tile"},
    /* denoise */
    {"add_noise", "--add-noise"},
    {"axes", "--axes"},
    {"overwrite", "--overwrite"},
    {"range", "--range"},
    {"recursive", "--recursive"},
    {"sigma_map", "--sigma"},
    {"resume", "--resume"},
    {"skip_existing", "--skip-existing"},
    {"strength", "--strength"},
    {"truth", "--truth"},
    {"zeros_are_data", "--zeros-are-data"},
    /* reconstruct */
    {"angles", "--angles"},
    {"image", "--image"},
    {"inflate", "--inflate"},
    {"init", "--init"},
    {"inner", "--inner"},
    {"iterations", "--iterations"},
    {"max_seconds", "--max-seconds"},
    {"noise", "--noise"},
    {"operators", "--operators"},
    {"preset", "--preset"},
    {"prior", "--prior"},
    {"problem", "--problem"},
    {"relax", "--relax"},
    {"save_measurement", "--save-measurement"},
    {"size", "--size"},
    {"step", "--step"},
    {"tolerance", "--tolerance"},
    /* fill */
    {"band", "--band"},
    {"creation", "--create"},
    {"deviation", "--deviation"},
    {"eta", "--eta"},
    {"format", "--format"},
    {"mask", "--mask"},
    {"most_distance", "--max-distance"},
    {"nodata", "--nodata"},
    {"overlap", "--overlap"},
    {"sampler", "--sampler"},
    {"samples", "--samples"},
    {"scaling", "--scaling"},
    {"schedule", "--schedule"},
    {"second", "--second"},
    {"steps", "--steps"},
    {"voids", "--voids"},
    {"world", "--world"},
    /* detect */
    {"detections", "--detections"},
    {"fit", "--fit"},
    {"mask_out", "--mask-out"},
    {"overlay", "--overlay"},
    {"pipeline", "--pipeline"},
    {"save", "--save"},
    /* convert */
    {"cube", "--cube"},
    {"weights", "--weights"},
    /* report */
    {"output", "--output"},
    /* bench */
    {"avoid", "--avoid"},
    {"copies", "--copies"},
    {"batches", "--batches"},
    {"height", "--height"},
    {"patches", "--patches"},
    {"only", "--only"},
    {"per_node", "--per-node"},
    {"phase", "--phase"},
    {"machine", "--machine"},
    {"machines", "--machine"},
    {"problems", "--problems"},
    {"ranks", "--ranks"},
    {"repeats", "--repeats"},
    {"samplers", "--samplers"},
    {"scheme", "--scheme"},
    {"simulate", "--simulate"},
    {"sizes", "--sizes"},
    {"seconds", "--seconds"},
    {"slurm", "--slurm"},
    {"widths", "--widths"},
};

/* The option for a setting that is written in the `length` bytes at `name`; NULL: it is none. */
static const char *option_for(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].setting) == length && memcmp(words[i].setting, name, length) == 0)
            return words[i].option;
    return NULL;
}

/* Changes the text up to `end`, puts it at `to`, which is not behind it, and returns the end of what is there now. */
static char *change(char *to, const char *from, const char *end)
{
    while (from < end) {
        const char *close = *from == '`' ? memchr(from + 1, '`', (size_t)(end - from - 1)) : NULL;
        const char *option = close ? option_for(from + 1, (size_t)(close - from - 1)) : NULL;
        if (option) {
            memcpy(to, option, strlen(option));
            to += strlen(option);
            from = close + 1;
        } else
            *to++ = *from++;
    }
    return to;
}

void cli_name_options(char *text)
{
    *change(text, text, text + strlen(text)) = '\0';
}

/* Behind the closing quote of the string that begins at `text`. */
static const char *string_end(const char *text)
{
    for (text++; *text && *text != '"'; text++)
        if (*text == '\\' && text[1])
            text++;
    return *text ? text + 1 : text;
}

static bool is_string(const char *text, const char *end, const char *wanted)
{
    const size_t length = strlen(wanted);
    return (size_t)(end - text) == length + 2 && memcmp(text + 1, wanted, length) == 0;
}

/* Only the two entries that hold messages: names of files stay what they are. */
void cli_name_options_in_record(char *record)
{
    char *to = record;
    bool message = false; /* the next string is one */
    for (const char *from = record, *end; *from; from = end) {
        const bool string = *from == '"';
        end = string ? string_end(from) : from + 1;
        if (string && message)
            to = change(to, from, end);
        else {
            memmove(to, from, (size_t)(end - from));
            to += end - from;
        }
        if (string)
            message = is_string(from, end, "reason") || is_string(from, end, "error");
    }
    *to = '\0';
}
