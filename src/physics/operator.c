#include "physics/operator.h"

void tess_operator_destroy(tess_operator *op)
{
    if (op)
        op->table->destroy(op);
}
