/* The id of a function, as every hook reads it: the id of a Python function is
 * in its code object (code_ids.c), the id of a C function in a table
 * (native_ids.c). These inline functions are the hot path of all engines. If a
 * function has no id yet, they call a cold function that gives it one. */
#ifndef VPY_CALLS_IDS_H
#define VPY_CALLS_IDS_H

#include "calls/tracer.h"

#pragma GCC visibility push(hidden)

/* ---- Python functions: code_ids.c ---------------------------------------- */

/* The value of a code object: 0 if its calls are not recorded, else its id with
 * the bits below. */

/* A budget leaves the function out now, or the function has stale frames: see
 * budget.h. */
#define VPY_LEFT_OUT ((uint32_t)1 << 27)
/* The function's calls may be steps of tasks, see program/tasks.h. */
#define VPY_COROUTINE ((uint32_t)1 << 28)
/* Exceptions that leave the function are recorded. */
#define VPY_MARKED ((uint32_t)1 << 29)
/* See vpy_code_entered. */
#define VPY_SPECIAL ((uint32_t)1 << 30)
/* A trigger watches how long the function's calls take. */
#define VPY_TIMED ((uint32_t)1 << 31)
#define VPY_ID(value) ((value) & (VPY_LEFT_OUT - 1))

/* Returns whether the value is an id alone: the function is recorded, and only
 * its enters and exits are. One comparison suffices, because 0 wraps around. */
static inline bool vpy_is_plain(uint32_t value)
{
    return value - 1 < VPY_LEFT_OUT - 1;
}

/* Returns whether the value is an id with VPY_COROUTINE and no other bit. */
static inline bool vpy_is_plain_coroutine(uint32_t value)
{
    return value - VPY_COROUTINE < VPY_LEFT_OUT;
}

/* Returns whether a budget may leave the function out: a hook that does not run
 * for its calls misses nothing but the calls. */
static inline bool vpy_can_be_left_out(uint32_t value)
{
    return vpy_is_plain(value) || vpy_is_plain_coroutine(value);
}

/* Returns whether calls of a function with this value are not recorded. */
static inline bool vpy_is_left_out(uint32_t value)
{
    return value == 0 || value & VPY_LEFT_OUT;
}

static inline uint32_t vpy_round_now(void)
{
    return __atomic_load_n(&vpy_calls_hooks.round, __ATOMIC_RELAXED);
}

static inline uint32_t vpy_generation_now(void)
{
    return __atomic_load_n(&vpy_calls_hooks.generation, __ATOMIC_RELAXED);
}

int vpy_code_ids_init(void);
/* From vpy_code_ids_begin on, functions can get ids (vpy_code_define_ahead);
 * from vpy_code_ids_go_live on, hooks see the ids. Returns false if memory ran
 * out. */
bool vpy_code_ids_begin(vpy_tracer *tracer);
void vpy_code_ids_go_live(void);
void vpy_code_ids_end(void);
/* Begins a round while recording: hooks ask for all values again
 * (vpy_budget_value). */
void vpy_code_ids_next_round(void);
/* Returns the function's id in this recording; 0: none yet. */
vst_id vpy_code_known_id(PyObject *code);
/* Replaces the function's value. */
void vpy_code_set_value(PyObject *code, uint32_t value);
VST_COLD uint32_t vpy_code_define(PyObject *code);
/* Call between vpy_code_ids_begin and vpy_code_ids_go_live.
 * vpy_code_define_ahead gives the function its value. vpy_code_find_ahead
 * returns whether the function has a value, which may be 0, and may be called
 * in a stopped world. */
void vpy_code_define_ahead(PyObject *code);
bool vpy_code_find_ahead(PyObject *code, uint32_t *value);
/* Returns whether the arguments of the function's calls are recorded. */
bool vpy_code_wants_arguments(const PyCodeObject *code);

static inline uint32_t vpy_code_value(PyObject *code)
{
    uintptr_t extra =
        vpy_code_get_extra(code, vpy_calls_hooks.code_extra_index);

    if (VST_LIKELY(extra >> 32 == vpy_round_now()))
        return (uint32_t)extra;
    return vpy_code_define(code);
}

/* Like vpy_code_value, for hooks that must be small: calls nothing. Also
 * returns 0 if the function has no value yet. */
VST_INLINE uint32_t vpy_code_value_at_once(PyObject *code)
{
    uintptr_t extra =
        vpy_code_get_extra(code, vpy_calls_hooks.code_extra_index);

    return VST_LIKELY(extra >> 32 == vpy_round_now()) ? (uint32_t)extra : 0;
}

