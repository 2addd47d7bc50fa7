/* thread.h: a thread with a stack of a given size. The system's default of 8 MiB would reserve gigabytes of
 * address space on a machine with many cores, which matters where address space is limited (ulimit -v). */
#ifndef TESS_BASE_THREAD_H
#define TESS_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

static inline bool tess_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    const bool started = pthread_attr_setstacksize(&attributes, stack) == 0 &&
                         pthread_create(thread, &attributes, run, arg) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

#endif
