/* test_progress.c: the callbacks of tess_denoise: progress within one whole image, the file that starts, notes on
 * doubtful settings; a stopped job leaves nothing but its record. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <unistd.h>

#include "base/json.h"
#include "base/pool.h"
#include "counter.h"
#include "io/image.h"
#include "library_images.h"
#include "support.h"

enum { SIDE = 256 };

typedef struct ear {
    int64_t calls, inside, full, last, total, backwards, files, file_count;
    int64_t most; /* calls until it stops the job */
    char name[64], notes[2048];
} ear;

static bool progress(void *user, int64_t done, int64_t total, double seconds)
{
    ear *e = user;
    (void)seconds;
    e->backwards += done < e->last || done > total;
    e->inside += done > e->last && done < total;
    e->full += total > 0 && done == total;
    e->last = done;
    e->total = total;
    return e->calls++ < e->most;
}

static void file(void *user, int64_t index, int64_t count, const char *name)
{
    ear *e = user;
    CHECK(index == e->files++);
    e->file_count = count;
    snprintf(e->name, sizeof e->name, "%s", name);
}

static void note(void *user, tess_note_level level, const char *text)
{
    ear *e = user;
    const size_t used = strlen(e->notes);
    CHECK(level == TESS_NOTE_WARNING && !strchr(text, '\n'));
    snprintf(e->notes + used, sizeof e->notes - used, "%s\n", text);
}

static char folder[512];

static const char *path(const char *name)
{
    static char paths[4][600];
    static int next;
    char *text = paths[next++ % 4];
    snprintf(text, sizeof paths[0], "%s/%s", folder, name);
    return text;
}

static void write_image(const char *name)
{
    const tess_image_info info = {
        .height = SIDE, .width = SIDE, .channels = 3, .dtype = TESS_U8, .full_scale = 255};
    tess_writer *writer = NULL;
    tess_error error = {{0}};
    unsigned char row[3 * SIDE];
    CHECK_MSG(tess_writer_open(&test_counter, path(name), &info, NULL, &writer, &error) == TESS_OK, "%s",
              error.text);
    for (int y = 0; y < SIDE; y++) {
        for (int i = 0; i < 3 * SIDE; i++)
            row[i] = (unsigned char)(y + i);
        CHECK(tess_writer_rows(writer, 1, row, &error) == TESS_OK);
    }
    CHECK(tess_writer_commit(writer, &error) == TESS_OK);
    tess_writer_close(writer);
}

static tess_denoise_settings settings_of(ear *e)
{
    tess_denoise_settings s;
    tess_denoise_settings_init(&s);
    s.common.device = "cpu";
    s.common.progress = progress;
    s.common.file = file;
    s.common.note = note;
    s.common.progress_user = e;
    s.model = "random:dncnn";
    s.tile_height = TESS_TILE_WHOLE;
    return s;
}

static tess_json *parsed(const char *text)
{
    tess_json *record = NULL;
    tess_error error = {{0}};
    CHECK_MSG(text && tess_json_parse(text, strlen(text), &record, &error) == TESS_OK, "%s", error.text);
    return record;
}

static void test_whole_image(tess_context *context)
{
    ear e = {.most = INT64_MAX};
    tess_denoise_settings s = settings_of(&e);
    const char *in = path("in.npy"), *out = path("out.npy");
    s.input = in;
    s.output = out;
    s.sigma = 0.1;
    s.common.threads = 1000;
    char *text = NULL;
    tess_status status = tess_denoise(context, &s, &text);
    CHECK_MSG(status == TESS_OK, "%s", tess_context_error(context));
    CHECK_MSG(e.inside >= 15 && e.backwards == 0, "%lld steps inside the image, %lld backwards",
              (long long)e.inside, (long long)e.backwards);
    CHECK(e.last == e.total && e.total == SIDE * SIDE);
    CHECK(e.files == 1 && e.file_count == 1 && strcmp(e.name, "in.npy") == 0);
    CHECK_MSG(strstr(e.notes, "`threads` 1000") && strstr(e.notes, "`sigma` has no effect"), "%s", e.notes);
    tess_json *record = parsed(text);
    CHECK(tess_json_get_int(record, "threads", 0) == tess_cpu_count());
    tess_json_free(record);
    tess_record_free(text);
}

static int entries(void)
{
    int count = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));)
        count += entry->d_name[0] != '.' || strstr(entry->d_name, "tmp");
    closedir(open);
    return count;
}

