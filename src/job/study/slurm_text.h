/* slurm_text.h: the scripts of src/job/study/slurm, which cmake/slurm.cmake makes strings of. */
#ifndef TESS_JOB_SLURM_TEXT_H
#define TESS_JOB_SLURM_TEXT_H

/* @NAME@ stands for a word of the study. */
typedef struct tess_slurm_text {
    const char *name, *text;
} tess_slurm_text;

/* Ends with a NULL name. */
extern const tess_slurm_text tess_slurm_texts[];

#endif
