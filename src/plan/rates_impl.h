/* rates_impl.h: the table of rates, for rates.c (measured on an open device) and machine.c (of a device that is not open). */
#ifndef TESS_PLAN_RATES_IMPL_H
#define TESS_PLAN_RATES_IMPL_H

#include "base/cache.h"
#include "plan/rates.h"

enum { TESS_RATES_TYPES = 5 };

typedef struct tess_rate {
    char op_class[TESS_RATES_CLASS];
    double overhead, per_pixel;
    int64_t date; /* seconds since 1970 */
} tess_rate;

struct tess_rates {
    tess_device *device; /* NULL: not open */
    char kind[16];
    int busy;   /* processes of this host that compute at the same time; 0 and 1: one */
    bool known; /* the facts are of a device that was seen, not a guess */
    tess_device_facts facts;
    /* Operations a second by element type, as a machine file gives them; 0: facts.flops. */
    struct {
        const char *name;
        double flops;
    } type[TESS_RATES_TYPES];
    /* How kernels use the device, as a machine file says it; 0: not known, no effect. */
    struct {
        double launch;              /* seconds from one kernel to the next */
        double units, unit_outputs; /* processors, and the output values that one of them computes at a time */
        double winograd;            /* how much faster 3x3 convolutions of images are than others */
    } kernels;
    char path[TESS_CACHE_PATH];
    tess_rate *rates;
    int64_t count, capacity;
};

/* The cache file of this kind, name and number of threads, and of so many busy processes. */
void tess_rates_set_path(tess_rates *rates);
void tess_rates_read_cache(tess_rates *rates);
/* Takes over classes of a JSON object; with `dated`, only those that are not too old. */
void tess_rates_read_classes(tess_rates *rates, const tess_json *classes, bool dated);

/* Stores a rate in place of the one that is known, whichever is faster. */
void tess_rates_replace(tess_rates *rates, const char *op_class, double overhead, double per_pixel,
                        int64_t date);

/* The same op on a dense image of `side` squared output pixels, or on so many pixels of a statistic. */
tess_op tess_calibrate_resized(const tess_op *op, int64_t side);
/* Of an op on images: with so many rows and columns. */
tess_op tess_calibrate_sized(const tess_op *op, int64_t height, int64_t width);
/* An op on pixels with many bands. */
bool tess_calibrate_of_pixels(const tess_op *op);

#endif
