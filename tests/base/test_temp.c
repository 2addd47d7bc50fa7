/* Temporary files are private while they are written, removed when they are abandoned, and replace the target with
 * the permissions that a user expects. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/temp.h"
#include "folder.h"

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static bool holds(const char *path, const char *text)
{
    char have[256] = "";
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    have[fread(have, 1, sizeof have - 1, file)] = '\0';
    fclose(file);
    return strcmp(have, text) == 0;
}

static mode_t mode_of(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? about.st_mode & 0777 : 0;
}

static void write_whole(const char *target, const char *text)
{
    tess_error error;
    tess_temp *temp = NULL;
    CHECK(tess_temp_create(target, &temp, &error) == TESS_OK);
    FILE *file = temp ? tess_temp_open(temp) : NULL;
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    CHECK(temp && tess_temp_commit(temp, target, &error) == TESS_OK);
    tess_temp_remove(temp);
}

/* A name that the rename could not give is found before anything is written. */
static void test_long_name(void)
{
    tess_error error;
    tess_temp *temp = NULL;
    char name[300] = "";
    memset(name, 'n', 256);
    CHECK(tess_temp_create(in_folder(name), &temp, &error) == TESS_IO_FAILED && !temp);
    CHECK(strstr(error.text, "too long") && strstr(error.text, "shorter"));
    CHECK(sweep_folder(false) == 0);
}

static void test_private(void)
{
    tess_error error;
    tess_temp *one = NULL, *two = NULL;
    CHECK(tess_temp_create(in_folder("y.tif"), &one, &error) == TESS_OK);
    CHECK(tess_temp_create(in_folder("y.tif"), &two, &error) == TESS_OK);
    CHECK(one && two && strcmp(tess_temp_path(one), tess_temp_path(two)) != 0);
    CHECK(sweep_folder(false) == 2);
    char parent[600];
    snprintf(parent, sizeof parent, "%s", tess_temp_path(one));
    *strrchr(parent, '/') = '\0';
    CHECK(mode_of(parent) == 0700);
    char side[700];
    snprintf(side, sizeof side, "%s.hdr", tess_temp_path(one));
    put(side, "side");
    tess_temp_remove(one);
    tess_temp_remove(two);
    CHECK(sweep_folder(false) == 0); /* side files included */
    CHECK(tess_temp_create(in_folder("none/y.tif"), &one, &error) == TESS_IO_FAILED);
    CHECK(strstr(error.text, "make its folder first") != NULL);
}

static void test_permissions(void)
{
    const mode_t mask = umask(027);
    write_whole(in_folder("new"), "1");
    CHECK(holds(in_folder("new"), "1") && mode_of(in_folder("new")) == 0640);
    CHECK(chmod(in_folder("new"), 0604) == 0);
    write_whole(in_folder("new"), "2");
    CHECK(holds(in_folder("new"), "2") && mode_of(in_folder("new")) == 0604);
    umask(mask);
    CHECK(sweep_folder(false) == 1 && unlink(in_folder("new")) == 0);
}

/* A signal handler removes the files of its own process, not those of its parent. */
static void test_signal(void)
{
    tess_error error;
    tess_temp *temp = NULL;
    CHECK(tess_temp_create(in_folder("y"), &temp, &error) == TESS_OK);
    pid_t child = fork();
    if (child == 0) {
        tess_temp *other = NULL;
        bool good = tess_temp_create(in_folder("z"), &other, NULL) == TESS_OK && sweep_folder(false) == 2;
        tess_temp_remove_all();
        _exit(good && sweep_folder(false) == 1 ? 0 : 1);
    }
    int status = 1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(sweep_folder(false) == 1);
    tess_temp_remove_all();
    CHECK(sweep_folder(false) == 0);
    CHECK(temp && tess_temp_commit(temp, in_folder("y"), &error) == TESS_IO_FAILED);
    tess_temp_remove(temp);
    CHECK(sweep_folder(false) == 0);
}

static void *make_many(void *unused)
{
    for (int i = 0; i < 32; i++) {
        tess_temp *temp = NULL;
        (void)!tess_temp_create(in_folder("w"), &temp, NULL);
    }
    return unused;
}

/* A process that ends by a signal leaves nothing, also if its threads open files at that moment. */
static void test_threads(void)
{
    for (int round = 0; round < 40; round++) {
        const pid_t child = fork();
        if (child == 0) {
            pthread_t thread[2];
            for (int i = 0; i < 2; i++)
                if (pthread_create(&thread[i], NULL, make_many, NULL) != 0)
                    _exit(2);
            usleep((useconds_t)(round * 40));
            tess_temp_remove_all();
            _exit(0);
        }
        int status = 1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        CHECK(sweep_folder(true) == 0);
    }
}

static tess_json *sample(int value)
{
    tess_json *record = tess_json_object();
    tess_json_set_int(&record, "value", value);
    return record;
}

static int read_value(const char *path)
{
    tess_json *record = tess_cache_read(path);
    int value = record ? (int)tess_json_get_int(record, "value", -1) : -1;
    tess_json_free(record);
    return value;
}

/* Only a plain file of this user is a cache; anything else at its path is left unchanged. */
static void test_cache(void)
{
    CHECK(setenv("TESSERA_CACHE", in_folder("cache"), 1) == 0);
    char path[TESS_CACHE_PATH], guess[TESS_CACHE_PATH + 40];
    tess_cache_path("key", path);
    tess_json *seven = sample(7);
    (void)tess_cache_write(path, seven, NULL);
    CHECK(read_value(path) == 7);

    put(in_folder("mine"), "precious");
    snprintf(guess, sizeof guess, "%s.tmp-%ld", path, (long)getpid());
    CHECK(symlink(in_folder("mine"), guess) == 0); /* a name that could be foreseen */
    (void)tess_cache_write(path, seven, NULL);
    CHECK(holds(in_folder("mine"), "precious"));
    CHECK(unlink(guess) == 0);

    put(in_folder("elsewhere"), "{\"value\": 9}");
    CHECK(unlink(path) == 0 && symlink(in_folder("elsewhere"), path) == 0);
    CHECK(read_value(path) == -1);
    (void)tess_cache_write(path, seven, NULL);
    CHECK(holds(in_folder("elsewhere"), "{\"value\": 9}"));

    struct stat about;
    CHECK(unlink(path) == 0 && mkfifo(path, 0666) == 0);
    alarm(20); /* an open that waits for a writer would hang here */
    CHECK(read_value(path) == -1);
    (void)tess_cache_write(path, seven, NULL);
    alarm(0);
    CHECK(lstat(path, &about) == 0 && S_ISFIFO(about.st_mode));
    CHECK(unlink(path) == 0);
    if (geteuid() == 0) { /* only root can give a file away */
        put(path, "{\"value\": 9}");
        CHECK(chown(path, 12345, (gid_t)-1) == 0);
        CHECK(read_value(path) == -1);
        CHECK(unlink(path) == 0);
    }
    tess_json_free(seven);
    CHECK(unlink(in_folder("mine")) == 0 && unlink(in_folder("elsewhere")) == 0 &&
          rmdir(in_folder("cache")) == 0);
}

int main(void)
{
    if (!mkdtemp(folder))
        return check_skip("no folder in /tmp");
    test_long_name();
    test_private();
    test_permissions();
    test_signal();
    test_threads();
    test_cache();
    CHECK(rmdir(folder) == 0);
    return check_end();
}
