/* xmp_behind.c: removes from a JPEG's XMP packet what it says of data behind the image (jpeg_behind.c), which the result
 * does not have: an album would show a film that is not there, a viewer would look for a gain map. In other formats the same
 * goes for the rest of a long packet, which a JPEG has in segments of its own.
 *
 * The statements are attributes or elements in known namespaces. They are overwritten by spaces, so that the packet keeps
 * its length and stays well-formed; everything else stays as it is, byte for byte. */
#include <ctype.h>
#include <string.h>

#include "io/extras.h"

typedef struct statement {
    const char *space;
    const char *name; /* a property begins with this */
} statement;

static const statement statements[] = {{"http://ns.google.com/photos/1.0/camera/", "MotionPhoto"},
                                       {"http://ns.google.com/photos/1.0/camera/", "MicroVideo"},
                                       {"http://ns.google.com/photos/1.0/container/", "Directory"},
                                       {"http://ns.adobe.com/hdr-gain-map/1.0/", ""},
                                       {"http://ns.apple.com/HDRGainMap/1.0/", ""}};

/* Text from `at` to `end`; the byte after `end` is 0. */
typedef struct text {
    char *at, *end;
} text;

static char *find(text in, const char *what, size_t bytes)
{
    while ((size_t)(in.end - in.at) >= bytes) {
        char *at = memchr(in.at, what[0], (size_t)(in.end - in.at) - bytes + 1);
        if (!at || memcmp(at, what, bytes) == 0)
            return at;
        in.at = at + 1;
    }
    return NULL;
}

static char *skip_spaces(char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

static size_t name_length(const char *at)
{
    return strcspn(at, " \t\r\n=/>\"'<");
}

/* One past the attribute whose name ends at `at`; NULL: it is none. */
static char *attribute_end(char *at, char *end)
{
    at = skip_spaces(at);
    if (*at != '=')
        return NULL;
    at = skip_spaces(at + 1);
    char *close = *at == '"' || *at == '\'' ? memchr(at + 1, *at, (size_t)(end - at) - 1) : NULL;
    return close ? close + 1 : NULL;
}

/* One past the element that begins at `start` and whose name has `length` bytes; NULL: it does not end. */
static char *element_end(char *start, size_t length, char *end)
{
    char closing[96];
    char *close = memchr(start, '>', (size_t)(end - start));
    if (!close || length + 4 > sizeof closing)
        return NULL;
    if (close[-1] == '/')
        return close + 1;
    closing[0] = '<', closing[1] = '/';
    memcpy(closing + 2, start + 1, length);
    closing[length + 2] = '>';
    char *found = find((text){close, end}, closing, length + 3);
    return found ? found + length + 3 : NULL;
}

/* Removes the properties PREFIX:NAME... */
static void remove_named(text in, const char *prefix, size_t prefix_bytes, const char *name)
{
    for (char *at; (at = find(in, prefix, prefix_bytes)); in.at = at + 1) {
        const bool begins =
            at[prefix_bytes] == ':' && strncmp(at + prefix_bytes + 1, name, strlen(name)) == 0;
        const size_t length = name_length(at);
        char *to = !begins                          ? NULL
                   : at[-1] == '<'                  ? element_end(at - 1, length, in.end)
                   : isspace((unsigned char)at[-1]) ? attribute_end(at + length, in.end)
                                                    : NULL;
        char *from = at[-1] == '<' ? at - 1 : at;
        if (to)
            memset(from, ' ', (size_t)(to - from));
    }
}

static void forget(tess_blob *xmp, const statement *list, size_t count)
{
    for (size_t i = 0; i < count && xmp->bytes > 0; i++) {
        const statement *s = &list[i];
        text all = {(char *)xmp->data, (char *)xmp->data + xmp->bytes}, rest = all;
        all.at++; /* every name has a character before it */
        for (char *uri; (uri = find(rest, s->space, strlen(s->space))); rest.at = uri + 1) {
            /* xmlns:PREFIX="URI" */
            char *prefix = uri;
            while (prefix > rest.at && *prefix != ':' && *prefix != '<' && !(isspace((unsigned char)*prefix)))
                prefix--;
            if (prefix - (char *)xmp->data < 5 || memcmp(prefix - 5, "xmlns:", 6) != 0)
                continue;
            char name[64];
            const size_t bytes = name_length(prefix + 1);
            if (bytes == 0 || bytes >= sizeof name)
                continue;
            memcpy(name, prefix + 1, bytes);
            remove_named(all, name, bytes, s->name);
        }
    }
}

void tess_xmp_forget_behind(tess_blob *xmp)
{
    forget(xmp, statements, sizeof statements / sizeof *statements);
}

void tess_xmp_forget_more(tess_blob *xmp)
{
    static const statement more = {"http://ns.adobe.com/xmp/note/", "HasExtendedXMP"};
    forget(xmp, &more, 1);
}
