/* Records calls through thunks, starts and stops that, and gives thunks to
 * modules that are imported meanwhile. All of it runs with the GIL of the main
 * interpreter, except the beginning of vpy_thunk_call: interpreters with a GIL
 * of their own share static types, and vpy_thunk_call only forwards their
 * calls. */
#include "thunks/thunks.h"

#include "calls/ids.h"
#include "compat_py311.h"

#include <stdio.h>
#include <string.h>
#include <vestige/memory.h>

/* All zero at first, so that the file has no room for it, and a fork does not
 * copy entries of pages that only the file fills. */
struct vpy_thunks_state vpy_thunks;

static struct vpy_thunk_calls_state *const state = &vpy_thunks.calls;

/* ---- a call ------------------------------------------------------------ */

typedef PyObject *(*five_words)(PyObject *, PyObject *, PyObject *, PyObject *,
                                PyObject *);

typedef struct words {
    PyObject *a, *b, *c, *d, *e;
} words;

static inline uint64_t current_recording(void)
{
    return __atomic_load_n(&state->recording, __ATOMIC_RELAXED);
}

VST_INLINE PyObject *forward(const vpy_thunk_slot *s, words w)
{
    return ((five_words)(void (*)(void))s->original)(w.a, w.b, w.c, w.d, w.e);
}

/* Returns whether the caller is recorded. Skips frames that run no Python code,
 * or do not run it yet. */
static VST_NOINLINE VST_HOT bool find_caller(const vpy_iframe *frame)
{
    while (frame != NULL &&
           (vpy_iframe_is_shim(frame) ||
            vpy_iframe_is_incomplete(frame, vpy_iframe_instruction(frame))))
        frame = vpy_iframe_back(frame);
    return frame != NULL &&
           vpy_caller_is_recorded((PyObject *)vpy_iframe_code(frame));
}

VST_INLINE bool caller_is_recorded(PyThreadState *tstate)
{
    const vpy_iframe *frame = vpy_iframe_innermost(tstate);

    if (VST_LIKELY(
            frame != NULL && !vpy_iframe_is_shim(frame) &&
            vpy_caller_is_recorded_at_once((PyObject *)vpy_iframe_code(frame))))
        return true;
    return find_caller(frame);
}

/* A call in progress; recording 0: the call has ended. */
typedef struct span {
    uint64_t recording;
    vst_id id;
} span;

/* Runs when a C++ exception leaves the call, or when the thread is ended; a
 * thread that is ended may not have the GIL. */
static inline void thunks_leave(span *s)
{
    if (!VST_LIKELY(s->recording == 0) && vpy_holds_gil() &&
        state->recording == s->recording)
        vst_record_end_of_call(VST_RAISE, s->id);
}

static VST_COLD void record_raise(vst_id id)
{
    vst_record_end_of_call(VST_RAISE, id);
}

VST_INLINE PyObject *record(const vpy_thunk_slot *s, words w, uint64_t in,
                            vst_id id)
{
    __attribute__((cleanup(thunks_leave))) span open = {in, id};
    PyObject *result;

    vst_record(VST_ENTER, id);
    result = forward(s, w);
    if (VST_LIKELY(state->recording == in)) {
        if (VST_LIKELY(result != NULL))
            vst_record_end_of_call(VST_EXIT, id);
        else
            record_raise(id);
    }
    open.recording = 0;
    return result;
}

static VST_COLD vst_id id_by_class(uint32_t number, PyObject *self,
                                   bool *by_class)
{
    vpy_thunk_slot *s = &vpy_thunks.slots.slots[number];
    PyObject *type, *value, *traceback;
    vst_id id;

    PyErr_Fetch(&type, &value, &traceback);
    id = vpy_native_id_of(vpy_thunks.slots.abouts[number].method, self,
                          by_class);
    s->owner = Py_TYPE(self);
    s->version = s->owner->tp_version_tag;
    if (s->version == 0)
        s->owner = NULL;
    PyErr_Restore(type, value, traceback);
    return id;
}

static vpy_native_kind kind_of(vpy_thunk_owner owner)
{
    if (owner == VPY_OF_TYPE)
        return VPY_METHOD_OF_CLASS;
    return owner == VPY_OF_CALLABLE ? VPY_METHOD_OF_OBJECT
                                    : VPY_FUNCTION_OF_MODULE;
}

