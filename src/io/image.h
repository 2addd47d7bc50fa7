/* image.h: images as streams of rows, whatever the format.
 *
 * A reader describes the file and then gives its rows from top to bottom; a writer takes rows from top to
 * bottom. PNG, NPY and every GDAL driver support this access pattern without holding the whole image, and a
 * sliding window of tiles needs no other. Samples keep the file's type, with interleaved channels (H, W, C) and
 * native byte order.
 *
 * `held_bytes` is the memory that a reader or writer holds besides the caller's rows. It is known at opening
 * and counted under TESS_MEM_HOST when the first row is moved. A writer uses a temporary name beside the
 * target, and only commit renames it; closing without commit removes it. */
#ifndef TESS_IO_IMAGE_H
#define TESS_IO_IMAGE_H

#include "base/mem.h"
#include "base/status.h"
#include "tensor/tensor.h"

/* The order of an array's axes, for files that do not specify it. */
typedef enum tess_axes {
    TESS_AXES_AUTO, /* (H,W); (H,W,C) when the last axis is 1 to 4; else (D,H,W); what looks like (C,H,W) is refused */
    TESS_AXES_HW,
    TESS_AXES_HWC,
    TESS_AXES_CHW, /* rows are interleaved for the caller; the file keeps its order */
    TESS_AXES_DHW,
    TESS_AXES_DHWC,
    TESS_AXES_PLAIN, /* two or three axes as height, width and channels, whatever their sizes: for measurements */
    TESS_AXES_PICTURE /* the same for pictures: what looks like (C,H,W) or has more than 16 channels is refused */
} tess_axes;

/* The metadata that a file has, as bits of tess_image_info.says. EXIF data and profiles are not included
 * (io/extras.h). */
typedef enum tess_says {
    TESS_SAYS_TRANSFORM = 1 << 0,  /* from pixels to coordinates */
    TESS_SAYS_PROJECTION = 1 << 1, /* the coordinate system */
    TESS_SAYS_POINTS = 1 << 2,     /* ground control points */
    TESS_SAYS_NODATA = 1 << 3,
    TESS_SAYS_MASK = 1 << 4,
    TESS_SAYS_SCALE = 1 << 5, /* scale and offset */
    TESS_SAYS_UNIT = 1 << 6,
    TESS_SAYS_NAMES = 1 << 7,      /* of bands */
    TESS_SAYS_CATEGORIES = 1 << 8, /* names of values */
    TESS_SAYS_TAGS = 1 << 9,       /* of the file or of bands */
    TESS_SAYS_FIELDS = 1 << 10,    /* of an ENVI header, beyond those that describe samples and place */
    TESS_SAYS_CHROMA =
        1 << 11,               /* a JPEG whose colours have more than half the resolution of its brightness */
    TESS_SAYS_WHITE = 1 << 14, /* a TIFF in which 0 is white; samples are read as they are stored */
    TESS_SAYS_BESIDE_INKS =
        1 << 15,               /* found by a writer: samples beside CMYK, such as alpha, which GDAL drops */
    TESS_SAYS_TEXTS = 1 << 12, /* this and the next: found by a writer in the extras (io/extras.h) */
    TESS_SAYS_IPTC = 1 << 13,
    TESS_SAYS_SCALES = 1 << 16,   /* scales and offsets in NAME.SUFFIX.aux.xml that differ between bands */
    TESS_SAYS_RATIONAL = 1 << 17, /* rational polynomials (RPC) */
    TESS_SAYS_PROFILE = 1 << 18,  /* found by a writer: a colour profile */
    TESS_SAYS_CODES = 1 << 19,    /* the same: numbers of a PNG's colour space (cICP) */
    TESS_SAYS_GAMMA = 1 << 20,    /* the same: gamma and primaries of a PNG, if they are unusual */
    TESS_SAYS_MARKS = 1 << 22,    /* found by a writer: names of bands with characters that separate names */
    TESS_SAYS_MORE_XMP = 1 << 23, /* found by a writer: a JPEG's XMP beyond the main packet */
    TESS_SAYS_FOURTH = 1 << 25,   /* RGB and a last band, of which nothing says what it is */
    TESS_SAYS_INKS = 1 << 24,     /* a JPEG of CMYK that does not say whether 0 is all ink or none */
    TESS_SAYS_SATELLITE = 1 << 21 /* facts of a satellite's scene in a file beside it (NAME.IMD and others) */
} tess_says;

