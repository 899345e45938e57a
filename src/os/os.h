/* The porting contract: everything vestige asks of an operating system. A port
 * is one file that implements this header; Linux's is linux.c, the clock's is
 * clock.c. Functions return 0 or an errno value. */
#ifndef VST_OS_H
#define VST_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/wire.h>

#include "os/storage_guard.h"

uint64_t vst__os_thread_id(void);     /* the kernel's, as other tools show it */
uint64_t vst__os_thread_handle(void); /* pthread_self() */
uint32_t vst__os_process_id(void);
void vst__os_random(void *bytes, size_t count);

unsigned vst__os_processors(void); /* that this process may use */

/* Lowers the priority of the calling thread. */
void vst__os_thread_defer(void);

/* Starts a thread of ours, with no signals but SIGBUS. An errno value, or 0. */
int vst__os_helper_start(pthread_t *helper, const char *name,
                         void *(*fn)(void *arg), void *arg);

/* An event, 0 at first: one thread waits until it is set, or timeout_ns of the
 * monotonic clock have passed (UINT64_MAX: never), and clears it. Signal
 * handlers may set it. */
void vst__os_event_set(uint32_t *event);
void vst__os_event_wait(uint32_t *event, uint64_t timeout_ns);

/* Calls fn(arg of the last set) in a thread that ends; set(NULL) unsets it. */
typedef uint32_t vst__os_exit;
int vst__os_thread_exit_hook(vst__os_exit *hook, void (*fn)(void *arg));
void vst__os_thread_exit_arg(vst__os_exit hook, void *arg);

/* Around fork(): before and after in the parent, after in the child. */
int vst__os_fork_hooks(void (*before)(void), void (*parent)(void),
                       void (*child)(void));

/* Waits until the word has another value, somebody wakes it, or so many ns have
 * passed, or for no reason. */
void vst__os_wait(const uint32_t *word, uint32_t value, uint64_t ns);
void vst__os_wake(const uint32_t *word);

/* ---- switches of threads ------------------------------------------------ */

/* What the system tells of the switches of one thread; memory NULL: nothing. */
typedef struct vst__os_switch_ring {
    void *memory;
    size_t size;
} vst__os_switch_ring;

/* Of a thread of this process, 0: the calling one. `pages` is a power of two: a
 * page has room for 256 switches that were not read yet. */
int vst__os_switches_open(uint64_t tid, unsigned pages,
                          vst__os_switch_ring *ring);
void vst__os_switches_close(vst__os_switch_ring *ring);
/* Passes on each switch since the last time, in order, with its time in ns of
 * CLOCK_MONOTONIC; of VST_SWITCH_LOST it is how many, 0: not known. Returns how
 * full the ring was, in per cent. */
typedef void (*vst__os_switch_fn)(void *ctx, vst_switch what, uint64_t value);
unsigned vst__os_switches_read(vst__os_switch_ring *ring, vst__os_switch_fn fn,
                               void *ctx);
/* Whether this process has a thread with this id. */
bool vst__os_thread_is_here(uint64_t tid);
/* How long a thread of this process ran so far. */
uint64_t vst__os_thread_cpu_ns(uint64_t tid);

/* ---- memory ------------------------------------------------------------ */

/* Zeroed, from the system itself and not from an allocator; NULL: none. Given
 * back by vst__os_unmap. errno stays as it was. */
void *vst__os_pages(size_t size);
/* Gives the memory of the pages back; they stay mapped, and are zero again. */
void vst__os_pages_forget(void *pages, size_t size);

enum { VST_OS_WAITS_MAX = 64 };

typedef struct vst__os_thread_wait {
    uint64_t tid, ns;
} vst__os_thread_wait;

/* How long threads waited for a processor between begin and end, added up over
 * several such stretches. Threads that have ended at the end are not there. */
typedef struct vst__os_waits {
    vst__os_thread_wait before[VST_OS_WAITS_MAX], sums[VST_OS_WAITS_MAX];
    size_t before_count, count;
} vst__os_waits;

void vst__os_waits_begin(vst__os_waits *waits);
void vst__os_waits_end(vst__os_waits *waits);

size_t vst__os_page_size(void);

/* Memory of this process that is in RAM, and what of it are pages of files; 0
 * if that is not known. This and the next two allocate nothing, take no lock
 * and leave errno as it was. */
typedef struct vst__os_resident {
    uint64_t bytes, file_bytes;
} vst__os_resident;
vst__os_resident vst__os_resident_now(void);
/* The highest value so far; 0 if that is not known. */
uint64_t vst__os_resident_peak(void);
/* Which pages of a mapping of no file are in RAM: 1, in the lowest bit of a
 * byte each. False: it is not known. */
