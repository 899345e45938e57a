/* Tracebacks: where a thread is, taken in nanoseconds, named later. A traceback
 * holds the frames of a language's interpreter, native return addresses, or
 * both. Equal ones are one object: it is immutable, counted, and costs its
 * holder a pointer.
 *
 * The core knows no language. A runtime installs an unwinder; with none, the
 * language's part of every traceback is empty and native frames work.
 *
 * Locks. A traceback may be released on any thread, with or without the lock of
 * the language's interpreter, and under any lock of the program's: the last
 * release only puts it on a list, under a mutex of its own that is held for a
 * few instructions. The next capture, or vst_traceback_free_dead(), drops what
 * it refers to; both hold the interpreter's lock. The order of locks is
 * therefore: the interpreter's, the program's, the list's. */
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

/* ---- the unwinder of a language ----------------------------------------- */

/* A frame of the interpreter is what runs (a code object) and how far it is (an
 * instruction: a number of the interpreter's own, below VST_FRAME_ENTRY). They
 * are kept in two arrays: twelve bytes a frame. */

/* In an instruction: this frame was entered from native code, so the next
 * native evaluation frame further out belongs to its caller. */
#define VST_FRAME_ENTRY ((uint32_t)1 << 31)

/* Frames of the calling thread, innermost first, being gathered: the unwinder
 * stores at [count++] of both arrays while count < capacity. */
typedef struct vst_gathered {
    void **codes;
    uint32_t *instructions;
    size_t count;
    size_t capacity;
} vst_gathered;

/* Makes room for more; false: out of memory, or too deep. The arrays move. */
VST_API bool vst_gathered_grow(vst_gathered *gathered);

/* Frames of a traceback, innermost first. */
typedef struct vst_language_frames {
    void *const *codes;
    const uint32_t *instructions;
    size_t count;
} vst_language_frames;

/* A named frame, as it is shown. Strings need not end in NUL. */
typedef struct vst_named_frame {
    const char *name, *file;
    size_t name_len, file_len;
    uint32_t line; /* 0: unknown */
    /* From 1; 0: unknown. */
    uint32_t column, end_line, end_column;
} vst_named_frame;

/* Where named frames are put: any number for one frame (inlined calls, what
 * generated code stands for), innermost first. Strings are copied. */
typedef struct vst_named_sink {
    void *ctx;
    vst_status (*add)(void *ctx, const vst_named_frame *frame);
} vst_named_sink;

typedef struct vst_unwinder {
    /* The calling thread's frames, skipping the innermost `skip`. Takes the
     * interpreter's lock if the caller does not have it. References are
     * borrowed; they are good until `leave`. False: nothing can be gathered
     * now (no interpreter, or one that ends); `leave` is not called then. */
    bool (*gather)(size_t skip, vst_gathered *gathered, void **entered);
    /* Takes the interpreter's lock if the caller does not have it; false: not
     * now, and `leave` is not called then. */
    bool (*enter)(void **entered);
    void (*leave)(void *entered); /* after gather and enter */
    /* Take and drop references; with the interpreter's lock held. To take one
     * runs no code of the program's; to drop one may. */
    void (*retain)(void *const *codes, size_t count);
    void (*release)(void *const *codes, size_t count);
    /* Names of one frame; with the interpreter's lock held. Flags are those of
     * vst_traceback_symbolize; the instruction is without VST_FRAME_ENTRY. */
    vst_status (*append_symbolized)(void *code, uint32_t instruction,
                                    unsigned flags, const vst_named_sink *sink);
    /* The native code that evaluates frames lies here. Any thread. From the
     * innermost frame to the first with VST_FRAME_ENTRY, they are shown in
     * place of the innermost such address, and so on outwards. */
    bool (*is_evaluation)(uintptr_t address);
} vst_unwinder;

/* The table must outlive everything captured with it, and another one may only
 * follow when all of that is freed. NULL: none any more; what is dead then
 * stays so until there is one again. */
