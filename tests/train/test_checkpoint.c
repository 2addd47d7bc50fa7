/* Checkpoints: what is written is read again, files that are cut short or damaged anywhere are skipped, others are refused by
 * what differs, the last two are kept, and nothing else is left in the folder. */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "counter.h"
#include "folder.h"
#include "train/checksum.h"
#include "train_blocks.h"

static const char CONFIG[] = "{\"network\":{\"architecture\":\"dncnn\"},\"data\":{\"folders\":[\"a\"]},"
                             "\"output\":\"o.safetensors\"%s}";

static tess_train_config config_with(const char *more)
{
    char text[512];
    tess_train_config config;
    tess_error error = {""};
    snprintf(text, sizeof text, CONFIG, more);
    CHECK_MSG(tess_train_config_parse(text, strlen(text), NULL, &config, &error) == TESS_OK, "%s",
              error.text);
    return config;
}

static char notes[4096];
static int note_count;

static void take_note(void *user, tess_note_level level, const char *text)
{
    CHECK(user == notes && level == TESS_NOTE_WARNING);
    snprintf(notes, sizeof notes, "%s", text);
    note_count++;
}

static tess_checkpoints *open_folder(void)
{
    tess_checkpoints *checkpoints = NULL;
    tess_error error = {""};
    CHECK_MSG(tess_checkpoints_open(&test_counter, folder, &checkpoints, &error) == TESS_OK, "%s",
              error.text);
    return checkpoints;
}

static void write_step(tess_checkpoints *checkpoints, const tess_checkpoint_contents *contents, int64_t step)
{
    tess_train_state state;
    tess_error error = {""};
    tess_train_state_init(&state, contents->config, true);
    state.step = step, state.updates = step / 2, state.plateau_best = 1.0 / 3;
    CHECK_MSG(tess_checkpoint_write(checkpoints, contents, &state, &error) == TESS_OK, "%s", error.text);
}

/* Reads into blocks of zeros. Returns the step, or -1 with a message. */
static int64_t read_step(tess_checkpoints *checkpoints, tess_checkpoint_contents contents, train_memory *into,
                         tess_error *error)
{
    tess_train_state state = {.step = -7};
    for (int i = 0; i < TESS_STATES; i++)
        memset(into->blocks[i], 0, (size_t)into->sizes[i] * sizeof(float));
    contents.blocks = train_blocks(into);
    note_count = 0;
    *error = (tess_error){""};
    const tess_status status = tess_checkpoint_read(checkpoints, &contents, take_note, notes, &state, error);
    CHECK(status == TESS_OK ? state.plateau_best == 1.0 / 3 : state.step == -7 && error->text[0]);
    return status == TESS_OK ? state.step : -1;
}

static void test_checksums(void)
{
    /* From the specification's sanity checks, and `xxhsum -H64`. */
    tess_xxh64 sum;
    tess_xxh64_begin(&sum);
    CHECK(tess_xxh64_end(&sum) == 0xEF46DB3751D8E999u);
    tess_xxh64_add(&sum, "abc", 3);
    CHECK(tess_xxh64_end(&sum) == 0x44BC2CF5AD770999u);
    tess_xxh64_begin(&sum);
    const char text[] = "Nobody inspects the spammish repetition";
    tess_xxh64_add(&sum, text, 39);
    CHECK(tess_xxh64_end(&sum) == 0xFBCEA83C8A378BF1u);
    for (size_t cut = 0; cut <= 39; cut++) { /* pieces do not matter */
        tess_xxh64_begin(&sum);
        tess_xxh64_add(&sum, text, cut);
        tess_xxh64_add(&sum, text + cut, 39 - cut);
        CHECK(tess_xxh64_end(&sum) == 0xFBCEA83C8A378BF1u);
    }
    CHECK(tess_crc32c("123456789", 9) == 0xE3069283u);
}

