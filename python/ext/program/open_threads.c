/* The calls that all threads are in when a recording begins, on builds without
 * the GIL. There other threads run on while we look. So the world is stopped,
 * and all threads are seen at one moment, in which the recording goes live. A
 * function needs its id by then, and none can be given while the world is
 * stopped. So functions without one are noted, the world goes on, they get
 * their ids, and we look again until every function has one. */
#include "program/program.h"

#include "base/own_code.h"
#include "calls/ids.h"
#include "record/language_lock.h"

#include <stdlib.h>

#if VPY_FREE_THREADED

/* Each look finds what was called since the one before. */
enum { LOOKS_MAX = 100 };

/* A function that was seen, with a reference that keeps its address. */
typedef struct seen_code {
    PyObject *code;
    bool is_launcher;
} seen_code;

typedef struct looker {
    vpy_tracer *tracer;
    seen_code *seen; /* those that got a value, and then those of this look */
    size_t count, capacity;
    vst_id *ids; /* of one thread's calls */
    size_t ids_count, ids_capacity;
    bool is_short; /* of memory: what is open is not noted */
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

/* Goes through a thread's frames, innermost first, up to the program's first
 * call. False: a function has no value yet. With the world stopped. */
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

/* Outermost first, as the recorder wants it. */
static void turn_round(vst_id *ids, size_t count)
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

/* A thread that was made but did not start yet has no stack. It may be finding
 * out its handle right now, since it does that before it is Python's. */
static void open_threads_announce(looker *self, PyThreadState *tstate)
{
    bool is_own = tstate == PyThreadState_Get();
    uint64_t handle;

    read_stack(self, tstate);
    if (is_own ? vpy_thread_is_ours : self->ids_count == 0)
        return;
    handle = is_own ? vst_thread_handle() : tstate->thread_id;
    turn_round(self->ids, self->ids_count);
    vst_recording_open_stack(self->tracer->recording, handle,
                             is_own ? (uint64_t)vpy_thread_id()
                                    : tstate->native_thread_id,
                             self->ids, self->ids_count);
    vst__recording_key_thread(self->tracer->recording, handle,
                              (uintptr_t)tstate);
}

/* Whether the recording went live; else there are functions without a value. */
static bool open_threads_look(looker *self, bool is_last)
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

void vpy_threads_announce_at_once(vpy_tracer *tracer)
{
    looker self = {.tracer = tracer};
    size_t defined = 0;

    for (int looks = 1; !open_threads_look(&self, looks == LOOKS_MAX); looks++)
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

void vpy_threads_announce_at_once(vpy_tracer *tracer)
{
    vpy_threads_announce(tracer);
}

#endif
