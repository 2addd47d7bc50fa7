/* gdal_api.c: opens libgdal and sets it up for a process that counts its bytes.
 *
 * Measured on Debian 12 (GDAL 3.6, arm64), resident growth: opening the library 29 MiB (its relocations and
 * dependencies), the drivers below 2 MiB, GDALAllRegister 8.5 MiB.
 *
 * Files may come from anybody. Of GDAL's 150 drivers many read more than the file that they are given: addresses on
 * the network, other files, databases. Only those below are registered: formats whose samples are in the file
 * itself, or beside it. Plugins, side files that may redirect (.aux.xml), the network and threads are off, and
 * errors go to our messages instead of standard error. */
#define _GNU_SOURCE
#include "io/gdal_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { NEWEST = 40, OLDEST = 28, CACHE_FLOOR = 256 << 10 };
/* Address space that the library and its dependencies take: 141 MiB on Debian 12, more where GDAL has more drivers. */
enum { LIBRARY_ROOM = 192 << 20 };

tess_gdal_api tess_gdal;

/* In the order in which they are asked. Those that go by names and side files (ENVI takes any file beside a
 * .hdr) come after those that know their files by content. PNG is only for sources of a VRT. */
const char *const tess_gdal_drivers[] = {"GTiff", "JPEG",    "BMP",  "PNM",     "WEBP", "JP2OpenJPEG", "PNG",
                                         "HFA",   "AAIGrid", "ENVI", "SRTMHGT", "EHdr", NULL};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *library;
static bool loaded;
static int64_t cache_shares;

static void CPL_STDCALL be_quiet(CPLErr level, CPLErrorNum number, const char *text)
{
    (void)level, (void)number, (void)text;
}

/* Whether the linker's message says that there is no such library, and not that it could not be loaded. */
static bool is_missing(const char *why, const char *name)
{
    return strncmp(why, name, strlen(name)) == 0 && why[strlen(name)] == ':' && strstr(why, "No such file");
}

static tess_status open_library(tess_error *error)
{
    char name[32] = "libgdal.so", why[256] = "";
    TESS_TRY(tess_gdal_have_room(LIBRARY_ROOM, error)); /* its constructors throw where they get no memory */
    library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    for (int version = NEWEST; !library && version >= OLDEST; version--) {
        const char *text = dlerror();
        if (text && !why[0] && !is_missing(text, name))
            snprintf(why, sizeof why, "%s", text);
        snprintf(name, sizeof name, "libgdal.so.%d", version);
        library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    }
    if (library)
        return TESS_OK;
    if (why[0])
        return tess_fail(error, TESS_UNSUPPORTED,
                         "the GDAL library that this format needs cannot be loaded: %s", why);
    return tess_fail(
        error, TESS_UNSUPPORTED,
        "this format needs the GDAL library (libgdal.so), which is not installed; apt install gdal-bin, or "
        "convert the image to PNG or NPY");
}

static tess_status find_functions(tess_error *error)
{
    const char *missing = NULL;
#define X(name)                                                                                              \
    *(void **)&tess_gdal.name = dlsym(library, #name);                                                       \
    if (!tess_gdal.name)                                                                                     \
        missing = #name;
    TESS_GDAL_FUNCTIONS(X)
#undef X
    if (!missing)
        return TESS_OK;
    return tess_fail(error, TESS_UNSUPPORTED,
                     "the installed GDAL library lacks %s; version 3.4 or newer is needed", missing);
}

static void register_driver(const char *driver)
{
    char name[64];
    void (*enter)(void) = NULL;
    snprintf(name, sizeof name, "GDALRegister_%s", driver);
    *(void **)&enter = dlsym(library, name);
    if (enter) /* a GDAL built without this driver reads the others */
        enter();
}

static void set_up(void)
{
    tess_gdal.CPLSetErrorHandler(be_quiet);
    tess_gdal.CPLSetConfigOption("GDAL_NUM_THREADS", "1");
    tess_gdal.CPLSetConfigOption("GDAL_PAM_ENABLED", "NO");
    tess_gdal.CPLSetConfigOption("GDAL_DRIVER_PATH", "disable");
    tess_gdal.CPLSetConfigOption("GDAL_DISABLE_READDIR_ON_OPEN", "NO");
    /* No name leads to the network, should a file find a way to give one: no address ends like this. */
    tess_gdal.CPLSetConfigOption("CPL_VSIL_CURL_ALLOWED_EXTENSIONS", ".no-network");
    /* Each band costs GDAL about a kilobyte when the file is opened: see TESS_GDAL_ROOM. */
    tess_gdal.CPLSetConfigOption("GDAL_MAX_BAND_COUNT", "16384");
    /* Progressive JPEGs: their coefficients are in held_bytes, so the plan judges them, not GDAL's fixed
     * bound. */
    tess_gdal.CPLSetConfigOption("GDAL_ALLOW_LARGE_LIBJPEG_MEM_ALLOC", "YES");
    tess_gdal.GDALSetCacheMax64(CACHE_FLOOR);
    for (int i = 0; tess_gdal_drivers[i]; i++)
        register_driver(tess_gdal_drivers[i]);
}

tess_status tess_gdal_load(tess_error *error)
{
    pthread_mutex_lock(&lock);
    tess_status status = TESS_OK;
    if (!loaded) {
        if (!library)
            status = open_library(error);
        if (status == TESS_OK)
            status = find_functions(error);
        if (status == TESS_OK) {
            set_up();
            loaded = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

GDALDriverH tess_gdal_add_vrt(void)
{
    static GDALDriverH vrt; /* made once; the caller, who takes it out again, also holds a lock */
    if (!vrt)
        register_driver("VRT");
    else
        tess_gdal.GDALRegisterDriver(vrt);
    return vrt = tess_gdal.GDALGetDriverByName("VRT");
}

void tess_gdal_cache_share(tess_memory *memory, int64_t cache, int64_t counted)
{
    pthread_mutex_lock(&lock);
    cache_shares += cache;
    tess_gdal.GDALSetCacheMax64(CACHE_FLOOR + cache_shares);
    pthread_mutex_unlock(&lock);
    tess_memory_count(memory, TESS_MEM_HOST, counted);
}

tess_status tess_gdal_fail(tess_error *error, tess_status status, const char *what)
{
    const char *text = tess_gdal.CPLGetLastErrorMsg();
    return text && text[0] ? tess_fail(error, status, "%s (%s)", what, text)
                           : tess_fail(error, status, "%s", what);
}

tess_status tess_gdal_fail_write(tess_error *error)
{
    return tess_gdal_fail(error, TESS_IO_FAILED, "cannot be written; is the disk full?");
}
