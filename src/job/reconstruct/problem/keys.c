/* The entries that an operator knows. An unknown one is refused, with the entry that was probably meant. */
#include <stdio.h>
#include <string.h>

#include "base/spelling.h"
#include "job/reconstruct/problem/read.h"

enum {
    BLUR = TESS_PROBLEM_BLUR,
    RADON = TESS_PROBLEM_RADON,
    VOLUME = TESS_PROBLEM_VOLUME,
    SCAN = RADON | VOLUME,
    ALL = BLUR | SCAN
};

static const struct {
    const char *key;
    int kinds;
} known[] = {
    {"operator", ALL}, {"measurement", ALL},     {"truth", ALL},      {"noise", ALL},       {"range", ALL},
    {"channels", ALL}, {"height", ALL},          {"width", ALL},      {"sigma", BLUR},      {"size", RADON},
    {"circle", RADON}, {"angles", BLUR | RADON}, {"vectors", VOLUME}, {"volume", VOLUME},   {"centre", RADON},
    {"axis", RADON},   {"row", RADON},           {"rotation", RADON}, {"spacing", SCAN},    {"counts", SCAN},
    {"flat", SCAN},    {"dark", SCAN},           {"boundary", BLUR},  {"kernel", BLUR},     {"kernels", BLUR},
    {"axes", BLUR},    {"gains", BLUR},          {"outliers", BLUR},  {"resample", VOLUME}, {"rings", SCAN},
    {"missing", BLUR}, {"saturated", BLUR},      {"frame", BLUR},     {"dead_pixels", SCAN}};
enum { KNOWN = sizeof known / sizeof known[0] };

static tess_status unknown(const char *path, const char *key, int kind, tess_error *error)
{
    char names[320] = "", meant[64] = "";
    size_t used = 0;
    int least = tess_spelling_limit(key);
    for (int i = 0; i < KNOWN; i++) {
        if (!(known[i].kinds & kind))
            continue;
        if (used < sizeof names)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", known[i].key);
        const int far = tess_spelling_distance(key, known[i].key);
        if (far >= least)
            continue;
        least = far;
        snprintf(meant, sizeof meant, "did you mean \"%s\"? ", known[i].key);
    }
    return tess_fail(error, TESS_BAD_INPUT,
                     "%s: \"%.40s\" means nothing to this operator; %sits entries are %s", path, key, meant,
                     names);
}

tess_status tess_problem_check_keys(const char *path, const tess_json *json, tess_problem_kind kind,
                                    tess_error *error)
{
    for (const char *key = tess_json_next_key(json, NULL); key; key = tess_json_next_key(json, key)) {
        int i = 0;
        while (i < KNOWN && !((known[i].kinds & (int)kind) && strcmp(key, known[i].key) == 0))
            i++;
        if (i == KNOWN)
            return unknown(path, key, (int)kind, error);
    }
    static const char *const masks[] = {"missing", "saturated", "frame"};
    const tess_json *dead = tess_json_get(json, "dead_pixels");
    if (dead && !tess_json_is_bool(dead))
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: \"dead_pixels\" must be true (they are filled from others) or false", path);
    const tess_json *noise = tess_json_get(json, "noise"), *circle = tess_json_get(json, "circle"),
                    *rings = tess_json_get(json, "rings"), *outliers = tess_json_get(json, "outliers");
    if (noise && !(tess_json_as_double(noise, -1) >= 0))
        return tess_fail(error, TESS_BAD_INPUT, "%s: \"noise\" must be a number from 0 up", path);
    if (circle && !tess_json_is_bool(circle))
        return tess_fail(error, TESS_BAD_INPUT, "%s: \"circle\" must be true or false", path);
    if (rings && !tess_json_is_bool(rings))
        return tess_fail(error, TESS_BAD_INPUT, "%s: \"rings\" must be true (they are removed) or false",
                         path);
    for (int i = 0; i < 3; i++)
        if (tess_json_get(json, masks[i]) && !tess_json_is_bool(tess_json_get(json, masks[i])))
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: \"%s\" must be true (such values are left out) or false", path, masks[i]);
    if (outliers && !tess_json_is_bool(outliers))
        return tess_fail(error, TESS_BAD_INPUT, "%s: \"outliers\" must be true (they are replaced) or false",
                         path);
    return TESS_OK;
}
