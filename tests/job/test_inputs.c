/* test_inputs.c: which files a denoise job reads and where their results go: several inputs, subfolders, cyclic
 * links, outputs that exist already, and outputs that would overwrite what the job reads. */
#define _DEFAULT_SOURCE
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "counter.h"
#include "io/image.h"
#include "support.h"

enum { SIDE = 16 };

static char folder[512];
static tess_context *context;
static char notes[4096];

static const char *path(const char *name)
{
    static char paths[16][600];
    static int next;
    char *text = paths[next++ % 16];
    snprintf(text, sizeof paths[0], "%s/%s", folder, name);
    return text;
}

static void write_image(const char *name)
{
    const tess_image_info info = {
        .height = SIDE, .width = SIDE, .channels = 1, .dtype = TESS_U8, .full_scale = 255};
    tess_writer *writer = NULL;
    tess_error error = {{0}};
    unsigned char rows[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++)
        rows[i] = (unsigned char)(7 * i);
    CHECK_MSG(tess_writer_open(&test_counter, path(name), &info, NULL, &writer, &error) == TESS_OK, "%s",
              error.text);
    CHECK(tess_writer_rows(writer, SIDE, rows, &error) == TESS_OK);
    CHECK(tess_writer_commit(writer, &error) == TESS_OK);
    tess_writer_close(writer);
}

static void note(void *user, tess_note_level level, const char *text)
{
    (void)user, (void)level;
    const size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", text);
}

static tess_denoise_settings settings_for(const char *output)
{
    tess_denoise_settings s;
    tess_denoise_settings_init(&s);
    s.common.device = "cpu";
    s.common.note = note;
    s.sigma = 0.1;
    s.output = output;
    return s;
}

/* Runs, or only plans; *files are the names in the record, one behind another; "name!" was skipped. */
static tess_status run(const tess_denoise_settings *s, bool plan, char files[1024])
{
    char *text = NULL;
    tess_json *record = NULL;
    tess_error error = {{0}};
    notes[0] = files[0] = '\0';
    tess_status status = plan ? tess_plan_denoise(context, s, &text) : tess_denoise(context, s, &text);
    if (text && tess_json_parse(text, strlen(text), &record, &error) == TESS_OK) {
        const tess_json *list = tess_json_get(tess_json_get(record, "denoise"), "files");
        for (int64_t i = 0; i < tess_json_length(list); i++) {
            const tess_json *file = tess_json_at(list, i);
            const size_t used = strlen(files);
            snprintf(files + used, 1024 - used, "%s%s ", tess_json_get_string(file, "name", "?"),
                     tess_json_get_bool(file, "skipped", false) ? "!" : "");
        }
    }
    tess_json_free(record);
    tess_record_free(text);
    return status;
}

static void expect_files(const tess_denoise_settings *s, bool plan, const char *expected)
{
    char files[1024];
    tess_status status = run(s, plan, files);
    CHECK_MSG(status == TESS_OK && strcmp(files, expected) == 0, "%d, %s: %s, expected %s", status,
              status ? tess_context_error(context) : "", files, expected);
}

static void expect_refused(const tess_denoise_settings *s, const char *word, const char *other)
{
    char files[1024];
    for (int plan = 0; plan < 2; plan++) {
        tess_status status = run(s, plan == 1, files);
        const char *text = tess_context_error(context);
        CHECK_MSG(status == TESS_BAD_OPTION && strstr(text, word) && strstr(text, other), "%d: %s", status,
                  text);
    }
}

