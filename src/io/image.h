/* image.h: images as streams of rows, whatever the format.
 *
 * A reader describes the file and then gives its rows from top to bottom; a writer takes rows from top to
 * bottom. That is the one access pattern that PNG, NPY and every GDAL driver serve without holding the image,
 * and all that a sliding window of tiles needs. Samples stay in the file's type, channels interleaved (H, W,
 * C), native byte order.
 *
 * What a reader or writer holds beyond the caller's rows is `held_bytes`, known at opening and counted under
 * TESS_MEM_HOST when the first row moves. A writer works on a temporary name beside the target: only commit
 * renames it; closing without commit leaves no trace. */
#ifndef TESS_IO_IMAGE_H
#define TESS_IO_IMAGE_H

#include "base/mem.h"
#include "base/status.h"
#include "tensor/tensor.h"

/* The order of an array's axes, where the file does not say. */
typedef enum tess_axes {
    TESS_AXES_AUTO, /* (H,W); (H,W,C) when the last axis is 1 to 4; else (D,H,W); (C,H,W) is refused by that name */
    TESS_AXES_HW,
    TESS_AXES_HWC,
    TESS_AXES_CHW, /* given and taken as interleaved rows; the file keeps its order */
    TESS_AXES_DHW,
    TESS_AXES_DHWC,
    TESS_AXES_PLAIN /* two or three axes as height, width and channels, whatever they are: measurements */
} tess_axes;

/* What a file says besides its samples, as bits of tess_image_info.says. EXIF data, profiles and texts are not among them
 * (io/extras.h). */
typedef enum tess_says {
    TESS_SAYS_TRANSFORM = 1 << 0,  /* from pixels to places */
    TESS_SAYS_PROJECTION = 1 << 1, /* which places these are */
    TESS_SAYS_POINTS = 1 << 2,     /* ground control points, or rational polynomials */
    TESS_SAYS_NODATA = 1 << 3,
    TESS_SAYS_MASK = 1 << 4,
    TESS_SAYS_SCALE = 1 << 5, /* scale and offset */
    TESS_SAYS_UNIT = 1 << 6,
    TESS_SAYS_NAMES = 1 << 7,      /* of bands */
    TESS_SAYS_CATEGORIES = 1 << 8, /* names for values */
    TESS_SAYS_TAGS = 1 << 9        /* of the file or of bands */
} tess_says;

typedef struct tess_image_info {
    int64_t height, width;
    int64_t depth;      /* slices of a volume, read one after another: depth * height rows; 0 for an image */
    int channels;       /* alpha included */
    bool alpha;         /* the last channel is alpha: carried, never restored */
    bool premultiplied; /* the colours are multiplied by alpha, which TIFF calls associated alpha */
    bool rgb;           /* the file says that its colours are red, green and blue, in whatever order */
    tess_dtype dtype;   /* U8, U16, I16, U32, I32 or F32 (doubles are read as F32) */
    double full_scale;  /* value that maps to 1: the type's maximum for integers, 1 for floats */
    size_t held_bytes;  /* see above */
    tess_axes axes; /* the order that was taken, for a file that is an array; else TESS_AXES_AUTO. An array
                          is written in this order, or in the usual one when it is AUTO. */
    uint64_t page;  /* asked of a TIFF file: the place of a directory in it; 0: the first. See io/pages.h */
    size_t extras_bytes; /* what a writer holds to carry the file's EXIF data, profile and texts */
    bool masked;     /* the file marks samples as void, by a nodata value or a mask: see tess_reader_valid */
    bool has_nodata; /* a sample of this value is void: */
    double nodata;
    bool several_nodata; /* bands have different ones, which most formats cannot hold */
    bool mask_band;      /* by a mask that all channels share, which a TIFF keeps */
    unsigned says;       /* of tess_says; a writer takes them from `like` */
    double transform
        [6]; /* with TESS_SAYS_TRANSFORM, as GDAL has it: x = t[0] + column * t[1] + row * t[2], then y */
} tess_image_info;

/* Side files of `path` that writing an image there removes, since they describe the file that is replaced: suffixes of
 * its name, NULL after the last. */
const char *const *tess_image_stale_suffixes(const char *path);

