/* The part of compat.h about the interpreter's own frames. compat.h includes
 * it. Use nothing in it before base/inside.c has checked the structures. */
#ifndef VPY_COMPAT_FRAMES_H
#define VPY_COMPAT_FRAMES_H

#if VPY_KNOWS_INSIDE
/* The interpreter's own frame, which exists without a Python frame object. */
typedef _PyInterpreterFrame vpy_iframe;

/* Since 3.14 frames hold tagged references: a bit that says whether the
 * reference is counted is not part of the address. */
#if PY_VERSION_HEX >= 0x030E0000
static inline PyObject *vpy_iframe_object(_PyStackRef reference)
{
    if (PyStackRef_IsNullOrInt(reference))
        return NULL;
    return PyStackRef_AsPyObjectBorrow(reference);
}
#else
#define vpy_iframe_object(reference) ((PyObject *)(reference))
#endif

/* Returns the innermost frame of a thread, which may be a shim. */
static inline const vpy_iframe *vpy_iframe_innermost(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030D0000
    return tstate->current_frame;
#else
    return tstate->cframe->current_frame;
#endif
}

static inline const vpy_iframe *vpy_iframe_back(const vpy_iframe *frame)
{
    return frame->previous;
}

/* Since 3.12 the C function that evaluates has a frame of its own (a "shim"),
 * which runs no Python code. Since 3.15 each thread has one more shim below all
 * frames. */
static inline bool vpy_iframe_is_shim(const vpy_iframe *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    return frame->owner >= FRAME_OWNED_BY_INTERPRETER;
#elif PY_VERSION_HEX >= 0x030C0000
    return frame->owner == FRAME_OWNED_BY_CSTACK;
#else
    (void)frame;
    return false;
#endif
}

/* Returns the frame, or the nearest frame below it that is not a shim. */
static inline const vpy_iframe *
vpy_iframe_without_shims(const vpy_iframe *frame)
{
    while (frame != NULL && vpy_iframe_is_shim(frame))
        frame = vpy_iframe_back(frame);
    return frame;
}

/* Returns the innermost frame of a thread that is not a shim. */
static inline const vpy_iframe *vpy_iframe_running(PyThreadState *tstate)
{
    return vpy_iframe_without_shims(vpy_iframe_innermost(tstate));
}

/* Returns whether a C function started an evaluation with this frame. */
static inline bool vpy_iframe_is_entry(const vpy_iframe *frame)
{
#if PY_VERSION_HEX >= 0x030C0000
    return frame->previous == NULL || vpy_iframe_is_shim(frame->previous);
#else
    return frame->is_entry;
#endif
}

/* Returns a local variable of a running frame (borrowed), or NULL if it has no
 * value. */
static inline PyObject *vpy_iframe_local(const vpy_iframe *frame, int index)
{
    return vpy_iframe_object(frame->localsplus[index]);
}

/* Returns the interpreter's own frame behind a frame object. */
static inline const vpy_iframe *vpy_iframe_of(const PyFrameObject *frame)
{
    return frame->f_frame;
}

static inline PyCodeObject *vpy_iframe_code(const vpy_iframe *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    return (PyCodeObject *)vpy_iframe_object(frame->f_executable);
#else
    return frame->f_code;
#endif
}

/* Returns the index of the instruction that the frame has reached; -1 before
 * the first. Without the GIL each thread has its own copy of the
 * instructions. */
static inline int vpy_iframe_instruction(const vpy_iframe *frame)
{
#if VPY_FREE_THREADED
    return (int)(frame->instr_ptr -
                 _PyFrame_GetBytecode((vpy_iframe *)(uintptr_t)frame));
#elif PY_VERSION_HEX >= 0x030D0000
    return (int)(frame->instr_ptr - _PyCode_CODE(vpy_iframe_code(frame)));
#else
    return (int)(frame->prev_instr - _PyCode_CODE(frame->f_code));
#endif
}

/* Returns a number that identifies the code object and the instruction that the
 * frame has reached: the instruction's address. Bit 0 is always clear, but on
 * 3.11 it says whether the frame is an entry. */
static inline uintptr_t vpy_iframe_place(const vpy_iframe *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    return (uintptr_t)frame->instr_ptr;
#elif PY_VERSION_HEX >= 0x030C0000
    return (uintptr_t)frame->prev_instr;
#else
    return (uintptr_t)frame->prev_instr | frame->is_entry;
#endif
}

