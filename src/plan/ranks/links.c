#include "plan/ranks/links.h"

#include <math.h>

#include "plan/machine.h"

int tess_links_nodes(const tess_links *links, int ranks)
{
    return (ranks + links->per_node - 1) / links->per_node;
}

bool tess_links_crosses(const tess_links *links, int lower)
{
    return lower / links->per_node != (lower + 1) / links->per_node;
}

/* Seconds a byte of a node's adapters together. */
static double outside_byte(const tess_links *links, int nodes, double adapters)
{
    return (nodes > 2 ? links->outside.shared : 1) / (links->outside.rate * adapters);
}

/* What a rank sends when it uses its links to `others` ranks of its node. */
static double inside_rate(const tess_links *links, int others)
{
    return fmin(links->inside.rank_rate, links->inside.rate * others);
}

/* The neighbours of a node that it exchanges rows with. */
static int sides(const tess_links *links, int ranks, int node)
{
    return (node > 0) + (node + 1 < tess_links_nodes(links, ranks));
}

double tess_links_exchange(const tess_links *links, int ranks, int lower, double bytes)
{
    if (!tess_links_crosses(links, lower))
        return links->inside.latency + bytes / links->inside.rate;
    const int node = lower / links->per_node;
    const double flows = fmax(sides(links, ranks, node), sides(links, ranks, node + 1)),
                 each = fmin(1, links->outside.adapters / flows); /* adapters for one flow */
    return links->outside.latency + bytes * outside_byte(links, tess_links_nodes(links, ranks), each);
}

double tess_links_pair(const tess_links *links, int ranks, int one, int other, double bytes, double crossing)
{
    if (one / links->per_node == other / links->per_node)
        return links->inside.latency + bytes / links->inside.rate;
    return links->outside.latency +
           fmax(bytes * outside_byte(links, tess_links_nodes(links, ranks), 1),
                crossing * outside_byte(links, tess_links_nodes(links, ranks), links->outside.adapters));
}

double tess_links_all_reduce(const tess_links *links, int ranks, double bytes)
{
    const int nodes = tess_links_nodes(links, ranks),
              locals = ranks < links->per_node ? ranks : links->per_node;
    if (ranks < 2)
        return 0;
    const double inside =
        locals < 2 ? 0 : 2.0 * (locals - 1) / locals * bytes / inside_rate(links, locals - 1);
    if (nodes == 1)
        return 2 * (ranks - 1) * links->inside.latency + inside;
    const double sent = (nodes == 2 ? 1 : 2) * bytes,
                 outside = sent * outside_byte(links, nodes, links->outside.adapters);
    return 2 * ((locals - 1) * links->inside.latency + ceil(log2(nodes)) * links->outside.latency) +
           fmax(inside, outside); /* in pieces, so that the slower part hides the other */
}

double tess_links_all_gather(const tess_links *links, int ranks, double bytes)
{
    const int nodes = tess_links_nodes(links, ranks),
              locals = ranks < links->per_node ? ranks : links->per_node;
    if (ranks < 2)
        return 0;
    const double inside = locals < 2 ? 0 : (locals - 1.0) / locals * bytes / inside_rate(links, locals - 1);
    if (nodes == 1)
        return (ranks - 1) * links->inside.latency + inside;
    const double outside =
        (nodes - 1.0) / nodes * bytes * outside_byte(links, nodes, links->outside.adapters);
    return (locals - 1) * links->inside.latency + (nodes - 1) * links->outside.latency +
           fmax(inside, outside);
}

double tess_links_transpose(const tess_links *links, int ranks, double bytes)
{
    const int nodes = tess_links_nodes(links, ranks),
              locals = ranks < links->per_node ? ranks : links->per_node;
    if (ranks < 2)
        return 0;
    const double piece = bytes / ranks / ranks,
                 inside = locals < 2 ? 0 : (locals - 1) * piece / inside_rate(links, locals - 1),
                 outside = locals * (double)(ranks - locals) * piece;
    return (locals - 1) * links->inside.latency + (nodes - 1) * links->outside.latency +
           fmax(inside, outside > 0 ? outside * outside_byte(links, nodes, links->outside.adapters) : 0);
}

/* What a rank sends, or what it receives. */
typedef struct flow {
    double inside, most_inside, outside, most_outside; /* bytes, and the most of one message */
    int messages_inside, messages_outside;
} flow;

