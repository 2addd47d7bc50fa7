/* writer_impl.h: the struct of a writer, for writer.c and writer_extras.c. */
#ifndef TESS_IO_WRITER_IMPL_H
#define TESS_IO_WRITER_IMPL_H

#include "base/temp.h"
#include "io/format.h"

struct tess_writer {
    tess_memory *memory;
    const tess_write_format *format;
    void *state;
    char *path;           /* as the caller named it */
    char *target;         /* links resolved */
    char *like;           /* the file that is restored; NULL: none */
    tess_temp *temp;      /* NULL: a part of the file of another process */
    tess_image_info info; /* `says` and `transform` are those of `like` */
    int64_t next_row;
    bool failed, counted;
    bool parts;         /* other rows are written by other processes */
    size_t held;        /* bytes counted for the extras */
    tess_extras extras; /* of the file that is restored */
    char lost[320];
    char *row; /* one row with its colours in the format's order; NULL: they are in that order */
};

/* Loads the extras of `like` and notes what the target cannot hold. */
tess_status tess_writer_take_extras(tess_writer *writer, const tess_reader *like,
                                    tess_error *error) TESS_MUST_CHECK;

#endif
