/* The cache is one JSON file for each (device name, threads, Tessera version). Rates have a date: machines
 * change, so rates older than MOST_DAYS are dropped. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "plan/rates_impl.h"

enum { CLASS_NAME = TESS_RATES_CLASS, MOST_DAYS = 90, DAY = 24 * 3600, USUAL_PIXELS = 1 << 16 };

typedef tess_rate rate;

void tess_rates_set_path(tess_rates *rates)
{
    char key[128], busy[24] = "";
    if (rates->busy > 1)
        snprintf(busy, sizeof busy, "-of-%d", rates->busy);
    snprintf(key, sizeof key, "%s-%s-%d%s", rates->kind, rates->facts.name, rates->facts.threads, busy);
    tess_cache_path(key, rates->path);
}

static const rate *find(const tess_rates *rates, const char *op_class)
{
    for (int64_t i = 0; i < rates->count; i++)
        if (strcmp(rates->rates[i].op_class, op_class) == 0)
            return &rates->rates[i];
    return NULL;
}

bool tess_rates_has(const tess_rates *rates, const char *op_class)
{
    return find(rates, op_class) != NULL;
}

static rate *entry_for(tess_rates *rates, const char *op_class)
{
    rate *known = (rate *)find(rates, op_class);
    if (known)
        return known;
    if (rates->count == rates->capacity) {
        int64_t capacity = rates->capacity ? 2 * rates->capacity : 32;
        rate *more = tess_small_realloc(rates->rates, (size_t)capacity, sizeof *more);
        if (!more)
            return NULL; /* without this rate plans are still right, only their seconds are less exact */
        rates->rates = more;
        rates->capacity = capacity;
    }
    rate *entry = &rates->rates[rates->count++];
    *entry = (rate){.overhead = -1};
    memcpy(entry->op_class, op_class, strlen(op_class) + 1);
    return entry;
}

static double usual_seconds(double overhead, double per_pixel)
{
    return overhead + per_pixel * USUAL_PIXELS;
}

static void set_dated(tess_rates *rates, const char *op_class, double overhead, double per_pixel,
                      int64_t date)
{
    if (!(per_pixel > 0) || !(overhead >= 0) || strlen(op_class) >= CLASS_NAME)
        return;
    rate *entry = entry_for(rates, op_class);
    if (!entry || (entry->overhead >= 0 &&
                   usual_seconds(entry->overhead, entry->per_pixel) <= usual_seconds(overhead, per_pixel)))
        return;
    entry->overhead = overhead;
    entry->per_pixel = per_pixel;
    entry->date = date;
}

void tess_rates_replace(tess_rates *rates, const char *op_class, double overhead, double per_pixel,
                        int64_t date)
{
    rate *known = (rate *)find(rates, op_class);
    if (known)
        known->overhead = -1;
    set_dated(rates, op_class, overhead, per_pixel, date);
}

void tess_rates_set(tess_rates *rates, const char *op_class, double overhead, double per_pixel)
{
    set_dated(rates, op_class, overhead, per_pixel, (int64_t)time(NULL));
}

void tess_rates_read_classes(tess_rates *rates, const tess_json *classes, bool dated)
{
    const int64_t now = (int64_t)time(NULL);
    for (const char *key = NULL; (key = tess_json_next_key(classes, key));) {
        const tess_json *entry = tess_json_get(classes, key);
        const int64_t date = dated ? tess_json_get_int(entry, "date", 0) : now;
        if (date > now || now - date > (int64_t)MOST_DAYS * DAY)
            continue;
        set_dated(rates, key, tess_json_get_double(entry, "overhead_seconds", -1),
                  tess_json_get_double(entry, "seconds_per_pixel", -1), date);
    }
}

void tess_rates_read_cache(tess_rates *rates)
{
    tess_json *record = tess_cache_read(rates->path);
    tess_rates_read_classes(rates, tess_json_get(record, "ops"), true);
    tess_json_free(record);
}

tess_status tess_rates_open(tess_device *device, tess_rates **out, tess_error *error)
{
    tess_rates *rates = tess_small_alloc(1, sizeof *rates);
    *out = rates;
    if (!rates)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the rates");
    rates->device = device;
    rates->known = true;
    snprintf(rates->kind, sizeof rates->kind, "%s", device->kind);
    device->facts(device, &rates->facts);
    tess_rates_set_path(rates);
    tess_rates_read_cache(rates);
    return TESS_OK;
}

void tess_rates_among(tess_rates *rates, int busy)
{
    rates->busy = busy;
    rates->count = 0;
    tess_rates_set_path(rates);
    tess_rates_read_cache(rates);
}

void tess_rates_destroy(tess_rates *rates)
{
    if (!rates)
        return;
    tess_small_free(rates->rates);
    tess_small_free(rates);
}

tess_status tess_rates_save(const tess_rates *rates, tess_error *error)
{
    tess_json *record = tess_json_object(), *ops = tess_json_object();
    tess_json_set_string(&record, "device", rates->facts.name);
    tess_json_set_string(&record, "version", TESSERA_VERSION);
    for (int64_t i = 0; i < rates->count; i++) {
        tess_json *entry = tess_json_object();
        tess_json_set_double(&entry, "overhead_seconds", rates->rates[i].overhead);
        tess_json_set_double(&entry, "seconds_per_pixel", rates->rates[i].per_pixel);
        tess_json_set_int(&entry, "date", rates->rates[i].date);
        tess_json_set(&ops, rates->rates[i].op_class, entry);
    }
    tess_json_set(&record, "ops", ops);
    const tess_status status = tess_cache_write(rates->path, record, error);
    tess_json_free(record);
    return status;
}

