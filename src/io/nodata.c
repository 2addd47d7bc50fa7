/* nodata.c: samples that equal the nodata value of their band.
 *
 * The value is compared with the samples in the caller's type: GDAL gives it as a double, but the float -9999.1 is
 * another number than the double, and a Float64 raster is read as float32. */
#include "io/nodata.h"

#include <float.h>
#include <math.h>

/* True when a sample of this type can equal the value. */
static bool representable(tess_dtype dtype, double value)
{
    static const struct {
        tess_dtype dtype;
        double least, most;
    } ranges[] = {{TESS_U8, 0, 255},
                  {TESS_U16, 0, 65535},
                  {TESS_I16, -32768, 32767},
                  {TESS_U32, 0, 4294967295.0},
                  {TESS_I32, -2147483648.0, 2147483647}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].dtype == dtype)
            return value >= ranges[i].least && value <= ranges[i].most && value == floor(value);
    return true;
}

bool tess_nodata_describe(tess_nodata *values, tess_image_info *info)
{
    for (int c = 0; c < info->channels; c++) {
        tess_nodata *own = &values[c];
        own->any = own->any && representable(info->dtype, own->value);
        if (!own->any)
            continue;
        const bool alike = own->value == info->nodata || (isnan(own->value) && isnan(info->nodata));
        info->several_nodata |= info->has_nodata && !alike;
        info->has_nodata = true;
        info->nodata = own->value;
    }
    return info->has_nodata;
}

bool tess_nodata_same_float(float sample, double nodata)
{
    if (isnan(nodata))
        return isnan(sample);
    if (fabs(nodata) > FLT_MAX) /* e.g. the lowest double: read as -FLT_MAX or as infinity */
        return fabsf(sample) >= FLT_MAX && (sample < 0) == (nodata < 0);
    return sample == (float)nodata;
}

#define MARK(type, equal)                                                                                    \
    for (int64_t x = 0; x < width; x++) {                                                                    \
        const type sample = ((const type *)samples)[x * step + c];                                           \
        if (equal)                                                                                           \
            valid[x * step + c] = 0;                                                                         \
    }                                                                                                        \
    break

static void mark_channel(const tess_image_info *info, int c, double nodata, const void *samples,
                         int64_t width, unsigned char *valid)
{
    const int64_t step = info->channels;
    switch (info->dtype) {
    case TESS_U8:
        MARK(uint8_t, sample == nodata);
    case TESS_U16:
        MARK(uint16_t, sample == nodata);
    case TESS_I16:
        MARK(int16_t, sample == nodata);
    case TESS_U32:
        MARK(uint32_t, sample == nodata);
    case TESS_I32:
        MARK(int32_t, sample == nodata);
    case TESS_F32:
        MARK(float, tess_nodata_same_float(sample, nodata));
    case TESS_F64:
        MARK(double, sample == nodata || (isnan(sample) && isnan(nodata)));
    default:
        break;
    }
}

void tess_nodata_mark(const tess_nodata *values, const tess_image_info *info, const void *samples,
                      int64_t pixels, unsigned char *valid)
{
    for (int c = 0; c < info->channels; c++)
        if (values[c].any)
            mark_channel(info, c, values[c].value, samples, pixels, valid);
}
