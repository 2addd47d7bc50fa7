/* test_rates.c: rates are stored in the cache and read again; a damaged cache is ignored; a folder that cannot be
 * written is not an error; seconds grow with the pixels, measured or not. */
#define _POSIX_C_SOURCE 200809L
#include "plan/rates.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "counter.h"
#include "support.h"

static tess_device *device;
static char folder[256], cache[300];

static tess_rates *open_rates(void)
{
    tess_rates *rates = NULL;
    tess_error error = {{0}};
    CHECK_MSG(tess_rates_open(device, &rates, &error) == TESS_OK, "%s", error.text);
    return rates;
}

static tess_op conv_of(int64_t side, int64_t in, int64_t out)
{
    tess_op op = {.kind = TESS_OP_CONV,
                  .inputs = 1,
                  .outputs = 1,
                  .kernel = {1, 3, 3},
                  .stride = {1, 1, 1},
                  .pad_before = {0, 1, 1}};
    memcpy(op.pad_after, op.pad_before, sizeof op.pad_after);
    op.in[0] = tess_tensor_2d(TESS_F32, 1, side, side, in);
    op.out[0] = tess_tensor_2d(TESS_F32, 1, side, side, out);
    return op;
}

static int files_in(const char *name)
{
    DIR *entries = opendir(name);
    int count = 0;
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        count += entry->d_name[0] != '.';
    if (entries)
        closedir(entries);
    return count;
}

static void check_growing(const tess_rates *rates, int64_t in, int64_t out, bool known)
{
    double last = 0;
    for (int64_t side = 1; side <= 4096; side *= 2) {
        const tess_op op = conv_of(side, in, out);
        bool measured = true;
        double seconds = tess_rates_op_seconds(rates, &op, &measured);
        CHECK_MSG(seconds > last && isfinite(seconds) && measured == known, "%lld pixels: %g after %g",
                  (long long)(side * side), seconds, last);
        last = seconds;
    }
}

static void test_kept(void)
{
    tess_rates *rates = open_rates();
    CHECK(tess_rates_count(rates) == 0 && tess_rates_device(rates) == device);
    CHECK(strncmp(tess_rates_path(rates), cache, strlen(cache)) == 0);
    const tess_op op = conv_of(100, 64, 64);
    char name[64];
    tess_op_class(&op, name, sizeof name);
    tess_rates_set(rates, name, 3e-5, 1.25e-8);
    tess_rates_set(rates, "another \"class\" \\ of op", 0, 0x1.23456789abcdep-30);
    tess_rates_set(rates, name, 1, 1);   /* the faster one stays */
    tess_rates_set(rates, "zero", 0, 0); /* and nonsense does not enter */
    tess_rates_set(rates, "nan", 0, NAN);
    tess_rates_set(rates, "less", -1, 1);
    tess_rates_set(rates, "a name that is a good deal longer than the classes of ops that there are", 0, 1);
    CHECK(tess_rates_count(rates) == 2 && tess_rates_has(rates, name) && !tess_rates_has(rates, "nan"));
    check_growing(rates, 64, 64, true);
    check_growing(rates, 3, 64, false);
    (void)tess_rates_save(rates, NULL);
    CHECK(access(tess_rates_path(rates), R_OK) == 0 && files_in(cache) == 1); /* no temporary file is left */
    tess_rates *again = open_rates();
    CHECK(tess_rates_count(again) == 2 && tess_rates_has(again, "another \"class\" \\ of op"));
    bool measured[2] = {true, true};
    CHECK(tess_rates_op_seconds(again, &op, &measured[0]) == tess_rates_op_seconds(rates, &op, &measured[1]));
    CHECK_MSG(fabs(tess_rates_op_seconds(again, &op, &measured[0]) - (3e-5 + 1.25e-8 * 1e4)) < 1e-15, "%g",
              tess_rates_op_seconds(again, &op, &measured[0]));
    CHECK(measured[0] && measured[1]);
    for (int i = 0; i < 300; i++) { /* many */
        snprintf(name, sizeof name, "class %d", i);
        tess_rates_set(again, name, i, i + 1);
    }
    (void)tess_rates_save(again, NULL);
    tess_rates_destroy(again);
    again = open_rates();
    CHECK(tess_rates_count(again) == 302 && tess_rates_has(again, "class 299") && files_in(cache) == 1);
    tess_rates_destroy(again);
    tess_rates_destroy(rates);
    tess_rates_destroy(NULL);
}

