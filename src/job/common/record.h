/* record.h: the keys that the records of all verbs share. */
#ifndef TESS_JOB_RECORD_H
#define TESS_JOB_RECORD_H

#include "base/json.h"
#include "base/mem.h"
#include "job/common/engine.h"

/* command, version, device, device_name, precision, threads, ranks. */
tess_json *tess_record_begin(const char *command, const tess_engine *engine);
/* Sets "paths": the files of a job by what they are, as the caller named them; NULL entries are left out. */
typedef struct tess_record_path {
    const char *what, *path;
} tess_record_path;
void tess_record_paths(tess_json **record, const tess_record_path *paths, int count);
/* {"weights":...,"activations":...,"workspace":...,"io":...,"total":...} */
/* Always has weights, activations, workspace and io; other categories only if they are used. Host memory is not
 * included: records have it as "host_bytes". */
tess_json *tess_record_bytes(const tess_mem_bytes *bytes, uint64_t total);
/* The rows of a strip at each level of the network, if its levels have borders of their own. */
tess_json *tess_record_level_rows(const tess_level_rows *levels);
/* Adds gpu_busy and joules, each only if it is known. */
void tess_record_meter(tess_json **measured, const tess_meter_reading *reading);
/* Adds "arena": the tensors of a network's run in memory over its steps, for pictures of it. Adds
 * nothing if there is no memory for it, or if the network has more tensors than a page can show. */
void tess_record_arena(tess_json **record, const tess_bound *bound, tess_plan_shape shape);
/* Converts the record to text and frees it. */
tess_status tess_record_end(tess_json *record, char **text, tess_error *error) TESS_MUST_CHECK;

/* Fails if the caller's file for the record or for the trace is one of these files; NULL entries are skipped. */
tess_status tess_record_apart(const tess_common *common, const char *const *files, int count,
                              tess_error *error) TESS_MUST_CHECK;

#endif
