/* Finds the nearest name by edit distance: insertions, deletions, replacements and swaps of neighbours count one each
 * (optimal string alignment). A prefix or a part of a name also counts as near: --mem, --noise. */
#include <string.h>

#include "cli.h"

enum { LONGEST = 31 };

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

static int distance(const char *a, const char *b)
{
    const int rows = (int)strlen(a), columns = (int)strlen(b);
    int d[LONGEST + 1][LONGEST + 1];
    if (rows > LONGEST || columns > LONGEST)
        return LONGEST;
    for (int i = 0; i <= rows; i++)
        for (int k = 0; k <= columns; k++) {
            if (i == 0 || k == 0) {
                d[i][k] = i + k;
                continue;
            }
            d[i][k] = least_of(d[i - 1][k], d[i][k - 1]) + 1;
            d[i][k] = least_of(d[i][k], d[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                d[i][k] = least_of(d[i][k], d[i - 2][k - 2] + 1);
        }
    return d[rows][columns];
}

void cli_guess_try(cli_guess *guess, const char *typed, const char *name)
{
    typed += strspn(typed, "-");
    const char *plain = name + strspn(name, "-");
    const int length = (int)strlen(typed);
    const int limit = length < 6 ? 1 : length / 3;
    int far = distance(typed, plain);
    const char *part = length > 1 ? strstr(plain, typed) : NULL;
    if (part == plain)
        far = least_of(far, 1);
    else if (part && length > 2)
        far = least_of(far, limit);
    if (length > 0 && far <= limit && (!guess->best || far < guess->distance))
        *guess = (cli_guess){name, far};
}
