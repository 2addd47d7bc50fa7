#define _GNU_SOURCE
#include "base/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

enum { LIVE = 256 };

struct tess_temp {
    int slot; /* index in the table below; -1 when the table was full: then a crash leaves the folder behind */
    char *folder, *path;
};

/* A signal handler may read the table at any moment, so a path is complete before `owner` is set. */
static struct {
    atomic_int owner; /* 0: free, -1: being filled, else the id of the process that made the folder */
    char folder[PATH_MAX];
} live[LIVE];

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler reads the table");

/* A folder that a thread makes while another one removes all of them, or after that, would stay when the process ends. So removal
 * waits for the threads that make one, with signals blocked, and those that begin later wait for the process to end. */
static atomic_int makers, removed;
enum {
    LONGEST_WAIT = 500
}; /* milliseconds: a file system that hangs must not keep the process from ending, and some processes go on */

static void wait_while(const atomic_int *count)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < LONGEST_WAIT && atomic_load(count) > 0; i++)
        nanosleep(&pause, NULL);
}

static void begin_making(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
    atomic_fetch_add(&makers, 1);
    if (atomic_load(&removed) == 0)
        return;
    atomic_fetch_sub(&makers, 1);
    wait_while(&removed);
    atomic_store(&removed, 0); /* this process goes on */
    atomic_fetch_add(&makers, 1);
}

static void end_making(const sigset_t *before)
{
    atomic_fetch_sub(&makers, 1);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static int enter(const char *folder)
{
    if (strlen(folder) >= PATH_MAX)
        return -1;
    for (int i = 0; i < LIVE; i++) {
        int none = 0;
        if (!atomic_compare_exchange_strong(&live[i].owner, &none, -1))
            continue;
        strcpy(live[i].folder, folder);
        atomic_store(&live[i].owner, (int)getpid());
        return i;
    }
    return -1;
}

static void leave(int slot)
{
    if (slot >= 0)
        atomic_store(&live[slot].owner, 0);
}

/* The kernel's directory entry. Handlers may not call readdir, which allocates. */
typedef struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    uint8_t kind;
    char name[];
} entry;

