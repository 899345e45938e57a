/* traceback/ is Python's part of tracebacks (<vestige/traceback.h>): it gathers
 * the frames of a thread, keeps their code objects alive, names them, and shows
 * them as Python objects. The core calls it through the table in traceback.c;
 * annotate/ and memory/ use parts of it. */
#ifndef VPY_TRACEBACK_H
#define VPY_TRACEBACK_H

#include "traceback/state.h"

#include <vestige/traceback.h>

#pragma GCC visibility push(hidden)

/* The bits of an instruction besides VST_FRAME_ENTRY: its number plus one, and
 * whether the interpreter hides the frame. */
#define VPY_FRAME_HIDDEN ((uint32_t)1 << 30)
#define VPY_FRAME_INSTRUCTION (VPY_FRAME_HIDDEN - 1)

/* ---- frames.c: any thread enters these ---------------------------------- */

int vpy_frames_init(void);
void vpy_traceback_after_fork(void);
bool vpy_frames_enter(void **entered);
void vpy_frames_leave(void *entered);
/* Whether a thread that releases the GIL can take it again by entering. */
bool vpy_frames_may_return(void);
bool vpy_frames_gather(size_t skip, vst_gathered *gathered, void **entered);

/* ---- evaluation.c: any thread ------------------------------------------- */

/* An address in the C function that evaluates frames. */
bool vpy_is_evaluation(uintptr_t address);
/* Writes where that function lies as the metadata "vestige.evaluation" of a
 * trace: readers need it to merge Python and native stacks. */
void vpy_tell_evaluation(vst_recording *recording);

/* ---- code_refs.c -------------------------------------------------------- */

int vpy_code_refs_init(void);
/* One reference for every frame. Taking them runs no code of the program's. */
void vpy_code_refs_retain(void *const *codes, size_t count);
void vpy_code_refs_release(void *const *codes, size_t count);
/* The object that holds the one reference of all tracebacks to a code object,
 * for the garbage collector. Borrowed. */
PyObject *vpy_code_ref(PyObject *code);

/* ---- frame_names.c -------------------------------------------------- */

int vpy_traceback_names_init(PyObject *module);
vst_status vpy_traceback_append(void *code, uint32_t instruction,
                                unsigned flags, const vst_named_sink *sink);

/* ---- traceback.c -------------------------------------------------------- */

int vpy_traceback_init(PyObject *module);

/* The Python object of a traceback: there is at most one for each. */
typedef struct vpy_traceback {
    PyObject_HEAD
    vst_traceback *handle; /* NULL: cleared */
} vpy_traceback;

extern PyTypeObject vpy_traceback_type;
/* Takes over the reference. */
PyObject *vpy_traceback_object(vst_traceback *handle);

#pragma GCC visibility pop
#endif