/* Returns whether a function's first instructions are still running, which make
 * its cells and its generator. Until they have run, the interpreter does not
 * show the frame. */
static inline bool vpy_iframe_is_incomplete(const vpy_iframe *frame,
                                            int instruction)
{
    return instruction < vpy_iframe_code(frame)->_co_firsttraceable &&
           frame->owner != FRAME_OWNED_BY_GENERATOR;
}

/* ---- coroutines ---------------------------------------------------------- */

/* Whether an awaited coroutine is resumed without a C function in between. */
#define VPY_AWAITS_INLINE (PY_VERSION_HEX >= 0x030C0000)

/* Returns the frame of a coroutine or generator, which must not have ended. */
static inline const vpy_iframe *vpy_iframe_of_coroutine(PyObject *coroutine)
{
    return (const vpy_iframe *)(const void *)&((PyGenObject *)coroutine)
        ->gi_iframe;
}

/* Returns whether a coroutine's frame, which runs or is about to, is at its
 * beginning rather than after an await. Its first instruction is RESUME; the
 * first await takes several more. */
static inline bool vpy_iframe_is_new(const vpy_iframe *frame)
{
    return vpy_iframe_instruction(frame) <=
           vpy_iframe_code(frame)->_co_firsttraceable + 2;
}

/* Returns an argument's current value (borrowed), or NULL if it has none. An
 * argument that inner functions use lies in a cell once the first instructions
 * have run. */
static inline PyObject *vpy_iframe_argument(const vpy_iframe *frame, int index)
{
    PyObject *value = vpy_iframe_local(frame, index);
    PyCodeObject *code = vpy_iframe_code(frame);
    const char *kinds = PyBytes_AS_STRING(code->co_localspluskinds);

    if (value != NULL && (kinds[index] & CO_FAST_CELL) && PyCell_Check(value) &&
        !vpy_iframe_is_incomplete(frame, vpy_iframe_instruction(frame)))
        value = PyCell_GET(value);
    return value;
}

/* ---- the bottom of the stack --------------------------------------------- */

/* How much of the recursion limit a thread's frames have used.
 * vpy_recursion_put_aside gives the whole limit to the code that runs next;
 * vpy_recursion_take_back undoes that. On 3.12 and 3.13 C functions have a
 * limit of their own: every evaluation below us has used two of it, and the C
 * function that called the evaluation one. Since 3.14 the C stack's size is the
 * limit of C functions. We keep differences, since the program may change the
 * limit meanwhile. */
#define VPY_C_RECURSION_OF_EVALUATION 3
#define VPY_COUNTS_C_RECURSION                                                 \
    (PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000)

typedef struct vpy_recursion {
    int python, c;
} vpy_recursion;

/* Returns whether the fields that we read agree with Py_GetRecursionLimit(). */
static inline bool vpy_recursion_is_known(PyThreadState *tstate)
{
    int limit = Py_GetRecursionLimit();
#if PY_VERSION_HEX >= 0x030C0000
    int remaining = tstate->py_recursion_remaining;
    bool is_limit = tstate->py_recursion_limit == limit;
#else
    int remaining = tstate->recursion_remaining;
    bool is_limit = tstate->recursion_limit == limit;
#endif
    return is_limit && remaining <= limit;
}

static inline vpy_recursion vpy_recursion_put_aside(PyThreadState *tstate)
{
    vpy_recursion used = {0, 0};

    if (!vpy_recursion_is_known(tstate))
        return used;
#if VPY_COUNTS_C_RECURSION
    for (const vpy_iframe *frame = vpy_iframe_innermost(tstate); frame != NULL;
         frame = vpy_iframe_back(frame))
        if (vpy_iframe_is_shim(frame))
            used.c += VPY_C_RECURSION_OF_EVALUATION;
    tstate->c_recursion_remaining += used.c;
#endif
#if PY_VERSION_HEX >= 0x030C0000
    used.python = tstate->py_recursion_limit - tstate->py_recursion_remaining;
    tstate->py_recursion_remaining += used.python;
#else
    used.python = tstate->recursion_limit - tstate->recursion_remaining;
    tstate->recursion_remaining += used.python;
#endif
    return used;
}

static inline void vpy_recursion_take_back(PyThreadState *tstate,
                                           vpy_recursion used)
{
#if VPY_COUNTS_C_RECURSION
    tstate->c_recursion_remaining -= used.c;
#endif
#if PY_VERSION_HEX >= 0x030C0000
    tstate->py_recursion_remaining -= used.python;
#else
    tstate->recursion_remaining -= used.python;
#endif
}

