/* Makes the core's n-th call of a kind fail: the linker sends these calls of
 * the test and of the core in it (see meson.build) to faults.c first. Calls
 * that libraries make among themselves never fail. */
#ifndef VST_TESTS_FAULTS_H
#define VST_TESTS_FAULTS_H

#include <pthread.h>
#include <stdbool.h>

#include <vestige/status.h>

typedef enum fault_kind {
    FAULT_MEMORY, /* malloc, calloc, realloc */
    FAULT_MMAP,
    FAULT_MADVISE,
    FAULT_PWRITE,
    FAULT_FTRUNCATE,
    FAULT_PREAD,
    FAULT_OPEN, /* every call that returns a new descriptor or stream */
    FAULT_FWRITE,
    FAULT_RENAME,
    FAULT_FSYNC,
    FAULT_THREAD,
    FAULT_KINDS
} fault_kind;

/* From now on the n-th call (1, 2, 3 …) of this kind fails with `error`. If
 * `lasts`, all later calls of the kind fail, too. */
void faults_begin(fault_kind kind, unsigned n, bool lasting, int error);
/* While faults are paused, calls neither fail nor count. */
void faults_pause(bool pauses);
/* Ends the faults; returns whether a call failed. */
bool faults_end(void);

/* For each kind of fault, the errno with which calls fail and the status that
 * reports it. */
extern const struct fault_told {
    vst_status status;
    int sys_errno;
} faults_told[FAULT_KINDS];

/* Starts a thread of the test; creating this thread never fails by request. */
int faults_thread(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
