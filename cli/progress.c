/* Progress and notes on standard error. On a terminal one line is rewritten, cut to the terminal's width; elsewhere a
 * plain line is printed every ten seconds. Jobs call this from several threads. */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

enum { LONGEST = 512 };
static const double TERMINAL_SECONDS = 0.2, PLAIN_SECONDS = 10;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    double last;       /* when a line was written */
    int columns;       /* of an unfinished line on the terminal */
    bool ended;        /* the line of 100 % was written */
    int64_t at, count; /* the current file, from 1 */
    int64_t first;     /* what was done before: steps of a resumed run */
    char name[256];
} shown = {.first = -1};

/* Bytes of at most `columns` characters of UTF-8; *used is how many there are. */
static size_t cut(const char *text, int columns, int *used)
{
    size_t bytes = 0;
    *used = 0;
    for (; text[bytes]; bytes++) {
        const bool begins = ((unsigned char)text[bytes] & 0xC0) != 0x80;
        if (begins && *used == columns)
            break;
        *used += begins;
    }
    return bytes;
}

static int terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

static void time_left(double seconds, char *text, size_t bytes)
{
    const long long whole = (long long)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, bytes, "%lld h %02lld min left", whole / 3600, whole / 60 % 60);
    else if (whole >= 60)
        snprintf(text, bytes, "%lld min %02lld s left", whole / 60, whole % 60);
    else
        snprintf(text, bytes, "%lld s left", whole);
}

static void write_over(const char *text)
{
    int used;
    const size_t bytes = cut(text, terminal_columns() - 1, &used);
    fprintf(stderr, "\r%.*s%*s", (int)bytes, text, shown.columns > used ? shown.columns - used : 0, "");
    shown.columns = used;
}

static void end_line(void)
{
    if (shown.columns > 0)
        fputc('\n', stderr);
    shown.columns = 0;
}

void cli_end_line(void)
{
    pthread_mutex_lock(&lock);
    end_line();
    pthread_mutex_unlock(&lock);
}

static void show_steps(int64_t done, int64_t total, double seconds)
{
    char left[64], text[LONGEST];
    const int64_t now = done - shown.first;
    time_left(now > 0 ? seconds / (double)now * (double)(total - done) : 0, left, sizeof left);
    snprintf(text, sizeof text, "%3.0f %%  step %lld of %lld  %s", 100 * (double)done / (double)total,
             (long long)done, (long long)total, left);
    write_over(text);
    if (done >= total)
        end_line();
}

static void show(int64_t done, int64_t total, double seconds, bool terminal)
{
    const double share = (double)done / (double)total;
    char left[64], file[LONGEST / 2 + 64] = "", text[LONGEST];
    time_left(share > 0 && share < 1 ? seconds * (1 - share) / share : 0, left, sizeof left);
    if (shown.count > 1)
        snprintf(file, sizeof file, "  %lld/%lld %s", (long long)shown.at, (long long)shown.count,
                 shown.name);
    const double rate = seconds > 0 ? 1e-6 * (double)done / seconds : 0;
    char speed[32];
    snprintf(speed, sizeof speed, rate < 0.1 ? "%.2g" : "%.2f", rate);
    snprintf(text, sizeof text, "%3.0f %%  %s megapixels a second  %s%s", 100 * share, speed, left, file);
    if (!terminal)
        fprintf(stderr, "%s\n", text);
    else
        write_over(text);
    if (done >= total)
        end_line();
}

bool cli_poll(void *user, int64_t done, int64_t total, double seconds)
{
    (void)user, (void)done, (void)total, (void)seconds;
    return !cli_signal_caught();
}

static bool on_progress(void *user, int64_t done, int64_t total, double seconds)
{
    const cli_shared *shared = user;
    cli_live_progress(done, total, seconds);
    if (shared->quiet || total <= 0 || !cli_speaks())
        return !cli_signal_caught();
    pthread_mutex_lock(&lock);
    static int terminal = -1; /* cached, because jobs poll often */
    if (terminal < 0)
        terminal = isatty(STDERR_FILENO);
    const double pause = terminal ? TERMINAL_SECONDS : PLAIN_SECONDS;
    const bool end = done >= total;
    if (shown.first < 0)
        shown.first = done;
    if (seconds < shown.last)
        shown.last = 0; /* restart the clock */
    if (end ? !shown.ended && seconds >= pause : seconds - shown.last >= pause) {
        shown.last = seconds;
        shown.ended = end;
        if (!shared->steps)
            show(done, total, seconds, terminal);
        else if (terminal)
            show_steps(done, total, seconds);
    }
    pthread_mutex_unlock(&lock);
    return !cli_signal_caught();
}

static void on_file(void *user, int64_t index, int64_t count, const char *name)
{
    (void)user;
    cli_live_file(index, count, name);
    pthread_mutex_lock(&lock);
    shown.at = index + 1;
    shown.count = count;
    int used;
    snprintf(shown.name, sizeof shown.name, "%.*s", (int)cut(name, (int)sizeof shown.name / 4, &used), name);
    for (char *at = shown.name; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7F)
            *at = '?'; /* control characters in a file name must not reach the terminal */
    pthread_mutex_unlock(&lock);
}

static void on_note(void *user, tess_note_level level, const char *text)
{
    const cli_shared *shared = user;
    if (shared->quiet || !cli_speaks() || (level == TESS_NOTE_DETAIL && !shared->verbose))
        return;
    char line[CLI_MESSAGE];
    snprintf(line, sizeof line, "%s", text);
    cli_name_options(line);
    pthread_mutex_lock(&lock);
    end_line();
    fprintf(stderr, level == TESS_NOTE_PROGRESS ? "%s\n" : "tessera: note: %s\n", line);
    pthread_mutex_unlock(&lock);
}

void cli_progress_connect(tess_common *common, const cli_shared *shared)
{
    common->progress = on_progress;
    common->file = on_file;
    common->note = on_note;
    common->progress_user = (void *)shared;
}