/* Removes the known files of writers by their names. This needs no descriptor: there may be none left. */
static bool remove_known(const char *folder)
{
    static const char *const names[] = {"/new", "/new.tif", "/new.hdr", "/new.aux.xml"};
    char path[PATH_MAX + 16];
    const size_t length = strlen(folder);
    for (size_t i = 0; length < PATH_MAX && i < sizeof names / sizeof *names; i++) {
        memcpy(path, folder, length);
        strcpy(path + length, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder) == 0;
}

static bool remove_listed(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return true;
    union {
        entry first;
        char bytes[2048];
    } list;
    for (long got; (got = syscall(SYS_getdents64, fd, &list, sizeof list)) > 0;)
        for (long at = 0; at < got;) {
            const entry *e = (const entry *)(const void *)(list.bytes + at);
            (void)unlinkat(fd, e->name, 0); /* fails for "." and "..", which are folders */
            at += e->bytes;
        }
    close(fd);
    return rmdir(folder) == 0;
}

/* Removes the folder and its files, by system calls only, because it runs in signal handlers. Another thread may add a
 * file meanwhile. */
static void remove_folder(const char *folder)
{
    enum { ATTEMPTS = 8 };
    bool gone = remove_known(folder);
    for (int i = 0; i < ATTEMPTS && !gone; i++)
        gone = remove_listed(folder);
}

void tess_temp_remove_all(void)
{
    const int why = errno, self = (int)getpid();
    atomic_store(&removed, 1);
    wait_while(&makers);
    for (int i = 0; i < LIVE; i++)
        if (atomic_load(&live[i].owner) == self)
            remove_folder(live[i].folder);
    errno = why;
}

tess_status tess_temp_fail(int why, tess_error *error)
{
    return tess_fail(error, TESS_IO_FAILED, "cannot be written: %s%s", strerror(why),
                     why == ENOENT                   ? "; make its folder first"
                     : why == EACCES || why == EROFS ? "; its folder must be writable"
                     : why == ENAMETOOLONG           ? "; choose a shorter one"
                                                     : "");
}

/* Makes the folder and the empty file in it. Returns 0 or an errno. */
static int make_files(tess_temp *temp, size_t prefix)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuv"; /* 32: five bits each */
    for (int attempt = 0; attempt < 100; attempt++) {
        unsigned char random[16];
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
            return errno;
        char *name = temp->folder + prefix;
        name += sprintf(name, ".tmp-tessera-");
        for (size_t i = 0; i < sizeof random; i++)
            *name++ = letters[random[i] & 31];
        *name = '\0';
        temp->slot = enter(temp->folder); /* before it exists, so that a signal always finds it */
        if (mkdir(temp->folder, 0700) == 0) {
            sprintf(temp->path, "%s/new", temp->folder);
            const int fd = open(temp->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
            return fd >= 0 && close(fd) == 0 ? 0 : errno;
        }
        const int why = errno;
        leave(temp->slot);
        temp->slot = -1;
        if (why != EEXIST)
            return why;
    }
    return EEXIST;
}

tess_status tess_temp_create(const char *target, tess_temp **out, tess_error *error)
{
    struct stat about;
    *out = NULL;
    if (lstat(target, &about) != 0 && errno == ENAMETOOLONG) /* found now, not by the rename after the work */
        return tess_temp_fail(errno, error);
    const char *slash = strrchr(target, '/');
    const size_t prefix = slash ? (size_t)(slash - target) + 1 : 0;
    tess_temp *temp = tess_small_alloc(1, sizeof *temp);
    if (temp) {
        temp->slot = -1;
        temp->folder = tess_small_alloc(prefix + 48, 1);
        temp->path = tess_small_alloc(prefix + 56, 1);
    }
    if (!temp || !temp->folder || !temp->path) {
        tess_temp_remove(temp);
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    }
    memcpy(temp->folder, target, prefix);
    sigset_t before;
    begin_making(&before);
    const int why = make_files(temp, prefix);
    end_making(&before);
    if (why == 0) {
        *out = temp;
        return TESS_OK;
    }
    tess_temp_remove(temp);
    return tess_temp_fail(why, error);
}

const char *tess_temp_path(const tess_temp *temp)
{
    return temp->path;
}

FILE *tess_temp_open(const tess_temp *temp)
{
    const int fd = open(temp->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (fd >= 0 && !file)
        close(fd);
    return file;
}

/* If the replaced file's group cannot be kept, the new group gets only the permissions of others. */
static void keep_permissions(const char *from, const struct stat *old)
{
    struct stat new;
    mode_t mode = old->st_mode & 0777;
    if (stat(from, &new) == 0 && new.st_gid != old->st_gid && chown(from, (uid_t)-1, old->st_gid) != 0)
        mode &= (mode_t)(0707 | (mode & 7) << 3);
    (void)chmod(from, mode);
}

tess_status tess_temp_place(const char *from, const char *target, tess_error *error)
{
    struct stat old;
    if (lstat(target, &old) == 0 && S_ISREG(old.st_mode))
        keep_permissions(from, &old);
    if (rename(from, target) == 0)
        return TESS_OK;
    return tess_fail(error, TESS_IO_FAILED, "cannot take its final name: %s", strerror(errno));
}

tess_status tess_temp_commit(tess_temp *temp, const char *target, tess_error *error)
{
    return tess_temp_place(temp->path, target, error);
}

void tess_temp_remove(tess_temp *temp)
{
    if (!temp)
        return;
    if (temp->folder && temp->path && temp->path[0])
        remove_folder(temp->folder);
    leave(temp->slot);
    tess_small_free(temp->folder);
    tess_small_free(temp->path);
    tess_small_free(temp);
}
