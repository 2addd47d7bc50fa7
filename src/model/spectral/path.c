#include "model/spectral/path.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

/* Lists the nodes of the path, first to last. */
static int chain_to(const tess_spectral_plan *plan, int at, int chain[TESS_PIPELINE_NODES])
{
    int length = 0;
    for (int node = at; node != TESS_NODE_DATA; node = plan->pipeline.nodes[node].from)
        length++;
    for (int i = length, node = at; i-- > 0; node = plan->pipeline.nodes[node].from)
        chain[i] = node;
    return length;
}

/* Calls of both functions go through this one: the steps, with their matrices placed in `memory`, unless it is NULL. */
static size_t lay_out(const tess_spectral_plan *plan, int at, double *memory, tess_path *path)
{
    int chain[TESS_PIPELINE_NODES];
    const int length = chain_to(plan, at, chain);
    size_t used = 0;
    int steps = 0;
    for (int i = 0; i < length;) {
        tess_path_step step = {.cut = chain[i], .in = tess_spectral_reads(plan, chain[i])};
        int last = i;
        if (tess_node_is_affine(&plan->pipeline.nodes[chain[i]])) {
            step.cut = -1;
            while (last + 1 < length && tess_node_is_affine(&plan->pipeline.nodes[chain[last + 1]]))
                last++;
            /* tess_spectral_fold needs room for the widest matrix of the chain. */
            const size_t widest = (size_t)tess_spectral_widest(plan);
            step.a = memory ? memory + used : NULL;
            step.b = memory ? memory + used + widest * widest : NULL;
            used += widest * widest + widest;
        }
        step.out = plan->channels[chain[last]];
        if (path)
            path->steps[steps] = step;
        steps++;
        i = last + 1;
    }
    if (path)
        path->count = steps;
    return used;
}

size_t tess_path_values(const tess_spectral_plan *plan, int at)
{
    return lay_out(plan, at, NULL, NULL);
}

static bool is_diagonal(const tess_path_step *step)
{
    bool diagonal = step->in == step->out;
    for (int i = 0; i < step->out && diagonal; i++)
        for (int j = 0; j < step->in && diagonal; j++)
            diagonal = i == j || step->a[(size_t)i * (size_t)step->in + (size_t)j] == 0;
    return diagonal;
}

void tess_path_make(const tess_spectral_state *state, int at, double *memory, double *work, tess_path *path)
{
    const tess_spectral_plan *plan = state->plan;
    int chain[TESS_PIPELINE_NODES], before = TESS_NODE_DATA, place = 0;
    *path = (tess_path){.state = state, .at = at, .bands = plan->bands, .out = tess_spectral_gives(plan, at)};
    lay_out(plan, at, memory, path);
    chain_to(plan, at, chain);
    for (int s = 0; s < path->count; s++) {
        tess_path_step *step = &path->steps[s];
        if (step->cut < 0) {
            int last = place;
            const bool end = s + 1 == path->count;
            while (end ? chain[last] != at : chain[last + 1] != path->steps[s + 1].cut)
                last++;
            tess_spectral_fold(state, before, chain[last], step->a, step->b, work);
            step->diagonal = is_diagonal(step);
            place = last;
        }
        before = chain[place++];
    }
}

void tess_continuum(const double *at, int channels, double *x, int *hull)
{
    int top = 0;
    for (int i = 0; i < channels; i++) { /* Andrew's monotone chain, upper side */
        while (top >= 2 && (x[hull[top - 1]] - x[hull[top - 2]]) * (at[i] - at[hull[top - 2]]) <=
                               (x[i] - x[hull[top - 2]]) * (at[hull[top - 1]] - at[hull[top - 2]]))
            top--;
        hull[top++] = i;
    }
    for (int k = 0; k + 1 < top; k++) {
        const int a = hull[k], b = hull[k + 1];
        const double first = x[a], slope = (x[b] - first) / (at[b] - at[a]);
        for (int i = a; i < b; i++) { /* x[b] is divided in its own turn */
            const double line = first + slope * (at[i] - at[a]);
            x[i] = line > 0 ? x[i] / line : 1;
        }
    }
    x[channels - 1] = 1;
}

/* Mean out, then divided by the root of the sum of squares over `divisor`. */
static void normalise(double *x, int channels, double eps, double divisor)
{
    double mean = 0, sum = 0;
    for (int i = 0; i < channels; i++)
        mean += x[i] / channels;
    for (int i = 0; i < channels; i++) {
        x[i] -= mean;
        sum += x[i] * x[i];
    }
    const double scale = 1 / fmax(sqrt(sum / divisor), eps);
    for (int i = 0; i < channels; i++)
        x[i] *= scale;
}

/* Positions of the bands for the hull: wavelengths where they are known and ascend, else numbers. */
static void positions(const tess_spectral_plan *plan, int node, int channels, double *at)
{
    const int from = plan->pipeline.nodes[node].from;
    const int *source = from == TESS_NODE_DATA ? plan->all_bands : plan->source[from];
    bool ascends = plan->wavelengths && source;
    for (int i = 1; i < channels && ascends; i++)
        ascends = plan->wavelengths[source[i]] > plan->wavelengths[source[i - 1]];
    for (int i = 0; i < channels; i++)
        at[i] = ascends ? plan->wavelengths[source[i]] : i;
}

