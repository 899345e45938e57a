/* The inside of the extension: the Python tracer and its parts. All of it runs
 * with the GIL held unless a comment says otherwise; the GIL guards every
 * static variable of these files. */
#ifndef VPY_VPY_H
#define VPY_VPY_H

#include "compat.h"

#include <vestige/vestige.h>

#define VPY_MESSAGE_MAX 256

/* Also for declarations: the hooks reach their variables without a detour. */
#pragma GCC visibility push(hidden)

/* What a recording shall contain. */
typedef struct vpy_engine vpy_engine;

typedef struct vpy_options {
    bool python;        /* calls of Python functions */
    bool native;        /* calls of C functions */
    PyObject *include;  /* tuple of glob patterns (str), or NULL: all files */
    PyObject *exclude;  /* the same, or NULL: none */
    PyObject *log_args; /* tuple of function names, or NULL */
    const char *engine; /* of vpy_engines, or "auto" */
    bool raises;        /* a trigger waits for exceptions */
} vpy_options;

typedef struct vpy_tracer {
    vst_tracer base;
    vst_recording *recording;
    vpy_options options;
    const vpy_engine *engine; /* the one that placed the hooks */
    vst_matcher *matcher;     /* of get_events; no GIL needed */
    bool running;
    bool gc;
} vpy_tracer;

/* The tracer whose hooks are installed, NULL while none is. */
extern vpy_tracer *vpy_active;

/* ---- tracer.c ---------------------------------------------------------- */

/* Options for the next tracer that is made; takes over the references. */
void vpy_tracer_configure(vpy_options *options);
vst_status vpy_tracer_make(vst_recording *recording, vst_tracer **tracer);
/* In a forked child: the hooks go, whatever state another thread left them in.
 */
void vpy_tracer_abandon(void);
/* Why the last make or restart failed, "" if it did not. */
extern char vpy_tracer_message[VPY_MESSAGE_MAX];

/* ---- engine.c: who places the hooks ------------------------------------ */

struct vpy_engine {
    const char *name;
    int (*init)(PyObject *module); /* NULL: nothing to do */
    /* Why it is not usable here, or NULL; NULL for one that always is. */
    const char *(*trouble)(const vpy_options *options);
    /* What takes its time, before a recording begins; NULL: nothing does. If
     * it does not begin after all, with this engine: give_up. */
    void (*prepare)(const vpy_options *options);
    void (*give_up)(void);
    /* False with vpy_tracer_message set. */
    bool (*start)(vpy_tracer *tracer);
    void (*stop)(vpy_tracer *tracer);
    /* A C function was seen for the first time, bound to one of these. */
    void (*native_defined)(PyTypeObject *owner);
    /* Called now and then by threads of the program: are the hooks there? */
    void (*check_thread)(void);
    size_t (*hooks_in_place)(void); /* right now, NULL: does not tell */
};

extern const vpy_engine vpy_engine_profile;    /* up to 3.11 */
extern const vpy_engine vpy_engine_monitoring; /* from 3.12 on */
extern const vpy_engine vpy_engine_turbo;

/* The monitoring engine's hooks, with those of C functions or without. */
bool vpy_monitoring_start(vpy_tracer *tracer, bool native);
void vpy_monitoring_stop(vpy_tracer *tracer);

/* What its events tell of calls that this thread makes meanwhile to functions
 * of this file, for turbo_test.c: "a(" for a call of a, "a[" and "a{" where it
 * goes on or is thrown into, ")", "]" and "!" where it returns, yields or is
 * left by an exception. False or NULL: it cannot be told now. */
#define VPY_TEST_FILE "<vestige>"
bool vpy_monitoring_test_begin(void);
const char *vpy_monitoring_test_end(void);
/* Another thread starts to record, or this process was forked: the test that
 * is under way, if any, ends there. */
void vpy_monitoring_test_drop(void);

/* Those of this Python; the first one is always there to fall back to. Ends
 * with NULL. */
