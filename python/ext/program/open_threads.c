/* Records the calls that all threads are in when a recording begins, on builds
 * without the GIL. There other threads run while we read their stacks. So the
 * world is stopped, all threads are read at one moment, and the recording goes
 * live at that moment. All functions need ids by then, and no id can be given
 * while the world is stopped. So functions without an id are noted, the world
 * goes on, the functions get their ids, and we look again until every function
 * has one. */
#include "program/program.h"

#include "base/own_code.h"
#include "calls/ids.h"
#include "record/language_lock.h"

#include <stdlib.h>

#if VPY_FREE_THREADED

/* Each look finds the functions that were called since the previous look. */
enum { LOOKS_MAX = 100 };

/* A function that was seen. The reference keeps its address. */
typedef struct seen_code {
    PyObject *code;
    bool is_launcher;
} seen_code;

typedef struct looker {
    vpy_tracer *tracer;
    seen_code
        *seen; /* first functions that have a value, then those of this look */
    size_t count, capacity;
    vst_id *ids; /* of one thread's open calls */
    size_t ids_count, ids_capacity;
    bool is_short; /* memory ran out: open calls are not recorded */
} looker;

static void *open_threads_grow(void *array, size_t *capacity, size_t size)
{
    size_t wanted = *capacity != 0 ? *capacity * 2 : 128;
    void *grown = realloc(array, wanted * size);

    if (grown != NULL)
        *capacity = wanted;
    return grown;
}

static seen_code *find_seen(looker *self, const PyObject *code)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->seen[i].code == code)
            return &self->seen[i];
    return NULL;
}

static void note_code(looker *self, PyObject *code)
{
    if (find_seen(self, code) != NULL)
        return;
    if (self->count == self->capacity) {
        seen_code *grown =
            open_threads_grow(self->seen, &self->capacity, sizeof *self->seen);
        self->is_short |= grown == NULL;
        if (grown == NULL)
            return;
        self->seen = grown;
    }
    self->seen[self->count++] = (seen_code){Py_NewRef(code), false};
}

static void note_id(looker *self, vst_id id)
{
    if (self->ids_count == self->ids_capacity) {
        vst_id *grown = open_threads_grow(self->ids, &self->ids_capacity,
                                          sizeof *self->ids);
        self->is_short |= grown == NULL;
        if (grown == NULL)
            return;
        self->ids = grown;
    }
    self->ids[self->ids_count++] = id;
}

/* Reads a thread's frames, from the innermost to the program's first call.
 * Returns false if a function has no value yet. Call with the world stopped. */
static bool read_stack(looker *self, PyThreadState *tstate)
{
    const vpy_iframe *frame = vpy_iframe_innermost(tstate);
    bool is_complete = true;
    uint32_t value;

    self->ids_count = 0;
    for (; frame != NULL; frame = vpy_iframe_back(frame)) {
        PyObject *code;
        if (vpy_iframe_is_shim(frame) ||
            vpy_iframe_is_incomplete(frame, vpy_iframe_instruction(frame)))
            continue;
        code = (PyObject *)vpy_iframe_code(frame);
        if (!vpy_code_find_ahead(code, &value)) {
            note_code(self, code);
            is_complete = false;
        } else if (VPY_ID(value) != 0) {
            note_id(self, VPY_ID(value));
        } else {
            const seen_code *seen = find_seen(self, code);
            if (seen != NULL && seen->is_launcher)
                break;
        }
    }
    return is_complete;
}

/* Reverses the ids: the recorder wants the outermost call first. */
static void open_threads_reverse(vst_id *ids, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++) {
        vst_id id = ids[i];
        ids[i] = ids[--count];
        ids[count] = id;
    }
}

static PyThreadState *first_thread(void)
{
    return PyInterpreterState_ThreadHead(PyInterpreterState_Get());
}

/* Skips a thread that was made but has not started yet: it has no stack, and
 * may be changing its handle right now, before Python knows the thread. */
static void open_threads_announce(looker *self, PyThreadState *tstate)
{
    bool is_own = tstate == PyThreadState_Get();
    uint64_t handle;

    read_stack(self, tstate);
    if (is_own ? vpy_thread_is_ours : self->ids_count == 0)
        return;
    handle = is_own ? vst_thread_handle() : tstate->thread_id;
    open_threads_reverse(self->ids, self->ids_count);
    vst_recording_open_stack(self->tracer->recording, handle,
                             is_own ? (uint64_t)vpy_thread_id()
                                    : tstate->native_thread_id,
                             self->ids, self->ids_count);
    vst__recording_key_thread(self->tracer->recording, handle,
                              (uintptr_t)tstate);
}

/* Returns whether the recording went live; if not, some functions have no
 * value. */
static bool open_threads_try_to_go_live(looker *self, bool is_last)
{
    bool is_complete = true;

    vpy_world_stop();
    for (PyThreadState *t = first_thread(); t != NULL;
         t = PyThreadState_Next(t))
        is_complete &= read_stack(self, t);
    if (is_complete || is_last || self->is_short) {
        for (PyThreadState *t = first_thread(); t != NULL;
             t = PyThreadState_Next(t))
            open_threads_announce(self, t);
        vpy_code_ids_go_live();
        is_complete = true;
    }
    vpy_world_start();
    return is_complete;
}

void vpy_threads_announce_in_stopped_world(vpy_tracer *tracer)
{
    looker self = {.tracer = tracer};
    size_t defined = 0;

    for (int looks = 1; !open_threads_try_to_go_live(&self, looks == LOOKS_MAX);
         looks++)
        for (; defined < self.count; defined++) {
            seen_code *seen = &self.seen[defined];
            vpy_code_define_ahead(seen->code);
            seen->is_launcher = vpy_code_is_launcher(seen->code);
        }
    for (size_t i = 0; i < self.count; i++)
        Py_DECREF(self.seen[i].code);
    free(self.seen);
    free(self.ids);
    vpy_threads_name_all();
    PyErr_Clear();
}

#else

void vpy_threads_announce_in_stopped_world(vpy_tracer *tracer)
{
    vpy_threads_announce(tracer);
}

#endif
