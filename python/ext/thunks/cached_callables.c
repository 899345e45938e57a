/* Makes the interpreter call len, isinstance and list.append. It has special
 * instructions for these three, which call nothing: they compare the callable
 * with an object that the interpreter keeps. While recording we replace the
 * kept objects, so that the instructions fall back to ordinary calls. They
 * would stay ordinary calls afterwards. So we note the places from which the
 * three are called meanwhile, and when recording stops we make the interpreter
 * specialize these places again. Before turbo starts, base/inside.c has found
 * the three objects, and base/inside_code.c has checked the numbers of the
 * instructions. Call with the GIL held. */
#include "thunks/thunks.h"

#include "base/inside.h"
#include "compat_interpreter.h"
#include "thunks/watched_methods.h"

#if VPY_KNOWS_INSIDE

#include <opcode.h>
#include <stdlib.h>
#include <string.h>
#include <vestige/memory.h>

static struct vpy_cached_callables_state *const state = &vpy_thunks.cached;

enum { PLACES_MAX = 16384 };

typedef struct vpy_cached_place {
    uintptr_t address; /* address of the instruction; 0: the entry is empty */
    PyObject *code;    /* weak reference */
    int instruction;
} place;

/* ---- from where they are called ---------------------------------------- */

static place *cached_place_of(place *table, size_t mask, uintptr_t address)
{
    size_t i = (address >> 1 ^ address >> 9) & mask;

    while (table[i].address && table[i].address != address)
        i = (i + 1) & mask;
    return &table[i];
}

static bool cached_make_room(void)
{
    size_t mask = state->places != NULL ? state->places_mask * 2 + 1 : 255;
    place *table;

    if (state->places != NULL && state->places_used * 2 <= state->places_mask)
        return true;
    table = state->places_used < PLACES_MAX ? calloc(mask + 1, sizeof *table)
                                            : NULL;
    if (table == NULL)
        return false;
    for (size_t i = 0; state->places != NULL && i <= state->places_mask; i++)
        if (state->places[i].address)
            *cached_place_of(table, mask, state->places[i].address) =
                state->places[i];
    free(state->places);
    state->places = table;
    state->places_mask = mask;
    return true;
}

void vpy_cached_call_note(const vpy_iframe *frame, uintptr_t address)
{
    PyObject *type, *value, *traceback, *code;
    place *at =
        state->places != NULL
            ? cached_place_of(state->places, state->places_mask, address)
            : NULL;

    *vpy_cached_call(address) = address;
    /* The code object at this address may be a later one. */
    if ((at != NULL && at->address && !vpy_weakref_is_dead(at->code)) ||
        !cached_make_room())
        return;
    PyErr_Fetch(&type, &value, &traceback);
    vst_memory_enter(); /* do not record the memory of our table */
    code = vpy_weakref_new((PyObject *)vpy_iframe_code(frame));
    vst_memory_leave();
    at = cached_place_of(state->places, state->places_mask, address);
    if (code != NULL) {
        state->places_used += !at->address;
        Py_XDECREF(at->code);
        *at = (place){address, code, vpy_iframe_instruction(frame)};
    }
    PyErr_Restore(type, value, traceback);
}

static bool is_plain_call(unsigned char number)
{
    static const unsigned char plain[] = {VPY_PLAIN_CALLS};

    return memchr(plain, number, sizeof plain) != NULL;
}

/* Makes the interpreter specialize the call at a place again. An instruction is
 * two bytes, opcode and argument; behind a call lies a counter, and at 0 the
 * interpreter specializes the call. */
static void decide_again(const place *at)
{
    PyObject *code = vpy_weakref_get(at->code);
    unsigned char *instruction;

    if (code == NULL)
        return;
    instruction = (unsigned char *)((PyCodeObject *)code)->co_code_adaptive +
                  2 * (size_t)at->instruction;
    if (is_plain_call(instruction[0])) {
        instruction[2] = instruction[3] = 0;
        instruction[0] = VPY_UNDECIDED_CALL;
    }
    Py_DECREF(code);
}

static void forget_places(void)
{
    for (size_t i = 0; state->places != NULL && i <= state->places_mask; i++)
        if (state->places[i].address) {
            decide_again(&state->places[i]);
            Py_DECREF(state->places[i].code);
        }
    free(state->places);
    state->places = NULL;
    state->places_mask = state->places_used = 0;
    memset(state->calls, 0, sizeof state->calls);
}

/* ---- what the interpreter has noted ------------------------------------ */

static PyMethodDef *definition_of(PyObject *callable)
{
    if (callable != NULL && PyCFunction_Check(callable))
        return ((PyCFunctionObject *)callable)->m_ml;
    if (callable != NULL && Py_IS_TYPE(callable, &PyMethodDescr_Type))
        return ((PyMethodDescrObject *)callable)->d_method;
    return NULL;
}

bool vpy_is_cached_callable(const PyMethodDef *method)
{
    PyObject **found[VPY_CALLABLES];

    vpy_callables_find(PyThreadState_Get()->interp, found);
    for (size_t i = 0; i < VPY_CALLABLES; i++)
        if (definition_of(state->interpreter != NULL ? state->noted[i]
                                                     : *found[i]) == method)
            return true;
    return false;
}

#if VPY_CALLS_OF_C_ARE_FEW
/* Replaces len. The special instruction for len uses nothing of the recursion
 * limit, but an ordinary call does, and would end a recursion through __len__
 * early. So the function gives back meanwhile what its call used. */
static PyObject *through_len(PyObject *self, PyObject *object)
{
    int *left = vpy_c_recursion_left(vpy_thread_state());
    PyObject *result;

    ++*left;
    result = state->len.original(self, object);
    --*left;
    return result;
}

static void watch_len(PyObject *len)
{
    PyMethodDef *method = definition_of(len);

    if (method != NULL && vpy_base.inside.works[VPY_PART_BOTTOM])
        vpy_watch(&state->len, method, METH_O, through_len);
}

static void unwatch_len(void)
{
    vpy_unwatch(&state->len);
}
#else
static void watch_len(PyObject *len)
{
    (void)len;
}

static void unwatch_len(void)
{
}
#endif

void vpy_cached_callables_hide(void)
{
    PyObject **found[VPY_CALLABLES];

    if (state->interpreter != NULL)
        return;
    state->interpreter = PyThreadState_Get()->interp;
    vpy_callables_find(state->interpreter, found);
    for (size_t i = 0; i < VPY_CALLABLES; i++) {
        state->noted[i] = *found[i];
        *found[i] = Py_None; /* Py_None, which nobody can call */
    }
    watch_len(state->noted[0]);
}

void vpy_cached_callables_show(void)
{
    PyObject **found[VPY_CALLABLES];

    if (state->interpreter == NULL)
        return;
    vpy_callables_find(state->interpreter, found);
    for (size_t i = 0; i < VPY_CALLABLES; i++)
        if (*found[i] == Py_None)
            *found[i] = state->noted[i];
    state->interpreter = NULL;
    unwatch_len();
    forget_places();
}

#else

void vpy_cached_callables_hide(void)
{
}

void vpy_cached_callables_show(void)
{
}

bool vpy_is_cached_callable(const PyMethodDef *method)
{
    (void)method;
    return false;
}
#endif
