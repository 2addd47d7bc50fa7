/* The order of the files of a folder of views: numbers in their names are compared by value, view_2 before view_10.
 * A '-' is a separator in scan-1, scan-2, ... but a sign in tilt_-30, ..., tilt_+30: it is taken as one if names that
 * begin alike go on with a number, some with '-' and others without. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "job/reconstruct/views.h"

/* Compares numbers in names by value: view_2 comes before view_10. */
static int compare_names(const void *one, const void *other)
{
    const char *a = *(char *const *)one, *b = *(char *const *)other;
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            const char *first_a = a + strspn(a, "0"), *first_b = b + strspn(b, "0");
            const size_t digits_a = strspn(first_a, "0123456789"), digits_b = strspn(first_b, "0123456789");
            if (digits_a != digits_b)
                return digits_a < digits_b ? -1 : 1;
            const int order = strncmp(first_a, first_b, digits_a);
            if (order)
                return order;
            a = first_a + digits_a;
            b = first_b + digits_b;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    const int rest = (*a != 0) - (*b != 0);
    return rest ? rest : strcmp(*(char *const *)one, *(char *const *)other);
}

/* Length of the text that all names begin with, if a signed number follows it; -1 otherwise. */
static int64_t signed_at(char *const *names, int64_t count)
{
    size_t same = strlen(names[0]);
    for (int64_t i = 1; i < count; i++) {
        size_t k = 0;
        while (k < same && names[i][k] == names[0][k])
            k++;
        same = k;
    }
    bool minus = false, other = false;
    for (int64_t i = 0; i < count; i++) {
        const char *at = names[i] + same;
        const bool sign = *at == '-' || *at == '+';
        if (!isdigit((unsigned char)at[sign]))
            return -1;
        minus = minus || *at == '-';
        other = other || *at != '-';
    }
    return minus && other && !(same > 0 && isdigit((unsigned char)names[0][same - 1])) ? (int64_t)same : -1;
}

typedef struct numbered {
    char *name;
    double number;
} numbered;

/* The number at the beginning of `text`, such as -30 or +1.5; no exponent, which a name does not mean. */
static double number_of(const char *text)
{
    double value = 0, place = 1;
    const char *at = text + (*text == '-' || *text == '+');
    for (; isdigit((unsigned char)*at); at++)
        value = 10 * value + (*at - '0');
    if (*at == '.')
        for (at++; isdigit((unsigned char)*at); at++)
            value += (place /= 10) * (*at - '0');
    return *text == '-' ? -value : value;
}

static int compare_numbers(const void *one, const void *other)
{
    const numbered *a = one, *b = other;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return compare_names(&a->name, &b->name);
}

tess_status tess_view_names_sort(char **names, int64_t count, tess_error *error)
{
    const int64_t at = signed_at(names, count);
    if (at < 0) {
        qsort(names, (size_t)count, sizeof *names, compare_names);
        return TESS_OK;
    }
    numbered *list = tess_small_alloc((size_t)count, sizeof *list);
    if (!list)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld names", (long long)count);
    for (int64_t i = 0; i < count; i++)
        list[i] = (numbered){names[i], number_of(names[i] + at)};
    qsort(list, (size_t)count, sizeof *list, compare_numbers);
    for (int64_t i = 0; i < count; i++)
        names[i] = list[i].name;
    tess_small_free(list);
    return TESS_OK;
}
