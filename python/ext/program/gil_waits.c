/* Records waits for the GIL. The interpreter waits for the GIL by
 * pthread_cond_timedwait on a condition inside one of its structures;
 * record/language_lock.h has the hooks that record the waits. This file finds
 * the structure: a thread of ours asks for the GIL while we hold it, which
 * shows the condition's address. We then check the fields around the condition,
 * and use the structure only if all are as expected.
 *
 * While nobody waits for the GIL, no hook is called. */
#include "program/program.h"

#include "compat_interpreter.h"

#if VPY_KNOWS_GIL

static struct vpy_gil_waits_state *const state = &vpy_program.gil_waits;

static const vpy_waits waits = {vst__lock_hook, &vpy_program.gil_waits.lock,
                                VST_WAITS_METADATA};

/* Runs without the GIL, and asks for it. */
static void *ask_for_gil(void *unused)
{
    PyGILState_STATE gil;

    (void)unused;
    vst__lock_learn(&state->condition);
    gil = PyGILState_Ensure();
    vst__lock_learn(NULL);
    PyGILState_Release(gil);
    return NULL;
}

static unsigned long switch_interval(void)
{
    PyObject *function = PySys_GetObject("getswitchinterval"); /* borrowed */
    PyObject *seconds = function != NULL ? PyObject_CallNoArgs(function) : NULL;
    double value = seconds != NULL ? PyFloat_AsDouble(seconds) : -1;

    Py_XDECREF(seconds);
    PyErr_Clear();
    return value >= 0 ? (unsigned long)(value * 1e6 + 0.5) : 0;
}

/* Returns whether the structure around the condition is the GIL, which we
 * hold. */
static bool is_gil(const vpy_gil *gil)
{
    return *vpy_gil_is_held(gil) == 1 &&
           vpy_gil_last_holder(gil) == PyThreadState_Get() &&
           gil->interval == switch_interval();
}

static const char *find_gil(void)
{
    const char *found = "the GIL is not where it should be";
    const void *seen;
    pthread_t thread;

    if (!vpy_wait_trial_start(&thread, ask_for_gil))
        return "no thread could be started to find the GIL";
    seen = vpy_wait_trial_learn(&state->condition);
    if (seen == NULL) {
        found = "the interpreter waits for the GIL in an unknown way";
    } else {
        const vpy_gil *gil =
            (const void *)((const char *)seen - offsetof(vpy_gil, cond));

        if (is_gil(gil)) {
            state->lock = (vst_lock){
                .condition = seen,
                .given_condition = vpy_gil_switch_condition(gil),
                .is_held = vpy_gil_is_held(gil),
                .holder = (const uintptr_t *)(const void *)&gil->last_holder,
            };
            found = NULL;
        }
    }
    Py_BEGIN_ALLOW_THREADS;
    pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS;
    return found;
}

void vpy_gil_waits_prepare(void)
{
    if (state->is_tried)
        return;
    state->is_tried = true;
    state->trouble =
        vpy_waits_hook(vst__lock_hook) ? find_gil() : VPY_WAITS_NO_HOOK;
    vst__lock_unhook();
}

void vpy_gil_waits_begin(vpy_tracer *tracer)
{
    vpy_waits_begin(tracer, &waits, state->trouble);
}

void vpy_gil_waits_end(void)
{
    vst__lock_watch(NULL);
    vst__lock_unhook();
}

const char *vpy_gil_waits_trouble(void)
{
    return state->trouble;
}

#else

void vpy_gil_waits_prepare(void)
{
}

void vpy_gil_waits_begin(vpy_tracer *tracer)
{
    char json[128];

    snprintf(json, sizeof json, "\"%s\"", vpy_gil_waits_trouble());
    vst_recording_set_metadata(tracer->recording, VST_WAITS_METADATA, json);
}

void vpy_gil_waits_end(void)
{
}

const char *vpy_gil_waits_trouble(void)
{
    return VPY_FREE_THREADED ? "there is no GIL"
                             : "this version of Python is not known";
}

#endif
