/* gdal_api.c: opens libgdal and configures it for a process that counts its bytes.
 *
 * Resident memory, measured on Debian 12 (GDAL 3.6, arm64): the library 29 MiB (its relocations and
 * dependencies), the drivers below 2 MiB; GDALAllRegister would take 8.5 MiB.
 *
 * Files may come from anyone. Many of GDAL's 150 drivers read more than the file that they are given: network
 * addresses, other files, databases. Only the drivers below are registered: formats whose samples are in the
 * file itself or beside it. Plugins, side files that may redirect (.aux.xml), the network and threads are
 * disabled, and errors go to our messages instead of standard error. */
#define _GNU_SOURCE
#include "io/gdal_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { NEWEST = 40, OLDEST = 28, CACHE_FLOOR = 256 << 10 };
/* Address space of the library and its dependencies: 141 MiB on Debian 12, more where GDAL has more drivers. */
enum { LIBRARY_ROOM = 192 << 20 };

tess_gdal_api tess_gdal;

/* In the order in which GDAL tries them. Drivers that go by names and side files (ENVI takes any file beside a
 * .hdr) come after those that recognise the content. PNG is only for the sources of a VRT. */
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

/* True when the linker's message says that the library does not exist, not that loading it failed. */
static bool is_missing(const char *why, const char *name)
{
    return strncmp(why, name, strlen(name)) == 0 && why[strlen(name)] == ':' && strstr(why, "No such file");
}

static tess_status open_library(tess_error *error)
{
    char name[32] = "libgdal.so", why[256] = "";
    TESS_TRY(tess_gdal_have_room(LIBRARY_ROOM, error)); /* its constructors throw when memory is short */
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
    if (enter) /* a GDAL without this driver can still read the other formats */
        enter();
}

static void set_up(void)
{
    tess_gdal.CPLSetErrorHandler(be_quiet);
    tess_gdal.CPLSetConfigOption("GDAL_NUM_THREADS", "1");
    tess_gdal.CPLSetConfigOption("GDAL_PAM_ENABLED", "NO");
    tess_gdal.CPLSetConfigOption("GDAL_DRIVER_PATH", "disable");
    tess_gdal.CPLSetConfigOption("GDAL_DISABLE_READDIR_ON_OPEN", "NO");
    /* Allows no network address, in case a file manages to name one: no address ends like this. */
    tess_gdal.CPLSetConfigOption("CPL_VSIL_CURL_ALLOWED_EXTENSIONS", ".no-network");
    tess_gdal.OSRSetPROJEnableNetwork(FALSE);
    /* GDAL allocates about a kilobyte for each band when it opens a file: see TESS_GDAL_ROOM. */
    tess_gdal.CPLSetConfigOption("GDAL_MAX_BAND_COUNT", "16384");
    /* The coefficients of progressive JPEGs are part of held_bytes, so the plan limits them, not GDAL's fixed
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
    static GDALDriverH vrt; /* made once; the caller, who deregisters it, also holds a lock */
    if (!vrt)
        register_driver("VRT");
    else
        tess_gdal.GDALRegisterDriver(vrt);
    return vrt = tess_gdal.GDALGetDriverByName("VRT");
}

GDALDriverH tess_gdal_add_writer(const char *name)
{
    pthread_mutex_lock(&lock);
    GDALDriverH driver = tess_gdal.GDALGetDriverByName(name);
    if (!driver) {
        register_driver(name);
        driver = tess_gdal.GDALGetDriverByName(name);
    }
    pthread_mutex_unlock(&lock);
    return driver;
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
