/* Where debug information is: two callbacks for libdwfl that use only files of
 * this machine. One thread at a time. */
#ifndef VST_TRACEBACK_DEBUG_FILE_H
#define VST_TRACEBACK_DEBUG_FILE_H

#include <elfutils/libdwfl.h>

#include <vestige/traceback.h>

#define VST_DEBUG_FILE_PROGRAM "/proc/self/exe" /* the program's own name */

/* Dwfl_Callbacks.find_elf */
int vst__debug_file_open(Dwfl_Module *module, void **user, const char *name,
                         Dwarf_Addr base, char **file_name, Elf **elf);
/* Dwfl_Callbacks.find_debuginfo */
int vst__debug_file_find(Dwfl_Module *module, void **user, const char *name,
                         Dwarf_Addr base, const char *file_name,
                         const char *link, GElf_Word link_crc,
                         char **debug_name);

/* ---- resolve_dwfl.c ------------------------------------------------------ */

/* Like vst__resolver_find, for a set of libraries other than the process's
 * own. */
vst_status vst__resolver_find_in(Dwfl *libraries, uintptr_t address,
                                 const vst_named_sink *sink);

#endif
