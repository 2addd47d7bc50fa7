/* test_image_extras.c: EXIF and related data that is hostile, large, or cannot be stored: nothing crashes, held
 * memory is counted, and a writer reports what it loses. */
#define _XOPEN_SOURCE 700
#include "counter.h"
#include "folder.h"

#include <unistd.h>
#include <zlib.h>

#include "io/extras.h"
#include "io/image.h"

typedef struct bytes {
    unsigned char data[80000];
    size_t count;
} bytes;

static void put_bytes(bytes *to, const void *data, size_t count)
{
    memcpy(to->data + to->count, data, count);
    to->count += count;
}

static void put_number(bytes *to, uint32_t value, int count, bool big)
{
    for (int i = 0; i < count; i++)
        to->data[to->count++] = (unsigned char)(value >> 8 * (big ? count - 1 - i : i));
}

static void put_tag(bytes *to, int tag, int type, uint32_t count, uint32_t value)
{
    put_number(to, (uint32_t)tag, 2, false);
    put_number(to, (uint32_t)type, 2, false);
    put_number(to, count, 4, false);
    if (type == 3) {
        put_number(to, value, 2, false);
        put_number(to, 0, 2, false);
    } else {
        put_number(to, value, 4, false);
    }
}

/* A maker, an orientation, and a directory below with a note of `note` bytes. */
static bytes make_exif(int orientation, size_t note)
{
    static bytes exif;
    exif.count = 0;
    put_bytes(&exif, "II*\0\x08\0\0\0", 8);
    put_number(&exif, 3, 2, false);
    put_tag(&exif, 271, 2, 8, 50);
    put_tag(&exif, 274, 3, 1, (uint32_t)orientation);
    put_tag(&exif, 34665, 4, 1, 58);
    put_number(&exif, 0, 4, false);
    put_bytes(&exif, "a maker", 8);
    put_number(&exif, 1, 2, false);
    put_tag(&exif, 37500, 7, (uint32_t)note, 76);
    put_number(&exif, 0, 4, false);
    for (size_t i = 0; i < note; i++)
        exif.data[exif.count++] = (unsigned char)draw();
    return exif;
}

static void save(const char *name, const bytes *content)
{
    unlink(in_folder(name)); /* some file systems flush a file that is written over */
    FILE *file = fopen(in_folder(name), "wb");
    fwrite(content->data, 1, content->count, file);
    fclose(file);
}

static void put_chunk(bytes *to, const char *kind, const void *data, size_t count)
{
    put_number(to, (uint32_t)count, 4, true);
    const size_t from = to->count;
    put_bytes(to, kind, 4);
    put_bytes(to, data, count);
    put_number(to, (uint32_t)crc32(0, to->data + from, (uInt)(count + 4)), 4, true);
}

static const tess_image_info small = {
    .height = 4, .width = 5, .channels = 3, .dtype = TESS_U8, .full_scale = 255};

static bytes load_file(const char *name)
{
    static bytes content;
    FILE *file = fopen(in_folder(name), "rb");
    content.count = file ? fread(content.data, 1, sizeof content.data, file) : 0;
    if (file)
        fclose(file);
    return content;
}

static bool write_image(const char *name, const tess_image_info *info, const tess_reader *like, char *lost)
{
    static const unsigned char data[4 * 5 * 3] = {1, 2, 3};
    tess_error error = {""};
    tess_writer *writer = NULL;
    bool good = tess_writer_open(&test_counter, in_folder(name), info, like, &writer, &error) == TESS_OK &&
                tess_writer_rows(writer, 4, data, &error) == TESS_OK &&
                tess_writer_commit(writer, &error) == TESS_OK;
    if (good && lost)
        snprintf(lost, 96, "%s", tess_writer_lost(writer) ? tess_writer_lost(writer) : "");
    tess_writer_close(writer);
    CHECK_MSG(good, "%s", error.text);
    return good;
}

