/* The arithmetic of the group norm in clusters, without a card: every pixel, channel and partial sum has exactly one owner,
 * and everything fits. */
#include <stdlib.h>

#include "check.h"
#include "cuda/norm/norm_split.h"

enum { PORTABLE = 8 };

/* Where thread t of a block of a slice is in the image; -1: it has nothing in this round. */
static int64_t value_of(const tess_norm_split *s, int piece, int slice, int block, int round, int t)
{
    const int first = tess_norm_first(s->pixels, s->shift, block),
              end = tess_norm_first(s->pixels, s->shift, block + 1), lane = t / s->pieces,
              pixel = first + lane + round * s->lanes;
    if (lane >= s->lanes || pixel >= end)
        return -1;
    return (int64_t)pixel * s->channels * s->slices + slice * s->channels + t % s->pieces * piece;
}

static void check_cover(const tess_norm_split *s, int piece, const char *name)
{
    const int64_t values = (int64_t)s->pixels * s->channels * s->slices;
    char *seen = calloc((size_t)values, 1);
    for (int slice = 0; slice < s->slices; slice++)
        for (int block = 0; block < s->blocks; block++)
            for (int round = 0; round < s->rounds; round++)
                for (int t = 0; t < TESS_NORM_THREADS; t++) {
                    const int64_t at = value_of(s, piece, slice, block, round, t);
                    for (int i = 0; at >= 0 && i < piece; i++)
                        seen[at + i]++;
                }
    int64_t wrong = 0;
    for (int64_t i = 0; i < values; i++)
        wrong += seen[i] != 1;
    CHECK_MSG(wrong == 0, "%s: %lld values have no owner, or several", name, (long long)wrong);
    free(seen);
    for (int block = 0; block < s->blocks; block++)
        CHECK_MSG(tess_norm_first(s->pixels, s->shift, block + 1) -
                          tess_norm_first(s->pixels, s->shift, block) <=
                      s->rounds * s->lanes,
                  "%s: a block has more pixels than places", name);
}

/* The partial sum that a thread's sums end in; its piece must be that of the threads that are folded into it. */
static void check_partials(const tess_norm_split *s, const char *name)
{
    const int kept = 32 >> s->folds;
    for (int t = 0; t < TESS_NORM_THREADS; t++) {
        const int partial = t / 32 * kept + t % 32 % kept;
        CHECK_MSG(t / s->pieces >= s->lanes || partial % s->pieces == t % s->pieces,
                  "%s: thread %d is folded into another piece", name, t);
        CHECK_MSG(partial < s->partials, "%s: thread %d has no place for its sums", name, t);
    }
    CHECK_MSG(s->folds == 0 || s->lanes * s->pieces == TESS_NORM_THREADS, "%s: folds idle threads", name);
    CHECK_MSG(s->partials / s->pieces >= 1, "%s: no partial sum", name);
}

/* What a group's reducers read: all segments of its channels and no others. */
static void check_groups(const tess_norm_split *s, int piece, const char *name)
{
    const int segments = piece / s->segment, parts = s->width / s->segment;
    char *seen = calloc((size_t)s->channels, 1);
    for (int g = 0; g < s->groups; g++)
        for (int m = 0; m < parts; m++) {
            const int at = g * parts + m, channel = at / segments * piece + at % segments * s->segment;
            CHECK_MSG(channel / s->width == g && (channel + s->segment - 1) / s->width == g,
                      "%s: segment %d is not of group %d", name, at, g);
            for (int i = 0; i < s->segment; i++)
                seen[channel + i]++;
        }
    for (int c = 0; c < s->channels; c++)
        CHECK_MSG(seen[c] == 1, "%s: channel %d has %d groups", name, c, seen[c]);
    CHECK_MSG(s->width % s->segment == 0 && piece % s->segment == 0, "%s: segments straddle", name);
    free(seen);
    CHECK_MSG(s->reducers >= 1 && s->reducers <= 32 && (s->reducers & (s->reducers - 1)) == 0,
              "%s: reducers leave their warp", name);
}

static void check_memory(const tess_norm_split *s, const char *name)
{
    CHECK_MSG(s->shared <= TESS_NORM_SHARED && s->shared > 0, "%s: %d bytes", name, s->shared);
    CHECK_MSG(s->sums_at % 16 == 0 && s->blocks_at % 8 == 0 && s->counts_at % 8 == 0 && s->table_at % 4 == 0,
              "%s: parts are not aligned", name);
    CHECK_MSG(s->sums_at < s->blocks_at && s->blocks_at < s->counts_at && s->counts_at < s->table_at &&
                  s->table_at < s->shared,
              "%s: parts overlap", name);
    CHECK_MSG(s->held >= 1 && s->held * s->fills >= s->rounds && s->held * (s->fills - 1) < s->rounds &&
                  s->sums_at == s->held * TESS_NORM_THREADS * TESS_NORM_PIECE,
              "%s: %d fills of %d rounds", name, s->fills, s->held);
    CHECK_MSG(s->blocks == 1 << s->shift && s->blocks <= TESS_NORM_MOST_BLOCKS, "%s: blocks", name);
}

