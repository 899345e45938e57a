/* Files that another process truncates while they are recorded to.
 *
 * Records are stored through mappings of the file. If the file is truncated,
 * the next store raises SIGBUS, which ends the program. The core takes no
 * signals. A program or a language's extension installs a handler that calls
 * vst_storage_rescue; the watcher below says when the handler is needed. */
#ifndef VESTIGE_STORAGE_GUARD_H
#define VESTIGE_STORAGE_GUARD_H

#include <stdbool.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For a handler of SIGBUS, with the address of the fault. True: it lay in a
 * recording's file; memory is there now in its place, the recording takes no
 * more (vst_session_was_cut), and the handler can return. Any thread, inside of
 * a signal handler. */
VST_API bool vst_storage_rescue(const void *address);

/* What is NULL is not called. */
typedef struct vst_storage_watcher {
    /* From `begin` to `end` a recording's file may be stored to. They nest, and
     * may be called by any thread, under the recorder's lock too. */
    void (*begin)(void);
    void (*end)(void);
    /* A part of the file was mapped; the same. */
    void (*mapped)(void);
    /* A file was found to be cut: by any thread, inside of the handler or under
     * the recorder's lock. It calls nothing of vestige's. */
    void (*cut)(void);
} vst_storage_watcher;

/* Sets the watcher once, before the first recording; *watcher must not change
 * after that. */
VST_API void vst_storage_watch(const vst_storage_watcher *watcher);

#ifdef __cplusplus
}
#endif
#endif
