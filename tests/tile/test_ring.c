/* test_ring.c: random strips through the ring. Rows carry their number in every byte, so source, worker and sink can
 * check that each sees the right row at the right time; the buffer has exactly the promised bytes, with guards around
 * it; if one of them fails, the others stop and the message is returned. */
#define _POSIX_C_SOURCE 200809L
#include "tile/ring.h"

#include "support.h"

enum { GUARD = 256, NOBODY = 0, SOURCE, WORKER, SINK };

typedef struct trip {
    tess_ring_settings settings;
    int64_t next_read, next_strip, next_write; /* each touched by one thread at a time */
    int64_t wrong_read, wrong_strip, wrong_write;
    int64_t calls[4];
    int fails;        /* who */
    int64_t fails_at; /* on which of its calls */
    tess_status with;
    char *from, *to; /* the buffer */
} trip;

static unsigned char in_byte(int64_t row, size_t at)
{
    return (unsigned char)(row * 37 + (row >> 8) + (int64_t)at * 11 + 1);
}

static unsigned char out_byte(int64_t row, size_t at)
{
    return (unsigned char)(row * 59 + (row >> 7) + (int64_t)at * 3 + 2);
}

static tess_status turn(trip *t, int who, tess_error *error)
{
    if (t->fails == who && t->calls[who]++ == t->fails_at)
        return tess_fail(error, t->with, "number %d failed at call %lld", who, (long long)t->fails_at);
    return TESS_OK;
}

static bool inside(const trip *t, const void *rows, int64_t count, size_t row_bytes)
{
    const char *data = rows;
    return count > 0 && data >= t->from && data + (size_t)count * row_bytes <= t->to;
}

static tess_status read_some(void *user, int64_t first, int64_t count, void *rows, tess_error *error)
{
    trip *t = user;
    const size_t size = t->settings.in_row_bytes;
    TESS_TRY(turn(t, SOURCE, error));
    t->wrong_read +=
        first != t->next_read || first + count > t->settings.image_rows || !inside(t, rows, count, size);
    t->next_read = first + count;
    for (int64_t y = 0; y < count; y++)
        for (size_t i = 0; i < size; i++)
            ((unsigned char *)rows)[(size_t)y * size + i] = in_byte(first + y, i);
    return TESS_OK;
}

static tess_status work(void *user, const tess_strip *strip, tess_error *error)
{
    trip *t = user;
    const tess_ring_settings *s = &t->settings;
    const tess_span span = tess_axis_span(&s->rows, strip->index);
    t->wrong_strip += strip->index != t->next_strip++ || memcmp(&span, &strip->span, sizeof span) != 0;
    t->wrong_strip +=
        strip->first != span.from || strip->first + strip->count != tess_min_i64(span.to, s->image_rows);
    t->wrong_strip += !inside(t, strip->out, strip->count, s->out_row_bytes);
    for (int64_t y = span.window_from; y < span.window_to; y++) {
        const unsigned char *row = (const unsigned char *)tess_strip_row(strip, y);
        t->wrong_strip += !inside(t, row, 1, s->in_row_bytes);
        for (size_t i = 0; i < s->in_row_bytes; i++)
            t->wrong_strip += row[i] != in_byte(tess_min_i64(y, s->image_rows - 1), i);
    }
    TESS_TRY(turn(t, WORKER, error));
    for (int64_t y = 0; y < strip->count; y++)
        for (size_t i = 0; i < s->out_row_bytes; i++)
            ((unsigned char *)strip->out)[(size_t)y * s->out_row_bytes + i] = out_byte(strip->first + y, i);
    return TESS_OK;
}

static tess_status write_some(void *user, int64_t first, int64_t count, const void *rows, tess_error *error)
{
    trip *t = user;
    const size_t size = t->settings.out_row_bytes;
    t->wrong_write += first != t->next_write || !inside(t, rows, count, size);
    t->next_write = first + count;
    TESS_TRY(turn(t, SINK, error));
    for (int64_t y = 0; y < count; y++)
        for (size_t i = 0; i < size; i++)
            t->wrong_write += ((const unsigned char *)rows)[(size_t)y * size + i] != out_byte(first + y, i);
    return TESS_OK;
}

static tess_ring_settings random_settings(dice *d)
{
    int64_t grid = (int64_t)1 << pick(d, 0, 3), alignment = grid << pick(d, 0, 3), rows = pick(d, 1, 300);
    int64_t tile = pick(d, 0, 5) ? pick(d, 1, 80) : 0,
            halo = pick(d, 0, 2) ? pick(d, 0, 40) : pick(d, 0, 400);
    const int64_t padded = tess_round_up(rows, grid);
    return (tess_ring_settings){.rows = pick(d, 0, 1)
                                            ? tess_axis_cut(padded, tile, halo, alignment)
                                            : tess_axis_split(padded, pick(d, 1, 9), halo, alignment),
                                .image_rows = rows,
                                .in_row_bytes = (size_t)pick(d, 1, 40),
                                .out_row_bytes = (size_t)pick(d, 1, 40),
                                .source = read_some,
                                .worker = work,
                                .sink = write_some};
}