static void test_round_trip(const tess_checkpoint_contents *contents, const train_memory *values,
                            train_memory *into)
{
    tess_error error;
    tess_checkpoints *checkpoints = open_folder(), *second = NULL;
    CHECK(read_step(checkpoints, *contents, into, &error) == -1);
    CHECK_MSG(strstr(error.text, "has no checkpoint to continue from"), "%s", error.text);
    CHECK(tess_checkpoints_check_empty(checkpoints, &error) == TESS_OK);
    write_step(checkpoints, contents, 10);
    CHECK(read_step(checkpoints, *contents, into, &error) == 10 && train_same(into, values));
    CHECK(tess_checkpoints_check_empty(checkpoints, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, "holds a run at step 10"), "%s", error.text);
    write_step(checkpoints, contents, 20);
    write_step(checkpoints, contents, 1000000000);
    CHECK(sweep_folder(false) == 2 && access(in_folder("step-000000010.ckpt"), F_OK) != 0);
    CHECK(read_step(checkpoints, *contents, into, &error) == 1000000000 && note_count == 0);
    write_step(checkpoints, contents, 30); /* a run that went back: later ones are not its own */
    CHECK(sweep_folder(false) == 2 && access(in_folder("step-000000020.ckpt"), F_OK) == 0);
    CHECK(tess_checkpoints_open(&test_counter, folder, &second, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, "another run is using this folder"), "%s", error.text);
    tess_checkpoints_close(checkpoints);
    sweep_folder(true);
}

static size_t load(const char *path, unsigned char *bytes, size_t most)
{
    FILE *file = fopen(path, "rb");
    const size_t count = file ? fread(bytes, 1, most, file) : 0;
    CHECK(file && fclose(file) == 0);
    return count;
}

static void store(const char *path, const unsigned char *bytes, size_t count)
{
    const int fd = open(path, O_WRONLY | O_CREAT, 0666);
    CHECK(fd >= 0 && (count == 0 || write(fd, bytes, count) == (ssize_t)count) &&
          ftruncate(fd, (off_t)count) == 0 && close(fd) == 0);
}

/* Cut short at every byte, and a bit turned at every byte: the one before it is taken. */
static void test_damage(const tess_checkpoint_contents *contents, const train_memory *values,
                        train_memory *into)
{
    static unsigned char bytes[1 << 17];
    const char *newest = "step-000000020.ckpt";
    tess_error error;
    tess_checkpoints *checkpoints = open_folder();
    write_step(checkpoints, contents, 10);
    write_step(checkpoints, contents, 20);
    const size_t count = load(in_folder(newest), bytes, sizeof bytes);
    CHECK(count > 1000 && count < sizeof bytes);
    for (size_t cut = 0; cut < count; cut += cut < 200 || cut + 200 > count ? 1 : 37) {
        store(in_folder(newest), bytes, cut);
        CHECK_MSG(read_step(checkpoints, *contents, into, &error) == 10, "cut at %zu: %s", cut, error.text);
        CHECK(note_count == 1 && strstr(notes, newest) && train_same(into, values));
    }
    for (size_t at = 0; at < count; at += at < 200 || at + 200 > count ? 1 : 37) {
        bytes[at] ^= (unsigned char)(1 << at % 8);
        store(in_folder(newest), bytes, count);
        CHECK_MSG(read_step(checkpoints, *contents, into, &error) == 10, "bit turned at %zu", at);
        CHECK(note_count == 1);
        bytes[at] ^= (unsigned char)(1 << at % 8);
    }
    bytes[count] = 0;
    store(in_folder(newest), bytes, count + 1); /* too long */
    CHECK(read_step(checkpoints, *contents, into, &error) == 10);
    store(in_folder(newest), bytes, count);
    CHECK(read_step(checkpoints, *contents, into, &error) == 20 && note_count == 0);
    /* None is whole: one line about the newest, and no block was touched. */
    store(in_folder(newest), bytes, count / 2);
    store(in_folder("step-000000010.ckpt"), bytes, 3);
    CHECK(read_step(checkpoints, *contents, into, &error) == -1 && note_count == 2);
    CHECK_MSG(strstr(error.text, newest) &&
                  strstr(error.text, "there is no other checkpoint that is whole") &&
                  !strchr(error.text, '\n'),
              "%s", error.text);
    CHECK(into->blocks[0][0] == 0);
    tess_checkpoints_close(checkpoints);
    sweep_folder(true);
}

