/* without_yaml.c: takes the place of yaml.c in a build without libyaml. */
#include "base/yaml.h"

tess_status tess_yaml_parse(const char *text, size_t length, tess_json **out, tess_error *error)
{
    (void)text, (void)length;
    *out = NULL;
    return tess_fail(
        error, TESS_UNSUPPORTED,
        "YAML cannot be read: this build has no libyaml (Debian: libyaml-dev, then build again)");
}
