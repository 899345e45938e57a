/* The porting contract: everything that vestige asks of an operating system. A
 * port is one file that implements this header. Linux has linux.c, and clock.c
 * for the clock. Functions return 0 or an errno value. */
#ifndef VST_OS_H
#define VST_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/wire.h>

#include "os/storage_guard.h"

uint64_t vst__os_thread_id(void); /* the kernel's id, as other tools show it */
uint64_t vst__os_thread_handle(void); /* pthread_self() */
uint32_t vst__os_process_id(void);
uint32_t vst__os_user_id(void);
void vst__os_random(void *bytes, size_t count);

/* number of processors that this process may use */
unsigned vst__os_processors(void);

/* Lowers the priority of the calling thread. */
void vst__os_thread_defer(void);

/* Starts a thread of ours, which gets no signals but SIGBUS. Returns 0 or an
 * errno value. */
int vst__os_helper_start(pthread_t *helper, const char *name,
                         void *(*fn)(void *arg), void *arg);

/* An event, initially 0. One thread waits until the event is set or timeout_ns
 * of the monotonic clock have passed (UINT64_MAX: no timeout), and clears it.
 * Signal handlers may set an event. */
void vst__os_event_set(uint32_t *event);
void vst__os_event_wait(uint32_t *event, uint64_t timeout_ns);

/* Calls fn when a thread ends, with the arg of the thread's last set; set(NULL)
 * cancels the call. */
typedef uint32_t vst__os_exit;
int vst__os_thread_exit_hook(vst__os_exit *hook, void (*fn)(void *arg));
void vst__os_thread_exit_arg(vst__os_exit hook, void *arg);

/* Installs functions that run around fork(): before and after it in the parent,
 * and after it in the child. */
int vst__os_fork_hooks(void (*before)(void), void (*parent)(void),
                       void (*child)(void));

/* Waits until the word has another value, somebody wakes it, or `ns` have
 * passed. May also return without a reason. */
void vst__os_wait(const uint32_t *word, uint32_t value, uint64_t ns);
void vst__os_wake(const uint32_t *word);

/* ---- switches of threads ------------------------------------------------- */

/* The system's reports about the switches of one thread. memory is NULL if the
 * thread is not watched. */
typedef struct vst__os_switch_ring {
    void *memory;
    size_t size;
} vst__os_switch_ring;

/* Opens a ring for a thread of this process; tid 0 is the calling thread.
 * `pages` is a power of two; a page has room for 256 unread switches. */
int vst__os_switches_open(uint64_t tid, unsigned pages,
                          vst__os_switch_ring *ring);
void vst__os_switches_close(vst__os_switch_ring *ring);
/* Passes on each switch since the last call, in order, with its time in ns of
 * CLOCK_MONOTONIC; for VST_SWITCH_LOST the value is how many were lost, 0 if
 * unknown. Returns how full the ring was, in per cent. */
typedef void (*vst__os_switch_fn)(void *ctx, vst_switch what, uint64_t value);
unsigned vst__os_switches_read(vst__os_switch_ring *ring, vst__os_switch_fn fn,
                               void *ctx);
/* Returns whether this process has a thread with this id. */
bool vst__os_thread_is_here(uint64_t tid);
/* Returns how long a thread of this process has run. */
uint64_t vst__os_thread_cpu_ns(uint64_t tid);

/* ---- memory -------------------------------------------------------------- */

/* Returns zeroed memory from the system itself, not from an allocator; NULL if
 * there is none. Release it with vst__os_unmap. Leaves errno as it was. */
void *vst__os_pages(size_t size);
/* Gives the pages' memory back to the system; the pages stay mapped, and are
 * zero again. */
void vst__os_pages_forget(void *pages, size_t size);

enum { VST_OS_WAITS_MAX = 64 };

typedef struct vst__os_thread_wait {
    uint64_t tid, ns;
} vst__os_thread_wait;

/* How long threads waited for a processor between begin and end, summed over
 * several such periods. Threads that ended before the end are missing. */
typedef struct vst__os_waits {
    vst__os_thread_wait before[VST_OS_WAITS_MAX], sums[VST_OS_WAITS_MAX];
    size_t before_count, count;
} vst__os_waits;

void vst__os_waits_begin(vst__os_waits *waits);
void vst__os_waits_end(vst__os_waits *waits);

size_t vst__os_page_size(void);

/* How much memory of this process is in RAM, and how much of that is pages of
 * files; 0 if unknown. This function and the next two allocate nothing, take no
 * lock, and leave errno as it was. */