static tess_status run_trip(trip *t, tess_error *error)
{
    const tess_ring_settings *s = &t->settings;
    size_t size = tess_ring_bytes(&s->rows, s->image_rows, s->in_row_bytes, s->out_row_bytes);
    unsigned char *memory = room(size + 2 * GUARD);
    memset(memory, 0xa5, size + 2 * GUARD);
    t->from = (char *)memory + GUARD;
    t->to = t->from + size;
    t->settings.user = t;
    tess_status status = tess_ring_run(&t->settings, t->from, error);
    int touched = 0;
    for (size_t i = 0; i < GUARD; i++)
        touched += memory[i] != 0xa5 || memory[GUARD + size + i] != 0xa5;
    CHECK_MSG(touched == 0, "%d guard bytes were written", touched);
    CHECK_MSG(t->wrong_read == 0 && t->wrong_strip == 0 && t->wrong_write == 0, "wrong: %lld %lld %lld",
              (long long)t->wrong_read, (long long)t->wrong_strip, (long long)t->wrong_write);
    free(memory);
    return status;
}

static void test_whole_trips(void)
{
    for (int seed = 0; seed < 300; seed++) {
        dice d = {(uint64_t)seed};
        trip t = {.settings = random_settings(&d)};
        tess_error error = {{0}};
        CHECK_MSG(run_trip(&t, &error) == TESS_OK, "seed %d: %s", seed, error.text);
        CHECK_MSG(t.next_read == t.settings.image_rows && t.next_write == t.settings.image_rows &&
                      t.next_strip == t.settings.rows.tiles,
                  "seed %d", seed);
    }
}

/* Some of the strips, as the rows of tiles of one rank: the reader begins with the first one's window. */
static void test_part_trips(void)
{
    for (int seed = 0; seed < 200; seed++) {
        dice d = {2000 + (uint64_t)seed};
        trip t = {.settings = random_settings(&d)};
        tess_ring_settings *s = &t.settings;
        tess_error error = {{0}};
        s->first_strip = pick(&d, 0, s->rows.tiles - 1);
        s->end_strip = pick(&d, s->first_strip + 1, s->rows.tiles);
        const tess_span first = tess_axis_span(&s->rows, s->first_strip),
                        last = tess_axis_span(&s->rows, s->end_strip - 1);
        t.next_read = first.window_from;
        t.next_write = first.from;
        t.next_strip = s->first_strip;
        CHECK_MSG(run_trip(&t, &error) == TESS_OK, "seed %d: %s", seed, error.text);
        CHECK_MSG(t.next_read == tess_min_i64(last.window_to, s->image_rows) &&
                      t.next_write == tess_min_i64(last.to, s->image_rows) && t.next_strip == s->end_strip,
                  "seed %d", seed);
    }
}

/* Each of the three fails at every one of its calls. */
static void test_failures(void)
{
    for (int seed = 0; seed < 25; seed++)
        for (int who = SOURCE; who <= SINK; who++)
            for (int64_t at = 0;; at++) {
                dice d = {500 + (uint64_t)seed};
                trip t = {.settings = random_settings(&d), .fails = who, .fails_at = at};
                t.with = (seed + who) % 2 ? TESS_INTERRUPTED : TESS_IO_FAILED;
                tess_error error = {{0}};
                char text[80];
                snprintf(text, sizeof text, "number %d failed at call %lld", who, (long long)at);
                tess_status status = run_trip(&t, &error);
                if (t.calls[who] <= at) { /* it never came to that call */
                    CHECK(status == TESS_OK && at > 0);
                    break;
                }
                CHECK_MSG(status == t.with && strcmp(error.text, text) == 0, "seed %d: %d, '%s' for '%s'",
                          seed, status, error.text, text);
                CHECK_MSG(t.calls[who] == at + 1, "called again after it failed");
                CHECK(who == SINK || t.next_write <= t.next_strip * tess_axis_largest_tile(&t.settings.rows));
            }
}

/* The ring needs two threads; none is left behind when there is no memory for one. */
static void test_no_memory(void)
{
    for (uint64_t n = 1; n <= 2; n++) {
        dice d = {900};
        trip t = {.settings = random_settings(&d)};
        tess_error error = {{0}};
        tess_mem_fail_at(n);
        CHECK(run_trip(&t, &error) == TESS_NO_MEMORY && t.next_strip == 0);
        tess_mem_fail_at(0);
    }
}

/* Memory depends on the strip, not on the image. */
static void test_bytes(void)
{
    tess_axis little = tess_axis_cut(1000, 50, 10, 1), large = tess_axis_cut(1000000, 50, 10, 1);
    CHECK(tess_ring_bytes(&little, 1000, 64, 64) == tess_ring_bytes(&large, 1000000, 64, 64));
    CHECK(tess_ring_bytes(&little, 1000, 64, 64) == (50 + 50 + 2 * 10 + 2 * 50) * 64);
    tess_axis one = tess_axis_cut(40, 0, 10, 1);
    CHECK(tess_ring_bytes(&one, 33, 64, 128) == 33 * 64 + 33 * 128);
}

int main(void)
{
    test_whole_trips();
    test_part_trips();
    test_failures();
    test_no_memory();
    test_bytes();
    return check_end();
}
