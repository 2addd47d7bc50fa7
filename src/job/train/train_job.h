/* train_job.h: a training run, shared by the files of this verb. */
#ifndef TESS_JOB_TRAIN_JOB_H
#define TESS_JOB_TRAIN_JOB_H

#include "job/common/card_links.h"
#include "job/train/validator.h"
#include "plan/training.h"
#include "tessera_train.h"
#include "train/card_sum.h"
#include "train/checkpoint.h"
#include "train/data_folder.h"
#include "train/events.h"
#include "train/feed.h"
#include "train/log.h"
#include "train/rank_sum.h"
#include "train/result.h"
#include "train/steps.h"

/* The samples of a batch that a rank computes. */
typedef struct tess_train_part {
    int64_t first, count;
    int micro_batches;          /* 0: the plan chooses */
    uint64_t planned, measured; /* bytes; set where all ranks' are gathered */
} tess_train_part;

typedef struct tess_train_job {
    tess_dist *dist; /* the ranks that share each batch */
    const tess_train_settings *settings;
    tess_engine
        engine; /* its ops never stop half-way: a half-done step would leave parameters that belong to no step */
    tess_stop stop; /* polled between steps */
    tess_train_config config;
    uint64_t limit;
    tess_weights *start;
    tess_model_net model;                 /* finished for training */
    int64_t levels;                       /* of a diffusion network: values of its second input; else 0 */
    struct tess_train_spectral *spectral; /* of a pipeline (train_pipeline.h); else NULL */
    const tess_train_phase *phase;
    tess_train_part part;             /* of the phase: what this rank computes */
    tess_train_part *parts;           /* of all ranks in the first phase; NULL: alone */
    tess_rank_sum *sum, *running_sum; /* of gradients and running statistics; NULL: none */
    tess_card_links links;            /* of ranks on cards */
    tess_card_sum *card_sum;          /* of gradients, in place of `sum`, if they are added on the cards */
    tess_block running;               /* running statistics on their way between ranks */
    double *losses;                   /* of all ranks */
    tess_training *training;          /* of the phase */
    tess_training_choice choice;
    tess_training_choice choices[TESS_CONFIG_PHASES]; /* of all phases */
    uint64_t least;                                   /* bytes that would do, if the limit does not */
    bool plans_only;
    size_t sum_bytes;       /* host memory for the sums over ranks, as counted */
    size_t card_sum_bytes;  /* the same on the cards */
    size_t values_bytes;    /* host memory for the first values, as counted */
    tess_mem_bytes planned; /* of the phase that needs most */
    tess_source *source;
    tess_data_settings data;
    tess_data_queue *queue;
    tess_feed feed;
    tess_validator *validator; /* NULL: no validation */
    tess_checkpoints *checkpoints;
    tess_log *log;
    tess_events *events;
    tess_train_state state;
    double rate;                    /* of the last step */
    int64_t saved_step, first_step; /* of the last checkpoint; where this part of the run began */
    double psnr;                    /* the last one; 0: none */
    double opened;                  /* when the whole job began */
    double begin, train_seconds;    /* of this part; seconds in steps */
    char factor[TESS_RATES_CLASS];  /* the operator that corrects the seconds of steps */
    double noted;                   /* when the last line of progress was given */
    double ended;                   /* when the result of the last step came */
    int64_t samples;
    uint64_t overhead;   /* resident bytes before the plan's */
    tess_mem_usage peak; /* measured, as the next: the most of all ranks */
    uint64_t resident;
} tess_train_job;

