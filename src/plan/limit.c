#include "plan/limit.h"

#include <math.h>
#include <stdio.h>

static const double MIB = 1 << 20;

tess_size_text tess_size_words(uint64_t bytes)
{
    static const struct {
        uint64_t unit;
        char letter;
    } units[] = {{(uint64_t)1 << 30, 'G'}, {1 << 20, 'M'}, {1 << 10, 'K'}};
    tess_size_text size;
    for (int i = 0; i < 3; i++) {
        const uint64_t unit = units[i].unit;
        if (bytes >= unit && bytes % unit == 0) {
            snprintf(size.text, sizeof size.text, "%llu%c", (unsigned long long)(bytes / unit),
                     units[i].letter);
            return size;
        }
        if (bytes >= unit && bytes % (unit / 2) == 0) {
            snprintf(size.text, sizeof size.text, "%llu.5%c", (unsigned long long)(bytes / unit),
                     units[i].letter);
            return size;
        }
    }
    snprintf(size.text, sizeof size.text, "%llu bytes", (unsigned long long)bytes);
    return size;
}

tess_size_text tess_size_enough(uint64_t bytes)
{
    tess_size_text size;
    snprintf(size.text, sizeof size.text, "%lluM",
             (unsigned long long)(bytes / (1 << 20) + (bytes % (1 << 20) != 0)));
    return size;
}

tess_status tess_over_limit(const tess_shortage *s, tess_error *error)
{
    const uint64_t total = tess_mem_total(&s->bytes) + s->others + s->reserve,
                   needed = s->needed ? s->needed : total;
    char head[96], others[96] = "", io[96] = "";
    if (s->asked)
        snprintf(head, sizeof head, "`memory_limit` %s is too little", tess_size_words(s->asked).text);
    else
        snprintf(head, sizeof head, "%.1fM of free memory are too little",
                 floor(10 * (double)s->limit / MIB) / 10);
    if (s->others)
        snprintf(others, sizeof others, ", %.1fM of %s", (double)s->others / MIB, s->others_name);
    if (s->bytes.by[TESS_MEM_IO])
        snprintf(io, sizeof io, ", %.1fM of rows", (double)s->bytes.by[TESS_MEM_IO] / MIB);
    return tess_fail(
        error, TESS_OVER_LIMIT,
        "%s: %.1fM of weights, %.1fM of activations, %.1fM of workspace%s%s and %.0fM in reserve "
        "make %.1fM at the least; %s%s %s, or %s",
        head, (double)s->bytes.by[TESS_MEM_WEIGHTS] / MIB, (double)s->bytes.by[TESS_MEM_ACTIVATIONS] / MIB,
        (double)s->bytes.by[TESS_MEM_WORKSPACE] / MIB, others, io, (double)s->reserve / MIB,
        (double)total / MIB, s->asked ? "`memory_limit` " : "", tess_size_enough(needed).text,
        s->asked ? "would do" : "are needed", s->advice);
}
