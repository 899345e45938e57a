/* The table of functions of a trace that is being recorded: its sums are
 * extended by the records that are new, and equal those of one pass over all
 * that there is by then. What is open counts up to the end. Memory is bounded
 * by the number of functions and of open calls. Works on finished files too.
 *
 * Differences to a pass: no call stands for those that a budget left out, and
 * the recorder's share of the time is not known. A span that another thread
 * ends counts as open until the call around it ends. Where it is recorded when
 * threads ran, that is told some 100 ms later: until then a thread is taken to
 * go on as it did. Times of ticks behind the last sample of the clock may be a
 * few ns off.
 *
 * One thread at a time. */
#ifndef VST_TABLES_GROWING_H
#define VST_TABLES_GROWING_H

#include <vestige/trace.h>

#include "tables/batch.h"

typedef struct vst__growing vst__growing;

/* The sums by now. */
typedef struct vst__growth {
    int64_t from_ns, to_ns; /* of the sums */
    uint64_t words;         /* of records, that were new */
    uint64_t lost; /* records that the trace does not have, or no longer had
                    * when they were read; of those that were new */
    bool finished; /* the recording was: there will be nothing more */
    bool knows_running;
    vst__batch *functions; /* as vst__table_functions; may be taken */
    /* A row for each thread of the last window: how many words were new, and
     * the innermost call that is open, id 0: none. */
    vst__batch *threads;
} vst__growth;

/* The sums begin before_ns before the end that there is at the first reading.
 * What is open then is found out by reading all that was recorded before, or in
 * a bounded file little of it. VST_E_STATE: the file is packed. */
vst_status vst__growing_open(const char *path, int64_t before_ns,
                             vst__growing **growing, vst_error *error);
void vst__growing_close(vst__growing *growing);

/* Reads what is new. The sums end now if the program is alive, so that what it
 * waits in counts, else with the last record. */
vst_status vst__growing_read(vst__growing *growing, bool alive,
                             vst__growth *growth, vst_error *error);

/* For names and facts: good until the next reading. */
const vst_trace *vst__growing_trace(const vst__growing *growing);

#endif
