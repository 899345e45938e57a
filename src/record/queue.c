/* The recording in progress: who records, under which ids, and how it starts
 * and stops. Nothing here is on the record path.
 *
 * One lock guards all of it, and the chunk providers too. It is never held
 * while foreign code runs, and fork() waits for it, so a child finds it free.
 *
 * Stopping. A tracer's stop() promises that none of its hooks will record any
 * more, so the chunks of threads that only such hooks write are taken away at
 * once. A thread that records on its own (vst_thread_enter_free) may be in the
 * middle of a store: its chunk stays mapped until it comes by again or ends. */
#include "record/queue.h"

#include <string.h>

#include "base/heap.h"
#include "os/os.h"

pthread_mutex_t vst__recorder_lock = PTHREAD_MUTEX_INITIALIZER;
VST_THREAD_LOCAL vst_memory_thread vst_memory_here VST_TLS_MODEL;
vst_queue *vst__recording;
uint64_t vst_recording_epoch;

/* Guarded by the lock. Even: that of a recording whose chunks are gone is one
 * more, and no other has it. */
static uint64_t last_epoch;
static uint32_t forks; /* that this process is away from its first */

/* Pairs with the relaxed load in vst_record: what was set up before (a queue,
 * its provider) is reached only through the lock, which the slow path takes. */
static void set_epoch(uint64_t epoch)
{
    __atomic_store_n(&vst_recording_epoch, epoch, __ATOMIC_RELEASE);
}

vst_status vst__queue_create(const vst_chunk_provider *provider,
                             vst_queue **out)
{
    vst_queue *queue = vst__calloc(1, sizeof *queue);

    if (!queue)
        return VST_E_NOMEM;
    queue->provider = provider;
    queue->forks = forks;
    queue->definitions = vst__intern_create();
    if (!queue->definitions) {
        vst__free(queue);
        return VST_E_NOMEM;
    }
    *out = queue;
    return VST_OK;
}

void vst__queue_destroy(vst_queue *queue)
{
    if (!queue)
        return;
    vst__queue_stop(queue);
    while (queue->threads) {
        vst__thread *thread = queue->threads;
        queue->threads = thread->next;
        vst__fold_free(&thread->fold);
        vst__free(thread);
    }
    vst__intern_destroy(queue->definitions);
    vst__stacks_free(&queue->stacks);
    vst__free(queue->key);
    vst__free(queue);
}

/* ---- fork -------------------------------------------------------------- */

VST_THREAD_LOCAL bool vst__is_forking VST_TLS_MODEL;

static void before_fork(void)
{
    vst__recorder_take();
    vst__is_forking = true;
    /* In the child other handlers may allocate before ours has let go. */
    vst__writer *writer = (vst__writer *)vst_thread_buffer;
    if (writer->memory_epoch != VST_EPOCH_NONE)
        writer->memory_epoch = VST_EPOCH_NONE;
}

static void after_fork_in_parent(void)
{
    vst__is_forking = false;
    vst__recorder_give();
}

/* The child has a copy of every buffer, all of them on the parent's file. It
 * lets go of them before any hook can fire, and records nothing; queues of
 * before take nothing any more. */
static void after_fork_in_child(void)
{
    vst__is_forking = false;
    forks++;
    set_epoch(0);
    if (vst__recording) {
        vst_queue *queue = vst__recording;
        while (queue->writers)
            vst__writer_abandon(queue->writers);
        vst__spares_abandon(queue);
        vst__recording = NULL;
    }
    vst__recorder_give();
}

__attribute__((constructor)) static void watch_forks(void)
{
    vst__os_fork_hooks(before_fork, after_fork_in_parent, after_fork_in_child);
}

bool vst__queue_is_ours(const vst_queue *queue)
{
    return queue->forks == forks;
}

/* ---- start and stop ---------------------------------------------------- */

vst_status vst__queue_start(vst_queue *queue)
{
    vst_status status = VST_OK;

    vst__recorder_take();
    if (!vst__queue_is_ours(queue)) {
        status = VST_E_STATE;
    } else if (vst__recording) {
        status = VST_E_BUSY;
    } else {
        vst__recording = queue;
        for (vst__thread *t = queue->threads; t; t = t->next) {
            vst__fold_reset(&t->fold);
            t->runs = t->words = t->place = 0;
            t->writes = t->gone = false;
        }
        set_epoch(last_epoch += 2);
    }
    vst__recorder_give();
    return status;
}

