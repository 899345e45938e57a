/* Tracebacks: where a thread is, captured in nanoseconds, named later. A
 * traceback holds the frames of a language's interpreter, native return
 * addresses, or both. Equal tracebacks are one immutable, reference-counted
 * object, and cost each holder a pointer.
 *
 * The core does not depend on a language. A runtime installs an unwinder;
 * without an unwinder, the language's part of every traceback is empty and
 * native frames work.
 *
 * Locks. A traceback may be released on any thread, with or without the lock of
 * the language's interpreter, and under any lock of the program: the last
 * release only puts the traceback on a list, under the list's own mutex, which
 * is held for a few instructions. The next capture, or
 * vst_traceback_free_dead(), drops what the listed tracebacks refer to; both
 * hold the interpreter's lock. So the order of locks is: the interpreter's, the
 * program's, the list's. */
#ifndef VESTIGE_TRACEBACK_H
#define VESTIGE_TRACEBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vst_traceback vst_traceback;

/* ---- the unwinder of a language ------------------------------------------ */

/* A frame of the interpreter is a code object and a position in it (an
 * instruction: the interpreter's own number, below VST_FRAME_ENTRY). Code
 * objects and positions are kept in two arrays: twelve bytes a frame. */

/* Flag in an instruction: native code entered this frame, so the next native
 * evaluation frame further out belongs to this frame's caller. */
#define VST_FRAME_ENTRY ((uint32_t)1 << 31)

/* Frames of the calling thread, innermost first, while they are gathered: the
 * unwinder stores at [count++] of both arrays while count < capacity. */
typedef struct vst_gathered {
    void **codes;
    uint32_t *instructions;
    size_t count;
    size_t capacity;
} vst_gathered;

/* Makes room for more frames; the arrays may move. Returns false if memory ran
 * out or the stack is too deep. */
VST_API bool vst_gathered_grow(vst_gathered *gathered);

/* Frames of a traceback, innermost first. */
typedef struct vst_language_frames {
    void *const *codes;
    const uint32_t *instructions;
    size_t count;
} vst_language_frames;

/* A named frame for display. Strings need not end in NUL. */
typedef struct vst_named_frame {
    const char *name, *file;
    size_t name_len, file_len;
    uint32_t line; /* 0: unknown */
    /* From 1; 0: unknown. */
    uint32_t column, end_line, end_column;
} vst_named_frame;

/* Receives named frames. One frame may have several names, innermost first:
 * inlined calls, or the source of generated code. Strings are copied. */
typedef struct vst_named_sink {
    void *ctx;
    vst_status (*add)(void *ctx, const vst_named_frame *frame);
} vst_named_sink;

typedef struct vst_unwinder {
    /* Gathers the calling thread's frames, without the innermost `skip`. Takes
     * the interpreter's lock if the caller does not have it. References are
     * borrowed and valid until `leave`. Returns false if nothing can be
     * gathered now (no interpreter, or it is ending); then `leave` is not
     * called. */
    bool (*gather)(size_t skip, vst_gathered *gathered, void **entered);
    /* Takes the interpreter's lock if the caller does not have it. Returns
     * false if that is impossible now; then `leave` is not called. */
    bool (*enter)(void **entered);
    void (*leave)(void *entered); /* call after gather and enter */
    /* Take and drop references; call with the interpreter's lock held. retain
     * runs no code of the program; release may. */
    void (*retain)(void *const *codes, size_t count);
    void (*release)(void *const *codes, size_t count);
    /* Appends the names of one frame; called with the interpreter's lock held.
     * Flags are those of vst_traceback_symbolize; the instruction is without
     * VST_FRAME_ENTRY. */
    vst_status (*append_symbolized)(void *code, uint32_t instruction,
                                    unsigned flags, const vst_named_sink *sink);
    /* Returns whether the interpreter's native code that evaluates frames lies
     * at this address. Any thread. The language's frames up to the first with
     * VST_FRAME_ENTRY replace the innermost such address in the display, the
     * next group replaces the next one, and so on. */
    bool (*is_evaluation)(uintptr_t address);
} vst_unwinder;

/* Installs an unwinder. The table must outlive everything captured with it;
 * another one may follow only when all of that is freed. NULL removes the
 * unwinder; dead tracebacks then stay until there is an unwinder again. */
