#include "physics/stack.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { ALIGN = 256 }; /* alignment of tensors on devices */

typedef struct stack {
    tess_operator op; /* first: a tess_operator * is a stack * */
    tess_prepared *sum;
    int64_t count;
    tess_operator **parts;
    size_t stage_at, image_at; /* in the scratch, after that of the parts: a measurement, an image */
} stack;

static int64_t elements(const tess_tensor *t)
{
    return t->n * t->d * t->h * t->w * t->c;
}

static size_t bytes_of(const tess_tensor *t)
{
    return (size_t)elements(t) * sizeof(float);
}

/* Whether a part's measurement is aligned in that of the stack. If not, it is copied through the stage, because
 * devices require aligned tensors. */
static bool aligned(size_t at)
{
    return at % ALIGN == 0;
}

static void stack_forward(tess_operator *op, const void *image, void *measurement, void *scratch,
                          tess_stream *stream)
{
    const stack *s = (const stack *)op;
    char *to = measurement, *stage = (char *)scratch + s->stage_at;
    size_t at = 0;
    for (int64_t i = 0; i < s->count; i++) {
        tess_operator *part = s->parts[i];
        const size_t bytes = bytes_of(&part->measurement);
        part->table->forward(part, image, aligned(at) ? to + at : stage, scratch, stream);
        if (!aligned(at))
            op->device->memory->copy(op->device, to + at, stage, bytes, stream);
        at += bytes;
    }
}

static void stack_adjoint(tess_operator *op, const void *measurement, void *image, void *scratch,
                          tess_stream *stream)
{
    const stack *s = (const stack *)op;
    const char *from = measurement;
    char *stage = (char *)scratch + s->stage_at, *more = (char *)scratch + s->image_at;
    size_t at = 0;
    for (int64_t i = 0; i < s->count; i++) {
        tess_operator *part = s->parts[i];
        const size_t bytes = bytes_of(&part->measurement);
        if (!aligned(at))
            op->device->memory->copy(op->device, stage, from + at, bytes, stream);
        part->table->adjoint(part, aligned(at) ? from + at : stage, i == 0 ? image : more, scratch, stream);
        const tess_op_buffers buffers = {.in = {image, more}, .out = {image}};
        if (i > 0)
            op->device->ops->run(op->device, s->sum, &buffers, stream);
        at += bytes;
    }
}

static void stack_destroy(tess_operator *op)
{
    stack *s = (stack *)op;
    if (s->sum)
        op->device->ops->release(op->device, s->sum);
    for (int64_t i = 0; i < s->count; i++)
        tess_operator_destroy(s->parts[i]);
    tess_small_free(s->parts);
    tess_small_free(s);
}

static const tess_operator_table table = {
    .destroy = stack_destroy, .forward = stack_forward, .adjoint = stack_adjoint};

static tess_status prepare_sum(stack *s, tess_error *error)
{
    tess_op op;
    memset(&op, 0, sizeof op);
    op.kind = TESS_OP_COMBINE;
    op.outputs = 1;
    op.in[0] = op.out[0] = op.in[1] = s->op.image;
    op.inputs = 2;
    op.combine = (tess_op_combine){1, 1, 0, -INFINITY, INFINITY};
    return s->op.device->ops->prepare(s->op.device, &op, &s->sum, error);
}

static tess_status build(stack *s, tess_error *error)
{
    const tess_operator *first = s->parts[0];
    s->op.device = first->device;
    s->op.image = first->image;
    size_t scratch = 0, stage = 0;
    int64_t all = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const tess_operator *part = s->parts[i];
        if (part->device != first->device || !tess_tensor_same(&part->image, &first->image))
            return tess_fail(error, TESS_BAD_OPTION,
                             "operators %s and %s do not take the same image; stack those that do",
                             first->name, part->name);
        all += elements(&part->measurement);
        scratch = scratch > part->scratch_bytes ? scratch : part->scratch_bytes;
        stage = stage > bytes_of(&part->measurement) ? stage : bytes_of(&part->measurement);
        s->op.held_bytes += part->held_bytes;
        s->op.forward_flops += part->forward_flops;
        s->op.forward_bytes += part->forward_bytes;
    }
    s->op.measurement = tess_tensor_2d(TESS_F32, 1, 1, all, 1);
    s->op.norm_squared = s->count == 1 ? first->norm_squared : 0;
    s->stage_at = tess_align_size(scratch, ALIGN);
    s->image_at = s->stage_at + tess_align_size(stage, ALIGN);
    s->op.scratch_bytes = s->image_at + bytes_of(&s->op.image);
    return prepare_sum(s, error);
}

tess_status tess_stack_create(tess_operator *const *parts, int64_t count, tess_operator **out,
                              tess_error *error)
{
    *out = NULL;
    stack *s = count > 0 ? tess_small_alloc(1, sizeof *s) : NULL;
    tess_operator **kept = s ? tess_small_alloc((size_t)count, sizeof *kept) : NULL;
    if (!kept) {
        for (int64_t i = 0; i < count; i++)
            tess_operator_destroy(parts[i]);
        tess_small_free(s);
        return count > 0 ? tess_fail(error, TESS_NO_MEMORY, "no memory for a stack of %lld operators",
                                     (long long)count)
                         : tess_fail(error, TESS_BAD_OPTION, "a stack needs at least one operator");
    }
    memcpy(kept, parts, (size_t)count * sizeof *kept);
    *s = (stack){
        .op = {.table = &table, .device = parts[0]->device, .name = "stack"}, .count = count, .parts = kept};
    const tess_status status = build(s, error);
    if (status != TESS_OK) {
        stack_destroy(&s->op);
        return status;
    }
    *out = &s->op;
    return TESS_OK;
}