/* train_open.c: everything up to the plan of the first phase. */
tess_status tess_train_open(tess_train_job *job, tess_memory *memory, tess_error *error) TESS_MUST_CHECK;
void tess_train_close(tess_train_job *job);
/* train_plan.c: plans all phases, for the largest memory, and leaves the first one open. */
tess_status tess_train_plan_phases(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
/* Plans the phase: source, step, bytes. */
tess_status tess_train_plan_phase(tess_train_job *job, const tess_train_phase *phase,
                                  tess_error *error) TESS_MUST_CHECK;
void tess_train_close_phase(tess_train_job *job);
/* True if steps in so many parts are queued one ahead: there is a card to keep busy, and ranks do not meet between steps. */
bool tess_train_overlaps(const tess_train_job *job, int micro_batches);
/* The work of all steps. */
tess_status tess_train_list_work(tess_train_job *job, tess_work *work, tess_error *error) TESS_MUST_CHECK;
/* train_share.c: what rank `rank` computes of a batch. All of it is computed by one rank, and the parts differ by one sample, or by
 * one micro-batch if their number is given. */
tess_train_part tess_train_part_of(const tess_train_job *job, int64_t batch, int rank);
/* Refuses runs that the ranks cannot share. */
tess_status tess_train_check_parts(const tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
/* Collective: compares what the ranks read, and takes the most that one of them plans; or has measured. */
tess_status tess_train_share_plan(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_train_share_figures(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
tess_json *tess_train_parts_record(const tess_train_job *job, bool ran);
/* train_ranks.c: rank 0 leads: it alone writes files and validates. */
bool tess_train_leads(const tess_train_job *job);
/* Collective: all ranks get the status and the message of rank 0; those of the others are not used. */
tess_status tess_train_follow(tess_train_job *job, tess_status lead, tess_error *error) TESS_MUST_CHECK;
/* Collective: decides how gradients of ranks on cards are added, and sets the memory of the sums over ranks, and of the first values. */
tess_status tess_train_link(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_train_open_sums(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
void tess_train_close_sums(tess_train_job *job);
/* Collective: the last pass of a step; afterwards the gradients are those of the whole batch. */
tess_status tess_train_last_pass(tess_train_job *job, int index, tess_error *error) TESS_MUST_CHECK;
/* Collective: agrees on the status of a step; loss and running statistics become those of the whole batch. */
tess_status tess_train_share_result(tess_train_job *job, tess_status mine, tess_error *error) TESS_MUST_CHECK;
/* Collective: all ranks get the state of rank 0, and its numbers. */
tess_status tess_train_share_state(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
/* Collective: refuses to go on with parameters that are not the same on all ranks. */
tess_status tess_train_compare(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
/* train_files.c: refuses a name that is that of two files of the run, or of one and of the caller's record. */
tess_status tess_train_check_files(const tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
/* train_state.c: blocks for checkpoints and results; first values. */
tess_checkpoint_blocks tess_train_blocks(tess_train_job *job);
/* Collective, as all that move or write state: allocates what a step needs. */
tess_status tess_train_prepare(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_train_begin_values(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_train_save(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_train_write(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
/* Moves all state to the training of the next phase, through a checkpoint. */
tess_status tess_train_next_phase(tess_train_job *job, const tess_train_phase *phase,
                                  tess_error *error) TESS_MUST_CHECK;
/* train_dem.c: what is different for a diffusion network, which is trained on elevation maps. */
void tess_train_shape_diffusion(const tess_train_config *config, tess_model_shape *shape);
tess_status tess_train_open_denoiser(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_train_open_diffusion(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_train_open_maps(tess_train_job *job, int64_t crop, uint64_t cache,
                                 tess_error *error) TESS_MUST_CHECK;
/* Sets what `fill` must know of the result. */
tess_status tess_train_describe_diffusion(const tess_train_job *job, tess_weights *weights,
                                          tess_error *error) TESS_MUST_CHECK;
/* train_pipeline.c: what is different for a hyperspectral pipeline. Opens cubes, nodes and network. */
tess_status tess_train_open_pipeline(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
void tess_train_close_pipeline(tess_train_job *job);
tess_status tess_train_open_cubes(tess_train_job *job, int64_t crop, tess_error *error) TESS_MUST_CHECK;
/* Height and width of what a step takes of each crop. */
void tess_train_step_size(const tess_train_job *job, int64_t crop, int64_t *height, int64_t *width);
/* Plans phase 1, when the device is known. */
tess_status tess_train_plan_first(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
/* Bytes that are held from the beginning to the end; those of phase 1, which are gone when data come. */
size_t tess_train_pipeline_bytes(const tess_train_job *job);
tess_mem_bytes tess_train_first_bytes(const tess_train_job *job);
/* Phase 1, or, of a resumed run, what it fitted. */
tess_status tess_train_begin_pipeline(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_train_first_pipeline_values(tess_train_job *job, float *trained, float *running,
                                             tess_error *error) TESS_MUST_CHECK;
/* Whole passes over the data before a step; 0 for other runs. */
double tess_train_epoch(const tess_train_job *job, int64_t step);
tess_status tess_train_open_pipeline_validation(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
/* Epochs, the nodes that are trained, and the seconds of phase 1, for the record. */
void tess_train_describe_pipeline(const tess_train_job *job, tess_json **record);
/* Takes the parameters of now into the pipeline's state. */
tess_status tess_train_take_values(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_train_write_pipeline(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
/* Refuses a name of the run's files that is that of a cube or mask: calls for each of them. */
tess_status tess_train_each_cube(const tess_train_job *job,
                                 tess_status (*check)(const void *user, const char *path, tess_error *error),
                                 const void *user, tess_error *error) TESS_MUST_CHECK;
/* train_run.c */
tess_status tess_train_run(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
/* train_report.c: log, events and notes; the record. */
tess_status tess_train_report_step(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_train_report_psnr(tess_train_job *job, tess_error *error) TESS_MUST_CHECK;
/* True if the run validates: rank 0 does, and tells the others. */
bool tess_train_validates(const tess_train_job *job);
tess_json *tess_train_figures(const tess_train_job *job);
tess_json *tess_train_record(const tess_train_job *job, bool ran);

#endif