void vst__queue_stop(vst_queue *queue)
{
    vst__recorder_take();
    if (vst__recording == queue) {
        set_epoch(0);
        vst__recording = NULL;
        for (vst__writer *w = queue->writers, *next; w; w = next) {
            next = w->next;
            /* The thread that stops is not in the middle of a store. */
            if (w->free_running && &w->hot != vst_thread_buffer)
                continue;
            vst__writer_detach(w, false);
        }
        /* What is left belongs to free-running threads: each lets go of its
         * own chunk when it comes by. */
        while (queue->writers) {
            vst__writer *w = queue->writers;
            vst__writer_tell_left_out(w);
            queue->lost += __atomic_exchange_n(&w->lost, 0, __ATOMIC_RELAXED);
            queue->writers = w->next;
            w->queue = NULL;
            w->thread = NULL;
        }
        vst__spares_seal(queue);
        if (queue->lost)
            queue->provider->lost(queue->provider->ctx, queue->lost);
    }
    vst__recorder_give();
}

bool vst__queue_is_recording(void)
{
    return __atomic_load_n(&vst_recording_epoch, __ATOMIC_RELAXED) != 0;
}

uint64_t vst__queue_lost(vst_queue *queue)
{
    vst__recorder_take();
    uint64_t lost = queue->lost;
    for (vst__writer *w = queue->writers; w; w = w->next)
        lost += __atomic_load_n(&w->lost, __ATOMIC_RELAXED);
    vst__recorder_give();
    return lost;
}

/* ---- attention --------------------------------------------------------- */

void vst_queue_set_attention(vst_queue *queue, void (*fn)(void *ctx), void *ctx)
{
    vst__recorder_take();
    queue->attention = fn;
    queue->attention_ctx = ctx;
    vst__recorder_give();
}

void vst_queue_request_attention(vst_queue *queue)
{
    vst__recorder_take();
    if (vst__recording == queue)
        set_epoch(last_epoch += 2);
    vst__recorder_give();
}

/* The lock's holders store the epoch without a look at what it was; a recording
 * that they end meanwhile stays ended. A thread that gets ready looks at it
 * before it looks whether its chunk is gone, so it does not miss this. */
