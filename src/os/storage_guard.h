/* Files that another process truncates while they are recorded to.
 *
 * Records are stored through mappings of the file. If the file is truncated,
 * the next store raises SIGBUS, which ends the program. The core takes no
 * signals. A program or a language's extension installs a handler that calls
 * vst_storage_rescue (<vestige/session.h>); the watcher below says when the
 * handler is needed. */
#ifndef VST_OS_STORAGE_GUARD_H
#define VST_OS_STORAGE_GUARD_H

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
void vst__storage_watch(const vst_storage_watcher *watcher);

#endif
