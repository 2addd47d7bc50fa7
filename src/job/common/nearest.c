/* Levenshtein's distance, with swaps of neighbours as one edit: that is what typing goes wrong by. A third of the letters
 * may be wrong, at least one. */
#include "job/common/nearest.h"

#include <string.h>

enum { LONGEST = 31 };

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

static int distance(const char *a, const char *b)
{
    const size_t rows = strlen(a), columns = strlen(b);
    int d[LONGEST + 1][LONGEST + 1];
    if (rows > LONGEST || columns > LONGEST)
        return LONGEST;
    for (size_t i = 0; i <= rows; i++)
        for (size_t k = 0; k <= columns; k++) {
            if (i == 0 || k == 0) {
                d[i][k] = (int)(i + k);
                continue;
            }
            d[i][k] = least_of(d[i - 1][k], d[i][k - 1]) + 1;
            d[i][k] = least_of(d[i][k], d[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                d[i][k] = least_of(d[i][k], d[i - 2][k - 2] + 1);
        }
    return d[rows][columns];
}

const char *tess_nearest(const char *typed, const char *const *names, size_t count)
{
    const int length = (int)strlen(typed), most = length < 6 ? 1 : length / 3;
    const char *best = NULL;
    int least = most + 1;
    for (size_t i = 0; i < count; i++) {
        const int far = names[i] ? distance(typed, names[i]) : LONGEST;
        if (far < least) {
            least = far;
            best = names[i];
        }
    }
    return best;
}
