/* config_diffusion.c: what a configuration that trains a diffusion network for elevation maps leaves out, and checks of its own. */
#include "train/config_impl.h"

#define GIVEN(config, member) tess_config_given(config, offsetof(tess_train_config, member))

tess_status tess_train_config_diffusion(tess_train_config *config, tess_error *error)
{
    if (GIVEN(config, data.sigma) && config->data.sigma[1] > 0)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "data.sigma: is not used for a diffusion network, whose noise levels are fixed; remove it");
    config->data.sigma[0] = config->data.sigma[1] = 0;
    if (!GIVEN(config, data.scales))
        config->data.scales = (tess_train_numbers){2, {1, 0.5}, {0.75, 0.25}};
    if (!GIVEN(config, network.dropout))
        config->network.dropout = 0.1;
    if (!GIVEN(config, init))
        config->init = TESS_INIT_DIFFUSION;
    return TESS_OK;
}

/* Scales are halved from one width to the next. */
static tess_status check_attention(const tess_train_config *config, tess_error *error)
{
    const tess_train_widths *list = &config->network.attention;
    const int64_t most = (int64_t)1 << (config->network.widths.count - 1);
    for (int i = 0; i < list->count; i++) {
        const int64_t factor = list->list[i];
        if (factor > most || (factor & (factor - 1)) || (factor == 0 && list->count > 1))
            return tess_fail(
                error, TESS_BAD_INPUT,
                "network.attention[%d]: expected 1, 2, 4, ... up to %lld for this network, got %lld", i,
                (long long)most, (long long)factor);
    }
    return TESS_OK;
}

tess_status tess_config_complete_diffusion(tess_train_config *config, tess_config_reader *reader)
{
    if (!config->network.widths.count)
        config->network.widths = (tess_train_widths){4, {32, 64, 128, 128}};
    if (config->network.widths.count < 2)
        return tess_fail(reader->error, TESS_BAD_INPUT,
                         "network.widths: expected 2 to 8 widths for diffusion, got %d",
                         config->network.widths.count);
    if (config->network.widths.list[0] % 2)
        return tess_fail(reader->error, TESS_BAD_INPUT,
                         "network.widths[0]: expected an even number for diffusion, got %lld",
                         (long long)config->network.widths.list[0]);
    if (!GIVEN(config, network.blocks))
        config->network.blocks = 2;
    if (config->network.blocks > 16)
        return tess_fail(reader->error, TESS_BAD_INPUT,
                         "network.blocks: expected at most 16 for diffusion, got %lld",
                         (long long)config->network.blocks);
    if (!GIVEN(config, network.attention))
        config->network.attention =
            (tess_train_widths){1, {(int64_t)1 << (config->network.widths.count - 1)}};
    TESS_TRY(check_attention(config, reader->error));
    return tess_train_config_diffusion(config, reader->error);
}
