/* summary_impl.h: what the files of the summary share. */
#ifndef TESS_JOB_COMMON_SUMMARY_IMPL_H
#define TESS_JOB_COMMON_SUMMARY_IMPL_H

#include "base/json.h"

typedef struct tess_summary {
    char *text;
    size_t used, size;
} tess_summary;

void tess_say(tess_summary *w, const char *format, ...) TESS_PRINTF(2, 3);

static inline double tess_say_mib(const tess_json *bytes, const char *key)
{
    return tess_json_get_double(bytes, key, 0) / (1 << 20);
}

/* run.c. "device    cpu (...), fp32, 2 thread(s)" */
void tess_say_device(tess_summary *w, const tess_json *record);
void tess_say_bytes(tess_summary *w, const tess_json *bytes);
/* "elsewhere 16 rank(s) of V100 ...: 0.02 s ..."; nothing if the plan has none. */
void tess_say_elsewhere(tess_summary *w, const tess_json *plan);
void tess_say_plan(tess_summary *w, const tess_json *record);
void tess_say_measured(tess_summary *w, const tess_json *record);
/* A file a verb. Nothing, unless the record is of this verb; of `denoise`, what comes before and behind the measured figures. */
void tess_say_samples(tess_summary *w, const tess_json *record);
void tess_say_left_out(tess_summary *w, const tess_json *record);
void tess_say_reconstructing(tess_summary *w, const tess_json *record);
void tess_say_info(tess_summary *w, const tess_json *record);
void tess_say_training(tess_summary *w, const tess_json *record);
void tess_say_filling(tess_summary *w, const tess_json *record);
void tess_say_detecting(tess_summary *w, const tess_json *record);
void tess_say_reporting(tess_summary *w, const tess_json *record);
/* The most expensive layers, if the record has them. */
void tess_say_profile(tess_summary *w, const tess_json *record);

#endif
