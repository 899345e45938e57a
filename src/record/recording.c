/* The recording in progress: its threads, its ids, its start and its stop.
 * Nothing here is on the record path. One lock guards all of it, and the chunk
 * providers too. No foreign code runs while the lock is held, and fork() waits
 * for the lock, so a child finds it free.
 *
 * Stopping. A tracer's recording_stop() promises that none of its hooks records
 * any more, so the chunks of threads that only such hooks write are taken away
 * immediately. A free-running thread (vst_thread_enter_free) may be in the
 * middle of a store: its chunk stays mapped until the thread records again or
 * ends. */
#include "record/recording.h"

#include <string.h>

#include "base/at_fork.h"
#include "base/heap.h"
#include "os/os.h"
#include "record/lock_waits.h"
#include "record/switches.h"

VST_AT_FORK vst__recorder_mutex vst__recorder_lock = {
    PTHREAD_MUTEX_INITIALIZER};
VST_THREAD_LOCAL vst_memory_thread vst_memory_here VST_TLS_MODEL;
VST_AT_FORK vst_recording *vst__recording_now;
VST_READ_BY_HOOKS VST_OWN_LINE uint64_t vst_recording_epoch;

/* Guarded by the lock. Recordings have even epochs. If the chunks of a
 * recording are gone, its epoch becomes the next odd number, which no other
 * recording has (words: kept). */
static VST_AT_FORK uint64_t last_epoch;
static VST_AT_FORK uint32_t forks; /* how many forks lie between the first
                                    * process and this one */

/* Pairs with the relaxed load in vst_record. A hook reaches what was set up
 * before (a recording, its provider) only through the lock, which the slow path
 * takes. */
static void set_epoch(uint64_t epoch)
{
    __atomic_store_n(&vst_recording_epoch, epoch, __ATOMIC_RELEASE);
}

vst_status vst__recording_create(const vst_chunk_provider *provider,
                                 vst_recording **out)
{
    vst_recording *recording = vst__calloc(1, sizeof *recording);

    if (recording == NULL)
        return VST_E_NOMEM;
    recording->provider = provider;
    recording->forks = forks;
    recording->definitions = vst__intern_create();
    if (recording->definitions == NULL) {
        vst__free(recording);
        return VST_E_NOMEM;
    }
    *out = recording;
    return VST_OK;
}

void vst__recording_destroy(vst_recording *recording)
{
    if (recording == NULL)
        return;
    vst__recording_stop(recording);
    vst__recording_forget_leavers(recording);
    while (recording->threads != NULL) {
        vst__thread *thread = recording->threads;
        recording->threads = thread->next;
        vst__fold_free(&thread->fold);
        vst__scope_free(thread->scope);
        vst__free(thread);
    }
    vst__intern_destroy(recording->definitions);
    vst__stacks_free(&recording->stacks);
    vst__devices_free(&recording->devices);
    vst__free(recording->key);
    vst__free(recording);
}

/* ---- fork ---------------------------------------------------------------- */

VST_THREAD_LOCAL bool vst__is_forking VST_TLS_MODEL;

static void recording_before_fork(void)
{
    vst__writer *writer;

    vst__switches_rest();
    vst__recorder_take();
    vst__switches_before_fork();
    vst__is_forking = true;
    /* In the child, handlers that run before ours may allocate while our lock
     * is still held. */
    writer = (vst__writer *)vst_thread_buffer;
    if (writer->memory_epoch != VST_EPOCH_NONE)
        writer->memory_epoch = VST_EPOCH_NONE;
}

static void after_fork_in_parent(void)
{
    vst__is_forking = false;
    vst__switches_after_fork(false);
    vst__recorder_give();
}

/* The child has a copy of every buffer, all of them on the parent's file. It
 * drops them before any hook can run, and records nothing; recordings made
 * before the fork take no more records. */
