/* Replaces resolve_dwfl.c in builds without elfutils: names come from the
 * dynamic linker alone, without files and lines. */
#include "traceback/names.h"

void vst__resolver_refresh(bool is_any_unloaded)
{
    (void)is_any_unloaded;
}

vst_status vst__resolver_find(uintptr_t address, const vst_named_sink *sink)
{
    (void)address, (void)sink;
    return VST_OK;
}

vst__files *vst__files_create(void)
{
    return NULL;
}

void vst__files_destroy(vst__files *files)
{
    (void)files;
}

void vst__files_add(vst__files *files, const vst_module *module)
{
    (void)files, (void)module;
}

void vst__files_added(vst__files *files)
{
    (void)files;
}

vst_status vst__files_find(vst__files *files, uint64_t address,
                           const vst_named_sink *sink)
{
    (void)files, (void)address, (void)sink;
    return VST_OK;
}

bool vst_traceback_has_symbols(void)
{
    return false;
}
