/* resident.h: the network over the windows of an image or volume that lies in the device's memory: import and export ops
 * move the pixels, nothing passes through the host. */
#ifndef TESS_WINDOW_RESIDENT_H
#define TESS_WINDOW_RESIDENT_H

#include "window/window.h"

/* Both images are (1, d, h, w, c), of the same sizes, strided as they like; samples of any type that the import and export
 * ops take. They must not overlap unless the cut has one window. */
typedef struct tess_resident {
    tess_tensor in, out;
    /* Elements from one channel to the next; 0 and 1: channels lie side by side. Others take an op for each channel. */
    int64_t in_channel_stride, out_channel_stride;
    const void *in_data;
    void *out_data;
    double full_scale;  /* the sample that means 1; 1 for floats */
    bool level_channel; /* the network's last input channel is the noise level, */
    float level;        /* this one */
} tess_resident;

/* Queues everything on the stream, e.g. the caller's own; the caller waits for it. */
tess_status tess_windows_run_resident(tess_windows *windows, const tess_window_net *net, const tess_cut *cut,
                                      const tess_resident *images, tess_stream *stream,
                                      tess_error *error) TESS_MUST_CHECK;

#endif