static void recording_after_fork_in_child(void)
{
    vst__is_forking = false;
    forks++;
    set_epoch(0);
    if (vst__recording_now != NULL) {
        vst_recording *recording = vst__recording_now;
        vst__switches_forget(recording);
        while (recording->writers != NULL)
            vst__writer_abandon(recording->writers);
        vst__spares_abandon(recording);
        vst__recording_now = NULL;
    }
    vst__lock_waits_after_fork();
    vst__switches_after_fork(true);
    vst__recorder_give();
}

__attribute__((constructor)) static void watch_forks(void)
{
    vst__os_fork_hooks(recording_before_fork, after_fork_in_parent,
                       recording_after_fork_in_child);
}

bool vst__recording_is_ours(const vst_recording *recording)
{
    return recording->forks == forks;
}

/* ---- start and stop ------------------------------------------------------ */

vst_status vst__recording_start(vst_recording *recording)
{
    vst_status status = VST_OK;

    vst__recorder_take();
    if (!vst__recording_is_ours(recording)) {
        status = VST_E_STATE;
    } else if (vst__recording_now != NULL) {
        status = VST_E_BUSY;
    } else {
        vst__recording_now = recording;
        recording->has_gone = false;
        vst__thread_numbers_clear();
        vst__recording_begin_scopes(recording);
        for (vst__thread *t = recording->threads; t != NULL; t = t->next) {
            vst__fold_reset(&t->fold);
            t->runs = t->words = t->place = 0;
            t->writes = t->gone = false;
        }
        set_epoch(last_epoch += 2);
    }
    vst__recorder_give();
    return status;
}

/* Looks, before the stop, whether the recording has a helper thread and which
 * function holds its threads (or NULL). */
static bool look_before_stop(vst_recording *recording,
                             void (**hold)(bool begins))
{
    bool is_now;

    vst__recorder_take();
    is_now = vst__recording_now == recording;
    *hold = is_now ? recording->hold_threads : NULL;
    vst__recorder_give();
    return is_now && recording->switches.wanted;
}

static void recording_stop(vst_recording *recording)
{
    vst__recorder_take();
    if (vst__recording_now == recording) {
        vst_ticks now = vst_clock_ticks();

        vst__switches_stop(recording);
        set_epoch(0);
        vst__recording_now = NULL;
        for (vst__writer *w = recording->writers, *next; w != NULL; w = next) {
            next = w->next;
            /* The thread that stops the recording is not in the middle of a
             * store. */
            if (w->free_running && &w->hot != vst_thread_buffer)
                continue;
            vst__lock_waits_end(w, now);
            vst__writer_detach(w, false);
        }
        vst__recording_begin_leaving(recording);
        vst__spares_seal(recording);
        if (recording->lost)
            recording->provider->lost(recording->provider->ctx,
                                      recording->lost);
    }
    vst__recorder_give();
}

void vst__recording_stop(vst_recording *recording)
{
    void (*hold)(bool begins);

    if (look_before_stop(recording, &hold))
        vst__switches_rest();
    if (hold != NULL)
        hold(true);
    recording_stop(recording);
    if (hold != NULL)
        hold(false);
}

bool vst__recording_is_any(void)
{
    return __atomic_load_n(&vst_recording_epoch, __ATOMIC_RELAXED) != 0;
}

uint64_t vst__recording_lost(vst_recording *recording)
{
    uint64_t lost;

    vst__recorder_take();
    lost = recording->lost;
    for (vst__writer *w = recording->writers; w != NULL; w = w->next)
        lost += __atomic_load_n(&w->lost, __ATOMIC_RELAXED);
    vst__recorder_give();
    return lost;
}

/* ---- attention ----------------------------------------------------------- */

void vst__recording_set_attention(vst_recording *recording,
                                  void (*fn)(void *ctx), void *ctx)
{
    vst__recorder_take();
    recording->attention = fn;
    recording->attention_ctx = ctx;
    vst__recorder_give();
}

