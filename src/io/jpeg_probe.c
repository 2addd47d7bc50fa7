/* jpeg_probe.c: whether a JPEG can be decoded row by row.
 *
 * A progressive file (SOF2), or one whose first scan lacks components, has no finished row before its last
 * scan, so libjpeg holds every coefficient of the image: two bytes each, in 8x8 blocks, per component at its
 * own sampling. This is the only large allocation that GDAL does not report, and the first markers of the file
 * are enough to predict it. */
#include "io/jpeg_probe.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "io/image.h"

typedef struct frame {
    bool progressive, adobe; /* adobe: there is a marker of Adobe's, which CMYK should have */
    int precision;           /* bits of a sample */
    int64_t height, width;
    int components, across[4], down[4]; /* sampling factors */
} frame;

static int two_bytes(FILE *file)
{
    int high = getc(file), low = getc(file);
    return high == EOF || low == EOF ? -1 : high << 8 | low;
}

int tess_jpeg_next_marker(FILE *file, int *length)
{
    int byte = getc(file);
    if (byte != 0xff)
        return 0;
    while (byte == 0xff)
        byte = getc(file);
    *length = two_bytes(file) - 2;
    return byte == EOF || *length < 0 ? 0 : byte;
}

static bool is_frame(int marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static bool read_frame(FILE *file, int marker, int length, frame *out)
{
    out->precision = getc(file);
    out->progressive = (marker & 3) == 2;
    out->height = two_bytes(file);
    out->width = two_bytes(file);
    out->components = getc(file);
    if (out->height < 1 || out->width < 1 || out->components < 1 || out->components > 4 ||
        length < 6 + 3 * out->components)
        return false;
    for (int c = 0; c < out->components; c++) {
        getc(file);
        int factors = getc(file);
        getc(file);
        out->across[c] = factors >> 4;
        out->down[c] = factors & 15;
        if (factors == EOF || out->across[c] < 1 || out->across[c] > 4 || out->down[c] < 1 ||
            out->down[c] > 4)
            return false;
    }
    return true;
}

static size_t coefficient_bytes(const frame *f)
{
    int64_t most_across = 1, most_down = 1, blocks = 0;
    for (int c = 0; c < f->components; c++) {
        most_across = tess_max_i64(most_across, f->across[c]);
        most_down = tess_max_i64(most_down, f->down[c]);
    }
    for (int c = 0; c < f->components; c++)
        blocks += tess_ceil_div(f->width, 8 * most_across) * f->across[c] *
                  tess_ceil_div(f->height, 8 * most_down) * f->down[c];
    return (size_t)blocks * 64 * 2;
}

/* Reads the frame, and whether all its coefficients are needed before the first row. Returns false for a file that is
 * damaged or no JPEG. */
static bool probe(const char *path, frame *f, bool *holds_all)
{
    FILE *file = fopen(path, "rb");
    bool found = false;
    *f = (frame){0};
    *holds_all = false;
    if (!file)
        return false;
    if (two_bytes(file) == 0xffd8) {
        int length = 0, marker;
        while ((marker = tess_jpeg_next_marker(file, &length)) != 0) {
            long after = ftell(file) + length;
            char name[5];
            if (marker == 0xee && length >= 12 && fread(name, 1, sizeof name, file) == sizeof name)
                f->adobe = f->adobe || memcmp(name, "Adobe", sizeof name) == 0;
            if (is_frame(marker) && !read_frame(file, marker, length, f))
                break;
            if (marker == 0xda) { /* first scan: does it have all components? */
                found = f->components > 0;
                *holds_all = found && (f->progressive || getc(file) < f->components);
                break;
            }
            if (fseek(file, after, SEEK_SET) != 0)
                break;
        }
    }
    fclose(file);
    return found;
}

/* Moves to the data of the first scan. */
static bool find_scan(FILE *file)
{
    int length = 0, marker;
    if (two_bytes(file) != 0xffd8)
        return false;
    while ((marker = tess_jpeg_next_marker(file, &length)) != 0)
        if (fseek(file, length, SEEK_CUR) != 0 || marker == 0xda)
            return marker == 0xda;
    return false;
}

bool tess_jpeg_has_end(const char *path)
{
    unsigned char bytes[4096];
    FILE *file = fopen(path, "rb");
    bool found = !file || !find_scan(file);
    int before = 0; /* compressed data has no 0xff before 0xd9 */
    for (size_t count; !found && (count = fread(bytes, 1, sizeof bytes, file)) > 0;)
        for (size_t i = 0; i < count && !found; before = bytes[i++])
            found = before == 0xff && bytes[i] == 0xd9;
    if (file)
        fclose(file);
    return found;
}

/* Adds the steps of the table of the brightness, if this segment has it. In the order of the file the coefficients zigzag from
 * low to high frequencies, of which the first 10 are those below half of the diagonal. */
static void read_steps(FILE *file, int length, double *square)
{
    enum { COEFFICIENTS = 64, LOW = 10 };
    for (int left = length; left > 0;) {
        const int head = getc(file), wide = head >> 4;
        double sum = 0;
        left -= 1 + COEFFICIENTS * (wide ? 2 : 1);
        if (head == EOF || left < 0)
            return;
        for (int i = 0; i < COEFFICIENTS; i++) {
            const int step = wide ? two_bytes(file) : getc(file);
            if (step < 0)
                return;
            sum += i < LOW ? (double)step * step / LOW : 0;
        }
        if ((head & 15) == 0)
            *square = sum;
    }
}

double tess_jpeg_quantisation(const char *path)
{
    FILE *file = fopen(path, "rb");
    double square = 0;
    if (!file)
        return 0;
    if (two_bytes(file) == 0xffd8) {
        int length = 0, marker;
        while ((marker = tess_jpeg_next_marker(file, &length)) != 0 && marker != 0xda) {
            long after = ftell(file) + length;
            if (marker == 0xdb)
                read_steps(file, length, &square);
            if (fseek(file, after, SEEK_SET) != 0)
                break;
        }
    }
    fclose(file);
    return sqrt(square / 12);
}

size_t tess_jpeg_coefficients(const char *path)
{
    frame f;
    bool holds_all;
    return probe(path, &f, &holds_all) && holds_all ? coefficient_bytes(&f) : 0;
}

bool tess_jpeg_full_chroma(const char *path)
{
    frame f;
    bool holds_all;
    return probe(path, &f, &holds_all) && f.components == 3 &&
           (2 * f.across[1] > f.across[0] || 2 * f.down[1] > f.down[0]);
}

int tess_jpeg_precision(const char *path)
{
    frame f;
    bool holds_all;
    return probe(path, &f, &holds_all) ? f.precision : 0;
}

bool tess_jpeg_has_unclear_inks(const char *path)
{
    frame f;
    bool holds_all;
    return probe(path, &f, &holds_all) && f.components == 4 && !f.adobe;
}

size_t tess_jpeg_write_coefficients(int64_t height, int64_t width, int channels)
{
    frame f = {.height = height, .width = width, .components = channels == 3 ? 3 : 1};
    for (int c = 0; c < f.components; c++)
        f.across[c] = f.down[c] = f.components == 3 && c == 0 ? 2 : 1;
    return coefficient_bytes(&f);
}
