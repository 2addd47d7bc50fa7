#include "report/timeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { FIRST_LETTER = 33 }; /* of a kind, before a name; kinds are fewer than letters */

static tess_status no_memory(tess_error *error)
{
    return tess_fail(error, TESS_NO_MEMORY, "no memory for the spans of a trace");
}

/* Copies at most `most` bytes, and ends between two characters of UTF-8. */
static void shorten(const char *from, size_t most, char *to)
{
    size_t length = strlen(from);
    if (length > most) {
        length = most;
        while (length > 0 && ((unsigned char)from[length] & 0xc0) == 0x80)
            length--;
    }
    memcpy(to, from, length);
    strcpy(to + length, from[length] ? "\xe2\x80\xa6" : "");
}

/* A process or a thread is a number, or a text in traces of others. */
static void write_id(const tess_json *id, char to[64], double *order)
{
    char text[64];
    *order = tess_json_as_double(id, NAN);
    if (tess_json_is_string(id)) {
        shorten(tess_json_as_string(id, ""), 32, text);
        snprintf(to, 64, "%s", text);
    } else if (tess_json_is_int(id))
        snprintf(to, 64, "%lld", (long long)tess_json_as_int(id, 0));
    else
        snprintf(to, 64, "%.17g", isnan(*order) ? 0 : *order);
}

/* Makes room for a last element, the `count`-th: up to the next power of two. */
static tess_status make_room(void **list, int32_t count, size_t size, tess_error *error)
{
    if ((count & (count - 1)) != 0)
        return TESS_OK;
    void *grown = tess_small_realloc(*list, 2 * (size_t)count, size);
    if (!grown)
        return no_memory(error);
    *list = grown;
    return TESS_OK;
}

static tess_status find_process(tess_timeline *t, const tess_json *event, int32_t *process, char id[64],
                                double *order, tess_error *error)
{
    const int32_t before = t->processes.count;
    write_id(tess_json_get(event, "pid"), id, order);
    TESS_TRY(tess_names_number(&t->processes, id, TESS_TIMELINE_TRACKS, process, error));
    if (t->processes.count == before)
        return TESS_OK;
    const tess_status status =
        make_room((void **)&t->process_names, t->processes.count, sizeof *t->process_names, error);
    if (status == TESS_OK)
        t->process_names[*process] = NULL;
    else /* so that every process has a place for its name */
        tess_small_free(t->processes.list[--t->processes.count]);
    return status;
}

/* *track is -1 if there are too many. */
static tess_status find_track(tess_timeline *t, const tess_json *event, int32_t *track, tess_error *error)
{
    char id[128], thread[64];
    double order[2];
    int32_t process;
    TESS_TRY(find_process(t, event, &process, id, &order[0], error));
    write_id(tess_json_get(event, "tid"), thread, &order[1]);
    strcat(strcat(id, " "), thread);
    *track = -1;
    if (process < 0)
        return TESS_OK;
    const int32_t before = t->track_names.count;
    TESS_TRY(tess_names_number(&t->track_names, id, TESS_TIMELINE_TRACKS, track, error));
    if (t->track_names.count == before)
        return TESS_OK;
    const tess_status status = make_room((void **)&t->tracks, t->track_names.count, sizeof *t->tracks, error);
    if (status == TESS_OK)
        t->tracks[*track] = (tess_timeline_track){.process = process, .order = {order[0], order[1]}};
    else
        tess_small_free(t->track_names.list[--t->track_names.count]);
    return status;
}

static tess_status set_name(char **to, const tess_json *event, tess_error *error)
{
    char name[TESS_TIMELINE_NAME + 4];
    shorten(tess_json_get_string(tess_json_get(event, "args"), "name", ""), TESS_TIMELINE_NAME / 2, name);
    tess_small_free(*to);
    *to = tess_small_strdup(name);
    return *to ? TESS_OK : no_memory(error);
}

/* "M" events name processes and threads; other facts that they have are not needed. */
static tess_status take_name(tess_timeline *t, const tess_json *event, tess_error *error)
{
    const char *what = tess_json_get_string(event, "name", "");
    int32_t number;
    if (strcmp(what, "process_name") == 0) {
        char id[64];
        double order;
        TESS_TRY(find_process(t, event, &number, id, &order, error));
        return number < 0 ? TESS_OK : set_name(&t->process_names[number], event, error);
    }
    if (strcmp(what, "thread_name") != 0)
        return TESS_OK;
    TESS_TRY(find_track(t, event, &number, error));
    return number < 0 ? TESS_OK : set_name(&t->tracks[number].name, event, error);
}

static void count_in(tess_timeline_total *total, int64_t duration)
{
    total->count++;
    total->busy = tess_timeline_sum(total->busy, duration);
    total->longest = duration > total->longest ? duration : total->longest;
}

/* Kind 0 is that of spans without one and of those beyond the most. */
static tess_status find_kind(tess_timeline *t, const tess_json *event, int32_t *kind, tess_error *error)
{
    char text[32];
    if (t->kinds.count == 0)
        TESS_TRY(tess_names_number(&t->kinds, "other", TESS_TIMELINE_KINDS, kind, error));
    shorten(tess_json_get_string(event, "cat", "other"), 24, text);
    TESS_TRY(tess_names_number(&t->kinds, text, TESS_TIMELINE_KINDS, kind, error));
    *kind = *kind < 0 ? 0 : *kind;
    return TESS_OK;
}

