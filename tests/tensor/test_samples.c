/* test_samples.c: every 8- and 16-bit sample is unchanged after conversion to [0, 1] and back, for any value that
 * means 1; values outside a type are clamped, NaN becomes its least value, and halves round to even. */
#define _POSIX_C_SOURCE 200809L
#include "tensor/samples.h"

#include "support.h"

typedef struct sample_type {
    tess_dtype dtype;
    double least, most;
} sample_type;

static const sample_type types[] = {{TESS_U8, 0, UINT8_MAX},
                                    {TESS_U16, 0, UINT16_MAX},
                                    {TESS_I16, INT16_MIN, INT16_MAX},
                                    {TESS_U32, 0, UINT32_MAX},
                                    {TESS_I32, INT32_MIN, INT32_MAX}};
enum { TYPES = sizeof types / sizeof types[0] };

static void store(tess_dtype dtype, double value, void *sample)
{
    switch (dtype) {
    case TESS_U8:
        *(uint8_t *)sample = (uint8_t)value;
        break;
    case TESS_U16:
        *(uint16_t *)sample = (uint16_t)value;
        break;
    case TESS_I16:
        *(int16_t *)sample = (int16_t)value;
        break;
    case TESS_U32:
        *(uint32_t *)sample = (uint32_t)value;
        break;
    default:
        *(int32_t *)sample = (int32_t)value;
    }
}

static double load(tess_dtype dtype, const void *sample)
{
    switch (dtype) {
    case TESS_U8:
        return *(const uint8_t *)sample;
    case TESS_U16:
        return *(const uint16_t *)sample;
    case TESS_I16:
        return *(const int16_t *)sample;
    case TESS_U32:
        return *(const uint32_t *)sample;
    default:
        return *(const int32_t *)sample;
    }
}

/* One sample there and back; fp32 holds 24 bits, so wide types may move by that much of the value. */
static void check_round_trip(const sample_type *type, double full_scale, double sample)
{
    uint64_t from = 0, to = 0;
    float value = NAN;
    store(type->dtype, sample, &from);
    tess_samples_to_float(type->dtype, full_scale, &from, 1, &value);
    tess_samples_from_float(type->dtype, full_scale, &value, 1, &to);
    double exact = sample / full_scale, allowed = fabs(sample) < 0x1p22 ? 0 : fabs(sample) * 0x1p-22;
    CHECK_MSG(fabs(value - exact) <= fabs(exact) * 0x1p-22, "%s %.0f of %.0f: %.9g",
              tess_dtype_name(type->dtype), sample, full_scale, value);
    CHECK_MSG(fabs(load(type->dtype, &to) - sample) <= allowed, "%s %.0f of %.0f came back as %.0f",
              tess_dtype_name(type->dtype), sample, full_scale, load(type->dtype, &to));
}

static void test_round_trips(void)
{
    static const double scales[] = {1, 255, 1023, 4095, 10000, 32767, 65535};
    for (int t = 0; t < 3; t++)
        for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++)
            for (double sample = types[t].least; sample <= types[t].most; sample++)
                check_round_trip(&types[t], scales[s], sample);
    dice d = {8};
    for (int t = 3; t < TYPES; t++)
        for (int i = 0; i < 20000; i++) {
            double sample =
                rint(types[t].least + (types[t].most - types[t].least) * ldexp((double)roll(&d), -64));
            check_round_trip(&types[t], types[t].most, sample);
            check_round_trip(&types[t], 65535, rint(sample / 8192));
        }
    for (int t = 0; t < TYPES; t++) {
        check_round_trip(&types[t], types[t].most, types[t].most);
        check_round_trip(&types[t], types[t].most, types[t].least);
        check_round_trip(&types[t], types[t].most, 0);
    }
}

/* Black is 0 and white is 1, exactly. */
static void test_ends(void)
{
    for (int t = 0; t < TYPES; t++) {
        uint64_t sample = 0;
        float value = NAN;
        tess_samples_to_float(types[t].dtype, types[t].most, &sample, 1, &value);
        CHECK(value == 0);
        store(types[t].dtype, types[t].most, &sample);
        tess_samples_to_float(types[t].dtype, types[t].most, &sample, 1, &value);
        CHECK_MSG(value == 1, "%s: full scale is %.9g", tess_dtype_name(types[t].dtype), value);
    }
}

static void test_clamping(void)
{
    for (int t = 0; t < TYPES; t++) {
        const sample_type *type = &types[t];
        const float far[] = {2.0f, 1e30f, INFINITY, -2.5f, -1e30f, -INFINITY, NAN, -NAN};
        for (int i = 0; i < 8; i++) {
            uint64_t sample = 0x5555555555555555u;
            tess_samples_from_float(type->dtype, type->most, &far[i], 1, &sample);
            double got = load(type->dtype, &sample), expected = i < 3 ? type->most : type->least;
            CHECK_MSG(got == expected, "%s: %g became %.0f", tess_dtype_name(type->dtype), far[i], got);
        }
        float just = (float)(1 + 0.4 / type->most), more = (float)(1 + 0.6 / type->most);
        uint64_t sample = 0;
        tess_samples_from_float(type->dtype, type->most, &just, 1, &sample);
        CHECK(load(type->dtype, &sample) == type->most);
        tess_samples_from_float(type->dtype, type->most, &more, 1, &sample);
        CHECK(load(type->dtype, &sample) == type->most);
    }
}

static void test_rounding(void)
{
    const float values[] = {0.5f, 1.5f, 2.5f, 2.49f, 2.51f, 254.5f, 254.51f, -0.4f};
    const uint8_t expected[] = {0, 2, 2, 2, 3, 254, 255, 0};
    uint8_t samples[9] = {0, 0, 0, 0, 0, 0, 0, 0, 77};
    tess_samples_from_float(TESS_U8, 1, values, 8, samples);
    CHECK(memcmp(samples, expected, 8) == 0 && samples[8] == 77);
}

/* Floats pass as they are: outside [0, 1], NaN and all. */
static void test_floats(void)
{
    const float values[] = {-3, 0, 0.25f, 1, 7e20f, INFINITY, NAN, -0.0f};
    float samples[8], back[8];
    tess_samples_from_float(TESS_F32, 1, values, 8, samples);
    tess_samples_to_float(TESS_F32, 1, samples, 8, back);
    CHECK(memcmp(values, samples, sizeof values) == 0 && memcmp(values, back, sizeof values) == 0);
}

int main(void)
{
    test_round_trips();
    test_ends();
    test_clamping();
    test_rounding();
    test_floats();
    return check_end();
}
