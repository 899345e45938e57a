/* memory/ is Python's part of the memory tracer: it hooks the interpreter's
 * allocators and finds the Python stack of an allocation. session/ sets its
 * options, and the core makes the tracer and calls it. Most of it runs inside
 * the program's allocators, on any thread, with the GIL or without: there it
 * makes no Python object, calls nothing that may, and raises nothing. */
#ifndef VPY_MEMORY_H
#define VPY_MEMORY_H

#include "memory/state.h"

#include "memory/report.h"

#include <vestige/memory.h>

#pragma GCC visibility push(hidden)

/* ---- memory_tracer.c: the tracer, as the core knows it ------------------ */

typedef struct vpy_memory_options {
    bool native_allocators;
    bool native_stacks;
    uint64_t sample_bytes;
} vpy_memory_options;

int vpy_memory_init(PyObject *module);
/* In a forked child: removes the hooks. */
void vpy_memory_abandon(void);

/* ---- allocator_hooks.c: the interpreter's allocators -------------------- */

void vpy_memory_hooks_install(void); /* with the GIL */
void vpy_memory_hooks_remove(void);

/* ---- stack_walk.c: where a thread is ----------------------------------- */

/* Before memory is traced; with the GIL. */
void vpy_memory_stacks_begin(vst_recording *recording);
/* The stack function of vst_memory_options. */
vst_stack_id vpy_memory_stack(unsigned *flags);

/* ---- stack_nodes.c: (parent, frame) to the number of a stack ------------ */

/* The parent of the outermost frame of a stack that was cut. */
#define VPY_NODE_CUT UINT32_MAX

void vpy_nodes_begin(vst_recording *recording);
void vpy_nodes_after_fork(void);
/* The number of the stack of this frame and its parent; the parent's itself if
 * the frame is not shown. */
VST_COLD uint32_t vpy_node_find(uint32_t parent, const vpy_iframe *frame,
                                bool is_entry);
VST_COLD void vpy_nodes_code_freed(const void *code);

/* ---- code_text.c: what code objects say, read as they lie in memory --- */

/* The line of an instruction, as PyCode_Addr2Line; -1: it has none. */
int vpy_code_line(const PyCodeObject *code, int instruction);

/* A UTF-8 view of a str, the same bytes as vpy_text. */
typedef struct vpy_plain_text {
    const char *bytes;
    uint32_t length;
    void *mapped; /* the memory it took, if any */
    size_t mapped_size;
} vpy_plain_text;

bool vpy_plain_text_get(PyObject *str, vpy_plain_text *text);
void vpy_plain_text_drop(vpy_plain_text *text);
/* For tests: the line of each instruction, and a str's bytes. */
int vpy_memory_names_init(PyObject *module);

#pragma GCC visibility pop
#endif
