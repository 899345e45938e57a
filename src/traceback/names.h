/* From native addresses to names: names.c remembers them, and asks one of the
 * resolvers, which of them is chosen by the build. */
#ifndef VST_TRACEBACK_NAMES_H
#define VST_TRACEBACK_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <vestige/memory.h>
#include <vestige/traceback.h>

/* ---- names.c: any thread ------------------------------------------------ */

/* Only one thread at a time is between the two. begin checks whether libraries
 * were loaded or unloaded since the last time. */
void vst__names_begin(void);
void vst__names_end(void);
/* The frames that a return address stands for, innermost first: at least one.
 * Strings end in NUL. */
vst_status vst__names_of(uintptr_t address, const vst_named_sink *sink);

/* ---- resolve_dwfl.c: or resolve_none.c; one thread at a time ------------ */

/* The set of libraries is another one now. */
void vst__resolver_refresh(bool is_any_unloaded);
/* As vst__names_of, but may find nothing. The address is within the call. */
vst_status vst__resolver_find(uintptr_t address, const vst_named_sink *sink);

/* ---- resolve_files.c: or resolve_none.c; between begin and end ----------- */

/* The libraries of a program that may have ended, or run elsewhere, by their
 * files, if these are on this machine and have not changed. */
typedef struct vst__files vst__files;

vst__files *vst__files_create(void); /* NULL: nothing can be found */
void vst__files_destroy(vst__files *files);
/* No two at the same place. */
void vst__files_add(vst__files *files, const vst_module *module);
void vst__files_added(vst__files *files); /* all of them */
/* As vst__resolver_find. */
vst_status vst__files_find(vst__files *files, uint64_t address,
                           const vst_named_sink *sink);

/* ---- demangle.c --------------------------------------------------------- */

/* What a symbol is called in its language, malloc()ed; NULL: as it is. */
char *vst__demangle(const char *symbol);

#endif