extern const vpy_engine *const vpy_engines[];
int vpy_engines_init(PyObject *module);
PyObject *vpy_engine_names(void);                /* a tuple */
const char *vpy_engine_name(const char *wanted); /* NULL: there is none */
/* The one that would record. */
const vpy_engine *vpy_engine_choose(const vpy_options *options);
/* A line to tell the program that the one it asked for could not be, once. */
PyObject *vpy_engine_take_note(void); /* str or None */
void vpy_engine_prepare(const vpy_options *options);
void vpy_engine_give_up(void); /* what was prepared and not started */
int vpy_engine_warn_if_unproven(void);
bool vpy_engine_start(vpy_tracer *tracer);
void vpy_engine_stop(vpy_tracer *tracer);
/* These two do nothing while no engine runs. */
void vpy_engine_native_defined(PyTypeObject *owner);
void vpy_engine_check_thread(void);
const vpy_engine *vpy_engine_running(void); /* NULL: none */
/* A function of the module. */
PyObject *vpy_engine_hooks_in_place(PyObject *module, PyObject *unused);

extern bool vpy_torch_mode; /* be what torch.profiler is to other tools */

/* ---- ids --------------------------------------------------------------- */

/* Value of a code object or C function: id, or 0 if it is not recorded. */
#define VPY_SPECIAL                                                            \
    ((uint32_t)1 << 30) /* set: vpy_code_entered wants to know */
#define VPY_TIMED                                                              \
    ((uint32_t)1 << 31) /* set: a trigger watches how long it takes */
#define VPY_ID(value) ((value) & VST_ID_MAX)

extern Py_ssize_t vpy_code_extra_index;
/* Names the tracer that ids were given for; in the upper half of the extra. */
extern uint32_t vpy_generation;

int vpy_code_ids_init(void);
bool vpy_code_ids_begin(vpy_tracer *tracer); /* false: out of memory */
void vpy_code_ids_end(void);
VST_COLD uint32_t vpy_code_define(PyObject *code);
/* Belongs to what runs programs, the command or the start-up module: what
 * called it is not theirs. */
bool vpy_code_is_launcher(PyObject *code);
/* Belongs to vestige. */
bool vpy_code_is_own(PyObject *code);
/* The same of the file it comes from. These two and the next one only read,
 * what does not change while recording. */
bool vpy_file_is_launcher(const char *file, uint32_t length);
bool vpy_file_is_own(const char *file, uint32_t length);
/* How much of a file's name is a folder of the search path. */
uint32_t vpy_search_path_prefix(const char *file, uint32_t length);

static inline uint32_t vpy_code_value(PyObject *code)
{
    uintptr_t extra = vpy_code_get_extra(code, vpy_code_extra_index);

    if (VST_LIKELY(extra >> 32 == vpy_generation))
        return (uint32_t)extra;
    return vpy_code_define(code);
}

/* A recorded function that called something in C: mostly the same one again.
 * Forgotten when a code object is defined, so a new one at the old address is
 * not taken for it. */
extern PyObject *vpy_last_caller;

/* What a function that is left out calls in C is left out with it. */
static inline bool vpy_caller_is_recorded(PyObject *code)
{
    if (VST_LIKELY(code == vpy_last_caller))
        return true;
    if (vpy_code_value(code) == 0)
        return false;
    vpy_last_caller = code;
    return true;
}

/* Around the enter and exit of special functions. frame may be NULL: the one
 * that runs now. The id that was recorded is what the end is given as entered;
 * 0: it is found out by the frame, which still runs then. */
VST_COLD vst_id vpy_code_entered(uint32_t value, PyObject *code,
                                 const vpy_iframe *frame);
VST_COLD void vpy_code_returns(uint32_t value, vst_id entered, PyObject *code,
                               PyObject *result);

/* A C function that was seen: a slot of the table in native_ids.c. */
typedef struct vpy_native {
    PyMethodDef *method; /* NULL: empty */
    PyTypeObject *owner; /* of what it is bound to, NULL: nothing */
    vst_id id;
    uint32_t names;   /* not 0: may be freed; which names to compare with */
    uint32_t version; /* tp_version_tag of owner: with it nothing has changed.
                       * 0: not known, or the definition itself may be freed */
    bool in_image;    /* the definition lies in a library */
} vpy_native;

extern vpy_native *vpy_natives; /* never NULL */
extern size_t vpy_natives_mask;

