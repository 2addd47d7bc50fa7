/* jpeg_behind.c: what a JPEG file holds behind its image: other pictures (gain map of an HDR photograph, depth, second
 * view) that the segment MPF lists, a film (motion photo), or bytes of other programs.
 *
 * None of it is read or written, since it belongs to the old pixels and to the old length of the file; but a user who
 * replaces a photograph must learn that it is lost. Previews do not count: they show the old pixels. The image ends at the
 * first EOI marker outside of a segment, which is found by walking through the scans. */
#define _XOPEN_SOURCE 700
#include <string.h>

#include "io/extras.h"
#include "io/jpeg_probe.h"

enum { SOS = 0xda, EOI = 0xd9, ENTRY = 16, MOST_ENTRIES = 4096, CHUNK = 65536, OVERLAP = 8 };

static uint32_t number(const unsigned char *at, int bytes, bool big_endian)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)at[i] << 8 * (big_endian ? bytes - 1 - i : i);
    return value;
}

/* The value of a tag in the first directory of MPF's TIFF structure. */
static bool find_tag(const unsigned char *tiff, size_t bytes, uint16_t id, uint32_t *count, uint32_t *value)
{
    const bool big = tiff[0] == 'M';
    const size_t start = number(tiff + 4, 4, big);
    if (start > bytes - 2)
        return false;
    const size_t tags = number(tiff + start, 2, big);
    for (size_t i = 0; i < tags && start + 2 + (i + 1) * 12 <= bytes; i++) {
        const unsigned char *tag = tiff + start + 2 + i * 12;
        if (number(tag, 2, big) != id)
            continue;
        *count = number(tag + 4, 4, big);
        *value = number(tag + 8, 4, big);
        return true;
    }
    return false;
}

void tess_behind_from_mpf(const unsigned char *tiff, size_t bytes, tess_behind *out)
{
    enum { ENTRIES = 0xb002, PREVIEW = 1 };
    uint32_t size, at;
    if (bytes < 10 || !find_tag(tiff, bytes, ENTRIES, &size, &at))
        return;
    out->listed = true;
    for (uint32_t i = 1; i < size / ENTRY && i < MOST_ENTRIES; i++) { /* the first one is the image itself */
        if (at > bytes || bytes - at < ((size_t)i + 1) * ENTRY)
            return;
        const uint32_t kind = number(tiff + at + (size_t)i * ENTRY, 4, tiff[0] == 'M') & 0xffffff;
        out->pictures += kind >> 16 != PREVIEW;
    }
}

/* Reads compressed data up to the next marker; 0 at the end of the file. */
static int skip_scan(FILE *file)
{
    for (int byte = getc_unlocked(file); byte != EOF;) {
        if (byte != 0xff) {
            byte = getc_unlocked(file);
            continue;
        }
        while (byte == 0xff)
            byte = getc_unlocked(file);
        if (byte != 0 && byte != EOF && !(byte >= 0xd0 && byte <= 0xd7)) /* those belong to the data */
            return byte;
    }
    return 0;
}

/* Moves from the first scan's segment to behind the EOI. */
static bool skip_image(FILE *file, int length)
{
    for (int marker = SOS; marker != EOI;) {
        if (fseeko(file, length, SEEK_CUR) != 0)
            return false;
        if (marker == SOS && (marker = skip_scan(file)) != 0) {
            if (marker == EOI)
                return true;
            const int high = getc(file), low = getc(file);
            length = (high << 8 | low) - 2;
            if (high == EOF || low == EOF || length < 0)
                return false;
        } else {
            const int next = marker ? getc(file) : EOF; /* between two segments */
            if (next == EOF || ungetc(next, file) == EOF)
                return false;
            marker = tess_jpeg_next_marker(file, &length);
            if (marker == 0)
                return false;
        }
    }
    return true;
}

/* A film of the MPEG-4 family begins with a small box "ftyp", here anywhere in the bytes. */
static bool begins_film(const unsigned char *at)
{
    return memcmp(at, "\0\0\0", 3) == 0 && memcmp(at + 4, "ftyp", 4) == 0;
}

static void look_behind(FILE *file, unsigned char *buffer, tess_behind *out)
{
    size_t kept = 0;
    bool first = true;
    for (size_t some; (some = fread(buffer + kept, 1, CHUNK, file)) > 0; first = false) {
        const size_t bytes = kept + some;
        if (first && !out->listed && bytes >= 3 && memcmp(buffer, "\xff\xd8\xff", 3) == 0)
            out->pictures++;
        for (size_t i = kept; i < bytes; i++) /* zeros and ones only fill the file up */
            out->bytes += (uint64_t)(buffer[i] != 0 && buffer[i] != 0xff);
        for (size_t i = 0; i + OVERLAP <= bytes && !out->film; i++)
            out->film = buffer[i] == 0 && begins_film(buffer + i);
        kept = bytes < OVERLAP - 1 ? bytes : OVERLAP - 1;
        memmove(buffer, buffer + bytes - kept, kept);
    }
}

void tess_behind_find(FILE *file, int scan_length, tess_extras *extras)
{
    tess_behind *out = &extras->behind;
    off_t start = 0, end = 0;
    const bool found = skip_image(file, scan_length) && (start = ftello(file)) >= 0 &&
                       fseeko(file, 0, SEEK_END) == 0 && (end = ftello(file)) > start &&
                       fseeko(file, start, SEEK_SET) == 0;
    unsigned char *buffer = found ? tess_small_alloc(CHUNK + OVERLAP, 1) : NULL;
    extras->no_memory = extras->no_memory || (found && !buffer);
    if (buffer)
        look_behind(file, buffer, out);
    tess_small_free(buffer);
    if (out->bytes == 0)
        *out = (tess_behind){0};
    else
        out->bytes = (uint64_t)(end - start);
}

void tess_behind_words(const tess_behind *behind, char *to, size_t size)
{
    char pictures[48] = "", size_words[24];
    to[0] = 0;
    if (behind->bytes == 0)
        return;
    if (behind->pictures > 1)
        snprintf(pictures, sizeof pictures, "%d pictures", behind->pictures);
    else if (behind->pictures == 1)
        snprintf(pictures, sizeof pictures, "second picture");
    tess_extras_size(behind->bytes, size_words, sizeof size_words);
    if (pictures[0] || behind->film)
        snprintf(to, size, "%s%s%s behind the image (%s)", pictures,
                 pictures[0] && behind->film ? " and " : "", behind->film ? "film" : "", size_words);
    else if (!behind->listed)
        snprintf(to, size, "%llu bytes behind the image", (unsigned long long)behind->bytes);
}
