#define _GNU_SOURCE
#include "job/study/slurm_scripts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "job/common/record.h"
#include "job/study/bench.h"
#include "job/study/slurm_text.h"

enum { PATH = 4096 };

/* Sizes and numbers of cards of deepinv's published tables: nodes of four V100. Each list ends with 0. */
static const struct {
    const char *problem;
    int64_t size, ranks[8];
} published[] = {
    {"deblur", 2048, {1, 2, 4, 8, 16, 32, 64}}, {"deblur", 4096, {1, 2, 4, 8, 16, 32, 64}},
    {"deblur", 8192, {2, 4, 8, 16, 32, 64}},    {"tomo2d", 1024, {1, 2, 4, 8, 16}},
    {"tomo2d", 2048, {1, 2, 4, 8, 16}},         {"tomo3d", 512, {2, 4, 8, 16, 32, 64}},
};
enum { PUBLISHED = sizeof published / sizeof *published };

int64_t tess_slurm_nodes(int64_t ranks, int64_t per_node)
{
    int64_t nodes = (ranks + per_node - 1) / per_node;
    while (ranks % nodes != 0)
        nodes++;
    return nodes;
}

static tess_status fail_file(const char *path, tess_error *error)
{
    return tess_fail(error, TESS_IO_FAILED, "%s: cannot be written: %s", path, strerror(errno));
}

/* Opens a new file: what a user may have edited is never replaced. */
static tess_status open_new(const char *folder, const char *name, char path[PATH], FILE **file,
                            tess_error *error)
{
    if (snprintf(path, PATH, "%s/%s", folder, name) >= PATH)
        return tess_fail(error, TESS_BAD_OPTION, "`slurm` %s: is too long", folder);
    *file = fopen(path, "wx");
    if (*file)
        return TESS_OK;
    return errno == EEXIST
               ? tess_fail(error, TESS_BAD_OPTION, "%s is there already; name another folder", path)
               : fail_file(path, error);
}

static tess_status close_file(FILE *file, const char *path, tess_error *error)
{
    const bool failed = ferror(file) != 0;
    return fclose(file) == 0 && !failed ? TESS_OK : fail_file(path, error);
}

typedef struct word {
    const char *name, *value; /* "@NAME@", what stands there */
} word;

/* One word of the shell, whatever is in it. */
static void print_word(FILE *file, const char *value)
{
    fputc('\'', file);
    for (; value && *value; value++)
        if (*value == '\'')
            fputs("'\\''", file);
        else
            fputc(*value, file);
    fputc('\'', file);
}

static void print_text(FILE *file, const char *text, const word *words, int count)
{
    while (*text) {
        size_t length = 0;
        for (int i = 0; i < count && length == 0; i++)
            if (strncmp(text, words[i].name, strlen(words[i].name)) == 0) {
                length = strlen(words[i].name);
                print_word(file, words[i].value);
            }
        if (length == 0)
            fputc(*text, file);
        text += length > 0 ? length : 1;
    }
}

/* The scripts; those that begin as programs can be run as such. */
static tess_status write_texts(const tess_slurm_study *study, tess_error *error)
{
    char path[PATH], program[PATH], model[PATH];
    const bool cpu = strcmp(study->device, "cpu") == 0;
    const word words[] = {
        {"@TESSERA@", realpath(study->program, program) ? program : study->program},
        {"@VERSION@", TESSERA_VERSION},
        {"@CPUS@", cpu ? "1" : "10"},
        {"@DEVICE@", cpu ? "cpu" : "cuda"},
        {"@MODEL@", study->model && realpath(study->model, model) ? model : study->model},
    };
    for (const tess_slurm_text *one = tess_slurm_texts; one->name; one++) {
        FILE *file;
        TESS_TRY(open_new(study->folder, one->name, path, &file, error));
        print_text(file, one->text, words, sizeof words / sizeof *words);
        if (strncmp(one->text, "#!", 2) == 0)
            (void)fchmod(fileno(file), 0755);
        TESS_TRY(close_file(file, path, error));
    }
    return TESS_OK;
}

static void add_point(FILE *file, const tess_slurm_study *study, const char *problem, int64_t size,
                      int64_t ranks, int *jobs)
{
    const int64_t nodes = tess_slurm_nodes(ranks, study->per_node);
    fprintf(file, "%s %lld %lld %lld %lld\n", problem, (long long)size, (long long)ranks, (long long)nodes,
            (long long)(ranks / nodes));
    ++*jobs;
}