void vst__recording_set_hold(vst_recording *recording,
                             void (*hold)(bool begins))
{
    vst__recorder_take();
    recording->hold_threads = hold;
    vst__recorder_give();
}

void vst__recording_request_attention(vst_recording *recording)
{
    vst__recorder_take();
    if (vst__recording_now == recording)
        set_epoch(last_epoch += 2);
    vst__recorder_give();
}

/* Other functions store the epoch with the lock held, without reading it first;
 * a recording that they end meanwhile stays ended. A thread that gets ready
 * reads the epoch before it looks whether its chunk is gone, so it does not
 * miss this store: release pairs with the acquire of epoch_first (buffer.c). */
void vst__recording_chunks_are_gone(void)
{
    uint64_t epoch = __atomic_load_n(&vst_recording_epoch, __ATOMIC_RELAXED);

    while (epoch != 0 && epoch % 2 == 0 &&
           !__atomic_compare_exchange_n(&vst_recording_epoch, &epoch, epoch + 1,
                                        false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

/* ---- definitions --------------------------------------------------------- */

/* Writes the bytes that two equal definitions have in common. */
static size_t recording_key_of(vst_recording *recording,
                               const vst_definition *d)
{
    const uint32_t head[3] = {(uint32_t)d->kind, (uint32_t)d->line,
                              d->name_len};
    size_t size = sizeof head + (size_t)d->name_len + d->file_len;

    if (size > recording->key_size) {
        char *key = vst__realloc(recording->key, size);
        if (key == NULL)
            return 0;
        recording->key = key;
        recording->key_size = size;
    }
    memcpy(recording->key, head, sizeof head);
    memcpy(recording->key + sizeof head, d->name, d->name_len);
    if (d->file_len)
        memcpy(recording->key + sizeof head + d->name_len, d->file,
               d->file_len);
    return size;
}

static vst_status define_new(vst_recording *recording, const vst_definition *d,
                             size_t key_size, vst_id *id)
{
    const vst_chunk_provider *provider = recording->provider;
    vst_entry entry;
    vst_status status;

    if (recording->last_id == VST_ID_MAX)
        return VST_E_NO_IDS;
    entry = (vst_entry){
        .kind = (uint16_t)d->kind,
        .id = recording->last_id + 1,
        .line = d->line,
        .a = d->name,
        .a_len = d->name_len,
        .b = d->file,
        .b_len = d->file_len,
        .x = d->file_skip,
    };
    status = provider->define(provider->ctx, &entry);
    if (status == VST_OK)
        status = vst__intern_add(recording->definitions, recording->key,
                                 key_size, entry.id);
    if (status == VST_OK) {
        *id = recording->last_id = entry.id;
        if (vst__scope_is_wanted(&recording->scope))
            vst__scope_id_define(entry.id, entry.kind);
    }
    return status;
}

vst_status vst__recording_define(vst_recording *recording,
                                 const vst_definition *definition, vst_id *id)
{
    vst_status status = VST_OK;
    size_t key_size;

    *id = 0;
    key_size = recording_key_of(recording, definition);
    if (!vst__recording_is_ours(recording))
        status = VST_E_STATE;
    else if (!key_size)
        status = VST_E_NOMEM;
    else
        *id =
            vst__intern_find(recording->definitions, recording->key, key_size);
    if (status == VST_OK && *id == 0)
        status = define_new(recording, definition, key_size, id);
    if (status != VST_OK && vst__recording_is_ours(recording))
        recording->lost++;
    return status;
}

vst_status vst_recording_define_id(vst_recording *recording,
                                   const vst_definition *definition, vst_id *id)
{
    vst_status status;

    vst__recorder_take();
    status = vst__recording_define(recording, definition, id);
    vst__recorder_give();
    return status;
}

typedef struct files {
    void (*fn)(void *ctx, vst_id id, const char *file, uint32_t length);
    void *ctx;
} files;

/* The keys are made by recording_key_of(). */
static void pass_file(void *ctx, const void *key, size_t size, uint32_t id)
{
    const files *self = ctx;
    uint32_t head[3];
    size_t before;

    memcpy(head, key, sizeof head);
    before = sizeof head + head[2];
    if (head[0] == VST_DEF_PYTHON && size > before)
        self->fn(self->ctx, id, (const char *)key + before,
                 (uint32_t)(size - before));
}

void vst__recording_each_file(vst_recording *recording,
                              void (*fn)(void *ctx, vst_id id, const char *file,
                                         uint32_t length),
                              void *ctx)
{
    files self = {fn, ctx};

    vst__recorder_take();
    if (vst__recording_is_ours(recording))
        vst__intern_each(recording->definitions, pass_file, &self);
    vst__recorder_give();
}

vst_status vst_recording_set_metadata(vst_recording *recording, const char *key,
                                      const char *json)
{
    vst_entry entry = {
        .kind = VST_ENTRY_METADATA,
        .a = key,
        .a_len = strlen(key),
        .b = json,
        .b_len = strlen(json),
    };
    vst_status status;

    vst__recorder_take();
    status = VST_E_STATE;
    if (vst__recording_is_ours(recording))
        status = recording->provider->define(recording->provider->ctx, &entry);
    vst__recorder_give();
    return status;
}

/* ---- threads ------------------------------------------------------------- */

/* Returns whether the thread has ended. A thread that ended while nothing was
 * recorded is still in the list, and a later thread may have its handle. Only
 * the thread itself knows its system_tid for sure: other sources may give the
 * one from before a fork. */
static bool has_ended(const vst__thread *thread, uint64_t tid_now)
{
    return thread->own_tid && tid_now && thread->own_tid != tid_now &&
           !thread->writes;
}

vst__thread *vst__recording_thread(vst_recording *recording, uint64_t handle,
                                   uint64_t system_tid)
{
    vst__thread *thread = recording->threads;

    while (thread != NULL && thread->handle != handle)
        thread = thread->next;
    if (thread != NULL && !has_ended(thread, system_tid))
        return thread;
    if (thread != NULL)
        vst__recording_forget_thread(recording, handle);
    thread = vst__calloc(1, sizeof *thread);
    if (thread == NULL)
        return NULL;
    thread->handle = handle;
    thread->number = ++recording->last_thread;
    thread->next = recording->threads;
    recording->threads = thread;
    return thread;
}

void vst__recording_forget_thread(vst_recording *recording, uint64_t handle)
{
    vst__thread **link = &recording->threads;

    while (*link != NULL && (*link)->handle != handle)
        link = &(*link)->next;
    if (*link != NULL) {
        vst__thread *thread = *link;
        vst__switches_unwatch(recording, thread);
        vst__thread_numbers_remove(recording, thread->number);
        *link = thread->next;
        vst__fold_free(&thread->fold);
        vst__scope_free(thread->scope);
        vst__free(thread);
    }
}

void vst__recording_define_thread(vst_recording *recording,
                                  const vst__thread *thread, const char *name,
                                  size_t name_len)
{
    vst_entry entry = {
        .kind = VST_ENTRY_THREAD,
        .id = thread->number,
        .a = name,
        .a_len = name_len,
        .x = thread->system_tid,
        .y = thread->left_out,
    };

    recording->provider->define(recording->provider->ctx, &entry);
}

void vst_recording_name_thread(vst_recording *recording, uint64_t handle,
                               uint64_t system_tid, const char *name,
                               size_t name_len)
{
    vst__recorder_take();
    for (vst__thread *t = recording->threads;
         t != NULL && vst__recording_is_ours(recording); t = t->next) {
        if (t->handle == handle && !has_ended(t, system_tid)) {
            if (system_tid)
                t->system_tid = system_tid;
            vst__recording_define_thread(recording, t, name, name_len);
            break;
        }
    }
    vst__recorder_give();
}
