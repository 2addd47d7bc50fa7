/* links.h: how long ranks take to send bytes to each other, from a few facts about the machine. Ranks are numbered node by
 * node. Inside a node two ranks have a link of their own (NVLink, or shared memory), and a rank can use several of them at
 * once; between nodes all ranks of a node share its adapters. A message of n bytes takes latency + n / rate (the alpha-beta
 * model; Hockney, Parallel Computing 20, 1994).
 *
 * Every function is for a call that all ranks make at the same time, which is what the schedules of Tessera do, so that what
 * shares an adapter is known. */
#ifndef TESS_PLAN_LINKS_H
#define TESS_PLAN_LINKS_H

#include "base/json.h"

typedef struct tess_links {
    int per_node; /* ranks of a node */
    struct {
        double latency, rate; /* seconds; bytes a second between two ranks, each way */
        double rank_rate;     /* of one rank to all others of its node together */
    } inside;
    struct {
        double latency, rate; /* of one adapter, each way */
        int adapters;         /* of a node */
        double shared;        /* with more than two nodes messages cross switches and take this much longer */
    } outside;
} tess_links;

/* Reads "network" of a machine file. Messages name the key. */
tess_status tess_links_parse(const tess_json *machine, tess_links *links, tess_error *error) TESS_MUST_CHECK;
tess_status tess_links_read(const char *path, tess_links *links, tess_error *error) TESS_MUST_CHECK;

int tess_links_nodes(const tess_links *links, int ranks);
/* True if ranks `lower` and `lower + 1` are on different nodes. */
bool tess_links_crosses(const tess_links *links, int lower);

/* Each rank exchanges `bytes` with both of its neighbours: what ranks `lower` and `lower + 1` take. */
double tess_links_exchange(const tess_links *links, int ranks, int lower, double bytes);
/* The same for any two ranks, as those of neighbouring blocks: `crossing` are the bytes that the node that sends more sends to other
 * nodes at that time, with these. */
double tess_links_pair(const tess_links *links, int ranks, int one, int other, double bytes, double crossing);
/* All ranks get the sum of arrays of `bytes`. Inside a node by a ring; between nodes by two trees, each for one half of the
 * array, in which a node is a leaf of one and has two children in the other (Sanders, Speck, Traeff, Parallel Computing 35,
 * 2009), as NCCL does it: a node sends the array once if there are two nodes, else twice. */
double tess_links_all_reduce(const tess_links *links, int ranks, double bytes);
/* All ranks get an array of `bytes` of which each has one part; or each gets its part of the sum of such arrays. */
double tess_links_all_gather(const tess_links *links, int ranks, double bytes);
/* An array of `bytes` in parts by rows becomes parts by columns: each rank sends a piece to each other. */
double tess_links_transpose(const tess_links *links, int ranks, double bytes);
/* Each rank sends bytes[from * ranks + to] to each other, all at once. What a rank sends to itself takes no time. */
double tess_links_all_to_all(const tess_links *links, int ranks, const double *bytes);

#endif
