/* json_door.c: jansson's reader ignores failed allocations of the buffer that holds a token. It then ends the process
 * over a number without its last characters, and reads beyond the end of a string without its closing quote. So a
 * reserve that is large enough for any number of the text serves the first allocation that fails, and the text ends for
 * jansson after it: a number is complete, and an incomplete string is an error. */
#define _POSIX_C_SOURCE 200809L
#include "base/json_door.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"

enum { SMALLEST_RESERVE = 64 };

static _Thread_local bool refused;
static _Thread_local struct {
    void *data;
    size_t bytes; /* 0 once it is in use */
} reserve;

static void *door_alloc(size_t bytes)
{
    void *data = tess_small_alloc(bytes, 1);
    if (data)
        return data;
    refused = true;
    if (bytes <= reserve.bytes) {
        reserve.bytes = 0;
        data = reserve.data;
    }
    return data;
}

static void door_free(void *data)
{
    if (data != reserve.data)
        tess_small_free(data);
}

static void set_door(void)
{
    json_set_alloc_funcs(door_alloc, door_free);
}

void tess_json_use_door(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_door);
}

bool tess_json_refused(void)
{
    return refused;
}

void tess_json_refused_reset(void)
{
    refused = false;
}

typedef struct text_left {
    const char *at, *end;
} text_left;

/* One byte a call, so that nothing is read ahead of a failed allocation. */
static size_t next_byte(void *buffer, size_t size, void *user)
{
    text_left *left = user;
    if (refused || size == 0 || left->at == left->end)
        return 0;
    *(char *)buffer = *left->at++;
    return 1;
}

static size_t longest_number(const char *text, size_t length)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < length; i++) {
        run = text[i] && strchr("+-.eE0123456789", text[i]) ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

json_t *tess_json_load(const char *text, size_t length, json_error_t *where)
{
    const size_t bytes = SMALLEST_RESERVE + 2 * longest_number(text, length); /* jansson doubles its buffer */
    text_left left = {text, text + length};
    reserve.data = door_alloc(bytes);
    reserve.bytes = bytes;
    json_t *value =
        reserve.data ? json_load_callback(next_byte, &left, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, where)
                     : NULL;
    if (refused) {
        json_decref(value);
        value = NULL;
    }
    void *data = reserve.data;
    reserve.data = NULL;
    tess_small_free(data);
    return value;
}
