/* test_messages.c: errors, notes and reasons name settings as the header does, in backquotes, and never an option of the
 * program, which a caller of the library does not have. */
#define _GNU_SOURCE
#include <unistd.h>

#include "library_images.h"
#include "tessera_study.h"

enum { SIDE = 64 };

static char folder[] = "/tmp/tessera_messages_XXXXXX", in[64], out[64], ramp[64], levels[64], colour[64];
static tess_context *context;
static char notes[4096];

static void keep_note(void *user, tess_note_level level, const char *text)
{
    (void)user, (void)level;
    const size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", text);
}

static bool no_line(void *user, const char *line)
{
    (void)user, (void)line;
    return false;
}

/* `named`: a setting with its backquotes, and what follows it. */
static void check_text(const char *text, const char *named)
{
    CHECK_MSG(strstr(text, named), "%s: is not in: %s", named, text);
    CHECK_MSG(!strstr(text, " --") && strncmp(text, "--", 2) != 0, "an option: %s", text);
}

static void check_error(tess_status status, tess_status expected, char *record, const char *named)
{
    CHECK_MSG(status == expected, "%s: status %d", named, (int)status);
    check_text(tess_context_error(context), named);
    tess_record_free(record);
}

static tess_denoise_settings denoise_settings(const char *input)
{
    tess_denoise_settings s;
    tess_denoise_settings_init(&s);
    s.common.device = "cpu";
    s.common.note = keep_note;
    s.model = "drunet-gray-small";
    s.input = input;
    s.output = out;
    s.sigma = 0.1;
    return s;
}

#define DENOISE(expected, named, ...)                                                                        \
    do {                                                                                                     \
        tess_denoise_settings s = denoise_settings(in);                                                      \
        char *record = NULL;                                                                                 \
        __VA_ARGS__;                                                                                         \
        check_error(tess_plan_denoise(context, &s, &record), expected, record, named);                       \
    } while (0)

static void denoise_errors(void)
{
    DENOISE(TESS_BAD_OPTION, "`output`", s.output = NULL);
    DENOISE(TESS_BAD_OPTION, "`device` tpu:", s.common.device = "tpu");
    DENOISE(TESS_BAD_OPTION, "`precision` fp8:", s.common.precision = "fp8");
    DENOISE(TESS_BAD_OPTION, "`threads` -1:", s.common.threads = -1);
    DENOISE(TESS_BAD_OPTION, "`record_file` ", s.common.record_file = in);
    DENOISE(TESS_BAD_INPUT, "`model` no-such-model:", s.model = "no-such-model");
    DENOISE(TESS_BAD_OPTION, "`sigma` 25:", s.sigma = 25);
    DENOISE(TESS_BAD_OPTION, "`add_noise` 3:", s.add_noise = 3);
    DENOISE(TESS_BAD_OPTION, "`strength` 2:", s.strength = 2);
    DENOISE(TESS_BAD_OPTION, "`range` 5,5:", s.range = TESS_RANGE_GIVEN; s.range_low = s.range_high = 5);
    DENOISE(TESS_BAD_OPTION, "`axes` WH:", s.axes = "WH");
    DENOISE(TESS_BAD_INPUT, "`axes` CHW takes", s.axes = "CHW");
    DENOISE(TESS_BAD_OPTION, "`tile`:", s.tile_height = -7);
    DENOISE(TESS_BAD_OPTION, "`halo`:", s.halo = -7);
    DENOISE(TESS_BAD_OPTION, "`batch`:", s.batch = -7);
    DENOISE(TESS_BAD_OPTION, "`overwrite`", s.output = in);
    DENOISE(TESS_BAD_OPTION, "`truth` ", s.truth = folder);
    DENOISE(TESS_BAD_INPUT, "`sigma_map` ", s.sigma_map = levels);
    DENOISE(TESS_BAD_OPTION, "give `range` LOW,HIGH", s.input = ramp);
    DENOISE(TESS_OVER_LIMIT, "`memory_limit` 1M is too little", s.common.memory_limit = 1 << 20);
    DENOISE(TESS_OVER_LIMIT, "or a smaller `halo` or `batch`", s.common.memory_limit = 1 << 20);
}