/* Of two measurements the faster one is kept, whichever came first. */
static void test_best(void)
{
    tess_rates *rates = open_rates();
    bool measured = true;
    tess_rates_set_operator(rates, "slide", 3);
    tess_rates_set_operator(rates, "slide", 2);
    tess_rates_set_operator(rates, "slide", 5);
    CHECK(tess_rates_operator(rates, "slide", &measured) == 2 && measured);
    CHECK(tess_rates_operator(rates, "other", &measured) == 1 && !measured);
    tess_rates_destroy(rates);
}

/* Rates of busy processes are kept apart from those of one alone, which are faster and would replace them. */
static void test_busy(void)
{
    tess_rates *rates = open_rates();
    const char *name = "busy f32 1 1";
    tess_rates_set(rates, name, 0, 1e-9);
    CHECK(tess_rates_save(rates, NULL) == TESS_OK);
    tess_rates_among(rates, 16);
    CHECK(!tess_rates_has(rates, name));
    tess_rates_set(rates, name, 0, 3e-9);
    CHECK(tess_rates_save(rates, NULL) == TESS_OK);
    tess_rates_destroy(rates);
    rates = open_rates();
    CHECK(fabs(tess_rates_cost(rates, name).per_pixel - 1e-9) < 1e-15);
    tess_rates_among(rates, 16);
    CHECK(fabs(tess_rates_cost(rates, name).per_pixel - 3e-9) < 1e-15);
    tess_rates_among(rates, 4);
    CHECK(!tess_rates_has(rates, name));
    CHECK(remove(tess_rates_path(rates)) != 0);
    tess_rates_among(rates, 16);
    CHECK(remove(tess_rates_path(rates)) == 0);
    tess_rates_among(rates, 1);
    CHECK(remove(tess_rates_path(rates)) == 0);
    tess_rates_destroy(rates);
}

static void test_damaged(void)
{
    char dated[128];
    snprintf(dated, sizeof dated,
             "{\"ops\":{\"a\":{\"date\":%lld,\"overhead_seconds\":0,\"seconds_per_pixel\":1e-9},\"b\":7}}",
             (long long)time(NULL));
    const struct {
        const char *text;
        int64_t entries;
    } cases[] = {
        {"", 0},
        {"{", 0},
        {"not json at all", 0},
        {"[]", 0},
        {"null", 0},
        {"{\"ops\":[1,2,3]}", 0},
        {"{\"ops\":\"conv\"}", 0},
        {"{\"ops\":{\"a\":1,\"b\":[],\"c\":{}}}", 0},
        {"{\"ops\":{\"a\":{\"overhead_seconds\":\"1\",\"seconds_per_pixel\":1}}}", 0},
        {"{\"ops\":{\"a\":{\"overhead_seconds\":-1,\"seconds_per_pixel\":1}}}", 0},
        {"{\"ops\":{\"a\":{\"overhead_seconds\":1,\"seconds_per_pixel\":0}}}", 0},
        {"{\"ops\":{\"a\":{\"overhead_seconds\":1,\"seconds_per_pixel\":1}}} trailing", 0},
        {"{\"ops\":{\"a\":{\"overhead_seconds\":0,\"seconds_per_pixel\":1e-9}}}", 0}, /* undated */
        {"{\"ops\":{\"a\":{\"date\":9e15,\"overhead_seconds\":0,\"seconds_per_pixel\":1e-9}}}", 0},
        {dated, 1},
    };
    tess_rates *rates = open_rates();
    char path[1300];
    snprintf(path, sizeof path, "%s", tess_rates_path(rates));
    tess_rates_destroy(rates);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes file = {0};
        put_text(&file, cases[i].text);
        save(path, &file);
        drop(&file);
        rates = open_rates();
        CHECK_MSG(tess_rates_count(rates) == cases[i].entries, "%s: %lld", cases[i].text,
                  (long long)tess_rates_count(rates));
        tess_rates_destroy(rates);
    }
    bytes noise = {0};
    dice d = {6};
    while (noise.count < 3000000)
        put_le(&noise, roll(&d), 8);
    save(path, &noise);
    drop(&noise);
    rates = open_rates();
    CHECK(tess_rates_count(rates) == 0);
    tess_rates_set(rates, "one", 1, 1);
    (void)tess_rates_save(rates, NULL); /* what was damaged is replaced */
    tess_rates_destroy(rates);
    rates = open_rates();
    CHECK(tess_rates_count(rates) == 1);
    tess_rates_destroy(rates);
    CHECK(unlink(path) == 0 && mkdir(path, 0777) == 0); /* a folder where the file should be */
    rates = open_rates();
    CHECK(tess_rates_count(rates) == 0);
    tess_rates_set(rates, "one", 1, 1);
    (void)tess_rates_save(rates, NULL);
    CHECK(files_in(cache) == 1 && tess_rates_count(rates) == 1);
    tess_rates_destroy(rates);
    CHECK(rmdir(path) == 0);
}

