/* The table of functions of a trace that is being recorded. Each reading
 * extends the sums by the new records; the sums equal those of one pass over
 * everything up to now. Open calls count up to the end. Memory is bounded by
 * the number of functions and of open calls. Works on finished files too.
 *
 * Differences to a pass: no call stands for calls that a budget left out, and
 * the recorder's share of the time is unknown. A span that another thread ends
 * counts as open until the call around it ends. If switches are recorded, they
 * arrive some 100 ms late: until then a thread is assumed to stay in its last
 * state. Times behind the last sample of the clock may be a few ns off.
 *
 * One thread at a time. */
#ifndef VST_TABLES_GROWING_H
#define VST_TABLES_GROWING_H

#include <vestige/trace.h>

#include "tables/batch.h"

typedef struct vst__growing vst__growing;

/* The result of a reading. */
typedef struct vst__growth {
    int64_t from_ns, to_ns; /* begin and end of the time that the sums cover */
    uint64_t words;         /* new words of records */
    /* new records that the trace does not have, or that were dropped before
     * they were read */
    uint64_t lost;
    bool finished; /* the recording is finished: nothing more will come */
    bool knows_running;
    /* as vst__table_functions; the caller may take the rows */
    vst__batch *functions;
    /* A row for each thread of the last window: how many words were new, and
     * the innermost open call (id 0: none). */
    vst__batch *threads;
} vst__growth;

/* Opens a trace. The sums begin before_ns before the end that the first reading
 * finds. To know what is open then, the first reading reads everything recorded
 * before, or in a bounded file only a little. Returns VST_E_STATE if the file
 * is packed. */
vst_status vst__growing_open(const char *path, int64_t before_ns,
                             vst__growing **growing, vst_error *error);
void vst__growing_close(vst__growing *growing);

/* Reads the new records. The sums end now if the program is alive, so that
 * calls that are waiting count, else with the last record. */
vst_status vst__growing_read(vst__growing *growing, bool alive,
                             vst__growth *growth, vst_error *error);

/* Returns the trace, for names and facts; valid until the next reading. */
const vst_trace *vst__growing_trace(const vst__growing *growing);

#endif