bool vpy_native_ids_begin(vpy_tracer *tracer);
void vpy_native_ids_end(void);
/* The rare ones: not seen yet, in memory that may be freed, or no plain C
 * function. */
VST_COLD vst_id vpy_native_id_slow(PyObject *callable);

static inline size_t vpy_native_hash(PyMethodDef *method, PyTypeObject *owner)
{
    return (size_t)((uintptr_t)method >> 5 ^ (uintptr_t)owner >> 6);
}

/* The same of a definition that is called with self. *by_class: it depends on
 * the class of self, not on the definition alone. */
VST_COLD vst_id vpy_native_id_of(PyMethodDef *method, PyObject *self,
                                 bool *by_class);
/* Defines a function of a module, or of a class with on_type, by name. */
vst_id vpy_native_define(const char *name, const char *where, bool on_type);

/* A function whose id is known already, else NULL. */
static inline const vpy_native *vpy_native_find(PyMethodDef *method,
                                                PyTypeObject *owner)
{
    const vpy_native *slot =
        &vpy_natives[vpy_native_hash(method, owner) & vpy_natives_mask];

    if (VST_LIKELY(slot->method == method && slot->owner == owner) &&
        VST_LIKELY(
            slot->names == 0 ||
            (slot->version != 0 && slot->version == owner->tp_version_tag)))
        return slot;
    return NULL;
}

/* The id of what a call event calls, 0 if that is no C function, or one that
 * is not recorded. */
static inline vst_id vpy_native_id(PyObject *callable)
{
    PyTypeObject *type = Py_TYPE(callable);
    PyMethodDef *method;
    PyTypeObject *owner;

    if (type == &PyCFunction_Type) {
        PyObject *self = ((PyCFunctionObject *)callable)->m_self;
        method = ((PyCFunctionObject *)callable)->m_ml;
        owner = self ? Py_TYPE(self) : NULL;
    } else if (type == &PyMethodDescr_Type) {
        method = ((PyMethodDescrObject *)callable)->d_method;
        owner = ((PyMethodDescrObject *)callable)->d_common.d_type;
    } else if (type == &PyFunction_Type || type == &PyType_Type) {
        return 0;
    } else {
        return vpy_native_id_slow(callable);
    }
    const vpy_native *slot = vpy_native_find(method, owner);
    return VST_LIKELY(slot != NULL) ? slot->id : vpy_native_id_slow(callable);
}

/* ---- the rest ---------------------------------------------------------- */

/* threads.c: the calls every thread is in, and what threads are called. */
void vpy_threads_announce(vpy_tracer *tracer);
void vpy_threads_name_all(vpy_tracer *tracer);
void vpy_threads_name_current(vpy_tracer *tracer);
void vpy_threads_name_from_frame(vpy_tracer *tracer, const vpy_iframe *frame);
/* The calls the current thread is in, written as a STACK record. */
void vpy_threads_record_stack(void);

/* framework_modules.c: functions of a framework's that stand for something
 * else. */
int vpy_modules_init(PyObject *module);
bool vpy_is_framework_code(PyObject *code);
/* These record it; id is the function's own. frame, entered: as above. */
vst_id vpy_framework_entered(vst_id id, PyObject *code,
                             const vpy_iframe *frame);
void vpy_framework_left(vst_kind kind, vst_id id, vst_id entered,
                        PyObject *code);
/* Whether a code object of that file and name is what importing it runs. */
bool vpy_imports_framework(const char *file, uint32_t length, PyObject *name);
void vpy_framework_imported(void);
void vpy_modules_end(void); /* forgets which there were */

/* watched_methods.c: functions of others that are called through ours. */
typedef struct vpy_watched {
    PyMethodDef *method; /* NULL: it is not watched */
    PyCFunction original;
    PyCFunction through_us;
    struct vpy_watched *next;
} vpy_watched;

/* Nothing happens where the definition has other flags or is read-only. */
void vpy_watch(vpy_watched *w, PyMethodDef *method, int flags);
void vpy_unwatch(vpy_watched *w);

