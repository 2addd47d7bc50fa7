/* pipeline_settings.c: the settings of one node, from JSON and to it, by the table of kinds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/spelling.h"
#include "model/spectral/pipeline.h"

static tess_status refuse(const tess_node *node, const tess_setting *setting, const char *expected,
                          const tess_json *value, tess_error *error)
{
    char *text = tess_json_dump(value, false);
    tess_status status = tess_fail(error, TESS_BAD_INPUT, "node '%s': %s: expected %s, got %.60s", node->name,
                                   setting->name, expected, text ? text : "something else");
    tess_small_free(text);
    return status;
}

static tess_status read_word(const tess_node *node, const tess_setting *setting, const tess_json *value,
                             double *out, tess_error *error)
{
    const char *text = tess_json_as_string(value, NULL);
    char list[128] = "";
    size_t used = 0;
    for (const tess_setting_word *word = setting->words; word->word; word++) {
        if (text && strcmp(text, word->word) == 0) {
            *out = word->value;
            return TESS_OK;
        }
        const char *before = word == setting->words ? "" : word[1].word ? ", " : " or ";
        used += (size_t)snprintf(list + used, sizeof list - used, "%s\"%s\"", before, word->word);
    }
    return refuse(node, setting, list, value, error);
}

static tess_status read_setting(const tess_node *node, const tess_setting *setting, const tess_json *value,
                                double *out, tess_error *error)
{
    switch (setting->type) {
    case TESS_SETTING_WORD:
        return read_word(node, setting, value, out, error);
    case TESS_SETTING_BOOL:
        if (!tess_json_is_bool(value))
            return refuse(node, setting, setting->expected, value, error);
        *out = tess_json_as_bool(value, false);
        return TESS_OK;
    case TESS_SETTING_INTEGER:
    case TESS_SETTING_NUMBER:
        break;
    }
    const double number = tess_json_as_double(value, NAN);
    const bool whole = setting->type != TESS_SETTING_INTEGER || number == floor(number);
    if (!(number >= setting->low && number <= setting->high) || !whole)
        return refuse(node, setting, setting->expected, value, error);
    *out = number;
    return TESS_OK;
}

static tess_status unknown_setting(const tess_node *node, const char *key, tess_error *error)
{
    const tess_kind_row *row = &tess_node_kinds[node->kind];
    const char *nearest = NULL;
    char known[256] = "";
    size_t used = 0;
    int least = tess_spelling_limit(key);
    for (const tess_setting *s = row->settings; s->name; s++) {
        const int far = tess_spelling_distance(key, s->name);
        if (far < least)
            nearest = s->name, least = far;
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", s->name);
    }
    if (nearest)
        return tess_fail(error, TESS_BAD_INPUT, "node '%s': %s: is no setting of %s; did you mean %s?",
                         node->name, key, row->name, nearest);
    if (!used)
        return tess_fail(error, TESS_BAD_INPUT, "node '%s': %s: is no setting; %s has none", node->name, key,
                         row->name);
    return tess_fail(error, TESS_BAD_INPUT, "node '%s': %s: is no setting of %s, which has %s", node->name,
                     key, row->name, known);
}

/* What involves several settings, and standard values that depend on others. */
static tess_status complete(tess_node *node, tess_error *error)
{
    double *v = node->values;
    if (node->kind == TESS_NODE_ZSCORE && v[TESS_ZSCORE_EPS] < 0)
        v[TESS_ZSCORE_EPS] = v[TESS_ZSCORE_OVER] == TESS_SCOPE_SET ? 1e-8 : 1e-6;
    if (node->kind == TESS_NODE_SAVITZKY_GOLAY) {
        if (fmod(v[TESS_SAVGOL_WINDOW], 2) != 1)
            return tess_fail(error, TESS_BAD_INPUT, "node '%s': window: expected an odd number, got %g",
                             node->name, v[TESS_SAVGOL_WINDOW]);
        if (v[TESS_SAVGOL_ORDER] >= v[TESS_SAVGOL_WINDOW] || v[TESS_SAVGOL_DERIVATIVE] > v[TESS_SAVGOL_ORDER])
            return tess_fail(
                error, TESS_BAD_INPUT,
                "node '%s': the order (%g) must be below the window (%g), and the derivative (%g) at "
                "most the order",
                node->name, v[TESS_SAVGOL_ORDER], v[TESS_SAVGOL_WINDOW], v[TESS_SAVGOL_DERIVATIVE]);
    }
    if (node->kind == TESS_NODE_BANDPASS && v[TESS_BANDPASS_FROM] > v[TESS_BANDPASS_TO])
        return tess_fail(error, TESS_BAD_INPUT, "node '%s': from (%g nm) is above to (%g nm)", node->name,
                         v[TESS_BANDPASS_FROM], v[TESS_BANDPASS_TO]);
    if (tess_node_trainable(node) && (node->kind == TESS_NODE_RX || node->kind == TESS_NODE_ZSCORE) &&
        tess_node_scope_of(node) != TESS_SCOPE_SET)
        return tess_fail(error, TESS_BAD_INPUT,
                         "node '%s': trainable: only a node over the set can be trained", node->name);
    if (node->kind == TESS_NODE_RX && v[TESS_RX_OVER] == TESS_SCOPE_LOCAL &&
        (fmod(v[TESS_RX_INNER], 2) != 1 || fmod(v[TESS_RX_OUTER], 2) != 1 ||
         v[TESS_RX_INNER] >= v[TESS_RX_OUTER]))
        return tess_fail(error, TESS_BAD_INPUT,
                         "node '%s': inner (%g) and outer (%g) must be odd numbers, inner the smaller one",
                         node->name, v[TESS_RX_INNER], v[TESS_RX_OUTER]);
    if (node->kind == TESS_NODE_RX && v[TESS_RX_TRIM] > 0 &&
        (v[TESS_RX_TRIM] <= 1 || v[TESS_RX_OVER] != TESS_SCOPE_SET))
        return tess_fail(error, TESS_BAD_INPUT,
                         "node '%s': trim (%g) must be above 1, the mean score, or 0 for none, and is for "
                         "\"over\": \"set\"",
                         node->name, v[TESS_RX_TRIM]);
    return TESS_OK;
}

