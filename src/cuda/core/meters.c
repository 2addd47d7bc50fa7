/* Meters of a card: how much of the time it computed, and its energy, as NVML measures them.
 *
 * NVML's utilisation describes its last sample period, which is a second at most, so a thread reads it until the end and the
 * mean counts; readings of the first second may describe the time before and are left out. Energy is a counter: its
 * difference counts. NVML has its own order of cards, and a process may see only some of them, so the card is found by its
 * place on the bus. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cuda/core/device_impl.h"
#include "cuda/core/nvml.h"

static const double PERIOD = 1;              /* seconds: the longest sample period */
static const long INTERVAL = 50000000;       /* nanoseconds between two readings */
static const size_t STACK = (size_t)1 << 20; /* NVML calls the driver on it */

struct tess_meter {
    const tess_nvml_api *nvml;
    tess_nvml_device card;
    double begin;
    unsigned long long energy;
    bool has_energy, watching;
    pthread_t thread;
    pthread_mutex_t mutex; /* protects `stop`; the readings are the thread's until it ends */
    pthread_cond_t changed;
    bool stop;
    double sum;
    int64_t readings;
};

static void read_rates(tess_meter *meter)
{
    tess_nvml_rates rates = {0};
    const double age = tess_clock() - meter->begin;
    if (age < PERIOD || meter->nvml->nvmlDeviceGetUtilizationRates(meter->card, &rates) != 0)
        return;
    meter->sum += 0.01 * rates.gpu;
    meter->readings++;
}

static void *watch(void *user)
{
    tess_meter *meter = user;
    struct timespec next;
    pthread_mutex_lock(&meter->mutex);
    while (!meter->stop) {
        clock_gettime(CLOCK_MONOTONIC, &next);
        next.tv_nsec += INTERVAL;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        while (!meter->stop && pthread_cond_timedwait(&meter->changed, &meter->mutex, &next) == 0)
            ; /* woken too early */
        if (meter->stop)
            break;
        pthread_mutex_unlock(&meter->mutex);
        read_rates(meter);
        pthread_mutex_lock(&meter->mutex);
    }
    pthread_mutex_unlock(&meter->mutex);
    return NULL;
}

static void start_watching(tess_meter *meter)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&meter->mutex, NULL);
    pthread_cond_init(&meter->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    meter->watching = tess_thread_start(&meter->thread, STACK, watch, meter);
}

static bool read_energy(const tess_meter *meter, unsigned long long *energy)
{
    return meter->nvml->nvmlDeviceGetTotalEnergyConsumption(meter->card, energy) == 0;
}

static tess_meter *meter_begin(tess_device *device)
{
    const tess_nvml_api *nvml = tess_nvml();
    tess_nvml_device card = NULL;
    char id[32] = "";
    tess_cuda_enter(device);
    if (!nvml || cudaDeviceGetPCIBusId(id, sizeof id, tess_cuda_of(device)->index) != cudaSuccess ||
        nvml->nvmlDeviceGetHandleByPciBusId_v2(id, &card) != 0) {
        (void)cudaGetLastError(); /* a later launch would report it */
        return NULL;
    }
    tess_meter *meter = tess_small_alloc(1, sizeof *meter);
    if (!meter)
        return NULL;
    meter->nvml = nvml;
    meter->card = card;
    meter->has_energy = read_energy(meter, &meter->energy);
    meter->begin = tess_clock();
    start_watching(meter);
    return meter;
}

static void meter_end(tess_device *device, tess_meter *meter, tess_meter_reading *reading)
{
    (void)device;
    unsigned long long energy = 0;
    *reading = (tess_meter_reading){0};
    if (meter->has_energy && read_energy(meter, &energy) && energy >= meter->energy) {
        reading->has_joules = true;
        reading->joules = 1e-3 * (double)(energy - meter->energy);
    }
    pthread_mutex_lock(&meter->mutex);
    meter->stop = true;
    pthread_cond_broadcast(&meter->changed);
    pthread_mutex_unlock(&meter->mutex);
    if (meter->watching)
        pthread_join(meter->thread, NULL);
    if (meter->readings > 0) {
        reading->has_busy = true;
        reading->busy = meter->sum / (double)meter->readings;
    }
    pthread_mutex_destroy(&meter->mutex);
    pthread_cond_destroy(&meter->changed);
    tess_small_free(meter);
}

const tess_device_meters tess_cuda_meters = {.begin = meter_begin, .end = meter_end};
