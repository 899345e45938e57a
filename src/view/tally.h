/* What a program is doing: a trace that is being recorded, read as it grows,
 * and added up over the time since the last look. Only sums are kept, and what
 * is open: memory does not grow with the trace. Works on finished files too.
 *
 * One thread at a time uses a vst_tally. Times are nanoseconds of the wall
 * clock. */
#ifndef VST_VIEW_TALLY_H
#define VST_VIEW_TALLY_H

#include <vestige/trace.h>

typedef struct vst_tally vst_tally;

typedef struct vst_tally_function {
    vst_id id;
    uint64_t calls; /* that began */
    /* In it alone, and with all that it called. A function that calls itself
     * counts once. Over all threads: may be more than the time that passed. */
    int64_t own_ns, total_ns;
    uint64_t bytes; /* that it allocated by itself, where that is recorded */
    /* Of these times, while its thread had a processor; 0 where it is not known
     * when threads ran. */
    int64_t own_running_ns, total_running_ns;
} vst_tally_function;

typedef struct vst_tally_thread {
    uint32_t number; /* see vst_trace_thread */
    uint32_t depth;  /* of what is open, at the end */
    uint64_t words;  /* of records */
    int64_t in_calls_ns;
    vst_id id; /* the innermost call that is open, 0: none */
    int64_t since_ns;
} vst_tally_thread;

/* The last value of a counter of the program. */
typedef struct vst_tally_counter {
    vst_id id;
    double value;
} vst_tally_counter;

/* What happened from from_ns to to_ns. Good until the next look. */
typedef struct vst_tally_look {
    int64_t from_ns, to_ns;
    uint64_t words; /* of records */
    uint64_t lost;  /* records that the trace does not have, or no longer had
                     * when it was read */
    bool finished;  /* the recording was: there will be nothing more */
    /* It is recorded when threads ran. It is told some 100 ms later: until then
     * a thread is taken to go on as it did. */
    bool knows_running;
    const vst_tally_function *functions;
    size_t function_count;
    const vst_tally_thread *threads; /* of the last window */
    size_t thread_count;
    const vst_tally_counter *counters;
    size_t counter_count;
} vst_tally_look;

/* The first look begins before_ns before the end. What is open then is found
 * out by reading all that was recorded before, or in a bounded file little of
 * it. VST_E_STATE: the file is packed. */
vst_status vst__tally_open(const char *path, int64_t before_ns,
                           vst_tally **tally, vst_error *error);
void vst__tally_close(vst_tally *tally);

/* Reads what is new. It ends now if the program is alive, so that what it waits
 * in counts, else with the last record. */
vst_status vst__tally_next(vst_tally *tally, bool alive, vst_tally_look *look,
                           vst_error *error);

/* For names and facts: good until the next look. */
const vst_trace *vst__tally_trace(const vst_tally *tally);

#endif
