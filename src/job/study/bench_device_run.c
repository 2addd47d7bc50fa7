/* One run of the program in a process of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "job/study/bench_device.h"

enum { MOST = 1 << 22, EXTRA = 12 };

extern char **environ;

static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "r");
    char *text = file ? tess_small_alloc(MOST + 1, 1) : NULL;
    *length = text ? fread(text, 1, MOST, file) : 0;
    if (file)
        fclose(file);
    return text;
}

/* What the program said last, as the error. */
static tess_status say_failure(const char *path, tess_error *error)
{
    size_t length;
    char *text = read_file(path, &length);
    while (text && length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    const char *line = text && length ? strrchr(text, '\n') : NULL;
    const tess_status status = tess_fail(error, TESS_UNSUPPORTED, "%s",
                                         !text  ? "no output"
                                         : line ? line + 1
                                                : text);
    tess_small_free(text);
    return status;
}

/* This process's environment, with other machine files. The caller frees the list. */
static char **environment(char *machines)
{
    static const char name[] = "TESSERA_MACHINES=";
    size_t count = 0, used = 0;
    while (environ[count])
        count++;
    char **list = tess_small_alloc(count + 2, sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        if (strncmp(environ[i], name, sizeof name - 1) != 0)
            list[used++] = environ[i];
    if (list && machines)
        list[used++] = machines;
    return list;
}

static tess_status start(const char *program, char **arguments, char **variables, const char *says,
                         pid_t *child, tess_error *error)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a process");
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, says, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const int result = posix_spawn(child, program, &actions, NULL, arguments, variables);
    posix_spawn_file_actions_destroy(&actions);
    return result == 0 ? TESS_OK
                       : tess_fail(error, TESS_IO_FAILED, "%s: cannot be run: %s", program, strerror(result));
}

static tess_status wait_for(pid_t child, bool *done, tess_error *error)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return tess_fail(error, TESS_IO_FAILED, "a run was lost: %s", strerror(errno));
    *done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (WIFSIGNALED(status))
        return tess_fail(error, WTERMSIG(status) == SIGINT ? TESS_INTERRUPTED : TESS_IO_FAILED,
                         "a run ended by signal %d", WTERMSIG(status));
    return TESS_OK;
}

tess_status tess_workload_run(const char *program, const char *folder, const tess_workload_command *command,
                              const char *device, bool planned, const char *machines, double *seconds,
                              tess_json **record, tess_error *error)
{
    char out[TESS_WORKLOAD_PATH], json[TESS_WORKLOAD_PATH], says[TESS_WORKLOAD_PATH];
    char *arguments[TESS_WORKLOAD_ARGUMENTS + EXTRA];
    int count = 0;
    pid_t child;
    bool done = false;
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(json, sizeof json, "%s/record.json", folder);
    snprintf(says, sizeof says, "%s/says.txt", folder);
    tess_workload_remove(out);
    (void)mkdir(out, 0777);
    arguments[count++] = (char *)program;
    if (planned)
        arguments[count++] = "plan";
    for (int i = 0; i < command->count; i++)
        arguments[count++] = command->list[i];
    static const char *const names[] = {"device", "quiet", "json"};
    char options[3][16];
    for (int i = 0; i < 3; i++)
        snprintf(options[i], sizeof options[i], "%c%c%s", '-', '-', names[i]);
    char *const last[] = {options[0], (char *)device, options[1], options[2], json, NULL};
    memcpy(arguments + count, last, sizeof last);
    char of_machines[4096];
    snprintf(of_machines, sizeof of_machines, "TESSERA_MACHINES=%s", machines ? machines : "");
    char **variables = environment(machines ? of_machines : NULL);
    if (!variables)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a process");
    *record = NULL;
    const double begin = tess_clock();
    tess_status status = start(program, arguments, variables, says, &child, error);
    tess_small_free(variables);
    TESS_TRY(status);
    TESS_TRY(wait_for(child, &done, error));
    *seconds = tess_clock() - begin;
    if (!done)
        return say_failure(says, error);
    size_t length;
    char *text = read_file(json, &length);
    status = text ? tess_json_parse(text, length, record, error)
                  : tess_fail(error, TESS_IO_FAILED, "%s: was not written", json);
    tess_small_free(text);
    return status;
}
