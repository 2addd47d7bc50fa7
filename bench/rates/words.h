/* words.h: the arguments key=value of a program that measures. main sets the two variables first. */
#ifndef TESS_BENCH_WORDS_H
#define TESS_BENCH_WORDS_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int argument_count;
static char **arguments;

static inline const char *word(const char *key, const char *otherwise)
{
    const size_t length = strlen(key);
    for (int i = 1; i < argument_count; i++)
        if (strncmp(arguments[i], key, length) == 0 && arguments[i][length] == '=')
            return arguments[i] + length + 1;
    return otherwise;
}

static inline double number(const char *key, double otherwise)
{
    const char *text = word(key, NULL);
    return text ? strtod(text, NULL) : otherwise;
}

static inline bool is(const char *key, const char *value)
{
    return strcmp(word(key, ""), value) == 0;
}

#endif
