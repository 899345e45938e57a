/* Finds out which engines this Python has, chooses one by name, and runs it.
 * Each engine is a file of its own. The first engine in the list always works.
 * Any other engine may turn out not to work here, before it starts or when it
 * starts: then the first engine records, and users that asked for the other
 * engine by name see one line about that, once. */
#include "calls/engine.h"

#include "base/inside.h"
#include "base/json.h"
#include "base/short_text.h"
#include "program/program.h"
#include "thunks/thunks.h"

#include <stdio.h>
#include <string.h>

static struct vpy_engine_state *const state = &vpy_calls.engine;

const vpy_engine *const vpy_engines[] = {
#if VPY_HAS_MONITORING
    &vpy_engine_monitoring,
#else
    &vpy_engine_profile,
#endif
    &vpy_engine_turbo,
    NULL,
};

int vpy_engines_init(PyObject *module)
{
    for (size_t i = 0; vpy_engines[i] != NULL; i++)
        if (vpy_engines[i]->init != NULL && vpy_engines[i]->init(module) < 0)
            return -1;
    return 0;
}

PyObject *vpy_engine_names(void)
{
    PyObject *list = PyList_New(0);
    PyObject *tuple = NULL;

    for (size_t i = 0; list != NULL && vpy_engines[i] != NULL; i++) {
        PyObject *name = PyUnicode_FromString(vpy_engines[i]->name);
        if (!vpy_append(list, name))
            Py_CLEAR(list);
    }
    if (list != NULL)
        tuple = PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

/* ---- which one is meant ------------------------------------------------- */

static const vpy_engine *engine_find(const char *name)
{
    if (strcmp(name, "auto") == 0)
        return VPY_TURBO_IS_PROVEN ? &vpy_engine_turbo : vpy_engines[0];
    for (size_t i = 0; vpy_engines[i] != NULL; i++)
        if (strcmp(vpy_engines[i]->name, name) == 0)
            return vpy_engines[i];
    return NULL;
}

const char *vpy_engine_name(const char *wanted)
{
    const vpy_engine *engine = engine_find(wanted);

    return engine != NULL ? engine->name : NULL;
}

static void note_trouble(const char *wanted, const char *engine,
                         const char *why)
{
    snprintf(state->missed, sizeof state->missed, "%s", why);
    if (strcmp(wanted, "auto") == 0 || state->has_noted)
        return;
    state->has_noted = true;
    snprintf(state->note, sizeof state->note,
             "vestige: engine %s is not usable here: %.150s; recording with %s",
             engine, why, vpy_engines[0]->name);
}

const vpy_engine *vpy_engine_choose(const vpy_options *options)
{
    const vpy_engine *engine = engine_find(options->engine);
    const char *why = engine->trouble != NULL ? engine->trouble(options) : NULL;

    state->missed[0] = 0;
    if (why == NULL)
        return engine;
    note_trouble(options->engine, engine->name, why);
    return vpy_engines[0];
}

void vpy_engine_note(const char *text)
{
    if (!state->note[0])
        snprintf(state->note, sizeof state->note, "%s", text);
}

PyObject *vpy_engine_take_note(void)
{
    PyObject *text;

    if (!state->note[0])
        Py_RETURN_NONE;
    text = PyUnicode_FromString(state->note);
    state->note[0] = 0;
    return text;
}

/* ---- the one that runs -------------------------------------------------- */

void vpy_engine_prepare(const vpy_options *options)
{
    const vpy_engine *engine = vpy_engine_choose(options);

    if (engine->prepare != NULL)
        engine->prepare(options);
}

void vpy_engine_give_up(void)
{
    for (size_t i = 0; vpy_engines[i] != NULL; i++)
        if (vpy_engines[i]->give_up != NULL)
            vpy_engines[i]->give_up();
    if (vpy_engine_running() == NULL)
        vpy_stacks_restore();
}

/* Returns which calls are not recorded where thunks cannot be used, or NULL. */
static const char *calls_unseen(const vpy_tracer *tracer)
{
    if (!tracer->options.c_functions || vpy_thunks_trouble() == NULL)
        return NULL;
    return VPY_HAS_MONITORING ? "array operators" : "callables";
}

static void put_fallback(vpy_json *json, const char *name, const char *why)
{
    vpy_json_key(json, name, strlen(name));
    vpy_json_string(json, why, strlen(why), VPY_MESSAGE_MAX);
}

static bool has_fallbacks(const char *unseen)
{
    bool has = state->missed[0] != 0 || unseen != NULL;

    for (int i = VPY_PART_TURBO + 1; i < VPY_PARTS; i++)
        has |= vpy_part_trouble((vpy_part)i) != NULL;
    return has;
}

/* Writes metadata for `vestige info`: which parts fell back, and why. Takes
 * pages of the stack that a short process does not need otherwise. */
static VST_NOINLINE void note_fallbacks(vpy_tracer *tracer, const char *unseen)
{
    char text[8192];
    vpy_json json;

    json.length = 0;
    if (state->missed[0])
        put_fallback(&json, "turbo", state->missed);
    if (unseen != NULL)
        put_fallback(&json, unseen, vpy_thunks_trouble());
    for (int i = VPY_PART_TURBO + 1; i < VPY_PARTS; i++) {
        const char *why = vpy_part_trouble((vpy_part)i);
        if (why != NULL)
            put_fallback(&json, vpy_part_name((vpy_part)i), why);
    }
    snprintf(text, sizeof text, "{%.*s}", (int)json.length, json.bytes);
    vst_recording_set_metadata(tracer->recording, "vestige.fallbacks", text);
}

static void set_running(const vpy_engine *engine)
{
    __atomic_store_n(&state->running, engine, __ATOMIC_RELAXED);
}

static bool try_start(const vpy_engine *engine, vpy_tracer *tracer)
{
    tracer->engine = engine;
    /* before `start`, because a fork may come before it returns */
    set_running(engine);
    if (engine->start(tracer))
        return true;
    tracer->engine = NULL;
    set_running(NULL);
    return false;
}

bool vpy_engine_start(vpy_tracer *tracer)
{
    const vpy_engine *engine = vpy_engine_choose(&tracer->options);
    bool started = try_start(engine, tracer);
    bool had_noted = state->has_noted;
    const char *unseen;
    vst__short_text text;
    char json[64];

    if (!started && engine != vpy_engines[0]) {
        note_trouble(tracer->options.engine, engine->name,
                     vpy_calls.tracer.message);
        vpy_calls.tracer.message[0] = 0;
        started = try_start(vpy_engines[0], tracer);
    }
    if (!started && !had_noted) {
        state->has_noted = false; /* no engine records, so the error says why */
        state->note[0] = 0;
    }
    if (!started)
        return false;
    vpy_stacks_make_room();
    text = vst__short_text_in(json, sizeof json);
    vst__put_word(&text, "\"");
    vst__put_word(&text, tracer->engine->name);
    vst__put_word(&text, "\"");
    vst_recording_set_metadata(tracer->recording, "vestige.engine", json);
    unseen = calls_unseen(tracer);
    if (has_fallbacks(unseen))
        note_fallbacks(tracer, unseen);
    return true;
}

void vpy_engine_go_live(void)
{
#if VPY_HAS_MONITORING
    vpy_monitoring_go_live();
#endif
}

void vpy_engine_stop(vpy_tracer *tracer)
{
    if (tracer->engine != NULL)
        tracer->engine->stop(tracer);
    tracer->engine = NULL;
    set_running(NULL);
    if (!vpy_thunks_are_passed_on())
        vpy_stacks_restore();
}

void vpy_engine_native_defined(PyTypeObject *owner)
{
    const vpy_engine *engine = vpy_engine_running();

    if (engine != NULL && engine->native_defined != NULL)
        engine->native_defined(owner);
}

void vpy_engine_check_thread(void)
{
    const vpy_engine *engine = vpy_engine_running();

    if (engine != NULL && engine->check_thread != NULL)
        engine->check_thread();
}

/* Warns once on a Python that is newer than all tested versions; recording
 * still works. */
int vpy_engine_warn_if_unproven(void)
{

    if (VPY_IS_PROVEN || state->has_warned)
        return 0;
    state->has_warned = true;
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                            "vestige's hooks are not proven on Python %d.%d "
                            "yet: calls may be missing from the trace",
                            PY_MAJOR_VERSION, PY_MINOR_VERSION);
}

