/* Local files: where records go whose target lies on a slow disk. A copier
 * (copier_main.c), or the next reader, copies them to the target. Any thread.
 */
#ifndef VST_STORE_LOCAL_FILES_H
#define VST_STORE_LOCAL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os.h"
#include "store/mirror.h"

typedef struct vst__local_file {
    int fd;
    char *path;     /* NULL if the file has no name: it lies in memory */
    uint64_t limit; /* bytes that it may take */
} vst__local_file;

/* Returns the folders that may hold local files, in the order in which they are
 * tried; NULL behind the last. Those that cannot are "": their variable is not
 * set, or they lie on a slow disk. `mounts` may be NULL. `path` has room for
 * `size` bytes. */
const char *vst__local_folder(const vst__os_mounts *mounts, size_t index,
                              char *path, size_t size);
/* Creates a local file for a target, and locks it. Returns 0 or an errno
 * value. */
int vst__local_file_create(const char *target, vst__local_file *local);
/* Writes the note, once the file has its header page. */
int vst__local_file_note(const vst__local_file *local, const char *target,
                         bool overwrite, vst__copy_note **note);
typedef struct vst__local_look {
    char target[VST_COPY_TARGET_MAX];
    int sys_errno;    /* why the target could not be written last, or 0 */
    bool is_busy;     /* somebody writes or copies the file */
    bool is_finished; /* the recording has ended */
    bool is_complete; /* the target lacks nothing */
} vst__local_look;

/* Looks at a local file that somebody made; EINVAL if it is no local file. */
int vst__local_file_look(const char *path, vst__local_look *look);
/* Opens a local file that somebody made. *note gets its mapped note; release it
 * with vst__copy_note_release. EINVAL if it is no local file. */
int vst__local_file_open(const char *path, int *fd, vst__copy_note **note);
int vst__copy_note_map(int fd, vst__copy_note **note);
void vst__copy_note_release(vst__copy_note *note);

/* Creates the target of a local file, or opens it if it was created. EEXIST if
 * it is another file. */
int vst__target_open(int local, vst__copy_note *note, int *target);
/* Copies what the target lacks and removes the local file. EWOULDBLOCK if
 * somebody else still writes or copies it. */
int vst__local_file_complete(const char *path);

#endif
