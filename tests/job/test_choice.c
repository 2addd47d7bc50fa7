/* test_choice.c: jobs with `device` auto, with a made-up card: the CPU's device under another name. What the cache remembers
 * of it decides; the engine moves to it, or stays if it cannot be opened; phases of detect may be on both; and whatever is
 * chosen, the results are the same bits. Skipped where the real card's device is linked. */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "counter.h"
#include "device/device.h"
#include "folder.h"
#include "plan/machine.h"
#include "support.h"
#include "tessera_detect.h"

enum { SIDE = 48, BANDS = 6, SKIPPED = 77 };

static bool broken; /* the card cannot be opened */
static int opened;

static tess_status open_card(const tess_device_options *options, tess_device **out, tess_error *error)
{
    extern const tess_driver tess_cpu_driver;
    if (broken)
        return tess_fail(error, TESS_UNSUPPORTED, "the made-up card is broken");
    TESS_TRY(tess_cpu_driver.open(options, out, error));
    (*out)->kind = "cuda";
    opened++;
    return TESS_OK;
}

extern const tess_driver tess_cuda_driver __attribute__((weak));
const tess_driver tess_cuda_driver __attribute__((weak)) = {"cuda", open_card};

static void empty_cache(void)
{
    char cache[512], path[1024];
    snprintf(cache, sizeof cache, "%s", in_folder("cache"));
    setenv("TESSERA_CACHE", cache, 1);
    DIR *entries = opendir(cache);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        snprintf(path, sizeof path, "%s/%s", cache, entry->d_name);
        (void)remove(path);
    }
    if (entries)
        closedir(entries);
}

static void write_npy(const char *path, int channels, const float *values)
{
    char header[118];
    FILE *file = fopen(path, "wb");
    const int used =
        snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }",
                 SIDE, SIDE, channels);
    memset(header + used, ' ', sizeof header - (size_t)used);
    header[sizeof header - 1] = '\n';
    CHECK(file && fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file) == 10 &&
          fwrite(header, 1, sizeof header, file) == sizeof header);
    CHECK(file && fwrite(values, sizeof *values, (size_t)(SIDE * SIDE * channels), file) > 0 &&
          fclose(file) == 0);
}

