/* kernels.h: a list of small blur kernels in a device's memory, and one of them at a time laid around pixel (0, 0) of an
 * image of one channel, whose transform is then the kernel's response. */
#ifndef TESS_PHYSICS_KERNELS_H
#define TESS_PHYSICS_KERNELS_H

#include "device/device.h"
#include "physics/gaussian.h"

/* Sampled values, or a Gaussian where there are none. Either is divided by its sum. */
typedef struct tess_blur_kernel {
    const double *values;  /* row by row; the centre is in the middle */
    int64_t height, width; /* odd */
    tess_gaussian gaussian;
} tess_blur_kernel;

/* One side of the kernels on a side of the image: a kernel wider than that is folded, as the circle has it. */
typedef struct tess_kernel_side {
    int64_t image;
    int64_t length; /* of the kernels as they are held */
    int64_t origin; /* where their centre is */
} tess_kernel_side;

typedef struct tess_kernel_piece {
    int64_t from, to; /* in floats, of the kernel and of the image */
} tess_kernel_piece;

typedef struct tess_kernels {
    tess_device *device;
    int64_t count;
    tess_kernel_side rows, columns;
    tess_kernel_piece pieces[4]; /* the quarters of a kernel, around the corners of the image */
    tess_prepared *clear, *place[4];
} tess_kernels;

/* Pixels on each side of the centre. */
int64_t tess_kernel_reach_rows(const tess_blur_kernel *kernel);
int64_t tess_kernel_reach_columns(const tess_blur_kernel *kernel);
/* The sum of the absolute values, once the sum is 1: no frequency is amplified more. */
double tess_kernel_gain(const tess_blur_kernel *kernel);
/* That it can be divided by its sum. `number` is for the message. */
tess_status tess_kernel_check(const tess_blur_kernel *kernel, int64_t number,
                              tess_error *error) TESS_MUST_CHECK;

/* Sizes alone: nothing is made. */
void tess_kernels_lay_out(tess_kernels *kernels, tess_device *device, int64_t height, int64_t width,
                          const tess_blur_kernel *list, int64_t count);
/* Of the device, for all kernels; and of the host, while they are made. */
size_t tess_kernels_bytes(const tess_kernels *kernels);
size_t tess_kernels_making_bytes(const tess_kernels *kernels);
/* The ops, and the kernels into `held`. Close it also when this failed. */
tess_status tess_kernels_open(tess_kernels *kernels, const tess_blur_kernel *list, void *held,
                              tess_error *error) TESS_MUST_CHECK;
void tess_kernels_close(tess_kernels *kernels);
/* Where kernel i lies in `held`, and how many values it has. */
float *tess_kernels_at(const tess_kernels *kernels, void *held, int64_t i, int64_t *floats);
/* Kernel i alone into `image`, a dense height x width of one channel. */
void tess_kernels_place(const tess_kernels *kernels, const void *held, int64_t i, void *image,
                        tess_stream *stream);

#endif