void vst__queue_chunks_are_gone(void)
{
    uint64_t epoch = __atomic_load_n(&vst_recording_epoch, __ATOMIC_RELAXED);

    while (epoch != 0 && epoch % 2 == 0 &&
           !__atomic_compare_exchange_n(&vst_recording_epoch, &epoch, epoch + 1,
                                        false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

/* ---- definitions ------------------------------------------------------- */

/* The bytes that make two definitions equal. */
static size_t key_of(vst_queue *queue, const vst_definition *d)
{
    size_t size = 12 + (size_t)d->name_len + d->file_len;

    if (size > queue->key_size) {
        char *key = vst__realloc(queue->key, size);
        if (!key)
            return 0;
        queue->key = key;
        queue->key_size = size;
    }
    uint32_t head[3] = {(uint32_t)d->kind, (uint32_t)d->line, d->name_len};
    memcpy(queue->key, head, 12);
    memcpy(queue->key + 12, d->name, d->name_len);
    if (d->file_len)
        memcpy(queue->key + 12 + d->name_len, d->file, d->file_len);
    return size;
}

static vst_status define_new(vst_queue *queue, const vst_definition *d,
                             size_t key_size, vst_id *id)
{
    const vst_chunk_provider *provider = queue->provider;

    if (queue->last_id == VST_ID_MAX)
        return VST_E_NO_IDS;
    vst_entry entry = {
        .kind = (uint16_t)d->kind,
        .id = queue->last_id + 1,
        .line = d->line,
        .a = d->name,
        .a_len = d->name_len,
        .b = d->file,
        .b_len = d->file_len,
        .x = d->file_skip,
    };
    vst_status status = provider->define(provider->ctx, &entry);
    if (status == VST_OK)
        status =
            vst__intern_add(queue->definitions, queue->key, key_size, entry.id);
    if (status == VST_OK)
        *id = queue->last_id = entry.id;
    return status;
}

vst_status vst__queue_define(vst_queue *queue, const vst_definition *definition,
                             vst_id *id)
{
    vst_status status = VST_OK;

    *id = 0;
    size_t key_size = key_of(queue, definition);
    if (!vst__queue_is_ours(queue))
        status = VST_E_STATE;
    else if (!key_size)
        status = VST_E_NOMEM;
    else
        *id = vst__intern_find(queue->definitions, queue->key, key_size);
    if (status == VST_OK && *id == 0)
        status = define_new(queue, definition, key_size, id);
    if (status != VST_OK && vst__queue_is_ours(queue))
        queue->lost++;
    return status;
}

vst_status vst_queue_define(vst_queue *queue, const vst_definition *definition,
                            vst_id *id)
{
    vst__recorder_take();
    vst_status status = vst__queue_define(queue, definition, id);
    vst__recorder_give();
    return status;
}

typedef struct files {
    void (*fn)(void *ctx, vst_id id, const char *file, uint32_t length);
    void *ctx;
} files;

/* A key is what key_of() makes. */
static void pass_file(void *ctx, const void *key, size_t size, uint32_t id)
{
    const files *self = ctx;
    uint32_t head[3];

    memcpy(head, key, sizeof head);
    size_t before = sizeof head + head[2];
    if (head[0] == VST_DEF_PYTHON && size > before)
        self->fn(self->ctx, id, (const char *)key + before,
                 (uint32_t)(size - before));
}

void vst_queue_each_file(vst_queue *queue,
                         void (*fn)(void *ctx, vst_id id, const char *file,
                                    uint32_t length),
                         void *ctx)
{
    files self = {fn, ctx};

    vst__recorder_take();
    if (vst__queue_is_ours(queue))
        vst__intern_each(queue->definitions, pass_file, &self);
    vst__recorder_give();
}

vst_status vst_queue_set_metadata(vst_queue *queue, const char *key,
                                  const char *json)
{
    vst_entry entry = {
        .kind = VST_ENTRY_METADATA,
        .a = key,
        .a_len = strlen(key),
        .b = json,
        .b_len = strlen(json),
    };

    vst__recorder_take();
    vst_status status = VST_E_STATE;
    if (vst__queue_is_ours(queue))
        status = queue->provider->define(queue->provider->ctx, &entry);
    vst__recorder_give();
    return status;
}

/* ---- threads ----------------------------------------------------------- */

vst__thread *vst__queue_thread(vst_queue *queue, uint64_t handle)
{
    vst__thread *thread = queue->threads;

    while (thread && thread->handle != handle)
        thread = thread->next;
    if (thread)
        return thread;
    thread = vst__calloc(1, sizeof *thread);
    if (!thread)
        return NULL;
    thread->handle = handle;
    thread->number = ++queue->last_thread;
    thread->next = queue->threads;
    queue->threads = thread;
    return thread;
}

void vst__queue_forget_thread(vst_queue *queue, uint64_t handle)
{
    vst__thread **link = &queue->threads;

    while (*link && (*link)->handle != handle)
        link = &(*link)->next;
    if (*link) {
        vst__thread *thread = *link;
        *link = thread->next;
        vst__fold_free(&thread->fold);
        vst__free(thread);
    }
}

void vst__queue_define_thread(vst_queue *queue, const vst__thread *thread,
                              const char *name, size_t name_len)
{
    vst_entry entry = {
        .kind = VST_ENTRY_THREAD,
        .id = thread->number,
        .a = name,
        .a_len = name_len,
        .x = thread->system_tid,
        .y = thread->left_out,
    };

    queue->provider->define(queue->provider->ctx, &entry);
}

void vst_queue_name_thread(vst_queue *queue, uint64_t handle,
                           uint64_t system_tid, const char *name,
                           size_t name_len)
{
    vst__recorder_take();
    for (vst__thread *t = queue->threads; t && vst__queue_is_ours(queue);
         t = t->next) {
        if (t->handle == handle) {
            if (system_tid)
                t->system_tid = system_tid;
            vst__queue_define_thread(queue, t, name, name_len);
            break;
        }
    }
    vst__recorder_give();
}

/* Written into a chunk that then waits for the next thread to use it, this one
 * or another. */
void vst_queue_open_stack(vst_queue *queue, uint64_t handle,
                          uint64_t system_tid, const vst_id *ids, size_t count)
{
    vst__writer writer = {.hot = VST_BUFFER_NONE};

    vst__recorder_take();
    vst__thread *thread =
        vst__queue_is_ours(queue) ? vst__queue_thread(queue, handle) : NULL;
    if (thread) {
        thread->system_tid = system_tid;
        vst__queue_define_thread(queue, thread, "", 0);
    }
    if (thread && count && vst__recording == queue) {
        writer.number = thread->number;
        writer.thread = thread;
        vst__writer_attach(&writer, queue);
        vst__writer_stack(&writer, ids, count);
        vst__writer_detach(&writer, true);
    } else if (count && vst__recording == queue) {
        queue->lost++;
    }
    vst__recorder_give();
}