static tess_status find_name(tess_timeline *t, const tess_json *event, int32_t kind, int32_t *number,
                             tess_error *error)
{
    char name[TESS_TIMELINE_NAME + 8];
    const int32_t before = t->names.count;
    name[0] = (char)(FIRST_LETTER + kind);
    shorten(tess_json_get_string(event, "name", ""), TESS_TIMELINE_NAME, name + 1);
    TESS_TRY(tess_names_number(&t->names, name, TESS_TIMELINE_NAMES, number, error));
    if (t->names.count == before)
        return TESS_OK;
    const tess_status status = make_room((void **)&t->totals, t->names.count, sizeof *t->totals, error);
    if (status == TESS_OK)
        t->totals[*number] = (tess_timeline_total){.kind = kind};
    else
        tess_small_free(t->names.list[--t->names.count]);
    return status;
}

static tess_status keep_span(tess_timeline *t, const tess_timeline_span *span, tess_error *error)
{
    if (t->count == TESS_TIMELINE_SPANS)
        tess_timeline_merge(t, TESS_TIMELINE_SPANS / 2);
    if (t->count == TESS_TIMELINE_SPANS) { /* more tracks, levels and kinds than anybody can look at */
        t->untracked++;
        return TESS_OK;
    }
    if (t->count == t->room) {
        const int64_t room = t->room ? 2 * t->room : 1024;
        tess_timeline_span *spans = tess_small_realloc(t->spans, (size_t)room, sizeof *spans);
        if (!spans)
            return no_memory(error);
        t->spans = spans;
        t->room = room;
    }
    t->spans[t->count++] = *span;
    return TESS_OK;
}

static tess_status take_span(tess_timeline *t, const tess_json *event, tess_error *error)
{
    enum { NS = 1000 };                                /* in a microsecond, the unit of the file */
    static const double latest = 2e15, longest = 1e13; /* so that differences of times fit in ns */
    const double start = tess_json_get_double(event, "ts", NAN),
                 length = tess_json_get_double(event, "dur", NAN);
    int32_t track, kind, name;
    if (!(fabs(start) < latest) || !(length >= 0 && length < longest)) {
        t->unreadable++;
        return TESS_OK;
    }
    TESS_TRY(find_track(t, event, &track, error));
    TESS_TRY(find_kind(t, event, &kind, error));
    TESS_TRY(find_name(t, event, kind, &name, error));
    const int64_t from = llround(start * NS), duration = llround(length * NS);
    t->first = t->all == 0 || from < t->first ? from : t->first;
    t->last = t->all == 0 || from + duration > t->last ? from + duration : t->last;
    t->all++;
    count_in(name < 0 ? &t->others_total : &t->totals[name], duration);
    count_in(&t->by_kind[kind], duration);
    if (track < 0) {
        t->untracked++;
        return TESS_OK;
    }
    t->tracks[track].busy = tess_timeline_sum(t->tracks[track].busy, duration);
    const tess_timeline_span span = {.start = from,
                                     .extent = duration,
                                     .busy = duration,
                                     .name = name,
                                     .count = 1,
                                     .track = (uint16_t)track,
                                     .kind = (uint8_t)kind,
                                     .under = TESS_TIMELINE_LONG};
    return keep_span(t, &span, error);
}

static tess_status take(void *user, const tess_json *event, tess_error *error)
{
    tess_timeline *t = user;
    const char *phase = tess_json_get_string(event, "ph", "");
    switch (phase[0] && !phase[1] ? phase[0] : '\0') {
    case 'X':
        return take_span(t, event, error);
    case 'M':
        return take_name(t, event, error);
    case 'C':
        t->figures++;
        return TESS_OK;
    case '\0':
        t->unreadable++;
        return TESS_OK;
    default: /* marks, arrows and halves of spans, which --trace does not write */
        t->others++;
        return TESS_OK;
    }
}

tess_status tess_timeline_read(tess_timeline *timeline, const char *path, tess_stop *stop, tess_error *error)
{
    const tess_event_visitor visitor = {take, timeline};
    *timeline = (tess_timeline){.path = path, .shown = TESS_TIMELINE_SHOWN, .rows = TESS_TIMELINE_ROWS};
    TESS_TRY(tess_events_read(path, &visitor, stop, &timeline->facts, error));
    if (timeline->all == 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: the trace has no spans (events of the phase X)", path);
    return TESS_OK;
}

void tess_timeline_clear(tess_timeline *timeline)
{
    for (int32_t i = 0; i < timeline->track_names.count; i++)
        tess_small_free(timeline->tracks[i].name);
    for (int32_t i = 0; i < timeline->processes.count; i++)
        tess_small_free(timeline->process_names[i]);
    tess_small_free(timeline->tracks);
    tess_small_free(timeline->process_names);
    tess_small_free(timeline->totals);
    tess_small_free(timeline->spans);
    tess_small_free(timeline->text);
    tess_names_clear(&timeline->track_names);
    tess_names_clear(&timeline->processes);
    tess_names_clear(&timeline->kinds);
    tess_names_clear(&timeline->names);
    tess_json_free(timeline->facts.about);
    memset(timeline, 0, sizeof *timeline);
}