static bool has_problem(const tess_slurm_study *study, const char *problem)
{
    bool found = study->problem_count == 0;
    for (int i = 0; i < study->problem_count; i++)
        found = found || strcmp(study->problems[i], problem) == 0;
    return found;
}

/* A line for each job: problem, size, ranks, nodes, ranks of a node. Given ranks replace the published ones of each size, and given
 * sizes have the ranks of the problem's first published size. */
static tess_status write_points(const tess_slurm_study *study, int *jobs, tess_error *error)
{
    char path[PATH];
    FILE *file;
    TESS_TRY(open_new(study->folder, "points", path, &file, error));
    for (int p = 0; p < PUBLISHED; p++) {
        const bool first = p == 0 || strcmp(published[p].problem, published[p - 1].problem) != 0;
        if (!has_problem(study, published[p].problem) || (study->size_count > 0 && !first))
            continue;
        for (int s = 0; s < (study->size_count > 0 ? study->size_count : 1); s++) {
            const int64_t size = study->size_count > 0 ? study->sizes[s] : published[p].size;
            for (int r = 0; study->rank_count > 0 ? r < study->rank_count : published[p].ranks[r] > 0; r++)
                add_point(file, study, published[p].problem, size,
                          study->rank_count > 0 ? study->ranks[r] : published[p].ranks[r], jobs);
        }
    }
    return close_file(file, path, error);
}

static tess_status check_study(const tess_slurm_study *study, tess_error *error)
{
    for (int i = 0; i < study->problem_count; i++) {
        bool known = false;
        for (int p = 0; p < PUBLISHED; p++)
            known = known || strcmp(study->problems[i], published[p].problem) == 0;
        if (!known)
            return tess_fail(error, TESS_BAD_OPTION, "`problems` %s: use deblur, tomo2d or tomo3d",
                             study->problems[i]);
    }
    for (int i = 0; i < study->rank_count; i++)
        if (study->ranks[i] < 1 || study->ranks[i] > 1 << 16)
            return tess_fail(error, TESS_BAD_OPTION, "`ranks` %lld: use 1 to %d", (long long)study->ranks[i],
                             1 << 16);
    if (study->per_node < 1)
        return tess_fail(error, TESS_BAD_OPTION, "`per_node` %d: use 1 or more", study->per_node);
    return TESS_OK;
}

tess_status tess_slurm_write(const tess_slurm_study *study, int *jobs, tess_error *error)
{
    *jobs = 0;
    TESS_TRY(check_study(study, error));
    if (mkdir(study->folder, 0777) != 0 && errno != EEXIST)
        return tess_fail(error, TESS_IO_FAILED, "%s: cannot make this folder: %s", study->folder,
                         strerror(errno));
    TESS_TRY(write_texts(study, error));
    return write_points(study, jobs, error);
}

tess_status tess_bench_slurm(const tess_bench_settings *settings, tess_error *error)
{
    const tess_slurm_study study = {.folder = settings->slurm,
                                    .program = settings->program ? settings->program : "tessera",
                                    .device = settings->common.device ? settings->common.device : "auto",
                                    .model = settings->model_count > 0 ? settings->models[0] : NULL,
                                    .problems = settings->problems,
                                    .sizes = settings->sizes,
                                    .ranks = settings->ranks,
                                    .problem_count = settings->problem_count,
                                    .size_count = settings->size_count,
                                    .rank_count = settings->rank_count,
                                    .per_node = settings->per_node};
    char *text = NULL;
    int jobs;
    TESS_TRY(tess_slurm_write(&study, &jobs, error));
    tess_json *record = tess_json_object();
    tess_json_set_string(&record, "command", "bench");
    tess_json_set_string(&record, "version", TESSERA_VERSION);
    tess_json_set_string(&record, "study", settings->study);
    tess_json_set_string(&record, "slurm", settings->slurm);
    tess_json_set_int(&record, "jobs", jobs);
    TESS_TRY(tess_record_end(record, &text, error));
    (void)settings->line(settings->line_user, text);
    tess_small_free(text);
    return TESS_OK;
}