bool vst__os_pages_resident(uintptr_t start, size_t size, unsigned char *pages);

/* After it, every thread has passed a full barrier since: a store of theirs
 * before is seen, and what they load after is new. False of prepare: there is
 * none. */
bool vst__os_barrier_prepare(void);
void vst__os_barrier(void);

/* ---- files ------------------------------------------------------------- */

/* A new file, which nobody but its owner may read: what is recorded may be
 * anything that the program handled. Never one that a link leads to. */
int vst__os_file_create(const char *path, bool overwrite, int *fd);
/* An unlinked file on a disk; ENOTSUP where tmpdir is no disk (tmpfs). */
int vst__os_file_create_temporary(int *fd);
int vst__os_file_create_in_memory(int *fd);
void vst__os_file_remove(const char *path);
bool vst__os_file_exists(const char *path);
/* Whether a device or a pipe has this name, which no file may replace. */
bool vst__os_file_is_device(const char *path);
/* EEXIST where `to` is there and shall not be replaced. */
int vst__os_file_rename(const char *from, const char *to, bool overwrite);
/* A file alone: ESPIPE for a pipe or device, EISDIR for a folder. */
int vst__os_file_open(const char *path, int *fd);
int vst__os_file_duplicate(int fd, int *copy);
void vst__os_file_close(int fd);
int vst__os_file_size(int fd, uint64_t *size);
/* When it was written last, in ns since 1970. */
int vst__os_file_modified(int fd, int64_t *time_ns);
/* A program may close descriptors that it did not open, as daemons do, and get
 * the number again for a file of its own. */
typedef struct vst__os_identity {
    uint64_t device, inode;
} vst__os_identity;
void vst__os_file_identify(int fd, vst__os_identity *identity);
/* *size is what it has now; it may be NULL. */
bool vst__os_file_is(int fd, const vst__os_identity *identity, uint64_t *size);
int vst__os_file_truncate(int fd, uint64_t size);
/* Returns once what was written is on the disk. */
int vst__os_file_sync(int fd);
/* Gives `to` the readers of `from`, and with to_write its writers, as far as we
 * are permitted to. */
void vst__os_file_copy_access(int from, int to, bool to_write);
/* Whether only users that can write `other`, or we, can have written `fd`: it
 * belongs to the same user or to ours, and only its owner may write it. */
bool vst__os_file_is_as_safe(int fd, int other);
int vst__os_file_read(int fd, void *bytes, size_t count, uint64_t offset,
                      size_t *got);
int vst__os_file_write(int fd, const void *bytes, size_t count,
                       uint64_t offset);

/* EFBIG if a file of the process may not be so long: writing there would raise
 * a signal. */
int vst__os_file_may_reach(uint64_t size);

/* Makes sure that [offset, offset + size) has storage behind it, so that
 * touching a mapping of it can raise no signal. */
int vst__os_file_allocate(int fd, uint64_t offset, uint64_t size);
/* Of a file that grows, before it reaches `need`: asks for storage ahead of its
 * end, which makes writing there cheaper. The file is not longer for it, and
 * truncating gives back what is left. *reserved is where it ends, 0 at first,
 * UINT64_MAX once there was none to be had, or it would not help. */
void vst__os_file_reserve(int fd, uint64_t end, uint64_t need,
                          uint64_t *reserved);
void vst__os_unmap(const void *address, size_t size);

/* ---- storage: a file that is written through mappings ------------------- */

typedef struct vst__os_storage vst__os_storage;

/* Maps a part of a file with its pages present and writable. *cut, which is
 * there until the mapping goes or is disowned, becomes true when that part of
 * the file is found to be gone. */
int vst__os_storage_map(int fd, uint64_t offset, size_t size, bool *cut,
                        void **address, vst__os_storage **storage);
void vst__os_storage_unmap(vst__os_storage *storage);
/* Mappings that are left set no flag any more. */
void vst__os_storage_disown(bool *cut);
/* Whether the address lies in such a mapping. Memory that belongs to no file is
 * put there, and *cut is set. Any thread, inside of a signal handler. */
bool vst__os_storage_rescue(const void *address);
/* Sets *cut, where it was found by other means. */
void vst__os_storage_found_cut(bool *cut);
/* Sets the functions that are called when a handler is needed; see
 * os/storage_guard.h. */
void vst__os_storage_watch(const vst_storage_watcher *watcher);
/* Between these two storage is touched. They nest. */
void vst__os_storage_begin(void);
void vst__os_storage_end(void);

#endif
