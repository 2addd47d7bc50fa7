/* The meters of the card: busy time and energy grow with work. Where NVML is missing, there is no meter. */
#include "gpu.h"

#include "base/clock.h"

static const size_t BYTES = (size_t)1 << 30;
static const double SECONDS = 2.5;

/* Copies on the card for so long. */
static void work(tess_device *device, const tess_block *block)
{
    tess_error error = {{0}};
    char *data = block->data;
    const double start = tess_clock();
    while (tess_clock() - start < SECONDS) {
        for (int i = 0; i < 20; i++)
            device->memory->copy(device, data, data + BYTES / 2, BYTES / 2, NULL);
        CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
    }
}

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    CHECK(device->meters != NULL);
    tess_meter_reading reading = tess_meter_end(device, NULL);
    CHECK(!reading.has_busy && !reading.has_joules);
    tess_meter *meter = tess_meter_begin(device);
    if (!meter) {
        tess_registry_close(device);
        return check_skip("NVML cannot be opened, or does not know this card");
    }
    tess_error error = {{0}};
    tess_block block;
    CHECK_MSG(device->memory->alloc(device, &block, TESS_MEM_IO, BYTES, &error) == TESS_OK, "%s", error.text);
    if (block.data)
        work(device, &block);
    reading = tess_meter_end(device, meter);
    printf("busy %.2f (%d), %.1f joules (%d)\n", reading.busy, reading.has_busy, reading.joules,
           reading.has_joules);
    CHECK(!reading.has_busy || (reading.busy > 0 && reading.busy <= 1));
    CHECK(!reading.has_joules || reading.joules > 0);
    /* Two meters at once, ended at once: too short for a share of the time. */
    tess_meter *one = tess_meter_begin(device), *two = tess_meter_begin(device);
    reading = tess_meter_end(device, two);
    CHECK(one && two && !reading.has_busy);
    reading = tess_meter_end(device, one);
    CHECK(!reading.has_busy);
    device->memory->free(device, &block);
    tess_registry_close(device);
    return check_end();
}
