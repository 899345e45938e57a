/* Goes over all loaded libraries: at start, at stop, and when a program loads
 * more. Any thread, but never inside an allocator.
 *
 * The loader holds a lock of its own while we go over its list, and other
 * threads may hold that lock while they wait for locks of their program. So no
 * hook of an allocator calls this file, and the lock of this file is taken
 * inside the loader's lock, never the other way round. Names of libraries are
 * copied, and passed to the recorder after both locks are released. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "memory/scan.h"
#include "os/os.h"
#include "record/memory.h"

enum { FIRST_KNOWN = 512, FIRST_NAMES = 64 * 1024, BUILD_ID_MAX = 64 };

static pthread_mutex_t scan_lock = PTHREAD_MUTEX_INITIALIZER;

/* Guarded by scan_lock, except hooks, malloc_in_use and recording, which are
 * constant while any thread may scan. */
static struct {
    const vst__hook *hooks;
    size_t hook_count;
    const void *malloc_in_use;
    vst_recording *recording;
    unsigned long long adds, subs; /* the loader's counters at the last scan */
    bool looks_again;              /* some libraries were not ready */
    /* hash table of the libraries that are done */
    uintptr_t *known;
    size_t capacity, count;
    vst__scan_counts counts;
} state;

/* A module that is to be defined in the recording, followed by its path and its
 * build id. */
typedef struct found_module {
    uintptr_t bias, start, end;
    size_t path_size, build_id_len;
} found_module;

typedef struct scanning {
    bool is_begun, takes_out;
    const vst__hook *hooks;
    size_t hook_count;
    vst__protection protection;
    bool has_protection;
    vst__scan_counts counts;
    char *found; /* the found_modules, one after the other */
    size_t found_size, found_capacity;
} scanning;

/* ---- libraries that are done --------------------------------------------- */

static void forget_known(void)
{
    if (state.known != NULL)
        vst__os_unmap(state.known, state.capacity * sizeof *state.known);
    state.known = NULL;
    state.capacity = state.count = 0;
}

static uintptr_t *known_place(uintptr_t *known, size_t capacity, uintptr_t key)
{
    size_t i = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (capacity - 1);

    while (known[i] && known[i] != key)
        i = (i + 1) & (capacity - 1);
    return &known[i];
}

/* Identifies a library by the address of its program headers; valid as long as
 * no library is unloaded. */
static uintptr_t scan_key_of(const struct dl_phdr_info *info)
{
    return (uintptr_t)info->dlpi_phdr;
}

static bool is_known(uintptr_t key)
{
    return state.known != NULL &&
           *known_place(state.known, state.capacity, key) == key;
}

/* Without memory to remember the library, the next scan looks at it again. */
static void make_known(uintptr_t key)
{
    if (state.count * 2 >= state.capacity) {
        size_t capacity = state.capacity ? state.capacity * 2 : FIRST_KNOWN;
        uintptr_t *known = vst__os_pages(capacity * sizeof *known);
        size_t count;
        if (known == NULL)
            return;
        for (size_t i = 0; i < state.capacity; i++)
            if (state.known[i])
                *known_place(known, capacity, state.known[i]) = state.known[i];
        count = state.count;
        forget_known();
        state.known = known;
        state.capacity = capacity;
        state.count = count;
    }
    *known_place(state.known, state.capacity, key) = key;
    state.count++;
}

/* ---- modules ------------------------------------------------------------- */

static bool scan_has_room(scanning *s, size_t more)
{
    size_t capacity;
    char *found;

    if (s->found_capacity - s->found_size >= more)
        return true;
    capacity = s->found_capacity ? s->found_capacity : FIRST_NAMES;
    while (capacity - s->found_size < more)
        capacity *= 2;
    found = vst__os_pages(capacity);
    if (found == NULL)
        return false;
    if (s->found != NULL) {
        memcpy(found, s->found, s->found_size);
        vst__os_unmap(s->found, s->found_capacity);
    }
    s->found = found;
    s->found_capacity = capacity;
    return true;
}

/* The list does not have the program's own name. */
static void note_module(scanning *s, const vst__object *object)
{
    char program[4096], *at;
    const char *path = object->name;
    found_module module;
    size_t size;

    if (!*path) {
        ssize_t length =
            readlink("/proc/self/exe", program, sizeof program - 1);
        program[length > 0 ? length : 0] = '\0';
        path = program;
    }
    module = (found_module){
        .bias = object->bias,
        .start = object->start,
        .end = object->end,
        .path_size = strlen(path) + 1,
        .build_id_len =
            object->build_id_len <= BUILD_ID_MAX ? object->build_id_len : 0,
    };
    size = sizeof module + module.path_size + module.build_id_len;
    size = (size + 7) & ~(size_t)7;
    if (!scan_has_room(s, size))
        return;
    at = s->found + s->found_size;
    memcpy(at, &module, sizeof module);
    memcpy(at + sizeof module, path, module.path_size);
    if (module.build_id_len)
        memcpy(at + sizeof module + module.path_size, object->build_id,
               module.build_id_len);
    s->found_size += size;
}