static VST_COLD uint64_t thunks_define(uint32_t number, PyObject *self)
{
    const vpy_thunk_about *k = &vpy_thunks.slots.abouts[number];
    uint32_t is = k->is;
    bool by_class = false;
    vst_id id;

    /* Other code kept the thunk's address after the definition was freed. */
    if (!vpy_thunk_is_alive(k))
        return state->recording;
    if (k->owner == VPY_OF_CALLABLE &&
        (k->method == NULL ||
         (self != NULL && vpy_cython_definition(self) == k->method))) {
        id = vpy_callable_id_found(self, k->where);
    } else if (k->owner == VPY_OF_SELF && self != NULL) {
        id = id_by_class(number, self, &by_class);
    } else {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        id = self != NULL && vpy_is_pybind11(self)
                 ? vpy_native_define_pybind11(k->method, k->where)
                 : vpy_native_define(k->method->ml_name, k->where,
                                     kind_of(k->owner));
        PyErr_Restore(type, value, traceback);
    }
    if (by_class)
        is = VPY_THUNK_BY_CLASS;
    vpy_thunks.slots.slots[number].value = state->recording | is | id;
    return vpy_thunks.slots.slots[number].value;
}

/* Returns the id in the slot of a function whose id depends on more than the
 * definition, if it is called with the same class or from the same place as
 * before; else 0. rest: the slot's value minus the recording. */
VST_INLINE vst_id id_as_before(const vpy_thunk_slot *s, uint64_t rest,
                               PyThreadState *tstate, const PyObject *self)
{
    vst_id id = (vst_id)rest & VST_ID_MAX;

    if (rest >> 30 == VPY_THUNK_BY_CLASS >> 30)
        return self != NULL && Py_TYPE(self) == s->owner &&
                       s->owner->tp_version_tag == s->version
                   ? id
                   : 0;
#if VPY_KNOWS_INSIDE
    if (rest >> 30 == VPY_THUNK_CACHED >> 30) {
        const vpy_iframe *frame = vpy_iframe_innermost(tstate);
        uintptr_t place = frame != NULL ? vpy_iframe_place(frame) : 0;
        return frame != NULL && *vpy_cached_call(place) == place ? id : 0;
    }
#endif
    (void)tstate;
    return 0;
}

/* Finds the id again. Returns 0 if the function is not recorded. */
static vst_id id_anew(uint32_t number, PyThreadState *tstate, PyObject *self)
{
    vpy_thunk_slot *s = &vpy_thunks.slots.slots[number];
    uint64_t value = s->value >> 32 == state->recording >> 32
                         ? s->value
                         : thunks_define(number, self);
    vst_id id = (vst_id)value & VST_ID_MAX;
    bool by_class;

    if (VPY_THUNK_IS(value) == VPY_THUNK_BY_CLASS && self != NULL &&
        !id_as_before(s, value - state->recording, tstate, self)) {
        if (!vpy_thunk_is_alive(&vpy_thunks.slots.abouts[number]))
            return 0;
        id = id_by_class(number, self, &by_class);
        s->value = (value & ~(uint64_t)VST_ID_MAX) | id;
#if VPY_KNOWS_INSIDE
    } else if (VPY_THUNK_IS(value) == VPY_THUNK_CACHED) {
        const vpy_iframe *frame = vpy_iframe_innermost(tstate);
        vpy_cached_call_note(frame, vpy_iframe_place(frame));
#endif
    }
    return id;
}

static void after_import(PyObject *module);

#if VPY_CALLS_OF_C_ARE_FEW
/* Calls an object that the interpreter would call by the object's own pointer.
 * A call by the type takes a level of the recursion limit, which is given back
 * meanwhile. */
static PyObject *call_without_level(const vpy_thunk_slot *s, words w, vst_id id,
                                    PyThreadState *tstate)
{
    bool is_recorded = vpy_is_plain(id) && vpy_frames_catch_up(tstate) &&
                       caller_is_recorded(tstate);
    int *left = vpy_c_recursion_left(tstate);
    PyObject *result;

    ++*left;
    result = is_recorded ? record(s, w, state->recording, id) : forward(s, w);
    --*left;
    return result;
}
#endif

/* Calls a function that imports: the C functions of the imported module get
 * thunks, even if the caller is not recorded. */
static VST_COLD PyObject *call_import(uint32_t number, words w, uint64_t in,
                                      vst_id id)
{
    const vpy_thunk_slot *s = &vpy_thunks.slots.slots[number];
    bool has_argument =
        vpy_thunks.slots.abouts[number].method->ml_flags & METH_O;
    PyObject *result = id ? record(s, w, in, id) : forward(s, w);

    /* The create functions return the module, or another object that an
     * extension uses as its module. The exec functions get it as their only
     * argument. In other calling conventions the second word is no object. */
    if (result != NULL && state->recording == in)
        after_import(!PyModule_Check(result) && has_argument ? w.b : result);
    return result;
}

/* Calls an object by its own pointer, as the interpreter would: the type's slot
 * would make another tuple of arguments, which counts references. */
static PyObject *call_pointer(PyObject *object, PyObject *args,
                              PyObject *kwargs)
{
    return PyVectorcall_Call(object, args, kwargs);
}

