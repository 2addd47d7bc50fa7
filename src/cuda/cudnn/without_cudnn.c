/* without_cudnn.c: replaces cudnn*.c if cuDNN's headers are not installed; empty if they are. */
#if !__has_include(<cudnn_graph.h>)
#include "cuda/cudnn/cudnn.h"

static const char reason[] = "this build has no cuDNN (its headers were not installed)";

tess_status tess_cudnn_open(tess_cudnn **out, tess_error *error)
{
    *out = NULL;
    return tess_fail(error, TESS_UNSUPPORTED, "%s; Tessera's own kernels are used instead", reason);
}

void tess_cudnn_close(tess_cudnn *cudnn)
{
    (void)cudnn;
}

const char *tess_cudnn_version(const tess_cudnn *cudnn)
{
    (void)cudnn;
    return "none";
}

const char *tess_cudnn_refuses(const tess_op *op)
{
    (void)op;
    return reason;
}

int tess_cudnn_candidates(tess_cudnn *cudnn, const tess_op *op, size_t workspace_limit, int64_t *engines,
                          int most)
{
    (void)cudnn, (void)op, (void)workspace_limit, (void)engines, (void)most;
    return 0;
}

tess_status tess_cudnn_plan_create(tess_cudnn *cudnn, const tess_op *op, int64_t engine,
                                   size_t workspace_limit, tess_cudnn_plan **out, tess_error *error)
{
    (void)cudnn, (void)op, (void)engine, (void)workspace_limit;
    *out = NULL;
    return tess_fail(error, TESS_UNSUPPORTED, "%s", reason);
}

void tess_cudnn_plan_destroy(tess_cudnn_plan *plan)
{
    (void)plan;
}

size_t tess_cudnn_plan_workspace(const tess_cudnn_plan *plan)
{
    (void)plan;
    return 0;
}

int64_t tess_cudnn_plan_engine(const tess_cudnn_plan *plan)
{
    (void)plan;
    return -1;
}

void tess_cudnn_plan_describe(const tess_cudnn_plan *plan, char *text, size_t size)
{
    (void)plan;
    if (size)
        text[0] = '\0';
}

tess_status tess_cudnn_plan_run(tess_cudnn_plan *plan, const tess_op_buffers *buffers, cudaStream_t stream,
                                tess_error *error)
{
    (void)plan, (void)buffers, (void)stream;
    return tess_fail(error, TESS_UNSUPPORTED, "%s", reason);
}
#else
typedef int tess_without_cudnn_is_empty;
#endif
