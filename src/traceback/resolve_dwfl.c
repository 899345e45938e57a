/* Names, files and lines of native addresses by elfutils: from debug
 * information, including inlined calls, or from the table of symbols. Its input
 * files may contain anything; elfutils is built for that. A file with a
 * different build id is not the file that was loaded, and is not used. Nothing
 * is fetched over the network. One thread at a time (names.c). */
#include "traceback/names.h"

#include <dwarf.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traceback/debug_file.h"
#include "traceback/elfutils.h"

enum {
    FRAMES_MAX = 256, /* frames of one address */
    DEPTH_MAX = 512,
    ENTRIES_MAX = 2000000
};

static Dwfl *dwfl; /* NULL if nothing is known */

bool vst_traceback_has_symbols(void)
{
    return vst__elfutils_load();
}

/* ---- the libraries ------------------------------------------------------- */

static const Dwfl_Callbacks callbacks = {
    .find_elf = vst__debug_file_open,
    .find_debuginfo = vst__debug_file_find,
};

static uintptr_t align_up(uintptr_t value)
{
    return (value + 3) & ~(uintptr_t)3;
}

/* Reports the build id from the notes in memory, if these are valid. */
static void report_build_id(Dwfl_Module *module, uintptr_t at, size_t size)
{
    uintptr_t end = at + size;

    while (end - at >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
        uintptr_t name = at + sizeof *note;
        uintptr_t id = name + align_up(note->n_namesz);
        uintptr_t next = id + align_up(note->n_descsz);

        if (id < name || next < id || next > end)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
            memcmp((const void *)name, "GNU", 4) == 0) {
            vst__dw.dwfl_module_report_build_id(
                module, (const unsigned char *)id, note->n_descsz, id);
            return;
        }
        at = next;
    }
}

static int report_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
    uintptr_t low = UINTPTR_MAX, high = 0;
    const char *name = info->dlpi_name;
    Dwfl_Module *module;

    (void)size, (void)ctx;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        low = at < low ? at : low;
        high = at + part->p_memsz > high ? at + part->p_memsz : high;
    }
    if (low >= high || name == NULL)
        return 0;
    if (*name == '\0')
        name = VST_DEBUG_FILE_PROGRAM;
    low &= ~(uintptr_t)4095;
    module =
        vst__dw.dwfl_report_module(dwfl, name, low, (high + 4095) & ~4095ul);
    for (int i = 0; i < info->dlpi_phnum && module != NULL; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_NOTE && at >= low && at < high &&
            part->p_memsz < high - at)
            report_build_id(module, at, part->p_memsz);
    }
    return 0;
}

/* Facts about libraries that stay are kept. If a library was unloaded, another
 * one may be at its place. */
void vst__resolver_refresh(bool is_any_unloaded)
{
    if (is_any_unloaded && dwfl != NULL) {
        vst__dw.dwfl_end(dwfl);
        dwfl = NULL;
    }
    if (dwfl == NULL && vst__elfutils_load())
        dwfl = vst__dw.dwfl_begin(&callbacks);
    if (dwfl == NULL)
        return;
    vst__dw.dwfl_report_begin(dwfl);
    dl_iterate_phdr(report_library, NULL);
    vst__dw.dwfl_report_end(dwfl, NULL, NULL);
}

/* ---- debug information --------------------------------------------------- */

/* The place of a frame in the source. */
typedef struct source {
    /* `folder` is for relative file names; both are NULL if unknown */
    const char *folder, *file;
    uint32_t line;
} source;

typedef struct lookup {
    Dwfl_Module *module;
    Dwarf_Addr address;
    const char *library;
    const vst_named_sink *sink;
} lookup;

static vst_status dwfl_add(const lookup *l, const char *name, const source *at)
{
    char *demangled = vst__demangle(name);
    char path[PATH_MAX];
    vst_named_frame frame = {.name = demangled != NULL ? demangled : name,
                             .file = at->file,
                             .line = at->line};
    vst_status status;

    if (frame.file == NULL || *frame.file == '\0') {
        frame.file = l->library;
        frame.line = 0;
    } else if (*frame.file != '/' && at->folder != NULL) {
        snprintf(path, sizeof path, "%s/%s", at->folder, frame.file);
        frame.file = path;
    }
    frame.name_len = strlen(frame.name);
    frame.file_len = strlen(frame.file);
    status = l->sink->add(l->sink->ctx, &frame);
    free(demangled);
    return status;
}

/* Returns the linker's name, which says more in C++; NULL if the scope has no
 * name. */
static const char *dwfl_name_of(Dwarf_Die *scope)
{
    Dwarf_Attribute attribute;
    const char *name = NULL;

    if (vst__dw.dwarf_attr_integrate(scope, DW_AT_linkage_name, &attribute) !=
            NULL ||
        vst__dw.dwarf_attr_integrate(scope, DW_AT_MIPS_linkage_name,
                                     &attribute) != NULL)
        name = vst__dw.dwarf_formstring(&attribute);
    if (name == NULL)
        name = vst__dw.dwarf_diename(scope);
    return name != NULL && *name != '\0' ? name : NULL;
}