/* A PNG with this EXIF data, and a text. */
static void make_png(const char *name, const bytes *exif)
{
    static bytes with;
    write_image("plain.png", &small, NULL, NULL);
    const bytes plain = load_file("plain.png");
    with.count = 0;
    put_bytes(&with, plain.data, 33);
    put_chunk(&with, "tEXt", "Title\0of it", 11);
    put_chunk(&with, "eXIf", exif->data, exif->count);
    put_bytes(&with, plain.data + 33, plain.count - 33);
    save(name, &with);
}

static void test_lost(bool gdal)
{
    static const struct {
        const char *name;
        bool lost, texts, gdal; /* what is lost: the orientation, the texts */
    } cases[] = {{"l.png", false, false, false}, {"l.npy", true, true, false}, {"l.jpg", false, false, true},
                 {"l.tif", false, true, true},   {"l.bmp", true, true, true},  {"l.img", true, true, true}};
    for (int orientation = 1; orientation <= 6; orientation += 5)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const bytes exif = make_exif(orientation, 20);
            tess_reader *like = NULL;
            char lost[96] = "none";
            if (cases[i].gdal && !gdal)
                continue;
            make_png("exif.png", &exif);
            CHECK(tess_reader_open(&test_counter, in_folder("exif.png"), &like, NULL) == TESS_OK);
            write_image(cases[i].name, &small, like, lost);
            tess_reader_close(like);
            char wanted[96];
            const bool turned = cases[i].lost && orientation == 6;
            snprintf(wanted, sizeof wanted, "%s%s%s%s", turned ? "orientation 6 of the EXIF data" : "",
                     turned && cases[i].texts ? ", " : "", cases[i].texts ? "texts" : "",
                     turned          ? ", other EXIF data"
                     : cases[i].lost ? ", EXIF data"
                                     : "");
            CHECK_MSG(strcmp(lost, wanted) == 0, "%s: \"%s\"", cases[i].name, lost);
        }
}

/* EXIF data that one JPEG segment cannot hold stays out, and the orientation with it. */
static void test_too_large(void)
{
    const bytes exif = make_exif(3, 70000);
    tess_reader *like = NULL;
    char lost[96] = "";
    make_png("large.png", &exif);
    CHECK(tess_reader_open(&test_counter, in_folder("large.png"), &like, NULL) == TESS_OK);
    write_image("large.jpg", &small, like, lost);
    CHECK(strcmp(lost, "orientation 3 of the EXIF data, other EXIF data") == 0);
    write_image("large.tif", &small, like, lost);
    CHECK(strcmp(lost, "texts") == 0);
    tess_reader_close(like);
    tess_extras extras;
    CHECK(tess_extras_load(in_folder("large.tif"), &extras, NULL) == TESS_OK);
    CHECK(tess_extras_orientation(&extras) == 3 && extras.exif.bytes > 70000);
    tess_extras_free(&extras);
}

static void test_held(bool gdal)
{
    static const char *const names[] = {"h.png", "h.npy", "h.jpg", "h.tif"};
    const bytes exif = make_exif(6, 30000);
    tess_reader *like = NULL;
    make_png("held.png", &exif);
    CHECK(tess_reader_open(&test_counter, in_folder("held.png"), &like, NULL) == TESS_OK);
    const tess_image_info *info = tess_reader_info(like);
    CHECK(info->extras_bytes >= exif.count);
    for (int n = 0; n < (gdal ? 4 : 2); n++) {
        tess_memory_reset_peak(&test_counter);
        const uint64_t before = io_peak();
        write_image(names[n], info, like, NULL);
        CHECK(io_peak() - before == tess_writer_held_bytes(in_folder(names[n]), info));
        tess_memory_reset_peak(&test_counter);
        CHECK(io_peak() == before);
    }
    tess_reader_close(like);
}

static void load_only(const char *name)
{
    tess_extras extras;
    CHECK(tess_extras_load(in_folder(name), &extras, NULL) == TESS_OK);
    CHECK(extras.bytes <= TESS_EXTRAS_MOST && tess_extras_orientation(&extras) >= 1);
    tess_extras_free(&extras);
}

