/* choice.h: `device` auto, the same way for every verb. The engine is opened on the CPU, which costs next to nothing; the verb
 * describes its job there and lists the work; plan/choose.h decides from the rates of all devices; and only if a card is to be
 * used it is opened, and the engine moves to it. */
#ifndef TESS_JOB_CHOICE_H
#define TESS_JOB_CHOICE_H

#include "base/json.h"
#include "job/common/engine.h"
#include "plan/work.h"

/* Opens the engine. With `device` auto, if this build has other devices than the CPU, it is open on the CPU and
 * engine->choice.undecided is set until tess_choice_settle. */
tess_status tess_choice_open(tess_engine *engine, tess_memory *memory, const tess_common *common,
                             tess_error *error) TESS_MUST_CHECK;
/* Collective: the same for ranks that share the job; tess_choice_settle is then collective too, and rank 0 decides. */
tess_status tess_choice_open_ranks(tess_engine *engine, tess_dist *dist, tess_memory *memory,
                                   const tess_common *common, tess_error *error) TESS_MUST_CHECK;
/* True if tess_choice_settle needs the work: the device is not decided, or machine files are to be predicted too. */
bool tess_choice_wants_work(const tess_engine *engine);
/* Predicts and decides, and moves the engine if a card is chosen for any phase. Models of the engine that are bound are bound
 * again, at the same addresses; whatever else the verb made with the device must be made afterwards. A card that cannot be
 * opened leaves the engine on the CPU. Also predicts where `device` was given. */
tess_status tess_choice_settle(tess_engine *engine, const tess_common *common, const tess_work *work,
                               tess_error *error) TESS_MUST_CHECK;
/* True if this phase of the work is to be computed on the engine's device; else by the CPU. */
bool tess_choice_of_phase(const tess_engine *engine, int phase);
/* The type of a network's layers on a card for this `precision`, as classes of ops name it. `usual`: for auto. */
const char *tess_choice_card_precision(const char *precision, const char *usual);

/* Adds "devices" and "device_reason" to the plan of a record. Nothing if nothing was predicted. */
void tess_choice_record(const tess_engine *engine, tess_json **plan);
/* Seconds to measure rates after a job of `wall` seconds: a part of it, so that short jobs stay short. */
double tess_choice_measure_seconds(double wall);
/* Measures classes of a network that have no rate yet, after a job of `wall` seconds, within its planned bytes. Errors are
 * ignored: without rates only the seconds of the next plan are less exact. */
void tess_choice_measure_net(tess_engine *engine, const tess_bound *bound, tess_plan_shape shape,
                             uint64_t bytes, double wall);
/* A run that is done. */
typedef struct tess_choice_run {
    const char *verb;
    double wall;             /* seconds of the whole job */
    double seconds, planned; /* of its phases: measured, and predicted */
    bool calibrated;         /* all rates behind `planned` were measured */
} tess_choice_run;

/* Learns what a job of this verb takes besides its phases, on the engine's device. What the phases took longer than
 * predicted belongs to it as well: on a card that is mostly what the first launches load. A prediction that was not calibrated says nothing
 * about that; then a verb's first job counts as long as its phases were measured. */
void tess_choice_learn(tess_engine *engine, const tess_choice_run *run);

#endif
