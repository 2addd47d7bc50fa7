/* Runs a training step, and moves its state between host and device. */
#include "base/checked.h"
#include "net/training/training_impl.h"

void *tess_training_data(const tess_training *t, tess_cell cell, tess_tensor *tensor)
{
    if (cell < 0)
        return NULL;
    *tensor = *tess_program_shape(&t->program, cell);
    return (char *)t->data[TESS_IN_DATA] + t->program.cells[cell].offset;
}

void *tess_training_input(const tess_training *t, int index, tess_tensor *tensor)
{
    return tess_training_data(t, t->inputs[index], tensor);
}

void *tess_training_target(const tess_training *t, tess_tensor *tensor)
{
    return tess_training_data(t, t->target, tensor);
}

void *tess_training_mask(const tess_training *t, tess_tensor *tensor)
{
    return tess_training_data(t, t->mask, tensor);
}

static const tess_place place_of[TESS_STATES] = {
    [TESS_STATE_PARAMETERS] = TESS_IN_PARAMETERS, [TESS_STATE_FIRST_MOMENT] = TESS_IN_FIRST,
    [TESS_STATE_SECOND_MOMENT] = TESS_IN_SECOND,  [TESS_STATE_AVERAGE] = TESS_IN_AVERAGE,
    [TESS_STATE_RUNNING] = TESS_IN_RUNNING,
};

int64_t tess_training_state_size(const tess_training *t, tess_training_state state)
{
    return (int64_t)(t->place_bytes[place_of[state]] / sizeof(float));
}

tess_status tess_training_get(tess_training *t, tess_training_state state, int64_t first, int64_t count,
                              float *values, tess_error *error)
{
    const float *from = t->data[place_of[state]];
    t->device->memory->copy(t->device, values, from + first, (size_t)count * sizeof *values, NULL);
    return t->device->streams->sync(t->device, NULL, error);
}

tess_status tess_training_set(tess_training *t, tess_training_state state, int64_t first, int64_t count,
                              const float *values, tess_error *error)
{
    float *to = t->data[place_of[state]];
    t->device->memory->copy(t->device, to + first, values, (size_t)count * sizeof *values, NULL);
    return t->device->streams->sync(t->device, NULL, error);
}

int tess_training_op_count(const tess_training *t)
{
    return t->program.section_end[TESS_SECTION_PASS] - t->program.section_end[TESS_SECTION_BEGIN];
}

const tess_op *tess_training_op(const tess_training *t, int index)
{
    return &t->program.steps[t->program.section_end[TESS_SECTION_BEGIN] + index].op;
}

static bool has_steps(const tess_training *t, tess_section section)
{
    return t->program.section_end[section] > (section > 0 ? t->program.section_end[section - 1] : 0);
}

tess_status tess_training_capture(tess_training *t, tess_error *error)
{
    tess_device *device = t->device;
    if (!device->graphs)
        return TESS_OK;
    for (int i = 0; i < TESS_SECTIONS; i++) {
        const tess_section section = (tess_section)i;
        if (!has_steps(t, section))
            continue;
        TESS_TRY(device->graphs->begin(device, t->side, error));
        tess_program_run(&t->program, section, t->data, t->workspace.data, t->side);
        TESS_TRY(device->graphs->end(device, t->side, &t->graphs[section], error));
    }
    return TESS_OK;
}

static void run_section(tess_training *t, tess_section section, tess_stream *stream)
{
    if (t->graphs[section])
        t->device->graphs->launch(t->device, t->graphs[section], stream);
    else
        tess_program_run(&t->program, section, t->data, t->workspace.data, stream);
}

void tess_training_pass(tess_training *t, int index, tess_stream *stream)
{
    tess_training_set_keys(t, index, stream);
    if (index == 0)
        run_section(t, TESS_SECTION_BEGIN, stream);
    run_section(t, TESS_SECTION_PASS, stream);
}

float *tess_training_gradients(const tess_training *t)
{
    return t->update.in_pass ? NULL : t->data[TESS_IN_GRADIENTS];
}

/* The end of the last gradient that a step writes; 0: it writes none. */
static int64_t gradients_end(const tess_program *program, const tess_program_step *step)
{
    int64_t end = 0;
    for (int i = 0; i < TESS_OP_OUTPUTS && step->out[i] >= 0; i++) {
        const tess_cell_info *cell = &program->cells[step->out[i]];
        size_t bytes = 0;
        if (cell->place == TESS_IN_GRADIENTS && tess_tensor_bytes(&cell->tensor, &bytes))
            end = tess_max_i64(end, (int64_t)((cell->offset + bytes) / sizeof(float)));
    }
    return end;
}

tess_status tess_training_find_final(tess_training *t, tess_error *error)
{
    const int count = tess_training_op_count(t), first = t->program.section_end[TESS_SECTION_BEGIN];
    tess_small_free(t->final_from);
    t->final_from = tess_small_alloc((size_t)count + 1, sizeof *t->final_from);
    if (!t->final_from)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a training plan");
    for (int i = count - 2; i >= 0; i--)
        t->final_from[i] =
            tess_max_i64(t->final_from[i + 1], gradients_end(&t->program, &t->program.steps[first + i + 1]));
    return TESS_OK;
}

typedef struct watched {
    const tess_training *training;
    tess_gradients_fn ready;
    void *user;
} watched;

static void after_step(void *user, int step)
{
    const watched *w = user;
    const tess_training *t = w->training;
    w->ready(w->user, t->final_from[step - t->program.section_end[TESS_SECTION_BEGIN]]);
}

void tess_training_last_pass(tess_training *t, int index, tess_gradients_fn ready, void *user,
                             tess_stream *stream)
{
    watched w = {t, ready, user};
    if (t->graphs[TESS_SECTION_PASS]) {
        tess_training_pass(t, index, stream);
        ready(user, 0);
        return;
    }
    tess_training_set_keys(t, index, stream);
    if (index == 0)
        run_section(t, TESS_SECTION_BEGIN, stream);
    tess_program_run_watched(&t->program, TESS_SECTION_PASS, t->data, t->workspace.data, stream, after_step,
                             &w);
}

void tess_training_update(tess_training *t, tess_stream *stream)
{
    run_section(t, TESS_SECTION_UPDATE, stream);
}
