/* scaling.h: one iteration of plug-and-play reconstruction over ranks, predicted: the gradient of the data term, the denoiser,
 * and what communication adds. Two schemes. Ours: each rank keeps a strip of rows, and the network exchanges rows inside
 * (plan/ranks/timetable.h). That of deepinv 0.4 and 0.5: each rank holds the whole image, denoises some of its overlapping tiles, and
 * images are summed over all ranks after the gradient and after the denoiser; it is here so that the model of the machine can be
 * held against published measurements. */
#ifndef TESS_PLAN_SCALING_H
#define TESS_PLAN_SCALING_H

#include "plan/ranks/blurs.h"
#include "plan/ranks/links.h"
#include "plan/ranks/strips.h"
#include "plan/ranks/timetable.h"
#include "plan/rates.h"

/* DENOISE: the denoiser alone. */
typedef enum tess_scale_kind {
    TESS_SCALE_DENOISE,
    TESS_SCALE_DEBLUR,
    TESS_SCALE_TOMO2D,
    TESS_SCALE_TOMO3D
} tess_scale_kind;

/* What ranks share. ROWS: strips of an image, or of a volume, of which studies may also divide the slices (tess_scale_setup).
 * SLICES: slices of a volume that a 2-D network denoises one by one. SLABS: those of a 3-D network, which exchanges slices. */
typedef enum tess_scale_divide { TESS_DIVIDE_ROWS, TESS_DIVIDE_SLICES, TESS_DIVIDE_SLABS } tess_scale_divide;

typedef struct tess_scale_problem {
    tess_scale_kind kind;
    int64_t depth, height, width, channels;
    int64_t views, rows, columns; /* tomography; rows: of the detector */
    const double
        *vectors;   /* of the views of a volume: physics/rays.h; NULL: a circle, as `reconstruct` makes it */
    double spacing; /* of its voxels; 0: 1 */
    bool parallel;  /* its rays */
    tess_scale_divide divide;
    int64_t planes; /* runs of the network for an image: a gray one takes colours one by one; 0: one */
    double steps;   /* towards the data, each with a gradient, in an iteration; 0: one */
    int64_t blurs;  /* deblur with an unknown boundary: their number; 0: circular, where it does not matter */
    int64_t reach;  /* of their kernels, in rows */
} tess_scale_problem;

/* The problem of this name and size as `tessera reconstruct` would make it: deblur has the shape of a photograph if `square`
 * is not set. False: no such problem. */
bool tess_scale_problem_of(const char *name, int64_t size, bool square, tess_scale_problem *problem);

typedef struct tess_scale_setup {
    const tess_bound *bound;
    int64_t grid[TESS_SPATIAL]; /* of the network */
    const tess_rates *rates;
    tess_links links;
    bool slabs; /* volumes may be divided by slices, as `reconstruct` does, where that is faster */
    int avoid;  /* the most convolutions that may share an exchange; 1: as plans do today */
    /* Of a run, if it is known how it divides an image, and how fast its ranks are: the rates are those of speed 1. Otherwise NULL. */
    const tess_strips *strips;
    tess_pace pace;
} tess_scale_setup;

typedef struct tess_scale_point {
    int ranks, used; /* used: ranks that have something to do */
    int64_t rows;    /* of the largest strip or block, or slices */
    int64_t columns,
        across; /* of the largest block, and of the grid; 0: strips. Only if the denoiser is alone */
    bool slabs; /* slices of a volume are divided instead of rows */
    double gradient, denoiser, other; /* seconds of computing; other: what every rank repeats */
    double gradient_communication, denoiser_communication;
    double seconds; /* of the iteration */
    double bytes;   /* the most that a rank holds */
    double sent;    /* the most bytes that a rank sends inside the denoiser */
    int avoided;    /* the most convolutions that share an exchange */
    bool measured;  /* every rate of the denoiser was measured */
    /* of blurs with an unknown boundary: how ranks share them, and what a step would cost in both ways */
    tess_blurs_way blurs;
    tess_blurs_cost blur_costs[TESS_BLURS_WAYS];
} tess_scale_point;

static inline double tess_scale_communication(const tess_scale_point *p)
{
    return p->gradient_communication + p->denoiser_communication;
}

/* The setup of a network that is bound to a device with these rates. */
tess_scale_setup tess_scale_setup_of(const tess_bound *bound, const tess_net *net, const tess_rates *rates,
                                     const tess_links *links);

/* Where the time goes that ranks lose against an equal share of what `base` takes. */
typedef struct tess_scale_losses {
    double latency, bandwidth; /* seconds that links without latency, or of any rate, would save */
    double
        computing; /* what ranks compute more than their share: repeated work, idle processors in small ops, strips of
                         different sizes */
    const char *binds; /* the most of these in words; "computing" if less than a tenth is lost */
} tess_scale_losses;

/* `quick` and `wide`: the point with such links. */
tess_scale_losses tess_scale_losses_of(const tess_scale_point *point, const tess_scale_point *base,
                                       const tess_scale_point *quick, const tess_scale_point *wide);
/* Such links. */
tess_links tess_scale_without_latency(const tess_links *links);
tess_links tess_scale_without_limit(const tess_links *links);

tess_status tess_scale_ours(const tess_scale_setup *setup, const tess_scale_problem *problem, int ranks,
                            tess_scale_point *point, tess_error *error) TESS_MUST_CHECK;

/* Facts about deepinv's runs that no plan of ours knows; "peer" of a machine file. */
typedef struct tess_scale_peer {
    int64_t operators;         /* that ranks share; the data term has so many */
    double gradient_per_pixel; /* seconds of all operators together, on one rank */
    double repeated_per_pixel; /* seconds of what every rank repeats, whatever their number */
    double call;               /* seconds of a collective call besides its bytes */
    int64_t tile[TESS_SPATIAL], halo[TESS_SPATIAL]; /* tile 0: the image is not cut */
    int64_t batch;
} tess_scale_peer;

/* Tile, halo and batch are not in the file and keep their values. */
tess_status tess_scale_peer_read(const char *path, tess_scale_peer *peer, tess_error *error) TESS_MUST_CHECK;
tess_status tess_scale_deepinv(const tess_scale_setup *setup, const tess_scale_problem *problem,
                               const tess_scale_peer *peer, int ranks, tess_scale_point *point,
                               tess_error *error) TESS_MUST_CHECK;

#endif
