/* pickle.c: runs a pickle's opcodes (protocols 2 to 5) and builds the tree of pickle_tree.c.
 *
 * This is a stack machine with a memo, as in Python's pickletools, with an allow-list of opcodes: those that
 * torch.save has ever written for dicts of tensors and plain settings. Every opcode here can only add nodes,
 * and any other opcode is an error. */
#include <string.h>

#include "base/mem.h"
#include "weights/pickle.h"

enum { NAME_BYTES = 256 }; /* of the name of a module or class, with its terminator */

static tess_status push_new(tess_pickle *p, tess_pickle_node node)
{
    int32_t at;
    TESS_TRY(tess_pickle_add(p, node, &at));
    return tess_pickle_push(p, at);
}

static tess_status push_chain(tess_pickle *p, tess_pickle_kind kind)
{
    return push_new(p, (tess_pickle_node){.kind = kind, .chain = {.first = -1, .last = -1}});
}

static tess_status push_integer(tess_pickle *p, tess_pickle_kind kind, int64_t value)
{
    return push_new(p, (tess_pickle_node){.kind = kind, .integer = value});
}

static tess_status push_fixed(tess_pickle *p, int bytes)
{
    uint64_t value;
    TESS_TRY(tess_pickle_take(p, bytes, &value));
    return push_integer(p, TESS_PICKLE_INT, bytes == 4 ? (int32_t)(uint32_t)value : (int64_t)value);
}

/* Pushes a string or bytes that follow a length of `length_bytes` bytes. */
static tess_status push_text(tess_pickle *p, tess_pickle_kind kind, int length_bytes)
{
    uint64_t length;
    TESS_TRY(tess_pickle_take(p, length_bytes, &length));
    TESS_TRY(tess_pickle_need(p, length));
    tess_pickle_node node = {.kind = kind, .text = {.at = (uint32_t)p->at, .length = (uint32_t)length}};
    p->at += (size_t)length;
    return push_new(p, node);
}

static tess_status push_long(tess_pickle *p)
{
    TESS_TRY(push_text(p, TESS_PICKLE_LONG, 1));
    tess_pickle_node *node = (tess_pickle_node *)p->nodes.items + p->nodes.count - 1;
    uint32_t length = node->text.length;
    if (length > 8)
        return TESS_OK;
    const unsigned char *bytes = p->bytes + node->text.at;
    uint64_t value = length && bytes[length - 1] & 0x80 ? UINT64_MAX : 0;
    for (uint32_t i = length; i-- > 0;)
        value = value << 8 | bytes[i];
    *node = (tess_pickle_node){.kind = TESS_PICKLE_INT, .integer = (int64_t)value};
    return TESS_OK;
}

/* Moves the top `count` values into the container below them. */
static tess_status collect(tess_pickle *p, tess_pickle_kind kind, int32_t count)
{
    if (tess_pickle_reachable(p) <= count)
        return tess_pickle_damaged(p, "a container is missing");
    const int32_t *from = (const int32_t *)p->stack.items + p->stack.count - count;
    if (!tess_pickle_is(p, from[-1], kind))
        return tess_pickle_damaged(p, "an entry is put into what is no container of its kind");
    if (kind == TESS_PICKLE_DICT && count % 2)
        return tess_pickle_damaged(p, "a dict has a key without a value");
    for (int32_t i = 0; i < count; i++)
        TESS_TRY(tess_pickle_append(p, from[-1], from[i]));
    p->stack.count -= count;
    return TESS_OK;
}

static tess_status collect_marked(tess_pickle *p, tess_pickle_kind kind)
{
    int32_t count;
    TESS_TRY(tess_pickle_pop_mark(p, &count));
    return collect(p, kind, count);
}

static tess_status make_tuple(tess_pickle *p, int32_t count)
{
    if (tess_pickle_reachable(p) < count)
        return tess_pickle_damaged(p, "a value is missing");
    int32_t tuple;
    tess_pickle_node empty = {.kind = TESS_PICKLE_TUPLE, .chain = {.first = -1, .last = -1}};
    TESS_TRY(tess_pickle_add(p, empty, &tuple));
    for (int32_t i = p->stack.count - count; i < p->stack.count; i++)
        TESS_TRY(tess_pickle_append(p, tuple, ((const int32_t *)p->stack.items)[i]));
    p->stack.count -= count;
    return tess_pickle_push(p, tuple);
}