static void test_others(const tess_checkpoint_contents *contents, const train_memory *values)
{
    tess_error error;
    train_memory into = {0};
    train_list other;
    tess_checkpoints *checkpoints = open_folder();
    train_fill(&into, contents->parameters, 0);
    write_step(checkpoints, contents, 10);
    struct {
        int at, rank;
        const char *name, *part;
    } changes[] = {
        {2, 4, "third.weight", "it has the parameter second.weight where this one has third.weight"},
        {2, 3, NULL, "its second.weight is 6x6x3x3, and that of this one 6x6x3"},
        {0, 4, "zero.weight", "first.weight where this one has zero.weight"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        train_small(&other);
        tess_parameter *p = &other.list[changes[i].at];
        p->rank = changes[i].rank;
        if (changes[i].name)
            snprintf(p->name, sizeof p->name, "%s", changes[i].name);
        tess_checkpoint_contents wrong = *contents;
        wrong.parameters = &other.parameters;
        CHECK(read_step(checkpoints, wrong, &into, &error) == -1);
        CHECK_MSG(strstr(error.text, "step-000000010.ckpt: is of another network") &&
                      strstr(error.text, changes[i].part),
                  "%s", error.text);
    }
    for (int fewer = 0; fewer < 2; fewer++) { /* one more here, one more there */
        train_small(&other);
        if (fewer)
            other.parameters.count--;
        else
            train_add(&other, "more.bias", 4, false, 1, DIMS(3));
        tess_checkpoint_contents wrong = *contents;
        wrong.parameters = &other.parameters;
        CHECK(read_step(checkpoints, wrong, &into, &error) == -1);
        CHECK_MSG(strstr(error.text, fewer ? "last.weight where this one has (none)"
                                           : "(none) where this one has more.bias"),
                  "%s", error.text);
    }
    tess_train_config changed = config_with(",\"optimizer\":{\"rate\":0.5}");
    tess_checkpoint_contents wrong = *contents;
    wrong.config = &changed;
    CHECK(read_step(checkpoints, wrong, &into, &error) == -1);
    CHECK_MSG(strstr(error.text, "optimizer.rate: was 0.001 when the run started, and is 0.5 now"), "%s",
              error.text);
    into.sizes[TESS_STATE_AVERAGE] = 0;
    CHECK(read_step(checkpoints, *contents, &into, &error) == -1);
    CHECK_MSG(strstr(error.text, "values of average, and this run needs 0"), "%s", error.text);
    into.sizes[TESS_STATE_AVERAGE] = values->sizes[TESS_STATE_AVERAGE];
    tess_train_config_clear(&changed);
    tess_checkpoints_close(checkpoints);
    train_clear(&into);
    sweep_folder(true);
}

static tess_status failing_get(void *user, tess_training_state state, int64_t first, int64_t count,
                               float *values, tess_error *error)
{
    (void)user, (void)state, (void)first, (void)count, (void)values;
    return tess_fail(error, TESS_DEVICE_LOST, "the device failed");
}

/* A write that fails leaves the checkpoints as they were. A killed run's temporary files are removed, others are not. */
static void test_leftovers(const tess_checkpoint_contents *contents, train_memory *into)
{
    tess_error error = {""};
    tess_checkpoints *checkpoints = open_folder();
    tess_train_state state;
    write_step(checkpoints, contents, 10);
    tess_checkpoint_contents failing = *contents;
    failing.blocks.get = failing_get;
    tess_train_state_init(&state, contents->config, false);
    state.step = 20;
    CHECK(tess_checkpoint_write(checkpoints, &failing, &state, &error) == TESS_DEVICE_LOST);
    CHECK_MSG(strstr(error.text, "step-000000020.ckpt: the device failed"), "%s", error.text);
    CHECK(sweep_folder(false) == 1 && read_step(checkpoints, *contents, into, &error) == 10);
    tess_checkpoints_close(checkpoints);

    CHECK(mkdir(in_folder(".tmp-tessera-killed"), 0700) == 0 &&
          mkdir(in_folder(".tmp-tessera-other"), 0700) == 0);
    store(in_folder(".tmp-tessera-killed/new"), (const unsigned char *)"TESSCKPT....", 12);
    store(in_folder(".tmp-tessera-other/new"), (const unsigned char *)"an image....", 12);
    checkpoints = open_folder();
    CHECK(access(in_folder(".tmp-tessera-killed"), F_OK) != 0);
    CHECK(access(in_folder(".tmp-tessera-other/new"), F_OK) == 0);
    remove(in_folder(".tmp-tessera-other/new"));
    tess_checkpoints_close(checkpoints);
    sweep_folder(true);
}

/* Blocks of many buffers: no more memory than the buffer. */
static void test_large(const tess_train_config *config)
{
    train_list large = {0};
    train_memory values, into;
    tess_error error;
    train_add(&large, "w.weight", 0, false, 1, DIMS(1000, 1001));
    train_fill(&values, &large.parameters, 5);
    train_fill(&into, &large.parameters, 6);
    const tess_checkpoint_contents contents = {config, &large.parameters, train_blocks(&values)};
    tess_memory_reset_peak(&test_counter);
    tess_checkpoints *checkpoints = open_folder();
    write_step(checkpoints, &contents, 10);
    CHECK(read_step(checkpoints, contents, &into, &error) == 10 && train_same(&into, &values));
    CHECK(counted_peak() == TESS_CHECKPOINT_BUFFER);
    CHECK(values.largest * (int64_t)sizeof(float) <= TESS_CHECKPOINT_BUFFER);
    tess_checkpoints_close(checkpoints);
    train_clear(&values), train_clear(&into);
    sweep_folder(true);
}

static void test_memory(const tess_checkpoint_contents *contents)
{
    for (uint64_t n = 1; n < 600; n += n < 40 ? 1 : 7) {
        tess_checkpoints *checkpoints = open_folder();
        tess_train_state state, found;
        tess_error error = {""};
        tess_train_state_init(&state, contents->config, false);
        tess_mem_fail_at(n);
        const tess_status written = tess_checkpoint_write(checkpoints, contents, &state, &error);
        tess_mem_fail_at(0);
        CHECK_MSG(written == TESS_OK || written == TESS_NO_MEMORY, "%llu: %s", (unsigned long long)n,
                  error.text);
        CHECK(sweep_folder(false) <= 1);
        tess_mem_fail_at(n);
        const tess_status read = tess_checkpoint_read(checkpoints, contents, NULL, NULL, &found, &error);
        tess_mem_fail_at(0);
        CHECK_MSG(read == TESS_OK || read == TESS_NO_MEMORY || written != TESS_OK, "%llu: %s",
                  (unsigned long long)n, error.text);
        tess_checkpoints_close(checkpoints);
        sweep_folder(true);
    }
    CHECK(counted_now() == 0);
}

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    train_list small;
    train_memory values, into;
    tess_train_config config = config_with("");
    train_small(&small);
    train_fill(&values, &small.parameters, 1);
    train_fill(&into, &small.parameters, 2);
    const tess_checkpoint_contents contents = {&config, &small.parameters, train_blocks(&values)};
    test_checksums();
    test_round_trip(&contents, &values, &into);
    test_damage(&contents, &values, &into);
    test_others(&contents, &values);
    test_leftovers(&contents, &into);
    test_large(&config);
    test_memory(&contents);
    tess_train_config_clear(&config);
    train_clear(&values), train_clear(&into);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