/* fast_contexts.c: torch's _RecordFunctionFast. */
int vpy_fast_contexts_init(PyObject *module);
void vpy_fast_contexts_forget(const PyObject *session); /* it is freed */

/* framework_tensors.c: what its modules and optimizers hold. */
int vpy_tensors_init(PyObject *module);
void vpy_tensors_of_module(PyObject *self); /* raises nothing */

/* stack_room.c: makes the main thread's C stack longer, in that thread. */
void vpy_stack_make_room(void);

/* gc.c */
int vpy_gc_init(void);
int vpy_gc_start(vpy_tracer *tracer);
void vpy_gc_stop(void);

/* greenlets.c */
void vpy_greenlets_begin(vpy_tracer *tracer);
void vpy_greenlets_end(void);
void vpy_greenlets_look(void);         /* something new was defined */
void vpy_greenlets_watch_thread(void); /* the current one */

/* forks.c */
int vpy_forks_init(PyObject *module);
/* Before anything is done for the program: it may be a child of which nobody
 * told. */
void vpy_forks_notice(void);

/* ---- storage_guard.c ----------------------------------------------------- */

void vpy_storage_guard_init(void);
void vpy_storage_guard_after_fork(void);

/* run_program.c: programs that the command runs. */
int vpy_program_init(PyObject *module);
/* Whether it only runs the program, as what called it does. */
bool vpy_code_is_runner(PyObject *code);

/* exits.c: os._exit */
int vpy_exits_init(PyObject *module);

/* triggers.c: what asks for a snapshot when the program is slow, or fails. */
typedef struct vpy_slow {
    char *name; /* of an annotation or a Python function */
    vst_ticks limit;
    uint32_t reason; /* of the flight recorder's */
} vpy_slow;

typedef struct vpy_raise_trigger {
    char *name; /* of a class of exceptions */
    uint32_t reason;
} vpy_raise_trigger;

typedef struct vpy_triggers {
    vpy_slow *slow;
    size_t slow_count;
    vpy_raise_trigger *raises;
    size_t raise_count;
    vst_flight *flight;
} vpy_triggers;

extern vpy_triggers *vpy_triggers_active; /* NULL: none */
void vpy_triggers_begin(vpy_triggers *triggers);
void vpy_triggers_end(void);
/* Whether a Python function is named by a trigger; from then on it is. */
bool vpy_triggers_watch(PyObject *qualname, const char *file,
                        uint32_t file_length, vst_id id);
void vpy_triggers_entered(vst_id id);
void vpy_triggers_left(vst_id id);
/* Calls of this thread may have been left unseen. */
void vpy_triggers_forget_thread(void);
void vpy_triggers_annotation_ends(PyObject *name, vst_ticks since);
void vpy_triggers_raised(PyObject *error, PyObject *traceback);

static inline bool vpy_triggers_want_exceptions(void)
{
    return vpy_triggers_active && vpy_triggers_active->raise_count;
}

static inline bool vpy_triggers_want_times(void)
{
    return vpy_triggers_active && vpy_triggers_active->slow_count;
}

/* snapshot.c: those the program asks for. */
int vpy_snapshot_init(PyObject *module);
void vpy_snapshots_wait(const PyObject *session); /* for those of its own */
void vpy_snapshots_after_fork(void);

/* flight.c: those that a signal or a trigger asks for. */
typedef struct vpy_flight vpy_flight;

/* snapshot_signal.c; -1: errno says why. */
int vpy_snapshot_signal_begin(int number, vst_flight *flight, uint32_t why);
void vpy_snapshot_signal_end(const vst_flight *flight);
void vpy_snapshot_signal_after_fork(void);

vpy_flight *vpy_flight_create(PyObject *args, PyObject *kw);
/* These two do nothing for NULL. */
int vpy_flight_begin(vpy_flight *flight, const vst_session *session);
void vpy_flight_end(vpy_flight *flight); /* lets go of the GIL for a while */
void vpy_flight_destroy(vpy_flight *flight);
void vpy_flight_before_fork(void);
void vpy_flight_after_fork_in_parent(void);
void vpy_flight_after_fork(void);
PyObject *vpy_flight_snapshots(const vpy_flight *flight);
bool vpy_flight_waits_for_exceptions(const vpy_flight *flight);

