/* test_choose.c: the decision between devices as a table: made-up machines, and work of which the seconds can be told by
 * hand. Also the files that describe machines. */
#define _POSIX_C_SOURCE 200809L
#include "plan/choose.h"

#include <dirent.h>
#include <unistd.h>

#include "support.h"

static char folder[256];
static tess_error error;

/* One operation a nanosecond for each 1e9; a host and a card with round numbers. */
static const char cpu_text[] =
    "{\"kind\":\"cpu\",\"device\":\"a host\",\"flops\":1e11,\"bytes_per_second\":1e10,"
    "\"open_seconds\":0,\"job_seconds\":0.01,\"ops\":{"
    "\"path\":{\"overhead_seconds\":0,\"seconds_per_pixel\":1e-6},"
    "\"read .npy\":{\"overhead_seconds\":0,\"seconds_per_pixel\":1e-9}}}";
static const char card_text[] =
    "{\"kind\":\"cuda\",\"device\":\"a card\",\"memory\":1e9,\"fp16\":true,\"flops\":{\"fp32\":1e13,"
    "\"fp16\":1e14,\"fp64\":1e12},\"bytes_per_second\":1e12,\"link\":{\"up\":1e10,\"down\":5e9,\"latency\":"
    "1e-5},"
    "\"open_seconds\":0.4,\"job_seconds\":0.1,\"ops\":{"
    "\"conv3x3/1 8>8 F16\":{\"overhead_seconds\":1e-5,\"seconds_per_pixel\":1e-9},"
    "\"device close\":{\"overhead_seconds\":0,\"seconds_per_pixel\":1e-18},"
    "\"operator cone\":{\"overhead_seconds\":0,\"seconds_per_pixel\":2}}}";

static const char *write_file(const char *name, const char *text)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    return path;
}

static tess_rates *machine(const char *name, const char *text)
{
    tess_rates *rates = NULL;
    CHECK_MSG(tess_machine_read(write_file(name, text), &rates, &error) == TESS_OK, "%s", error.text);
    return rates;
}

/* One phase of a row: operations of an op in F32, or of a layer; bytes that go up and down. */
typedef struct made {
    double flops, layer_flops, up, down, pieces, path, read;
    bool overlap;
} made;

static void add(tess_work *work, tess_work_phase *phase, tess_work_kind kind, const char *name, bool layer,
                tess_op_amount amount)
{
    tess_work_item item = {.kind = kind, .layer = layer, .amount = amount};
    snprintf(item.op_class, sizeof item.op_class, "%s", name);
    tess_work_add(work, phase, &item);
}

static void make_phase(tess_work *work, const char *name, const made *m)
{
    tess_work_phase *phase = tess_work_begin(work, "test", name);
    if (m->flops > 0)
        add(work, phase, TESS_WORK_OP, "score1x1/1 9>9 F32", false, (tess_op_amount){1, 1, m->flops, 0});
    if (m->layer_flops > 0)
        add(work, phase, TESS_WORK_OP, "conv3x3/1 9>9 F32", true, (tess_op_amount){1, 1, m->layer_flops, 0});
    if (m->path > 0)
        add(work, phase, TESS_WORK_HOST, "path", false, (tess_op_amount){1, m->path, 0, 0});
    if (m->read > 0)
        add(work, phase, TESS_WORK_READ, "read .npy", false, (tess_op_amount){1, m->read, 0, 0});
    phase->up = m->up;
    phase->down = m->down;
    phase->pieces = m->pieces;
    phase->copies_overlap = m->overlap;
    work->card_precision = "F16";
}

static const struct {
    const char *name;
    made phase[2];
    uint64_t least_memory;
    double cpu, card; /* seconds on each alone */
    int chosen[2];
} rows[] = {
    {"nothing to do", {{0}}, 0, 0.01, 0.5, {0}},
    {"too small to open a card for", {{.flops = 4e10}}, 0, 0.41, 0.504, {0}},
    {"large enough", {{.flops = 6e10}}, 0, 0.61, 0.506, {1}},
    {"layers are computed in fp16", {{.layer_flops = 1e12}}, 0, 10.01, 0.51, {1}},
    {"the bus takes longer than the host", {{.flops = 1e11, .up = 6e9}}, 0, 1.01, 1.11, {0}},
    {"the bus down is slower", {{.flops = 1e11, .down = 3e9}}, 0, 1.01, 1.11, {0}},
    {"copies overlap with ops",
     {{.flops = 1e13, .up = 1e10, .pieces = 1e6, .overlap = true}},
     0,
     100.01,
     1.500001,
     {1}},
    {"copies do not overlap", {{.flops = 1e13, .up = 1e10, .pieces = 1e6}}, 0, 100.01, 2.5, {1}},
    {"in one piece nothing overlaps",
     {{.flops = 1e13, .up = 1e10, .pieces = 1, .overlap = true}},
     0,
     100.01,
     2.5,
     {1}},
    {"the card has too little memory", {{.flops = 1e13}}, 2000000000, 100.01, 1.5, {0}},
    {"paths are the host's on any device", {{.flops = 4e10, .path = 1e6}}, 0, 1.41, 1.504, {0}},
    {"reading hides behind ops", {{.flops = 1e11, .read = 5e8, .pieces = 1e9}}, 0, 1.01, 1.0, {1}},
    {"a phase on each device", {{.flops = 1e10, .up = 1e11}, {.flops = 1e12}}, 0, 10.11, 10.601, {0, 1}},
    {"both phases on the card, because it is open",
     {{.flops = 1e12}, {.flops = 1e10}},
     0,
     10.11,
     0.601,
     {1, 1}},
    {"neither phase alone pays, both do", {{.flops = 3e10}, {.flops = 3e10}}, 0, 0.61, 0.506, {1, 1}},
};

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-4 * fmax(fabs(a), fabs(b));
}

