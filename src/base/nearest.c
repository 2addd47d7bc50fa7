#include "base/nearest.h"

#include <string.h>

enum { LONGEST = 32 };

int tess_word_distance(const char *a, const char *b, int most)
{
    const size_t m = strlen(a), n = strlen(b);
    int row[LONGEST + 1];
    if (m > LONGEST || n > LONGEST)
        return most + 1;
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

int tess_word_limit(const char *word)
{
    return strlen(word) < 5 ? 2 : strlen(word) < 8 ? 3 : 4;
}
