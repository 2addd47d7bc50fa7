/* waves.h: the FFT of an image whose rows lie on several ranks. Each rank transforms its rows; the ranks exchange blocks, so
 * that each gets some columns of the half spectrum, with all rows; and these are transformed. Every line is transformed as in the
 * FFT op, so the spectrum has the bits of the undivided one. No rank holds more than its share of the image. */
#ifndef TESS_PHYSICS_WAVES_H
#define TESS_PHYSICS_WAVES_H

#include "device/device.h"
#include "dist/share.h"

enum { WAVES_STEPS = 4 };

typedef struct tess_waves {
    tess_device *device;
    tess_share *share;
    tess_tensor strip, lines; /* this rank's rows, and their spectra */
    tess_tensor columns;      /* this rank's columns of the spectrum of the image */
    tess_op ops[WAVES_STEPS];
    tess_prepared *step[WAVES_STEPS];
    tess_dist_exchange *exchange;
    tess_dist_transfer *list;
    size_t part_bytes, workspace_at; /* in the scratch: two parts, then the workspace */
    size_t scratch_bytes, held_bytes;
} tess_waves;

/* Computes sizes only; creates nothing. */
tess_status tess_waves_lay_out(tess_waves *waves, tess_device *device, tess_share *share, int64_t width,
                               int64_t channels, tess_error *error) TESS_MUST_CHECK;
/* Close it also if this fails. */
tess_status tess_waves_open(tess_waves *waves, tess_error *error) TESS_MUST_CHECK;
void tess_waves_close(tess_waves *waves);

/* Collective: transforms a strip; returns this rank's columns, which lie in the scratch. */
void *tess_waves_there(const tess_waves *waves, const void *strip, void *scratch, tess_stream *stream);
/* Collective: transforms the columns in the scratch back; their memory is overwritten. */
void tess_waves_back(const tess_waves *waves, void *scratch, void *strip, tess_stream *stream);

#endif
