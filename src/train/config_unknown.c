/* config_unknown.c: the message about a key that does not exist, with the key that was probably meant: one of the same
 * section that is spelt almost the same, or one of that name in another section. */
#include <stdio.h>
#include <string.h>

#include "base/spelling.h"
#include "train/config_impl.h"

typedef struct guess {
    int least;
    char text[TESS_CONFIG_PATH];
} guess;

static void consider(guess *g, const char *key, const char *section, const char *name, int handicap)
{
    const int far = tess_spelling_distance(key, name) + handicap;
    if (far >= g->least)
        return;
    g->least = far;
    snprintf(g->text, sizeof g->text, "%s%s%s", section, *section ? "." : "", name);
}

tess_status tess_config_unknown(tess_config_reader *reader, const char *section, const char *key)
{
    guess g = {.least = tess_spelling_limit(key)};
    for (int i = 0; i < tess_config_field_count; i++)
        consider(&g, key, tess_config_fields[i].section, tess_config_fields[i].key,
                 strcmp(tess_config_fields[i].section, section) != 0);
    for (int i = 1; !*section && tess_config_sections[i]; i++)
        consider(&g, key, "", tess_config_sections[i], 0);
    tess_config_enter(reader, section, key);
    if (*g.text)
        return tess_fail(reader->error, TESS_BAD_INPUT, "%s: is no key; did you mean %s?", reader->path,
                         g.text);
    char known[512];
    int used = 0;
    for (int i = 0; i < tess_config_field_count; i++)
        if (strcmp(tess_config_fields[i].section, section) == 0)
            used += snprintf(known + used, sizeof known - (size_t)used, "%s%s", used ? ", " : "",
                             tess_config_fields[i].key);
    for (int i = 1; !*section && tess_config_sections[i]; i++)
        used += snprintf(known + used, sizeof known - (size_t)used, ", %s", tess_config_sections[i]);
    return tess_fail(reader->error, TESS_BAD_INPUT, "%s: is no key; the keys here are %s", reader->path,
                     known);
}
