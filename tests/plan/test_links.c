/* test_links.c: the model of links, and of a network over ranks, as tables of numbers that can be told by hand. */
#define _POSIX_C_SOURCE 200809L
#include "plan/ranks/links.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "plan/machine.h"
#include "plan/ranks/scaling.h"
#include "plan/ranks/sketch.h"
#include "plan/ranks/strips.h"
#include "plan/ranks/timetable.h"
#include "support.h"

static tess_error error;

/* Nodes of 4 ranks. Inside 1 us and 10 bytes a ns for a pair, 20 for a rank; outside 5 us and one adapter of 1 byte a ns. */
static const tess_links links = {.per_node = 4, .inside = {1e-6, 10e9, 20e9}, .outside = {5e-6, 1e9, 1, 1.5}};

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b) + 1e-18;
}

static void check_exchange(void)
{
    static const struct {
        int ranks, lower;
        double seconds; /* of 1e6 bytes */
    } rows[] = {
        {2, 0, 1e-6 + 1e-4},        /* inside a node */
        {8, 2, 1e-6 + 1e-4},        /* the same */
        {8, 3, 5e-6 + 1e-3},        /* two nodes: each has one neighbour */
        {12, 3, 5e-6 + 2 * 1.5e-3}, /* the node in the middle shares its adapter, and there are switches */
        {16, 11, 5e-6 + 2 * 1.5e-3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double seconds = tess_links_exchange(&links, rows[i].ranks, rows[i].lower, 1e6);
        CHECK_MSG(near(seconds, rows[i].seconds), "exchange %d of %d: %g, not %g", rows[i].lower,
                  rows[i].ranks, seconds, rows[i].seconds);
    }
    tess_links wide = links;
    wide.outside.adapters = 2; /* one for each neighbour */
    CHECK(near(tess_links_exchange(&wide, 12, 3, 1e6), 5e-6 + 1.5e-3));
    CHECK(tess_links_crosses(&links, 3) && !tess_links_crosses(&links, 2));
    CHECK(tess_links_nodes(&links, 4) == 1 && tess_links_nodes(&links, 5) == 2);
}

static void check_collectives(void)
{
    static const struct {
        int ranks;
        double all_reduce, all_gather, transpose; /* of 1e6 bytes */
    } rows[] = {
        {1, 0, 0, 0},
        /* One link of 10: 1e5 ns, once for each half. */
        {2, 2e-6 + 1e-4, 1e-6 + 0.5e-4, 1e-6 + 0.25e-4},
        /* Three links, of which a rank can use two: 20. */
        {4, 6e-6 + 1.5 * 0.5e-4, 3e-6 + 0.75 * 0.5e-4, 3e-6 + 3.0 / 16 * 0.5e-4},
        /* Two nodes: an adapter sends the array, half of it, or the 16 pieces of 1/64 that leave the node. */
        {8, 2 * (3e-6 + 5e-6) + 1e-3, 3e-6 + 5e-6 + 0.5e-3, 3e-6 + 5e-6 + 0.25e-3},
        /* Four nodes: twice the array, 3/4 of it, 4 * 12 / 256 of it, all 1.5 times as slow. */
        {16, 2 * (3e-6 + 2 * 5e-6) + 3e-3, 3e-6 + 15e-6 + 0.75 * 1.5e-3, 3e-6 + 15e-6 + 48.0 / 256 * 1.5e-3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int ranks = rows[i].ranks;
        const double sum = tess_links_all_reduce(&links, ranks, 1e6),
                     gather = tess_links_all_gather(&links, ranks, 1e6),
                     transpose = tess_links_transpose(&links, ranks, 1e6);
        CHECK_MSG(near(sum, rows[i].all_reduce), "sum of %d: %g, not %g", ranks, sum, rows[i].all_reduce);
        CHECK_MSG(near(gather, rows[i].all_gather), "gather of %d: %g, not %g", ranks, gather,
                  rows[i].all_gather);
        CHECK_MSG(near(transpose, rows[i].transpose), "transpose of %d: %g, not %g", ranks, transpose,
                  rows[i].transpose);
    }
}

/* Pieces of any size: what one rank sends, or receives, and what crosses the adapters of a node. */
static void check_all_to_all(void)
{
    enum { RANKS = 8 };
    static const struct {
        int from, to;
        double size, seconds; /* with those of the rows before */
    } rows[] = {
        {2, 2, 1e9, 0},                    /* to itself */
        {0, 1, 1e6, 1e-6 + 1e-4},          /* one link of 10 */
        {0, 2, 1e6, 2e-6 + 1e-4},          /* two links, of which a rank can use both */
        {0, 3, 1e6, 3e-6 + 1.5e-4},        /* three are limited to 20 together */
        {3, 1, 2e6, 3e-6 + 2e-4},          /* rank 1 receives from two */
        {0, 4, 1e6, 3e-6 + 5e-6 + 1e-3},   /* an adapter */
        {1, 5, 1e6, 3e-6 + 5e-6 + 2e-3},   /* which ranks share */
        {6, 2, 1.5e6, 3e-6 + 5e-6 + 2e-3}, /* the other way at the same time */
    };
    double sent[RANKS * RANKS] = {0}, same[4 * 4];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sent[rows[i].from * RANKS + rows[i].to] = rows[i].size;
        const double seconds = tess_links_all_to_all(&links, RANKS, sent);
        CHECK_MSG(near(seconds, rows[i].seconds), "row %d: %g, not %g", (int)i, seconds, rows[i].seconds);
    }
    for (int i = 0; i < 16; i++)
        same[i] = 1e6 / 16;
    CHECK(near(tess_links_all_to_all(&links, 4, same), tess_links_transpose(&links, 4, 1e6)));
}

static void check_parse(void)
{
    static const struct {
        const char *text, *key; /* key: what the message names; NULL: it is right */
    } rows[] = {
        {"{\"network\":{\"ranks_per_node\":4,\"inside\":{\"latency\":0,\"bytes_per_second\":1e9},"
         "\"outside\":{\"latency\":1e-6,\"bytes_per_second\":1e9}}}",
         NULL},
        {"{}", "network: must be there"},
        {"{\"network\":{}}", "network.ranks_per_node: must be a number above 0"},
        {"{\"network\":{\"ranks_per_node\":2.5}}", "network.ranks_per_node: must be a whole number"},
        {"{\"network\":{\"ranks_per_node\":4,\"inside\":{\"latency\":-1}}}", "network.inside.latency"},
        {"{\"network\":{\"ranks_per_node\":4,\"inside\":{\"latency\":0,\"bytes_per_second\":0}}}",
         "network.inside.bytes_per_second"},
        {"{\"network\":{\"ranks_per_node\":4,\"inside\":{\"latency\":0,\"bytes_per_second\":1},"
         "\"outside\":{\"latency\":1}}}",
         "network.outside.bytes_per_second"},
        {"{\"network\":{\"ranks_per_node\":4,\"inside\":{\"latency\":0,\"bytes_per_second\":1},"
         "\"outside\":{\"latency\":1,\"bytes_per_second\":1,\"adapters\":\"two\"}}}",
         "network.outside.adapters"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tess_json *json = NULL;
        tess_links read;
        CHECK(tess_json_parse(rows[i].text, strlen(rows[i].text), &json, &error) == TESS_OK);
        const tess_status status = tess_links_parse(json, &read, &error);
        CHECK_MSG((status == TESS_OK) == !rows[i].key, "%s", rows[i].text);
        CHECK_MSG(!rows[i].key || strstr(error.text, rows[i].key), "%s: %s", rows[i].key, error.text);
        if (!rows[i].key)
            CHECK(read.per_node == 4 && near(read.inside.rank_rate, 1e9) && read.outside.adapters == 1 &&
                  near(read.outside.shared, 1));
        tess_json_free(json);
    }
}

/* Two stages on three ranks: what overlaps and what waits. */
static void check_timetable(void)
{
    const tess_links plain = {.per_node = 8, .inside = {0.5, 1, 1}, .outside = {0, 1, 1, 1}};
    tess_stage quick[] = {{.bytes = 1, .whole = 9, .inner = 4, .edges = 1, .after = 2},
                          {.bytes = 2, .whole = 1}};
    tess_stage slow[] = {{.bytes = 1, .whole = 9, .inner = 4, .edges = 1, .after = 2},
                         {.bytes = 2, .whole = 1, .after = 3}};
    const tess_timetable a = {.before = 1, .stages = quick, .count = 2, .sides = 1},
                         b = {.before = 3, .stages = slow, .count = 2, .sides = 2};
    const tess_timetable *ranks[] = {&a, &b, &a};
    tess_timetable_time time;
    /* First exchange: ranks 0 and 2 begin at 1 and rank 1 at 3, rows are there at 4.5. Ranks 0, 2: 5 + 1 + 2 = 8. Rank 1: 7 + 1 + 2
     * = 10. Second: there at 12.5; ranks 0, 2 end at 13.5, rank 1 at 16.5. */
    CHECK(tess_timetable_run(ranks, (tess_pace){0}, 3, 1, &plain, &time, &error) == TESS_OK);
    CHECK_MSG(near(time.seconds, 16.5), "%g", time.seconds);
    CHECK_MSG(near(time.compute, 14) && near(time.communication, 2.5), "%g", time.compute);
    CHECK(near(time.sent, 6));
    /* Rank 1 has half the speed. First exchange: it begins at 6, and rows are there at 7.5. Ranks 0, 2: 7.5 + 1 + 2 = 10.5. Rank 1: 14 +
     * 2 + 4 = 20. Second: there at 22.5; ranks 0, 2 end at 23.5, rank 1 at 30.5. */
    static const double speeds[] = {1, 0.5, 1};
    CHECK(tess_timetable_run(ranks, (tess_pace){.of_rank = speeds}, 3, 1, &plain, &time, &error) == TESS_OK);
    CHECK_MSG(near(time.seconds, 30.5) && near(time.compute, 28), "%g %g", time.seconds, time.compute);
    /* Rank 1 has half the speed in its second stage alone: it ends at 12.5 + 2 + 6. */
    static const double stages[] = {1, 1, 1, 1, 1, 0.5, 1, 1, 1};
    const tess_pace pace = {.of_rank = speeds, .of_stage = stages, .stages = 2};
    CHECK(tess_timetable_run(ranks, pace, 3, 1, &plain, &time, &error) == TESS_OK);
    CHECK_MSG(near(time.seconds, 20.5) && near(time.compute, 18), "%g %g", time.seconds, time.compute);
    /* Alone it waits for nobody. */
    const tess_timetable alone = {.before = 7};
    ranks[0] = &alone;
    CHECK(tess_timetable_run(ranks, (tess_pace){0}, 1, 1, &plain, &time, &error) == TESS_OK);
    CHECK(near(time.seconds, 7) && near(time.communication, 0) && near(time.sent, 0));
}

/* Two rows of two blocks, of which the last begins late. */
static void check_grid(void)
{
    tess_links plain = {.per_node = 8, .inside = {0.5, 1, 1}, .outside = {0.25, 1, 1, 1}};
    tess_stage stage[] = {{.bytes = 1, .beside = 2, .corner = 0.25, .whole = 1}};
    const tess_timetable soon = {.before = 1, .stages = stage, .count = 1, .sides = 1, .beside = 1},
                         late = {.before = 3, .stages = stage, .count = 1, .sides = 1, .beside = 1};
    const tess_timetable *ranks[] = {&soon, &soon, &soon, &late};
    tess_timetable_time time;
    /* Ranks 2 and 3 wait for columns of each other, from 3 to 5.5; rank 1 for rows of rank 3 until 4.5; rank 0 for a corner of it. */
    CHECK(tess_timetable_run(ranks, (tess_pace){0}, 4, 2, &plain, &time, &error) == TESS_OK);
    CHECK_MSG(near(time.seconds, 6.5) && near(time.compute, 4) && near(time.sent, 3.25), "%g %g %g",
              time.seconds, time.compute, time.sent);
    /* Two nodes: two rows and two corners share an adapter, and ranks 1 and 3 have them at 3 + 0.25 + 2.5. */
    plain.per_node = 2;
    CHECK(tess_timetable_run(ranks, (tess_pace){0}, 4, 2, &plain, &time, &error) == TESS_OK);
    CHECK_MSG(near(time.seconds, 6.75), "%g", time.seconds);
}

static void check_strips(void)
{
    static const int64_t heights[] = {100, 512, 513, 600, 1000, 4096};
    for (size_t i = 0; i < sizeof heights / sizeof *heights; i++)
        for (int64_t ranks = 1; ranks < 70; ranks++) {
            const tess_strips s = tess_strips_of(8, heights[i], ranks);
            int64_t row = 0, most = 0;
            for (int64_t k = 0; k < s.count; k++) {
                const int64_t rows = tess_strips_rows(&s, k);
                CHECK(tess_strips_row(&s, k) == row && rows > 0 && row % 8 == 0);
                row += rows;
                most = rows > most ? rows : most;
            }
            CHECK(row == heights[i] && s.count <= ranks);
            CHECK_MSG(most <= (heights[i] / s.count / 8 + 2) * 8, "%lld rows of %lld on %lld",
                      (long long)most, (long long)heights[i], (long long)ranks);
        }
}

/* The time of an op on a machine with processors: full rounds of blocks, Winograd, launch. */
static void check_op(const char *folder)
{
    char path[300];
    snprintf(path, sizeof path, "%s/machine.json", folder);
    FILE *file = fopen(path, "w");
    CHECK(file &&
          fputs("{\"kind\":\"cuda\",\"device\":\"d\",\"flops\":1e9,\"bytes_per_second\":1e15,"
                "\"launch_seconds\":1e-3,\"units\":10,\"unit_outputs\":100,\"winograd\":2}",
                file) >= 0 &&
          fclose(file) == 0);
    tess_rates *rates = NULL;
    CHECK_MSG(tess_machine_read(path, &rates, &error) == TESS_OK, "%s", error.text);
    /* 1500 outputs are 15 blocks: two rounds of 10, so 2000 are paid for, of 2 * 9 * 4 operations each. */
    tess_op op = {.kind = TESS_OP_CONV,
                  .inputs = 1,
                  .outputs = 1,
                  .in = {tess_tensor_2d(TESS_F32, 1, 15, 10, 4)},
                  .out = {tess_tensor_2d(TESS_F32, 1, 15, 10, 10)},
                  .kernel = {1, 3, 3},
                  .stride = {1, 1, 1},
                  .pad_before = {0, 1, 1},
                  .pad_after = {0, 1, 1}};
    bool measured = true;
    const double seconds = tess_rates_op_seconds(rates, &op, &measured), expected = 2000 * 72 / 2e9 + 1e-3;
    CHECK_MSG(near(seconds, expected) && !measured, "%g, not %g", seconds, expected);
    op.kernel[TESS_DEPTH] = 3; /* of a volume: no Winograd */
    CHECK(near(tess_rates_op_seconds(rates, &op, &measured), 2000 * 216 / 1e9 + 1e-3));
    tess_rates_destroy(rates);
    remove(path);
}

static void check_problems(void)
{
    tess_scale_problem p;
    CHECK(tess_scale_problem_of("deblur", 1024, false, &p) && p.height == 1024 && p.width == 683);
    CHECK(tess_scale_problem_of("deblur", 1024, true, &p) && p.width == 1024 && p.channels == 3);
    CHECK(tess_scale_problem_of("tomo3d", 512, false, &p) && p.depth == 512 && p.rows == 576);
    CHECK(!tess_scale_problem_of("sharpen", 512, false, &p));
}

int main(void)
{
    char folder[] = "/tmp/tessera-links-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    check_exchange();
    check_collectives();
    check_all_to_all();
    check_parse();
    check_timetable();
    check_grid();
    check_strips();
    check_op(folder);
    check_problems();
    remove(folder);
    return check_end();
}
