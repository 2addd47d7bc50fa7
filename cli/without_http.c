/* Takes the place of live_http.c in a build without libmicrohttpd. */
#include "cli.h"

bool cli_http_start(int listening, int port, char *why, size_t bytes)
{
    (void)listening, (void)port;
    snprintf(why, bytes,
             "this program was built without libmicrohttpd; build it with libmicrohttpd-dev installed");
    return false;
}

void cli_http_stop(void)
{
}
