/* Every record tells the command that made it, so that a page of records can: "command_line", the words as they were given.
 * The library does not know them, so they are put into the text of its record. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static char *words; /* a JSON array; NULL: no memory, and records go without it */

/* The length of the UTF-8 sequence at `text`; 0 if it is none. Overlong forms need not be told from others here. */
static size_t sequence(const unsigned char *text)
{
    const size_t length = text[0] < 0x80                      ? 1
                          : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                          : (text[0] & 0xf0) == 0xe0          ? 3
                          : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                              : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    const bool refused = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
                         (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f);
    return refused ? 0 : length;
}

/* Adds a word as a JSON string; bytes that are no UTF-8 become question marks. */
static char *add(char *to, const char *word)
{
    *to++ = '"';
    for (const unsigned char *at = (const unsigned char *)word; *at;) {
        const size_t length = sequence(at);
        if (*at == '"' || *at == '\\') {
            *to++ = '\\';
            *to++ = (char)*at++;
        } else if (*at < 0x20) {
            to += sprintf(to, "\\u%04x", *at++);
        } else if (length == 0) {
            *to++ = '?';
            at++;
        } else {
            memcpy(to, at, length);
            to += length;
            at += length;
        }
    }
    *to++ = '"';
    return to;
}

void cli_remember(int argc, char **argv)
{
    size_t room = 16;
    for (int i = 1; i < argc; i++)
        room += 6 * strlen(argv[i]) + 4;
    free(words);
    words = malloc(room);
    if (!words)
        return;
    char *to = words;
    *to++ = '[';
    to = add(to, "tessera");
    for (int i = 1; i < argc; i++) {
        *to++ = ',';
        to = add(to, argv[i]);
    }
    strcpy(to, "]");
}

char *cli_with_command(const char *record)
{
    static const char key[] = "\"command_line\":";
    const size_t length = strlen(record);
    if (!words || length < 2 || record[0] != '{')
        return NULL;
    char *text = malloc(length + strlen(words) + sizeof key + 2);
    if (text)
        sprintf(text, "{%s%s%s%s", key, words, record[1] == '}' ? "" : ",", record + 1);
    return text;
}
