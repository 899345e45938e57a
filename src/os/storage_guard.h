/* Guards against files that another process truncates while a recording writes
 * to them. Records are stored through mappings of the file; if the file is
 * truncated, the next store raises SIGBUS, which ends the program. The core
 * installs no signal handler. A program or a language's extension installs one
 * that calls vst_storage_rescue (<vestige/session.h>); the watcher below says
 * when the handler is needed. */
#ifndef VST_OS_STORAGE_GUARD_H
#define VST_OS_STORAGE_GUARD_H

/* Members that are NULL are not called. */
typedef struct vst_storage_watcher {
    /* Between `begin` and `end`, a recording may store to its file. Pairs nest.
     * Any thread may call these, also with the recorder's lock held. */
    void (*begin)(void);
    void (*end)(void);
    /* A part of the file was mapped. Any thread, also with the recorder's lock
     * held. */
    void (*mapped)(void);
    /* A file was found to be cut. Any thread, also inside the handler or with
     * the recorder's lock held. The function must call nothing of vestige. */
    void (*cut)(void);
} vst_storage_watcher;

/* Sets the watcher, once, before the first recording; *watcher must not change
 * after that. */
void vst__storage_watch(const vst_storage_watcher *watcher);

#endif