static void check_rows(const tess_rates *const *devices)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tess_work work = {0};
        tess_decision d;
        const int phases = rows[i].phase[1].flops > 0 ? 2 : 1;
        for (int k = 0; k < phases; k++)
            make_phase(&work, k ? "second" : "first", &rows[i].phase[k]);
        work.least_memory = rows[i].least_memory;
        tess_choose(&work, devices, 2, 2, &d);
        CHECK_MSG(near(d.device[0].seconds, rows[i].cpu) && near(d.device[1].seconds, rows[i].card),
                  "%s: %.6f and %.6f s, expected %g and %g", rows[i].name, d.device[0].seconds,
                  d.device[1].seconds, rows[i].cpu, rows[i].card);
        for (int k = 0; k < phases; k++)
            CHECK_MSG(d.chosen[k] == rows[i].chosen[k], "%s: phase %d by device %d (%s)", rows[i].name, k,
                      d.chosen[k], d.why);
        CHECK_MSG(strstr(d.why, "cpu") && strstr(d.why, "cuda"), "%s: %s", rows[i].name, d.why);
        tess_choose(&work, devices, 2, 1, &d); /* the card is only predicted */
        CHECK_MSG(d.chosen[0] == 0 && d.chosen[1] == 0 && d.devices == 2, "%s: %s", rows[i].name, d.why);
        tess_work_clear(&work);
    }
}

/* Measured classes, operators and corrections take the place of operations. */
static void check_rates(const tess_rates *const *devices)
{
    tess_work work = {.card_precision = "F16"};
    tess_prediction p;
    tess_work_phase *phase = tess_work_begin(&work, "test", "first");
    add(&work, phase, TESS_WORK_OP, "conv3x3/1 8>8 F32", true, (tess_op_amount){100, 1e6, 1e15, 0});
    tess_predict(&work, devices[1], devices[0], &p);
    CHECK_MSG(near(p.phase[0].compute, 0.001 + 0.001) && near(p.fixed, 0.5) && near(p.open, 0.4),
              "a measured class: %g s, fixed %g", p.phase[0].compute, p.fixed);
    CHECK_MSG(p.calibrated, "everything that was asked for is in the file");
    work.shapes = 1;
    tess_predict(&work, devices[1], devices[0], &p);
    CHECK_MSG(!p.calibrated && p.fixed > 0.5, "the file has no cost of a shape: %g s", p.fixed);
    work.shapes = 0;
    phase->items[0].kind = TESS_WORK_OPERATOR;
    snprintf(phase->items[0].op_class, sizeof phase->items[0].op_class, "cone");
    tess_predict(&work, devices[1], devices[0], &p);
    CHECK_MSG(near(p.phase[0].compute, 2 * 1e15 / 1e13), "an operator: %g s", p.phase[0].compute);
    phase->items[0].kind = TESS_WORK_BEYOND;
    tess_predict(&work, devices[1], devices[0], &p);
    CHECK_MSG(p.phase[0].compute == 0, "what was not measured beyond ops is nothing: %g s",
              p.phase[0].compute);
    tess_work_clear(&work);
}

static void check_refused(const char *text, const char *word)
{
    tess_rates *rates = NULL;
    const char *path = write_file("bad.json", text);
    CHECK_MSG(tess_machine_read(path, &rates, &error) != TESS_OK && !rates, "%s is taken", text);
    CHECK_MSG(strstr(error.text, "bad.json") && strstr(error.text, word), "%s: %s", text, error.text);
}

static void check_files(void)
{
    tess_rates *rates = NULL;
    check_refused("", "bad.json");
    check_refused("[1]", "kind");
    check_refused("{\"kind\":\"tpu\",\"device\":\"x\",\"flops\":1,\"bytes_per_second\":1}", "kind");
    check_refused("{\"kind\":\"cuda\",\"device\":\"x\",\"flops\":1}", "bytes_per_second");
    check_refused("{\"kind\":\"cuda\",\"device\":\"x\",\"flops\":-1,\"bytes_per_second\":1}", "flops");
    CHECK(tess_machine_read("/nowhere/at/all.json", &rates, &error) != TESS_OK && !rates);
    /* The card of an empty cache is a guess; one that was open is remembered, with its rates. */
    CHECK(tess_machine_recall("cuda", &rates, &error) == TESS_OK && !tess_machine_known(rates));
    bool measured = true;
    CHECK(tess_machine_cost(rates, TESS_COST_OPEN, &measured).overhead > 0 && !measured);
    tess_rates_destroy(rates);
    tess_rates *card = machine("card.json", card_text);
    tess_machine_remember(card);
    tess_rates_destroy(card);
    CHECK(tess_machine_recall("cuda", &rates, &error) == TESS_OK && tess_machine_known(rates));
    CHECK(strcmp(tess_rates_facts(rates)->name, "a card") == 0 && tess_rates_facts(rates)->fp16 &&
          tess_rates_facts(rates)->memory_total == 1000000000);
    tess_rates_destroy(rates);
}

static void clean(void)
{
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            CHECK(unlink(path) == 0);
    }
    if (entries)
        closedir(entries);
    CHECK(rmdir(folder) == 0);
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/tess_choose_XXXXXX");
    CHECK(mkdtemp(folder));
    setenv("TESSERA_CACHE", folder, 1);
    tess_rates *cpu = machine("cpu.json", cpu_text), *card = machine("card.json", card_text);
    const tess_rates *const devices[] = {cpu, card};
    check_rows(devices);
    check_rates(devices);
    check_files();
    tess_rates_destroy(cpu);
    tess_rates_destroy(card);
    clean();
    return check_end();
}