double tess_rates_operator(const tess_rates *rates, const char *name, bool *measured)
{
    char op_class[CLASS_NAME];
    snprintf(op_class, sizeof op_class, "operator %s", name);
    const rate *known = find(rates, op_class);
    *measured = *measured && known;
    return known ? known->per_pixel : 1;
}

tess_run_cost tess_rates_cost(const tess_rates *rates, const char *op_class)
{
    const rate *known = find(rates, op_class);
    return known ? (tess_run_cost){known->overhead, known->per_pixel} : (tess_run_cost){0, 0};
}

void tess_rates_set_operator(tess_rates *rates, const char *name, double factor)
{
    char op_class[CLASS_NAME];
    snprintf(op_class, sizeof op_class, "operator %s", name);
    tess_rates_set(rates, op_class, 0, factor);
}

const char *tess_rates_path(const tess_rates *rates)
{
    return rates->path;
}

int64_t tess_rates_count(const tess_rates *rates)
{
    return rates->count;
}

tess_device *tess_rates_device(const tess_rates *rates)
{
    return rates->device;
}

const tess_device_facts *tess_rates_facts(const tess_rates *rates)
{
    return &rates->facts;
}

const char *tess_rates_kind(const tess_rates *rates)
{
    return rates->kind;
}

double tess_rates_pixels(const tess_rates *rates, const tess_op *op)
{
    /* Statistics have one result, whatever the number of pixels. */
    const tess_tensor *out = op->kind == TESS_OP_MOMENTS ? &op->in[0] : &op->out[0];
    const double pixels = (double)out->n * (double)out->d * (double)out->h * (double)out->w;
    /* A transposed convolution computes the columns of its input. */
    const int64_t columns = tess_min_i64(op->in[0].w, out->w);
    if (tess_op_precision(op) != TESS_BF16 || rates->facts.bf16_columns < 2 || columns < 1)
        return pixels;
    return pixels * (double)tess_round_up(columns, rates->facts.bf16_columns) / (double)columns;
}

static double flops_of(const tess_rates *rates, const char *op_class)
{
    const char *type = strrchr(op_class, ' ');
    for (int i = 0; type && i < TESS_RATES_TYPES; i++)
        if (rates->type[i].flops > 0 && strcmp(type + 1, rates->type[i].name) == 0)
            return rates->type[i].flops;
    return rates->facts.flops;
}

double tess_rates_class_seconds(const tess_rates *rates, const char *op_class, const tess_op_amount *amount,
                                bool *measured)
{
    const rate *known = find(rates, op_class);
    if (known)
        return amount->runs * known->overhead + amount->pixels * known->per_pixel;
    *measured = false;
    char kind[CLASS_NAME] = "operator "; /* of the same op with other channels, if it was measured */
    const size_t head = strlen(kind), letters = strcspn(op_class, "0123456789 ");
    memcpy(kind + head, op_class, letters < sizeof kind - head - 1 ? letters : sizeof kind - head - 1);
    const rate *factor = find(rates, kind);
    const bool winograd = rates->kernels.winograd > 0 && strncmp(op_class, "conv3x3/1 ", 10) == 0;
    const double flops = flops_of(rates, op_class) * (winograd ? rates->kernels.winograd : 1);
    return fmax(amount->flops / flops, amount->bytes / rates->facts.bytes) *
               (factor ? factor->per_pixel : 1) +
           amount->runs * rates->kernels.launch;
}

/* Processors compute blocks of output values, and the last round of blocks keeps some of them idle: the operations that
 * would take as long on all of them. */
static double with_idle_units(const tess_rates *rates, const tess_op *op, double flops)
{
    if (!(rates->kernels.units > 0) || !(rates->kernels.unit_outputs > 0))
        return flops;
    const tess_tensor *out = &op->out[0];
    const double blocks = (double)out->n * (double)out->d * (double)out->h * (double)out->w * (double)out->c /
                          rates->kernels.unit_outputs;
    return flops * ceil(blocks / rates->kernels.units) * rates->kernels.units / blocks;
}

tess_op_amount tess_rates_amount(const tess_rates *rates, const tess_op *op)
{
    return (tess_op_amount){1, tess_rates_pixels(rates, op), tess_op_flops(op), tess_op_traffic(op)};
}

double tess_rates_op_seconds(const tess_rates *rates, const tess_op *op, bool *measured)
{
    char op_class[CLASS_NAME];
    tess_op_amount amount = tess_rates_amount(rates, op);
    amount.flops = with_idle_units(rates, op, amount.flops);
    tess_op_class(op, op_class, sizeof op_class);
    return tess_rates_class_seconds(rates, op_class, &amount, measured);
}

double tess_rates_plan_seconds(const tess_rates *rates, const tess_net_plan *plan, bool *measured)
{
    double seconds = 0;
    for (int i = 0; i < tess_net_plan_op_count(plan); i++)
        seconds += tess_rates_op_seconds(rates, tess_net_plan_op(plan, i), measured);
    return seconds;
}
