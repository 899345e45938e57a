/* The loaded libraries: what is in one, how its memory is protected, and
 * changing which functions it calls. Everything here allocates only pages, and
 * takes no lock that a hook of an allocator takes. */
#ifndef VST_OBJECTS_OBJECTS_H
#define VST_OBJECTS_OBJECTS_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- objects.c: one library ---------------------------------------------- */

typedef struct vst__object {
    const char *name; /* "" for the program itself */
    uintptr_t bias, start, end;
    /* Whole pages that the loader closes for writing once the object is loaded;
     * may be empty */
    uintptr_t closed_start, closed_end;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * relocations[2];
    size_t relocation_counts[2];
    const uint8_t *build_id;
    size_t build_id_len;
    /* The object has an old-style path (DT_RPATH), which also holds for the
     * libraries that it loads. */
    bool hands_on_a_path;
} vst__object;

void vst__object_read(const struct dl_phdr_info *info, vst__object *object);
/* Returns whether an object is never hooked: vestige itself, allocators below
 * malloc, and the libraries that unwind and name frames for us. */
bool vst__object_is_exempt(const vst__object *object,
                           const void *malloc_in_use);
/* Gives the addresses of the library that contains vestige; 0, 0 if vestige is
 * part of the program itself. */
void vst__objects_own(uintptr_t *start, uintptr_t *end);
/* Finds the object that contains an address. Returns false if there is none. */
bool vst__objects_at(const void *address, vst__object *object);
/* Returns the first definition of a function, as the loader would find it; NULL
 * if there is none. */
void *vst__objects_find(const char *name);

/* ---- protection.c -------------------------------------------------------- */

/* The protection of the process's memory, as read a moment ago. */
typedef struct vst__protection {
    struct vst__protected_range {
        uintptr_t start, end;
        int access;
    } *ranges;
    size_t count, capacity;
} vst__protection;

bool vst__protection_read(vst__protection *protection);
void vst__protection_free(vst__protection *protection);
/* Returns PROT_... flags, or -1 if nothing is mapped there. */
int vst__protection_at(const vst__protection *protection, uintptr_t address);

/* ---- patch.c ------------------------------------------------------------- */

typedef struct vst__hook {
    const char *name;
    void *hook;
    void *original; /* NULL if the process has no such function */
} vst__hook;

typedef struct vst__patching {
    const vst__hook *hooks;
    size_t count;
    bool takes_out;
    /* The hooked function is one that the object defines itself and calls
     * through a slot; `place` is that slot, NULL if it must be found. */
    bool is_own;
    const ElfW(Rela) * place;
    const vst__protection *protection;
    uint64_t patched, left_alone;
} vst__patching;

/* Makes an object call the hooks, or stop calling them. Returns false if the
 * object is still being loaded. */
bool vst__patch_object(const vst__object *object, vst__patching *patching);

#endif