VST_INLINE bool vpy_is_last_caller(const PyObject *code)
{
    return !VPY_FREE_THREADED && VST_LIKELY(code == vpy_calls.last_caller);
}

/* Notes the code as the last caller if its value says that it is recorded.
 * Returns whether it is. */
VST_INLINE bool vpy_note_caller(PyObject *code, uint32_t value)
{
    if (vpy_is_left_out(value))
        return false;
    if (!VPY_FREE_THREADED)
        vpy_calls.last_caller = code;
    return true;
}

/* Returns whether the Python function that makes a C call is recorded;
 * otherwise the C call is not recorded. */
static inline bool vpy_caller_is_recorded(PyObject *code)
{
    return vpy_is_last_caller(code) ||
           vpy_note_caller(code, vpy_code_value(code));
}

/* Like vpy_caller_is_recorded, for hooks that must be small: calls nothing.
 * Also returns false if the caller has no value yet. */
VST_INLINE bool vpy_caller_is_recorded_at_once(PyObject *code)
{
    return vpy_is_last_caller(code) ||
           vpy_note_caller(code, vpy_code_value_at_once(code));
}

/* ---- special_functions.c ------------------------------------------------ */

/* Record the enter and the end of a function whose value has VPY_SPECIAL,
 * VPY_TIMED or VPY_MARKED. frame: the function's frame; NULL: the running
 * frame. entered: the result of vpy_code_entered, or 0 to find it from the
 * frame, which must still run. result: NULL if an exception left the function.
 * waits: the call yields; only used for coroutines. */
VST_COLD vst_id vpy_code_entered(uint32_t value, PyObject *code,
                                 const vpy_iframe *frame);
VST_COLD void vpy_code_returns(uint32_t value, vst_id entered, PyObject *code,
                               PyObject *result, const vpy_iframe *frame,
                               bool waits);

/* Returns whether the recording leaves out this function because it spins. */
bool vpy_is_left_out_spin(const vst_definition *definition);

/* ---- C functions: native_ids.c ------------------------------------------ */

bool vpy_native_ids_begin(vpy_tracer *tracer);
/* Frees the table that a forked child has of its parent, or each child of a
 * child would keep one more. */
void vpy_native_ids_before_fork(void);
/* For a budget: sets VPY_LEFT_OUT in the ids for which is_out() returns true,
 * and clears it in all others. */
void vpy_native_ids_rest(bool (*is_out)(vst_id id));
void vpy_native_ids_end(void);
/* Returns the id of a callable that has no id yet, whose definition may be
 * freed, or that is no plain C function. */
VST_COLD vst_id vpy_native_id_slow(PyObject *callable);

static inline size_t vpy_native_hash(PyMethodDef *method, PyTypeObject *owner)
{
    return (size_t)((uintptr_t)method >> 5 ^ (uintptr_t)owner >> 6);
}

/* Returns the id of a definition that is called with `self`. Sets *by_class to
 * whether the id also depends on the class of self. */
VST_COLD vst_id vpy_native_id_of(PyMethodDef *method, PyObject *self,
                                 bool *by_class);
/* How a call in C is named. */
typedef enum vpy_native_kind {
    VPY_FUNCTION_OF_MODULE,
    VPY_METHOD_OF_OBJECT, /* where: the class */
    VPY_METHOD_OF_CLASS,  /* called on the class itself */
    VPY_CLASS             /* a class is called; where: its module */
} vpy_native_kind;

/* Gives an id to a name, without an object. Call with the state lock. */
vst_id vpy_native_define(const char *name, const char *where,
                         vpy_native_kind kind);
/* Returns whether pybind11 has bound a function to this object. Such a function
 * gets its id from its definition. */
bool vpy_is_pybind11(PyObject *self);
vst_id vpy_native_define_pybind11(const PyMethodDef *method,
                                  const char *module);

/* The result of vpy_native_find for a function that is not in the table. */
#define VPY_NO_SLOT UINT32_MAX

/* Returns the entry of a function in the table: its id, which may be 0 or have
 * VPY_LEFT_OUT; or VPY_NO_SLOT. */