/* Rows in all: those of every slice of a volume. */
static inline int64_t tess_image_rows(const tess_image_info *info)
{
    return info->depth > 0 ? info->depth * info->height : info->height;
}
/* "HWC" and so on; "" for AUTO and PLAIN. */
const char *tess_axes_name(tess_axes axes);

/* By name: "HWC"; NULL and "auto" mean AUTO. */
tess_status tess_axes_of(const char *name, tess_axes *axes, tess_error *error) TESS_MUST_CHECK;

typedef struct tess_reader tess_reader; /* owned by the caller: tess_reader_close */
typedef struct tess_writer tess_writer; /* owned by the caller: tess_writer_close */

/* True when the name's suffix is one that tess_reader_open would try (for folders). */
bool tess_image_is_known(const char *path);
/* The library that this path's format needs is loaded now (GDAL; nothing for PNG and NPY). */
tess_status tess_image_load_library(const char *path, tess_error *error) TESS_MUST_CHECK;

/* Both exist and are one file, however they are named. */
bool tess_image_same_file(const char *one, const char *other);
/* Writing to the one would write over the other, or over the header that describes it (NAME.hdr of an ENVI
 * raster), whether or not there is such a file yet. */
bool tess_image_same_target(const char *one, const char *other);

/* With TESS_AXES_AUTO. What the reader holds is counted in `memory`, which outlives it. */
tess_status tess_reader_open(tess_memory *memory, const char *path, tess_reader **out,
                             tess_error *error) TESS_MUST_CHECK;
/* With the order of its axes, for files that are arrays; others ignore it. */
tess_status tess_reader_open_axes(tess_memory *memory, const char *path, tess_axes axes, tess_reader **out,
                                  tess_error *error) TESS_MUST_CHECK;
const tess_image_info *tess_reader_info(const tess_reader *reader);
/* The next `count` rows into `rows` (count * width * channels samples). */
tess_status tess_reader_rows(tess_reader *reader, int64_t count, void *rows,
                             tess_error *error) TESS_MUST_CHECK;
/* Of the `count` rows last read, which must still be where they were read to, unchanged: 1 for a sample that holds a
 * value, 0 for one that the file marks as void. `valid` has as many bytes as the rows have samples. NaN and infinity are
 * the caller's to see, unless NaN is what marks a sample. */
tess_status tess_reader_valid(tess_reader *reader, int64_t count, unsigned char *valid,
                              tess_error *error) TESS_MUST_CHECK;
void tess_reader_close(tess_reader *reader);

/* What a writer of this path would hold: for the plan. `info->held_bytes` is ignored. */
size_t tess_writer_held_bytes(const char *path, const tess_image_info *info);
/* Could such an image be written under this name? Says why not; touches no file. */
tess_status tess_writer_check(const char *path, const tess_image_info *info,
                              tess_error *error) TESS_MUST_CHECK;
/* There is a folder that takes a file of this name, as far as the system tells without making one. */
tess_status tess_writer_check_folder(const char *path, tess_error *error) TESS_MUST_CHECK;
/* `memory` as of a reader. `like`, when not NULL, is the open reader whose metadata is carried over where the format can hold it:
 * EXIF data (with the orientation), ICC profile, XMP, texts and resolution between PNG, JPEG and TIFF, georeference, nodata value,
 * mask and names between rasters, the transform also by world files, gamma between PNGs. Pixels stay as they are stored: an
 * orientation goes along as a tag. A format that cannot hold info->dtype or the channel count is an error that names one that
 * can. */
tess_status tess_writer_open(tess_memory *memory, const char *path, const tess_image_info *info,
                             const tess_reader *like, tess_writer **out, tess_error *error) TESS_MUST_CHECK;
/* What `like` says and this format cannot hold: "orientation 6 of the EXIF data, projection"; or NULL. */
const char *tess_writer_lost(const tess_writer *writer);
tess_status tess_writer_rows(tess_writer *writer, int64_t count, const void *rows,
                             tess_error *error) TESS_MUST_CHECK;
/* All rows written: flush, check (a full disk shows here), rename onto the target. */
tess_status tess_writer_commit(tess_writer *writer, tess_error *error) TESS_MUST_CHECK;
void tess_writer_close(tess_writer *writer);

#endif
