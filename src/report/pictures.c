#include "report/pictures.h"

#include "base/mem.h"

tess_status tess_pictures_find(tess_pictures *pictures, const tess_store *store, tess_memory *memory,
                               const char *near, tess_stop *stop, tess_error *error)
{
    (void)pictures, (void)store, (void)memory, (void)near;
    return tess_stop_check(stop, error);
}

void tess_pictures_clear(tess_pictures *pictures)
{
    for (int i = 0; i < pictures->count; i++) {
        tess_small_free(pictures->list[i].name);
        tess_small_free(pictures->list[i].png);
    }
    pictures->count = 0;
}