/* Returns the place of the call of an inlined function. */
static source call_of(Dwarf_Die *unit, Dwarf_Die *scope, const char *folder)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    Dwarf_Files *files;
    source at = {.folder = folder};
    size_t count;

    if (vst__dw.dwarf_getsrcfiles(unit, &files, &count) == 0 &&
        vst__dw.dwarf_attr(scope, DW_AT_call_file, &attribute) != NULL &&
        vst__dw.dwarf_formudata(&attribute, &number) == 0 && number < count)
        at.file = vst__dw.dwarf_filesrc(files, number, NULL, NULL);
    if (vst__dw.dwarf_attr(scope, DW_AT_call_line, &attribute) != NULL &&
        vst__dw.dwarf_formudata(&attribute, &number) == 0 &&
        number <= UINT32_MAX)
        at.line = (uint32_t)number;
    return at;
}

static source dwfl_line_of(const lookup *l, const char *folder)
{
    Dwfl_Line *line = vst__dw.dwfl_module_getsrc(l->module, l->address);
    source at = {.folder = folder};
    int number = 0;

    if (line == NULL)
        return at;
    at.file = vst__dw.dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
    at.line = number > 0 ? (uint32_t)number : 0;
    return at;
}

/* The functions around an address, outermost first: a function, and those
 * inlined into it. dwarf_getscopes() would require the definition of an inlined
 * function to be in the same unit; a program optimized as a whole has it
 * elsewhere. */
typedef struct scopes {
    Dwarf_Die dies[FRAMES_MAX];
    int count;
    /* how many entries may still be looked at, because the file may be
     * damaged */
    int budget;
} scopes;

static bool find_scopes(scopes *found, Dwarf_Die *parent, Dwarf_Addr address,
                        int depth)
{
    Dwarf_Die die;
    int more = vst__dw.dwarf_child(parent, &die);

    for (; more == 0 && found->budget-- > 0 && depth < DEPTH_MAX;
         more = vst__dw.dwarf_siblingof(&die, &die)) {
        switch (vst__dw.dwarf_tag(&die)) {
        case DW_TAG_subprogram:
        case DW_TAG_inlined_subroutine:
            if (vst__dw.dwarf_haspc(&die, address) != 1)
                break;
            if (vst__dw.dwarf_tag(&die) == DW_TAG_subprogram)
                found->count = 0; /* a function inside another function is a
                                   * function of its own */
            if (found->count < FRAMES_MAX)
                found->dies[found->count++] = die;
            find_scopes(found, &die, address, depth + 1);
            return true;
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
            if (vst__dw.dwarf_haspc(&die, address) == 1 &&
                find_scopes(found, &die, address, depth + 1))
                return true;
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
            if (find_scopes(found, &die, address, depth + 1))
                return true;
            break;
        default:
            break;
        }
    }
    return false;
}

static vst_status add_scopes(const lookup *l, Dwarf_Die *unit, Dwarf_Addr bias,
                             const char *symbol)
{
    Dwarf_Attribute attribute;
    const char *folder = vst__dw.dwarf_formstring(
        vst__dw.dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    source at = dwfl_line_of(l, folder);
    scopes found = {.budget = ENTRIES_MAX};
    vst_status status = VST_OK;

    find_scopes(&found, unit, l->address - bias, 0);
    for (int i = found.count; i-- > 0 && status == VST_OK;) {
        const char *name = dwfl_name_of(&found.dies[i]);

        if (name == NULL)
            name = symbol != NULL ? symbol : "?";
        status = dwfl_add(l, name, &at);
        at = call_of(unit, &found.dies[i], folder);
    }
    if (found.count == 0 && symbol != NULL)
        status = dwfl_add(l, symbol, &at);
    return status;
}

/* If there is no index of addresses (clang writes none), asks each unit. */
static Dwarf_Die *find_unit(const lookup *l, Dwarf_Addr *bias)
{
    Dwarf_Die *unit = vst__dw.dwfl_module_addrdie(l->module, l->address, bias);
    Dwarf *debug;
    Dwarf_Aranges *index;
    size_t count = 0;

    if (unit != NULL)
        return unit;
    debug = vst__dw.dwfl_module_getdwarf(l->module, bias);
    if (debug == NULL ||
        (vst__dw.dwarf_getaranges(debug, &index, &count) == 0 && count != 0))
        return NULL;
    while ((unit = vst__dw.dwfl_module_nextcu(l->module, unit, bias)) != NULL)
        if (vst__dw.dwarf_haspc(unit, l->address - *bias) == 1)
            return unit;
    return NULL;
}

vst_status vst__resolver_find(uintptr_t address, const vst_named_sink *sink)
{
    return vst__resolver_find_in(dwfl, address, sink);
}

vst_status vst__resolver_find_in(Dwfl *libraries, uintptr_t address,
                                 const vst_named_sink *sink)
{
    lookup l = {.address = address, .sink = sink};
    const char *symbol, *file = NULL;
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit;
    GElf_Off offset;
    GElf_Sym found;

    if (libraries != NULL)
        l.module = vst__dw.dwfl_addrmodule(libraries, address);
    if (l.module == NULL)
        return VST_OK;
    symbol = vst__dw.dwfl_module_addrinfo(l.module, address, &offset, &found,
                                          NULL, NULL, NULL);
    if (symbol != NULL && *symbol == '\0')
        symbol = NULL;
    l.library = vst__dw.dwfl_module_info(l.module, NULL, NULL, NULL, NULL, NULL,
                                         &file, NULL);
    if (file != NULL)
        l.library = file;
    unit = find_unit(&l, &bias);
    if (unit != NULL)
        return add_scopes(&l, unit, bias, symbol);
    if (symbol != NULL)
        return dwfl_add(&l, symbol, &(source){0});
    return VST_OK;
}
