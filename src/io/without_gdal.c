/* without_gdal.c: replaces gdal*.c in a build without GDAL's headers.
 *
 * CMake leaves those files out when it finds no gdal.h; this file looks for the same header and is empty when
 * it exists. Weak symbols alone would not suffice: in a static library the linker takes the first member that
 * it finds. Every format except PNG and NPY then fails with a message that names what is missing. */
#if !__has_include(<gdal.h>) && !__has_include(<gdal/gdal.h>)
#include "io/cube_impl.h"

static tess_status refuse(tess_error *error)
{
    return tess_fail(
        error, TESS_UNSUPPORTED,
        "this build of Tessera has only PNG and NPY; for other formats install libgdal-dev and build again");
}

static tess_status refuse_load(const char *path, tess_error *error)
{
    (void)path;
    return refuse(error);
}

static tess_status refuse_open(tess_memory *memory, const char *path, tess_image_info *info, void **state,
                               tess_error *error)
{
    (void)memory, (void)path, (void)info, (void)state;
    return refuse(error);
}

static tess_status refuse_target(const char *target, const tess_image_info *info, tess_error *error)
{
    (void)target, (void)info;
    return refuse(error);
}

static size_t no_bytes(const char *target, const tess_image_info *info)
{
    (void)target, (void)info;
    return 0;
}

/* Nothing is called after `open` and `accepts` fail, so the other entries stay empty. */
__attribute__((weak))
const tess_read_format tess_read_gdal = {.name = "GDAL", .load = refuse_load, .open = refuse_open};
__attribute__((weak)) const tess_write_format tess_write_gdal = {
    .name = "GDAL", .like_format = &tess_read_gdal, .accepts = refuse_target, .held_bytes = no_bytes};

/* The reader's own words say what is missing. */
tess_status tess_gdal_cube_facts(void *reader_state, tess_cube_facts *facts, tess_error *error)
{
    (void)reader_state;
    *facts = (tess_cube_facts){0};
    return refuse(error);
}

tess_status tess_gdal_cube_explain(const char *path, tess_error *error)
{
    (void)path, (void)error;
    return TESS_OK;
}

#else
typedef int tess_gdal_is_there; /* C requires one declaration in a file */
#endif
