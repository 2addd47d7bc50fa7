/* The library on images in memory: results equal those of the job on files bit for bit; strides, types, results that
 * overwrite inputs, a reused plan, and invalid arguments. */
#define _GNU_SOURCE
#include "base/mem.h"
#include "base/process.h"
#include "library_images.h"
#include "tensor/tensor.h"

enum { H = 44, W = 69, MOST = H * W * 3 };
static const char COLOUR[] = "drunet-color-small", GRAY[] = "drunet-gray-small";

static tess_denoiser_settings settings_for(int64_t channels, tess_element element)
{
    tess_denoiser_settings s;
    tess_denoiser_settings_init(&s);
    s.height = H;
    s.width = W;
    s.channels = channels;
    s.element = element;
    return s;
}

static void run(const handles *h, const tess_denoiser_settings *s, const tess_image *in,
                const tess_image *out, double sigma)
{
    tess_denoiser *plan = NULL;
    tess_status status = tess_denoiser_plan(h->model, s, &plan);
    CHECK_MSG(status == TESS_OK, "%s", tess_context_error(h->context));
    if (status == TESS_OK)
        status = tess_denoiser_run(plan, in, out, sigma, NULL);
    CHECK_MSG(status == TESS_OK, "%s", tess_context_error(h->context));
    tess_denoiser_release(plan);
}