/* Cut at every length, and with bytes changed. */
static void mangle(const bytes *whole)
{
    static bytes part;
    for (size_t cut = 0; cut <= whole->count; cut += 1 + (whole->count > 700 ? cut / 7 : 0)) {
        part = *whole;
        part.count = cut;
        save("m.bin", &part);
        load_only("m.bin");
    }
    for (int turn = 0; turn < 1500; turn++) {
        part = *whole;
        for (uint32_t n = 1 + draw() % 6; n > 0; n--)
            part.data[draw() % part.count] = (unsigned char)(draw() % 3 ? draw() : draw() % 2 ? 255 : 0);
        save("m.bin", &part);
        load_only("m.bin");
    }
}

static void test_hostile(bool gdal)
{
    static bytes file;
    const bytes exif = make_exif(6, 20);
    make_png("exif.png", &exif);
    file = load_file("exif.png");
    mangle(&file);
    mangle(&exif); /* it is a TIFF */
    file.count = 0;
    put_bytes(&file, "\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\1\1\x2c\1\x2c\0\0", 20);
    put_bytes(&file, "\xff\xe1", 2);
    put_number(&file, (uint32_t)exif.count + 8, 2, true);
    put_bytes(&file, "Exif\0\0", 6);
    put_bytes(&file, exif.data, exif.count);
    for (char part = 1; part <= 2; part++) {
        put_bytes(&file, "\xff\xe2\0\x18ICC_PROFILE", 16);
        put_bytes(&file, (char[]){part, 2}, 2);
        put_bytes(&file, "profile", 8);
    }
    put_bytes(&file, "\xff\xfe\0\x07hello\xff\xda\0\x02", 13);
    save("m.jpg", &file);
    tess_extras extras;
    CHECK(tess_extras_load(in_folder("m.jpg"), &extras, NULL) == TESS_OK);
    CHECK(extras.exif.bytes == exif.count && extras.icc.bytes == 16 && extras.note_count == 1 &&
          tess_extras_orientation(&extras) == 6 && extras.density[0] == 300);
    tess_extras_free(&extras);
    mangle(&file);
    file.count = 0;
    put_bytes(&file, "RIFF\0\1\0\0WEBPEXIF", 16);
    put_number(&file, (uint32_t)exif.count, 4, false);
    put_bytes(&file, exif.data, exif.count);
    put_bytes(&file, "ANMF\2\0\0\0xxANMF\2\0\0\0xx", 20);
    save("m.webp", &file);
    CHECK(tess_extras_load(in_folder("m.webp"), &extras, NULL) == TESS_OK);
    CHECK(tess_extras_orientation(&extras) == 6 && extras.frames == 2);
    tess_extras_free(&extras);
    mangle(&file);
    file.count = 0;
    put_bytes(&file,
              "\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x1cjp2h\0\0\0\x14"
              "colr\2\0\0profile\0\0",
              40);
    put_number(&file, (uint32_t)exif.count + 24, 4, true);
    put_bytes(&file, "uuidJpgTiffExif->JP2", 20);
    put_bytes(&file, exif.data, exif.count);
    put_bytes(&file, "\0\0\0\0jp2c", 8);
    save("m.jp2", &file);
    CHECK(tess_extras_load(in_folder("m.jp2"), &extras, NULL) == TESS_OK);
    CHECK(tess_extras_orientation(&extras) == 6 && extras.exif.bytes == exif.count && extras.icc.bytes == 9 &&
          memcmp(extras.icc.data, "profile", 7) == 0);
    tess_extras_free(&extras);
    mangle(&file);
    for (int turn = 0; gdal && turn < 200; turn++) { /* whatever EXIF data is put into it, a TIFF stays one */
        static bytes part;
        tess_reader *reader = NULL;
        tess_error error = {""};
        part = exif;
        for (uint32_t n = draw() % 4; n > 0; n--)
            part.data[8 + draw() % (part.count - 8)] = (unsigned char)draw();
        write_image("m.tif", &small, NULL, NULL);
        const tess_extras odd = {.exif = {part.data, part.count}};
        CHECK_MSG(tess_tiff_insert(in_folder("m.tif"), &odd, &error) == TESS_OK, "%s", error.text);
        CHECK_MSG(tess_reader_open(&test_counter, in_folder("m.tif"), &reader, &error) == TESS_OK, "%s",
                  error.text);
        if (!reader)
            continue;
        unsigned char rows[4 * 5 * 3];
        CHECK_MSG(tess_reader_rows(reader, 4, rows, &error) == TESS_OK && rows[2] == 3, "%s", error.text);
        tess_reader_close(reader);
    }
}

