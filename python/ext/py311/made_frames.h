/* Makes the frames of Python calls. With an evaluation hook installed, the
 * interpreter takes a long way to each Python function: through four C
 * functions, of which the last makes the frame for arguments of any kind.
 * frame_hook.c puts a function of its own at the address by which a Python
 * function is called. That function makes the frame with the functions of this
 * file, evaluates the frame and clears it, as the interpreter does for calls
 * inside its loop. Other than simple calls take the long way.
 *
 * Inside its loop the interpreter moves the references to the function and its
 * arguments from the caller's value stack into the new frame, and steps over
 * the caches of its CALL. With a hook CALL keeps its references until the call
 * has returned. So if CALL itself calls the function ("directly"), we take the
 * references from the caller's value stack and put None there, which CALL
 * releases afterwards. known.c checks that everything is where we expect it.
 * Call with the GIL held. */
#ifndef VPY_PY311_MADE_FRAMES_H
#define VPY_PY311_MADE_FRAMES_H

#include "vpy.h"

#include <opcode.h>

#pragma GCC visibility push(hidden)

enum {
    /* The flags that decide how a function takes its arguments, and what its
     * call makes. */
    VPY_CALL_FLAGS = CO_OPTIMIZED | CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR |
    CO_COROUTINE | CO_ASYNC_GENERATOR
};

/* Returns whether calling a function makes a generator or a coroutine. */
static inline bool vpy_code_generates(const PyCodeObject *code)
{
    return code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
}

/* Returns whether a function has only positional arguments and runs when it is
 * called. */
static inline bool vpy_code_is_simple(const PyCodeObject *code)
{
    return (code->co_flags & VPY_CALL_FLAGS) == CO_OPTIMIZED &&
           code->co_kwonlyargcount == 0;
}

/* Returns how many words of the thread's stack of frames a call needs. */
static inline size_t vpy_iframe_words(const PyCodeObject *code)
{
    return (size_t)code->co_nlocalsplus + (size_t)code->co_stacksize +
           FRAME_SPECIALS_SIZE;
}

/* Returns how many arguments the function's defaults must give; negative if the
 * call cannot be made here. */
static inline Py_ssize_t vpy_call_missing(const PyFunctionObject *function,
                                          const PyCodeObject *code,
                                          Py_ssize_t given)
{
    Py_ssize_t missing = code->co_argcount - given;

    if (VST_LIKELY(missing == 0))
        return 0;
    return function->func_defaults != NULL &&
                   missing <= PyTuple_GET_SIZE(function->func_defaults)
               ? missing
               : -1;
}

static inline bool vpy_iframe_has_room(const PyThreadState *tstate,
                                       const PyCodeObject *code)
{
    return tstate->datastack_top != NULL &&
           vpy_iframe_words(code) <
               (size_t)(tstate->datastack_limit - tstate->datastack_top);
}

/* Returns whether the frame is at a CALL. Sets *count to the number of
 * arguments, as far as one byte shows it. */
static inline bool vpy_iframe_is_at_call(const vpy_iframe *frame,
                                         Py_ssize_t *count)
{
    _Py_CODEUNIT unit = *frame->prev_instr;
    unsigned number = _Py_OPCODE(unit);

    *count = _Py_OPARG(unit);
    return number == CALL ||
           number - CALL_ADAPTIVE <=
               (unsigned)(CALL_PY_WITH_DEFAULTS - CALL_ADAPTIVE);
}

/* Returns whether the CALL of a frame calls this function with these
 * arguments. C functions also get their arguments from CALL and may pass
 * them on, but not all of them. A method lies below its object, any other
 * callable above a NULL. */
static inline bool vpy_call_is_direct(const vpy_iframe *caller,
                                      const PyFunctionObject *function,
                                      PyObject *const *args, Py_ssize_t given)
{
    Py_ssize_t count;
    size_t above;

    if (caller == NULL)
        return false;
    above = (size_t)(args - caller->localsplus) -
            (size_t)caller->f_code->co_nlocalsplus - 1;
    return above < (size_t)caller->f_code->co_stacksize &&
           vpy_iframe_is_at_call(caller, &count) &&
           args[-1] == (const PyObject *)function &&
           (count == given - 1 || (count == given && args[-2] == NULL));
}

