/* What a call through a thunk does, and when there are thunks: from start to
 * stop, and in what is imported meanwhile.
 *
 * All of it runs with the GIL but the beginning of vpy_thunk_call: interpreters
 * with a GIL of their own share static types, and are let through. */
#include "thunks.h"
#include "frame_hook.h"

#include <stdio.h>

static uint32_t recording; /* its number, 0: none */
static uint32_t recordings;
static PyInterpreterState *interpreter;

/* ---- a call ------------------------------------------------------------ */

typedef PyObject *(*five_words)(PyObject *, PyObject *, PyObject *, PyObject *,
                                PyObject *);

typedef struct words {
    PyObject *a, *b, *c, *d, *e;
} words;

static inline uint32_t current_recording(void)
{
    return __atomic_load_n(&recording, __ATOMIC_RELAXED);
}

static inline PyObject *forward(const vpy_thunk_slot *s, words w)
{
    return ((five_words)(void (*)(void))s->original)(w.a, w.b, w.c, w.d, w.e);
}

/* Frames in which no Python runs, or none yet, are passed over. */
static VST_COLD bool find_caller(const vpy_iframe *frame)
{
    while (frame &&
           (vpy_iframe_is_shim(frame) ||
            vpy_iframe_is_incomplete(frame, vpy_iframe_instruction(frame))))
        frame = vpy_iframe_back(frame);
    return frame && vpy_caller_is_recorded((PyObject *)vpy_iframe_code(frame));
}

static inline bool caller_is_recorded(PyThreadState *tstate)
{
    const vpy_iframe *frame = vpy_iframe_innermost(tstate);

    if (VST_LIKELY(frame &&
                   (PyObject *)vpy_iframe_code(frame) == vpy_last_caller))
        return true;
    return find_caller(frame);
}

/* A call that is being recorded; 0: it has ended. */
typedef struct span {
    uint32_t recording;
    vst_id id;
} span;

/* Left by a C++ exception, or because the thread is ended: then it may not have
 * the GIL. */
static inline void leave(span *s)
{
    if (!VST_LIKELY(s->recording == 0) && vpy_holds_gil() &&
        recording == s->recording)
        vst_record_end_of_call(VST_RAISE, s->id);
}

static inline PyObject *record(const vpy_thunk_slot *s, words w, uint32_t in,
                               vst_id id)
{
    __attribute__((cleanup(leave))) span open = {in, id};
    PyObject *result;

    vst_record(VST_ENTER, id);
    result = forward(s, w);
    open.recording = 0;
    if (VST_LIKELY(recording == in))
        vst_record_end_of_call(result ? VST_EXIT : VST_RAISE, id);
    return result;
}

static VST_COLD vst_id id_by_class(uint32_t number, PyObject *self,
                                   bool *by_class)
{
    vpy_thunk_slot *s = &vpy_thunk_slots[number];
    PyObject *type, *value, *traceback;
    vst_id id;

    PyErr_Fetch(&type, &value, &traceback);
    id = vpy_native_id_of(vpy_thunk_abouts[number].method, self, by_class);
    s->owner = Py_TYPE(self);
    s->version = s->owner->tp_version_tag;
    if (s->version == 0)
        s->owner = NULL;
    PyErr_Restore(type, value, traceback);
    return id;
}

static VST_COLD uint64_t define(uint32_t number, PyObject *self)
{
    const vpy_thunk_about *k = &vpy_thunk_abouts[number];
    uint32_t is = k->is;
    bool by_class = false;
    vst_id id;

    if (k->owner == VPY_OF_SELF && self) {
        id = id_by_class(number, self, &by_class);
    } else {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        id = vpy_native_define(k->method->ml_name, k->where,
                               k->owner == VPY_OF_TYPE);
        PyErr_Restore(type, value, traceback);
    }
    if (by_class)
        is = VPY_THUNK_BY_CLASS;
    vpy_thunk_slots[number].value = (uint64_t)recording << 32 | is | id;
    return vpy_thunk_slots[number].value;
}

/* The id where the definition alone does not say it; 0: it is not recorded. */
static inline vst_id other_id(uint32_t number, PyThreadState *tstate,
                              PyObject *self, uint64_t value)
{
    vpy_thunk_slot *s = &vpy_thunk_slots[number];
    vst_id id = (vst_id)value & VST_ID_MAX;
    bool by_class;

    if (VPY_THUNK_IS(value) == VPY_THUNK_BY_CLASS && self) {
        if (VST_LIKELY(Py_TYPE(self) == s->owner &&
                       s->owner->tp_version_tag == s->version))
            return id;
        id = id_by_class(number, self, &by_class);
        s->value = (value & ~(uint64_t)VST_ID_MAX) | id;
#if VPY_HAS_CACHED_CALLABLES
    } else if (VPY_THUNK_IS(value) == VPY_THUNK_CACHED) {
        const vpy_iframe *frame = vpy_iframe_innermost(tstate);
        uintptr_t place = vpy_iframe_place(frame);
        if (!VST_LIKELY(*vpy_cached_call(place) == place))
            vpy_cached_call_note(frame, place);
#endif
    }
    (void)tstate;
    return id;
}

