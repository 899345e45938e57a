/* Records the calls that threads are in when a recording begins, or that a
 * thread is in when its hooks come back; and gives threads their scope. Any
 * thread. */
#include <string.h>

#include "base/heap.h"
#include "record/recording.h"
#include "record/switches.h"

/* ---- scopes -------------------------------------------------------------- */

/* Defines an id in the scope. key_of() in recording.c makes the keys. */
static void define_again(void *ctx, const void *key, size_t size, uint32_t id)
{
    uint32_t kind;

    (void)ctx;
    if (size < sizeof kind)
        return;
    memcpy(&kind, key, sizeof kind);
    vst__scope_id_define(id, kind);
}

/* Another recording may have used the ids meanwhile. */
void vst__recording_begin_scopes(vst_recording *recording)
{
    if (!vst__scope_is_wanted(&recording->scope))
        return;
    vst__scope_ids_clear();
    vst__intern_each(recording->definitions, define_again, NULL);
    for (vst__thread *t = recording->threads; t != NULL; t = t->next) {
        vst__scope_free(t->scope);
        t->scope = NULL;
    }
}

bool vst__writer_begin_scope(vst__writer *writer, vst_recording *recording,
                             vst__thread *thread)
{
    if (thread->scope == NULL)
        return vst__scope_begin(&writer->scope, &recording->scope);
    vst__scope_free(writer->scope);
    writer->scope = thread->scope;
    thread->scope = NULL;
    return true;
}

void vst_recording_record_inside(vst_recording *recording, vst_id id)
{
    vst__recorder_take();
    if (vst__recording_is_ours(recording) && recording->scope.only)
        vst__scope_id_want(id);
    vst__recorder_give();
}

/* ---- open calls ---------------------------------------------------------- */

/* Records those of the calls that the scope accepts; none if there is no memory
 * for the list. With the lock held. */
static void record_stack(vst__writer *writer, vst__scope *scope,
                         const vst_id *ids, size_t count, bool at_start)
{
    vst_id *own = NULL;

    if (scope != NULL && count != 0) {
        own = vst__alloc(count * sizeof *own);
        if (own == NULL) {
            vst__writer_count_lost(writer);
            return;
        }
        memcpy(own, ids, count * sizeof *own);
    }
    if (scope != NULL)
        count = vst__scope_list(scope, own, count, at_start);
    if (count != 0 || !at_start)
        vst__writer_stack(writer, own != NULL ? own : ids, count);
    vst__free(own);
}

void vst__record_open_calls(vst__writer *writer, const vst_id *ids,
                            size_t count)
{
    record_stack(writer, writer->scope, ids, count, false);
}

/* Writes the calls into a chunk, which then waits for the next thread that
 * needs a chunk. */
static void open_calls_announce(vst_recording *recording, vst__thread *thread,
                                const vst_id *ids, size_t count)
{
    vst__writer writer = {
        .hot = VST_BUFFER_NONE, .number = thread->number, .thread = thread};

    if (!vst__scope_begin(&thread->scope, &recording->scope)) {
        recording->lost++;
        return;
    }
    vst__writer_attach(&writer, recording);
    record_stack(&writer, thread->scope, ids, count, true);
    vst__writer_detach(&writer, true);
}

void vst_recording_open_stack(vst_recording *recording, uint64_t handle,
                              uint64_t system_tid, const vst_id *ids,
                              size_t count)
{
    vst__thread *thread;

    vst__recorder_take();
    thread = vst__recording_is_ours(recording)
                 ? vst__recording_thread(recording, handle, system_tid)
                 : NULL;
    if (thread != NULL) {
        thread->system_tid = system_tid;
        vst__recording_define_thread(recording, thread, "", 0);
    }
    if (thread != NULL && vst__recording_now == recording)
        vst__switches_watch(recording, thread);
    if (thread != NULL && count && vst__recording_now == recording)
        open_calls_announce(recording, thread, ids, count);
    else if (count && vst__recording_now == recording)
        recording->lost++;
    vst__recorder_give();
}
