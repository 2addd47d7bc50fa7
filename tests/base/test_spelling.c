/* The distance between spellings, and what counts as near. */
#include <string.h>

#include "base/spelling.h"
#include "check.h"

static void test_distance(void)
{
    CHECK(tess_spelling_distance("kernel", "kernel") == 0);
    CHECK(tess_spelling_distance("kernal", "kernel") == 1);
    CHECK(tess_spelling_distance("centr", "centre") == 1 && tess_spelling_distance("centre", "centr") == 1);
    CHECK(tess_spelling_distance("angels", "angles") == 2);
    CHECK(tess_spelling_distance("", "row") == 3 && tess_spelling_distance("row", "") == 3);
    char longer[64] = "";
    memset(longer, 'a', 40);
    CHECK(tess_spelling_distance(longer, longer) > 1000); /* long words are never near */
}

static void test_limit(void)
{
    CHECK(tess_spelling_limit("row") == 2 && tess_spelling_limit("angle") == 3 &&
          tess_spelling_limit("boundary") == 4);
}

int main(void)
{
    test_distance();
    test_limit();
    return check_end();
}
