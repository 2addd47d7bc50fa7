/* The halo table: for each architecture a halo with which tiles change the PSNR of an image against the ground
 * truth by less than 0.01 dB, for the worst image and the worst weight file that we have. One seam causes the
 * same change everywhere, so the change of an image grows with the number of its seams. So the halo is larger
 * along an axis whose tiles are smaller than 160 px on average. Made by bench/studies/halo_study.py on Kodak24
 * (500 px crops; drunet: all 24 images, others: the worst two or four of them).
 * The largest change of an image, in dB:
 *
 *                              tiles of   32      64      128     168 px
 *   drunet  sigma 50, halo 32                                   0.0098
 *           sigma 50, halo 48                   0.0093  0.0035
 *           sigma 50, halo 64           0.0099  0.0039  0.0018
 *   dncnn   sigma 25, halo 8            0.0309  0.0114  0.0059
 *           sigma 25, halo 16           0.0010  0.0005  0.0003
 *   unet    sigma 50, halo 16           0.0072  0.0056  0.0047
 *           sigma 50, halo 32           0.0028  0.0012  0.0009
 *           sigma 50, halo 48           0.0006  0.0004  0.0003
 *
 * drunet is drunet-gray-small in bf16, dncnn is KAIR's: the files that change most. drunet-color-small in bf16
 * (24 images) changes by 0.0041 at 128 px and by 0.0036 at 168 px with halo 32, at 64 px by 0.0016 with halo 48
 * and by 0.0005 with halo 64. unet is unet-color-small in bf16, five images; there is only this one file, so it
 * keeps a reserve.
 *
 * Volumes have a separate column, made by bench/rates/halo_volume.c on the 3-D Shepp-Logan phantom at the same
 * noise levels, with columns of 64 x 64 voxels and slabs of 8 slices, and with drunet-gray-small made 3-D in
 * both ways:
 *
 *   drunet  64 px: 0.0020 dB and 75.4 dB at worst; 32 px: 0.0054 dB (59.1 dB), with other weights 0.017 dB
 *
 * In depth, a network made from a 2-D one needs no halo: its slices are connected only by side taps of 1e-8 and
 * in pairs of slices, which windows on the grid keep together. Slabs of 8 slices agree with the whole to 145
 * dB, or to 123 dB with 512 channels. This follows from its structure, not from its weights. A real 3-D network
 * gets the same halo in depth as in the plane.
 *
 * Files in the study are recognised by a hash of their first values. Any other file gets twice the halo of
 * large tiles; with that, even tiles of 32 px of the known files change by less than 0.01 dB. */
#include "model/halo.h"

#include <string.h>

typedef struct halo_entry {
    const char *architecture;
    int64_t image, small, volume;
} halo_entry;

static const halo_entry table[] = {{"drunet", 32, 64, 64}, {"unet", 32, 48, 32}, {"dncnn", 8, 16, 8}};
static const int64_t SMALL_TILE = 160;

/* FNV-1a over the bits of the first values of the first tensor, which no other file has by chance. */
static uint64_t fingerprint(tess_weights *weights)
{
    float values[16];
    const tess_weight *first = tess_weights_at(weights, 0);
    int64_t count = first->elements < 16 ? first->elements : 16;
    uint64_t hash = 14695981039346656037u;
    if (tess_weights_read(weights, first, 0, count, values, NULL) != TESS_OK)
        return 0;
    for (const unsigned char *p = (const unsigned char *)values; p < (const unsigned char *)(values + count);
         p++)
        hash = (hash ^ *p) * 1099511628211u;
    return hash;
}

static const uint64_t seen_files[] = {
    0xc6cefde0631564cdu, /* kair_dncnn_25 */
    0x8c54b18bdc29f13cu, /* saoyan_dncnn_s15 */
    0xae0d3e480cff1e7cu, /* saoyan_dncnn_s25 */
    0x8d45bcec0fcf3dbau, /* drunet-color-small */
    0xc7ccde527cae7920u, /* drunet-color-tiny */
    0x6b58f9a9d9619838u, /* drunet-gray-small */
    0x5aebcc7a8070b84eu, /* unet-color-small */
};

tess_halo tess_halo_auto(tess_weights *weights, const char *architecture, bool volume)
{
    tess_weights *flat = tess_weights_flat(weights);
    const uint64_t hash = fingerprint(flat ? flat : weights);
    tess_halo halo = {.plane = 64};
    for (size_t i = 0; i < sizeof seen_files / sizeof seen_files[0]; i++)
        halo.seen |= seen_files[i] == hash;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].architecture, architecture) == 0)
            halo = (tess_halo){.plane = volume ? table[i].volume : table[i].image,
                               .small = volume ? table[i].volume : table[i].small,
                               .tile = volume ? 0 : SMALL_TILE,
                               .seen = halo.seen};
    if (!halo.seen)
        halo.plane *= 2;
    if (halo.small < halo.plane)
        halo.small = halo.plane;
    if (volume && !flat)
        halo.depth = halo.plane;
    return halo;
}

int64_t tess_halo_for(const tess_model_net *model, int64_t size, int64_t tiles)
{
    return tiles > 1 && size < tiles * model->halo_tile ? model->halo_small : model->halo;
}