/* Empties the cache and puts a card there that opens in so many seconds. Ops take no time on it, but for one class. */
static void remember(double open, const char *slow_class)
{
    char text[512];
    tess_rates *card = NULL;
    tess_error error = {{0}};
    empty_cache();
    snprintf(
        text, sizeof text,
        "{\"kind\":\"cuda\",\"device\":\"made up\",\"fp16\":true,\"flops\":1e18,\"bytes_per_second\":1e18}");
    FILE *file = fopen(in_folder("card.json"), "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    CHECK_MSG(tess_machine_read(in_folder("card.json"), &card, &error) == TESS_OK, "%s", error.text);
    tess_machine_remember(card);
    tess_rates_destroy(card);
    CHECK(tess_machine_recall("cuda", &card, &error) == TESS_OK);
    static const char *const costs[] = {TESS_COST_CLOSE, TESS_COST_UP,    TESS_COST_DOWN,
                                        TESS_COST_PACK,  TESS_COST_SHAPE, TESS_COST_JOB};
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        tess_rates_set(card, costs[i], 0, 1e-18);
    tess_rates_set(card, TESS_COST_OPEN, open, 1e-18);
    if (slow_class)
        tess_rates_set(card, slow_class, 1000, 1);
    CHECK_MSG(tess_rates_save(card, &error) == TESS_OK, "%s", error.text);
    tess_rates_destroy(card);
}

typedef struct result {
    tess_json *record;
    char device[16], phases[64], reason[512];
} result;

static void read_record(char *text, result *r)
{
    tess_error error = {{0}};
    CHECK_MSG(tess_json_parse(text, strlen(text), &r->record, &error) == TESS_OK, "%s", error.text);
    const tess_json *plan = tess_json_get(r->record, "plan"), *chosen = tess_json_get(plan, "chosen");
    snprintf(r->device, sizeof r->device, "%s", tess_json_get_string(r->record, "device", "?"));
    snprintf(r->reason, sizeof r->reason, "%s", tess_json_get_string(plan, "device_reason", "?"));
    r->phases[0] = '\0';
    for (int64_t i = 0; i < tess_json_length(chosen); i++) {
        const size_t used = strlen(r->phases);
        snprintf(r->phases + used, sizeof r->phases - used, "%s%s", i ? "," : "",
                 tess_json_get_string(tess_json_at(chosen, i), "device", "?"));
    }
    CHECK(tess_json_length(tess_json_get(plan, "devices")) == 2);
    tess_json_free(r->record);
    r->record = NULL;
    tess_record_free(text);
}

static uint64_t sum_of(const char *path)
{
    uint64_t sum = 1469598103934665603u;
    FILE *file = fopen(path, "rb");
    CHECK_MSG(file, "%s is missing", path);
    for (int c; file && (c = fgetc(file)) != EOF;)
        sum = (sum ^ (uint64_t)c) * 1099511628211u;
    if (file)
        fclose(file);
    return sum;
}

typedef enum verb { DENOISE, RECONSTRUCT, DETECT, VERBS } verb;

/* Runs a verb and gives the sum of its output. */
static uint64_t run(verb which, result *r)
{
    tess_context *context = NULL;
    char *text = NULL;
    tess_status status = TESS_OK;
    const char *out = in_folder("out.npy");
    CHECK(tess_context_create(&context) == TESS_OK);
    (void)remove(out);
    if (which == DENOISE) {
        tess_denoise_settings s;
        tess_denoise_settings_init(&s);
        s.input = in_folder("image.npy"), s.output = out, s.sigma = 0.1, s.model = "random:dncnn";
        status = tess_denoise(context, &s, &text);
    } else if (which == RECONSTRUCT) {
        tess_reconstruct_settings s;
        tess_reconstruct_settings_init(&s);
        s.problem = "deblur", s.output = out, s.size = SIDE, s.iterations = 2, s.model = "random:dncnn";
        status = tess_reconstruct(context, &s, &text);
    } else {
        tess_detect_settings s;
        tess_detect_settings_init(&s);
        s.input = in_folder("cube.npy"), s.output = out;
        status = tess_detect(context, &s, &text);
    }
    CHECK_MSG(status == TESS_OK && text, "verb %d: %s", (int)which, tess_context_error(context));
    if (text)
        read_record(text, r);
    tess_context_destroy(context);
    return sum_of(out);
}

static void write_inputs(void)
{
    static float image[SIDE * SIDE * 3], cube[SIDE * SIDE * BANDS];
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        image[i] = 0.5f + 0.4f * (float)(i % 17) / 17;
    for (int i = 0; i < SIDE * SIDE * BANDS; i++)
        cube[i] = 100 + (float)(draw() % 1000) / 100;
    write_npy(in_folder("image.npy"), 3, image);
    write_npy(in_folder("cube.npy"), BANDS, cube);
}

int main(void)
{
    if (tess_cuda_driver.open != open_card) {
        fprintf(stderr, "skipped: the device of a real card is linked\n");
        return SKIPPED;
    }
    CHECK(mkdtemp(folder));
    write_inputs();
    for (verb v = DENOISE; v < VERBS; v++) {
        result r = {0};
        remember(1000, NULL);
        const int before = opened;
        const uint64_t on_cpu = run(v, &r);
        CHECK_MSG(strcmp(r.device, "cpu") == 0 && strstr(r.phases, "cuda") == NULL && opened == before,
                  "verb %d: a card that opens in 1000 s is not used, nor opened: %s, %s", (int)v, r.device,
                  r.reason);
        remember(0, NULL);
        CHECK_MSG(run(v, &r) == on_cpu, "verb %d: the card gives other results", (int)v);
        CHECK_MSG(strcmp(r.device, "cuda") == 0 && strstr(r.phases, "cpu") == NULL && opened > before,
                  "verb %d: a fast card is used: %s, %s", (int)v, r.device, r.reason);
        remember(0, NULL);
        broken = true;
        CHECK_MSG(run(v, &r) == on_cpu, "verb %d: other results without the card", (int)v);
        CHECK_MSG(strcmp(r.device, "cpu") == 0 && strstr(r.reason, "the made-up card is broken"),
                  "verb %d: the record says why the card is not used: %s", (int)v, r.reason);
        broken = false;
        if (v != DETECT)
            continue;
        remember(0, "moments1x1/1 6>45 F64");
        CHECK_MSG(run(v, &r) == on_cpu && strcmp(r.phases, "cpu,cuda") == 0, "statistics by the CPU: %s, %s",
                  r.phases, r.reason);
        remember(0, "score1x1/1 6>6 F32");
        CHECK_MSG(run(v, &r) == on_cpu && strcmp(r.phases, "cuda,cpu") == 0, "scores by the CPU: %s, %s",
                  r.phases, r.reason);
    }
    empty_cache();
    sweep_folder(true);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