/* Moves the frame behind the caches of its CALL, as the interpreter does when
 * it enters a function in its loop. */
static inline void vpy_iframe_step_over_call(const vpy_iframe *caller)
{
    ((vpy_iframe *)(uintptr_t)caller)->prev_instr += INLINE_CACHE_ENTRIES_CALL;
}

/* Keeps the compiler from using vectors and memset, which take longer for a few
 * items. */
#define VPY_ONE_BY_ONE(i) __asm__ volatile("" : "+r"(i))

/* Makes the frame of a simple call for which there is room. If the call is
 * direct, the frame borrows the function from the caller's CALL. */
static inline vpy_iframe *
vpy_iframe_push(PyThreadState *tstate, PyFunctionObject *function,
                PyCodeObject *code, PyObject *const *args, Py_ssize_t given,
                Py_ssize_t missing, const vpy_iframe *direct_caller)
{
    vpy_iframe *frame = (vpy_iframe *)(void *)tstate->datastack_top;
    int count = code->co_nlocalsplus, i = 0;

    tstate->datastack_top += vpy_iframe_words(code);
    _PyFrame_InitializeSpecials(frame, function, NULL, count);
    if (direct_caller != NULL) {
        vpy_iframe_step_over_call(direct_caller);
        Py_SET_REFCNT(Py_None, Py_REFCNT(Py_None) + given);
        for (; i < given; i++) {
            frame->localsplus[i] = args[i];
            ((PyObject **)(uintptr_t)args)[i] = Py_None;
            VPY_ONE_BY_ONE(i);
        }
    } else {
        Py_INCREF(function);
        for (; i < given; i++)
            frame->localsplus[i] = Py_NewRef(args[i]);
    }
    if (missing != 0) {
        PyObject *defaults = function->func_defaults;
        Py_ssize_t at = PyTuple_GET_SIZE(defaults) - missing;

        for (; i < given + missing; i++)
            frame->localsplus[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, at++));
    }
    for (; i < count; i++) {
        frame->localsplus[i] = NULL;
        VPY_ONE_BY_ONE(i);
    }
    return frame;
}

/* Call if the frame has a frame object. A frame object may outlive the call, in
 * a traceback: then it takes over the frame's references, and this returns
 * true. Otherwise the frame object is freed. */
VST_NOINLINE bool vpy_iframe_hand_over(vpy_iframe *frame, bool is_direct);

/* Clears the frame of a call that has ended. Destructors run while the frame
 * counts as a level of recursion, as in the interpreter. */
static inline void vpy_iframe_pop(PyThreadState *tstate, vpy_iframe *frame,
                                  bool is_direct)
{
    tstate->recursion_remaining--;
    if (VST_LIKELY(frame->frame_obj == NULL) ||
        !vpy_iframe_hand_over(frame, is_direct)) {
        for (int i = 0; i < frame->stacktop; i++)
            Py_XDECREF(frame->localsplus[i]);
        Py_XDECREF(frame->f_locals);
        if (!is_direct)
            Py_DECREF(frame->f_func);
        Py_DECREF(frame->f_code);
    }
    tstate->recursion_remaining++;
    tstate->datastack_top = (PyObject **)(void *)frame;
}

/* Call before the interpreter evaluates a frame that it made in the long way.
 * Returns whether the call is direct; if so, releases the arguments on the
 * caller's value stack. `caller` is the running frame. */
VST_NOINLINE bool vpy_call_release(const vpy_iframe *caller,
                                   const vpy_iframe *frame);

/* stack_depths.c: returns where the arguments of the CALL lie that a frame is
 * at. A method's object is not among them, and lies below. NULL: unknown. */
PyObject **vpy_iframe_arguments(const vpy_iframe *frame);
bool vpy_stack_heights_init(void);

/* Returns whether a running frame, the last on the thread's stack of frames,
 * is equal to a frame that vpy_iframe_push would make for a call of this
 * function. */
bool vpy_iframe_is_as_pushed(const PyThreadState *tstate,
                             const vpy_iframe *frame,
                             const PyFunctionObject *function);

#pragma GCC visibility pop
#endif
