/* Connects the ranks of a job with rank 0. The address and a random secret come over MPI, so a greeting with the secret
 * can only come from a rank of this job. */
#define _GNU_SOURCE
#include "dist/watch_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

static const double ONE_TRY = 3; /* seconds for an address that may not be reachable */

typedef struct greeting {
    uint64_t secret;
    int64_t rank;
} greeting;

typedef union any_address {
    struct sockaddr plain;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} any_address;

static socklen_t size_of(int family)
{
    return family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static any_address make_address(int family, const void *bytes, uint16_t port)
{
    any_address to;
    memset(&to, 0, sizeof to);
    to.plain.sa_family = (sa_family_t)family;
    if (family == AF_INET) {
        to.four.sin_port = htons(port);
        memcpy(&to.four.sin_addr, bytes, sizeof to.four.sin_addr);
    } else {
        to.six.sin6_port = htons(port);
        memcpy(&to.six.sin6_addr, bytes, sizeof to.six.sin6_addr);
    }
    return to;
}

static void add_host(tess_watch_address *address, int family, const void *bytes)
{
    if (address->count == TESS_WATCH_HOSTS)
        return;
    address->host[address->count].family = (int16_t)family;
    memcpy(address->host[address->count++].bytes, bytes, family == AF_INET ? 4 : 16);
}

/* The addresses by which other hosts may reach this one, without those of a single link. */
static void add_interfaces(tess_watch_address *address, int family)
{
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) ||
            (i->ifa_flags & IFF_LOOPBACK))
            continue;
        any_address one;
        memcpy(&one, i->ifa_addr, size_of(family));
        if (family == AF_INET)
            add_host(address, family, &one.four.sin_addr);
        else if (!IN6_IS_ADDR_LINKLOCAL(&one.six.sin6_addr))
            add_host(address, family, &one.six.sin6_addr);
    }
    freeifaddrs(list);
}

/* Listens on IPv4, or on IPv6 where a host has no IPv4. */
static int listen_on(int family, bool local, tess_watch_address *address)
{
    const uint32_t loopback4 = htonl(INADDR_LOOPBACK), any4 = htonl(INADDR_ANY);
    const void *bytes = family == AF_INET ? (const void *)(local ? &loopback4 : &any4)
                                          : (local ? (const void *)&in6addr_loopback : &in6addr_any);
    any_address here = make_address(family, bytes, 0);
    socklen_t size = size_of(family);
    const int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0)
        return -1;
    address->count = 0;
    if (local)
        add_host(address, family, bytes);
    else
        add_interfaces(address, family);
    if (address->count == 0 || bind(listener, &here.plain, size) != 0 || listen(listener, 1024) != 0 ||
        getsockname(listener, &here.plain, &size) != 0) {
        close(listener);
        return -1;
    }
    address->port = ntohs(family == AF_INET ? here.four.sin_port : here.six.sin6_port);
    return listener;
}

int tess_socket_listen(bool local, tess_watch_address *address, tess_error *error)
{
    memset(address, 0, sizeof *address);
    if (getrandom(&address->secret, sizeof address->secret, 0) != (ssize_t)sizeof address->secret) {
        (void)tess_fail(error, TESS_IO_FAILED, "no random number: %s", strerror(errno));
        return -1;
    }
    int listener = listen_on(AF_INET, local, address);
    if (listener < 0)
        listener = listen_on(AF_INET6, local, address);
    if (listener < 0)
        (void)tess_fail(error, TESS_IO_FAILED, "cannot open a port for the other ranks: %s", strerror(errno));
    return listener;
}

/* Waits until the socket can be read or written, or `end`. */
static bool ready(int socket, short events, double end)
{
    for (;;) {
        const double left = end - tess_clock();
        struct pollfd one = {.fd = socket, .events = events};
        const int found = left > 0 ? poll(&one, 1, (int)(left * 1000) + 1) : 0;
        if (found > 0)
            return true;
        if (found == 0 || errno != EINTR)
            return false;
    }
}

static void prepare(int socket)
{
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* best effort: only slower without */
}

int tess_socket_accept(int listener, uint64_t secret, int size, double end, int *rank)
{
    while (ready(listener, POLLIN, end)) {
        const int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        greeting hello = {0};
        size_t got = 0;
        while (socket >= 0 && got < sizeof hello && ready(socket, POLLIN, end)) {
            const ssize_t part = recv(socket, (char *)&hello + got, sizeof hello - got, MSG_DONTWAIT);
            if (part == 0 || (part < 0 && errno != EAGAIN && errno != EINTR))
                break;
            got += part > 0 ? (size_t)part : 0;
        }
        if (got == sizeof hello && hello.secret == secret && hello.rank > 0 && hello.rank < size) {
            prepare(socket);
            *rank = (int)hello.rank;
            return socket;
        }
        if (socket >= 0)
            close(socket);
    }
    return -1;
}

static int try_connect(const any_address *to, double end)
{
    int why = 0;
    socklen_t size = sizeof why;
    const int one = socket(to->plain.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (one < 0)
        return -1;
    if (connect(one, &to->plain, size_of(to->plain.sa_family)) != 0 && errno != EINPROGRESS)
        why = errno;
    else if (!ready(one, POLLOUT, end))
        why = ETIMEDOUT;
    else if (getsockopt(one, SOL_SOCKET, SO_ERROR, &why, &size) != 0)
        why = errno;
    if (why == 0)
        return one;
    close(one);
    errno = why;
    return -1;
}

int tess_socket_connect(const tess_watch_address *address, int rank, double end, tess_error *error)
{
    const greeting hello = {address->secret, rank};
    char last[INET6_ADDRSTRLEN] = "";
    int why = ENETUNREACH;
    for (int i = 0; tess_clock() < end; i = (i + 1) % address->count) {
        const double soon = tess_clock() + ONE_TRY;
        const any_address to = make_address(address->host[i].family, address->host[i].bytes, address->port);
        const int one = try_connect(&to, soon < end ? soon : end);
        if (one >= 0 && send(one, &hello, sizeof hello, MSG_NOSIGNAL) == (ssize_t)sizeof hello) {
            prepare(one);
            return one;
        }
        why = errno;
        inet_ntop(address->host[i].family, address->host[i].bytes, last, sizeof last);
        if (one >= 0)
            close(one);
        if (i == address->count - 1)
            usleep(100000); /* refused by all: not too often */
    }
    (void)tess_fail(
        error, TESS_IO_FAILED,
        "cannot reach rank 0 at %s, port %d: %s; ranks need TCP connections to each other's hosts", last,
        address->port, strerror(why));
    return -1;
}
