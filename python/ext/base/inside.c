/* Checks what we know of the interpreter's internals. Frames are checked in
 * inside_frames.c, the numbers of instructions in inside_code.c, and the rest
 * here. This file also has the table of all facts, and of the facts that each
 * part of vestige needs. Called with the GIL held. */
#include "base/inside.h"

#include "compat_interpreter.h"
#include "compat_py311.h"

#include <stdio.h>
#include <string.h>

struct vpy_base_state vpy_base;

static struct vpy_inside_state *const state = &vpy_base.inside;

/* Each fact's name, and what to say of a Python for which the fact does not
 * hold. */
static const struct {
    const char *name, *otherwise;
} facts[VPY_FACTS] = {
    [VPY_FACT_VERSION] = {"version", "is a version that it does not know"},
    [VPY_FACT_SIZES] = {"sizes", "has objects of other sizes"},
    [VPY_FACT_EXTRAS] = {"extras", "keeps extras of code objects elsewhere"},
    [VPY_FACT_THREAD] = {"thread", "has another layout of thread states"},
    [VPY_FACT_FRAME_OBJECT] = {"frame object", "has other frame objects"},
    [VPY_FACT_RUNNING] = {"running frame", "keeps the running frame elsewhere"},
    [VPY_FACT_FRAME] = {"frame", "has another layout of frames"},
    [VPY_FACT_COROUTINE] = {"coroutine", "keeps coroutine frames elsewhere"},
    [VPY_FACT_RECURSION] = {"recursion", "counts recursion elsewhere"},
    [VPY_FACT_CALLS] = {"calls", "makes frames of calls in another way"},
    [VPY_FACT_CALLABLES] = {"callables",
                            "keeps len, isinstance and list.append elsewhere"},
    [VPY_FACT_INSTRUCTIONS] = {"instructions",
                               "has other numbers of instructions"},
    [VPY_FACT_COLLECTOR] = {"collector", "counts young objects elsewhere"},
    [VPY_FACT_WRAPPERS] = {"wrappers", "has another layout of static methods"},
    [VPY_FACT_FUNCTIONS] = {"functions", "has other built-in functions"},
};

#define FACT(name) (1u << VPY_FACT_##name)
#define ABOUT_FRAMES                                                           \
    (FACT(VERSION) | FACT(SIZES) | FACT(THREAD) | FACT(FRAME_OBJECT) |         \
     FACT(RUNNING) | FACT(FRAME))

/* Without sys.monitoring the safe engine changes thread states and reads the
 * frames that the profile hook receives. */
static const struct {
    const char *name;
    unsigned needs; /* a bit for each fact */
} parts[VPY_PARTS] = {
    [VPY_PART_RECORDING] = {"recording",
                            FACT(EXTRAS) |
                                (VPY_HAS_MONITORING ? 0 : ABOUT_FRAMES)},
    [VPY_PART_TURBO] = {"turbo", ABOUT_FRAMES | FACT(EXTRAS) | FACT(CALLABLES) |
                                     FACT(INSTRUCTIONS) | FACT(WRAPPERS) |
                                     FACT(FUNCTIONS)},
    [VPY_PART_ENTRIES] = {"entries",
                          VPY_MAKES_FRAMES
                              ? ABOUT_FRAMES | FACT(RECURSION) | FACT(CALLS)
                              : 0},
    [VPY_PART_TRACEBACKS] = {"tracebacks", ABOUT_FRAMES},
    [VPY_PART_MEMORY] = {"memory", ABOUT_FRAMES},
    [VPY_PART_ARGUMENTS] = {"arguments", ABOUT_FRAMES},
    [VPY_PART_TASKS] = {"tasks", ABOUT_FRAMES | FACT(COROUTINE)},
    [VPY_PART_BOTTOM] = {"bottom", ABOUT_FRAMES | FACT(RECURSION)},
    [VPY_PART_EXITS] = {"exits", FACT(FUNCTIONS)},
    [VPY_PART_COLLECTOR] = {"collector", FACT(VERSION) | FACT(COLLECTOR)},
};

/* ---- facts that need only Python's public headers ------------------------ */

static bool inside_wraps(PyObject *wrapper, PyObject *wrapped)
{
    return wrapper != NULL &&
           vpy_wrapped_function(VPY_SHIFTED(VPY_FACT_WRAPPERS, wrapper)) ==
               wrapped;
}