typedef struct tess_image_info {
    int64_t height, width;
    int64_t depth;      /* slices of a volume, read in sequence: depth * height rows; 0 for an image */
    int channels;       /* alpha included */
    bool alpha;         /* the last channel is alpha: copied, never restored */
    bool premultiplied; /* the colours are multiplied by alpha (associated alpha in TIFF) */
    bool rgb;           /* the file says that its colours are red, green and blue, in any order */
    short order[3];     /* with rgb: the channels that are red, green and blue; all 0: in this order */
    const char *
        foreign; /* the file's colours, "CMYK" or "CIELAB", which are read as RGB; NULL: they are not others */
    tess_dtype dtype; /* U8, U16, I16, U32, I32 or F32; F64 only if the reader was asked to keep doubles */
    bool doubles;     /* the file has doubles */
    double
        full_scale; /* sample that means 1: the file's maximum for integers (the type's, or 4095 of 12 bits), 1 for floats */
    bool fractions;    /* by the format, samples are nothing but fractions of full_scale (Netpbm) */
    size_t held_bytes; /* see above */
    tess_axes axes;    /* of an array, also when it is written; AUTO: the usual order, or not an array */
    uint64_t page; /* for a TIFF file: the offset of the directory to read; 0: the first. See io/pages.h */
    size_t extras_bytes; /* memory that a writer needs to copy the file's EXIF data, profile and texts */
    bool labels; /* asked for: samples are labels, read as they are, also those of a palette or of few bits */
    bool masked; /* the file marks samples as void by a nodata value or a mask: see tess_reader_valid */
    bool zeros_are_holes; /* set by jobs, never by a reader: pixels whose colours are all 0 are void */
    bool has_nodata;      /* a sample of this value is void: */
    double nodata;
    bool several_nodata; /* bands have different nodata values, which most formats cannot hold */
    bool only_place; /* for a writer: of `like` only the georeference is copied; nodata is the result's own */
    /* for a writer: samples are the numbers of `like`, or between them, so that its scale, offset and unit hold for them
     * also if the type is another */
    bool same_numbers;
    bool mask_band; /* a mask shared by all channels, which a TIFF can hold */
    unsigned says;  /* bits of tess_says; a writer takes them from `like` */
    double scale,
        offset; /* of the first band, with TESS_SAYS_SCALE: its samples mean sample * scale + offset */
    double transform[6]; /* GDAL's: x = t[0] + column * t[1] + row * t[2], then y; with TESS_SAYS_TRANSFORM */
} tess_image_info;

/* Suffixes, terminated by NULL, of the side files of `path` that are removed when an image is written there,
 * because they describe the replaced file. */
const char *const *tess_image_stale_suffixes(const char *path);

/* Number of rows, over all slices of a volume. */
static inline int64_t tess_image_rows(const tess_image_info *info)
{
    return info->depth > 0 ? info->depth * info->height : info->height;
}
/* "HWC" and so on; "" for AUTO, PLAIN and PICTURE. */
const char *tess_axes_name(tess_axes axes);

/* Parses a name such as "HWC"; NULL and "auto" mean AUTO. */
tess_status tess_axes_of(const char *name, tess_axes *axes, tess_error *error) TESS_MUST_CHECK;

typedef struct tess_reader tess_reader; /* owned by the caller: tess_reader_close */
typedef struct tess_writer tess_writer; /* owned by the caller: tess_writer_close */

/* True when tess_reader_open would try this suffix (for folders). */
bool tess_image_is_known(const char *path);
/* The suffix of the format in which an image is written whose own format is only read: PNG for pictures, TIFF for what
 * may be a raster; NULL for every other name. */
const char *tess_image_written_as(const char *path);
/* Loads the library that this path's format needs (GDAL; none for PNG and NPY). */
tess_status tess_image_load_library(const char *path, tess_error *error) TESS_MUST_CHECK;

/* True when both exist and are the same file, even under different names. */
bool tess_image_same_file(const char *one, const char *other);
/* True when writing to one would overwrite the other or its header (NAME.hdr of an ENVI raster), whether or not
 * the files exist yet. */
bool tess_image_same_target(const char *one, const char *other);

/* Opens with TESS_AXES_AUTO. The reader counts its memory in `memory`, which must outlive it. */
tess_status tess_reader_open(tess_memory *memory, const char *path, tess_reader **out,
                             tess_error *error) TESS_MUST_CHECK;
