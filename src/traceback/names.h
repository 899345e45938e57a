/* Names for native addresses: names.c remembers them, and asks a resolver,
 * which the build selects. */
#ifndef VST_TRACEBACK_NAMES_H
#define VST_TRACEBACK_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <vestige/memory.h>
#include <vestige/traceback.h>

/* ---- names.c: any thread ------------------------------------------------- */

/* Only one thread at a time is between begin and end. begin checks whether
 * libraries were loaded or unloaded since the last time. */
void vst__names_begin(void);
void vst__names_end(void);
/* Gives the frames that a return address stands for, innermost first: at least
 * one. Strings end in NUL. */
vst_status vst__names_of(uintptr_t address, const vst_named_sink *sink);

/* ---- resolve_dwfl.c: or resolve_none.c; one thread at a time ------------- */

/* Call when libraries were loaded or unloaded. */
void vst__resolver_refresh(bool is_any_unloaded);
/* Like vst__names_of, but may find nothing. The address lies within the
 * call. */
vst_status vst__resolver_find(uintptr_t address, const vst_named_sink *sink);

/* ---- resolve_files.c: or resolve_none.c; between begin and end ----------- */

/* The libraries of a program that may have ended, or that runs elsewhere. Their
 * files are used if they are on this machine and unchanged. */
typedef struct vst__files vst__files;

vst__files *vst__files_create(void); /* Returns NULL if nothing can be found. */
void vst__files_destroy(vst__files *files);
/* Adds a library; no two may overlap. */
void vst__files_add(vst__files *files, const vst_module *module);
/* Call after the last library was added. */
void vst__files_added(vst__files *files);
/* See vst__resolver_find. */
vst_status vst__files_find(vst__files *files, uint64_t address,
                           const vst_named_sink *sink);

/* ---- demangle.c ---------------------------------------------------------- */

/* Returns a symbol's name in its language, malloc()ed; NULL if the symbol is
 * already that name. */
char *vst__demangle(const char *symbol);

#endif
