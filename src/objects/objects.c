/* One loaded library, as the loader describes it. Any thread. */
#include "objects/objects.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Returns an entry's address. The loader has turned most offsets into
 * addresses, but not in every object. */
static uintptr_t address_of(const vst__object *object, const ElfW(Dyn) * entry)
{
    uintptr_t value = (uintptr_t)entry->d_un.d_ptr;

    return value < object->bias ? value + object->bias : value;
}

static void read_dynamic(vst__object *object, const ElfW(Dyn) * entry)
{
    bool has_old_path = false, has_new_path = false;

    for (; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_RPATH:
            has_old_path = true;
            break;
        case DT_RUNPATH:
            has_new_path = true;
            break;
        case DT_SYMTAB:
            object->symbols = (const void *)address_of(object, entry);
            break;
        case DT_STRTAB:
            object->strings = (const void *)address_of(object, entry);
            break;
        case DT_RELA:
            object->relocations[0] = (const void *)address_of(object, entry);
            break;
        case DT_RELASZ:
            object->relocation_counts[0] =
                entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_JMPREL:
            object->relocations[1] = (const void *)address_of(object, entry);
            break;
        case DT_PLTRELSZ:
            object->relocation_counts[1] =
                entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        default:
            break;
        }
    }
    object->hands_on_a_path = has_old_path && !has_new_path;
}

static void read_notes(vst__object *object, const char *note, size_t size)
{
    const char *end = note + size;

    while ((size_t)(end - note) >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *head = (const void *)note;
        size_t name = (head->n_namesz + 3u) & ~(size_t)3;
        size_t rest = (head->n_descsz + 3u) & ~(size_t)3;

        note += sizeof *head;
        if ((size_t)(end - note) < name + rest)
            return;
        if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 &&
            memcmp(note, "GNU", 4) == 0) {
            object->build_id = (const uint8_t *)note + name;
            object->build_id_len = head->n_descsz;
            return;
        }
        note += name + rest;
    }
}

static void read_load(vst__object *object, const ElfW(Phdr) * head)
{
    uintptr_t start = object->bias + head->p_vaddr;

    if (object->end == 0 || start < object->start)
        object->start = start;
    if (start + head->p_memsz > object->end)
        object->end = start + head->p_memsz;
}

void vst__object_read(const struct dl_phdr_info *info, vst__object *object)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    *object =
        (vst__object){.name = info->dlpi_name != NULL ? info->dlpi_name : "",
                      .bias = info->dlpi_addr};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *head = &info->dlpi_phdr[i];
        uintptr_t start = object->bias + head->p_vaddr;

        if (head->p_type == PT_LOAD) {
            read_load(object, head);
        } else if (head->p_type == PT_DYNAMIC) {
            read_dynamic(object, (const void *)start);
        } else if (head->p_type == PT_NOTE && object->build_id == NULL) {
            read_notes(object, (const void *)start, head->p_memsz);
        } else if (head->p_type == PT_GNU_RELRO) {
            object->closed_start = start & ~(page - 1);
            object->closed_end = (start + head->p_memsz) & ~(page - 1);
        }
    }
    if (object->symbols == NULL || object->strings == NULL)
        object->relocation_counts[0] = object->relocation_counts[1] = 0;
    for (int i = 0; i < 2; i++)
        if (object->relocations[i] == NULL)
            object->relocation_counts[i] = 0;
}

static bool objects_contains(const vst__object *object, const void *address)
{
    return (uintptr_t)address - object->start < object->end - object->start;
}

/* Returns whether the object's file name begins like this. */
static bool objects_is_named(const vst__object *object, const char *beginning)
{
    const char *slash = strrchr(object->name, '/');

    return strncmp(slash != NULL ? slash + 1 : object->name, beginning,
                   strlen(beginning)) == 0;
}

bool vst__object_is_exempt(const vst__object *object, const void *malloc_in_use)
{
    static const char *const exempt[] = {
        "libc.so", "libc-2",    "libpthread", "libunwind", "libdw.so",
        "libdw-0", "libelf.so", "libelf-0",   "libasan",   "libhwasan",
        "liblsan", "libtsan",   "libubsan",
    };

    if (objects_contains(object, (const void *)&vst__object_is_exempt) ||
        objects_contains(object, malloc_in_use) ||
        object->bias == getauxval(AT_BASE) ||
        object->start == getauxval(AT_SYSINFO_EHDR))
        return true;
    for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++)
        if (objects_is_named(object, exempt[i]))
            return true;
    return false;
}

/* ---- by an address ------------------------------------------------------- */

typedef struct search {
    const void *address;
    vst__object *object;
} search;

static int find_at(struct dl_phdr_info *info, size_t size, void *ctx)
{
    const search *wanted = ctx;

    (void)size;
    vst__object_read(info, wanted->object);
    return objects_contains(wanted->object, wanted->address);
}

bool vst__objects_at(const void *address, vst__object *object)
{
    search wanted = {address, object};

    return dl_iterate_phdr(find_at, &wanted) != 0;
}

void vst__objects_own(uintptr_t *start, uintptr_t *end)
{
    vst__object own;

    *start = *end = 0;
    if (vst__objects_at((const void *)&find_at, &own) && own.name[0]) {
        *start = own.start;
        *end = own.end;
    }
}

/* ---- definitions --------------------------------------------------------- */

/* Returns whether the address is only a stand-in of the function. A program
 * that is not position-independent and takes a function's address has a
 * stand-in: a piece of the program that jumps through a slot, so a hook that
 * called it would call itself. The slot's symbol has that address, but the
 * program does not define it. */
static bool is_stand_in(const void *address)
{
    vst__object object;

    if (!vst__objects_at(address, &object))
        return false;
    for (int table = 0; table < 2; table++)
        for (size_t i = 0; i < object.relocation_counts[table]; i++) {
            const ElfW(Rela) *slot = &object.relocations[table][i];
            const ElfW(Sym) *symbol =
                &object.symbols[ELF64_R_SYM(slot->r_info)];
            if (symbol->st_shndx == SHN_UNDEF && symbol->st_value != 0 &&
                object.bias + symbol->st_value == (uintptr_t)address)
                return true;
        }
    return false;
}

void *vst__objects_find(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    if (found != NULL && is_stand_in(found)) {
        /* Look in the libraries that follow the program; libraries that were
         * loaded for the program, such as a preloaded allocator, follow it
         * too. */
        void *program = dlopen(NULL, RTLD_LAZY);
        struct link_map *map = program;
        for (map = map != NULL ? map->l_next : NULL; map != NULL;
             map = map->l_next) {
            void *library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
            void *candidate = library != NULL ? dlsym(library, name) : NULL;
            if (library != NULL)
                dlclose(library);
            if (candidate != NULL && !is_stand_in(candidate)) {
                found = candidate;
                break;
            }
        }
        if (is_stand_in(found))
            found = NULL;
        if (program != NULL)
            dlclose(program);
    }
    return found;
}