/* call_stack.c: for annotations */
extern bool vpy_call_stacks; /* all of them have one */
struct vpy_json;
void vpy_call_stack_put(struct vpy_json *json);
void vpy_call_stacks_forget(void);

/* shapes.c: JSON members that tell the shapes of a tuple of values; how many
 * bytes, 0 if there is no room. */
size_t vpy_shapes_put(PyObject *values, char *text, size_t size);

/* graph_nodes.c: annotations as nodes of the execution trace. What was given is
 * turned into bytes before the annotation is entered: that may run code of the
 * program's. */
extern unsigned vpy_graph_observer; /* 0: there are no nodes */
typedef struct vpy_node {
    unsigned observer;
    uint64_t record;
    bool cut;
    unsigned char *bytes; /* own or the heap's */
    size_t count, capacity;
    unsigned char own[1024];
} vpy_node;
void vpy_node_prepare(vpy_node *node, PyObject *text, PyObject *values);
void vpy_node_record(vpy_node *node);
int vpy_nodes_init(PyObject *module);

/* json.c */
typedef struct vpy_json {
    char bytes[8000];
    size_t length;
    size_t key_at; /* where the last key began */
    bool full;     /* there was no room for it */
} vpy_json;

void vpy_json_key(vpy_json *json, const char *key, size_t length);
/* The members that follow are those of an object. */
void vpy_json_begin(vpy_json *json, const char *key);
void vpy_json_end(vpy_json *json);
/* The value of the last key: at most max bytes of a string. */
void vpy_json_string(vpy_json *json, const char *s, size_t length, size_t max);
/* The same, escaped already, whole or not at all. */
void vpy_json_ready(vpy_json *json, const char *escaped, size_t length);
/* Not a member: text alone, escaped; `full` if there is no room. */
void vpy_json_text(vpy_json *json, const char *s, size_t length);

/* Objects of the module. */
extern PyTypeObject *vpy_trace_type;
extern PyObject *vpy_trace_error;
int vpy_session_type_init(PyObject *module);
int vpy_trace_type_init(PyObject *module);
int vpy_pack_init(PyObject *module);
int vpy_tables_init(PyObject *module);
int vpy_view_init(PyObject *module);
/* (rows as a list, how many were left out): the `limit` largest, 0: all. */
struct vst_view_flame_row;
PyObject *vpy_flame_rows(struct vst_view_flame_row *rows, size_t count,
                         size_t limit);
int vpy_annotation_init(PyObject *module);
int vpy_points_init(PyObject *module);
int vpy_traceback_init(PyObject *module);
void vpy_traceback_after_fork(void);
PyObject *vpy_trace_of_session(PyObject *session, vst_session *handle);
/* {file: id of one of its functions}, see source_files.c. */
PyObject *vpy_source_files(vst_recording *recording);
PyObject *vpy_raise(vst_status status, const vst_error *error, PyObject *path);
void vpy_raise_for_both(int sys_errno, PyObject *source, PyObject *target);
/* A vst_progress_fn; calls a Python function. */
int vpy_report_progress(void *function, double done);
/* annotation.c: the id of a name in the recording in progress, 0: none */
vst_id vpy_define_name(vst_definition_kind kind, PyObject *name);
/* self_bound.c: makes a method of a type that is called by vectorcall one that
 * is found as the object that it is looked up on. 0: it works. */
int vpy_self_bound(PyTypeObject *owner, const char *name, size_t offset,
                   unsigned char bit);
extern vst_recording *vpy_recording_queue; /* for annotations; NULL: none */
void vpy_annotation_forget(
    vst_recording *recording);          /* it is about to be freed */
extern PyObject *vpy_recording_session; /* borrowed; NULL: none */
/* Stops the recording if somebody cut its file. With the GIL. */
void vpy_session_end_if_cut(void);
vst_session *vpy_session_handle(PyObject *session);

/* A UTF-8 view of a str, bytes that cannot be decoded kept as they were; the
 * bytes object (new reference) holds it. NULL with the error cleared. */
PyObject *vpy_text(PyObject *str, const char **bytes, uint32_t *length);

#pragma GCC visibility pop
#endif
