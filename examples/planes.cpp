// From C++: a float32 image with its channels first, as many programs store it, and handles that release themselves.
//
//   planes HEIGHT WIDTH SIGMA < IN.raw > OUT.raw
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tessera.h"

template <auto release> struct releaser {
    template <typename T> void operator()(T *handle) const
    {
        release(handle);
    }
};
template <typename T, auto release> using handle = std::unique_ptr<T, releaser<release>>;

static void check(tess_status status, const tess_context *context)
{
    if (status != TESS_OK)
        throw std::runtime_error(tess_context_error(context));
}

// Wraps a create function of the library so that it returns the handle and throws on failure.
template <typename T, typename Create> static T *make(const tess_context *context, Create create)
{
    T *made = nullptr;
    check(create(&made), context);
    return made;
}

static void denoise(std::vector<float> &pixels, int64_t height, int64_t width, double sigma)
{
    tess_context *created = nullptr;
    check(tess_context_create(&created), nullptr);
    const handle<tess_context, tess_context_destroy> context(created);
    const handle<tess_device, tess_device_close> device(make<tess_device>(
        created, [&](tess_device **out) { return tess_device_open(context.get(), nullptr, out); }));
    const handle<tess_model, tess_model_release> model(make<tess_model>(
        created, [&](tess_model **out) { return tess_model_load(device.get(), nullptr, out); }));
    tess_denoiser_settings settings;
    tess_denoiser_settings_init(&settings);
    settings.height = height;
    settings.width = width;
    settings.channels = 3;
    const handle<tess_denoiser, tess_denoiser_release> plan(make<tess_denoiser>(
        created, [&](tess_denoiser **out) { return tess_denoiser_plan(model.get(), &settings, out); }));
    tess_image image;
    tess_image_init(&image, pixels.data(), TESS_ELEMENT_F32, height, width, 3);
    image.stride_channel = height * width;
    image.stride_height = width;
    image.stride_width = 1;
    check(tess_denoiser_run(plan.get(), &image, &image, sigma, nullptr), created);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s HEIGHT WIDTH SIGMA < IN.raw > OUT.raw\n", argv[0]);
        return 2;
    }
    const int64_t height = std::atoll(argv[1]), width = std::atoll(argv[2]);
    std::vector<float> pixels(static_cast<size_t>(3 * height * width));
    if (std::fread(pixels.data(), sizeof(float), pixels.size(), stdin) != pixels.size())
        return 2;
    try {
        denoise(pixels, height, width, std::atof(argv[3]));
    } catch (const std::exception &error) {
        std::fprintf(stderr, "failed: %s\n", error.what());
        return 1;
    }
    return std::fwrite(pixels.data(), sizeof(float), pixels.size(), stdout) == pixels.size() ? 0 : 1;
}
