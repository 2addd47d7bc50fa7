/* Learning rates, Adam's corrections, decay and loss scale against their formulas; the state through JSON, bit for bit. */
#include "base/mem.h"
#include "check.h"
#include "train/schedule.h"

static const double PI = 3.14159265358979323846;

static tess_train_config config_of(tess_train_rate kind, int64_t steps)
{
    tess_train_config c = {0};
    c.steps = steps;
    c.optimizer.kind = TESS_ADAM;
    c.optimizer.rate = 0.02;
    c.optimizer.betas[0] = 0.9, c.optimizer.betas[1] = 0.99;
    c.schedule.kind = kind;
    c.schedule.factor = 0.5;
    c.schedule.every = 30;
    c.schedule.patience = 2;
    c.average = 0.999;
    return c;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-14 * (fabs(a) + fabs(b));
}

static double rate_at(const tess_train_config *c, int64_t step)
{
    return tess_train_rate_of(c, &(tess_train_state){.step = step, .plateau_factor = 1});
}

static void test_rates(void)
{
    tess_train_config c = config_of(TESS_RATE_CONSTANT, 100);
    CHECK(rate_at(&c, 0) == 0.02 && rate_at(&c, 99) == 0.02);
    c.schedule.warmup = 10;
    CHECK(near(rate_at(&c, 0), 0.002) && near(rate_at(&c, 8), 0.018) && rate_at(&c, 9) == 0.02);

    c = config_of(TESS_RATE_COSINE, 100);
    for (int s = 0; s <= 100; s++)
        CHECK(near(rate_at(&c, s), 0.01 * (1 + cos(PI * s / 100))) || fabs(rate_at(&c, s)) < 1e-17);
    c.schedule.final = 0.1;
    CHECK(near(rate_at(&c, 100), 0.002) && near(rate_at(&c, 50), 0.002 + 0.018 / 2));
    CHECK(near(rate_at(&c, 1000), 0.002)); /* does not rise again */
    c.schedule.warmup = 20;                /* the product, as bench/peers/train_drunet_small.py has it */
    CHECK(near(rate_at(&c, 4), 0.25 * (0.002 + 0.009 * (1 + cos(PI * 0.04)))));

    c = config_of(TESS_RATE_STEP, 100);
    CHECK(rate_at(&c, 29) == 0.02 && near(rate_at(&c, 30), 0.01) && near(rate_at(&c, 95), 0.0025));
    c.schedule.final = 0.2;
    CHECK(near(rate_at(&c, 95), 0.004));
}

static void test_plateau(void)
{
    tess_train_config c = config_of(TESS_RATE_PLATEAU, 100);
    tess_train_state s;
    tess_train_state_init(&s, &c, false);
    CHECK(tess_train_state_validated(&c, &s, -3));
    s.step = 10;
    CHECK(tess_train_state_validated(&c, &s, 30) && s.best_psnr == 30 && s.best_step == 10);
    /* Better by less than a ten-thousandth: the best figure, but no improvement for the rate. */
    CHECK(tess_train_state_validated(&c, &s, 30.002) && s.plateau_bad == 1);
    CHECK(!tess_train_state_validated(&c, &s, 29) && tess_train_rate_of(&c, &s) == 0.02);
    CHECK(!tess_train_state_validated(&c, &s, NAN) && near(tess_train_rate_of(&c, &s), 0.01));
    CHECK(s.plateau_bad == 0 && tess_train_state_validated(&c, &s, 31) && s.plateau_best == 31);
    for (int i = 0; i < 30; i++)
        (void)tess_train_state_validated(&c, &s, 20);
    CHECK(near(tess_train_rate_of(&c, &s), 0.02 * pow(0.5, 11)));
    c.schedule.final = 0.01;
    CHECK(near(tess_train_rate_of(&c, &s), 0.0002));
}

static void test_control(void)
{
    tess_train_config c = config_of(TESS_RATE_CONSTANT, 100);
    tess_train_state s;
    double control[TESS_CONTROLS];
    tess_train_state_init(&s, &c, false);
    tess_train_control(&c, &s, control);
    CHECK(near(control[TESS_CONTROL_CORRECTION1], 0.1) && near(control[TESS_CONTROL_CORRECTION2], 0.01));
    CHECK(control[TESS_CONTROL_RATE] == 0.02 && control[TESS_CONTROL_LOSS_SCALE] == 1);
    CHECK(control[TESS_CONTROL_DECAY] == 0.1); /* (1 + 0) / (10 + 0) */
    CHECK(tess_train_state_advance(&s, false, true) && s.step == 1 && s.updates == 1);
    CHECK(!tess_train_state_advance(&s, false, false) && s.step == 2 && s.updates == 1);
    tess_train_control(&c, &s, control); /* the second update, at the third step */
    CHECK(near(control[TESS_CONTROL_CORRECTION1], 1 - 0.81) && near(control[TESS_CONTROL_DECAY], 3.0 / 12));
    CHECK(tess_train_decay_of(&c, 1000000) == 0.999);
    c.optimizer.kind = TESS_SGD;
    tess_train_control(&c, &s, control);
    CHECK(control[TESS_CONTROL_CORRECTION1] == 1 && control[TESS_CONTROL_CORRECTION2] == 1);
}

static void test_loss_scale(void)
{
    tess_train_config c = config_of(TESS_RATE_CONSTANT, 100);
    tess_train_state s;
    tess_train_state_init(&s, &c, true);
    CHECK(s.loss_scale == 65536);
    CHECK(tess_train_state_advance(&s, true, false) && s.loss_scale == 32768 && s.updates == 0);
    for (int i = 0; i < 1999; i++)
        CHECK(tess_train_state_advance(&s, true, true) && s.loss_scale == 32768);
    CHECK(tess_train_state_advance(&s, true, true) && s.loss_scale == 65536 && s.scale_steps == 0);
    for (int i = 0; i < 1500; i++)
        CHECK(tess_train_state_advance(&s, true, true));
    CHECK(tess_train_state_advance(&s, true, false) && s.scale_steps == 0);
    int halved = 0;
    while (tess_train_state_advance(&s, true, false) && halved < 100)
        halved++;
    CHECK(halved > 20 && halved < 40); /* ends: no scale helps against NaN */
}

static void test_json(void)
{
    tess_train_config c = config_of(TESS_RATE_CONSTANT, 100);
    tess_train_state s, again;
    tess_error error = {""};
    memset(&again, 0, sizeof again);
    tess_train_state_init(&s, &c, true);
    s.step = 123456789012, s.updates = 5, s.seed = INT64_MAX, s.seconds = 0.1 + 0.2;
    s.plateau_factor = 1.0 / 3; /* needs 17 digits; -infinity is no JSON number */
    tess_json *json = tess_train_state_json(&s);
    CHECK_MSG(tess_train_state_read(json, &again, &error) == TESS_OK, "%s", error.text);
    CHECK(memcmp(&s, &again, sizeof s) == 0);
    tess_json_set_string(&json, "step", "-4");
    CHECK(tess_train_state_read(json, &again, &error) == TESS_BAD_INPUT);
    tess_json_set_string(&json, "step", "12 monkeys");
    CHECK(tess_train_state_read(json, &again, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, "number step"), "%s", error.text);
    tess_json_free(json);
}

int main(void)
{
    test_rates();
    test_plateau();
    test_control();
    test_loss_scale();
    test_json();
    return check_end();
}