static void test_lists(void)
{
    const char *several[] = {path("tree"), path("one.npy")};
    tess_denoise_settings s = settings_for(path("out"));
    s.input = path("tree");
    expect_files(&s, true, "a.npy b.npy ");
    CHECK_MSG(strstr(notes, "2 folder(s)") && strstr(notes, "`recursive`"), "%s", notes);
    s.recursive = true; /* tree/sub/up leads back to tree, tree/out is the output of another case */
    expect_files(&s, true, "a.npy b.npy out/old.npy sub/c.npy sub/deep/d.npy ");
    CHECK_MSG(notes[0] == '\0', "%s", notes);
    s.output = path("tree/out");
    expect_files(&s, true, "a.npy b.npy sub/c.npy sub/deep/d.npy ");
    s.inputs = several;
    s.input_count = 2;
    expect_files(&s, false, "a.npy b.npy sub/c.npy sub/deep/d.npy one.npy ");
    CHECK(access(path("tree/out/sub/deep/d.npy"), F_OK) == 0 && access(path("tree/out/one.npy"), F_OK) == 0);
    CHECK(unlink(path("tree/out/sub/c.npy")) == 0);
    s.skip_existing = true;
    expect_files(&s, false, "a.npy! b.npy! sub/c.npy sub/deep/d.npy! one.npy! ");
    CHECK(access(path("tree/out/sub/c.npy"), F_OK) == 0);
    expect_files(&s, false, "a.npy! b.npy! sub/c.npy! sub/deep/d.npy! one.npy! ");
    CHECK_MSG(strstr(notes, "nothing to do"), "%s", notes);
    s = settings_for(path("new/"));
    s.input = path("one.npy");
    expect_files(&s, false, "one.npy ");
    CHECK(access(path("new/one.npy"), F_OK) == 0);
}

static void test_targets(void)
{
    CHECK(link(path("one.npy"), path("hard.npy")) == 0 && symlink("one.npy", path("soft.npy")) == 0);
    static const char *const names[] = {"one.npy", "tree/../one.npy", "hard.npy", "soft.npy"};
    tess_denoise_settings s = settings_for(NULL);
    s.input = path("one.npy");
    for (int i = 0; i < 4; i++) {
        s.output = path(names[i]);
        expect_refused(&s, "written over the input", "`overwrite`");
    }
    CHECK(unlink(path("hard.npy")) == 0 && unlink(path("soft.npy")) == 0);
    s.input = s.output = path("tree");
    expect_refused(&s, "a.npy", "written over the input");
    const char *pair[] = {path("tree/a.npy"), path("tree/sub/../a.npy")};
    s.output = path("both");
    s.inputs = pair;
    s.input_count = 2;
    expect_refused(&s, pair[0], pair[1]);
    CHECK(access(path("both"), F_OK) != 0);
    s = settings_for(path("one.npy")); /* never over the truth or the model */
    s.input = path("tree/a.npy");
    s.overwrite = true;
    s.truth = path("one.npy");
    expect_refused(&s, "one.npy", "truth");
    s.truth = NULL;
    s.sigma_map = path("one.npy");
    expect_refused(&s, "one.npy", "noise map");
    s.sigma_map = NULL;
    s.input = s.output = path("one.npy");
    expect_files(&s, false, "one.npy ");
    const char *crossed[] = {path("tree/a.npy"), path("crossed/b.npy")};
    CHECK(mkdir(path("crossed"), 0777) == 0);
    write_image("crossed/b.npy");
    CHECK(symlink("b.npy", path("crossed/a.npy")) == 0);
    s = settings_for(path("crossed"));
    s.overwrite = true;
    s.inputs = crossed;
    s.input_count = 2;
    expect_refused(&s, crossed[0], crossed[1]);
}

static void test_missing_models(void)
{
    tess_denoise_settings s = settings_for(path("x.npy"));
    char files[1024];
    s.input = path("one.npy");
    s.model = "no-such-model";
    CHECK(run(&s, true, files) == TESS_BAD_INPUT &&
          strstr(tess_context_error(context), "`model` no-such-model"));
}

int main(void)
{
    static const char *const folders[] = {"tree", "tree/sub", "tree/sub/deep", "tree/out"},
                             *const images[] = {"one.npy",        "tree/b.npy",          "tree/a.npy",
                                                "tree/sub/c.npy", "tree/sub/deep/d.npy", "tree/out/old.npy"};
    snprintf(folder, sizeof folder, "/tmp/tessera-inputs-XXXXXX");
    if (!mkdtemp(folder))
        return check_skip("no temporary folder");
    setenv("TESSERA_CACHE", path("cache"), 1);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        CHECK(mkdir(path(folders[i]), 0777) == 0);
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
        write_image(images[i]);
    CHECK(symlink("..", path("tree/sub/up")) == 0);
    CHECK(tess_context_create(&context) == TESS_OK);
    test_lists();
    test_targets();
    test_missing_models();
    tess_context_destroy(context);
    char command[600];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? check_end() : 1;
}