static bool check_split(int64_t pixels, int64_t channels, int groups, int size)
{
    tess_norm_split s = {0};
    char name[96];
    snprintf(name, sizeof name, "%lld pixels, %lld channels, %d groups, %d bytes", (long long)pixels,
             (long long)channels, groups, size);
    if (!tess_norm_split_of(pixels, channels, groups, size, &s))
        return false;
    const int piece = TESS_NORM_PIECE / size;
    CHECK_MSG((int64_t)s.slices * s.channels == channels && s.groups * s.slices == groups &&
                  s.groups * s.width == s.channels && s.pieces * piece == s.channels,
              "%s: slices of %d channels", name, s.channels);
    check_cover(&s, piece, name);
    check_partials(&s, name);
    check_groups(&s, piece, name);
    check_memory(&s, name);
    return true;
}

/* The group norms of the diffusion network at windows of 128 pixels, and how many blocks work on an image. */
static void check_network(void)
{
    static const struct {
        int side, channels, blocks, slices;
    } shapes[] = {
        {128, 32, 16, 1}, {128, 64, 16, 2}, {128, 96, 16, 4}, {64, 32, 8, 1},  {64, 64, 8, 2},
        {64, 96, 16, 2},  {64, 128, 8, 4},  {64, 192, 16, 4}, {32, 64, 2, 2},  {32, 128, 2, 4},
        {32, 192, 4, 4},  {32, 256, 2, 8},  {32, 384, 4, 8},  {16, 128, 1, 4}, {16, 256, 1, 8},
        {16, 384, 1, 8},  {16, 512, 1, 16}, {8, 256, 1, 8},   {8, 512, 1, 16},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const int64_t pixels = (int64_t)shapes[i].side * shapes[i].side;
        tess_norm_split s = {0};
        CHECK(check_split(pixels, shapes[i].channels, 32, 2));
        CHECK(check_split(pixels, shapes[i].channels, 32, 4));
        CHECK(tess_norm_split_of(pixels, shapes[i].channels, 32, 2, &s));
        CHECK_MSG(s.blocks == shapes[i].blocks && s.slices == shapes[i].slices,
                  "%d channels of %d x %d: %d blocks, %d slices", shapes[i].channels, shapes[i].side,
                  shapes[i].side, s.blocks, s.slices);
        /* At least three blocks fit a multiprocessor, which has a kilobyte more for each. */
        CHECK_MSG(3 * (s.shared + 1024) <= 228 * 1024, "%d channels of %d x %d: %d bytes", shapes[i].channels,
                  shapes[i].side, shapes[i].side, s.shared);
    }
}

int main(void)
{
    static const int widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 48, 100};
    static const int pixels[] = {1, 2, 3, 17, 63, 64, 65, 255, 1000, 4099, 20000};
    int fits = 0;
    check_network();
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
        for (int groups = 1; groups <= 32; groups++)
            for (size_t p = 0; p < sizeof pixels / sizeof pixels[0]; p++) {
                if ((int64_t)pixels[p] * widths[w] * groups > 1 << 18)
                    continue;
                fits += check_split(pixels[p], (int64_t)widths[w] * groups, groups, 2);
                fits += check_split(pixels[p], (int64_t)widths[w] * groups, groups, 4);
            }
    CHECK_MSG(fits > 1000, "only %d splits", fits);
    tess_norm_split s = {0};
    CHECK(check_split(256 * 256, 32, 32, 2) && check_split(256 * 256, 96, 32, 2));
    CHECK(check_split(512 * 512, 32, 32, 2) && check_split(512 * 513, 96, 32, 2));
    CHECK(tess_norm_split_of(512 * 512, 32, 32, 2, &s) && s.fills > 1); /* does not fit at once */
    CHECK(!tess_norm_split_of(1024 * 1024, 32, 32, 2, &s));             /* too large */
    CHECK(!tess_norm_split_of(64, 36, 4, 2, &s));                       /* no whole pieces */
    CHECK(!tess_norm_split_of(64, 4096, 1, 2, &s)); /* a pixel has more pieces than threads */
    CHECK(!tess_norm_split_of((int64_t)1 << 40, 1 << 18, 32, 2, &s)); /* no overflow */
    CHECK(!tess_norm_split_of((1 << 24) - 1, 1 << 18, 32, 2, &s));
    /* Clusters beyond what every card of the kind takes are made for large images only. */
    CHECK(tess_norm_split_of(64 * 64, 64, 32, 2, &s) && s.blocks <= PORTABLE);
    return check_end();
}