tess_status tess_node_read(const tess_json *json, tess_node *node, tess_error *error)
{
    const tess_setting *settings = tess_node_kinds[node->kind].settings;
    for (int i = 0; settings[i].name; i++)
        node->values[i] = settings[i].standard;
    for (const char *key = NULL; (key = tess_json_next_key(json, key));) {
        if (strcmp(key, "kind") == 0 || strcmp(key, "name") == 0 ||
            (strcmp(key, "target") == 0 && tess_node_kinds[node->kind].target))
            continue;
        int found = 0;
        while (settings[found].name && strcmp(settings[found].name, key) != 0)
            found++;
        if (!settings[found].name)
            return unknown_setting(node, key, error);
        TESS_TRY(read_setting(node, &settings[found], tess_json_get(json, key), &node->values[found], error));
    }
    return complete(node, error);
}

void tess_node_write(const tess_node *node, tess_json **object)
{
    const tess_setting *settings = tess_node_kinds[node->kind].settings;
    for (int i = 0; settings[i].name; i++) {
        const double value = node->values[i];
        const tess_setting_word *word = settings[i].words;
        switch (settings[i].type) {
        case TESS_SETTING_NUMBER:
            tess_json_set_double(object, settings[i].name, value);
            break;
        case TESS_SETTING_INTEGER:
            tess_json_set_int(object, settings[i].name, (int64_t)value);
            break;
        case TESS_SETTING_BOOL:
            tess_json_set_bool(object, settings[i].name, value != 0);
            break;
        case TESS_SETTING_WORD:
            while (word->word && word->value != (int)value)
                word++;
            tess_json_set_string(object, settings[i].name, word->word);
            break;
        }
    }
}