static bool wrappers_hold(void)
{
    PyObject *list = PyList_New(0);
    PyObject *of_class = list != NULL ? PyClassMethod_New(list) : NULL;
    PyObject *of_none = list != NULL ? PyStaticMethod_New(list) : NULL;
    bool hold = inside_wraps(of_class, list) && inside_wraps(of_none, list);

    Py_XDECREF(of_class);
    Py_XDECREF(of_none);
    Py_XDECREF(list);
    PyErr_Clear();
    return hold;
}

static PyObject *some_function(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyMethodDef some_method = {"some", some_function, METH_NOARGS, NULL};

static bool functions_hold(void)
{
    PyObject *function = PyCFunction_New(&some_method, Py_None);
    PyCFunctionObject *shifted = VPY_SHIFTED(VPY_FACT_FUNCTIONS, function);
    bool hold =
        function != NULL &&
        PyCFunction_Type.tp_vectorcall_offset ==
            (Py_ssize_t)offsetof(PyCFunctionObject, vectorcall) &&
        shifted->m_ml == &some_method && shifted->m_self == Py_None &&
        PyObject_Hash(function) == vpy_function_hash(Py_None, some_function);

    Py_XDECREF(function);
    PyErr_Clear();
    return hold;
}

/* ---- where a thread's C stack is ----------------------------------------- */

#if VPY_KNOWS_INSIDE

static uintptr_t find_stack_end(void)
{
    uintptr_t low = 0;
    size_t size = 0;

    return vpy_stack_find(&low, &size) ? low + size : 0;
}

bool vpy_is_on_stack(const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    return address > here && address < state->stack_end &&
           address % sizeof(void *) == 0;
}

bool vpy_cframe_is_known(const PyThreadState *shifted,
                         const PyThreadState *tstate)
{
    const void *root = vpy_thread_root_cframe(tstate);
    const void *cframe = vpy_thread_cframe(shifted);

    return root == NULL || cframe == root || vpy_is_on_stack(cframe);
}

/* ---- facts about internal structures ------------------------------------- */

static bool sizes_hold(void)
{
    const struct {
        PyTypeObject *type;
        size_t size;
    } known[] = {
        {&PyCode_Type, VPY_CODE_SIZE},
        {&PyFrame_Type, VPY_FRAME_SIZE},
        {&PyCFunction_Type, sizeof(PyCFunctionObject)},
        {&PyMethodDescr_Type, sizeof(PyMethodDescrObject)},
    };
    ptrdiff_t shift = state->shifts[VPY_FACT_SIZES];
    bool hold = true;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        hold = hold &&
               known[i].type->tp_basicsize == (Py_ssize_t)known[i].size + shift;
    return hold;
}

/* A new code object has no extra values: the field must be NULL until one is
 * set. */
static bool extras_hold(void)
{
    PyCodeObject *code = PyCode_NewEmpty("vestige", "test", 1);
    PyCodeObject *shifted = VPY_SHIFTED(VPY_FACT_EXTRAS, code);
    void *mark = (void *)(uintptr_t)0x1234567890;
    bool hold = code != NULL && vpy_code_extras_are_shared() &&
                shifted->co_extra == NULL &&
                vpy_code_set_extra((PyObject *)code, state->code_extra_index,
                                   mark) == 0 &&
                shifted->co_extra != NULL &&
                vpy_code_get_extra((PyObject *)shifted,
                                   state->code_extra_index) == (uintptr_t)mark;

    if (code != NULL)
        vpy_code_set_extra((PyObject *)code, state->code_extra_index, NULL);
    Py_XDECREF(code);
    PyErr_Clear();
    return hold;
}

static bool tracing_is_counted(PyThreadState *tstate,
                               const PyThreadState *shifted)
{
    int before = shifted->tracing;
    bool is_counted;

    PyThreadState_EnterTracing(tstate);
    is_counted = shifted->tracing == before + 1;
    PyThreadState_LeaveTracing(tstate);
    return is_counted && shifted->tracing == before;
}

/* If two fields are where we expect them, so are the fields between them. */
static bool thread_holds(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyThreadState *shifted = VPY_SHIFTED(VPY_FACT_THREAD, tstate);
    bool hold = shifted->interp == PyThreadState_GetInterpreter(tstate) &&
                shifted->id == PyThreadState_GetID(tstate) &&
                shifted->thread_id == PyThread_get_thread_ident() &&
                vpy_thread_state() == tstate &&
                vpy_cframe_is_known(shifted, tstate);

    hold = hold && shifted->native_thread_id == PyThread_get_thread_native_id();
    hold = hold && tracing_is_counted(tstate, shifted);
    return hold &&
           vpy_states_are_counted(tstate->interp,
                                  VPY_SHIFTED(VPY_FACT_THREAD, tstate->interp));
}

#if VPY_COUNTS_YOUNG_OBJECTS
/* Returns whether a function of the module gc returns these three numbers. */
static bool gc_returns(PyObject *gc, const char *name, const int numbers[3])
{
    PyObject *found = gc != NULL ? PyObject_CallMethod(gc, name, NULL) : NULL;
    int three[3] = {0};
    bool same = found != NULL &&
                PyArg_ParseTuple(found, "iii", &three[0], &three[1], &three[2]);

    for (size_t i = 0; i < 3; i++)
        same = same && three[i] == numbers[i];
    Py_XDECREF(found);
    PyErr_Clear();
    return same;
}

static bool switch_is_known(const vpy_collector *collector)
{
    int was_on = PyGC_Disable();
    bool is_known = collector->enabled == 0;

    PyGC_Enable();
    is_known = is_known && collector->enabled == 1;
    if (!was_on)
        PyGC_Disable();
    return is_known;
}

/* Returns whether a function of the module gc returns the numbers of the three
 * generations, of which the first is at `first`. */
static bool are_numbers(PyObject *gc, const char *function, const char *first)
{
    int numbers[3];

    for (size_t i = 0; i < 3; i++)
        numbers[i] =
            *(const int *)(const void *)(first + i * VPY_GENERATION_SIZE);
    return gc_returns(gc, function, numbers);
}
#endif

/* Between 3.13.0 and 3.13.18 the generations have moved by half a word. We try
 * three places, and take the one whose numbers agree with those that the module
 * gc returns. */
static bool collector_holds(void)
{
#if VPY_COUNTS_YOUNG_OBJECTS
    static const ptrdiff_t places[] = {0, -4, 4};
    vpy_collector *collector = VPY_SHIFTED(
        VPY_FACT_COLLECTOR, vpy_collector_of(PyInterpreterState_Get()));
    PyObject *gc = PyImport_ImportModule("gc");

    state->young_count = NULL;
    state->survivors = NULL;
    for (size_t i = 0; i < 3 && state->young_count == NULL; i++) {
        char *at = (char *)collector->generations + places[i];
        char *count = at + VPY_GENERATION_COUNT;
        if (are_numbers(gc, "get_threshold", at + VPY_GENERATION_THRESHOLD) &&
            are_numbers(gc, "get_count", count) && switch_is_known(collector))
            state->young_count = (int *)(void *)count;
        /* Where the generations have moved, so have the fields behind. */
        if (state->young_count != NULL && places[i] == 0)
            state->survivors = &collector->long_lived_total;
    }
    Py_XDECREF(gc);
    PyErr_Clear();
#endif
    return state->young_count != NULL;
}

/* ---- all of them --------------------------------------------------------- */

static bool is_same_version(void)
{
    char version[16];

    snprintf(version, sizeof version, "%d.%d.", PY_MAJOR_VERSION,
             PY_MINOR_VERSION);
    return strncmp(Py_GetVersion(), version, strlen(version)) == 0 &&
           !state->shifts[VPY_FACT_VERSION];
}

/* Checks frames by calling functions. A program that traces this thread does
 * not see these calls. */
static int inside_check_frames(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    bool is_quiet = VPY_HAS_MONITORING || state->holds[VPY_FACT_THREAD];
    int failed;

    if (is_quiet)
        vpy_hook_enter(tstate);
    failed = vpy_inside_check_frames(state->holds);
    if (is_quiet)
        vpy_hook_leave(tstate);
    return failed;
}

static int check_the_inside(void)
{
    state->holds[VPY_FACT_VERSION] = is_same_version();
    if (!state->holds[VPY_FACT_VERSION])
        return 0;
    state->stack_end = find_stack_end();
    state->holds[VPY_FACT_SIZES] = sizes_hold();
    state->holds[VPY_FACT_EXTRAS] = extras_hold();
    state->holds[VPY_FACT_THREAD] = thread_holds();
    state->holds[VPY_FACT_CALLABLES] = vpy_callables_hold();
    state->holds[VPY_FACT_INSTRUCTIONS] =
        state->holds[VPY_FACT_SIZES] && vpy_instructions_hold();
    state->holds[VPY_FACT_COLLECTOR] = collector_holds();
    for (int i = VPY_FACT_FRAME_OBJECT; i <= VPY_FACT_CALLS; i++)
        state->holds[i] =
            state->holds[VPY_FACT_SIZES] && state->holds[VPY_FACT_THREAD];
    return state->holds[VPY_FACT_FRAME] ? inside_check_frames() : 0;
}

#else
static int check_the_inside(void)
{
    state->holds[VPY_FACT_EXTRAS] =
        true; /* read through Python's public interface */
    return 0;
}

#endif

static int check_all(void)
{
    for (size_t i = 0; i < VPY_FACTS; i++)
        state->holds[i] = false;
    state->holds[VPY_FACT_WRAPPERS] = wrappers_hold();
    state->holds[VPY_FACT_FUNCTIONS] = functions_hold();
    return check_the_inside();
}

/* ---- what the facts decide ----------------------------------------------- */

/* Decides which parts work. The first fact that does not hold is the reason
 * that `vestige info` shows. */
static void inside_decide(void)
{
    const char *version = Py_GetVersion();
    bool built_here = strncmp(version, PY_VERSION " ", sizeof PY_VERSION) == 0;
    static const char other[] =
        "vestige was built on Python " PY_VERSION ", and this one";

    for (size_t part = 0; part < VPY_PARTS; part++) {
        state->troubles[part][0] = 0;
        for (unsigned fact = 0; fact < VPY_FACTS && !state->troubles[part][0];
             fact++)
            if (parts[part].needs & 1u << fact && !state->holds[fact])
                snprintf(state->troubles[part], sizeof state->troubles[part],
                         "%s, %.*s, %s", built_here ? "this Python" : other,
                         (int)strcspn(version, " "), version,
                         facts[fact].otherwise);
        state->works[part] = !state->troubles[part][0];
    }
}

bool vpy_thread_states_are_known(void)
{
    return !VPY_KNOWS_INSIDE || state->holds[VPY_FACT_THREAD];
}

const char *vpy_part_name(vpy_part part)
{
    return parts[part].name;
}

const char *vpy_part_trouble(vpy_part part)
{
    return state->works[part] ? NULL : state->troubles[part];
}

/* ---- for Python ---------------------------------------------------------- */

static PyObject *inside_report(PyObject *module, PyObject *unused)
{
    PyObject *about_facts = PyDict_New(), *about_parts = PyDict_New();
    bool failed = about_facts == NULL || about_parts == NULL;

    (void)module, (void)unused;
    for (size_t i = 0; i < VPY_FACTS && !failed; i++)
        failed = PyDict_SetItemString(about_facts, facts[i].name,
                                      state->holds[i] ? Py_True : Py_False) < 0;
    for (int i = 0; i < VPY_PARTS && !failed; i++) {
        PyObject *why = Py_BuildValue("z", vpy_part_trouble((vpy_part)i));
        failed = why == NULL ||
                 PyDict_SetItemString(about_parts, parts[i].name, why) < 0;
        Py_XDECREF(why);
    }
    if (!failed)
        return Py_BuildValue("{sssNsN}", "built_on", PY_VERSION, "facts",
                             about_facts, "parts", about_parts);
    Py_XDECREF(about_facts);
    Py_XDECREF(about_parts);
    return NULL;
}

/* Tests call check_inside with a shift, to see how vestige falls back when a
 * structure has moved. */
static PyObject *check_inside(PyObject *module, PyObject *args)
{
    const char *fact = NULL;
    Py_ssize_t shift = 0;

    if (!PyArg_ParseTuple(args, "|zn:check_inside", &fact, &shift))
        return NULL;
    for (size_t i = 0; i < VPY_FACTS; i++) {
        bool is_named = fact != NULL && strcmp(facts[i].name, fact) == 0;
        state->shifts[i] = is_named ? shift : 0;
    }
    if (check_all() < 0)
        return NULL;
    inside_decide();
    return inside_report(module, NULL);
}

static PyMethodDef functions[] = {
    {"inside", inside_report, METH_NOARGS,
     PyDoc_STR("inside()\n--\n\nWhich facts about the interpreter's "
               "internals hold, and why parts of vestige fall back.")},
    {"check_inside", check_inside, METH_VARARGS,
     PyDoc_STR(
         "check_inside(fact=None, shift=0)\n--\n\nCheck the interpreter's "
         "internals again, and look for one fact `shift` bytes off its place. "
         "The result stays in force.")},
    {NULL, NULL, 0, NULL},
};

int vpy_inside_init(PyObject *module, Py_ssize_t extra_index)
{
    state->code_extra_index = extra_index;
    if (check_all() < 0)
        return -1;
    inside_decide();
    return PyModule_AddFunctions(module, functions);
}
