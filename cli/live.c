/* What --live shows: the job's progress and the state of its context, as JSON, and the page that asks for it. The job's
 * threads only store a few numbers here, under a lock that nobody holds for long. */
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"
#include "tessera_trace.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const cli_shared *shared; /* NULL: there is no page */
    const tess_context *context;
    int64_t done, total, first; /* first: what was done before this run; -1: nothing was reported yet */
    double seconds;
    int64_t file_at, file_count;
    char file[256];
} live = {.first = -1};
static char place[4096]; /* of the file that names the port */
static volatile int place_there;

void cli_live_progress(int64_t done, int64_t total, double seconds)
{
    if (!live.shared)
        return;
    pthread_mutex_lock(&lock);
    live.first = live.first < 0 ? done : live.first;
    live.done = done;
    live.total = total;
    live.seconds = seconds;
    pthread_mutex_unlock(&lock);
}

void cli_live_file(int64_t index, int64_t count, const char *name)
{
    if (!live.shared)
        return;
    pthread_mutex_lock(&lock);
    live.file_at = index + 1;
    live.file_count = count;
    snprintf(live.file, sizeof live.file, "%s", name);
    pthread_mutex_unlock(&lock);
}

/* A name as the inside of a JSON string: what is not plain ASCII becomes "?". */
static void plain(const char *name, char *to, size_t bytes)
{
    size_t used = 0;
    for (; *name && used + 1 < bytes; name++)
        to[used++] = *name < ' ' || *name > '~' || *name == '"' || *name == '\\' ? '?' : *name;
    to[used] = '\0';
}

/* JSON has no NaN and no infinity. */
static const char *number(double value, char text[32])
{
    snprintf(text, 32, "%.9g", value);
    return isfinite(value) ? text : "null";
}

static double seconds_left(void)
{
    const int64_t before = live.shared->steps && live.first > 0 ? live.first : 0;
    return live.done > before ? live.seconds / (double)(live.done - before) * (double)(live.total - live.done)
                              : NAN;
}

size_t cli_live_state(char *text, size_t bytes)
{
    tess_job_state state;
    char file[256], left[32], loss[32], psnr[32], planned[32], share[32];
    tess_job_state_init(&state);
    pthread_mutex_lock(&lock);
    if (!live.shared) {
        pthread_mutex_unlock(&lock);
        return 0;
    }
    tess_context_state(live.context, &state);
    plain(live.file, file, sizeof file);
    const int length = snprintf(
        text, bytes,
        "{\"program\":\"tessera\",\"version\":\"%s\",\"verb\":\"%s\",\"pid\":%ld,\"unit\":\"%s\",\"done\":%"
        "lld,"
        "\"total\":%lld,\"share\":%s,\"seconds\":%.3f,\"seconds_left\":%s,\"file\":\"%s\",\"file_at\":%lld,"
        "\"file_count\":%lld,\"held_bytes\":%llu,\"peak_bytes\":%llu,\"planned_bytes\":%s,\"loss\":%s,"
        "\"psnr_db\":%s}\n",
        TESSERA_VERSION, live.shared->verb, (long)getpid(), live.shared->steps ? "steps" : "pixels",
        (long long)live.done, (long long)live.total,
        number(live.total > 0 ? (double)live.done / (double)live.total : NAN, share), live.seconds,
        number(seconds_left(), left), file, (long long)live.file_at, (long long)live.file_count,
        (unsigned long long)state.held_bytes, (unsigned long long)state.peak_bytes,
        number(state.planned_bytes ? (double)state.planned_bytes : NAN, planned), number(state.loss, loss),
        number(state.psnr_db, psnr));
    pthread_mutex_unlock(&lock);
    return length > 0 && (size_t)length < bytes ? (size_t)length : 0;
}

bool cli_live_place(long pid, char *path, size_t bytes)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    if (!folder || folder[0] != '/')
        return false;
    const int length = snprintf(path, bytes, "%s/tessera-live-%ld", folder, pid);
    return length > 0 && (size_t)length < bytes;
}

/* Lets `tessera top` find the page; without such a folder, the user names the port. */
static void say_where(int port)
{
    if (!cli_live_place((long)getpid(), place, sizeof place))
        return;
    const int file = open(place, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    place_there = 1;
    char text[32];
    const int length = snprintf(text, sizeof text, "%d\n", port);
    if (write(file, text, (size_t)length) != length)
        cli_live_cleanup();
    close(file);
}

void cli_live_cleanup(void)
{
    if (place_there)
        unlink(place);
    place_there = 0;
}

/* A socket that listens on 127.0.0.1; -1: errno says why not. */
static int listen_here(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    const int yes = 1, file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file < 0)
        return -1;
    if (setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(file, (struct sockaddr *)&address, bytes) == 0 && listen(file, 64) == 0 &&
        getsockname(file, (struct sockaddr *)&address, &bytes) == 0) {
        *port = ntohs(address.sin_port);
        return file;
    }
    const int why = errno;
    close(file);
    errno = why;
    return -1;
}

int cli_live_begin(const cli_shared *shared, tess_context *context)
{
    char why[CLI_MESSAGE];
    int port = shared->live;
    const int listening = listen_here(&port);
    if (listening < 0) {
        cli_complain("--live %d: %s", shared->live, strerror(errno));
        return CLI_FAILED;
    }
    live.context = context;
    live.shared = shared;
    if (!cli_http_start(listening, port, why, sizeof why)) {
        live.shared = NULL;
        close(listening);
        cli_complain("--live %d: %s", shared->live, why);
        return CLI_FAILED;
    }
    say_where(port);
    if (!shared->quiet || shared->live == 0)
        fprintf(stderr, "tessera: live page at http://127.0.0.1:%d/\n", port);
    return -1;
}

void cli_live_end(void)
{
    if (!live.shared)
        return;
    cli_http_stop(); /* returns when no request is being answered */
    cli_live_cleanup();
    live.shared = NULL;
}
