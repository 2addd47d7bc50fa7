#include "base/spelling.h"

#include <limits.h>
#include <string.h>

enum { LONGEST = 32 };

int tess_spelling_distance(const char *a, const char *b)
{
    const size_t m = strlen(a), n = strlen(b);
    int row[LONGEST + 1];
    if (m > LONGEST || n > LONGEST)
        return INT_MAX / 2;
    for (size_t j = 0; j <= n; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= m; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
        }
    }
    return row[n];
}

int tess_spelling_limit(const char *typed)
{
    const size_t length = strlen(typed);
    return length < 5 ? 2 : length < 8 ? 3 : 4;
}
