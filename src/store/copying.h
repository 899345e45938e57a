/* A recording whose target lies on a slow disk: its local file, and the process
 * that copies it. The process, the copier, is the only one that touches the
 * target: a thread that waits for a disk cannot be ended, and would keep this
 * process from ending. The thread that controls the recording calls these
 * functions. */
#ifndef VST_STORE_COPYING_H
#define VST_STORE_COPYING_H

#include <stdbool.h>
#include <stdint.h>

#include "store/local_files.h"

/* The copier's descriptors, and its words behind the program's name. */
enum { VST_COPIER_LOCAL = 3, VST_COPIER_PAIR = 4 };

typedef struct vst__copying {
    vst__local_file local; /* the caller closes local.fd */
    vst__copy_note *note;
    char *target;       /* from the root on */
    const char *copier; /* the program; must stay valid */
    int pair;           /* -1: no copier runs */
    int sys_errno;      /* why there is no copier; 0 if there is one */
    bool is_late;       /* the copier starts when the recording ends */
} vst__copying;

/* Creates a local file. Returns 0 or an errno value. */
int vst__copying_begin(const char *target, const char *copier,
                       vst__copying *copying);
/* Starts the copier, when the local file has its header page, and waits for the
 * target to be created, but not long. Returns an errno value if the target
 * cannot be created. */
int vst__copying_start(vst__copying *copying, bool overwrite);
/* The local file is finished: the copier copies the rest at once. */
void vst__copying_hurry(vst__copying *copying);
/* Waits until the target is complete, but at most timeout_ns. */
bool vst__copying_wait(vst__copying *copying, uint64_t timeout_ns);
/* Waits until the target has what is in the local file now, but at most
 * timeout_ns. */
bool vst__copying_catch_up(vst__copying *copying, uint64_t timeout_ns);
/* Lets the copier go on alone, or in a forked child forgets it. With `remove`
 * the local file is not wanted any more. */
void vst__copying_end(vst__copying *copying, bool remove);
/* Starts a copier for a local file that its process has left behind. */
int vst__copying_resume(const char *path, const char *copier);

#endif