/* The folder's parent is a file: nothing can be made there, by root neither. */
static void test_unwritable(void)
{
    char file[300], below[400];
    bytes nothing = {0};
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(below, sizeof below, "%s/cache", file);
    save(file, &nothing);
    CHECK(setenv("TESSERA_CACHE", below, 1) == 0);
    tess_rates *rates = open_rates();
    tess_rates_set(rates, "one", 1, 1);
    (void)tess_rates_save(rates, NULL);
    CHECK(tess_rates_count(rates) == 1 && access(below, F_OK) != 0);
    tess_rates_destroy(rates);
    CHECK(unlink(file) == 0);
}

/* Folders are made as needed, and the other variables serve when $TESSERA_CACHE is not set. */
static void test_folders(void)
{
    CHECK(unsetenv("TESSERA_CACHE") == 0 && setenv("XDG_CACHE_HOME", folder, 1) == 0);
    char expected[400];
    snprintf(expected, sizeof expected, "%s/tessera/", folder);
    tess_rates *rates = open_rates();
    CHECK(strncmp(tess_rates_path(rates), expected, strlen(expected)) == 0);
    (void)tess_rates_save(rates, NULL);
    CHECK(access(tess_rates_path(rates), R_OK) == 0 && unlink(tess_rates_path(rates)) == 0 &&
          rmdir(expected) == 0);
    tess_rates_destroy(rates);
    CHECK(setenv("XDG_CACHE_HOME", "", 1) == 0 && setenv("HOME", folder, 1) == 0);
    snprintf(expected, sizeof expected, "%s/.cache/tessera/", folder);
    rates = open_rates();
    CHECK(strncmp(tess_rates_path(rates), expected, strlen(expected)) == 0);
    tess_rates_destroy(rates);
}

