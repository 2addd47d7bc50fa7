/* yaml.c: libyaml's events to JSON values; the only file that sees yaml.h. Its loader of whole documents is not used: it
 * recurses, and keeps tags. Containers that are not complete are on a stack of fixed depth, so nothing here recurses
 * deeper than that. */
#include "base/yaml.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/mem.h"

typedef struct anchor {
    char name[64];
    const tess_json *value; /* in the tree; NULL: not complete yet */
    int64_t values;         /* of the tree below it */
} anchor;

typedef struct level {
    tess_json *value;
    bool object;
    char *key;       /* of the value that comes next; owned */
    int anchor;      /* of this container; -1: none */
    int64_t started; /* count of values before it */
} level;

typedef struct reader {
    yaml_parser_t parser;
    int depth, anchors;
    int64_t values;
    size_t line;
    tess_json *root;
    level stack[TESS_YAML_DEPTH];
    anchor anchor[TESS_YAML_ANCHORS];
    tess_error *error;
} reader;

static tess_status refuse(reader *r, const char *what)
{
    return tess_fail(r->error, TESS_BAD_INPUT, "line %zu: %s", r->line, what);
}

static tess_status no_memory(reader *r)
{
    return tess_fail(r->error, TESS_NO_MEMORY, "no memory for the values");
}

static tess_json *copy_of(const tess_json *value)
{
    if (tess_json_is_object(value)) {
        tess_json *object = tess_json_object();
        for (const char *key = NULL; (key = tess_json_next_key(value, key));)
            tess_json_set(&object, key, copy_of(tess_json_get(value, key)));
        return object;
    }
    if (tess_json_is_array(value)) {
        tess_json *array = tess_json_array();
        for (int64_t i = 0; i < tess_json_length(value); i++)
            tess_json_append(&array, copy_of(tess_json_at(value, i)));
        return array;
    }
    return tess_json_is_string(value)   ? tess_json_string(tess_json_as_string(value, ""))
           : tess_json_is_bool(value)   ? tess_json_bool(tess_json_as_bool(value, false))
           : tess_json_is_int(value)    ? tess_json_int(tess_json_as_int(value, 0))
           : tess_json_is_number(value) ? tess_json_double(tess_json_as_double(value, 0))
                                        : tess_json_null();
}

static tess_status count(reader *r, int64_t values)
{
    r->values += values;
    if (r->values > TESS_YAML_VALUES)
        return refuse(r, "has more values, copies of anchors included, than any pipeline");
    return TESS_OK;
}

/* Adds a complete value to the container that is open; takes ownership. */
static tess_status add(reader *r, tess_json *value)
{
    if (!value)
        return no_memory(r);
    if (r->depth == 0) {
        r->root = value;
        return TESS_OK;
    }
    level *top = &r->stack[r->depth - 1];
    if (!top->object) {
        tess_json_append(&top->value, value);
        return top->value ? TESS_OK : no_memory(r);
    }
    if (top->key) {
        tess_json_set(&top->value, top->key, value);
        tess_small_free(top->key);
        top->key = NULL;
        return top->value ? TESS_OK : no_memory(r);
    }
    tess_json_free(value);
    return refuse(r, "a key is a list or a mapping; expected a word");
}

static bool wants_key(const reader *r)
{
    return r->depth > 0 && r->stack[r->depth - 1].object && !r->stack[r->depth - 1].key;
}

static tess_status take_key(reader *r, const char *word)
{
    level *top = &r->stack[r->depth - 1];
    if (strcmp(word, "<<") == 0)
        return refuse(r, "merges mappings with '<<'; write the keys out");
    if (tess_json_get(top->value, word))
        return tess_fail(r->error, TESS_BAD_INPUT, "line %zu: key '%.60s' comes twice", r->line, word);
    top->key = tess_small_strdup(word);
    return top->key ? TESS_OK : no_memory(r);
}

/* Remembers an anchor that begins here. */
static tess_status name_anchor(reader *r, const yaml_char_t *name, int *out)
{
    *out = -1;
    if (!name)
        return TESS_OK;
    if (r->anchors == TESS_YAML_ANCHORS || strlen((const char *)name) >= sizeof r->anchor[0].name)
        return refuse(r, "has too many anchors, or one with a very long name");
    *out = r->anchors++;
    r->anchor[*out] = (anchor){.value = NULL};
    strcpy(r->anchor[*out].name, (const char *)name);
    return TESS_OK;
}

/* YAML's own types may be spelled out, since they say what is there anyway; every other tag names a type of some program. */
static tess_status check_tag(reader *r, const yaml_char_t *tag, const char *const *allowed)
{
    if (!tag)
        return TESS_OK;
    for (; *allowed; allowed++)
        if (strcmp((const char *)tag, *allowed) == 0)
            return TESS_OK;
    return tess_fail(r->error, TESS_BAD_INPUT,
                     "line %zu: has the tag '%.80s'; tags are not followed, since a file must not name code",
                     r->line, (const char *)tag);
}