#define RECONSTRUCT(expected, named, ...)                                                                    \
    do {                                                                                                     \
        tess_reconstruct_settings s;                                                                         \
        char *record = NULL;                                                                                 \
        tess_reconstruct_settings_init(&s);                                                                  \
        s.common.device = "cpu";                                                                             \
        s.output = out;                                                                                      \
        s.problem = "deblur";                                                                                \
        __VA_ARGS__;                                                                                         \
        check_error(tess_plan_reconstruct(context, &s, &record), expected, record, named);                   \
    } while (0)

static void reconstruct_errors(void)
{
    RECONSTRUCT(TESS_BAD_OPTION, "`problem`", s.problem = NULL);
    RECONSTRUCT(TESS_BAD_OPTION, "`size` 3:", s.size = 3);
    RECONSTRUCT(TESS_BAD_OPTION, "`angles`: means nothing to `problem` deblur", s.angles = 5);
    RECONSTRUCT(TESS_BAD_OPTION, "`init` first:", s.init = "first");
    RECONSTRUCT(TESS_BAD_OPTION, "`preset` fast:", s.preset = "fast");
    RECONSTRUCT(TESS_BAD_OPTION, "`max_seconds`", s.tolerance = NAN);
    RECONSTRUCT(TESS_BAD_OPTION, "`save_measurement` y.png:", s.save_measurement = "y.png");
    RECONSTRUCT(TESS_OVER_LIMIT, "`memory_limit` 1M is too little", s.common.memory_limit = 1 << 20);
}

static void bench_errors(void)
{
    tess_bench_settings s;
    tess_bench_settings_init(&s);
    s.study = "size";
    check_error(tess_bench(context, &s), TESS_BAD_OPTION, NULL, "`line`");
    s.line = no_line;
    s.repeats = -1;
    check_error(tess_bench(context, &s), TESS_BAD_OPTION, NULL, "`repeats` -1:");
}

/* On images in memory. */
static void plan_errors(void)
{
    handles h = open_handles("drunet-gray-small", 1);
    tess_denoiser_settings s;
    tess_denoiser *plan = NULL;
    tess_denoiser_settings_init(&s);
    s.height = s.width = SIDE;
    s.channels = 1;
    s.element = TESS_ELEMENT_F32;
    s.memory_limit = 1 << 20;
    CHECK(tess_denoiser_plan(h.model, &s, &plan) == TESS_OVER_LIMIT && !plan);
    check_text(tess_context_error(h.context), "`memory_limit` 1M is too little");
    close_handles(&h);
}

static void check_notes(void)
{
    tess_denoise_settings s = denoise_settings(colour);
    char *record = NULL;
    s.common.threads = 1000;
    s.model = "random:dncnn";
    notes[0] = '\0';
    const tess_status status = tess_plan_denoise(context, &s, &record);
    CHECK_MSG(status == TESS_OK, "%s", tess_context_error(context));
    check_text(notes, "`threads` 1000:");
    check_text(notes, "`sigma` has no effect");
    tess_record_free(record);
}

static void write_files(void)
{
    static const struct {
        char *path;
        const char *name;
        int64_t dims[3];
        bool large;
    } files[] = {{in, "in", {SIDE, SIDE, 0}, false},
                 {ramp, "ramp", {SIDE, SIDE, 0}, true},
                 {levels, "levels", {SIDE / 2, SIDE / 2, 0}, false},
                 {colour, "colour", {SIDE, SIDE, 3}, false}};
    static float values[SIDE * SIDE * 3], large[SIDE * SIDE * 3];
    draw(values, SIDE, SIDE, 3, 1);
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        large[i] = 1000 + 100 * values[i];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(files[i].path, sizeof in, "%s/%s.npy", folder, files[i].name);
        write_npy(files[i].path, "<f4", sizeof values[0], files[i].dims, files[i].large ? large : values);
    }
    snprintf(out, sizeof out, "%s/out.npy", folder);
}

int main(void)
{
    if (!mkdtemp(folder) || tess_context_create(&context) != TESS_OK)
        abort();
    write_files();
    denoise_errors();
    reconstruct_errors();
    bench_errors();
    plan_errors();
    check_notes();
    tess_context_destroy(context);
    const char *const files[] = {in, ramp, levels, colour};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        unlink(files[i]);
    rmdir(folder);
    return check_end();
}
