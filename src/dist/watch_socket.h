/* watch_socket.h: the connections of a watch. */
#ifndef TESS_DIST_WATCH_SOCKET_H
#define TESS_DIST_WATCH_SOCKET_H

#include "base/status.h"

enum { TESS_WATCH_HOSTS = 8 };
/* How rank 0 is reached: plain data, to be broadcast. */
typedef struct tess_watch_address {
    uint64_t secret; /* proves that a connection comes from this job */
    uint16_t port;
    int16_t count;
    struct {
        int16_t family;
        uint8_t bytes[16]; /* in network order */
    } host[TESS_WATCH_HOSTS];
} tess_watch_address;

/* Opens a port on all addresses of this host, or on the loopback alone; -1 on failure. */
int tess_socket_listen(bool local, tess_watch_address *address, tess_error *error);
/* Waits for a connection and its greeting until `end` (tess_clock). Returns the socket and the rank; -1: nobody came in
 * time. Strangers are turned away. */
int tess_socket_accept(int listener, uint64_t secret, int size, double end, int *rank);
/* Tries the addresses in turn until `end`, and greets; -1 on failure. */
int tess_socket_connect(const tess_watch_address *address, int rank, double end, tess_error *error);

#endif
