/* The order of colours: networks take red, green and blue, and files of satellites often have blue, green and red. */
#include "job/denoise/run/prepared.h"

const short *tess_denoise_rgb_order(const tess_denoise_file *file)
{
    const short *order = file->info.order;
    const bool usual = order[0] <= order[1] && order[1] <= order[2];
    return file->info.rgb && !usual && tess_denoise_colours(&file->info) == 3 &&
                   file->model->model.channels == 3
               ? order
               : NULL;
}

void tess_prepared_reorder(const tess_denoise_file *file, bool back, float *row)
{
    const short *order = tess_denoise_rgb_order(file);
    const int64_t step = 3 + tess_denoise_has_map(file);
    for (int64_t x = 0; order && x < file->info.width; x++, row += step) {
        const float pixel[3] = {row[0], row[1], row[2]};
        for (int k = 0; k < 3; k++)
            row[back ? order[k] : k] = pixel[back ? k : order[k]];
    }
}
