/* slabs.h: compares an operator whose volume passes through a device in slabs with the CPU's operator on the whole
 * volume: the same values, a matched pair, FDK, and the limit on bytes; on any device. */
#ifndef TESS_TESTS_SLABS_H
#define TESS_TESTS_SLABS_H

#include "adjoint.h"
#include "device/device.h"
#include "physics/rays.h"

static inline void slabs_need(tess_status status, const tess_error *error)
{
    if (status == TESS_OK)
        return;
    fprintf(stderr, "%s\n", error->text);
    exit(1);
}

static inline float *slabs_floats(tess_device *device, tess_block *block, const tess_tensor *t)
{
    tess_error error;
    slabs_need(device->memory->host_alloc(device, block, (size_t)adjoint_count(t) * sizeof(float), &error),
               &error);
    return block->data;
}

static inline double slabs_differ(const float *a, const float *b, int64_t count)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    return sqrt(difference / size);
}

static inline void slabs_compare(tess_device *device, tess_device *cpu, const tess_rays_settings *settings,
                                 size_t bytes, int64_t least_slabs, int64_t least_parts)
{
    tess_operator *slabs = NULL, *whole = NULL;
    tess_error error = {{0}};
    tess_block blocks[4] = {{0}};
    int64_t cuts, parts;
    slabs_need(tess_rays_create_slabs(device, settings, bytes, &slabs, &error), &error);
    slabs_need(tess_rays_create(cpu, settings, &whole, &error), &error);
    tess_rays_cuts(slabs, &cuts, &parts);
    CHECK_MSG(cuts >= least_slabs && parts >= least_parts, "%lld slabs, %lld parts", (long long)cuts,
              (long long)parts);
    /* Besides the stage there are tables; a device may grant more than it is asked for. */
    const size_t tables = (size_t)settings->views * 12 * sizeof(double) + ((size_t)1 << 21) +
                          3 * device->memory->granted(device, 1);
    CHECK_MSG(slabs->held_bytes <= bytes + tables, "%zu held, %zu allowed", slabs->held_bytes, bytes);
    const int64_t columns = adjoint_count(&slabs->image), rows = adjoint_count(&slabs->measurement);
    float *x = slabs_floats(device, &blocks[0], &slabs->image),
          *back = slabs_floats(device, &blocks[1], &slabs->image),
          *y = slabs_floats(device, &blocks[2], &slabs->measurement),
          *seen = slabs_floats(device, &blocks[3], &slabs->measurement);
    float *other = adjoint_floats(rows > columns ? rows : columns);
    void *scratch = adjoint_floats((int64_t)(whole->scratch_bytes / sizeof(float)) + 1);
    for (uint32_t draw = 0; draw < 5; draw++) {
        tess_rng_uniform((tess_rng_key){.seed = 7, .item = draw}, 0, columns, x);
        tess_rng_uniform((tess_rng_key){.seed = 8, .item = draw}, 0, rows, y);
        slabs->table->forward(slabs, x, seen, NULL, NULL);
        slabs->table->adjoint(slabs, y, back, NULL, NULL);
        slabs_need(device->streams->sync(device, NULL, &error), &error);
        const double forward = adjoint_dot(seen, y, rows), adjoint = adjoint_dot(x, back, columns);
        CHECK_MSG(fabs(forward - adjoint) <= 1e-6 * fabs(forward), "<Ax,y> %.9g, <x,A'y> %.9g", forward,
                  adjoint);
    }
    whole->table->forward(whole, x, other, scratch, NULL);
    CHECK_MSG(slabs_differ(seen, other, rows) < 1e-6, "forward differs by %g",
              slabs_differ(seen, other, rows));
    whole->table->adjoint(whole, y, other, scratch, NULL);
    CHECK_MSG(slabs_differ(back, other, columns) < 1e-6, "adjoint differs by %g",
              slabs_differ(back, other, columns));
    slabs->table->inverse(slabs, y, back, NULL, NULL);
    slabs_need(device->streams->sync(device, NULL, &error), &error);
    whole->table->inverse(whole, y, other, scratch, NULL);
    CHECK_MSG(slabs_differ(back, other, columns) < 1e-5, "FDK differs by %g",
              slabs_differ(back, other, columns));
    for (int i = 0; i < 4; i++)
        device->memory->host_free(device, &blocks[i]);
    free(other), free(scratch);
    tess_operator_destroy(slabs);
    tess_operator_destroy(whole);
}

static inline void check_slabs(tess_device *device, tess_device *cpu)
{
    enum { VIEWS = 11 };
    double vectors[VIEWS * 12];
    tess_operator *op = NULL;
    tess_error error = {{0}};
    tess_rays_circle(VIEWS, 60, 40, 1.4, vectors);
    tess_rays_settings settings = {.geometry = TESS_CONE_3D,
                                   .depth = 29,
                                   .height = 21,
                                   .width = 34,
                                   .spacing = 1,
                                   .views = VIEWS,
                                   .rows = 37,
                                   .columns = 41,
                                   .vectors = vectors};
    slabs_compare(device, cpu, &settings, (size_t)64 << 20, 1, 1); /* all of it at once */
    slabs_compare(device, cpu, &settings, 130 << 10, 1, 2);
    slabs_compare(device, cpu, &settings, 80 << 10, 2, 1);
    slabs_compare(device, cpu, &settings, 56 << 10, 2, 2);
    for (int i = 0; i < VIEWS; i++) /* the way that the middle ray goes */
        for (int k = 0; k < 3; k++)
            vectors[12 * i + k] = vectors[12 * i + 3 + k] - vectors[12 * i + k];
    settings.geometry = TESS_PARALLEL_3D;
    slabs_compare(device, cpu, &settings, 56 << 10, 2, 2);
    CHECK(tess_rays_create_slabs(device, &settings, 4096, &op, &error) == TESS_OVER_LIMIT);
    CHECK(!op && strstr(error.text, "do not fit"));
}

#endif
