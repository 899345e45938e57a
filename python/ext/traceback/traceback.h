/* traceback/ is Python's part of tracebacks (<vestige/traceback.h>): it gathers
 * the frames of a thread, keeps their code objects alive, names them, and shows
 * them as Python objects. The core calls it through the table in traceback.c;
 * annotate/ and memory/ use parts of it. */
#ifndef VPY_TRACEBACK_H
#define VPY_TRACEBACK_H

#include "traceback/state.h"

#include <vestige/traceback.h>

#pragma GCC visibility push(hidden)

/* The bits of an instruction besides VST_FRAME_ENTRY: the instruction's index
 * plus one, and whether the interpreter hides the frame. */
#define VPY_FRAME_HIDDEN ((uint32_t)1 << 30)
#define VPY_FRAME_INSTRUCTION (VPY_FRAME_HIDDEN - 1)

/* ---- frames.c: any thread enters these ----------------------------------- */

int vpy_frames_init(void);
void vpy_traceback_after_fork(void);
bool vpy_frames_enter(void **entered);
void vpy_frames_leave(void *entered);
/* Returns whether a thread that releases the GIL can take it again, so that it
 * may call vpy_frames_enter. */
bool vpy_frames_may_return(void);
bool vpy_frames_gather(size_t skip, vst_gathered *gathered, void **entered);

/* ---- evaluation.c: any thread -------------------------------------------- */

/* Returns whether an address lies in the C function that evaluates frames. */
bool vpy_is_evaluation(uintptr_t address);
/* Writes the function's addresses as the metadata "vestige.evaluation" of a
 * trace: readers need them to merge Python and native stacks. */
void vpy_evaluation_note(vst_recording *recording);

/* ---- code_refs.c --------------------------------------------------------- */

int vpy_code_refs_init(void);
/* Take and release one reference for every frame. Taking references runs no
 * code of the program. */
void vpy_code_refs_retain(void *const *codes, size_t count);
void vpy_code_refs_release(void *const *codes, size_t count);
/* Returns the object that holds the one reference of all tracebacks to a code
 * object, for the garbage collector (borrowed). */
PyObject *vpy_code_ref(PyObject *code);

/* ---- frame_names.c ------------------------------------------------------- */

int vpy_traceback_names_init(PyObject *module);
vst_status vpy_traceback_append(void *code, uint32_t instruction,
                                unsigned flags, const vst_named_sink *sink);

/* ---- traceback.c --------------------------------------------------------- */

int vpy_traceback_init(PyObject *module);

/* The Python object of a traceback; each traceback has at most one. */
typedef struct vpy_traceback {
    PyObject_HEAD
    vst_traceback *handle; /* NULL: cleared */
} vpy_traceback;

extern PyTypeObject vpy_traceback_type;
/* Returns the Python object of a traceback (a new reference). Takes over the
 * reference to the handle. */
PyObject *vpy_traceback_object(vst_traceback *handle);

#pragma GCC visibility pop
#endif
