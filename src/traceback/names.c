/* Names of native addresses. Each is looked up once, until REMEMBERED_MAX are
 * known and all are forgotten, or until a library is loaded or unloaded. If the
 * resolver has no name, the dynamic linker gives one: the symbol, or the
 * library and the place in it. Any thread: one lock is held during a lookup. It
 * is not the table's lock, and its holder never waits for another lock. */
#include "traceback/names.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/at_fork.h"
#include "base/grow.h"
#include "base/map64.h"
#include "os/os.h"
#include "traceback/arena.h"

enum { REMEMBERED_MAX = 1 << 16 }; /* most addresses that are remembered */

static VST_AT_FORK pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Guarded by the lock. */
static vst__map64 known; /* address -> place of its first frame << 32 | count */
static vst_named_frame *frames;
static size_t frames_count, frames_capacity;
static vst__arena strings;
static unsigned long long libraries_added, libraries_removed;

/* ---- fork ---------------------------------------------------------------- */

static void names_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void names_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
    vst__os_fork_hooks(names_before_fork, names_after_fork, names_after_fork);
}

/* ---- the libraries ------------------------------------------------------- */

static void names_forget(void)
{
    vst__map64_clear(&known);
    vst__arena_free(&strings);
    frames_count = 0;
}

static int names_check_library(struct dl_phdr_info *info, size_t size,
                               void *seen)
{
    if (size >=
        offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *(struct dl_phdr_info *)seen = *info;
    return 1; /* every entry has the sums, so the first is enough */
}

void vst__names_begin(void)
{
    struct dl_phdr_info seen = {0};

    pthread_mutex_lock(&lock);
    dl_iterate_phdr(names_check_library, &seen);
    if (seen.dlpi_adds == libraries_added &&
        seen.dlpi_subs == libraries_removed && seen.dlpi_adds != 0)
        return;
    names_forget();
    vst__resolver_refresh(seen.dlpi_subs != libraries_removed);
    libraries_added = seen.dlpi_adds;
    libraries_removed = seen.dlpi_subs;
}

void vst__names_end(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- names --------------------------------------------------------------- */

static vst_status names_remember(void *ctx, const vst_named_frame *frame)
{
    vst_named_frame *made;

    (void)ctx;
    if (!VST_RESERVE(frames, frames_count + 1, frames_capacity))
        return VST_E_NOMEM;
    made = &frames[frames_count];
    *made = *frame;
    made->name = vst__arena_copy(&strings, frame->name, frame->name_len);
    made->file = vst__arena_copy(&strings, frame->file, frame->file_len);
    if (made->name == NULL || made->file == NULL)
        return VST_E_NOMEM;
    frames_count++;
    return VST_OK;
}

static const vst_named_sink remembering = {NULL, names_remember};

/* Remembers names from the dynamic linker, which every program has. */
static vst_status names_remember_symbol(uintptr_t address)
{
    vst_named_frame frame = {0};
    char place[64], *demangled = NULL;
    Dl_info info;
    vst_status status;

    if (dladdr((void *)(address - 1), &info) == 0 || info.dli_fname == NULL) {
        info.dli_fname = "[no library]";
        info.dli_fbase = NULL;
        info.dli_sname = NULL;
    }
    if (info.dli_sname != NULL) {
        demangled = vst__demangle(info.dli_sname);
        frame.name = demangled != NULL ? demangled : info.dli_sname;
    } else {
        const char *library = strrchr(info.dli_fname, '/');
        snprintf(place, sizeof place, "%.40s%s0x%" PRIxPTR,
                 library != NULL ? library + 1 : "", library != NULL ? "+" : "",
                 address - (uintptr_t)info.dli_fbase);
        frame.name = place;
    }
    frame.name_len = strlen(frame.name);
    frame.file = info.dli_fname;
    frame.file_len = strlen(frame.file);
    status = names_remember(NULL, &frame);
    free(demangled);
    return status;
}

/* Looks up the frames of an address that is not known yet. */
static vst_status names_look_up(uintptr_t address, uint64_t *found)
{
    size_t first;
    vst_status status;
    uint64_t *entry;

    if (known.count >= REMEMBERED_MAX)
        names_forget();
    first = frames_count;
    status = vst__resolver_find(address - 1, &remembering);
    if (status == VST_OK && frames_count == first)
        status = names_remember_symbol(address);
    entry = status == VST_OK ? vst__map64_put(&known, address) : NULL;
    if (entry == NULL) {
        frames_count = first;
        return status != VST_OK ? status : VST_E_NOMEM;
    }
    *entry = (uint64_t)first << 32 | (frames_count - first);
    *found = *entry;
    return VST_OK;
}

vst_status vst__names_of(uintptr_t address, const vst_named_sink *sink)
{
    const uint64_t *entry = vst__map64_find(&known, address);
    uint64_t found = entry != NULL ? *entry : 0;
    vst_status status = entry != NULL ? VST_OK : names_look_up(address, &found);

    for (uint32_t i = 0; i < (uint32_t)found && status == VST_OK; i++)
        status = sink->add(sink->ctx, &frames[(found >> 32) + i]);
    return status;
}
