/* Computes how high the value stack of a frame is at each CALL, which is where
 * the arguments of the call begin. The interpreter keeps the height in a
 * register while it runs a frame, so we compute it from the code, as the
 * compiler did. A code object gets its table when a function is first called
 * from it in the long way (made_frames.h). Call with the GIL held. */
#include "py311/made_frames.h"

#include "py311/state.h"

#define Py_BUILD_CORE 1
#define NEED_OPCODE_TABLES
#pragma GCC visibility push(hidden)
#include <internal/pycore_opcode.h>
#pragma GCC visibility pop
#undef Py_BUILD_CORE
#include <stdlib.h>
#include <string.h>
#include <vestige/memory.h>

enum {
    UNKNOWN = UINT8_MAX,
    PASSES =
        8 /* limit for passes over the code; jumps back need more than one */
};

typedef struct flow {
    const _Py_CODEUNIT *units;
    uint8_t *heights;
    int count;
    bool has_changed, is_wrong;
} flow;

static void depths_reach(flow *f, int at, int height)
{
    if (at < 0 || at >= f->count || height < 0 || height >= UNKNOWN)
        f->is_wrong = true;
    else if (f->heights[at] == UNKNOWN) {
        f->heights[at] = (uint8_t)height;
        f->has_changed = true;
    } else if (f->heights[at] != height) {
        f->is_wrong = true;
    }
}

static bool depths_jumps(int number)
{
    return _PyOpcode_Jump[number / 32] >> number % 32 & 1;
}

static bool jumps_back(int number)
{
    return number == JUMP_BACKWARD || number == JUMP_BACKWARD_NO_INTERRUPT ||
           (number >= POP_JUMP_BACKWARD_IF_NOT_NONE &&
            number <= POP_JUMP_BACKWARD_IF_TRUE);
}

static bool never_goes_on(int number)
{
    return number == RETURN_VALUE || number == RAISE_VARARGS ||
           number == RERAISE || number == JUMP_FORWARD ||
           number == JUMP_BACKWARD || number == JUMP_BACKWARD_NO_INTERRUPT;
}

static void depths_pass(flow *f)
{
    int argument = 0, next;

    for (int i = 0; i < f->count && !f->is_wrong; i = next) {
        int number = _PyOpcode_Deopt[_Py_OPCODE(f->units[i])];
        int height = f->heights[i];

        argument = argument << 8 | _Py_OPARG(f->units[i]);
        next = i + 1 + _PyOpcode_Caches[number];
        if (height != UNKNOWN && depths_jumps(number))
            depths_reach(f,
                         jumps_back(number) ? next - argument : next + argument,
                         height + PyCompile_OpcodeStackEffectWithJump(
                                      number, argument, true));
        if (height != UNKNOWN && !never_goes_on(number))
            depths_reach(f, next,
                         height + PyCompile_OpcodeStackEffectWithJump(
                                      number, argument, false));
        if (number != EXTENDED_ARG)
            argument = 0;
    }
}

/* Reads a number of the table of exceptions, which has six bits a byte. */
static int read_number(const unsigned char **at)
{
    int number = **at & 63;

    while (*(*at)++ & 64)
        number = number << 6 | (**at & 63);
    return number;
}

static void reach_handlers(flow *f, PyObject *table)
{
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(table);
    const unsigned char *end = at + PyBytes_GET_SIZE(table);

    while (at < end) {
        int target, height;

        read_number(&at); /* skip the begin and the length of the range */
        read_number(&at);
        target = read_number(&at);
        height = read_number(&at); /* bit 0: the instruction is pushed, too */
        depths_reach(f, target, (height >> 1) + (height & 1) + 1);
    }
}

static uint8_t *make_heights(const PyCodeObject *code)
{
    flow f = {.units = _PyCode_CODE(code), .count = (int)Py_SIZE(code)};

    f.heights = malloc((size_t)f.count);
    if (f.heights == NULL)
        return NULL;
    memset(f.heights, UNKNOWN, (size_t)f.count);
    depths_reach(&f, 0, vpy_code_generates(code));
    reach_handlers(&f, code->co_exceptiontable);
    for (int i = 0; i < PASSES && f.has_changed && !f.is_wrong; i++) {
        f.has_changed = false;
        depths_pass(&f);
    }
    if (f.is_wrong)
        memset(f.heights, UNKNOWN, (size_t)f.count);
    return f.heights;
}

bool vpy_stack_heights_init(void)
{
    if (vpy_py311.depths.extra_index < 0)
        vpy_py311.depths.extra_index = _PyEval_RequestCodeExtraIndex(free);
    return vpy_py311.depths.extra_index >= 0;
}

/* Returns NULL if memory ran out. */
static uint8_t *keep_heights(PyCodeObject *code)
{
    uint8_t *heights;

    vst_memory_enter(); /* the table's memory is not the program's */
    heights = make_heights(code);
    if (heights != NULL &&
        vpy_code_set_extra((PyObject *)code, vpy_py311.depths.extra_index,
                           heights) < 0) {
        PyErr_Clear();
        free(heights);
        heights = NULL;
    }
    vst_memory_leave();
    return heights;
}

PyObject **vpy_iframe_arguments(const vpy_iframe *frame)
{
    PyCodeObject *code = frame->f_code;
    uint8_t *heights = (uint8_t *)vpy_code_get_extra(
        (PyObject *)code, vpy_py311.depths.extra_index);
    int instruction = vpy_iframe_instruction(frame);

    if (heights == NULL)
        heights = keep_heights(code);
    if (heights == NULL)
        return NULL;
    return heights[instruction] == UNKNOWN
               ? NULL
               : (PyObject **)(uintptr_t)frame->localsplus +
                     code->co_nlocalsplus + heights[instruction];
}
