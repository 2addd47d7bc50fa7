/* test_tensor.c: sizes that cannot wrap, and the 16-bit floats: every half and every bf16 is converted to float and
 * back, and floats to halves are compared with a slow search among all halves. */
#define _POSIX_C_SOURCE 200809L
#include "tensor/tensor.h"

#include "support.h"

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The value that IEEE 754 gives the bits, from its definition. */
static double half_value(int half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return half >> 15 ? -value : value;
}

static void test_every_half(void)
{
    for (int half = 0; half < 65536; half++) {
        float value = tess_half_to_float((uint16_t)half);
        uint16_t back = tess_float_to_half(value);
        bool special = (half >> 10 & 31) == 31;
        if (special && half & 1023)
            CHECK_MSG(isnan(value) && (back & 0x7c00) == 0x7c00 && back & 1023, "%04x: %g, %04x", half, value,
                      back);
        else if (special)
            CHECK_MSG(isinf(value) && !signbit(value) == !(half >> 15) && back == half, "%04x", half);
        else
            CHECK_MSG((double)value == half_value(half) && !signbit(value) == !(half >> 15) && back == half,
                      "%04x: %g, %04x", half, value, back);
    }
}

/* The nearest half by halving the interval; a tie goes to the even one; 65520 and more is infinite. */
static int slow_half(float value)
{
    int sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs((double)value);
    if (magnitude >= 65520)
        return sign | 0x7c00;
    int low = 0,
        high = 0x7c00; /* positive halves are ordered as their bits are; 0x7c00 stands for 65536 here */
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (half_value(middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    double below = magnitude - half_value(low), above = half_value(high) - magnitude;
    return sign | (below < above || (below == above && low % 2 == 0) ? low : high);
}

static void check_to_half(float value)
{
    int expected = slow_half(value), got = tess_float_to_half(value);
    CHECK_MSG(got == expected, "%a: %04x, expected %04x", value, got, expected);
}

static void test_to_half(void)
{
    dice d = {3};
    for (int i = 0; i < 300000; i++) { /* exponents around those of halves, all fractions */
        uint32_t exponent = (uint32_t)pick(&d, 127 - 28, 127 + 18);
        check_to_half(float_of((uint32_t)(roll(&d) & 0x807fffffu) | exponent << 23));
    }
    for (int half = 0; half < 0x7c00; half++) { /* ties and their neighbours, between any two halves */
        double middle = (half_value(half) + (half + 1 < 0x7c00 ? half_value(half + 1) : 65536.0)) / 2;
        uint32_t bits = bits_of((float)middle);
        CHECK((double)float_of(bits) == middle);
        for (uint32_t near = bits - 1; near != bits + 2; near++) {
            check_to_half(float_of(near));
            check_to_half(-float_of(near));
        }
    }
    static const float special[] = {
        0.0f,      -0.0f,        1e-45f,       0x1p-126f, 0x1p-25f, 0x1.000002p-25f, 0x1.fffffep-26f,
        0x1p-24f,  0x1p-14f,     65504.0f,     65519.99f, 65520.0f, 65536.0f,        3.4e38f,
        0x1p-149f, 0x1.ffcp-15f, 0x1.ffep-15f, 1.0f};
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        check_to_half(special[i]);
        check_to_half(-special[i]);
    }
    CHECK(tess_float_to_half(INFINITY) == 0x7c00 && tess_float_to_half(-INFINITY) == 0xfc00);
    for (int i = 0; i < 1000; i++) { /* whatever the payload, NaN stays NaN */
        uint32_t payload = (uint32_t)pick(&d, 1, 0x7fffff);
        uint16_t half = tess_float_to_half(float_of(0x7f800000u | payload));
        CHECK_MSG((half & 0x7c00) == 0x7c00 && half & 1023, "NaN %x became %04x", payload, half);
    }
}

static void test_bf16(void)
{
    for (int value = 0; value < 65536; value++) {
        float wide = tess_bf16_to_float((uint16_t)value);
        CHECK(bits_of(wide) == (uint32_t)value << 16);
        if (isnan(wide))
            CHECK(isnan(tess_bf16_to_float(tess_float_to_bf16(wide))));
        else
            CHECK_MSG(tess_float_to_bf16(wide) == value, "%04x", value);
    }
    dice d = {4};
    for (int i = 0; i < 300000; i++) {
        uint32_t bits = (uint32_t)roll(&d);
        if (i % 4 == 0)
            bits = (bits & 0xffff0000u) | 0x8000u; /* ties */
        float value = float_of(bits);
        uint16_t got = tess_float_to_bf16(value);
        if (isnan(value)) {
            CHECK_MSG(isnan(tess_bf16_to_float(got)), "%08x", bits);
            continue;
        }
        uint32_t low = bits >> 16, rest = bits & 0xffff;
        uint32_t expected = rest > 0x8000 || (rest == 0x8000 && low & 1) ? low + 1 : low;
        CHECK_MSG(got == expected, "%08x: %04x, expected %04x", bits, got, expected);
    }
    CHECK(isinf(tess_bf16_to_float(tess_float_to_bf16(3.4028235e38f)))); /* rounds up beyond the largest */
    CHECK(isnan(tess_bf16_to_float(tess_float_to_bf16(float_of(0x7f800001u)))));
    CHECK(isnan(tess_bf16_to_float(tess_float_to_bf16(float_of(0xffffffffu)))));
}

static void test_bytes(void)
{
    size_t count = 0;
    tess_tensor dense = tess_tensor_2d(TESS_F32, 2, 5, 7, 3);
    CHECK(tess_tensor_bytes(&dense, &count) && count == 2 * 5 * 7 * 3 * 4);
    tess_tensor part = tess_tensor_channels(dense, 1); /* to behind the last element: not the gap after it */
    CHECK(tess_tensor_bytes(&part, &count) && count == (2 * 5 * 7 * 3 - 2) * 4);
    CHECK(part.stride_w == 3 && part.stride_h == 21 && part.stride_n == 105);
    tess_tensor empty = tess_tensor_2d(TESS_F32, 0, 5, 7, 3);
    CHECK(tess_tensor_bytes(&empty, &count) && count == 0);
    static const struct {
        tess_dtype dtype;
        int64_t n, h, w, c;
        bool fits;
    } cases[] = {
        {TESS_U8, 1, (int64_t)1 << 31, (int64_t)1 << 31, 1, true},
        {TESS_F32, 1, (int64_t)1 << 31, (int64_t)1 << 30, 1, true},
        {TESS_F32, 1, (int64_t)1 << 31, (int64_t)1 << 31, 1, false}, /* 2^64 bytes */
        {TESS_F64, 1, (int64_t)1 << 30, (int64_t)1 << 31, 1, false},
        {TESS_F64, 1, (int64_t)1 << 30, ((int64_t)1 << 31) - 1, 1, true},
        {TESS_BF16, 1, INT64_MAX, 1, 1, true},
        {TESS_F32, 1, INT64_MAX, 1, 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tess_tensor t = tess_tensor_2d(cases[i].dtype, cases[i].n, cases[i].h, cases[i].w, cases[i].c);
        bool fits = tess_tensor_bytes(&t, &count);
        CHECK_MSG(fits == cases[i].fits, "case %zu", i);
        if (fits)
            CHECK(count == (size_t)cases[i].n * (size_t)cases[i].h * (size_t)cases[i].w * (size_t)cases[i].c *
                               tess_dtype_size(cases[i].dtype));
    }
    for (int axis = 0; axis < 4; axis++) { /* any axis may be the one that goes too far */
        tess_tensor t = tess_tensor_2d(TESS_U8, 3, 3, 3, 3);
        t.d = 3;
        int64_t *strides[] = {&t.stride_n, &t.stride_d, &t.stride_h, &t.stride_w};
        CHECK(tess_tensor_bytes(&t, &count));
        *strides[axis] = INT64_MAX / 2 + 1;
        CHECK(!tess_tensor_bytes(&t, &count));
        *strides[axis] = INT64_MAX / 2; /* the product fits, the sum does not */
        CHECK(!tess_tensor_bytes(&t, &count));
    }
}

static void test_names(void)
{
    static const struct {
        tess_dtype dtype;
        const char *name;
        size_t size;
    } cases[] = {{TESS_F32, "F32", 4}, {TESS_F16, "F16", 2}, {TESS_BF16, "BF16", 2}, {TESS_F64, "F64", 8},
                 {TESS_U8, "U8", 1},   {TESS_I8, "I8", 1},   {TESS_U16, "U16", 2},   {TESS_I16, "I16", 2},
                 {TESS_U32, "U32", 4}, {TESS_I32, "I32", 4}, {TESS_I64, "I64", 8},   {TESS_BOOL, "BOOL", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK(strcmp(tess_dtype_name(cases[i].dtype), cases[i].name) == 0 &&
              tess_dtype_size(cases[i].dtype) == cases[i].size);
}

int main(void)
{
    test_every_half();
    test_to_half();
    test_bf16();
    test_bytes();
    test_names();
    return check_end();
}
