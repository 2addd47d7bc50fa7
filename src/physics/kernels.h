/* kernels.h: a list of small blur kernels in a device's memory. One of them at a time is placed around pixel (0, 0)
 * of an image of one channel, whose transform is then the kernel's response. */
#ifndef TESS_PHYSICS_KERNELS_H
#define TESS_PHYSICS_KERNELS_H

#include "device/device.h"
#include "physics/gaussian.h"

/* Sampled values, or a Gaussian if `values` is NULL. Both are divided by their sum. */
typedef struct tess_blur_kernel {
    const double *values;  /* row by row; the centre is in the middle */
    int64_t height, width; /* odd */
    tess_gaussian gaussian;
} tess_blur_kernel;

/* One axis of the kernels and of the image: a kernel wider than the image is folded, as a circular blur requires. */
typedef struct tess_kernel_side {
    int64_t image;
    int64_t length; /* of the kernels as stored */
    int64_t origin; /* index of the centre */
} tess_kernel_side;

typedef struct tess_kernel_piece {
    int64_t from, to; /* offsets in floats, in the kernel and in the image */
} tess_kernel_piece;

typedef struct tess_kernels {
    tess_device *device;
    int64_t count;
    tess_kernel_side rows, columns;
    int64_t first, own; /* only rows [first, first + own) of the image are there: all, or those of a rank */
    tess_kernel_piece pieces[4]; /* the quarters of a kernel, at the corners of the image */
    tess_prepared *clear, *place[4];
} tess_kernels;

/* Pixels on each side of the centre. */
int64_t tess_kernel_reach_rows(const tess_blur_kernel *kernel);
int64_t tess_kernel_reach_columns(const tess_blur_kernel *kernel);
/* The sum of the absolute values when the sum is 1: no frequency is amplified more. */
double tess_kernel_gain(const tess_blur_kernel *kernel);
/* Checks that it can be divided by its sum. `number` is for the message. */
tess_status tess_kernel_check(const tess_blur_kernel *kernel, int64_t number,
                              tess_error *error) TESS_MUST_CHECK;

/* Computes sizes only; creates nothing. */
void tess_kernels_lay_out(tess_kernels *kernels, tess_device *device, int64_t height, int64_t width,
                          const tess_blur_kernel *list, int64_t count);
/* After that: only these rows of the image are there. */
void tess_kernels_take_rows(tess_kernels *kernels, int64_t first, int64_t rows);
/* Bytes on the device for all kernels, and on the host while they are made. */
size_t tess_kernels_bytes(const tess_kernels *kernels);
size_t tess_kernels_making_bytes(const tess_kernels *kernels);
/* Prepares the ops and copies the kernels to `held`. Close it also if this fails. */
tess_status tess_kernels_open(tess_kernels *kernels, const tess_blur_kernel *list, void *held,
                              tess_error *error) TESS_MUST_CHECK;
void tess_kernels_close(tess_kernels *kernels);
/* Where kernel i is in `held`, and how many values it has. */
float *tess_kernels_at(const tess_kernels *kernels, void *held, int64_t i, int64_t *floats);
/* Places kernel i into `image`, a dense height x width image of one channel. */
void tess_kernels_place(const tess_kernels *kernels, const void *held, int64_t i, void *image,
                        tess_stream *stream);

#endif
