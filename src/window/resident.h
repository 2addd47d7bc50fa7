/* resident.h: runs the network over the windows of an image or volume in the device's memory. Import and export
 * ops move the pixels; nothing passes through the host. */
#ifndef TESS_WINDOW_RESIDENT_H
#define TESS_WINDOW_RESIDENT_H

#include "window/window.h"

/* Both images are (1, d, h, w, c), of the same sizes, with any strides, and samples of any type that the import
 * and export ops accept. They must not overlap unless the cut has one window. */
typedef struct tess_resident {
    tess_tensor in, out;
    /* Elements from one channel to the next. 0 and 1: channels are interleaved. Other strides need an op for
     * each channel. */
    int64_t in_channel_stride, out_channel_stride;
    const void *in_data;
    void *out_data;
    double full_scale;               /* the sample that means 1; 1 for floats */
    bool level_channel;              /* the network's last input channel is the noise level, */
    float level;                     /* this level */
    const tess_exchanger *exchanger; /* for a cut with neighbours; else NULL */
    void *exchange_user;
} tess_resident;

/* Queues all work on the stream, which may be the caller's; the caller waits for it. */
tess_status tess_windows_run_resident(tess_windows *windows, const tess_window_net *net, const tess_cut *cut,
                                      const tess_resident *images, tess_stream *stream,
                                      tess_error *error) TESS_MUST_CHECK;

#endif
