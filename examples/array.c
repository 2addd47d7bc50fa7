/* Denoises an image in memory several times with one plan, as a program for video frames would.
 *
 *   array IN.ppm OUT.ppm SIGMA [RUNS] */
#include <stdio.h>
#include <stdlib.h>

#include "tessera.h"

typedef struct picture {
    int width, height;
    unsigned char *pixels; /* red, green, blue */
} picture;

static int read_ppm(const char *path, picture *p)
{
    FILE *file = fopen(path, "rb");
    const int right = file && fscanf(file, "P6 %d %d 255", &p->width, &p->height) == 2 &&
                      fgetc(file) != EOF && p->width > 0 && p->height > 0;
    const size_t bytes = right ? 3 * (size_t)p->width * (size_t)p->height : 0;
    p->pixels = malloc(bytes ? bytes : 1);
    const int done = right && p->pixels && fread(p->pixels, 1, bytes, file) == bytes;
    if (file)
        fclose(file);
    return done;
}

static int write_ppm(const char *path, const picture *p)
{
    FILE *file = fopen(path, "wb");
    const size_t bytes = 3 * (size_t)p->width * (size_t)p->height;
    if (!file)
        return 0;
    const int written = fprintf(file, "P6 %d %d 255\n", p->width, p->height) > 0 &&
                        fwrite(p->pixels, 1, bytes, file) == bytes;
    return fclose(file) == 0 && written;
}

static tess_status denoise(tess_context *context, tess_device **device, tess_model **model,
                           tess_denoiser **plan, picture *p, double sigma, int runs)
{
    /* Once: open a device and load a model. NULL settings mean the defaults. */
    tess_status status = tess_device_open(context, NULL, device);
    tess_model_settings what;
    tess_model_settings_init(&what);
    what.name = "drunet-color-small";
    if (status == TESS_OK)
        status = tess_model_load(*device, &what, model);

    /* Once for each image size: plan. The bytes are known before they are allocated. */
    tess_denoiser_settings settings;
    tess_denoiser_settings_init(&settings);
    settings.height = p->height;
    settings.width = p->width;
    settings.channels = 3;
    settings.element = TESS_ELEMENT_U8;
    if (status == TESS_OK)
        status = tess_denoiser_plan(*model, &settings, plan);
    tess_bytes bytes;
    tess_bytes_init(&bytes);
    tess_denoiser_bytes(*plan, &bytes);
    printf("%s: %.1f MiB, about %.2f s\n", tess_device_name(*device), (double)bytes.total / (1 << 20),
           tess_denoiser_seconds(*plan));

    /* As often as needed: run. Here the result replaces the image. */
    tess_image image;
    tess_image_init(&image, p->pixels, TESS_ELEMENT_U8, p->height, p->width, 3);
    for (int i = 0; i < runs && status == TESS_OK; i++)
        status = tess_denoiser_run(*plan, &image, &image, sigma, NULL);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s IN.ppm OUT.ppm SIGMA [RUNS]\n", argv[0]);
        return 2;
    }
    picture p = {0, 0, NULL};
    if (!read_ppm(argv[1], &p)) {
        fprintf(stderr, "%s: is no binary PPM file of 8 bits\n", argv[1]);
        return 1;
    }
    tess_context *context = NULL;
    tess_device *device = NULL;
    tess_model *model = NULL;
    tess_denoiser *plan = NULL;
    tess_status status = tess_context_create(&context);
    if (status == TESS_OK)
        status = denoise(context, &device, &model, &plan, &p, atof(argv[3]), argc > 4 ? atoi(argv[4]) : 1);
    if (status != TESS_OK)
        fprintf(stderr, "failed: %s\n", tess_context_error(context));
    else if (!write_ppm(argv[2], &p))
        fprintf(stderr, "%s: cannot be written\n", argv[2]);
    tess_denoiser_release(plan);
    tess_model_release(model);
    tess_device_close(device);
    tess_context_destroy(context);
    free(p.pixels);
    return status == TESS_OK ? 0 : 1;
}