const vpy_engine *vpy_engine_running(void)
{
    return __atomic_load_n(&state->running, __ATOMIC_RELAXED);
}

PyObject *vpy_engine_hooks_in_place(PyObject *module, PyObject *unused)
{
    size_t count = 0;

    (void)module, (void)unused;
    for (size_t i = 0; vpy_engines[i] != NULL; i++)
        if (vpy_engines[i]->hooks_in_place != NULL)
            count += vpy_engines[i]->hooks_in_place();
    return PyLong_FromSize_t(count);
}

/* Returns {"auto": name, engine: why it cannot be used here, or None, ...}. */
PyObject *vpy_engine_choices(PyObject *module, PyObject *unused)
{
    const vpy_options options = {0};
    PyObject *choices = Py_BuildValue("{ss}", "auto", vpy_engine_name("auto"));

    (void)module, (void)unused;
    for (size_t i = 0; choices != NULL && vpy_engines[i] != NULL; i++) {
        const vpy_engine *engine = vpy_engines[i];
        const char *why =
            engine->trouble != NULL ? engine->trouble(&options) : NULL;
        PyObject *text = Py_BuildValue("z", why);
        if (text == NULL ||
            PyDict_SetItemString(choices, engine->name, text) < 0)
            Py_CLEAR(choices);
        Py_XDECREF(text);
    }
    return choices;
}
