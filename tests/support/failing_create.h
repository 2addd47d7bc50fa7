/* failing_create.h: whatever allocation fails, creating an operator says so and loses nothing. */
#ifndef TESS_TESTS_FAILING_CREATE_H
#define TESS_TESTS_FAILING_CREATE_H

#include "check.h"
#include "counter.h"
#include "physics/operator.h"

typedef tess_status (*create_fn)(tess_device *, const void *settings, tess_operator **, tess_error *);

static inline void check_failing_create(tess_device *device, create_fn create, const void *settings)
{
    bool made = false;
    for (uint64_t n = 1; !made && n < 300; n++) {
        const uint64_t held = counted_now();
        tess_operator *op = NULL;
        tess_error error;
        tess_mem_fail_at(n);
        const tess_status status = create(device, settings, &op, &error);
        tess_mem_fail_at(0);
        made = status == TESS_OK;
        CHECK(made ? op != NULL : status == TESS_NO_MEMORY && !op);
        tess_operator_destroy(op);
        CHECK(counted_now() == held);
    }
    CHECK(made);
}

#endif
