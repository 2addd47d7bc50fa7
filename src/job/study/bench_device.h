/* bench_device.h: the parts of the study of `device` auto. A workload is a command line of the program, so that everybody can
 * repeat it by hand; every run is a process of its own, because opening a card is part of what the choice costs. */
#ifndef TESS_JOB_BENCH_DEVICE_H
#define TESS_JOB_BENCH_DEVICE_H

#include "base/json.h"
#include "base/memory.h"
#include "tessera_study.h"

typedef enum tess_workload_data {
    TESS_DATA_NONE,  /* the verb draws its own */
    TESS_DATA_IMAGE, /* one colour image, or a folder of `count` */
    TESS_DATA_CUBE,  /* fp32, or a folder of `count` */
    TESS_DATA_CUBE16,
    TESS_DATA_MAP,   /* an elevation map with `count` voids */
    TESS_DATA_CONFIG /* a training configuration, with a folder of images */
} tess_workload_data;

typedef struct tess_workload {
    const char *name, *verb;
    tess_workload_data data;
    int64_t count, size, channels;
    const char *arguments; /* names and values of options, by turns; of CONFIG: members of the JSON object */
} tess_workload;

extern const tess_workload tess_workloads[];
extern const int tess_workload_count;

enum { TESS_WORKLOAD_ARGUMENTS = 40, TESS_WORKLOAD_PATH = 1024 };

/* The command line of a workload in a folder. */
typedef struct tess_workload_command {
    char text[4096];
    char *list[TESS_WORKLOAD_ARGUMENTS]; /* into `text`; the verb first; NULL ends it */
    int count;
} tess_workload_command;

/* Writes the data of a workload into the folder `FOLDER/in`, and fills the command, whose outputs are in `FOLDER/out`. */
tess_status tess_workload_make(const tess_workload *workload, const char *folder, tess_memory *memory,
                               tess_workload_command *command, tess_error *error) TESS_MUST_CHECK;
/* Removes a folder with all that is in it. */
void tess_workload_remove(const char *folder);

/* Runs the program once, `planned` or for real; *seconds from its start to its end. `machines` are files for
 * TESSERA_MACHINES, or NULL. *record is NULL if it failed, and `error` then has what it said. */
tess_status tess_workload_run(const char *program, const char *folder, const tess_workload_command *command,
                              const char *device, bool planned, const char *machines, double *seconds,
                              tess_json **record, tess_error *error) TESS_MUST_CHECK;

tess_status tess_bench_device(const tess_bench_settings *settings, tess_memory *memory,
                              tess_error *error) TESS_MUST_CHECK;

#endif
