/* cube_files.h: cubes of any type and order of axes, written as NPY or ENVI, whose samples follow a formula. */
#ifndef TESS_TESTS_CUBE_FILES_H
#define TESS_TESTS_CUBE_FILES_H

#include "folder.h"

#include "io/cube.h"

typedef struct cube_file {
    int64_t count, height, width; /* count 0: the array has no axis B */
    int bands;                    /* 0: no axis C */
    tess_dtype dtype;
    const char *order; /* of the axes in the file: "HWC" */
    bool big;          /* endian */
    bool fortran;      /* NPY only: the shape is written in the reverse order */
    const char *more;  /* further lines of an ENVI header */
} cube_file;

static inline double cube_value(const cube_file *f, int64_t image, int64_t y, int64_t x, int64_t band)
{
    const uint64_t mixed = (uint64_t)(((image * 131 + y) * 137 + x) * 139 + band) * 2654435761u;
    const double whole = (double)(mixed >> 7 & 0xff);
    const bool wide = tess_dtype_size(f->dtype) > 1, real = f->dtype == TESS_F32 || f->dtype == TESS_F64;
    const bool sign = f->dtype == TESS_I16 || f->dtype == TESS_I32 || real;
    return (wide ? 100 * whole + 7 : whole) * (sign && mixed & 1 ? -1 : 1) + (real ? 0.25 : 0);
}

static inline void cube_sample(tess_dtype dtype, double value, void *to)
{
    union {
        uint8_t u1;
        uint16_t u2;
        int16_t i2;
        uint32_t u4;
        int32_t i4;
        float f4;
        double f8;
    } s = {0};
    if (dtype == TESS_U8 || dtype == TESS_BOOL)
        s.u1 = (uint8_t)value;
    else if (dtype == TESS_U16)
        s.u2 = (uint16_t)value;
    else if (dtype == TESS_I16)
        s.i2 = (int16_t)value;
    else if (dtype == TESS_U32)
        s.u4 = (uint32_t)value;
    else if (dtype == TESS_I32)
        s.i4 = (int32_t)value;
    else if (dtype == TESS_F32)
        s.f4 = (float)value;
    else
        s.f8 = value;
    memcpy(to, &s, tess_dtype_size(dtype));
}

static inline int64_t cube_size(const cube_file *f, char axis)
{
    return axis == 'B' ? f->count : axis == 'H' ? f->height : axis == 'W' ? f->width : f->bands;
}

/* All samples, in the file's order. */
static inline void cube_put_samples(const cube_file *f, FILE *file)
{
    const int rank = (int)strlen(f->order), size = (int)tess_dtype_size(f->dtype);
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    int64_t all = 1;
    for (int i = 0; i < rank; i++)
        all *= cube_size(f, f->order[i]);
    for (int64_t k = 0; k < all; k++) {
        int64_t rest = k, at[4] = {0}; /* B, H, W, C */
        unsigned char bytes[8], swapped[8];
        for (int i = rank - 1; i >= 0; i--) {
            at[strchr("BHWC", f->order[i]) - "BHWC"] = rest % cube_size(f, f->order[i]);
            rest /= cube_size(f, f->order[i]);
        }
        cube_sample(f->dtype, cube_value(f, at[0], at[1], at[2], at[3]), bytes);
        for (int i = 0; i < size; i++)
            swapped[i] = bytes[size - 1 - i];
        fwrite(f->big == little ? swapped : bytes, 1, (size_t)size, file);
    }
}

static inline void cube_put_npy_header(const cube_file *f, FILE *file)
{
    static const struct {
        tess_dtype dtype;
        const char *descr;
    } names[] = {{TESS_U8, "u1"},  {TESS_U16, "u2"}, {TESS_I16, "i2"}, {TESS_U32, "u4"},
                 {TESS_I32, "i4"}, {TESS_F32, "f4"}, {TESS_F64, "f8"}, {TESS_BOOL, "b1"}};
    char head[256] = "\x93NUMPY\x01", shape[128] = "";
    const char *descr = "?";
    const int rank = (int)strlen(f->order);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        descr = names[i].dtype == f->dtype ? names[i].descr : descr;
    for (int i = 0; i < rank; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld, ",
                 (long long)cube_size(f, f->order[f->fortran ? rank - 1 - i : i]));
    const int used =
        snprintf(head + 10, sizeof head - 10, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (%s), }",
                 f->big ? '>' : '<', descr, f->fortran ? "True" : "False", shape);
    memset(head + 10 + used, ' ', (size_t)(128 - 10 - used));
    head[127] = '\n';
    head[8] = 118;
    head[9] = 0;
    fwrite(head, 1, 128, file);
}

static inline void cube_write_npy(const cube_file *f, const char *path)
{
    FILE *file = fopen(path, "wb");
    cube_put_npy_header(f, file);
    cube_put_samples(f, file);
    fclose(file);
}

/* NAME.hdr beside `path`. */
static inline void cube_write_envi_header(const cube_file *f, const char *path, int offset)
{
    static const int types[] = {[TESS_U8] = 1,  [TESS_I16] = 2,  [TESS_I32] = 3, [TESS_F32] = 4,
                                [TESS_F64] = 5, [TESS_U16] = 12, [TESS_U32] = 13};
    char header[512];
    const char *dot = strrchr(path, '.');
    snprintf(header, sizeof header, "%.*s.hdr", (int)(dot - path), path);
    FILE *file = fopen(header, "wb");
    fprintf(file,
            "ENVI\nsamples = %lld\nlines = %lld\nbands = %d\nheader offset = %d\nfile type = ENVI Standard\n"
            "data type = %d\ninterleave = %s\nbyte order = %d\n%s",
            (long long)f->width, (long long)f->height, f->bands, offset, types[f->dtype],
            f->order[0] == 'C'   ? "bsq"
            : f->order[1] == 'C' ? "bil"
                                 : "bip",
            f->big, f->more ? f->more : "");
    fclose(file);
}

static inline void cube_write_envi(const cube_file *f, const char *path, int offset)
{
    cube_write_envi_header(f, path, offset);
    FILE *file = fopen(path, "wb");
    for (int i = 0; i < offset; i++)
        fputc(0xee, file);
    cube_put_samples(f, file);
    fclose(file);
}

/* How many of the samples that a read gave are not those of the formula. */
static inline int64_t cube_wrong(const cube_file *f, int64_t image, int64_t first, int64_t rows,
                                 const void *samples)
{
    const size_t size = tess_dtype_size(f->dtype);
    const char *at = samples;
    const int bands = f->bands ? f->bands : 1;
    int64_t wrong = 0;
    for (int64_t y = first; y < first + rows; y++)
        for (int64_t x = 0; x < f->width; x++)
            for (int b = 0; b < bands; b++, at += size) {
                unsigned char bytes[8];
                cube_sample(f->dtype, cube_value(f, image, y, x, b), bytes);
                wrong += memcmp(at, bytes, size) != 0;
            }
    return wrong;
}

#endif
