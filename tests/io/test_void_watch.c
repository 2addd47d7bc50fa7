/* test_void_watch.c: terrain that goes on beyond the limits of outliers, or to a mark, counts as heights. */
#include "io/raster_void_watch.h"

#include <math.h>

#include "check.h"

/* A dome on a flat map, or a constant or short spike of the same height. */
static double high_after(int width, bool constant)
{
    double row[1000];
    for (int i = 0; i < 1000; i++)
        row[i] = i % 10;
    tess_void_rule rule = tess_void_rule_make(TESS_F32, 0, TESS_NODATA_OF_FILE, 0, NULL);
    CHECK(tess_void_find_limits(&rule, row, 1000) == 1000 && rule.limits && rule.high < 1000);
    for (int i = 0; i < 1000; i++)
        row[i] = i % 10;
    for (int i = 0; i < width; i++)
        row[500 + i] = constant ? 9000 : 9000 * (1 - pow(2 * (i + 0.5) / width - 1, 2));
    tess_void_watch watch;
    tess_void_watch_begin(&watch);
    tess_void_watch_row(&watch, &rule, row, 1000);
    if (tess_void_watch_end(&watch, &rule))
        tess_void_rule_add(&rule, &watch);
    return rule.high;
}

/* Terrain that goes on beyond the limits moves them. */
static void test_terrain(void)
{
    CHECK(high_after(20, false) > 9000 && high_after(60, false) > 9000);
    CHECK(high_after(20, true) < 1000 && high_after(3, false) < 1000 && high_after(1, true) < 1000);
}

/* Whether a ramp with this step that passes a mark leaves it void; `jump` is added beside the mark. */
static bool is_void_after(int mark, double step, double jump)
{
    double row[100];
    const double value = tess_void_marks[mark];
    for (int i = 0; i < 100; i++)
        row[i] = i == 50 ? value : value + step * (i - 50) + jump;
    const tess_void_rule made = tess_void_rule_make(TESS_F32, 0, TESS_NODATA_OF_FILE, 0, NULL);
    tess_void_rule rule = made;
    tess_void_watch watch;
    tess_void_watch_begin(&watch);
    tess_void_watch_row(&watch, &rule, row, 100);
    if (tess_void_watch_end(&watch, &rule))
        tess_void_rule_add(&rule, &watch);
    return tess_void_sample(&rule, value);
}

static void test_marks(void)
{
    for (int mark = 0; mark < TESS_VOID_TOPS; mark++) {
        CHECK(!is_void_after(mark, 1, 0) && !is_void_after(mark, 300, 0));
        CHECK(is_void_after(mark, 1, 1100) && is_void_after(mark, -20, 33000) &&
              is_void_after(mark, 0, 1200));
    }
}

int main(void)
{
    test_terrain();
    test_marks();
    return check_end();
}
