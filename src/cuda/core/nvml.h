/* nvml.h: the functions in use of NVML, the driver's management library, as a table filled from the library at run time. They
 * are declared here, because they are the same in every version, and the build then does not need NVML's header. */
#ifndef TESS_CUDA_NVML_H
#define TESS_CUDA_NVML_H

typedef struct tess_nvml_card *tess_nvml_device; /* NVML's own handle */

/* Percent of the last sample period in which a kernel ran, and in which memory was read or written. */
typedef struct tess_nvml_rates {
    unsigned gpu, memory;
} tess_nvml_rates;

/* X(name, parameters); all return an NVML result, 0 for success. Energy is in millijoules since the driver was loaded. */
#define TESS_NVML_FUNCTIONS(X)                                                                               \
    X(nvmlInit_v2, (void))                                                                                   \
    X(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, tess_nvml_device *))                                \
    X(nvmlDeviceGetUtilizationRates, (tess_nvml_device, tess_nvml_rates *))                                  \
    X(nvmlDeviceGetTotalEnergyConsumption, (tess_nvml_device, unsigned long long *))

typedef struct tess_nvml_api {
#define X(name, parameters) int(*name) parameters;
    TESS_NVML_FUNCTIONS(X)
#undef X
} tess_nvml_api;

/* Opens and initialises the library at the first call; NULL if it is not installed or does not work. */
const tess_nvml_api *tess_nvml(void);

#endif