/* Linear, ReLU, linear. `hidden` has room for as many values as a spectrum. */
static void run_mlp(const tess_path *path, const tess_path_step *step, double *x, double *hidden)
{
    const tess_spectral_state *state = path->state;
    const int64_t width = (int64_t)state->plan->pipeline.nodes[step->cut].values[TESS_MLP_HIDDEN];
    const double *first = tess_spectral_part(state, step->cut, "first"),
                 *bias = tess_spectral_part(state, step->cut, "bias"),
                 *second = tess_spectral_part(state, step->cut, "second");
    for (int64_t k = 0; k < width; k++) {
        double sum = bias[k];
        for (int i = 0; i < step->in; i++)
            sum += first[k * step->in + i] * x[i];
        hidden[k] = sum > 0 ? sum : 0;
    }
    for (int o = 0; o < step->out; o++) {
        x[o] = 0;
        for (int64_t k = 0; k < width; k++)
            x[o] += second[o * width + k] * hidden[k];
    }
}

static void run_cut(const tess_path *path, const tess_path_step *step, double *x, double *spare)
{
    const tess_spectral_plan *plan = path->state->plan;
    const tess_node *node = &plan->pipeline.nodes[step->cut];
    const double *p = path->state->of[step->cut];
    const int c = step->in;
    int hull[TESS_SPECTRAL_BANDS];
    if (node->kind == TESS_NODE_UNIT_NORM) {
        normalise(x, c, node->values[TESS_NORM_EPS], 1);
    } else if (node->kind == TESS_NODE_SNV) {
        const int freedom = node->values[TESS_SNV_UNBIASED] != 0 && c > 1 ? c - 1 : c;
        normalise(x, c, node->values[TESS_NORM_EPS], freedom);
    } else if (node->kind == TESS_NODE_CONTINUUM) {
        positions(plan, step->cut, c, spare);
        tess_continuum(spare, c, x, hull);
    } else if (node->kind == TESS_NODE_MLP) {
        run_mlp(path, step, x, spare);
    } else if (node->kind == TESS_NODE_SIGMOID) {
        for (int i = 0; i < c; i++)
            x[i] = 1 / (1 + exp(-(x[i] - p[i]) / fmax(p[c + i], 1e-6)));
    } else if (node->kind == TESS_NODE_MINMAX) {
        for (int i = 0; i < c; i++)
            x[i] = (x[i] - p[i]) / fmax(p[c + i] - p[i], node->values[TESS_MINMAX_EPS]);
    } else { /* z-score over the image */
        for (int i = 0; i < c; i++)
            x[i] = (x[i] - p[i]) / (p[c + i] + node->values[TESS_ZSCORE_EPS]);
    }
}

static void run_affine(const tess_path_step *step, const double *x, double *y)
{
    const size_t in = (size_t)step->in;
    for (size_t o = 0; o < (size_t)step->out; o++) {
        const double *row = step->a + o * in;
        double sum = step->b[o];
        if (step->diagonal)
            sum += row[o] * x[o];
        else
            for (size_t i = 0; i < in; i++)
                sum += row[i] * x[i];
        y[o] = sum;
    }
}

enum { PIXELS = 256 };

typedef struct job {
    const tess_path *path;
    const float *from;
    float *to;
    int64_t pixels;
} job;

static void run_piece(void *arg, int64_t item, int thread)
{
    const job *j = arg;
    const tess_path *path = j->path;
    double buffers[3][TESS_SPECTRAL_BANDS];
    const int64_t end = tess_min_i64(j->pixels, (item + 1) * PIXELS);
    (void)thread;
    for (int64_t p = item * PIXELS; p < end; p++) {
        const float *from = j->from + p * path->bands;
        float *to = j->to + p * path->out;
        double *x = buffers[0], *y = buffers[1];
        bool finite = true;
        for (int i = 0; i < path->bands; i++) {
            x[i] = (double)from[i];
            finite &= isfinite(from[i]) != 0;
        }
        for (int s = 0; s < path->count && finite; s++) {
            const tess_path_step *step = &path->steps[s];
            if (step->cut >= 0) {
                run_cut(path, step, x, buffers[2]);
                continue;
            }
            run_affine(step, x, y);
            double *swap = x;
            x = y;
            y = swap;
        }
        for (int i = 0; i < path->out; i++)
            to[i] = finite ? (float)x[i] : NAN;
    }
}

void tess_path_run(const tess_path *path, const float *from, int64_t pixels, float *to, tess_pool *pool)
{
    job j = {path, from, to, pixels};
    const int64_t pieces = tess_ceil_div(pixels, PIXELS);
    if (pool)
        tess_pool_run(pool, pieces, run_piece, &j);
    else
        for (int64_t i = 0; i < pieces; i++)
            run_piece(&j, i, 0);
}
