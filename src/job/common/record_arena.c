#include "job/common/record.h"
#include "net/plan.h"
#include "op/row.h"

enum { MOST_TENSORS = 400 };

static tess_json *tensor_record(const tess_net_plan *net, const tess_lifetime *life)
{
    tess_json *tensor = tess_json_object();
    const int ops = tess_net_plan_op_count(net);
    const tess_op *op = life->first < ops ? tess_net_plan_op(net, life->first) : NULL;
    tess_json_set_string(&tensor, "name", op ? tess_op_row_of(op->kind)->name : "output");
    tess_json_set_int(&tensor, "first", life->first);
    tess_json_set_int(&tensor, "last", life->last);
    tess_json_set_int(&tensor, "offset", (int64_t)life->offset);
    tess_json_set_int(&tensor, "bytes", (int64_t)life->bytes);
    return tensor;
}

void tess_record_arena(tess_json **record, const tess_bound *bound, tess_plan_shape shape)
{
    tess_net_plan *net = NULL;
    int count, held = 0;
    if (tess_net_plan_create(bound, shape, &net, NULL) != TESS_OK)
        return;
    tess_json *arena = tess_json_object(), *tensors = tess_json_array();
    const tess_lifetime *lives = tess_net_plan_lives(net, &count);
    for (int i = 0; i < count; i++)
        if (lives[i].bytes && held++ < MOST_TENSORS)
            tess_json_append(&tensors, tensor_record(net, &lives[i]));
    tess_json_set_int(&arena, "steps", tess_net_plan_op_count(net));
    tess_json_set_int(&arena, "bytes", (int64_t)tess_net_plan_arena_bytes(net));
    tess_json_set(&arena, "tensors", tensors);
    if (held <= MOST_TENSORS)
        tess_json_set(record, "arena", arena);
    else
        tess_json_free(arena);
    tess_net_plan_destroy(net);
}
