/* The server of --live: libmicrohttpd, one thread of its own. The library is opened at run time, so that a program
 * without --live neither needs nor loads it.
 *
 * Only GET of / and /state.json is answered, from memory: there are no files that a path could lead to. A request must
 * name this server as its Host, so that a foreign page whose name was made to lead here gets nothing. Connections,
 * their memory and their time are bounded, and each takes one request. */
#include <dlfcn.h>
#include <microhttpd.h>
#include <string.h>

#include "cli.h"

enum { MOST_CONNECTIONS = 32, MOST_SECONDS = 5, MOST_BYTES = 16384, STATE_BYTES = 2048 };

static struct {
    __typeof__(&MHD_start_daemon) start;
    __typeof__(&MHD_stop_daemon) stop;
    __typeof__(&MHD_lookup_connection_value) header;
    __typeof__(&MHD_create_response_from_buffer) response;
    __typeof__(&MHD_add_response_header) add_header;
    __typeof__(&MHD_queue_response) queue;
    __typeof__(&MHD_destroy_response) destroy;
} http;
static struct MHD_Daemon *daemon_now;
static char hosts[2][32]; /* what a Host header may say */

static bool load(void)
{
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libmicrohttpd.so", RTLD_NOW | RTLD_LOCAL);
    struct {
        void *function;
        const char *name;
    } wanted[] = {{&http.start, "MHD_start_daemon"},
                  {&http.stop, "MHD_stop_daemon"},
                  {&http.header, "MHD_lookup_connection_value"},
                  {&http.response, "MHD_create_response_from_buffer"},
                  {&http.add_header, "MHD_add_response_header"},
                  {&http.queue, "MHD_queue_response"},
                  {&http.destroy, "MHD_destroy_response"}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *found = library ? dlsym(library, wanted[i].name) : NULL;
        if (!found)
            return false;
        memcpy(wanted[i].function, &found, sizeof found);
    }
    return true;
}

static enum MHD_Result send_text(struct MHD_Connection *to, unsigned status, const char *type,
                                 const char *text, size_t bytes)
{
    static const char *const always[][2] = {
        {"Cache-Control", "no-store"},
        {"Connection", "close"},
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
         "frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"}};
    struct MHD_Response *response = http.response(bytes, (void *)(size_t)text, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO; /* closes the connection */
    (void)http.add_header(response, "Content-Type", type);
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        (void)http.add_header(response, always[i][0], always[i][1]);
    const enum MHD_Result result = http.queue(to, status, response);
    http.destroy(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *to, unsigned status, const char *text)
{
    return send_text(to, status, "text/plain; charset=utf-8", text, strlen(text));
}

static enum MHD_Result answer(void *user, struct MHD_Connection *from, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_bytes, void **state)
{
    (void)user, (void)version, (void)upload, (void)upload_bytes, (void)state;
    char text[STATE_BYTES];
    const char *host = http.header(from, MHD_HEADER_KIND, "Host");
    if (!host || (strcmp(host, hosts[0]) != 0 && strcmp(host, hosts[1]) != 0))
        return refuse(from, 403, "This page is for this machine only: use its address, 127.0.0.1.\n");
    if (strcmp(method, "GET") != 0)
        return refuse(from, 405, "Only GET is answered.\n");
    if (strcmp(url, "/") == 0)
        return send_text(from, 200, "text/html; charset=utf-8", cli_live_page, strlen(cli_live_page));
    if (strcmp(url, "/state.json") != 0)
        return refuse(from, 404, "There are / and /state.json.\n");
    return send_text(from, 200, "application/json", text, cli_live_state(text, sizeof text));
}

/* A path is compared as it was sent: "/state.json%00" is another one. */
static size_t keep_escaped(void *user, struct MHD_Connection *from, char *text)
{
    (void)user, (void)from;
    return strlen(text);
}

bool cli_http_start(int listening, int port, char *why, size_t bytes)
{
    if (!load()) {
        snprintf(why, bytes,
                 "the page needs libmicrohttpd, which is not installed; install libmicrohttpd12 or leave out "
                 "--live");
        return false;
    }
    snprintf(hosts[0], sizeof hosts[0], "127.0.0.1:%d", port);
    snprintf(hosts[1], sizeof hosts[1], "localhost:%d", port);
    daemon_now = http.start(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL, answer, NULL,
                            MHD_OPTION_LISTEN_SOCKET, listening, MHD_OPTION_CONNECTION_LIMIT,
                            (unsigned)MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)MOST_SECONDS,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MOST_BYTES,
                            MHD_OPTION_UNESCAPE_CALLBACK, keep_escaped, NULL, MHD_OPTION_END);
    if (!daemon_now)
        snprintf(why, bytes, "libmicrohttpd cannot start its server");
    return daemon_now != NULL;
}

void cli_http_stop(void)
{
    if (daemon_now)
        http.stop(daemon_now);
    daemon_now = NULL;
}
