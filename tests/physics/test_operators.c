/* test_operators.c: the adjoint of every operator is the transpose of its forward, on the CPU. */
#define _POSIX_C_SOURCE 200809L
#include "operators.h"

#include "solver_ops.h"

int main(void)
{
    tess_device *device = open_cpu(0);
    check_operators(device);
    tess_operator *wrong[] = {make_mask(device, 5, 5, 1), make_mask(device, 5, 7, 1)}, *op = NULL;
    tess_error error = {{0}};
    CHECK(tess_stack_create(wrong, 2, &op, &error) == TESS_BAD_OPTION && !op && error.text[0]);
    CHECK(tess_stack_create(NULL, 0, &op, &error) == TESS_BAD_OPTION && !op);
    tess_registry_close(device);
    return check_end();
}