static void test_stopped(tess_context *context, int64_t most)
{
    ear e = {.most = most};
    tess_denoise_settings s = settings_of(&e);
    const char *inputs[] = {path("in.npy")};
    s.inputs = inputs;
    s.input_count = 1;
    const char *out = path("stopped.npy");
    s.output = out;
    char *text = NULL;
    const int before = entries();
    CHECK(tess_denoise(context, &s, &text) == TESS_INTERRUPTED);
    CHECK_MSG(strstr(tess_context_error(context), "stopped"), "%s", tess_context_error(context));
    CHECK(e.calls == most + 1); /* a caller that stopped the job is not called again */
    CHECK(entries() == before && access(out, F_OK) != 0);
    tess_json *record = parsed(text);
    CHECK_MSG(text && tess_json_get_bool(record, "interrupted", false), "%s", text ? text : "no record");
    tess_json_free(record);
    tess_record_free(text);
}

/* A picture that is low beside its kernel: most of what is computed is its margin, and counts as well. */
static void test_margin(tess_context *context)
{
    enum { HEIGHT = 8, WIDTH = 48, REACH = 33 };
    static float picture[HEIGHT * WIDTH], kernel[REACH];
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        picture[i] = 0.5f + 0.3f * (float)(i % 7) / 7;
    for (int i = 0; i < REACH; i++)
        kernel[i] = 1;
    const int64_t picture_is[3] = {HEIGHT, WIDTH, 0}, kernel_is[3] = {REACH, 1, 0};
    write_npy(path("low.npy"), "<f4", 4, picture_is, picture);
    write_npy(path("tall.npy"), "<f4", 4, kernel_is, kernel);
    const char *problem = path("low.json"), *out = path("high.npy");
    FILE *json = fopen(problem, "w");
    CHECK(json &&
          fputs("{\"operator\": \"blur\", \"kernel\": \"tall.npy\", \"measurement\": \"low.npy\"}", json) >=
              0 &&
          fclose(json) == 0);
    ear e = {.most = INT64_MAX};
    tess_reconstruct_settings s;
    tess_reconstruct_settings_init(&s);
    s.common.device = "cpu";
    s.common.progress = progress;
    s.common.progress_user = &e;
    s.problem = problem;
    s.output = out;
    s.iterations = 3;
    char *text = NULL;
    CHECK_MSG(tess_reconstruct(context, &s, &text) == TESS_OK, "%s", tess_context_error(context));
    CHECK_MSG(e.last == e.total && e.inside > 3 && e.full <= 2,
              "%lld reports before the end, %lld at the end, %lld of %lld done", (long long)e.inside,
              (long long)e.full, (long long)e.last, (long long)e.total);
    tess_record_free(text);
}

/* Stopped while a folder is listed, or soon after: there is a record, and no number of files that is not known. */
static void test_stopped_folder(tess_context *context, int64_t most)
{
    ear e = {.most = most};
    tess_denoise_settings s = settings_of(&e);
    const char *out = path("none");
    s.input = folder;
    s.output = out;
    char *text = NULL, *summary = NULL;
    CHECK(tess_denoise(context, &s, &text) == TESS_INTERRUPTED);
    const char *why = tess_context_error(context);
    CHECK_MSG(strstr(why, "stopped") && !strstr(why, "of 0"), "%s", why);
    tess_json *record = parsed(text);
    CHECK_MSG(text && tess_json_get_bool(record, "interrupted", false), "%s", text ? text : "no record");
    CHECK(text && tess_record_summary(context, text, &summary) == TESS_OK);
    tess_json_free(record);
    tess_record_free(text);
    tess_record_free(summary);
}

static void test_sigma(tess_context *context)
{
    ear e = {.most = INT64_MAX};
    tess_denoise_settings s = settings_of(&e);
    const char *in = path("in.npy"), *out = path("other.npy");
    s.input = in;
    s.output = out;
    s.model = NULL;
    s.sigma = 0.5;
    char *text = NULL;
    CHECK_MSG(tess_plan_denoise(context, &s, &text) == TESS_OK, "%s", tess_context_error(context));
    CHECK_MSG(strstr(e.notes, "trained for levels up to 0.2"), "%s", e.notes);
    tess_record_free(text);
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/tessera-progress-XXXXXX");
    if (!mkdtemp(folder))
        return check_skip("no temporary folder");
    setenv("TESSERA_CACHE", path("cache"), 1);
    write_image("in.npy");
    tess_context *context = NULL;
    CHECK(tess_context_create(&context) == TESS_OK);
    test_whole_image(context);
    for (int64_t most = 0; most < 14; most += 3)
        test_stopped(context, most);
    for (int64_t most = 0; most < 3; most++)
        test_stopped_folder(context, most);
    test_margin(context);
    test_sigma(context);
    tess_context_destroy(context);
    char command[600];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? check_end() : 1;
}