/* Returns the innermost frame of a thread that runs no Python code. */
static inline vpy_iframe *vpy_iframe_none(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030F0000
    return tstate->base_frame;
#else
    (void)tstate;
    return NULL;
#endif
}

/* Replaces the running frame and all frames below it. Returns the old frame,
 * which must be put back before its evaluation goes on. */
static inline vpy_iframe *vpy_iframes_replace(PyThreadState *tstate,
                                              vpy_iframe *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    vpy_iframe *before = tstate->current_frame;
    tstate->current_frame = frame;
#else
    vpy_iframe *before = tstate->cframe->current_frame;
    tstate->cframe->current_frame = frame;
#endif
    return before;
}

/* ---- needed only by base/inside.c ---------------------------------------- */

/* Returns the structure on the C stack through which the running frame is found
 * up to 3.12, or NULL on later versions. */
static inline const void *vpy_thread_cframe(const PyThreadState *tstate)
{
#if PY_VERSION_HEX < 0x030D0000
    return tstate->cframe;
#else
    (void)tstate;
    return NULL;
#endif
}

/* Returns the structure that vpy_thread_cframe returns for a thread that runs
 * no Python code, or NULL on later versions. */
static inline const void *vpy_thread_root_cframe(const PyThreadState *tstate)
{
#if PY_VERSION_HEX < 0x030D0000
    return &tstate->root_cframe;
#else
    (void)tstate;
    return NULL;
#endif
}

typedef enum vpy_frame_owner {
    VPY_FRAME_OF_THREAD,
    VPY_FRAME_OF_GENERATOR
} vpy_frame_owner;

static inline bool vpy_iframe_is_of(const vpy_iframe *frame,
                                    vpy_frame_owner owner)
{
    int expected = owner == VPY_FRAME_OF_THREAD ? FRAME_OWNED_BY_THREAD
                                                : FRAME_OWNED_BY_GENERATOR;
    return frame->owner == expected;
}

/* Returns how many Python calls the recursion limit still allows a thread. */
static inline int vpy_recursion_left(const PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030C0000
    return tstate->py_recursion_remaining;
#else
    return tstate->recursion_remaining;
#endif
}

/* Returns the counter that Py_EnterRecursiveCall decrements. */
static inline int *vpy_c_recursion_left(PyThreadState *tstate)
{
#if VPY_COUNTS_C_RECURSION
    return &tstate->c_recursion_remaining;
#elif PY_VERSION_HEX >= 0x030C0000
    return &tstate->py_recursion_remaining;
#else
    return &tstate->recursion_remaining;
#endif
}
#define VPY_ENTERING_IS_COUNTED (PY_VERSION_HEX < 0x030E0000)

/* Whether a recursion through C calls soon reaches the limit of C calls. */
#define VPY_CALLS_OF_C_ARE_FEW (PY_VERSION_HEX < 0x030D0000)

/* Since 3.12 a call by C code has a shim. */
#define VPY_C_CALLS_HAVE_SHIMS (PY_VERSION_HEX >= 0x030C0000)

/* The sizes of code and frame objects by the structures that we know. */
#define VPY_CODE_SIZE offsetof(PyCodeObject, co_code_adaptive)
#define VPY_FRAME_SIZE                                                         \
    (offsetof(PyFrameObject, _f_frame_data) + offsetof(vpy_iframe, localsplus))

#else
#include "compat_unknown.h"
#endif

/* ---- lines --------------------------------------------------------------- */

/* Up to 3.11 a str may not be "ready": its characters cannot be read yet. */
#if PY_VERSION_HEX < 0x030C0000
#define vpy_text_is_ready(str) PyUnicode_IS_READY(str)
#else
#define vpy_text_is_ready(str) true
#endif

/* The place in the source from which an instruction comes; -1: unknown. */
typedef struct vpy_location {
    int line, end_line;
    int column, end_column; /* in bytes, from 0 */
} vpy_location;

static inline vpy_location vpy_code_location(PyCodeObject *code,
                                             int instruction)
{
    vpy_location at = {-1, -1, -1, -1};
    int address = instruction * 2; /* an instruction has two bytes */

    if (!PyCode_Addr2Location(code, address, &at.line, &at.column, &at.end_line,
                              &at.end_column))
        at = (vpy_location){-1, -1, -1, -1};
    return at;
}

#endif
