#include "report/embed.h"

#include <string.h>

void tess_embed_json(FILE *to, const char *json, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)json[i];
        if (byte == '<' || byte == '>' || byte == '&')
            fprintf(to, "\\u%04x", byte);
        else if (byte == 0xe2 && i + 2 < length && (unsigned char)json[i + 1] == 0x80 &&
                 ((unsigned char)json[i + 2] | 1) == 0xa9) {
            fprintf(to, "\\u20%02x", 0x28 + ((unsigned char)json[i + 2] & 1));
            i += 2;
        } else
            putc(byte, to);
    }
}

size_t tess_embed_json_bytes(const char *json, size_t length)
{
    enum { MARK = 5, SEPARATOR = 3 }; /* more than what is replaced */
    size_t bytes = length;
    for (size_t i = 0; i < length; i++)
        bytes += json[i] == '<' || json[i] == '>' || json[i] == '&' ? MARK
                 : (unsigned char)json[i] == 0xe2                   ? SEPARATOR
                                                                    : 0;
    return bytes;
}

void tess_embed_text(FILE *to, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '&':
            fputs("&amp;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        case '\'':
            fputs("&#39;", to);
            break;
        default:
            putc(*text, to);
        }
}

void tess_embed_base64(FILE *to, const unsigned char *data, size_t length)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < length; i += 3) {
        const size_t left = length - i;
        const unsigned long bits = (unsigned long)data[i] << 16 |
                                   (left > 1 ? (unsigned long)data[i + 1] << 8 : 0) |
                                   (left > 2 ? (unsigned long)data[i + 2] : 0);
        putc(letters[bits >> 18 & 63], to);
        putc(letters[bits >> 12 & 63], to);
        putc(left > 1 ? letters[bits >> 6 & 63] : '=', to);
        putc(left > 2 ? letters[bits & 63] : '=', to);
    }
}
