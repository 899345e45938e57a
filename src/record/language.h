/* Functions for a language's extension, in addition to <vestige/record.h>.
 * Unless a comment says otherwise, functions that take a recording may be
 * called by any thread and take the recorder's lock; functions named
 * vst__record_ follow the rule of vst_record(). */
#ifndef VST_RECORD_LANGUAGE_H
#define VST_RECORD_LANGUAGE_H

#include <vestige/record.h>

/* ---- records ------------------------------------------------------------- */

/* Records VST_ESCAPE_EXCEPTION. */
void vst__record_exception(vst_id id);
/* Records VST_ESCAPE_IMPORT. */
void vst__record_import(vst_id id);
/* Return whether some calls of the calling thread are not recorded
 * (vst_session_options.max_depth, only), and whether its innermost call is
 * recorded. */
bool vst__record_leaves_out(void);
bool vst__record_top_is_left_out(void);
/* The place of the calling thread's next record. vst__record_went_on returns
 * whether the thread has since entered a call, or left one other than by an
 * exception, as far as its chunk shows. */
typedef struct vst_record_place {
    const uint64_t *at;
    uint64_t chunk;
} vst_record_place;
vst_record_place vst__record_here(void);
bool vst__record_went_on(vst_record_place since);

/* Ends a span so that it does not overlap the calls in which it ends: see
 * VST_ESCAPE_END. */
void vst__record_end_inside(vst_id id, uint32_t instance);
void vst__record_switch(uint64_t stack);
void vst__record_gap(bool ends);
/* Records the calls that the current thread is in now, outermost first. */
void vst__record_stack(const vst_id *ids, size_t count);
/* Records VST_ESCAPE_SETTLE; follows the rule of vst_record. */
void vst__record_settle(bool ends);

/* ---- a recording --------------------------------------------------------- */

/* Calls fn with the file of each Python function that was defined, once for
 * each function. fn runs with the recorder's lock held: it must not define,
 * record or allocate. */
void vst__recording_each_file(vst_recording *recording,
                              void (*fn)(void *ctx, vst_id id, const char *file,
                                         uint32_t length),
                              void *ctx);

/* Returns the average cost of getting room for a word so far, in nanoseconds.
 */
double vst__recording_storage_ns(vst_recording *recording);

/* Makes every thread take the slow path at its next record, and there call the
 * function that was given to vst__recording_set_attention, under no lock of
 * vestige. A thread's first record does this too, and so do free-running
 * threads. */
void vst__recording_request_attention(vst_recording *recording);
void vst__recording_set_attention(vst_recording *recording,
                                  void (*fn)(void *ctx), void *ctx);

/* Functions that count the records of threads. A thread calls count() after it
 * stored `words` words since the last count, or when it fills its chunk, with
 * these words; then it calls after_count() with the kind and the id of its next
 * record, under no lock of vestige and before that record.
 * vst__recording_count_all calls count() for the words of all threads that only
 * hooks write, with the recorder's lock held: count() must not define, record
 * or wait. words 0: nothing is counted. */
typedef struct vst_pace {
    size_t words;
    void *ctx;
    void (*count)(void *ctx, const uint64_t *words, size_t count);
    void (*after_count)(void *ctx, vst_kind kind, vst_id id);
} vst_pace;

void vst__recording_set_pace(vst_recording *recording, const vst_pace *pace);
void vst__recording_count_all(vst_recording *recording);

/* Finds the lines of calls (VST_ESCAPE_LINES): a thread that records calls
 * stack() at most once in interval_ns, with the first record after that time,
 * under no lock of vestige and before the record is stored. stack() returns the
 * number of the stack of the calling thread, 0 if it is not known; stack() must
 * not record. stack NULL: no lines are recorded. */
typedef struct vst_lines {
    uint64_t interval_ns;
    void *ctx;
    uint32_t (*stack)(void *ctx);
} vst_lines;

void vst__recording_set_lines(vst_recording *recording, const vst_lines *lines);

/* For a language whose threads run in parallel: hold(true) is called, under no
 * lock of vestige, before the chunks of threads that only hooks write are taken
 * away, and hold(false) after that. Between the two calls, none of these
 * threads is inside a record. NULL: the tracer's stop() is sufficient. */
void vst__recording_set_hold(vst_recording *recording,
                             void (*hold)(bool begins));

#endif
