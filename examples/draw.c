/* Draws a picture for the demo, as an NPY file of 8-bit RGB: a night scene with soft and hard edges, fine stripes and
 * flat areas, which show both blur and remaining noise.
 *
 *   draw OUT.npy HEIGHT WIDTH */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double clamp(double v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

/* 1 inside, 0 outside, with a slope one pixel wide. */
static double edge(double distance)
{
    return clamp(0.5 - distance);
}

static void blend(double pixel[3], double r, double g, double b, double amount)
{
    pixel[0] += (r - pixel[0]) * amount;
    pixel[1] += (g - pixel[1]) * amount;
    pixel[2] += (b - pixel[2]) * amount;
}

static void draw_pixel(double y, double x, double h, double w, double pixel[3])
{
    double v = y / h, u = x / w;
    pixel[0] = 0.10 + 0.55 * v * v;
    pixel[1] = 0.14 + 0.30 * v;
    pixel[2] = 0.38 + 0.25 * (1 - v);
    double moon = hypot(y - 0.24 * h, x - 0.72 * w);
    blend(pixel, 0.98, 0.93, 0.75, edge(moon - 0.11 * h));
    blend(pixel, 0.85, 0.78, 0.60, 0.6 * edge(hypot(y - 0.21 * h, x - 0.70 * w) - 0.03 * h));
    double far = h * (0.62 + 0.06 * sin(9 * u) + 0.03 * sin(23 * u + 1));
    blend(pixel, 0.20, 0.24, 0.40, edge(far - y));
    double near = h * (0.74 + 0.05 * sin(5 * u + 2) + 0.015 * sin(41 * u));
    blend(pixel, 0.08, 0.16, 0.14, edge(near - y));
    for (int i = 0; i < 5; i++) { /* towers with lit windows */
        double left = w * (0.08 + 0.17 * i), top = h * (0.45 + 0.06 * ((i * 7) % 4)), side = w * 0.08;
        double inside = edge(fabs(x - left - side / 2) - side / 2) * edge(top - y);
        blend(pixel, 0.16 + 0.03 * i, 0.15, 0.20, inside);
        double wx = fmod(x - left, side / 4) / (side / 4), wy = fmod(y - top, h * 0.04) / (h * 0.04);
        if (inside > 0.99 && wx > 0.3 && wx < 0.75 && wy > 0.3 && wy < 0.7)
            blend(pixel, 0.98, 0.85, 0.45,
                  ((int)((x - left) / (side / 4)) + (int)((y - top) / (h * 0.04)) + i) % 3 ? 0.9 : 0.1);
    }
    if (y > 0.88 * h) /* water: stripes that get finer downwards */
        blend(pixel, 0.25, 0.32, 0.50,
              0.5 + 0.4 * sin((y - 0.88 * h) * (y - 0.88 * h) * 0.02 + 3 * sin(8 * u)));
}

int main(int argc, char **argv)
{
    int height = argc > 2 ? atoi(argv[2]) : 0, width = argc > 3 ? atoi(argv[3]) : 0;
    if (argc != 4 || height < 1 || width < 1) {
        fprintf(stderr, "usage: %s OUT.npy HEIGHT WIDTH\n", argv[0]);
        return 2;
    }
    FILE *file = fopen(argv[1], "wb");
    if (!file) {
        perror(argv[1]);
        return 1;
    }
    char header[118];
    memset(header, ' ', sizeof header);
    char text[118];
    int length = snprintf(text, sizeof text,
                          "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d, 3), }", height, width);
    memcpy(header, text, (size_t)length);
    header[sizeof header - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(header, 1, sizeof header, file);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            double pixel[3];
            draw_pixel(y + 0.5, x + 0.5, height, width, pixel);
            for (int c = 0; c < 3; c++)
                fputc((int)(255 * clamp(pixel[c]) + 0.5), file);
        }
    return fclose(file) == 0 ? 0 : 1;
}
