/* Every launcher of MPI tells its processes how many they are. A program that ignored it would run as many copies of
 * the whole job, all writing the same files. */
#define _GNU_SOURCE
#include "dist/launch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/beside.h"

#ifndef TESSERA_LIBDIR
#define TESSERA_LIBDIR "lib" /* of the installation, beside bin */
#endif

/* In this order: mpirun inside of a Slurm job sees both. */
static const struct {
    const char *size, *rank;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, /* Open MPI */
    {"PMI_SIZE", "PMI_RANK"},                         /* MPICH, Intel MPI, srun with PMI-2 */
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},   /* MVAPICH */
    {"PALS_SIZE", "PALS_RANKID"},                     /* HPE Cray */
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},         /* srun; not set in a batch script itself */
};

static int number_in(const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    const long value = text ? strtol(text, &end, 10) : -1;
    return text && end != text && *end == '\0' && value >= 0 && value < 1 << 24 ? (int)value : -1;
}

tess_launch tess_launch_find(void)
{
    const char *wanted = getenv("TESSERA_RANKS");
    if (wanted && strcmp(wanted, "off") == 0)
        return (tess_launch){0, 1, NULL};
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const int size = number_in(launchers[i].size), rank = number_in(launchers[i].rank);
        if (size > 1 && rank >= 0 && rank < size)
            return (tess_launch){rank, size, launchers[i].size};
        if (size == 1)
            break; /* one process of mpirun in a larger Slurm step */
    }
    return (tess_launch){0, 1, NULL};
}

/* The module in the build folder, in an installation's library folder from bin/, and beside the shared library. */
static bool find_module(char *path, size_t size)
{
    static const char *const beside[] = {"lib/tessera", "../" TESSERA_LIBDIR "/tessera", "tessera"};
    const char *named = getenv("TESSERA_MPI");
    char folder[4096];
    if (named && *named)
        return (size_t)snprintf(path, size, "%s", named) < size;
    for (int i = 0; tess_beside(i, folder, sizeof folder); i++)
        for (size_t k = 0; k < sizeof beside / sizeof beside[0]; k++)
            if ((size_t)snprintf(path, size, "%s/%s/tessera_mpi.so", folder, beside[k]) < size &&
                access(path, R_OK) == 0)
                return true;
    return false;
}

bool tess_dist_has_mpi(void)
{
    char path[4200];
    return find_module(path, sizeof path);
}

tess_status tess_launch_module(const tess_launch *launch, const tess_dist_ops **ops, tess_error *error)
{
    char path[4200];
    if (!find_module(path, sizeof path))
        return tess_fail(error, TESS_UNSUPPORTED,
                         "started as %d ranks (%s), but this installation has no tessera_mpi.so; build "
                         "tessera where an MPI library is installed (Debian: libopenmpi-dev), or start it "
                         "once; TESSERA_RANKS=off makes each process a job of its own",
                         launch->size, launch->variable);
    /* Global: libraries of MPI load parts of themselves that look for its symbols. */
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!module)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "started as %d ranks (%s), but the MPI module cannot be loaded: %s; install the MPI "
            "library that it was built with (Debian: openmpi-bin), or build tessera with this one",
            launch->size, launch->variable, dlerror());
    *ops = dlsym(module, TESS_DIST_MODULE_SYMBOL);
    if (*ops && (*ops)->size == sizeof **ops && strcmp((*ops)->version, TESSERA_VERSION) == 0)
        return TESS_OK;
    return tess_fail(error, TESS_UNSUPPORTED,
                     "%s: belongs to another version of tessera; this is " TESSERA_VERSION, path);
}