static tess_status make_marked_tuple(tess_pickle *p)
{
    int32_t count;
    TESS_TRY(tess_pickle_pop_mark(p, &count));
    return make_tuple(p, count);
}

static tess_status skip(tess_pickle *p, uint64_t count)
{
    TESS_TRY(tess_pickle_need(p, count));
    p->at += (size_t)count;
    return TESS_OK;
}

static tess_status push_name(tess_pickle *p, const char *module, const char *name)
{
    int32_t node;
    TESS_TRY(tess_pickle_name(p, module, name, &node));
    return tess_pickle_push(p, node);
}

/* Reads a line of text; GLOBAL has two. */
static tess_status take_line(tess_pickle *p, char line[NAME_BYTES])
{
    for (size_t i = 0; i < NAME_BYTES; i++) {
        uint64_t byte;
        TESS_TRY(tess_pickle_take(p, 1, &byte));
        line[i] = byte == '\n' ? '\0' : (char)byte;
        if (byte == '\n')
            return TESS_OK;
    }
    return tess_pickle_damaged(p, "the name of a class is too long");
}

static tess_status pop_line(tess_pickle *p, char line[NAME_BYTES])
{
    int32_t node;
    TESS_TRY(tess_pickle_pop(p, &node));
    const tess_pickle_node *text = tess_pickle_at(p, node);
    if (text->kind != TESS_PICKLE_STRING || text->text.length >= NAME_BYTES)
        return tess_pickle_damaged(p, "the name of a class is none");
    memcpy(line, p->bytes + text->text.at, text->text.length);
    line[text->text.length] = '\0';
    return TESS_OK;
}

static tess_status global(tess_pickle *p, bool from_stack)
{
    char module[NAME_BYTES], name[NAME_BYTES];
    TESS_TRY(from_stack ? pop_line(p, name) : take_line(p, module));
    TESS_TRY(from_stack ? pop_line(p, module) : take_line(p, name));
    return push_name(p, module, name);
}

static tess_status call(tess_pickle *p)
{
    int32_t arguments, callable, result;
    TESS_TRY(tess_pickle_pop(p, &arguments));
    TESS_TRY(tess_pickle_pop(p, &callable));
    TESS_TRY(tess_pickle_call(p, callable, arguments, &result));
    return tess_pickle_push(p, result);
}

static tess_status persistent(tess_pickle *p)
{
    int32_t id, storage;
    TESS_TRY(tess_pickle_pop(p, &id));
    TESS_TRY(tess_pickle_persistent(p, id, &storage));
    return tess_pickle_push(p, storage);
}

/* BUILD: drops the attributes of an object (a state dict's _metadata), which are not used, and keeps the
 * object. */
static tess_status drop_attributes(tess_pickle *p)
{
    int32_t attributes;
    if (tess_pickle_reachable(p) < 2)
        return tess_pickle_damaged(p, "attributes without an object");
    return tess_pickle_pop(p, &attributes);
}

static tess_status memo_op(tess_pickle *p, int bytes, bool put)
{
    uint64_t slot;
    TESS_TRY(tess_pickle_take(p, bytes, &slot));
    return put ? tess_pickle_remember(p, slot) : tess_pickle_recall(p, slot);
}

static tess_status unknown(tess_pickle *p, unsigned op)
{
    return tess_fail(
        p->error, TESS_BAD_INPUT,
        "its pickle has opcode 0x%02x at byte %llu, which no state dict needs; save a plain state dict: "
        "torch.save(model.state_dict(), ...)",
        op, (unsigned long long)(p->begin + p->at - 1));
}

