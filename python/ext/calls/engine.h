/* Engines: the ways in which the interpreter reports calls. engine.c knows
 * which engines this Python has, and runs one of them for the tracer. */
#ifndef VPY_CALLS_ENGINE_H
#define VPY_CALLS_ENGINE_H

#include "calls/tracer.h"

#pragma GCC visibility push(hidden)

typedef struct vpy_engine {
    const char *name;
    int (*init)(PyObject *module); /* NULL: no preparation is needed */
    /* Why this engine cannot be used here, or NULL if it can. The function is
     * NULL for an engine that always works. */
    const char *(*trouble)(const vpy_options *options);
    /* Does slow work before a recording starts; may be NULL. give_up undoes it
     * if the recording does not start, or starts with another engine. */
    void (*prepare)(const vpy_options *options);
    void (*give_up)(void);
    /* Returns false with vpy_calls.tracer.message set. */
    bool (*start)(vpy_tracer *tracer);
    void (*stop)(vpy_tracer *tracer);
    /* Called when a C function bound to an object of this type got its id; may
     * be NULL. */
    void (*native_defined)(PyTypeObject *owner);
    /* Called by threads of the program now and then: puts hooks back that other
     * code removed; may be NULL. */
    void (*check_thread)(void);
    /* returns how many hooks are in place; may be NULL */
    size_t (*hooks_in_place)(void);
} vpy_engine;

extern const vpy_engine vpy_engine_profile;    /* py311/ */
extern const vpy_engine vpy_engine_monitoring; /* from 3.12 on */
extern const vpy_engine vpy_engine_turbo;

/* The engines of this Python, ended by NULL. The first engine always works, and
 * records if another engine cannot. */
extern const vpy_engine *const vpy_engines[];

int vpy_engines_init(PyObject *module);
PyObject *vpy_engine_names(void); /* a tuple */
/* NULL: there is no such engine */
const char *vpy_engine_name(const char *wanted);
/* Returns the engine that records with these options. */
const vpy_engine *vpy_engine_choose(const vpy_options *options);
/* Returns a line for the user if the wanted engine cannot be used here, else
 * None. Returns each line once, as a str. */
PyObject *vpy_engine_take_note(void);
/* Sets the line for the user, unless there is one already. */
void vpy_engine_note(const char *text);
void vpy_engine_prepare(const vpy_options *options);
/* Undoes what was prepared and not started. */
void vpy_engine_give_up(void);
int vpy_engine_warn_if_unproven(void);
bool vpy_engine_start(vpy_tracer *tracer);
void vpy_engine_go_live(void); /* call once functions get their ids */
void vpy_engine_stop(vpy_tracer *tracer);
const vpy_engine *vpy_engine_running(void); /* NULL: none */

/* These two do nothing while no engine runs. */
void vpy_engine_native_defined(PyTypeObject *owner);
void vpy_engine_check_thread(void);

/* The function hooks_in_place() of the module. */
PyObject *vpy_engine_hooks_in_place(PyObject *module, PyObject *unused);
/* The function engine_choices() of the module. */
PyObject *vpy_engine_choices(PyObject *module, PyObject *unused);

/* ---- engine_turbo.c ------------------------------------------------------ */

/* Why thunks cannot be used here, or NULL if they can. */
const char *vpy_thunks_trouble(void);

/* ---- safe_thunks.c ------------------------------------------------------- */

/* For the safe engines, which call vpy_thunks_stop() and vpy_thunks_give_up()
 * themselves. */
void vpy_safe_thunks_prepare(const vpy_options *options);
void vpy_safe_thunks_start(const vpy_options *options);

/* ---- engine_monitoring.c ------------------------------------------------ */

/* Places the hooks of the monitoring engine; `native`: also those for C
 * functions. */
bool vpy_monitoring_start(vpy_tracer *tracer, bool native);
void vpy_monitoring_stop(vpy_tracer *tracer);
/* Removes the hooks that vpy_monitoring_stop() kept for a next recording, if
 * that recording does not come. */
void vpy_monitoring_give_up(void);
/* From now on a function without an id is left out. */
void vpy_monitoring_go_live(void);
/* Call when a function gets its id. */
#if VPY_UNWINDS_LOCALLY
void vpy_monitoring_code_defined(PyObject *code);
#else
static inline void vpy_monitoring_code_defined(PyObject *code)
{
    (void)code;
}
#endif

#pragma GCC visibility pop
#endif
