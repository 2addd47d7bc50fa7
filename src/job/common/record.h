/* record.h: the keys that the records of all verbs share. */
#ifndef TESS_JOB_RECORD_H
#define TESS_JOB_RECORD_H

#include "base/json.h"
#include "base/mem.h"
#include "job/common/engine.h"

/* command, version, device, device_name, precision, threads, ranks. */
tess_json *tess_record_begin(const char *command, const tess_engine *engine);
/* {"weights":...,"activations":...,"workspace":...,"io":...,"total":...} */
/* Weights, activations, workspace and io always, the other categories where they are used. Not the host's memory, which
 * records have as "host_bytes". */
tess_json *tess_record_bytes(const tess_mem_bytes *bytes, uint64_t total);
/* Text for the caller; frees `record`. */
tess_status tess_record_end(tess_json *record, char **text, tess_error *error) TESS_MUST_CHECK;

/* The caller's record would be written over none of these; NULLs are passed over. */
tess_status tess_record_apart(const tess_common *common, const char *const *files, int count,
                              tess_error *error) TESS_MUST_CHECK;

#endif
