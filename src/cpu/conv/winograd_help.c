/* Ranks of one host that wait for their neighbours compute parts of a convolution of another: see base/help.h. They run the same functions on
 * the same values, so the result has the bits of its owner. */
#include <string.h>

#include "base/checked.h"
#include "base/help.h"
#include "cpu/conv/winograd_impl.h"

/* What another rank needs to know to compute parts: see base/help.h. */
typedef struct shared_job {
    tess_op op;
    tile_range range;
    uint64_t in[TESS_OP_INPUTS], out, weights, u; /* places */
} shared_job;
_Static_assert(sizeof(shared_job) <= TESS_HELP_TEXT, "the board has room");

/* A part is a chunk of a group. Whoever computes the next one of the same group need not transform the input again. */
static int64_t chunks_of(const winograd_job *job)
{
    return tess_ceil_div(job->op->out[0].c, job->chunk);
}

static void compute_part(const winograd_job *job, int part, int before)
{
    const int64_t chunks = chunks_of(job), item = part / chunks;
    const tile_group g = tess_winograd_group(job, item, 0);
    if (before < 0 || before / chunks != item)
        tess_winograd_transform(job, &g);
    tess_winograd_chunk(job, &g, part % chunks * job->chunk, 0);
}

/* Ranks run the same program, so instructions and sizes are all that may differ between their kernels. */
static uint64_t kind_of(const tess_cpu *cpu)
{
    uint64_t kind = 0;
    for (const char *c = cpu->f32->isa; *c; c++)
        kind = kind * 31 + (uint64_t)*c;
    return kind;
}

/* In the scratch of this rank, and the memory of the owner. */
static void compute_for_other(void *user, const tess_help *help, const tess_help_part *part)
{
    const tess_cpu *cpu = user;
    const shared_job *shared = part->text;
    winograd_job job = tess_winograd_job(cpu, &shared->op);
    tess_op_buffers buffers = {.weights = tess_help_at(help, part->owner, shared->weights)};
    for (int i = 0; i < shared->op.inputs; i++)
        buffers.in[i] = tess_help_at(help, part->owner, shared->in[i]);
    buffers.out[0] = tess_help_at(help, part->owner, shared->out);
    job.buffers = &buffers;
    job.range = shared->range;
    job.zeros = part->scratch;
    job.scratch = job.zeros + job.zero_bytes;
    job.u = job.in_parts ? job.scratch + job.thread_bytes : tess_help_at(help, part->owner, shared->u);
    memset(job.zeros, 0, job.zero_bytes);
    compute_part(&job, part->part, part->before);
}

/* Offers the range to ranks that wait. False: it is not in memory that they share, or too little to be divided. */
static bool offer(const tess_cpu *cpu, const winograd_job *job)
{
    tess_help *help = cpu->device.help;
    const int64_t parts = tess_ceil_div(job->range.count, job->group) * chunks_of(job);
    if (!help || job->kernels != &cpu->f32->winograd || tess_pool_threads(cpu->pool) > 1)
        return false;
    tess_help_serve(help, kind_of(cpu), compute_for_other, (void *)(size_t)cpu);
    shared_job shared = {.op = *job->op,
                         .range = job->range,
                         .out = tess_help_place(help, job->buffers->out[0]),
                         .weights = tess_help_place(help, job->buffers->weights),
                         .u = tess_help_place(help, job->u)};
    bool all = parts > 1 && parts < 1 << 16 && shared.out && shared.weights && shared.u;
    for (int i = 0; i < job->op->inputs && all; i++)
        all = (shared.in[i] = tess_help_place(help, job->buffers->in[i])) != 0;
    const tess_help_job offered = {.kind = kind_of(cpu),
                                   .scratch = job->zero_bytes + job->thread_bytes +
                                              (job->in_parts ? job->part_bytes : 0),
                                   .parts = (int)parts,
                                   .text = &shared,
                                   .bytes = sizeof shared};
    if (all)
        tess_help_begin(help, &offered);
    return all;
}

bool tess_winograd_helped(const tess_cpu *cpu, const winograd_job *job)
{
    tess_help *help = cpu->device.help;
    if (!offer(cpu, job))
        return false;
    const int64_t parts = tess_ceil_div(job->range.count, job->group) * chunks_of(job);
    int64_t done = 0;
    for (int part, before = -1; !tess_stop_poll_part(cpu->device.stop, done, parts); before = part, done++) {
        part = tess_help_take(help);
        if (part < 0)
            break;
        compute_part(job, part, before);
    }
    tess_help_end(help);
    return true;
}
