/* Tracebacks for a language's extension, beyond <vestige/traceback.h>: its
 * object for a traceback, and what its generated code stands for. */
#ifndef VST_TRACEBACK_LANGUAGE_H
#define VST_TRACEBACK_LANGUAGE_H

#include <vestige/traceback.h>

/* Whether the caller's is the only reference; with the interpreter's lock. */
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

/* What generated code stands for: called with each distinct (file, line) of a
 * language frame; adds the frames behind it, which are shown after its own.
 * Both it and what sets it run with the interpreter's lock held. NULL: none. */
typedef vst_status (*vst_extra_frames_fn)(void *ctx, const char *file,
                                          size_t file_len, uint32_t line,
                                          const vst_named_sink *sink);
void vst__traceback_set_extra_frames(vst_extra_frames_fn fn, void *ctx);

#endif
