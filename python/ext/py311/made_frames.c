/* Handles what rarely happens to a frame that we made: see made_frames.h. Call
 * with the GIL held. */
#include "py311/made_frames.h"

#include <string.h>

/* Returns the frame object of the caller, a new reference; NULL if memory ran
 * out. Mostly the caller has a frame object already, because an exception has
 * passed it. */
static PyFrameObject *find_back(PyFrameObject *object, const vpy_iframe *caller)
{
    PyObject *type, *value, *traceback;
    PyFrameObject *back;

    while (caller != NULL &&
           vpy_iframe_is_incomplete(caller, vpy_iframe_instruction(caller)))
        caller = caller->previous;
    if (caller == NULL)
        return NULL;
    if (VST_LIKELY(caller->frame_obj != NULL))
        return (PyFrameObject *)Py_NewRef(caller->frame_obj);
    PyErr_Fetch(&type, &value, &traceback);
    back = PyFrame_GetBack(object);
    PyErr_Restore(type, value, traceback);
    return back;
}

/* Copies the frame into its frame object. A frame that did not reach its first
 * traceable instruction is shown at that instruction. */
static void take_over(PyFrameObject *object, const vpy_iframe *frame)
{
    vpy_iframe *copy = (vpy_iframe *)(void *)object->_f_frame_data;
    PyCodeObject *code = frame->f_code;

    memcpy(copy, frame,
           offsetof(vpy_iframe, localsplus) +
               (size_t)frame->stacktop * sizeof(PyObject *));
    object->f_frame = copy;
    copy->owner = FRAME_OWNED_BY_FRAME_OBJECT;
    if (vpy_iframe_instruction(copy) < code->_co_firsttraceable)
        copy->prev_instr = _PyCode_CODE(code) + code->_co_firsttraceable;
    object->f_back = find_back(object, copy->previous);
    copy->previous = NULL;
    if (!PyObject_GC_IsTracked((PyObject *)object))
        PyObject_GC_Track(object);
}

bool vpy_iframe_hand_over(vpy_iframe *frame, bool is_direct)
{
    PyFrameObject *object = frame->frame_obj;
    bool outlives = Py_REFCNT(object) > 1;

    frame->frame_obj = NULL;
    if (outlives) {
        if (is_direct)
            Py_INCREF(frame->f_func);
        take_over(object, frame);
    }
    Py_DECREF(object);
    return outlives;
}

bool vpy_call_release(const vpy_iframe *caller, const vpy_iframe *frame)
{
    PyObject **args;
    Py_ssize_t count;

    if (caller == NULL || !vpy_iframe_is_at_call(caller, &count))
        return false;
    args = vpy_iframe_arguments(caller);
    if (args == NULL)
        return false;
    if (args[-2] != NULL) {
        args--;
        count++;
    }
    if (args[-1] != (PyObject *)frame->f_func)
        return false;
    vpy_iframe_step_over_call(caller);
    for (Py_ssize_t i = 0; i < count; i++)
        Py_SETREF(args[i], Py_NewRef(Py_None));
    return true;
}

/* ---- whether we know them ------------------------------------------------ */

/* Compares the field between two others with a known address; only then reads
 * the memory behind the first field. */
static bool stack_is_known(const PyThreadState *tstate, const void *top)
{
    const char *chunk = (const char *)tstate->datastack_chunk;
    const char *limit = (const char *)tstate->datastack_limit;

    return tstate->datastack_top == top && chunk < (const char *)top &&
           (const char *)top <= limit &&
           (size_t)(limit - chunk) == tstate->datastack_chunk->size;
}

bool vpy_iframe_is_as_pushed(const PyThreadState *tstate,
                             const vpy_iframe *frame,
                             const PyFunctionObject *function)
{
    const PyCodeObject *code = frame->f_code;
    const void *end =
        (PyObject *const *)(const void *)frame + vpy_iframe_words(code);

    return stack_is_known(tstate, end) &&
           function->vectorcall == _PyFunction_Vectorcall &&
           (PyObject *)code == function->func_code &&
           frame->f_func == function &&
           frame->f_globals == function->func_globals &&
           frame->f_builtins == function->func_builtins &&
           frame->f_locals == NULL && frame->owner == FRAME_OWNED_BY_THREAD &&
           code->co_argcount == 2 && code->co_nlocalsplus == 2 &&
           vpy_code_is_simple(code) && function->func_defaults == NULL;
}
