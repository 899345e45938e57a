/* elfutils, loaded when the first native name is asked for, so a traced program
 * pays nothing before that, and runs where elfutils is missing. One thread at a
 * time; the table is constant once it is loaded. */
#ifndef VST_TRACEBACK_ELFUTILS_H
#define VST_TRACEBACK_ELFUTILS_H

#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>

#define VST_ELFUTILS_CALLS(X)                                                  \
    X(dwarf_attr)                                                              \
    X(dwarf_attr_integrate)                                                    \
    X(dwarf_child)                                                             \
    X(dwarf_diename)                                                           \
    X(dwarf_filesrc)                                                           \
    X(dwarf_formstring)                                                        \
    X(dwarf_formudata)                                                         \
    X(dwarf_getaranges)                                                        \
    X(dwarf_getsrcfiles)                                                       \
    X(dwarf_haspc)                                                             \
    X(dwarf_siblingof)                                                         \
    X(dwarf_tag)                                                               \
    X(dwelf_elf_gnu_build_id)                                                  \
    X(dwfl_addrmodule)                                                         \
    X(dwfl_begin)                                                              \
    X(dwfl_build_id_find_debuginfo)                                            \
    X(dwfl_end)                                                                \
    X(dwfl_lineinfo)                                                           \
    X(dwfl_module_addrdie)                                                     \
    X(dwfl_module_addrinfo)                                                    \
    X(dwfl_module_build_id)                                                    \
    X(dwfl_module_getdwarf)                                                    \
    X(dwfl_module_getsrc)                                                      \
    X(dwfl_module_info)                                                        \
    X(dwfl_module_nextcu)                                                      \
    X(dwfl_module_report_build_id)                                             \
    X(dwfl_report_begin)                                                       \
    X(dwfl_report_end)                                                         \
    X(dwfl_report_module)                                                      \
    X(elf_begin)                                                               \
    X(elf_end)                                                                 \
    X(elf_version)

#define VST_ELFUTILS_FIELD(name) __typeof__(&name) name;
typedef struct vst__elfutils {
    VST_ELFUTILS_CALLS(VST_ELFUTILS_FIELD)
} vst__elfutils;

extern vst__elfutils vst__dw;

/* Returns false if this machine has no elfutils. Any thread. */
bool vst__elfutils_load(void);

#endif
