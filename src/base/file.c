#define _XOPEN_SOURCE 700
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

tess_status tess_file_open(const char *path, FILE **out, tess_error *error)
{
    struct stat about;
    *out = NULL;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s", strerror(errno));
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(fd);
        return tess_fail(error, TESS_BAD_INPUT, "is not a regular file; copy what it gives to a file");
    }
    if ((*out = fdopen(fd, "rb")))
        return TESS_OK;
    close(fd);
    return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
}