VST_API void vst_unwinder_install(const vst_unwinder *unwinder);

/* ---- capture ------------------------------------------------------------- */

enum {
    VST_TRACEBACK_LANGUAGE = 1,
    VST_TRACEBACK_NATIVE = 2,
    /* With both parts: begin at the innermost frame of the language that is not
     * skipped, and leave out native code that this frame called. */
    VST_TRACEBACK_FROM_LANGUAGE = 4,
};

/* Captures the calling thread's position, without the innermost `skip` frames
 * of each part (of the language's part, with VST_TRACEBACK_FROM_LANGUAGE). Also
 * frees dead tracebacks. Returns NULL if memory ran out. */
VST_API vst_traceback *vst_traceback_capture(unsigned parts, size_t skip);

/* For a signal handler: stores native addresses in the caller's memory, without
 * the heap or a lock of vestige. Returns how many addresses there are, at most
 * a few fewer than `max`. Outside the handler, vst_traceback_of makes a
 * traceback of the addresses. */
VST_API size_t vst_traceback_addresses(uintptr_t *addresses, size_t max,
                                       size_t skip);
VST_API vst_traceback *vst_traceback_of(const uintptr_t *addresses,
                                        size_t count);

/* Takes one more reference, and returns the traceback. Any thread, under any
 * lock. */
VST_API vst_traceback *vst_traceback_retain(vst_traceback *traceback);
/* Gives a reference back. Any thread, under any lock. Ignores NULL. */
VST_API void vst_traceback_release(vst_traceback *traceback);
/* Frees tracebacks without references, and drops what they referred to. Call
 * with the interpreter's lock held. Returns how many were freed. */
VST_API size_t vst_traceback_free_dead(void);

/* Return the frames of a traceback, innermost first; valid as long as the
 * caller holds a reference. The objects are borrowed. Any thread. */
VST_API vst_language_frames
vst_traceback_language(const vst_traceback *traceback);
VST_API const uintptr_t *vst_traceback_native(const vst_traceback *traceback,
                                              size_t *count);
/* ---- names --------------------------------------------------------------- */

/* The names of many tracebacks; each distinct traceback and each distinct frame
 * is looked up once. NULL stands for an empty traceback. Native names are
 * looked up first, without the interpreter's lock; then the unwinder is
 * entered. Naming takes the loader's lock, which capturing does not: do not
 * call with the interpreter's lock held. */
typedef struct vst_symbols vst_symbols;

enum {
    VST_SYMBOLS_POSITIONS = 1, /* columns too, where the language has them */
};

/* Sets *symbols to the names of tracebacks, which the caller must hold until
 * this returns; the caller frees *symbols. Returns VST_E_NOMEM or the
 * unwinder's status, with *symbols NULL. */
VST_API vst_status vst_traceback_symbolize(vst_traceback *const *tracebacks,
                                           size_t count, unsigned flags,
                                           vst_symbols **symbols,
                                           vst_error *error);
/* Frees the names and everything that the functions below returned for them. */
VST_API void vst_symbols_free(vst_symbols *symbols);
/* Return the number of distinct frames, and the frames of the i-th traceback as
 * indexes into them, innermost first. Equal tracebacks have the same `place`.
 */
VST_API size_t vst_symbols_frame_count(const vst_symbols *symbols);
VST_API const vst_named_frame *vst_symbols_frame(const vst_symbols *symbols,
                                                 size_t index);
VST_API const uint32_t *vst_symbols_of(const vst_symbols *symbols, size_t i,
                                       size_t *count, size_t *place);
/* Sets *json to an array of arrays of {"name", "filename", "line"}; *json is
 * malloc()ed and NUL-terminated. */
VST_API vst_status vst_symbols_json(const vst_symbols *symbols, char **json,
                                    size_t *length);

/* Returns whether native frames can be captured here (by libunwind) and named
 * with files and lines (by elfutils). If not, there are no native frames, or
 * only names that the dynamic linker knows. */
VST_API bool vst_traceback_has_native(void);
VST_API bool vst_traceback_has_symbols(void);

#ifdef __cplusplus
}
#endif
#endif