typedef struct vst__os_resident {
    uint64_t bytes, file_bytes;
} vst__os_resident;
vst__os_resident vst__os_resident_now(void);
/* Returns the highest value so far; 0 if unknown. */
uint64_t vst__os_resident_peak(void);
/* Finds out which pages of an anonymous mapping are in RAM: the lowest bit of
 * each byte is 1 for such a page. Returns false if that is unknown. */
bool vst__os_pages_resident(uintptr_t start, size_t size, unsigned char *pages);

/* vst__os_barrier: after this call, every thread has passed a full barrier: the
 * caller sees their earlier stores, and their later loads see new values.
 * vst__os_barrier_prepare returns false if the system has no such barrier. */
bool vst__os_barrier_prepare(void);
void vst__os_barrier(void);

/* ---- files --------------------------------------------------------------- */

/* Creates a file that only its owner may read, because a recording may contain
 * anything that the program handled. Never follows a link. */
int vst__os_file_create(const char *path, bool overwrite, int *fd);
/* Creates an unlinked file on a local disk; ENOTSUP if tmpdir is not on one
 * (tmpfs, NFS). */
int vst__os_file_create_temporary(int *fd);
int vst__os_file_create_in_memory(int *fd);
void vst__os_file_remove(const char *path);
bool vst__os_file_exists(const char *path);
/* Returns whether a device or a pipe has this name; no file may replace one. */
bool vst__os_file_is_device(const char *path);
/* Returns EEXIST if `to` exists and must not be replaced. */
int vst__os_file_rename(const char *from, const char *to, bool overwrite);
/* Opens a plain file: ESPIPE for a pipe or device, EISDIR for a folder. */
int vst__os_file_open(const char *path, int *fd);
int vst__os_file_duplicate(int fd, int *copy);
void vst__os_file_close(int fd);
int vst__os_file_size(int fd, uint64_t *size);
/* Reads the time of the last write, in ns since 1970. */
int vst__os_file_modified(int fd, int64_t *time_ns);
/* Identifies an open file. A program may close descriptors that it did not
 * open, as daemons do, and may then get their numbers for its own files. */
typedef struct vst__os_identity {
    uint64_t device, inode;
} vst__os_identity;
void vst__os_file_identify(int fd, vst__os_identity *identity);
/* Returns whether fd is still this file; size, if not NULL, gets the file's
 * size now. */
bool vst__os_file_is(int fd, const vst__os_identity *identity, uint64_t *size);
int vst__os_file_truncate(int fd, uint64_t size);
/* Returns when the written data is on the disk. */
int vst__os_file_sync(int fd);
/* Gives `to` the readers of `from`, and with to_write also its writers, as far
 * as we are permitted to. */
void vst__os_file_copy_access(int from, int to, bool to_write);
/* Returns whether only users that can write `other`, or we, can have written
 * `fd`: `fd` belongs to the owner of `other` or to us, and only its owner may
 * write it. */
bool vst__os_file_is_as_safe(int fd, int other);
int vst__os_file_read(int fd, void *bytes, size_t count, uint64_t offset,
                      size_t *got);
int vst__os_file_write(int fd, const void *bytes, size_t count,
                       uint64_t offset);

/* Returns EFBIG if the process may not have files of this size; writing there
 * would raise a signal. */
int vst__os_file_may_reach(uint64_t size);

/* Makes sure that [offset, offset + size) has storage, so that touching a
 * mapping of it cannot raise a signal. */
int vst__os_file_allocate(int fd, uint64_t offset, uint64_t size);
/* For a growing file, before it reaches `need`: reserves storage behind the
 * file's end, which makes writing there cheaper. The file does not become
 * longer, and truncating it gives unused storage back. *reserved is the end of
 * the reserved storage: 0 at first, UINT64_MAX once there was none to reserve
 * or reserving would not help. */
void vst__os_file_reserve(int fd, uint64_t end, uint64_t need,
                          uint64_t *reserved);
void vst__os_unmap(const void *address, size_t size);
/* Maps the beginning of a file that nobody makes shorter. */
int vst__os_map_shared(int fd, size_t size, void **address);

/* ---- file systems -------------------------------------------------------- */

typedef enum vst__os_disk {
    VST_DISK_LOCAL = 0,
    VST_DISK_MEMORY = 1, /* files take memory */
    VST_DISK_SLOW = 2    /* may keep a thread waiting for as long as it likes */
} vst__os_disk;

typedef struct vst__os_place {
    vst__os_disk disk;
    const char *name; /* of the file system; "local" if none is known */
    uint64_t room;    /* bytes that new files may take */
} vst__os_place;