/* Elements, tiles, ranges and models, against files; and written over the input. */
static void equals_files(void)
{
    static const struct {
        tess_element element;
        const char *type;
        size_t size;
        int64_t channels, tile_height, tile_width, halo, batch;
        double low, high, sigma;
        const char *model;
    } cases[] = {
        {TESS_ELEMENT_F32, "<f4", 4, 3, 0, 0, TESS_HALO_AUTO, 0, 0, 0, 0.1, COLOUR},
        {TESS_ELEMENT_F32, "<f4", 4, 3, 32, 48, TESS_HALO_AUTO, 0, 0, 0, 0.1, COLOUR},
        {TESS_ELEMENT_F32, "<f4", 4, 3, 32, 32, TESS_HALO_EXACT, 2, 0, 0, 0.1, COLOUR},
        {TESS_ELEMENT_F32, "<f4", 4, 3, 0, 0, TESS_HALO_AUTO, 0, -1, 3, 0.1, COLOUR},
        {TESS_ELEMENT_F32, "<f4", 4, 3, 0, 0, TESS_HALO_AUTO, 0, 0, 0, TESS_SIGMA_AUTO, COLOUR},
        {TESS_ELEMENT_F32, "<f4", 4, 3, 0, 0, TESS_HALO_AUTO, 0, 0, 0, TESS_SIGMA_AUTO, GRAY},
        {TESS_ELEMENT_F32, "<f4", 4, 3, 0, 0, TESS_HALO_AUTO, 0, 0, 0, 0, COLOUR},
        {TESS_ELEMENT_U8, "|u1", 1, 3, 0, 0, TESS_HALO_AUTO, 0, 0, 0, 0.1, COLOUR},
        {TESS_ELEMENT_U8, "|u1", 1, 3, 32, 32, TESS_HALO_AUTO, 0, 0, 0, 0.1, GRAY},
        {TESS_ELEMENT_U8, "|u1", 1, 2, 0, 0, TESS_HALO_AUTO, 0, 0, 0, 0.1, GRAY},
        {TESS_ELEMENT_U16, "<u2", 2, 1, 32, 64, TESS_HALO_AUTO, 0, 0, 4095, 0.1, GRAY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        handles h = open_handles(cases[i].model, 2);
        tess_denoiser_settings s = settings_for(cases[i].channels, cases[i].element);
        s.tile_height = cases[i].tile_height;
        s.tile_width = cases[i].tile_width;
        s.halo = cases[i].halo;
        s.batch = cases[i].batch;
        s.range_low = cases[i].low;
        s.range_high = cases[i].high;
        static float values[MOST], samples[MOST], mine[MOST], theirs[MOST];
        const int64_t count = H * W * cases[i].channels;
        draw(values, H, W, cases[i].channels, (uint32_t)i);
        for (int64_t k = 0; k < count; k++)
            if (cases[i].size == 1)
                ((uint8_t *)samples)[k] = (uint8_t)(255 * values[k]);
            else if (cases[i].size == 2)
                ((uint16_t *)samples)[k] = (uint16_t)(4095 * values[k]);
            else
                samples[k] = values[k];
        tess_image in, out;
        tess_image_init(&in, samples, s.element, H, W, s.channels);
        tess_image_init(&out, mine, s.element, H, W, s.channels);
        run(&h, &s, &in, &out, cases[i].sigma);
        denoise_files(&s, cases[i].model, cases[i].type, cases[i].size, samples, theirs, cases[i].sigma);
        CHECK_MSG(memcmp(mine, theirs, (size_t)count * cases[i].size) == 0, "case %zu", i);
        run(&h, &s, &in, &in, cases[i].sigma);
        CHECK_MSG(memcmp(samples, theirs, (size_t)count * cases[i].size) == 0, "case %zu, in place", i);
        close_handles(&h);
    }
}

/* The same pixels in another layout: channels first, upside down, a crop of a larger image; and in the device's
 * memory. */
static void takes_strides(void)
{
    handles h = open_handles(COLOUR, 1);
    static float dense[MOST], expected[MOST], planes[MOST], flipped[MOST], large[2 * MOST + 3 * 7],
        result[MOST];
    draw(dense, H, W, 3, 5);
    tess_denoiser_settings s = settings_for(3, TESS_ELEMENT_F32);
    for (int device = 0; device < 2; device++) {
        s.on_device = device; /* on the CPU that is the host's memory */
        for (int tiled = 0; tiled < 2; tiled++) {
            s.tile_height = s.tile_width = tiled ? 32 : 0;
            tess_image in, out, first, up, crop, to;
            tess_image_init(&in, dense, TESS_ELEMENT_F32, H, W, 3);
            tess_image_init(&out, expected, TESS_ELEMENT_F32, H, W, 3);
            tess_image_init(&first, planes, TESS_ELEMENT_F32, H, W, 3);
            first.stride_channel = H * W;
            first.stride_height = W;
            first.stride_width = 1;
            up = in;
            up.data = flipped + (H - 1) * W * 3 + (W - 1) * 3;
            up.stride_height = -W * 3;
            up.stride_width = -3;
            crop = in;
            crop.data = large + 3 * 7;
            crop.stride_height = 2 * W * 3;
            for (int64_t y = 0; y < H; y++)
                for (int64_t x = 0; x < W; x++)
                    for (int64_t c = 0; c < 3; c++) {
                        const float v = dense[(y * W + x) * 3 + c];
                        planes[c * H * W + y * W + x] = v;
                        flipped[((H - 1 - y) * W + W - 1 - x) * 3 + c] = v;
                        large[3 * 7 + (y * 2 * W + x) * 3 + c] = v;
                    }
            tess_image *const views[] = {&first, &up, &crop};
            in.on_device = out.on_device = s.on_device;
            run(&h, &s, &in, &out, 0.1);
            for (int i = 0; i < 3; i++) {
                views[i]->on_device = s.on_device;
                to = out;
                to.data = result;
                memset(result, 0, sizeof result);
                run(&h, &s, views[i], &to, 0.1);
                CHECK_MSG(memcmp(result, expected, sizeof result) == 0, "view %d as input", i);
                run(&h, &s, &in, views[i], 0.1);
            }
            for (int64_t y = 0; y < H; y++)
                for (int64_t x = 0; x < W; x++)
                    for (int64_t c = 0; c < 3; c++) {
                        const float v = expected[(y * W + x) * 3 + c];
                        CHECK(planes[c * H * W + y * W + x] == v);
                        CHECK(flipped[((H - 1 - y) * W + W - 1 - x) * 3 + c] == v);
                        CHECK(large[3 * 7 + (y * 2 * W + x) * 3 + c] == v);
                    }
        }
    }
    close_handles(&h);
}

/* Other element types give what their values in fp32 give, and results are rounded once. */
static void takes_elements(void)
{
    handles h = open_handles(GRAY, 1);
    static float values[H * W], expected[H * W];
    static double doubles[H * W];
    static uint16_t halves[H * W];
    draw(values, H, W, 1, 9);
    for (int64_t i = 0; i < H * W; i++) {
        halves[i] = tess_float_to_half(values[i]);
        values[i] = tess_half_to_float(halves[i]);
        doubles[i] = (double)values[i];
    }
    tess_denoiser_settings s = settings_for(1, TESS_ELEMENT_F32);
    tess_image in;
    tess_image_init(&in, values, TESS_ELEMENT_F32, H, W, 1);
    tess_image out = in;
    out.data = expected;
    run(&h, &s, &in, &out, 0.1);
    s.element = TESS_ELEMENT_F64;
    tess_image_init(&in, doubles, TESS_ELEMENT_F64, H, W, 1);
    run(&h, &s, &in, &in, 0.1);
    s.element = TESS_ELEMENT_F16;
    tess_image_init(&in, halves, TESS_ELEMENT_F16, H, W, 1);
    run(&h, &s, &in, &in, 0.1);
    for (int64_t i = 0; i < H * W; i++) {
        CHECK(doubles[i] == (double)expected[i]);
        CHECK(halves[i] == tess_float_to_half(expected[i]));
    }
    close_handles(&h);
}

/* Slices of a volume are separate images. */
static void takes_slices(void)
{
    handles h = open_handles(GRAY, 2);
    static float volume[3 * H * W], whole[3 * H * W], one[H * W];
    draw(volume, 3 * H, W, 1, 2);
    tess_denoiser_settings s = settings_for(1, TESS_ELEMENT_F32);
    s.tile_height = s.tile_width = 48;
    s.depth = 3;
    tess_image in, out;
    tess_image_init(&in, volume, TESS_ELEMENT_F32, H, W, 1);
    in.depth = 3;
    out = in;
    out.data = whole;
    run(&h, &s, &in, &out, 0.1);
    s.depth = 1;
    for (int z = 0; z < 3; z++) {
        tess_image slice, result;
        tess_image_init(&slice, volume + z * H * W, TESS_ELEMENT_F32, H, W, 1);
        tess_image_init(&result, one, TESS_ELEMENT_F32, H, W, 1);
        run(&h, &s, &slice, &result, 0.1);
        CHECK(memcmp(one, whole + z * H * W, sizeof one) == 0);
    }
    s.depth = 3;
    run(&h, &s, &in, &in, 0.1);
    CHECK(memcmp(volume, whole, sizeof whole) == 0);
    close_handles(&h);
}

static void reuses_a_plan(bool queue)
{
    handles h = open_handles(COLOUR, 2);
    static float in_data[MOST], out_data[MOST], first[MOST];
    draw(in_data, H, W, 3, 1);
    tess_denoiser_settings s = settings_for(3, TESS_ELEMENT_F32);
    s.tile_height = s.tile_width = 64;
    tess_denoiser *plan = NULL;
    CHECK(tess_denoiser_plan(h.model, &s, &plan) == TESS_OK);
    tess_bytes bytes;
    tess_bytes_init(&bytes);
    tess_denoiser_bytes(plan, &bytes);
    CHECK(bytes.total == bytes.weights + bytes.activations + bytes.workspace + bytes.io);
    CHECK(bytes.weights > 0 && bytes.activations > 0 && (bytes.host > 0) == queue);
    CHECK(tess_denoiser_seconds(plan) > 0);
    char *record = NULL;
    CHECK(tess_denoiser_describe(plan, &record) == TESS_OK);
    CHECK(record && strstr(record, "\"tile\"") && strstr(record, "\"peak_bytes\""));
    tess_record_free(record);
    CHECK(tess_denoiser_prepare(plan) == TESS_OK);
    tess_image in, out;
    tess_image_init(&in, in_data, TESS_ELEMENT_F32, H, W, 3);
    tess_image_init(&out, out_data, TESS_ELEMENT_F32, H, W, 3);
    if (queue) /* shapes are prepared when they are met */
        CHECK(tess_denoiser_run(plan, &in, &out, 0.05, NULL) == TESS_OK);
    const uint64_t calls = tess_mem_calls();
    for (int i = 0; i < (queue ? 20 : 50); i++) {
        CHECK(tess_denoiser_run(plan, &in, &out, 0.05 + 0.001 * (i % 10), NULL) == TESS_OK);
        if (i == 0)
            memcpy(first, out_data, sizeof first);
        else if (i % 10 == 0)
            CHECK(memcmp(first, out_data, sizeof first) == 0);
    }
    CHECK_MSG(queue || tess_mem_calls() == calls, "%llu allocations",
              (unsigned long long)(tess_mem_calls() - calls));
    tess_denoiser_release(plan);
    close_handles(&h);
}

#define REFUSES(call, text)                                                                                  \
    CHECK_MSG((call) == TESS_BAD_OPTION && strstr(tess_context_error(h.context), text), "%s",                \
              tess_context_error(h.context))

static void refuses_nonsense(void)
{
    handles h = open_handles(COLOUR, 1);
    static float data[MOST];
    tess_denoiser_settings good = settings_for(3, TESS_ELEMENT_F32), s;
    tess_denoiser *plan = NULL;
    tess_device *device = NULL;
    tess_model *model = NULL;
    tess_device_settings where;
    tess_model_settings what;
    CHECK(tess_device_open(NULL, NULL, &device) == TESS_BAD_OPTION);
    CHECK(tess_context_create(NULL) == TESS_BAD_OPTION);
    CHECK(tess_context_error(NULL) != NULL);
    REFUSES(tess_device_open(h.context, NULL, NULL), "NULL");
    tess_device_settings_init(&where);
    where.size = 0;
    REFUSES(tess_device_open(h.context, &where, &device), "size");
    tess_device_settings_init(&where);
    where.device = "toaster";
    REFUSES(tess_device_open(h.context, &where, &device), "toaster");
    CHECK(device == NULL);
    CHECK(tess_model_load(NULL, NULL, &model) == TESS_BAD_OPTION);
    tess_model_settings_init(&what);
    what.name = NULL;
    REFUSES(tess_model_load(h.device, &what, &model), "name");
    what.name = "no-such-model";
    CHECK(tess_model_load(h.device, &what, &model) == TESS_BAD_INPUT && !model);
    CHECK(tess_denoiser_plan(NULL, &good, &plan) == TESS_BAD_OPTION);
    REFUSES(tess_denoiser_plan(h.model, NULL, &plan), "NULL");
    REFUSES(tess_denoiser_plan(h.model, &good, NULL), "NULL");
    s = good;
    s.height = 0;
    REFUSES(tess_denoiser_plan(h.model, &s, &plan), "height 0");
    s = good;
    s.width = INT64_MAX / 2;
    REFUSES(tess_denoiser_plan(h.model, &s, &plan), "more than");
    s = good;
    s.channels = 4;
    REFUSES(tess_denoiser_plan(h.model, &s, &plan), "channel");
    s = good;
    s.element = (tess_element)77;
    REFUSES(tess_denoiser_plan(h.model, &s, &plan), "element");
    s = good;
    s.range_low = 2;
    s.range_high = 1;
    REFUSES(tess_denoiser_plan(h.model, &s, &plan), "range");
    s = good;
    s.batch = -1;
    REFUSES(tess_denoiser_plan(h.model, &s, &plan), "batch");
    s = good;
    s.memory_limit = 1 << 20;
    CHECK(tess_denoiser_plan(h.model, &s, &plan) == TESS_OVER_LIMIT && !plan);
    CHECK(tess_denoiser_plan(h.model, &good, &plan) == TESS_OK);
    tess_image in, bad;
    tess_image_init(&in, data, TESS_ELEMENT_F32, H, W, 3);
    CHECK(tess_denoiser_run(NULL, &in, &in, 0.1, NULL) == TESS_BAD_OPTION);
    REFUSES(tess_denoiser_run(plan, NULL, &in, 0.1, NULL), "`in`");
    REFUSES(tess_denoiser_run(plan, &in, NULL, 0.1, NULL), "`out`");
    bad = in;
    bad.data = NULL;
    REFUSES(tess_denoiser_run(plan, &bad, &in, 0.1, NULL), "data");
    bad = in;
    bad.width--;
    REFUSES(tess_denoiser_run(plan, &bad, &in, 0.1, NULL), "another plan");
    bad = in;
    bad.on_device = true;
    REFUSES(tess_denoiser_run(plan, &bad, &in, 0.1, NULL), "device");
    bad = in;
    bad.stride_width = 0;
    REFUSES(tess_denoiser_run(plan, &in, &bad, 0.1, NULL), "stride");
    REFUSES(tess_denoiser_run(plan, &in, &in, NAN, NULL), "sigma");
    REFUSES(tess_denoiser_run(plan, &in, &in, -1, NULL), "sigma");
    CHECK(tess_denoiser_describe(NULL, NULL) == TESS_BAD_OPTION);
    CHECK(tess_denoiser_prepare(NULL) == TESS_BAD_OPTION);
    tess_bytes bytes;
    tess_bytes_init(&bytes);
    tess_denoiser_bytes(NULL, &bytes);
    CHECK(bytes.total == 0);
    tess_denoiser_release(plan);
    tess_denoiser_release(NULL);
    tess_model_release(NULL);
    tess_device_close(NULL);
    tess_context_destroy(NULL);
    close_handles(&h);
}

/* A caller that was compiled when the structs were shorter. */
static void takes_older_structs(void)
{
    handles h = open_handles(COLOUR, 1);
    tess_denoiser_settings s = settings_for(3, TESS_ELEMENT_F32);
    s.size = offsetof(tess_denoiser_settings, range_low);
    s.batch = -5; /* behind its end: not looked at */
    tess_denoiser *plan = NULL;
    CHECK(tess_denoiser_plan(h.model, &s, &plan) == TESS_OK);
    tess_bytes bytes = {.size = offsetof(tess_bytes, io), .io = 77};
    tess_denoiser_bytes(plan, &bytes);
    CHECK(bytes.weights > 0 && bytes.io == 77);
    tess_denoiser_release(plan);
    close_handles(&h);
}

int main(void)
{
    /* Then with the CPU treated as a device with separate memory. */
    for (int queue = 0; queue < 2; queue++) {
        setenv("TESSERA_QUEUE", queue ? "1" : "0", 1);
        equals_files();
        takes_strides();
        takes_elements();
        takes_slices();
        reuses_a_plan(queue);
    }
    setenv("TESSERA_QUEUE", "0", 1);
    refuses_nonsense();
    takes_older_structs();
    return check_end();
}