/* Returns whether the object has a pointer that does not lead to a thunk. */
static bool has_pointer(PyObject *object)
{
    Py_ssize_t offset = Py_TYPE(object)->tp_vectorcall_offset;
    vectorcallfunc pointer = NULL;

    if (offset > 0)
        memcpy(&pointer, (const char *)object + offset, sizeof pointer);
    return pointer != NULL &&
           vpy_thunk_number((PyCFunction)(void (*)(void))pointer) >= VPY_THUNKS;
}

/* Handles a call by the slot of a type: the called object has the id. */
VST_INLINE PyObject *call_by_type(const vpy_thunk_slot *s, words w, uint64_t in,
                                  PyThreadState *tstate)
{
    static const vpy_thunk_slot by_pointer = {
        .original = (PyCFunction)(void (*)(void))call_pointer};
    vst_id id = vpy_callable_id_at_once(w.a);
    bool had_vectorcall =
        !PyType_CheckExact(w.a) &&
        vpy_thunks.slots.abouts[s - vpy_thunks.slots.slots].had_vectorcall;

    if (!VST_LIKELY(id != VPY_NO_SLOT))
        id = vpy_callable_id(w.a);
    if (had_vectorcall && has_pointer(w.a))
        s = &by_pointer;
#if VPY_CALLS_OF_C_ARE_FEW
    if (had_vectorcall)
        return call_without_level(s, w, id, tstate);
#endif
    if (!vpy_is_plain(id) || !vpy_frames_catch_up(tstate) ||
        !caller_is_recorded(tstate))
        return forward(s, w);
    return record(s, w, in, id);
}

/* Handles less common calls: the id must be found, the function imports, or
 * nothing is recorded. Has the arguments of vpy_thunk_call, so that calling it
 * is a jump. */
static VST_NOINLINE PyObject *call_other(PyObject *a, PyObject *b, PyObject *c,
                                         PyObject *d, PyObject *e,
                                         uint32_t number)
{
    const vpy_thunk_slot *s = &vpy_thunks.slots.slots[number];
    PyThreadState *tstate = vpy_thread_state();
    uint64_t in = current_recording();
    words w = {a, b, c, d, e};
    vst_id id = 0;
    bool imports;

    if (in == 0 || tstate == NULL || tstate->interp != state->interpreter ||
        tstate->tracing) {
        /* Only a thread with a GIL of its own can be here while a thunk is
         * being put in place. It saw the thunk, so after this fence it sees the
         * slot. Pairs with vpy_thunks_put. */
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        return forward(s, w);
    }
    if (s->is_call_slot)
        return call_by_type(s, w, in, tstate);
    imports = vpy_thunks.slots.abouts[number].is == VPY_THUNK_IMPORTS;
    if ((!imports || vpy_thunks_cover_functions()) &&
        vpy_frames_catch_up(tstate) && caller_is_recorded(tstate))
        id = id_anew(number, tstate, w.a);
    if (imports)
        return call_import(number, w, in, id);
    return id ? record(s, w, in, id) : forward(s, w);
}

/* Handles calls of this interpreter whose slot has no id. Programs that make
 * many objects call classes which have no span of their own: these are
 * forwarded first. */
static VST_NOINLINE VST_HOT PyObject *call_unnamed(PyObject *a, PyObject *b,
                                                   PyObject *c, PyObject *d,
                                                   PyObject *e, uint32_t number)
{
    const vpy_thunk_slot *s = &vpy_thunks.slots.slots[number];
    words w = {a, b, c, d, e};

    if (s->is_call_slot && PyType_Check(a) && vpy_callable_id_at_once(a) == 0)
        return forward(s, w);
    return call_other(a, b, c, d, e, number);
}

__attribute__((used)) VST_HOT PyObject *vpy_thunk_call(PyObject *a, PyObject *b,
                                                       PyObject *c, PyObject *d,
                                                       PyObject *e,
                                                       uint32_t number)
{
    const vpy_thunk_slot *s = &vpy_thunks.slots.slots[number];
    uint64_t in = current_recording();
    uint64_t rest = __atomic_load_n(&s->value, __ATOMIC_RELAXED) - in;
    PyThreadState *tstate = vpy_thread_state();
    words w = {a, b, c, d, e};
    vst_id id = (vst_id)rest;

    if (!VST_LIKELY(tstate != NULL && tstate->interp == state->interpreter &&
                    tstate->tracing == 0))
        return call_other(a, b, c, d, e, number);
    if (!VST_LIKELY(rest - 1 < VST_ID_MAX)) { /* the condition is also true if
                                                 nothing is recorded */
        id = id_as_before(s, rest, tstate, a);
        if (!VST_LIKELY(id))
            return call_unnamed(a, b, c, d, e, number);
    }
    /* Functions that import went through call_other. */
    if (!VST_LIKELY(vpy_frames_catch_up(tstate) && caller_is_recorded(tstate)))
        return forward(s, w);
    return record(s, w, in, id);
}

