/* The workloads: all verbs, from what any device does in no time to what takes a few seconds on sixteen cores. Most lie
 * around the size at which a card begins to pay, because that is where a wrong choice is made. */
#include "job/study/bench_device.h"

#define NONE   TESS_DATA_NONE
#define IMAGE  TESS_DATA_IMAGE
#define CUBE   TESS_DATA_CUBE
#define CUBE16 TESS_DATA_CUBE16
#define MAP    TESS_DATA_MAP
#define CONFIG TESS_DATA_CONFIG

#define DNCNN(width, depth, crop, batch, steps)                                                              \
    "\"network\":{\"architecture\":\"dncnn\",\"widths\":[" #width "],\"depth\":" #depth                      \
    "},\"data\":{\"folders\":[\"photographs\"],\"crop\":" #crop "},\"batch\":" #batch ",\"steps\":" #steps
#define DRUNET(w1, w2, w3, w4, crop, batch, steps)                                                           \
    "\"network\":{\"architecture\":\"drunet\",\"widths\":[" #w1 "," #w2 "," #w3 "," #w4                      \
    "],\"blocks\":2},\"data\":{\"folders\":[\"photographs\"],\"crop\":" #crop "},\"batch\":" #batch          \
    ",\"steps\":" #steps

const tess_workload tess_workloads[] = {
    {"denoise small 64", "denoise", IMAGE, 1, 64, 3, "sigma 0.1"},
    {"denoise small 192", "denoise", IMAGE, 1, 192, 3, "sigma 0.1"},
    {"denoise small 384", "denoise", IMAGE, 1, 384, 3, "sigma 0.1"},
    {"denoise small 768", "denoise", IMAGE, 1, 768, 3, "sigma 0.1"},
    {"denoise small 768 fp32", "denoise", IMAGE, 1, 768, 3, "sigma 0.1 precision fp32"},
    {"denoise small 1536", "denoise", IMAGE, 1, 1536, 3, "sigma 0.1"},
    {"denoise small 16 files 128", "denoise", IMAGE, 16, 128, 3, "sigma 0.1"},
    {"denoise small 16 files 320", "denoise", IMAGE, 16, 320, 3, "sigma 0.1"},
    {"denoise small 512 in 512M", "denoise", IMAGE, 1, 512, 3, "sigma 0.1 memory 512M"},
    {"denoise drunet 96", "denoise", IMAGE, 1, 96, 3, "sigma 0.1 model random:drunet"},
    {"denoise drunet 256", "denoise", IMAGE, 1, 256, 3, "sigma 0.1 model random:drunet"},
    {"denoise drunet 512 bf16", "denoise", IMAGE, 1, 512, 3, "sigma 0.1 model random:drunet precision bf16"},
    {"denoise dncnn 128", "denoise", IMAGE, 1, 128, 3, "model random:dncnn"},
    {"denoise dncnn 640", "denoise", IMAGE, 1, 640, 3, "model random:dncnn"},
    {"denoise unet 256", "denoise", IMAGE, 1, 256, 3, "model random:unet"},
    {"reconstruct deblur 64", "reconstruct", NONE, 1, 0, 0, "problem deblur size 64 iterations 5"},
    {"reconstruct deblur 160", "reconstruct", NONE, 1, 0, 0, "problem deblur size 160 iterations 5"},
    {"reconstruct deblur 384", "reconstruct", NONE, 1, 0, 0, "problem deblur size 384 iterations 8"},
    {"reconstruct tomo2d 64", "reconstruct", NONE, 1, 0, 0, "problem tomo2d size 64 iterations 5"},
    {"reconstruct tomo2d 192", "reconstruct", NONE, 1, 0, 0, "problem tomo2d size 192 iterations 5"},
    {"reconstruct tomo2d 384", "reconstruct", NONE, 1, 0, 0, "problem tomo2d size 384 iterations 8"},
    {"reconstruct tomo3d 24", "reconstruct", NONE, 1, 0, 0, "problem tomo3d size 24 iterations 3"},
    {"reconstruct tomo3d 64", "reconstruct", NONE, 1, 0, 0, "problem tomo3d size 64 iterations 4"},
    {"fill 1 tile 64, 2 steps", "fill", MAP, 1, 64, 1, "model random:diffusion tile 64 steps 2"},
    {"fill 1 tile 128, 4 steps", "fill", MAP, 1, 128, 1, "model random:diffusion steps 4"},
    {"fill 4 voids, 4 steps", "fill", MAP, 4, 320, 1, "model random:diffusion steps 4"},
    {"fill 9 voids, 10 steps", "fill", MAP, 9, 512, 1, "model random:diffusion steps 10"},
    {"train dncnn 16, 10 steps", "train", CONFIG, 4, 96, 3, DNCNN(16, 5, 32, 4, 10)},
    {"train dncnn 32, 40 steps", "train", CONFIG, 4, 128, 3, DNCNN(32, 8, 40, 8, 40)},
    {"train dncnn 64, 40 steps", "train", CONFIG, 4, 128, 3, DNCNN(64, 12, 48, 8, 40)},
    {"train drunet 16, 10 steps", "train", CONFIG, 4, 96, 3, DRUNET(16, 32, 64, 128, 32, 4, 10)},
    {"train drunet 32, 30 steps", "train", CONFIG, 4, 128, 3, DRUNET(32, 64, 128, 256, 64, 8, 30)},
    {"detect rx 64 x 10", "detect", CUBE, 1, 64, 10, "pipeline rx"},
    {"detect rx 100 x 200", "detect", CUBE16, 1, 100, 200, "pipeline rx"},
    {"detect rx 256 x 50", "detect", CUBE, 1, 256, 50, "pipeline rx"},
    {"detect rx 512 x 100", "detect", CUBE16, 1, 512, 100, "pipeline rx"},
    {"detect rx 1024 x 100", "detect", CUBE16, 1, 1024, 100, "pipeline rx"},
    {"detect rx 1024 x 200", "detect", CUBE16, 1, 1024, 200, "pipeline rx"},
    {"detect rx 40 cubes 128 x 50", "detect", CUBE, 40, 128, 50, "pipeline rx"},
    {"detect lad 128 x 60", "detect", CUBE, 1, 128, 60, "pipeline lad"},
    {"detect lad 768 x 100", "detect", CUBE16, 1, 768, 100, "pipeline lad"},
    {"detect rx-local 32 x 20", "detect", CUBE, 1, 32, 20, "pipeline rx-local"},
    {"detect rx-local 96 x 50", "detect", CUBE, 1, 96, 50, "pipeline rx-local"},
    {"detect rx-local 128 x 100", "detect", CUBE, 1, 128, 100, "pipeline rx-local"},
};

const int tess_workload_count = sizeof tess_workloads / sizeof *tess_workloads;
