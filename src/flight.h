/* The flight recorder: makes snapshots of a recording while the program runs
 * on. A thread of its own writes them, so a request costs the caller almost
 * nothing, and even a signal handler may make one.
 *
 * Create, arm, disarm and destroy are called by one thread at a time. */
#ifndef VST_FLIGHT_H
#define VST_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/session.h>
#include <vestige/status.h>

typedef struct vst_flight vst_flight;

#define VST_FLIGHT_REASONS_MAX 64u

/* A reason for which a snapshot may be requested. */
typedef struct vst_flight_reason {
    const char *text; /* UTF-8 */
    /* If not 0: a snapshot is requested when the process has more than this
     * many bytes in RAM, and again after it had less than nine tenths of that.
     */
    uint64_t rss_limit;
} vst_flight_reason;

typedef struct vst_flight_options {
    const char *stem; /* snapshots are <stem>-snapshot<n>.vst, n = 1, 2 … */
    bool overwrite; /* replace existing files instead of skipping their numbers
                     */
    uint64_t window_ns;
    /* How many snapshots this flight recorder writes at most. The last ones are
     * kept for reasons that have no snapshot yet. */
    uint32_t max_snapshots;
    const vst_flight_reason *reasons;
    size_t reason_count; /* at most VST_FLIGHT_REASONS_MAX */
} vst_flight_options;

/* The result of a request. */
typedef struct vst_flight_snapshot {
    const char *path;
    const char *reason;
    vst_error error; /* status VST_OK if the file was written */
} vst_flight_snapshot;

/* Copies what the options point to. */
vst_status vst__flight_create(const vst_flight_options *options,
                              vst_flight **flight);
/* Serves requests from now on. The session must live until the disarm. */
vst_status vst__flight_arm(vst_flight *flight, const vst_session *session);
/* Waits until the snapshots requested before are written. Returns immediately
 * in a forked child, which does not have the thread. */
void vst__flight_disarm(vst_flight *flight);
void vst__flight_destroy(vst_flight *flight); /* disarms */
/* Call before and after a fork: the thread ends before the fork, so that the
 * program forks with only its own threads, and is started again after it;
 * requests in between wait. Returns false if the thread is writing; then it
 * stays. */
bool vst__flight_pause(vst_flight *flight);
void vst__flight_resume(vst_flight *flight);

/* Asks for a snapshot without waiting for it; takes no lock and allocates
 * nothing. Two requests for the same reason are one while the first is waiting.
 * Does nothing while not armed. */
void vst__flight_request(vst_flight *flight, uint32_t reason);

/* Return how many snapshots there are so far, and one of them, in order; valid
 * until destroy. */
size_t vst__flight_count(const vst_flight *flight);
const vst_flight_snapshot *vst__flight_at(const vst_flight *flight,
                                          size_t index);
/* Returns how many requests came after max_snapshots had been written. */
uint64_t vst__flight_refused(const vst_flight *flight);

#endif
