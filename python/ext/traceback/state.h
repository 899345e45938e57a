/* The state of traceback/: all variables that outlive a call. vpy_tracebacks
 * has a member for each file, which only that file changes; the file calls its
 * member `state`. A comment at a struct or a field names the guard. */
#ifndef VPY_TRACEBACK_STATE_H
#define VPY_TRACEBACK_STATE_H

#include "vpy.h"

#include <stdatomic.h>

#pragma GCC visibility push(hidden)

/* frames.c */
struct vpy_frames_state {
    PyInterpreterState *main_interpreter; /* written when the module is loaded
                                           */
    /* `entering`: how many threads are about to take the GIL. `closed`: no
     * thread may take it any more. A thread counts itself, then checks whether
     * it is closed. The end of the program closes it, then waits for the count.
     * One of the two sees the other (seq_cst). */
    atomic_uint entering;
    atomic_bool closed;
};

enum { VPY_EVALUATION_PARTS_MAX = 8 };

/* evaluation.c. Written in pthread_once. */
struct vpy_evaluation_state {
    pthread_once_t once;
    /* The first part is the function itself. */
    struct vpy_code_part {
        uintptr_t start, end;
    } parts[VPY_EVALUATION_PARTS_MAX];
    size_t parts_count;
};

/* code_refs.c */
struct vpy_code_refs_state {
    Py_ssize_t extra_index; /* written when the module is loaded */
    /* Some references were taken but could not be noted, because memory ran
     * out. From then on no reference is released, since we do not know which
     * ones these are. Guarded by the GIL; not used without the GIL. */
    bool keep_all;
};

/* frame_names.c. Written when the module is loaded; the list guards itself. */
struct vpy_frame_names_state {
    /* A list of functions that know about generated code, called in this
     * order. */
    PyObject *extra_frames;
    PyObject *key_name, *key_filename, *key_line;
    PyObject *key_end_line, *key_column, *key_end_column;
};

struct vpy_tracebacks_state {
    struct vpy_frames_state frames;
    struct vpy_evaluation_state evaluation;
    struct vpy_code_refs_state code_refs;
    struct vpy_frame_names_state names;
};

extern struct vpy_tracebacks_state vpy_tracebacks;

#pragma GCC visibility pop
#endif
