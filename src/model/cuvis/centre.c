/* centre.c: our score nodes subtract their centre before the chain of affine nodes, cuvis.ai's subtract their mean behind it.
 * So the mean goes back through the chain, node by node: of all spectra that a node maps to what is wanted, the one
 * nearest to the node's own mean, so that as little as possible cancels later. */
#include <math.h>
#include <string.h>

#include "model/cuvis/classes.h"
#include "tensor/symmetric.h"

typedef struct room {
    double *a, *b, *gram, *vectors, *values, *wanted, *found, *rest, *work;
} room;

enum { SQUARES = 3, VECTORS = 5 };

static size_t values_of(size_t c)
{
    return SQUARES * c * c + VECTORS * c + tess_symmetric_workspace((int)c);
}

static room lay_out(size_t c, double *base)
{
    double *vectors = base + SQUARES * c * c;
    return (room){.a = base,
                  .gram = base + c * c,
                  .vectors = base + 2 * c * c,
                  .b = vectors,
                  .values = vectors + c,
                  .wanted = vectors + 2 * c,
                  .found = vectors + 3 * c,
                  .rest = vectors + 4 * c,
                  .work = vectors + VECTORS * c};
}

static bool is_diagonal(const double *a, int out, int in)
{
    bool diagonal = out == in;
    for (int i = 0; i < out && diagonal; i++)
        for (int j = 0; j < in && diagonal; j++)
            diagonal = i == j || a[(size_t)i * (size_t)in + (size_t)j] == 0;
    return diagonal;
}

/* found += A' (A A')^+ (wanted - A found - b) */
static tess_status correct(room *r, int out, int in, tess_error *error)
{
    const size_t m = (size_t)out, n = (size_t)in;
    for (size_t i = 0; i < m; i++) {
        r->rest[i] = r->wanted[i] - r->b[i];
        for (size_t j = 0; j < n; j++)
            r->rest[i] -= r->a[i * n + j] * r->found[j];
        for (size_t k = 0; k <= i; k++) {
            double sum = 0;
            for (size_t j = 0; j < n; j++)
                sum += r->a[i * n + j] * r->a[k * n + j];
            r->gram[i * m + k] = r->gram[k * m + i] = sum;
        }
    }
    TESS_TRY(tess_symmetric_eigen(r->gram, out, r->values, r->vectors, r->work, error));
    for (size_t k = 0; k < m; k++) {
        const double *v = r->vectors + k * m;
        double along = 0;
        if (r->values[k] <= 1e-13 * r->values[m - 1])
            continue;
        for (size_t i = 0; i < m; i++)
            along += v[i] * r->rest[i] / r->values[k];
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++)
                r->found[j] += r->a[i * n + j] * v[i] * along;
    }
    return TESS_OK;
}

static tess_status back(const tess_spectral_state *state, int node, room *r, tess_error *error)
{
    const int in = tess_spectral_reads(state->plan, node), out = state->plan->channels[node];
    const double *mean = tess_spectral_part(state, node, "mean");
    tess_node_affine(state, node, r->a, r->b);
    memset(r->found, 0, (size_t)in * sizeof *r->found);
    if (mean)
        memcpy(r->found, mean, (size_t)in * sizeof *mean);
    if (is_diagonal(r->a, out, in)) {
        for (int i = 0; i < in; i++) {
            const double factor = r->a[(size_t)i * (size_t)in + (size_t)i];
            if (factor != 0)
                r->found[i] = (r->wanted[i] - r->b[i]) / factor;
        }
    } else
        TESS_TRY(correct(r, out, in, error));
    memcpy(r->wanted, r->found, (size_t)in * sizeof *r->found);
    return TESS_OK;
}

tess_status tess_cuvis_centre(tess_memory *memory, tess_spectral_state *state, int node, tess_error *error)
{
    const tess_spectral_plan *plan = state->plan;
    const int cut = tess_spectral_cut_before(plan, node);
    const size_t widest = (size_t)tess_spectral_widest(plan);
    tess_block block = {0};
    TESS_TRY(tess_block_alloc(memory, &block, TESS_MEM_WORKSPACE, values_of(widest) * sizeof(double), error));
    room r = lay_out(widest, block.data);
    memcpy(r.wanted, tess_spectral_part(state, node, "mean"),
           (size_t)tess_spectral_reads(plan, node) * sizeof *r.wanted);
    tess_status status = TESS_OK;
    for (int at = plan->pipeline.nodes[node].from; at != cut && status == TESS_OK;
         at = plan->pipeline.nodes[at].from)
        status = back(state, at, &r, error);
    if (status == TESS_OK)
        memcpy(tess_spectral_part(state, node, "centre"), r.wanted,
               (size_t)tess_spectral_gives(plan, cut) * sizeof *r.wanted);
    tess_block_free(&block);
    return status;
}
