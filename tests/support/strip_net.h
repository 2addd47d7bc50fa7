/* strip_net.h: a small network with all kinds of edges, for tests of images that are divided into strips or blocks. */
#ifndef TESS_TESTS_STRIP_NET_H
#define TESS_TESTS_STRIP_NET_H

#include "check.h"
#include "net/net.h"

enum { STRIP_COLOURS = 3 };

/* Convolutions at two scales, a residual, a skip that is added and one that is concatenated: all kinds of edges. */
static inline tess_net *make_strip_net(void)
{
    enum { WIDE = 32 };
    tess_error error;
    tess_net *net = tess_net_create();
    const tess_conv_settings head = {"head", WIDE, TESS_WINDOW_2D(3, 1, 1)},
                             down = {"down", 2 * WIDE, TESS_WINDOW_2D(2, 2, 0)},
                             body = {"body", 2 * WIDE, TESS_WINDOW_2D(3, 1, 1)},
                             up = {"up", WIDE, TESS_WINDOW_2D(2, 2, 0)},
                             mix = {"mix", WIDE, TESS_WINDOW_2D(5, 1, 2)},
                             tail = {"tail", STRIP_COLOURS, TESS_WINDOW_2D(3, 1, 1)};
    const tess_value in = tess_net_input(net, STRIP_COLOURS);
    const tess_value x = tess_net_activate(net, tess_net_conv(net, in, head), TESS_RELU);
    tess_value y = tess_net_conv(net, x, down);
    y = tess_net_add(
        net, tess_net_conv(net, tess_net_activate(net, tess_net_conv(net, y, body), TESS_RELU), body), y);
    y = tess_net_add(net, tess_net_conv_transpose(net, y, up), x);
    y = tess_net_conv(net, y, mix);
    y = tess_net_concat(net, y, tess_net_conv(net, x, mix));
    CHECK(tess_net_finish(net, tess_net_conv(net, y, tail), &error) == TESS_OK);
    return net;
}

#endif
