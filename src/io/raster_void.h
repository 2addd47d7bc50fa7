/* raster_void.h: which samples of an elevation raster are void, and how a value becomes a sample that is not.
 *
 * A declared nodata value is compared in the raster's own type. Without one that a sample can equal, and without a mask
 * or alpha band, the usual marks (-99999, -9999, -999, -32768, -32767, and 1e20 and beyond) count; 9999, 99999, 32767 and
 * 65535 if they are far above all others, since they may be summits; and for floats values far outside the range of the
 * others. NaN and infinity are never heights.
 * This is a guess from a sample of the pixels; raster_void_watch.h corrects it. */
#ifndef TESS_IO_RASTER_VOID_H
#define TESS_IO_RASTER_VOID_H

#include "tensor/tensor.h"

typedef enum tess_raster_nodata {
    TESS_NODATA_OF_FILE, /* the declared value, else the usual markers */
    TESS_NODATA_GIVEN,   /* this value, whatever the file declares */
    TESS_NODATA_NONE     /* only NaN, infinity and masks */
} tess_raster_nodata;

enum { TESS_VOID_TOPS = 5, TESS_VOID_MARKS = 9 };
/* 1e30, the largest float and the like mark voids; no unit makes a height so large. */
#define TESS_VOID_ABSURD 1e20
extern const double tess_void_marks[TESS_VOID_MARKS]; /* from TESS_VOID_TOPS on they may be summits */

typedef struct tess_void_rule {
    tess_dtype dtype;
    double least, most;           /* of the samples: fewer bits than the type's in some TIFFs */
    bool exact;                   /* `value` is void */
    double value;                 /* converted to the type */
    bool usual;                   /* the usual markers are void */
    bool heights[TESS_VOID_TOPS]; /* but not this one: the terrain around it goes on to it */
    bool marks[TESS_VOID_MARKS];  /* tess_void_marks[i] is void */
    bool absurd;                  /* 1e20 and beyond are void */
    bool limits;                  /* samples below `low` or above `high` are void */
    double low, high;
    bool avoid; /* another value that results must not take: declared in the file, but not applied */
    double avoided;
} tess_void_rule;

/* `bits` of an integer sample; 0: all of the type. `declared` may be NULL. */
tess_void_rule tess_void_rule_make(tess_dtype dtype, int bits, tess_raster_nodata how, double given,
                                   const double *declared);
/* Which of the usual marks a sample is: of tess_void_marks, or TESS_VOID_MARKS for 1e20 and beyond; -1: none. */
int tess_void_usual(double sample);
bool tess_void_sample(const tess_void_rule *rule, double sample);
/* The same for many: 1 in `empty` for a void sample, else 0. */
void tess_void_samples(const tess_void_rule *rule, const double *samples, int64_t count, uint8_t *empty);
/* Sets what the usual markers depend on from `count` samples, which are sorted: the limits of outliers, 100 ranges of
 * the 1st to 99th percentile beyond them; and marks above all other samples by more than these span. Returns
 * how many of the samples counted for limits; 0: there are none. */
int64_t tess_void_find_limits(tess_void_rule *rule, double *samples, int64_t count);
/* Which of the marks a sample is; -1: none. */
int tess_void_mark_of(double sample);
/* Whether a mark is none of the heights, which go from `low` to `high`. One of the tops may be a summit: it must be
 * farther away than the heights are from each other. For the others a twentieth suffices, as in `denoise`; but a flat map
 * near a mark must stay one. */
bool tess_void_is_far(int mark, double low, double high);

/* The sample nearest to `value` that the type can hold and the rule does not take for void. `value` is finite. */
double tess_void_to_sample(const tess_void_rule *rule, double value);

#endif