static tess_status on_scalar(reader *r, const yaml_event_t *event)
{
    static const char *const text[] = {YAML_STR_TAG, "!", NULL}, *const none[] = {NULL};
    const char *word = (const char *)event->data.scalar.value;
    const bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !event->data.scalar.tag;
    int named;
    TESS_TRY(check_tag(r, event->data.scalar.tag, event->data.scalar.tag ? text : none));
    if (strlen(word) != event->data.scalar.length)
        return refuse(r, "a text contains a zero byte");
    const int64_t size = 1 + (int64_t)event->data.scalar.length / TESS_YAML_TEXT;
    TESS_TRY(count(r, size));
    TESS_TRY(name_anchor(r, event->data.scalar.anchor, &named));
    if (wants_key(r))
        return named >= 0 ? refuse(r, "a key has an anchor; write it out") : take_key(r, word);
    tess_json *value = plain ? tess_yaml_plain(word) : tess_json_string(word);
    TESS_TRY(add(r, value));
    if (named >= 0) {
        r->anchor[named].value = value;
        r->anchor[named].values = size;
    }
    return TESS_OK;
}

static tess_status on_start(reader *r, bool object, const yaml_char_t *tag, const yaml_char_t *anchor_name)
{
    static const char *const map[] = {YAML_MAP_TAG, NULL}, *const list[] = {YAML_SEQ_TAG, NULL};
    TESS_TRY(check_tag(r, tag, object ? map : list));
    if (wants_key(r))
        return refuse(r, "a key is a list or a mapping; expected a word");
    if (r->depth == TESS_YAML_DEPTH)
        return refuse(r, "lists and mappings are nested deeper than in any pipeline");
    level next = {.object = object, .started = r->values};
    TESS_TRY(count(r, 1));
    TESS_TRY(name_anchor(r, anchor_name, &next.anchor));
    next.value = object ? tess_json_object() : tess_json_array();
    if (!next.value)
        return no_memory(r);
    r->stack[r->depth++] = next;
    return TESS_OK;
}

static tess_status on_end(reader *r)
{
    level *top = &r->stack[--r->depth];
    tess_json *value = top->value;
    top->value = NULL;
    TESS_TRY(add(r, value));
    if (top->anchor >= 0) {
        r->anchor[top->anchor].value = value;
        r->anchor[top->anchor].values = r->values - top->started;
    }
    return TESS_OK;
}

static tess_status on_alias(reader *r, const char *name)
{
    int found = r->anchors - 1; /* the last one of that name */
    while (found >= 0 && strcmp(r->anchor[found].name, name) != 0)
        found--;
    if (found < 0 || !r->anchor[found].value)
        return refuse(r,
                      found < 0 ? "uses an anchor that is not there" : "contains itself through an anchor");
    if (wants_key(r))
        return refuse(r, "a key is an anchor; write it out");
    TESS_TRY(count(r, r->anchor[found].values));
    return add(r, copy_of(r->anchor[found].value));
}

static tess_status on_event(reader *r, const yaml_event_t *event, int *documents, bool *end)
{
    r->line = event->start_mark.line + 1;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return (*documents)++ ? refuse(r, "a second document begins; a pipeline is one") : TESS_OK;
    case YAML_SCALAR_EVENT:
        return on_scalar(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_start(r, false, event->data.sequence_start.tag, event->data.sequence_start.anchor);
    case YAML_MAPPING_START_EVENT:
        return on_start(r, true, event->data.mapping_start.tag, event->data.mapping_start.anchor);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_end(r);
    case YAML_ALIAS_EVENT:
        return on_alias(r, (const char *)event->data.alias.anchor);
    case YAML_STREAM_END_EVENT:
        *end = true;
        return TESS_OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return TESS_OK;
}

static tess_status run(reader *r)
{
    int documents = 0;
    for (bool end = false; !end;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r->parser, &event)) {
            if (r->parser.error == YAML_MEMORY_ERROR)
                return no_memory(r);
            r->line = r->parser.problem_mark.line + 1;
            return refuse(r, r->parser.problem ? r->parser.problem : "is no YAML");
        }
        const tess_status status = on_event(r, &event, &documents, &end);
        yaml_event_delete(&event);
        TESS_TRY(status);
    }
    return r->root ? TESS_OK : tess_fail(r->error, TESS_BAD_INPUT, "is empty");
}

tess_status tess_yaml_parse(const char *text, size_t length, tess_json **out, tess_error *error)
{
    *out = NULL;
    if (length > TESS_YAML_BYTES)
        return tess_fail(error, TESS_BAD_INPUT, "has more than %d bytes; no pipeline has", TESS_YAML_BYTES);
    reader *r = tess_small_alloc(1, sizeof *r);
    if (!r || !yaml_parser_initialize(&r->parser)) {
        tess_small_free(r);
        return tess_fail(error, TESS_NO_MEMORY, "no memory to read YAML");
    }
    r->error = error;
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, length);
    const tess_status status = run(r);
    yaml_parser_delete(&r->parser);
    for (int i = 0; i < r->depth; i++) {
        tess_json_free(r->stack[i].value);
        tess_small_free(r->stack[i].key);
    }
    if (status == TESS_OK)
        *out = r->root;
    else
        tess_json_free(r->root);
    tess_small_free(r);
    return status;
}
