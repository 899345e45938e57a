/* os.h for Linux: mappings of a file through which records are stored, and
 * their rescue when another process truncates the file. A store to a mapped
 * page whose part of the file is gone raises SIGBUS. The handler of that signal
 * calls vst__os_storage_rescue, which finds the mapping in a table and puts
 * memory in its place.
 *
 * The signal handler reads the table while other threads may change it, so the
 * table has no lock: an entry is claimed by an exchange, and its address is
 * stored last and removed first. Entries are never freed, only reused. */
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
    PAGE = 4096,
    /* entries of a part, which then has about the size of a page */
    ENTRIES = 170,
    CLAIMED = 1, /* marks an entry in use; no page has this address */
};

struct vst__os_storage {
    uintptr_t start; /* 0 if the entry is free */
    size_t size;
    bool *cut; /* set when the file is found to be cut; may be NULL */
};

/* Constant once it can be reached through `next`. */
typedef struct part {
    struct vst__os_storage entries[ENTRIES];
    struct part *next;
} part;

static part first_part;

static const vst_storage_watcher nobody;
static const vst_storage_watcher *watcher = &nobody; /* set once */

/* ---- the table ----------------------------------------------------------- */

static part *next_part(part *at)
{
    /* Pairs with the exchange below. */
    part *next = __atomic_load_n(&at->next, __ATOMIC_ACQUIRE), *made;

    if (next != NULL)
        return next;
    made = vst__os_pages(sizeof *made);
    if (made == NULL)
        return NULL;
    if (__atomic_compare_exchange_n(&at->next, &next, made, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    vst__os_unmap(made, sizeof *made);
    return next;
}

static vst__os_storage *claim_entry(void)
{
    for (part *at = &first_part; at != NULL; at = next_part(at))
        for (size_t i = 0; i < ENTRIES; i++) {
            uintptr_t none = 0;

            if (__atomic_load_n(&at->entries[i].start, __ATOMIC_RELAXED) == 0 &&
                __atomic_compare_exchange_n(&at->entries[i].start, &none,
                                            CLAIMED, false, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED))
                return &at->entries[i];
        }
    return NULL;
}

static void give_back_entry(vst__os_storage *entry)
{
    /* Pairs with the exchange in claim_entry. */
    __atomic_store_n(&entry->start, 0, __ATOMIC_RELEASE);
}

/* ---- watching ------------------------------------------------------------ */

void vst__os_storage_watch(const vst_storage_watcher *who)
{
    __atomic_store_n(&watcher, who, __ATOMIC_RELEASE);
}

static const vst_storage_watcher *storage_watching(void)
{
    /* pairs with the release in vst__os_storage_watch */
    return __atomic_load_n(&watcher, __ATOMIC_ACQUIRE);
}

static void storage_call(void (*function)(void))
{
    if (function != NULL)
        function();
}

void vst__os_storage_begin(void)
{
    storage_call(storage_watching()->begin);
}

void vst__os_storage_end(void)
{
    storage_call(storage_watching()->end);
}

void vst__os_storage_found_cut(bool *cut)
{
    if (cut != NULL && !__atomic_exchange_n(cut, true, __ATOMIC_ACQ_REL))
        storage_call(storage_watching()->cut);
}

/* ---- mappings ------------------------------------------------------------ */

/* Kernels before 5.14 cannot make pages writable in advance; there, the first
 * write to each page does. */
int vst__os_storage_map(int fd, uint64_t offset, size_t size, bool *cut,
                        void **address, vst__os_storage **storage)
{
    vst__os_storage *entry = claim_entry();
    int error;

    if (entry == NULL)
        return ENOMEM;
    *address =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    if (*address == MAP_FAILED) {
        error = errno;
        give_back_entry(entry);
        return error;
    }
    if (madvise(*address, size, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
        error = errno;
        munmap(*address, size);
        give_back_entry(entry);
        return error;
    }
    __atomic_store_n(&entry->size, size, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->cut, cut, __ATOMIC_RELAXED);
    /* Pairs with the load in vst__os_storage_rescue. */
    __atomic_store_n(&entry->start, (uintptr_t)*address, __ATOMIC_RELEASE);
    *storage = entry;
    storage_call(storage_watching()->mapped);
    return 0;
}

void vst__os_storage_unmap(vst__os_storage *storage)
{
    uintptr_t start = __atomic_load_n(&storage->start, __ATOMIC_RELAXED);
    size_t size = __atomic_load_n(&storage->size, __ATOMIC_RELAXED);

    /* A later mapping at this address must not be taken for ours. */
    __atomic_store_n(&storage->start, CLAIMED, __ATOMIC_SEQ_CST);
    munmap((void *)start, size);
    give_back_entry(storage);
}

void vst__os_storage_disown(bool *cut)
{
    part *at = &first_part;

    for (; at != NULL; at = __atomic_load_n(&at->next, __ATOMIC_ACQUIRE))
        for (size_t i = 0; i < ENTRIES; i++) {
            bool *theirs = cut;
            __atomic_compare_exchange_n(&at->entries[i].cut, &theirs, NULL,
                                        false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        }
}

/* Uses the system call itself, because a signal handler must not run hooks of
 * mmap. */
static bool put_memory(uintptr_t from, uintptr_t end)
{
    return syscall(SYS_mmap, from, end - from, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                   0) == (long)from;
}

/* A truncated file ends at one place: behind the address, the rest of the
 * mapping is gone too; before the address, it may still be there. The mapping
 * stays while this runs, because the interrupted thread is storing to it. */
static bool storage_rescue(const vst__os_storage *entry, uintptr_t address)
{
    uintptr_t start = __atomic_load_n(&entry->start, __ATOMIC_ACQUIRE);
    size_t size = __atomic_load_n(&entry->size, __ATOMIC_RELAXED);

    if (start <= CLAIMED || address < start || address - start >= size ||
        !put_memory(address & ~(uintptr_t)(PAGE - 1), start + size))
        return false;
    vst__os_storage_found_cut(__atomic_load_n(&entry->cut, __ATOMIC_RELAXED));
    return true;
}

bool vst__os_storage_rescue(const void *address)
{
    int error = errno;
    bool rescued = false;

    for (part *at = &first_part; at != NULL && !rescued;
         at = __atomic_load_n(&at->next, __ATOMIC_ACQUIRE))
        for (size_t i = 0; i < ENTRIES && !rescued; i++)
            rescued = storage_rescue(&at->entries[i], (uintptr_t)address);
    errno = error;
    return rescued;
}
