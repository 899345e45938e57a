/* Python's part of the memory tracer: the interpreter's allocators, and the
 * stacks that allocations are made with. What is declared here runs inside the
 * program's allocators, on any thread, with the GIL or without: it makes no
 * Python object, calls nothing that may, and raises nothing. */
#ifndef VPY_MEMORY_H
#define VPY_MEMORY_H

#include "vpy.h"

#include <vestige/memory.h>
#include <vestige/memory_report.h>

#pragma GCC visibility push(hidden)

/* ---- memory_tracer.c: the tracer, as the core knows it
 * -------------------------- */

typedef struct vpy_memory_options {
    bool native_allocators;
    bool native_stacks;
    uint64_t sample_bytes;
} vpy_memory_options;

int vpy_memory_init(PyObject *module);
/* In a forked child: the hooks go. */
void vpy_memory_abandon(void);

/* ---- allocator_hooks.c: the interpreter's allocators ------------------------
 */

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

/* Grows whenever a code object that was seen is freed: what is known by the
 * address of its code or instructions is void then. Read relaxed: the GIL
 * orders a code object's end and the beginning of the next one there. */
extern uint32_t vpy_nodes_generation;

void vpy_nodes_begin(vst_recording *recording);
void vpy_nodes_after_fork(void);
/* parent itself where the frame is not to be shown. */
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
