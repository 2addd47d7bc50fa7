/* The order of the files of a folder of views, by their names without the suffix: numbers are compared by value,
 * view_2 before view_10, t_0.25 before t_0.5.
 * A '-' is a separator in scan-1, scan-2, ... but a sign in tilt_-30, ..., tilt_+30: it is taken as one if names that
 * begin alike go on with a number, some with '-' and others without, or all with '-' after a '_' or at the beginning.
 * A '.' is a decimal point in t_0.5, but not in run1.9, run1.10, which are counted: no one writes both 0.9 and 0.10. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "job/reconstruct/problem/views.h"

typedef struct view_name {
    char *name;    /* a path, cut where its suffix begins */
    double number; /* the signed number; 0 if there is none */
    bool decimals; /* for all names: a '.' between digits is a decimal point */
    bool has_suffix;
} view_name;

static bool is_digit(char c)
{
    return isdigit((unsigned char)c) != 0;
}

/* Compares the digits after a decimal point: 25 comes before 5. `a` and `b` are moved behind them. */
static int compare_fractions(const char **a, const char **b)
{
    const bool has_a = **a == '.' && is_digit((*a)[1]), has_b = **b == '.' && is_digit((*b)[1]);
    int order = 0;
    *a += has_a;
    *b += has_b;
    while ((has_a && is_digit(**a)) || (has_b && is_digit(**b))) {
        const char one = has_a && is_digit(**a) ? *(*a)++ : '0',
                   other = has_b && is_digit(**b) ? *(*b)++ : '0';
        if (!order)
            order = one - other;
    }
    return order;
}

/* Compares the numbers at the beginning of `a` and `b`, which are moved behind them if they are equal. */
static int compare_digits(const char **a, const char **b, bool decimals)
{
    const char *first_a = *a + strspn(*a, "0"), *first_b = *b + strspn(*b, "0");
    const size_t digits_a = strspn(first_a, "0123456789"), digits_b = strspn(first_b, "0123456789");
    if (digits_a != digits_b)
        return digits_a < digits_b ? -1 : 1;
    const int order = strncmp(first_a, first_b, digits_a);
    *a = first_a + digits_a;
    *b = first_b + digits_b;
    return order || !decimals ? order : compare_fractions(a, b);
}

static int compare_names(const void *one, const void *other)
{
    const view_name *first = one, *second = other;
    if (first->number != second->number)
        return first->number < second->number ? -1 : 1;
    const char *a = first->name, *b = second->name;
    while (*a && *b) {
        if (is_digit(*a) && is_digit(*b)) {
            const int order = compare_digits(&a, &b, first->decimals);
            if (order)
                return order;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    const int rest = (*a != 0) - (*b != 0), spelling = strcmp(first->name, second->name);
    if (rest || spelling)
        return rest ? rest : spelling;
    const size_t length = strlen(first->name) + 1;
    return first->has_suffix && second->has_suffix ? strcmp(first->name + length, second->name + length)
                                                   : first->has_suffix - second->has_suffix;
}

/* Length of the text that all names begin with, up to the number in which they differ, if this number has a sign; -1
 * otherwise. */
static int64_t signed_at(const view_name *list, int64_t count)
{
    const char *first = list[0].name;
    size_t same = strlen(first);
    for (int64_t i = 1; i < count; i++) {
        size_t k = 0;
        while (k < same && list[i].name[k] == first[k])
            k++;
        same = k;
    }
    while (same > 0 && (is_digit(first[same - 1]) || first[same - 1] == '.'))
        same--;
    if (same > 0 && (first[same - 1] == '-' || first[same - 1] == '+'))
        same--;
    bool minus = false, other = false;
    for (int64_t i = 0; i < count; i++) {
        const char *at = list[i].name + same;
        const bool sign = *at == '-' || *at == '+';
        if (!is_digit(at[sign]))
            return -1;
        minus = minus || *at == '-';
        other = other || *at != '-';
    }
    const char before = same > 0 ? first[same - 1] : '/';
    return minus && !is_digit(before) && (other || before == '_' || before == '/') ? (int64_t)same : -1;
}

/* The number at the beginning of `text`, such as -30 or +1.5; no exponent, which a name does not mean. */
static double number_of(const char *text)
{
    double value = 0, place = 1;
    const char *at = text + (*text == '-' || *text == '+');
    for (; is_digit(*at); at++)
        value = 10 * value + (*at - '0');
    if (*at == '.')
        for (at++; is_digit(*at); at++)
            value += (place /= 10) * (*at - '0');
    return *text == '-' ? -value : value;
}

/* Whether each '.' between digits can be a decimal point: one in a number, and where the counts of decimals differ,
 * none of several decimals ends in 0. */
static bool have_decimals(const view_name *list, int64_t count)
{
    size_t fewest = SIZE_MAX, most = 0;
    bool padded = false;
    for (int64_t i = 0; i < count; i++) {
        const char *slash = strrchr(list[i].name, '/'), *at = slash ? slash + 1 : list[i].name;
        while (*(at += strcspn(at, "0123456789"))) {
            at += strspn(at, "0123456789");
            if (*at != '.' || !is_digit(at[1]))
                continue;
            const size_t decimals = strspn(++at, "0123456789");
            at += decimals;
            if (*at == '.' && is_digit(at[1]))
                return false;
            fewest = decimals < fewest ? decimals : fewest;
            most = decimals > most ? decimals : most;
            padded = padded || (decimals > 1 && at[-1] == '0');
        }
    }
    return most > 0 && (fewest == most || !padded);
}

tess_status tess_view_names_sort(char **names, int64_t count, tess_error *error)
{
    view_name *list = tess_small_alloc((size_t)count, sizeof *list);
    if (!list)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld names", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        char *slash = strrchr(names[i], '/'), *suffix = strrchr(slash ? slash : names[i], '.');
        list[i] = (view_name){.name = names[i], .has_suffix = suffix != NULL};
        if (suffix)
            *suffix = '\0';
    }
    const bool decimals = have_decimals(list, count);
    const int64_t at = signed_at(list, count);
    for (int64_t i = 0; i < count; i++) {
        list[i].decimals = decimals;
        list[i].number = at < 0 ? 0 : number_of(list[i].name + at);
    }
    qsort(list, (size_t)count, sizeof *list, compare_names);
    for (int64_t i = 0; i < count; i++) {
        names[i] = list[i].name;
        if (list[i].has_suffix)
            names[i][strlen(names[i])] = '.';
    }
    tess_small_free(list);
    return TESS_OK;
}
