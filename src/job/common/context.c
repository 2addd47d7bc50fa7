#include "job/common/context.h"

#include "base/mem.h"
#include "base/temp.h"

const char *tess_version(void)
{
    return TESSERA_VERSION;
}

tess_status tess_context_create(tess_context **out)
{
    if (!out)
        return TESS_BAD_OPTION;
    *out = tess_small_alloc(1, sizeof **out);
    return *out ? TESS_OK : TESS_NO_MEMORY;
}

void tess_context_destroy(tess_context *context)
{
    tess_small_free(context);
}

const char *tess_context_error(const tess_context *context)
{
    return context ? context->error.text : "there is no context";
}

void tess_emergency_cleanup(void)
{
    tess_temp_remove_all();
}

void tess_record_free(char *record)
{
    tess_small_free(record);
}

void tess_common_init(tess_common *common)
{
    *common = (tess_common){.device = "auto", .precision = "auto"};
}

void tess_denoise_settings_init(tess_denoise_settings *settings)
{
    *settings = (tess_denoise_settings){.sigma = -1, .strength = 1, .halo = TESS_HALO_AUTO};
    tess_common_init(&settings->common);
}
