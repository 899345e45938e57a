/* Tracebacks for a language's extension, in addition to <vestige/traceback.h>:
 * the language's object of a traceback, and the frames behind generated code.
 */
#ifndef VST_TRACEBACK_LANGUAGE_H
#define VST_TRACEBACK_LANGUAGE_H

#include <vestige/traceback.h>

/* Returns whether the caller has the only reference. Call with the
 * interpreter's lock held. */
bool vst__traceback_is_sole(const vst_traceback *traceback);
/* A word for the language's own use (its object for this traceback). With the
 * interpreter's lock held. */
void *vst__traceback_get_user(const vst_traceback *traceback);
void vst__traceback_set_user(vst_traceback *traceback, void *user);

/* For a garbage collector: visits what a traceback refers to if the caller
 * holds the only reference (else another holder keeps it alive); clear drops it
 * and leaves the traceback empty. With the interpreter's lock held. */
int vst__traceback_traverse(const vst_traceback *traceback,
                            int (*visit)(void *object, void *arg), void *arg);
void vst__traceback_clear(vst_traceback *traceback);

/* Adds the frames behind generated code: called with each distinct (file, line)
 * of a language frame, whose own frame is shown first. Both this function and
 * vst__traceback_set_extra_frames are called with the interpreter's lock held.
 * NULL: none. */
typedef vst_status (*vst_extra_frames_fn)(void *ctx, const char *file,
                                          size_t file_len, uint32_t line,
                                          const vst_named_sink *sink);
void vst__traceback_set_extra_frames(vst_extra_frames_fn fn, void *ctx);

#endif