static void after_import(PyObject *module);

/* Its caller may be left out, what it brings is not. */
static VST_COLD PyObject *call_import(uint32_t number, words w, uint32_t in,
                                      vst_id id)
{
    const vpy_thunk_slot *s = &vpy_thunk_slots[number];
    bool has_argument = vpy_thunk_abouts[number].method->ml_flags & METH_O;
    PyObject *result = id ? record(s, w, in, id) : forward(s, w);

    /* One makes the module (or what an extension calls so), another fills it:
     * its only argument. Of others the second word is no object. */
    if (result && recording == in)
        after_import(!PyModule_Check(result) && has_argument ? w.b : result);
    return result;
}

/* A call of a function that has no id yet, or while nothing is recorded. */
static __attribute__((noinline)) PyObject *call_other(uint32_t number, words w)
{
    const vpy_thunk_slot *s = &vpy_thunk_slots[number];
    PyThreadState *tstate = vpy_thread_state();
    uint32_t in = current_recording();
    bool imports = vpy_thunk_abouts[number].is == VPY_THUNK_IMPORTS;
    uint64_t value;
    bool wanted;
    vst_id id;

    if (in == 0 || !tstate || tstate->interp != interpreter || tstate->tracing)
        return forward(s, w);
    wanted = vpy_frames_settle(tstate) && caller_is_recorded(tstate);
    if (!wanted && !imports)
        return forward(s, w);
    value = s->value >> 32 == in ? s->value : define(number, w.a);
    id = wanted ? other_id(number, tstate, w.a, value) : 0;
    if (imports)
        return call_import(number, w, in, id);
    return id ? record(s, w, in, id) : forward(s, w);
}

__attribute__((used)) PyObject *vpy_thunk_call(PyObject *a, PyObject *b,
                                               PyObject *c, PyObject *d,
                                               PyObject *e, uint32_t number)
{
    const vpy_thunk_slot *s = &vpy_thunk_slots[number];
    uint64_t value = __atomic_load_n(&s->value, __ATOMIC_RELAXED);
    uint32_t in = current_recording();
    words w = {a, b, c, d, e};
    vst_id id = (vst_id)value;
    PyThreadState *tstate;

    if (!VST_LIKELY(value >> 32 == in) ||
        VPY_THUNK_IS(value) == VPY_THUNK_IMPORTS)
        return call_other(number, w);
    tstate = vpy_thread_state();
    if (!VST_LIKELY(tstate && tstate->interp == interpreter &&
                    tstate->tracing == 0))
        return forward(s, w);
    if (!VST_LIKELY(vpy_frames_settle(tstate) && caller_is_recorded(tstate)))
        return forward(s, w);
    if (!VST_LIKELY(id - 1 < VST_ID_MAX)) {
        id = other_id(number, tstate, a, value);
        if (id == 0)
            return forward(s, w);
    }
    return record(s, w, in, id);
}

/* ---- what is imported while recording ---------------------------------- */

static bool pending; /* there may be definitions that were not found yet */
static vst_ticks walk_ended, walk_cost;

static void walk(void)
{
    vst_ticks before = vst_clock_ticks();
    int collects = PyGC_Disable();

    pending = false;
    vpy_table_memory_forget();
    vpy_find_methods(vpy_thunks_put);
    if (collects)
        PyGC_Enable();
    walk_ended = vst_clock_ticks();
    walk_cost = walk_ended - before;
}

/* Looking everywhere takes at most a sixteenth of the time. */
void vpy_thunks_look(void)
{
    size_t before = vpy_thunks_counts()->covered;

    if (!pending || !recording ||
        vst_clock_ticks() - walk_ended < 16 * walk_cost)
        return;
    walk();
    pending = vpy_thunks_counts()->covered != before;
}

static void after_import(PyObject *module)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    pending = true;
    vpy_table_memory_forget();
    vpy_find_methods_of(module, vpy_thunks_put);
    vpy_thunks_look();
    PyErr_Restore(type, value, traceback);
}

/* ---- start and stop ---------------------------------------------------- */

bool vpy_thunks_start(vpy_tracer *tracer)
{
    (void)tracer;
    recordings += recordings + 1 ? 1 : 2; /* never 0 */
    if (VPY_THUNKS == 0 || !vpy_thunks_count_for(recordings)) {
        snprintf(vpy_tracer_message, sizeof vpy_tracer_message, "%s",
                 VPY_THUNKS ? "no memory for the C functions"
                            : "no thunks for this processor");
        return false;
    }
    interpreter = PyThreadState_Get()->interp;
    vpy_function_identity_keep();
    walk();
    vpy_cached_callables_hide();
    __atomic_store_n(&recording, recordings, __ATOMIC_RELAXED);
    return true;
}

void vpy_thunks_stop(void)
{
    __atomic_store_n(&recording, 0, __ATOMIC_RELAXED);
    vpy_thunks_restore();
    vpy_cached_callables_show();
    vpy_function_identity_release();
}

bool vpy_thunks_are_restored(void)
{
    return vpy_thunks_in_place() == 0 && !vpy_cached_callables_are_hidden();
}