/* A chunk that inflates without end is not taken. */
static void test_inflation(void)
{
    static bytes exif;
    uLongf packed = 0;
    const size_t huge = (size_t)TESS_EXTRAS_MOST + 1;
    unsigned char *zeros = calloc(huge, 1), *body = malloc(compressBound(huge) + 2);
    memcpy(body, "n\0\0", 3);
    packed = compressBound(huge);
    CHECK(compress2(body + 3, &packed, zeros, huge, 9) == Z_OK);
    free(zeros);
    make_png("inflate.png", &exif);
    const bytes plain = load_file("plain.png");
    FILE *file = fopen(in_folder("inflate.png"), "wb");
    unsigned char *chunk = malloc(packed + 7);
    memcpy(chunk, "iCCP", 4);
    memcpy(chunk + 4, body, packed + 3);
    const uint32_t length = (uint32_t)packed + 3, sum = (uint32_t)crc32(0, chunk, (uInt)(packed + 7));
    const unsigned char ends[8] = {(unsigned char)(length >> 24), (unsigned char)(length >> 16),
                                   (unsigned char)(length >> 8),  (unsigned char)length,
                                   (unsigned char)(sum >> 24),    (unsigned char)(sum >> 16),
                                   (unsigned char)(sum >> 8),     (unsigned char)sum};
    fwrite(plain.data, 1, 33, file);
    fwrite(ends, 1, 4, file);
    fwrite(chunk, 1, packed + 7, file);
    fwrite(ends + 4, 1, 4, file);
    fwrite(plain.data + 33, 1, plain.count - 33, file);
    fclose(file);
    free(chunk);
    free(body);
    tess_extras extras;
    CHECK(tess_extras_load(in_folder("inflate.png"), &extras, NULL) == TESS_OK);
    CHECK(!extras.icc.data && extras.bytes == 0);
    tess_extras_free(&extras);
}

/* Whichever allocation fails, the writer fails with it and leaves nothing, or carries everything. */
static void test_no_memory(bool gdal)
{
    static const char *const names[] = {"n.png", "n.jpg", "n.tif"};
    const bytes exif = make_exif(6, 20);
    make_png("exif.png", &exif);
    for (int n = 0; n < (gdal ? 3 : 1); n++)
        for (uint64_t at = 1; at < 60; at++) {
            static const unsigned char data[4 * 5 * 3] = {1};
            tess_reader *like = NULL;
            tess_writer *writer = NULL;
            CHECK(tess_reader_open(&test_counter, in_folder("exif.png"), &like, NULL) == TESS_OK);
            unlink(in_folder(names[n]));
            tess_mem_fail_at(at);
            const bool good = tess_writer_open(&test_counter, in_folder(names[n]), &small, like, &writer,
                                               NULL) == TESS_OK &&
                              tess_writer_rows(writer, 4, data, NULL) == TESS_OK &&
                              tess_writer_commit(writer, NULL) == TESS_OK;
            tess_mem_fail_at(0);
            tess_writer_close(writer);
            tess_reader_close(like);
            tess_extras extras;
            CHECK(good == (access(in_folder(names[n]), F_OK) == 0));
            CHECK(tess_extras_load(in_folder(names[n]), &extras, NULL) == TESS_OK);
            CHECK_MSG(!good || tess_extras_orientation(&extras) == 6, "%s, allocation %d", names[n], (int)at);
            tess_extras_free(&extras);
        }
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    const bool gdal = tess_image_load_library("any.tif", NULL) == TESS_OK;
    test_lost(gdal);
    if (gdal)
        test_too_large();
    test_held(gdal);
    test_hostile(gdal);
    test_inflation();
    test_no_memory(gdal);
    sweep_folder(true);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
