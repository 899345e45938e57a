/* The loaded libraries: what is in one, how its memory is protected, and
 * changing where it calls to. All of it allocates nothing but pages, and takes
 * no lock that a hook of an allocator takes. */
#ifndef VST_OBJECTS_OBJECTS_H
#define VST_OBJECTS_OBJECTS_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- objects.c: one of them --------------------------------------------- */

typedef struct vst__object {
    const char *name; /* "": the program */
    uintptr_t bias, start, end;
    /* Whole pages that are closed for writing once it is loaded; may be none */
    uintptr_t closed_start, closed_end;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * relocations[2];
    size_t relocation_counts[2];
    const uint8_t *build_id;
    size_t build_id_len;
    /* It has an old-style path (DT_RPATH), which holds for the libraries that
     * it loads, too. */
    bool hands_on_a_path;
} vst__object;

void vst__object_read(const struct dl_phdr_info *info, vst__object *object);
/* Vestige itself, allocators below malloc, and the libraries that unwind and
 * name frames for us. */
bool vst__object_is_exempt(const vst__object *object,
                           const void *malloc_in_use);
/* Where vestige is, but for a program that it is a part of: 0, 0. */
void vst__objects_own(uintptr_t *start, uintptr_t *end);
/* The one that an address lies in; false: none. */
bool vst__objects_at(const void *address, vst__object *object);
/* The first definition of a function, as the loader finds it; NULL: none. */
void *vst__objects_find(const char *name);

/* ---- protection.c ------------------------------------------------------- */

/* How the memory of the process was protected a moment ago. */
typedef struct vst__protection {
    struct vst__protected_range {
        uintptr_t start, end;
        int access;
    } *ranges;
    size_t count, capacity;
} vst__protection;

bool vst__protection_read(vst__protection *protection);
void vst__protection_free(vst__protection *protection);
/* PROT_..., -1: nothing is there. */
int vst__protection_at(const vst__protection *protection, uintptr_t address);

/* ---- patch.c ------------------------------------------------------------ */

typedef struct vst__hook {
    const char *name;
    void *hook;
    void *original; /* NULL: there is no such function here */
} vst__hook;

typedef struct vst__patching {
    const vst__hook *hooks;
    size_t count;
    bool takes_out;
    /* One function, which the object defines itself and calls through a slot,
     * and where that is; NULL: it is looked for */
    bool is_own;
    const ElfW(Rela) * place;
    const vst__protection *protection;
    uint64_t patched, left_alone;
} vst__patching;

/* Makes an object call the hooks, or no longer. False: it is still being
 * loaded. */
bool vst__patch_object(const vst__object *object, vst__patching *patching);

#endif
