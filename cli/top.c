/* tessera top: the state of a job with --live, in the terminal. It asks for /state.json, a flat object whose keys are
 * found as text: inside of a string, a quote would have a backslash before it. */
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

enum { ANSWER = 8192, LINES = 6, MOST_SECONDS = 5 };

typedef struct top_target {
    bool once;
} top_target;

static const cli_option options[] = {
    {"--once", NULL, cli_flag, offsetof(top_target, once), "print the state once, as JSON"},
};

static bool write_all(int file, const char *text, size_t length)
{
    for (ssize_t part; length > 0; text += part, length -= (size_t)part)
        if ((part = write(file, text, length)) <= 0)
            return false;
    return true;
}

/* Asks for the state, and returns the body of the answer, or NULL. */
static const char *ask(int port, char answer[ANSWER])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const struct timeval most = {.tv_sec = MOST_SECONDS};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file < 0)
        return NULL;
    (void)setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    (void)setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    char request[128];
    const int length =
        snprintf(request, sizeof request, "GET /state.json HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);
    size_t used = 0;
    if (connect(file, (struct sockaddr *)&address, sizeof address) == 0 &&
        write_all(file, request, (size_t)length))
        for (ssize_t part; used < ANSWER - 1 && (part = read(file, answer + used, ANSWER - 1 - used)) > 0;)
            used += (size_t)part;
    close(file);
    answer[used] = '\0';
    const char *body = strstr(answer, "\r\n\r\n");
    return strncmp(answer, "HTTP/1.1 200", 12) == 0 && body &&
                   strncmp(body + 4, "{\"program\":\"tessera\"", 20) == 0
               ? body + 4
               : NULL;
}

/* The number after a key; `other` if it is null or not there. */
static double number_of(const char *state, const char *key, double other)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"%s\":", key);
    const char *at = strstr(state, wanted);
    char *end = NULL;
    const double value = at ? strtod(at + strlen(wanted), &end) : other;
    return at && end != at + strlen(wanted) ? value : other;
}

static void text_of(const char *state, const char *key, char *to, size_t bytes)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"%s\":\"", key);
    const char *at = strstr(state, wanted);
    at = at ? at + strlen(wanted) : "";
    snprintf(to, bytes, "%.*s", (int)strcspn(at, "\""), at);
    for (char *c = to; *c; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c; /* nothing of another program reaches the terminal as it is */
}

static void show(const char *state, bool terminal, bool first)
{
    char verb[32], unit[16], file[256], figure[96] = "";
    text_of(state, "verb", verb, sizeof verb);
    text_of(state, "unit", unit, sizeof unit);
    text_of(state, "file", file, sizeof file);
    const double share = number_of(state, "share", 0), left = number_of(state, "seconds_left", -1),
                 planned = number_of(state, "planned_bytes", -1), loss = number_of(state, "loss", -1),
                 psnr = number_of(state, "psnr_db", -1), mib = 1.0 / (1 << 20);
    const int bar = (int)(40 * (share < 0 ? 0 : share > 1 ? 1 : share));
    if (loss >= 0)
        snprintf(figure, sizeof figure, "loss %.4g  ", loss);
    if (psnr >= 0)
        snprintf(figure + strlen(figure), sizeof figure - strlen(figure), "PSNR %.2f dB", psnr);
    const char *end = terminal ? "\033[K\n" : "\n";
    if (terminal && !first)
        cli_print(stdout, "\033[%dA", LINES);
    cli_print(stdout, "tessera %s, process %.0f%s", verb, number_of(state, "pid", 0), end);
    cli_print(stdout, "[%.*s%*s] %5.1f %%%s", bar, "########################################", 40 - bar, "",
              100 * share, end);
    cli_print(stdout, "%-9s %.0f of %.0f  %s%s", unit, number_of(state, "done", 0),
              number_of(state, "total", 0), file, end);
    cli_print(stdout, "time      %.0f s", number_of(state, "seconds", 0));
    if (left >= 0)
        cli_print(stdout, ", %.0f s left", left);
    cli_print(stdout, "%smemory    %.1f MiB, peak %.1f MiB", end, mib * number_of(state, "held_bytes", 0),
              mib * number_of(state, "peak_bytes", 0));
    if (planned >= 0)
        cli_print(stdout, ", planned %.1f MiB", mib * planned);
    cli_print(stdout, "%s%s%s", end, figure, end);
    fflush(stdout);
}

/* The only running job of this user that has a page; otherwise complains and returns -1. */
static int find_port(void)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    DIR *list = folder && folder[0] == '/' ? opendir(folder) : NULL;
    int found = -1, count = 0;
    for (struct dirent *entry; list && (entry = readdir(list));) {
        char path[4096], text[32] = "";
        long pid = 0;
        if (sscanf(entry->d_name, "tessera-live-%ld", &pid) != 1 || pid <= 0 ||
            (kill((pid_t)pid, 0) != 0 && errno == ESRCH) || !cli_live_place(pid, path, sizeof path))
            continue;
        const int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        const ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : -1;
        if (file >= 0)
            close(file);
        if (length <= 0 || atoi(text) <= 0)
            continue;
        found = atoi(text);
        count++;
    }
    if (list)
        closedir(list);
    if (count == 1)
        return found;
    cli_complain(count ? "top: several jobs have a page; name the port of one"
                       : "top: no running job with --live was found; name its port");
    return -1;
}

/* PORT, or a URL of this machine. */
static int port_of(const char *word)
{
    static const char *const before[] = {
        "http://127.0.0.1:", "http://localhost:", "127.0.0.1:", "localhost:"};
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        if (strncmp(word, before[i], strlen(before[i])) == 0) {
            word += strlen(before[i]);
            break;
        }
    char *end;
    const long port = strtol(word, &end, 10);
    return end != word && (!*end || strcmp(end, "/") == 0) && port > 0 && port < 65536 ? (int)port : -1;
}

static int run(int argc, char **argv, bool plan)
{
    (void)plan;
    cli_shared shared;
    top_target target = {false};
    int count, status = cli_parse(&cli_top, argc, argv, &shared, &target, &count);
    if (status >= 0)
        return status;
    const int port = count ? port_of(argv[0]) : find_port();
    if (count && port < 0)
        return cli_complain("top: %s: use the port of a job with --live, or http://127.0.0.1:PORT/", argv[0]);
    if (port < 0)
        return CLI_FAILED;
    static char answer[ANSWER];
    const char *state = ask(port, answer);
    if (!state) {
        cli_complain("top: no job answers at 127.0.0.1:%d", port);
        return CLI_FAILED;
    }
    if (target.once) {
        cli_print(stdout, "%s", state);
        return CLI_DONE;
    }
    const bool terminal = isatty(STDOUT_FILENO);
    for (bool first = true; state && !cli_output_failed(); first = false, state = ask(port, answer)) {
        show(state, terminal, first);
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
    return CLI_DONE;
}

const cli_verb cli_top = {
    .name = "top",
    .what = "where a running job with --live stands",
    .usage = "[PORT|URL]",
    .text = "Shows progress, loss or PSNR, memory against the plan, and the time left of a job that was "
            "started with "
            "--live, once a second until it ends. Without PORT it looks for the only such job of this user.",
    .example = "tessera top 8080",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .least = 0,
    .most = 1,
    .alone = true,
    .run = run,
};
