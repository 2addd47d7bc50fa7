/* cube_wavelengths.c: the units in which headers give wavelengths. Names are those of ENVI and of GDAL. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "io/cube_impl.h"

double tess_wavelength_unit(const char *unit)
{
    static const struct {
        const char *name;
        double nm;
    } units[] = {
        {"nm", 1},
        {"nanometers", 1},
        {"nanometer", 1},
        {"nanometres", 1},
        {"nanometre", 1},
        {"um", 1e3},
        {"micrometers", 1e3},
        {"micrometer", 1e3},
        {"micrometres", 1e3},
        {"micrometre", 1e3},
        {"microns", 1e3},
        {"micron", 1e3},
        {"\xc2\xb5m", 1e3},
        {"\xce\xbcm", 1e3},
        {"\xb5m", 1e3},
        {"mm", 1e6},
        {"millimeters", 1e6},
        {"millimeter", 1e6},
        {"cm", 1e7},
        {"centimeters", 1e7},
        {"m", 1e9},
        {"meters", 1e9},
        {"meter", 1e9},
        {"angstroms", 0.1},
        {"angstrom", 0.1},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(unit, units[i].name) == 0)
            return units[i].nm;
    return 0;
}

bool tess_wavelengths_to_nm(double *values, int count, const char *unit)
{
    double most = 0;
    for (int i = 0; i < count; i++) {
        if (!isfinite(values[i]) || values[i] <= 0)
            return false;
        most = fmax(most, values[i]);
    }
    const bool named = unit && unit[0] && strcasecmp(unit, "unknown") != 0;
    const double nm = named ? tess_wavelength_unit(unit) : most < 100 ? 1e3 : 1;
    for (int i = 0; i < count; i++)
        values[i] *= nm;
    return nm > 0;
}