VST_API void vst_unwinder_install(const vst_unwinder *unwinder);

/* ---- capture ------------------------------------------------------------ */

enum {
    VST_TRACEBACK_LANGUAGE = 1,
    VST_TRACEBACK_NATIVE = 2,
    /* With both of these: from the innermost frame of the language that is not
     * skipped outwards; what native code it called is left out. */
    VST_TRACEBACK_FROM_LANGUAGE = 4,
};

/* Where the calling thread is, without the innermost `skip` frames of each
 * part (of the language's, with VST_TRACEBACK_FROM_LANGUAGE). NULL: out of
 * memory. What is dead is freed on the way. */
VST_API vst_traceback *vst_traceback_capture(unsigned parts, size_t skip);

/* For a signal handler: native addresses only, into memory of the caller's,
 * without the heap or a lock of vestige's. How many there are (a few fewer than
 * `max` at most). vst_traceback_of makes a traceback of them, outside of the
 * handler. */
VST_API size_t vst_traceback_addresses(uintptr_t *addresses, size_t max,
                                       size_t skip);
VST_API vst_traceback *vst_traceback_of(const uintptr_t *addresses,
                                        size_t count);

/* Takes one more reference, and returns the traceback. Any thread, under any
 * lock. */
VST_API vst_traceback *vst_traceback_retain(vst_traceback *traceback);
/* Gives a reference back. Any thread, under any lock. NULL is none. */
VST_API void vst_traceback_release(vst_traceback *traceback);
/* Frees tracebacks without references, and drops what they referred to. Call it
 * with the interpreter's lock held. Returns how many were freed. */
VST_API size_t vst_traceback_free_dead(void);

/* Return the frames of a traceback, innermost first; valid as long as the
 * caller holds a reference. The objects are borrowed. Any thread. */
VST_API vst_language_frames
vst_traceback_language(const vst_traceback *traceback);
VST_API const uintptr_t *vst_traceback_native(const vst_traceback *traceback,
                                              size_t *count);
/* ---- names -------------------------------------------------------------- */

/* The names of many tracebacks: each distinct one, and each distinct frame, is
 * looked up once. NULL among them is an empty one. Native names are looked up
 * first, without the interpreter's lock; then the unwinder is entered. Naming
 * takes the loader's lock, which capturing does not: a caller should not hold
 * the interpreter's lock. */
typedef struct vst_symbols vst_symbols;

enum {
    VST_SYMBOLS_POSITIONS = 1, /* columns too, where the language has them */
};

/* Makes *symbols, the caller's to free, of tracebacks that must be held until
 * then. VST_E_NOMEM, or what the unwinder returned: *symbols is NULL. */
VST_API vst_status vst_traceback_symbolize(vst_traceback *const *tracebacks,
                                           size_t count, unsigned flags,
                                           vst_symbols **symbols,
                                           vst_error *error);
/* Frees the names and all that functions below returned of them. */
VST_API void vst_symbols_free(vst_symbols *symbols);
/* Distinct frames, and the frames of the i-th traceback given as indexes of
 * them, innermost first. Equal tracebacks have the same `place`. */
VST_API size_t vst_symbols_frame_count(const vst_symbols *symbols);
VST_API const vst_named_frame *vst_symbols_frame(const vst_symbols *symbols,
                                                 size_t index);
VST_API const uint32_t *vst_symbols_of(const vst_symbols *symbols, size_t i,
                                       size_t *count, size_t *place);
/* As JSON: an array of arrays of {"name", "filename", "line"}; *json is
 * malloc()ed and ends in NUL. */
VST_API vst_status vst_symbols_json(const vst_symbols *symbols, char **json,
                                    size_t *length);

/* Whether native frames can be taken here (by libunwind), and named with their
 * files and lines (by elfutils); else there are none, or only the names that
 * the dynamic linker knows. */
VST_API bool vst_traceback_has_native(void);
VST_API bool vst_traceback_has_symbols(void);

#ifdef __cplusplus
}
#endif
#endif