/* ---- what is imported while recording ---------------------------------- */

/* Puts a thunk in front of every C function. Between vst_memory_enter and
 * vst_memory_leave, allocations are not the program's. */
static void thunks_walk(void)
{
    vst_ticks before = vst_clock_ticks();
    size_t covered = vpy_thunks_counts()->covered;
    int were_on = vpy_collections_put_off();

    vst_memory_enter();
    state->pending = false;
    vpy_table_memory_forget();
    vpy_find_methods(vpy_thunks_put);
    vst_memory_leave();
    vpy_collections_go_on(were_on);
    if (vpy_thunks_counts()->covered != covered)
        vpy_compiled_code_drop();
    state->walk_ended = vst_clock_ticks();
    state->walk_cost = state->walk_ended - before;
}

/* Does nothing if looking everywhere took more than a sixteenth of the time so
 * far. */
void vpy_thunks_look(void)
{
    size_t before = vpy_thunks_counts()->covered;

    if (!state->pending || !state->recording ||
        vst_clock_ticks() - state->walk_ended < 16 * state->walk_cost)
        return;
    thunks_walk();
    state->pending = vpy_thunks_counts()->covered != before;
}

static void after_import(PyObject *module)
{
    size_t covered = vpy_thunks_counts()->covered;
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    vst_memory_enter();
    state->pending = true;
    vpy_table_memory_forget();
    vpy_find_methods_of(module, vpy_thunks_put);
    vst_memory_leave();
    if (vpy_thunks_counts()->covered != covered)
        vpy_compiled_code_drop();
    vpy_thunks_look();
    PyErr_Restore(type, value, traceback);
}

/* ---- functions that only an object holds -------------------------------- */

void vpy_thunks_cover(PyObject *function)
{
    size_t covered = vpy_thunks_counts()->covered;

    if (!state->recording || !PyCFunction_CheckExact(function) ||
        vpy_thunk_number(PyCFunction_GET_FUNCTION(function)) < VPY_THUNKS)
        return;
    vst_memory_enter();
    vpy_find_value(function, vpy_thunks_put);
    vst_memory_leave();
    if (vpy_thunks_counts()->covered != covered)
        vpy_compiled_code_drop();
}

/* ---- start and stop ---------------------------------------------------- */

void vpy_thunks_pass_on(bool does)
{
    state->passes_on = does;
}

bool vpy_thunks_are_mine(void)
{
    const PyThreadState *tstate = vpy_thread_state();

    return tstate != NULL && tstate->interp == state->interpreter;
}

bool vpy_thunks_are_passed_on(void)
{
    return state->passes_on;
}

bool vpy_thunks_prepare(unsigned covers)
{
    state->recordings += state->recordings + 1 ? 1 : 2; /* never 0 */
    if (VPY_THUNKS == 0 ||
        !vpy_thunks_count_for(state->recordings, state->is_ready, covers)) {
        snprintf(vpy_calls.tracer.message, sizeof vpy_calls.tracer.message,
                 "%s",
                 VPY_THUNKS ? "no memory for the C functions"
                            : "no thunks for this processor");
        return false;
    }
    if (state->is_ready) {
        state->walk_ended =
            vst_clock_ticks(); /* the child may look later for functions that
                                  its parent missed */
        return true;
    }
    state->interpreter = PyThreadState_Get()->interp;
    if (covers & VPY_COVERS_FUNCTIONS)
        vpy_function_identity_keep(VPY_FOR_THUNKS);
    thunks_walk();
    state->is_ready = true;
    return true;
}

bool vpy_thunks_start(unsigned covers)
{
    if (!state->is_ready && !vpy_thunks_prepare(covers))
        return false;
    state->is_ready = false;
    if (covers & VPY_COVERS_FUNCTIONS)
        vpy_cached_callables_hide();
    __atomic_store_n(&state->recording, (uint64_t)state->recordings << 32,
                     __ATOMIC_RELAXED);
    return true;
}

void vpy_thunks_stop(void)
{
    bool has_functions = vpy_thunks_cover_functions();

    if (!state->recording && !state->is_ready)
        return;
    __atomic_store_n(&state->recording, 0, __ATOMIC_RELAXED);
    state->is_ready = state->passes_on;
    if (state->passes_on)
        return;
    vpy_thunks_restore();
    if (!has_functions)
        return;
    vpy_compiled_code_drop();
    vpy_cached_callables_show();
    vpy_function_identity_release(VPY_FOR_THUNKS);
}

void vpy_thunks_give_up(void)
{
    if (state->is_ready)
        vpy_thunks_stop();
}