/* Describes the disk of a folder, which must not be slow. */
int vst__os_place_of(const char *folder, vst__os_place *place);

/* The disks that are mounted. */
typedef struct vst__os_mounts vst__os_mounts;

#define VST_OS_MOUNTS "/proc/self/mounts"
/* Reads a table in the format of VST_OS_MOUNTS. Returns NULL if /proc is not
 * mounted or memory runs out. */
vst__os_mounts *vst__os_mounts_read(const char *table);
void vst__os_mounts_free(vst__os_mounts *mounts);
/* Returns the name of the file system if a folder, from the root on, lies on a
 * slow disk, which is not asked; otherwise NULL. */
const char *vst__os_mounts_slow(const vst__os_mounts *mounts,
                                const char *folder);
/* Returns the name of the file system if mounts of a type are slow disks;
 * otherwise NULL. */
const char *vst__os_slow_name(const char *type);
/* Looks a file system up by its type, as statfs reports it. */
vst__os_disk vst__os_disk_of(uint32_t type, const char **name);
/* Returns how much memory the process's control group may use; UINT64_MAX if
 * there is no limit. */
uint64_t vst__os_memory_limit(void);

/* Makes a folder for this user alone, or returns EPERM if somebody else may
 * write to the one that is there. */
int vst__os_private_folder(const char *path);
/* Returns EPERM if somebody else may write to a folder. */
int vst__os_folder_check(const char *path);
/* Locks a file for everybody who has this descriptor or a copy; the lock ends
 * when all are closed. EWOULDBLOCK if somebody else has it. */
int vst__os_file_lock(int fd);
bool vst__os_file_is_unlinked(int fd);
/* Closes all descriptors from this number on. */
void vst__os_close_from(int first);
/* Returns the path from the root on; NULL without memory. The caller frees
 * it. */
char *vst__os_absolute(const char *path);
/* Opens an existing plain file to write; never follows a link. */
int vst__os_file_open_to_write(const char *path, int *fd);
/* Gives the storage of a part of a file back; it reads as zeros. */
int vst__os_file_free(int fd, uint64_t offset, uint64_t size);
/* Returns whether the part has no storage. */
bool vst__os_file_is_hole(int fd, uint64_t offset, uint64_t size);

/* ---- other programs ------------------------------------------------------ */

/* Runs a program in a process that is nobody's child: it outlives this process,
 * and no wait() of this process sees it. `kept` becomes the new process's
 * descriptors 3, 4 …. The environment is empty. Returns 0 or an errno value. */
int vst__os_start_detached(const char *program, char *const *words,
                           const int *kept, size_t kept_count);
/* Returns whether orphans become children of this process, which then sees such
 * a program in wait(): it is the first process of a container, for example. */
bool vst__os_adopts_orphans(void);

/* Two ends between processes. A message is a number; a process that closes its
 * end, or ends, is gone for the other. */
int vst__os_pair_open(int ends[2]);
void vst__os_pair_send(int end, int32_t number);
typedef enum vst__os_pair_news {
    VST_PAIR_QUIET = 0, /* nothing came within timeout_ns */
    VST_PAIR_MESSAGE = 1,
    VST_PAIR_GONE = 2
} vst__os_pair_news;
vst__os_pair_news vst__os_pair_wait(int end, uint64_t timeout_ns,
                                    int32_t *number);

/* ---- storage: a file that is written through mappings -------------------- */

typedef struct vst__os_storage vst__os_storage;

/* Maps a part of a file with its pages present and writable. *cut becomes true
 * when that part of the file is found to be gone; it must stay valid until the
 * mapping is removed or disowned. */
int vst__os_storage_map(int fd, uint64_t offset, size_t size, bool *cut,
                        void **address, vst__os_storage **storage);
void vst__os_storage_unmap(vst__os_storage *storage);
/* Takes the flag away from all mappings that still have it: they set no flag
 * any more. */
void vst__os_storage_disown(bool *cut);
/* Returns whether the address lies in such a mapping. If so, puts anonymous
 * memory there and sets *cut. Any thread, even inside a signal handler. */
bool vst__os_storage_rescue(const void *address);
/* Sets *cut, when the caller found out by other means that the file is cut. */
void vst__os_storage_found_cut(bool *cut);
/* Sets the functions to call when a handler is needed; see
 * os/storage_guard.h. */
void vst__os_storage_watch(const vst_storage_watcher *watcher);
/* Storage may be touched between begin and end. Pairs of them nest. */
void vst__os_storage_begin(void);
void vst__os_storage_end(void);

#endif
