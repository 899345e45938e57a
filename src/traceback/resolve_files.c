/* Names of addresses in libraries that are known only by their files; a trace
 * says where they were loaded. Files are searched under the names that they had
 * then, and used if they still have the build ids that they had then. One
 * thread at a time (names.c). */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "traceback/debug_file.h"
#include "traceback/elfutils.h"
#include "traceback/names.h"

struct vst__files {
    Dwfl *dwfl;
};

static const Dwfl_Callbacks callbacks = {
    .find_elf = vst__debug_file_open,
    .find_debuginfo = vst__debug_file_find,
};

vst__files *vst__files_create(void)
{
    vst__files *files;

    if (!vst__elfutils_load())
        return NULL;
    files = malloc(sizeof *files);
    if (files == NULL)
        return NULL;
    files->dwfl = vst__dw.dwfl_begin(&callbacks);
    if (files->dwfl == NULL) {
        free(files);
        return NULL;
    }
    vst__dw.dwfl_report_begin(files->dwfl);
    /* Load the C++ runtime, which demangles names: a program that reads a trace
     * may not have loaded it. It stays loaded, like elfutils. */
    dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    return files;
}

void vst__files_destroy(vst__files *files)
{
    if (files != NULL)
        vst__dw.dwfl_end(files->dwfl);
    free(files);
}

void vst__files_add(vst__files *files, const vst_module *module)
{
    uint64_t low = module->start & ~(uint64_t)4095;
    uint64_t high = (module->end + 4095) & ~(uint64_t)4095;
    Dwfl_Module *made;

    /* a path in /proc would be another file in the reading process */
    if (files == NULL || low >= high || *module->path != '/' ||
        strncmp(module->path, "/proc/", 6) == 0)
        return;
    made = vst__dw.dwfl_report_module(files->dwfl, module->path, low, high);
    if (made != NULL && module->build_id_len != 0 && module->build_id_len <= 64)
        vst__dw.dwfl_module_report_build_id(made, module->build_id,
                                            (size_t)module->build_id_len, low);
}

void vst__files_added(vst__files *files)
{
    if (files != NULL)
        vst__dw.dwfl_report_end(files->dwfl, NULL, NULL);
}

vst_status vst__files_find(vst__files *files, uint64_t address,
                           const vst_named_sink *sink)
{
    return files != NULL
               ? vst__resolver_find_in(files->dwfl, (uintptr_t)address, sink)
               : VST_OK;
}