/* Every class of a network is measured once; a second call has nothing to do. */
static void test_measured(void)
{
    CHECK(setenv("TESSERA_CACHE", cache, 1) == 0);
    tess_net *net = tess_net_create();
    tess_error error = {{0}};
    tess_conv_settings head = {"head", 8, TESS_WINDOW_2D(3, 1, 1), true},
                       down = {"down", 16, TESS_WINDOW_2D(2, 2, 0), false},
                       up = {"up", 8, TESS_WINDOW_2D(2, 2, 0), false},
                       tail = {"tail", 3, TESS_WINDOW_2D(3, 1, 1), false};
    tess_value x = tess_net_conv(net, tess_net_input(net, 3), head);
    tess_value y = tess_net_conv_transpose(net, tess_net_conv(net, x, down), up);
    y = tess_net_upsample(net, tess_net_max_pool(net, tess_net_add(net, y, x)));
    CHECK(tess_net_finish(net, tess_net_conv(net, y, tail), &error) == TESS_OK);
    tess_bound *bound = NULL;
    tess_net_plan *plans[2] = {NULL, NULL};
    CHECK(tess_bound_create(net, device, TESS_F32, &bound, &error) == TESS_OK);
    CHECK(tess_net_plan_create(bound, (tess_plan_shape){1, 32, 32}, &plans[0], &error) == TESS_OK);
    CHECK(tess_net_plan_create(bound, (tess_plan_shape){2, 64, 32}, &plans[1], &error) == TESS_OK);
    tess_rates *rates = open_rates();
    bool measured = true;
    CHECK(tess_rates_plan_seconds(rates, plans[0], &measured) > 0 && !measured);
    tess_memory_reset_peak(&test_counter);
    CHECK(tess_rates_measure(rates, plans[0], (tess_rates_budget){1e9, 4096}, &error) == TESS_OK);
    CHECK(tess_rates_count(rates) == 0 && counted_peak() == 0); /* nothing fits */
    CHECK_MSG(tess_rates_measure(rates, plans[0], (tess_rates_budget){0, SIZE_MAX}, &error) == TESS_OK, "%s",
              error.text); /* one, at most */
    CHECK(tess_rates_count(rates) <= 1);
    const size_t room = 1 << 20;
    tess_memory_reset_peak(&test_counter);
    CHECK(tess_rates_measure(rates, plans[0], (tess_rates_budget){1e9, room}, &error) == TESS_OK);
    const uint64_t most = counted_peak();
    CHECK_MSG(most > 0 && most <= room, "%llu bytes", (unsigned long long)most);
    CHECK_MSG(tess_rates_measure(rates, plans[0], (tess_rates_budget){1e9, SIZE_MAX}, &error) == TESS_OK,
              "%s", error.text);
    CHECK_MSG(tess_rates_count(rates) == tess_net_plan_op_count(plans[0]), "%lld classes",
              (long long)tess_rates_count(rates));
    measured = true;
    double little = tess_rates_plan_seconds(rates, plans[0], &measured);
    double large = tess_rates_plan_seconds(rates, plans[1], &measured);
    CHECK_MSG(measured && little > 0 && large > little, "%g and %g seconds", little, large);
    uint64_t calls = tess_mem_calls();
    tess_memory_reset_peak(&test_counter);
    CHECK(tess_rates_measure(rates, plans[1], (tess_rates_budget){1e9, SIZE_MAX}, &error) == TESS_OK);
    CHECK(counted_peak() == 0 &&
          tess_mem_calls() == calls); /* all is known: it runs nothing and writes nothing */
    tess_block weights = {0};
    CHECK(tess_block_alloc(&test_counter, &weights, TESS_MEM_WEIGHTS, tess_bound_weight_bytes(bound),
                           &error) == TESS_OK);
    const int64_t grid = 8;
    const int64_t classes = tess_rates_count(rates);
    const tess_rates_budget none = {1e9, 0}, plenty = {1e9, SIZE_MAX};
    CHECK(tess_rates_measure_run(rates, bound, grid, weights.data, none, &error) == TESS_OK);
    CHECK(tess_rates_count(rates) == classes &&
          tess_rates_run_cost(rates, bound).per_pixel <= 0); /* no room */
    CHECK(tess_rates_measure_run(rates, bound, grid, weights.data, plenty, &error) == TESS_OK);
    const tess_run_cost cost = tess_rates_run_cost(rates, bound);
    CHECK(tess_rates_count(rates) == classes + 1 && cost.overhead >= 0 && cost.per_pixel > 0);
    tess_block_free(&weights);
    tess_rates *again = open_rates();
    const tess_run_cost reread = tess_rates_run_cost(again, bound);
    CHECK(reread.overhead >= 0.999 * cost.overhead && reread.per_pixel >= 0.999 * cost.per_pixel);
    CHECK(tess_rates_count(again) == tess_rates_count(rates) && unlink(tess_rates_path(again)) == 0);
    tess_rates_destroy(again);
    tess_rates_destroy(rates);
    tess_net_plan_destroy(plans[0]);
    tess_net_plan_destroy(plans[1]);
    tess_bound_destroy(bound);
    tess_net_destroy(net);
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tessera-rates-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return check_skip("no folder for temporary files");
    snprintf(cache, sizeof cache, "%s/cache", folder);
    CHECK(setenv("TESSERA_CACHE", cache, 1) == 0);
    const tess_device_options options = {.memory = &test_counter, .threads = 2};
    tess_error error = {{0}};
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    test_kept();
    test_busy();
    test_best();
    test_damaged();
    test_unwritable();
    test_folders();
    test_measured();
    tess_registry_close(device);
    CHECK(rmdir(cache) == 0);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