static flow flow_of(const tess_links *links, int ranks, const double *bytes, int rank, bool sends)
{
    flow f = {0};
    for (int other = 0; other < ranks; other++) {
        const double n = bytes[sends ? rank * ranks + other : other * ranks + rank];
        if (other == rank || !(n > 0))
            continue;
        if (other / links->per_node == rank / links->per_node) {
            f.inside += n, f.messages_inside++;
            f.most_inside = fmax(f.most_inside, n);
        } else {
            f.outside += n, f.messages_outside++;
            f.most_outside = fmax(f.most_outside, n);
        }
    }
    return f;
}

double tess_links_all_to_all(const tess_links *links, int ranks, const double *bytes)
{
    const int nodes = tess_links_nodes(links, ranks);
    double inside = 0, outside = 0, latency = 0;
    for (int sends = 0; sends < 2; sends++)
        for (int node = 0; node < nodes; node++) {
            double crossing = 0;
            for (int r = node * links->per_node; r < ranks && r < (node + 1) * links->per_node; r++) {
                const flow f = flow_of(links, ranks, bytes, r, sends);
                inside = fmax(inside,
                              fmax(f.inside / links->inside.rank_rate, f.most_inside / links->inside.rate));
                outside = fmax(outside, f.most_outside * outside_byte(links, nodes, 1));
                latency = fmax(latency, f.messages_inside * links->inside.latency +
                                            f.messages_outside * links->outside.latency);
                crossing += f.outside;
            }
            outside = fmax(outside, crossing * outside_byte(links, nodes, links->outside.adapters));
        }
    return latency + fmax(inside, outside);
}

/* A number of an object; `least` itself is allowed only if it is 0 and `zero` is set. */
typedef struct number {
    const char *object, *key;
    double fallback; /* NaN: it must be there */
    bool zero;
} number;

static tess_status get(const tess_json *object, number n, double *out, tess_error *error)
{
    const tess_json *value = tess_json_get(object, n.key);
    *out = tess_json_as_double(value, value ? NAN : n.fallback);
    if (*out > 0 || (n.zero && *out >= 0))
        return isfinite(*out) ? TESS_OK
                              : tess_fail(error, TESS_BAD_INPUT, "%s.%s: must be finite", n.object, n.key);
    return tess_fail(error, TESS_BAD_INPUT, "%s.%s: must be a number %s", n.object, n.key,
                     n.zero ? "from 0 on" : "above 0");
}

static tess_status get_count(const tess_json *object, number n, int *out, tess_error *error)
{
    double value;
    TESS_TRY(get(object, n, &value, error));
    if (value > 1e6 || floor(value) < value)
        return tess_fail(error, TESS_BAD_INPUT, "%s.%s: must be a whole number", n.object, n.key);
    *out = (int)value;
    return TESS_OK;
}

tess_status tess_links_parse(const tess_json *machine, tess_links *l, tess_error *error)
{
    static const char IN[] = "network.inside", OUT[] = "network.outside";
    const tess_json *network = tess_json_get(machine, "network"), *in = tess_json_get(network, "inside"),
                    *out = tess_json_get(network, "outside");
    if (!tess_json_is_object(network))
        return tess_fail(error, TESS_BAD_INPUT,
                         "network: must be there, with \"ranks_per_node\", \"inside\" and \"outside\"");
    TESS_TRY(get_count(network, (number){"network", "ranks_per_node", NAN, false}, &l->per_node, error));
    TESS_TRY(get(in, (number){IN, "latency", NAN, true}, &l->inside.latency, error));
    TESS_TRY(get(in, (number){IN, "bytes_per_second", NAN, false}, &l->inside.rate, error));
    TESS_TRY(
        get(in, (number){IN, "rank_bytes_per_second", l->inside.rate, false}, &l->inside.rank_rate, error));
    TESS_TRY(get(out, (number){OUT, "latency", NAN, true}, &l->outside.latency, error));
    TESS_TRY(get(out, (number){OUT, "bytes_per_second", NAN, false}, &l->outside.rate, error));
    TESS_TRY(get_count(out, (number){OUT, "adapters", 1, false}, &l->outside.adapters, error));
    return get(out, (number){OUT, "shared", 1, false}, &l->outside.shared, error);
}

tess_status tess_links_read(const char *path, tess_links *links, tess_error *error)
{
    tess_json *json = NULL;
    TESS_TRY(tess_machine_json(path, &json, error));
    tess_status status = tess_links_parse(json, links, error);
    if (status != TESS_OK)
        status = tess_fail_prefix(error, status, path);
    tess_json_free(json);
    return status;
}
