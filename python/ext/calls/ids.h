/* The id of a function, as every hook reads it: of a Python function from its
 * code object (code_ids.c), of a C function from a table (native_ids.c). These
 * inline functions are the hot path of all engines. A function that has no id
 * yet gets one in the cold functions behind them. */
#ifndef VPY_CALLS_IDS_H
#define VPY_CALLS_IDS_H

#include "calls/tracer.h"

#pragma GCC visibility push(hidden)

/* ---- Python functions: code_ids.c ---------------------------------------- */

/* The value of a code object: 0 if it is not recorded, else its id with these
 * bits. */
#define VPY_LEFT_OUT                                                           \
    ((uint32_t)1 << 27) /* not recorded for now, or not all that is open is:   \
                         * see budget.h                                        \
                         */
#define VPY_COROUTINE                                                          \
    ((uint32_t)1                                                               \
     << 28) /* its calls may be steps of tasks, see program/tasks.h            \
             */
#define VPY_MARKED                                                             \
    ((uint32_t)1 << 29) /* exceptions that leave it are recorded then          \
                         */
#define VPY_SPECIAL ((uint32_t)1 << 30) /* see vpy_code_entered */
#define VPY_TIMED                                                              \
    ((uint32_t)1 << 31) /* a trigger watches how long it takes                 \
                         */
#define VPY_ID(value) ((value) & (VPY_LEFT_OUT - 1))

/* Whether a function is recorded and needs nothing but its enter and exit: its
 * value is an id alone. One comparison, since 0 wraps around. */
static inline bool vpy_is_plain(uint32_t value)
{
    return value - 1 < VPY_LEFT_OUT - 1;
}

/* The same of a coroutine. */
static inline bool vpy_is_plain_coroutine(uint32_t value)
{
    return value - VPY_COROUTINE < VPY_LEFT_OUT;
}

/* Whether a budget may leave it out: a hook that does not run for a call misses
 * nothing but the call. */
static inline bool vpy_can_be_left_out(uint32_t value)
{
    return vpy_is_plain(value) || vpy_is_plain_coroutine(value);
}

/* Whether calls of a function with this value are not recorded. */
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
/* From begin on functions can get ids (vpy_code_define_ahead), and from go_live
 * on hooks see them. False: out of memory. */
bool vpy_code_ids_begin(vpy_tracer *tracer);
void vpy_code_ids_go_live(void);
void vpy_code_ids_end(void);
/* While recording: values are asked for again (vpy_budget_value). */
void vpy_code_ids_next_round(void);
/* The id that a function has in this recording, 0: none yet. */
vst_id vpy_code_known_id(PyObject *code);
/* Gives it another value. */
void vpy_code_set_value(PyObject *code, uint32_t value);
VST_COLD uint32_t vpy_code_define(PyObject *code);
/* Between begin and go_live: gives a function its value. find_ahead only looks
 * whether it has one, which may be 0; it may be called in a stopped world. */
void vpy_code_define_ahead(PyObject *code);
bool vpy_code_find_ahead(PyObject *code, uint32_t *value);
/* Whether the arguments of its calls are recorded. */
bool vpy_code_wants_arguments(const PyCodeObject *code);

static inline uint32_t vpy_code_value(PyObject *code)
{
    uintptr_t extra =
        vpy_code_get_extra(code, vpy_calls_hooks.code_extra_index);

    if (VST_LIKELY(extra >> 32 == vpy_round_now()))
        return (uint32_t)extra;
    return vpy_code_define(code);
}

/* The same for hooks that must be small: it calls nothing. 0 also if the
 * function has no value yet. */
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

/* Of another caller with this value: whether it is recorded. */
VST_INLINE bool vpy_note_caller(PyObject *code, uint32_t value)
{
    if (vpy_is_left_out(value))
        return false;
    if (!VPY_FREE_THREADED)
        vpy_calls.last_caller = code;
    return true;
}

/* Calls in C are recorded only where the Python function that makes them is. */
static inline bool vpy_caller_is_recorded(PyObject *code)
{
    return vpy_is_last_caller(code) ||
           vpy_note_caller(code, vpy_code_value(code));
}

/* The same for hooks that must be small: it calls nothing. False also if that
 * is not known here. */
VST_INLINE bool vpy_caller_is_recorded_at_once(PyObject *code)
{
    return vpy_is_last_caller(code) ||
           vpy_note_caller(code, vpy_code_value_at_once(code));
}

/* ---- special_functions.c ------------------------------------------------ */

/* These record the enter and the end of a function whose value has one of the
 * two bits. frame: the function's, or NULL for the one that runs now. entered:
 * what vpy_code_entered returned, or 0 to find it out from the frame, which
 * must still run. result: NULL if an exception left the function. waits: it
 * yields; only a coroutine's matters. */
VST_COLD vst_id vpy_code_entered(uint32_t value, PyObject *code,
                                 const vpy_iframe *frame);
VST_COLD void vpy_code_returns(uint32_t value, vst_id entered, PyObject *code,
                               PyObject *result, const vpy_iframe *frame,
                               bool waits);

/* ---- C functions: native_ids.c ------------------------------------------ */

bool vpy_native_ids_begin(vpy_tracer *tracer);
/* For a budget: ids for which is_out() get VPY_LEFT_OUT, others have it not. */
void vpy_native_ids_rest(bool (*is_out)(vst_id id));
void vpy_native_ids_end(void);
/* For functions that have no id yet, whose definition may be freed, or that are
 * no plain C functions. */
VST_COLD vst_id vpy_native_id_slow(PyObject *callable);

static inline size_t vpy_native_hash(PyMethodDef *method, PyTypeObject *owner)
{
    return (size_t)((uintptr_t)method >> 5 ^ (uintptr_t)owner >> 6);
}

/* The id of a definition that is called with self. *by_class: whether it
 * depends on the class of self too, not on the definition alone. */
VST_COLD vst_id vpy_native_id_of(PyMethodDef *method, PyObject *self,
                                 bool *by_class);
/* Gives an id to a function of a module, or of a class if on_type, by name. */
vst_id vpy_native_define(const char *name, const char *where, bool on_type);

#define VPY_NO_SLOT UINT32_MAX /* in place of an id: it must be asked for */

/* What the table has for a function: its id, which may be 0 or have
 * VPY_LEFT_OUT, or VPY_NO_SLOT. */
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

/* The same for a callable, whatever it is. It calls nothing. */
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

/* The id of a callable; 0 if it is no C function, or not recorded. */
static inline vst_id vpy_native_id(PyObject *callable)
{
    vst_id id = vpy_native_id_at_once(callable);

    if (VST_LIKELY(id != VPY_NO_SLOT))
        return id;
    if (Py_IS_TYPE(callable, &PyFunction_Type) ||
        Py_IS_TYPE(callable, &PyType_Type))
        return 0;
    return vpy_native_id_slow(callable);
}

#pragma GCC visibility pop
#endif