/* The same with a given order of axes, for arrays; other files ignore it. */
tess_status tess_reader_open_axes(tess_memory *memory, const char *path, tess_axes axes, tess_reader **out,
                                  tess_error *error) TESS_MUST_CHECK;
/* The same, but doubles stay doubles (F64) instead of being read as float32. */
tess_status tess_reader_open_doubles(tess_memory *memory, const char *path, tess_axes axes, tess_reader **out,
                                     tess_error *error) TESS_MUST_CHECK;
/* The same for a file of labels, such as a mask: see tess_image_info.labels. */
tess_status tess_reader_open_labels(tess_memory *memory, const char *path, tess_reader **out,
                                    tess_error *error) TESS_MUST_CHECK;
const tess_image_info *tess_reader_info(const tess_reader *reader);
/* Reads the next `count` rows into `rows` (count * width * channels samples). */
tess_status tess_reader_rows(tess_reader *reader, int64_t count, void *rows,
                             tess_error *error) TESS_MUST_CHECK;
/* Continues at `row`, which is not before the next one. If the format must decode the rows before it, they are read
 * into `scratch`, which has space for one row. */
tess_status tess_reader_seek(tess_reader *reader, int64_t row, void *scratch,
                             tess_error *error) TESS_MUST_CHECK;
/* For the last `count` rows read, which must still be unchanged in the same memory: writes 1 for a valid sample
 * and 0 for one that the file marks as void. `valid` has one byte for each sample. The caller must check for
 * NaN and infinity, unless NaN is the nodata value. */
tess_status tess_reader_valid(tess_reader *reader, int64_t count, unsigned char *valid,
                              tess_error *error) TESS_MUST_CHECK;
void tess_reader_close(tess_reader *reader);

/* Memory that a writer of this path would hold, for the plan. `info->held_bytes` is ignored. */
size_t tess_writer_held_bytes(const char *path, const tess_image_info *info);
/* Checks whether such an image can be written under this name. Touches no file. */
tess_status tess_writer_check(const char *path, const tess_image_info *info,
                              tess_error *error) TESS_MUST_CHECK;
/* The deviation of the error that a JPEG makes in its brightness at low frequencies, in units of its samples; 0: no JPEG. */
double tess_jpeg_quantisation(const char *path);

/* True when the format shows its samples as colours, with the type's maximum as white: PNG, JPEG, BMP. */
bool tess_writer_is_picture(const char *path);
/* Checks that the folder exists and is writable, as far as possible without creating a file. */
tess_status tess_writer_check_folder(const char *path, tess_error *error) TESS_MUST_CHECK;
/* `memory` is as for a reader. `like`, if not NULL, is the open reader whose metadata is copied where the
 * format can hold it: EXIF data (with the orientation), ICC profile, XMP, texts and resolution between PNG,
 * JPEG and TIFF; georeference, nodata value, mask and names between rasters; the transform also in world files;
 * gamma between PNGs. Pixels are not rotated: an orientation is copied as a tag. If the format cannot hold
 * info->dtype or the channel count, the error names one that can. */
tess_status tess_writer_open(tess_memory *memory, const char *path, const tess_image_info *info,
                             const tess_reader *like, tess_writer **out, tess_error *error) TESS_MUST_CHECK;
/* The metadata of `like` that this format cannot hold: "orientation 6 of the EXIF data, projection"; or NULL. */
const char *tess_writer_lost(const tess_writer *writer);
tess_status tess_writer_rows(tess_writer *writer, int64_t count, const void *rows,
                             tess_error *error) TESS_MUST_CHECK;
/* Several processes write rows of one image. One opens a writer and tells the others its file; they open parts of it.
 * All of them seek, write rows and commit; the first one commits after the others, and then the image is there. */
bool tess_writer_takes_parts(const char *path);
const char *tess_writer_file(const tess_writer *writer);
tess_status tess_writer_open_part(tess_memory *memory, const char *path, const tess_image_info *info,
                                  const tess_reader *like, const char *file, tess_writer **out,
                                  tess_error *error) TESS_MUST_CHECK;
void tess_writer_seek(tess_writer *writer, int64_t row);
/* After all rows: flushes, checks (a full disk is found here) and renames to the target. */
tess_status tess_writer_commit(tess_writer *writer, tess_error *error) TESS_MUST_CHECK;
void tess_writer_close(tess_writer *writer);

#endif