VST_INLINE vst_id vpy_native_find(PyMethodDef *method, PyTypeObject *owner)
{
    size_t mask =
        __atomic_load_n(&vpy_calls_hooks.natives_mask, __ATOMIC_ACQUIRE);
    const vpy_native *table =
        __atomic_load_n(&vpy_calls_hooks.natives, __ATOMIC_ACQUIRE);
    const vpy_native *slot = &table[vpy_native_hash(method, owner) & mask];
    uint32_t version;

    if (!VST_LIKELY(__atomic_load_n(&slot->method, __ATOMIC_ACQUIRE) ==
                        method &&
                    __atomic_load_n(&slot->owner, __ATOMIC_RELAXED) == owner))
        return VPY_NO_SLOT;
    if (!VST_LIKELY(__atomic_load_n(&slot->names, __ATOMIC_RELAXED) == 0)) {
        version = __atomic_load_n(&slot->version, __ATOMIC_ACQUIRE);
        if (!VST_LIKELY(version != 0 && version == vpy_type_version(owner)))
            return VPY_NO_SLOT;
    }
    return __atomic_load_n(&slot->id, __ATOMIC_RELAXED);
}

/* Like vpy_native_find, for any callable. Calls nothing. */
VST_INLINE vst_id vpy_native_id_at_once(PyObject *callable)
{
    PyTypeObject *type = Py_TYPE(callable), *owner;
    PyMethodDef *method;

    if (type == &PyCFunction_Type) {
        PyObject *self = ((PyCFunctionObject *)callable)->m_self;
        method = ((PyCFunctionObject *)callable)->m_ml;
        owner = self != NULL ? Py_TYPE(self) : NULL;
    } else if (type == &PyMethodDescr_Type) {
        method = ((PyMethodDescrObject *)callable)->d_method;
        owner = ((PyMethodDescrObject *)callable)->d_common.d_type;
    } else {
        return VPY_NO_SLOT;
    }
    return vpy_native_find(method, owner);
}

/* Returns the id of a callable; 0 if it is not a C function, or is not
 * recorded. */
static inline vst_id vpy_native_id(PyObject *callable)
{
    vst_id id = vpy_native_id_at_once(callable);

    if (VST_LIKELY(id != VPY_NO_SLOT))
        return id;
    return Py_IS_TYPE(callable, &PyFunction_Type)
               ? 0
               : vpy_native_id_slow(callable);
}

/* ---- other callables: callable_ids.c ------------------------------------- */

int vpy_callable_ids_init(void);
/* Forgets all ids, before a recording starts and after it has stopped. */
void vpy_callable_ids_clear(void);
/* As vpy_native_ids_rest. */
void vpy_callable_ids_rest(bool (*is_out)(vst_id id));
/* Whether calls of a class are recorded as calls of the class. Where its
 * objects are made by functions in Python, those are recorded. */
bool vpy_class_is_recorded(PyTypeObject *class);
/* Whether calls of objects of a type run C code and are recorded. */
bool vpy_type_is_called(const PyTypeObject *type);
/* A subject, which has an id, is an object, a class, or all objects of a type.
 */
#define VPY_OF_ALL(type) ((uintptr_t)(type) | 1)

VST_INLINE vpy_callable *vpy_callable_place(uintptr_t subject)
{
    return &vpy_calls.callables
                .kept[(subject >> 4 ^ subject >> 14 ^ (subject & 1)) %
                      VPY_CALLABLES_KEPT];
}

/* Returns the id of a subject, or VPY_NO_SLOT. Call with the state lock. */
VST_INLINE vst_id vpy_callable_find(uintptr_t subject)
{
    const vpy_callable *c = vpy_callable_place(subject);

    return c->subject == subject && c->round == vpy_calls.callables.round &&
                   (c->alive == NULL ||
                    vpy_weakref_is_to(c->alive,
                                      (PyObject *)(subject & ~(uintptr_t)1)))
               ? c->id
               : VPY_NO_SLOT;
}

/* Like vpy_callable_id, for hooks that must be small: calls nothing. Returns
 * VPY_NO_SLOT if the id is not known yet, and where threads would need the
 * lock. The object has no thunk of its own. */
VST_INLINE vst_id vpy_callable_id_at_once(PyObject *callable)
{
    vst_id id = VPY_NO_SLOT;

    if (VPY_FREE_THREADED)
        return id;
    id = vpy_callable_find((uintptr_t)callable);
    return id != VPY_NO_SLOT || PyType_Check(callable)
               ? id
               : vpy_callable_find(VPY_OF_ALL(Py_TYPE(callable)));
}

/* The id of a call of a class or an object, which may have VPY_LEFT_OUT; 0: it
 * is not recorded, or by a thunk of its own. */
vst_id vpy_callable_id(PyObject *callable);
/* For a thunk, which keeps the id. where: the module that holds the object. */
vst_id vpy_callable_id_found(PyObject *callable, const char *where);

#pragma GCC visibility pop
#endif
