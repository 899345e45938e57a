/* memory/ is Python's part of the memory tracer: it hooks the interpreter's
 * allocators and finds the Python stack of an allocation. session/ sets its
 * options, and the core makes the tracer and calls it. Most of it runs inside
 * the program's allocators, on any thread, with or without the GIL. There it
 * makes no Python object, calls no function that may make one, and raises
 * nothing. */
#ifndef VPY_MEMORY_H
#define VPY_MEMORY_H

#include "memory/state.h"

#include "memory/report.h"

#include <vestige/memory.h>

#pragma GCC visibility push(hidden)

/* ---- memory_tracer.c: the tracer, as the core knows it ------------------- */

typedef struct vpy_memory_options {
    bool native_allocators;
    bool native_stacks;
    uint64_t sample_bytes;
} vpy_memory_options;

int vpy_memory_init(PyObject *module);
/* Removes the hooks. Call in a forked child. */
void vpy_memory_abandon(void);

/* ---- allocator_hooks.c: the interpreter's allocators --------------------- */

void vpy_memory_hooks_install(void); /* call with the GIL held */
void vpy_memory_hooks_remove(void);

/* ---- stack_walk.c: the Python stack of a thread -------------------------- */

/* Call before memory is traced, with the GIL held. */
void vpy_memory_stacks_begin(vst_recording *recording);
/* The stack function of vst_memory_options. */
vst_stack_id vpy_memory_stack(unsigned *flags);

/* ---- stack_nodes.c: numbers of stacks ------------------------------------ */

/* The parent of the outermost frame in a stack that was cut. */
#define VPY_NODE_CUT UINT32_MAX

void vpy_nodes_begin(vst_recording *recording);
void vpy_nodes_after_fork(void);
/* Returns the number of the stack that consists of the parent stack and this
 * frame, or the parent's number if the frame is not shown. */
VST_COLD uint32_t vpy_node_find(uint32_t parent, const vpy_iframe *frame,
                                bool is_entry);
VST_COLD void vpy_nodes_code_freed(const void *code);

/* ---- code_text.c: names and lines of code objects ------------------------ */

/* Returns the line of an instruction, as PyCode_Addr2Line does; -1: none. */
int vpy_code_line(const PyCodeObject *code, int instruction);

/* A str as UTF-8, with the bytes that vpy_text returns. */
typedef struct vpy_plain_text {
    const char *bytes;
    uint32_t length;
    void *mapped; /* memory for the bytes; NULL if none was needed */
    size_t mapped_size;
} vpy_plain_text;

bool vpy_plain_text_get(PyObject *str, vpy_plain_text *text);
void vpy_plain_text_drop(vpy_plain_text *text);
/* Adds functions for tests: the line of each instruction, and a str's bytes. */
extern PyMethodDef vpy_memory_names_functions[];

#pragma GCC visibility pop
#endif