static void scan_define_modules(scanning *s)
{
    for (size_t i = 0; i < s->found_size && state.recording != NULL;) {
        found_module found;
        const char *path;
        vst_module module;
        memcpy(&found, s->found + i, sizeof found);
        path = s->found + i + sizeof found;
        module = (vst_module){
            .path = path,
            .bias = found.bias,
            .start = found.start,
            .end = found.end,
            .build_id = found.build_id_len
                            ? (const uint8_t *)path + found.path_size
                            : NULL,
            .build_id_len = found.build_id_len,
        };
        vst__recording_define_module(state.recording, &module);
        i += (sizeof found + found.path_size + found.build_id_len + 7) &
             ~(size_t)7;
    }
    if (s->found != NULL)
        vst__os_unmap(s->found, s->found_capacity);
}

/* ---- scans --------------------------------------------------------------- */

/* Call for the first object of a scan. Returns false if nothing was loaded
 * since the last scan. */
static bool scan_begin(scanning *s, const struct dl_phdr_info *info)
{
    pthread_mutex_lock(&scan_lock);
    s->is_begun = true;
    if (s->takes_out)
        return true;
    if (state.adds == info->dlpi_adds && state.subs == info->dlpi_subs &&
        !state.looks_again)
        return false;
    if (state.subs != info->dlpi_subs)
        forget_known();
    state.adds = info->dlpi_adds;
    state.subs = info->dlpi_subs;
    state.looks_again = false;
    s->hooks = state.hooks;
    s->hook_count = state.hook_count;
    return true;
}

static bool scan_patch(scanning *s, const vst__object *object)
{
    vst__patching patching = {
        .hooks = s->hooks,
        .count = s->hook_count,
        .takes_out = s->takes_out,
        .protection = &s->protection,
    };
    bool done;

    if (!s->hook_count || vst__object_is_exempt(object, state.malloc_in_use))
        return true;
    if (!s->has_protection)
        s->has_protection = vst__protection_read(&s->protection);
    done = s->has_protection && vst__patch_object(object, &patching);
    s->counts.objects += done;
    s->counts.patched += patching.patched;
    s->counts.left_alone += patching.left_alone;
    return done;
}

static int scan_look_at(struct dl_phdr_info *info, size_t size, void *ctx)
{
    scanning *s = ctx;
    vst__object object;

    (void)size;
    if (!s->is_begun && !scan_begin(s, info))
        return 1;
    if (!s->takes_out && is_known(scan_key_of(info)))
        return 0;
    vst__object_read(info, &object);
    if (!scan_patch(s, &object)) {
        state.looks_again = true;
        return 0;
    }
    if (s->takes_out)
        return 0;
    make_known(scan_key_of(info));
    if (state.recording != NULL)
        note_module(s, &object);
    return 0;
}

static void go_over(scanning *s)
{
    dl_iterate_phdr(scan_look_at, s);
    if (s->is_begun) {
        state.counts.objects += s->counts.objects;
        state.counts.patched += s->counts.patched;
        state.counts.left_alone += s->counts.left_alone;
        pthread_mutex_unlock(&scan_lock);
    }
    if (s->has_protection)
        vst__protection_free(&s->protection);
    scan_define_modules(s);
}

void vst__scan_begin(const vst__hook *hooks, size_t count,
                     const void *malloc_in_use, vst_recording *recording)
{
    pthread_mutex_lock(&scan_lock);
    forget_known();
    state.hooks = hooks;
    state.hook_count = count;
    state.malloc_in_use = malloc_in_use;
    state.recording = recording;
    state.looks_again = true;
    state.counts = (vst__scan_counts){.objects = 0};
    pthread_mutex_unlock(&scan_lock);
}

void vst__scan(void)
{
    scanning s = {.takes_out = false};

    go_over(&s);
}

void vst__scan_end(const vst__hook *hooks, size_t count,
                   vst__scan_counts *counts)
{
    scanning s = {.takes_out = true, .hooks = hooks, .hook_count = count};

    *counts = state.counts;
    state.recording = NULL;
    go_over(&s);
}

void vst__scan_after_fork(void)
{
    pthread_mutex_init(&scan_lock, NULL);
    state.known = NULL;
    state.capacity = state.count = 0;
    state.looks_again = true;
    state.recording = NULL;
}