/* Pushes numbers, texts and None. */
static tess_status push_value(tess_pickle *p, unsigned op)
{
    switch (op) {
    case 'N':
        return push_new(p, (tess_pickle_node){.kind = TESS_PICKLE_NONE});
    case 0x88: /* NEWTRUE, NEWFALSE */
    case 0x89:
        return push_integer(p, TESS_PICKLE_BOOL, op == 0x88);
    case 'J': /* BININT, signed; BININT1; BININT2 */
        return push_fixed(p, 4);
    case 'K':
        return push_fixed(p, 1);
    case 'M':
        return push_fixed(p, 2);
    case 0x8a:
        return push_long(p);
    case 'G': /* BINFLOAT */
        TESS_TRY(skip(p, 8));
        return push_new(p, (tess_pickle_node){.kind = TESS_PICKLE_FLOAT});
    case 'X': /* BINUNICODE, SHORT_BINUNICODE, BINUNICODE8 */
        return push_text(p, TESS_PICKLE_STRING, 4);
    case 0x8c:
        return push_text(p, TESS_PICKLE_STRING, 1);
    case 0x8d:
        return push_text(p, TESS_PICKLE_STRING, 8);
    case 'T': /* BINSTRING, SHORT_BINSTRING: Python 2 */
        return push_text(p, TESS_PICKLE_STRING, 4);
    case 'U':
        return push_text(p, TESS_PICKLE_STRING, 1);
    case 'B': /* BINBYTES, SHORT_BINBYTES */
        return push_text(p, TESS_PICKLE_BYTES, 4);
    case 'C':
        return push_text(p, TESS_PICKLE_BYTES, 1);
    default:
        return unknown(p, op);
    }
}

/* Runs the opcodes that work on values of the stack. */
static tess_status run_op(tess_pickle *p, unsigned op)
{
    switch (op) {
    case 0x80: /* PROTO */
        return skip(p, 1);
    case 0x95: /* FRAME */
        return skip(p, 8);
    case '(':
        return tess_pickle_mark(p);
    case '}':
        return push_chain(p, TESS_PICKLE_DICT);
    case ']':
        return push_chain(p, TESS_PICKLE_LIST);
    case ')':
        return push_chain(p, TESS_PICKLE_TUPLE);
    case 't':
        return make_marked_tuple(p);
    case 0x85: /* TUPLE1, 2, 3 */
    case 0x86:
    case 0x87:
        return make_tuple(p, (int32_t)op - 0x84);
    case 's': /* SETITEM */
        return collect(p, TESS_PICKLE_DICT, 2);
    case 'u':
        return collect_marked(p, TESS_PICKLE_DICT);
    case 'a': /* APPEND */
        return collect(p, TESS_PICKLE_LIST, 1);
    case 'e':
        return collect_marked(p, TESS_PICKLE_LIST);
    case 'q': /* BINPUT, LONG_BINPUT, MEMOIZE, BINGET, LONG_BINGET */
        return memo_op(p, 1, true);
    case 'r':
        return memo_op(p, 4, true);
    case 0x94:
        return tess_pickle_remember(p, (uint64_t)p->memo.count);
    case 'h':
        return memo_op(p, 1, false);
    case 'j':
        return memo_op(p, 4, false);
    case 'c': /* GLOBAL, STACK_GLOBAL */
        return global(p, false);
    case 0x93:
        return global(p, true);
    case 'R': /* REDUCE, NEWOBJ: the same for the allowed names */
    case 0x81:
        return call(p);
    case 'b':
        return drop_attributes(p);
    case 'Q': /* BINPERSID */
        return persistent(p);
    default:
        return push_value(p, op);
    }
}

tess_status tess_pickle_run(tess_pickle *p, const tess_weights *weights, uint64_t begin, uint64_t limit,
                            int32_t *top, tess_error *error)
{
    if (limit > TESS_DIRECTORY_MAX)
        limit = TESS_DIRECTORY_MAX;
    *p = (tess_pickle){.weights = weights, .begin = begin, .limit = limit, .error = error};
    for (;;) {
        uint64_t op;
        TESS_TRY(tess_pickle_take(p, 1, &op));
        if (op == '.')
            break;
        TESS_TRY(run_op(p, (unsigned)op));
    }
    TESS_TRY(tess_pickle_pop(p, top));
    return p->stack.count || p->marks.count ? tess_pickle_damaged(p, "values are left over") : TESS_OK;
}
