/* Engines: the ways in which the interpreter reports calls. engine.c knows
 * which ones this Python has, and runs one of them for the tracer. */
#ifndef VPY_CALLS_ENGINE_H
#define VPY_CALLS_ENGINE_H

#include "calls/tracer.h"

#pragma GCC visibility push(hidden)

typedef struct vpy_engine {
    const char *name;
    int (*init)(PyObject *module); /* NULL: nothing to do */
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
    /* A C function bound to an object of this type got its id; may be NULL. */
    void (*native_defined)(PyTypeObject *owner);
    /* Threads of the program call this now and then: it puts hooks back that
     * somebody removed; may be NULL. */
    void (*check_thread)(void);
    size_t (*hooks_in_place)(void); /* how many there are now; may be NULL */
} vpy_engine;

extern const vpy_engine vpy_engine_profile;    /* py311/ */
extern const vpy_engine vpy_engine_monitoring; /* from 3.12 on */
extern const vpy_engine vpy_engine_turbo;

/* The engines of this Python, up to a NULL. The first one always works, and
 * records when another one cannot. */
extern const vpy_engine *const vpy_engines[];

int vpy_engines_init(PyObject *module);
PyObject *vpy_engine_names(void);                /* a tuple */
const char *vpy_engine_name(const char *wanted); /* NULL: there is none */
/* The engine that would record with these options. */
const vpy_engine *vpy_engine_choose(const vpy_options *options);
/* A line for the user if the engine that was asked for cannot be used here;
 * given out once. A str, or None. */
PyObject *vpy_engine_take_note(void);
/* For the user, unless there is something to tell already. */
void vpy_engine_note(const char *text);
void vpy_engine_prepare(const vpy_options *options);
/* Undoes what was prepared and not started. */
void vpy_engine_give_up(void);
int vpy_engine_warn_if_unproven(void);
bool vpy_engine_start(vpy_tracer *tracer);
void vpy_engine_go_live(void); /* once functions get their ids */
void vpy_engine_stop(vpy_tracer *tracer);
const vpy_engine *vpy_engine_running(void); /* NULL: none */

/* These two do nothing while no engine runs. */
void vpy_engine_native_defined(PyTypeObject *owner);
void vpy_engine_check_thread(void);

/* hooks_in_place(), a function of the module. */
PyObject *vpy_engine_hooks_in_place(PyObject *module, PyObject *unused);
/* engine_choices(), a function of the module. */
PyObject *vpy_engine_choices(PyObject *module, PyObject *unused);

/* ---- engine_monitoring.c ------------------------------------------------ */

/* The hooks of the monitoring engine, with those of C functions or without. */
bool vpy_monitoring_start(vpy_tracer *tracer, bool native);
void vpy_monitoring_stop(vpy_tracer *tracer);
/* Removes the hooks that stop() left for a recording that does not follow. */
void vpy_monitoring_give_up(void);
/* From now on functions have their ids: those that have none are left out. */
void vpy_monitoring_go_live(void);
/* Called when a function gets its id. */
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
