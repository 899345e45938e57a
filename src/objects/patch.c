/* Finds and changes the slots through which a library calls functions of other
 * libraries, for functions that have a hook. Called while the loader's list is
 * held, by one thread at a time. A slot is changed only if it holds a value
 * that we know: the original, our hook, or the way into the loader for a
 * function that was not called yet. Any other value was put there on purpose by
 * other code. */
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "objects/objects.h"

#if defined(__x86_64__)
enum {
    IS_CALLED = R_X86_64_JUMP_SLOT,
    IS_TAKEN = R_X86_64_GLOB_DAT,
    IS_STORED = R_X86_64_64
};
#elif defined(__aarch64__)
enum {
    IS_CALLED = R_AARCH64_JUMP_SLOT,
    IS_TAKEN = R_AARCH64_GLOB_DAT,
    IS_STORED = R_AARCH64_ABS64
};
#else
enum { IS_CALLED = INT_MAX, IS_TAKEN = INT_MAX, IS_STORED = INT_MAX };
#endif

/* Compares the first letter first, because it distinguishes most functions of
 * the C library. */
static const vst__hook *hook_named(const vst__patching *p, const char *name)
{
    if (!p->is_own && (strchr("acdfmprsv", name[0]) == NULL || name[0] == '\0'))
        return NULL;
    for (size_t i = 0; i < p->count; i++)
        if (p->hooks[i].name[0] == name[0] && p->hooks[i].original != NULL &&
            strcmp(p->hooks[i].name, name) == 0)
            return &p->hooks[i];
    return NULL;
}

static const vst__hook *hook_of(const vst__object *object,
                                const vst__patching *p, const ElfW(Rela) * at)
{
    unsigned type = (unsigned)ELF64_R_TYPE(at->r_info);
    const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(at->r_info)];

    if (type != IS_CALLED && type != IS_TAKEN &&
        (type != IS_STORED || at->r_addend != 0))
        return NULL;
    if (ELF64_R_SYM(at->r_info) == 0 ||
        p->is_own != (symbol->st_shndx != SHN_UNDEF))
        return NULL;
    return hook_named(p, object->strings + symbol->st_name);
}

/* Stores into the slot; a closed page is opened for the moment of the store. */
static bool patch_store(void **slot, void *from, void *to,
                        const vst__patching *p)
{
    uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)((uintptr_t)slot & ~(size - 1));
    int access = vst__protection_at(p->protection, (uintptr_t)slot);
    bool is_closed, done;

    if (access < 0)
        return false;
    is_closed = !(access & PROT_WRITE);
    if (is_closed && mprotect(page, size, access | PROT_WRITE) != 0)
        return false;
    /* If the loader resolves the slot at this moment, the loader's value
     * stays. */
    done = __atomic_compare_exchange_n(slot, &from, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
    if (is_closed)
        mprotect(page, size, access);
    return done;
}

static void patch_slot(const vst__object *object, vst__patching *p,
                       const ElfW(Rela) * at, const vst__hook *hook)
{
    void **slot = (void **)(object->bias + at->r_offset);
    void *value = __atomic_load_n(slot, __ATOMIC_RELAXED);
    bool is_unresolved =
        ELF64_R_TYPE(at->r_info) == IS_CALLED &&
        (uintptr_t)value - object->start < object->end - object->start;

    if (p->takes_out) {
        if (value != hook->hook)
            return;
        if (patch_store(slot, value, hook->original, p))
            p->patched++;
        else
            p->left_alone++;
    } else if (value == hook->hook) {
        p->patched++;
    } else if ((value == hook->original || is_unresolved) &&
               patch_store(slot, value, hook->hook, p)) {
        p->patched++;
    } else {
        p->left_alone++;
    }
}

/* Returns whether the loader has closed the pages of the object's relocations.
 * Before that, we would close pages into which the loader still writes. */
static bool is_loaded(const vst__object *object, const vst__patching *p)
{
    int access;

    if (object->closed_start >= object->closed_end)
        return true;
    access = vst__protection_at(p->protection, object->closed_start);
    return access >= 0 && !(access & PROT_WRITE);
}

/* Finds the slot of a function that the object defines itself, among the slots
 * for calls; a large library has tens of thousands of these. */
static void patch_own(const vst__object *object, vst__patching *p)
{
    const ElfW(Rela) *at = p->place;
    const vst__hook *hook = at != NULL ? hook_of(object, p, at) : NULL;

    for (size_t i = 0; hook == NULL && i < object->relocation_counts[1]; i++) {
        at = &object->relocations[1][i];
        hook = hook_of(object, p, at);
    }
    if (hook == NULL)
        return;
    p->place = at;
    patch_slot(object, p, at, hook);
}

bool vst__patch_object(const vst__object *object, vst__patching *p)
{
    /* an object that is still being loaded has no hook to take out */
    if (!p->takes_out && !is_loaded(object, p))
        return false;
    if (p->is_own)
        patch_own(object, p);
    for (int table = 0; !p->is_own && table < 2; table++)
        for (size_t i = 0; i < object->relocation_counts[table]; i++) {
            const ElfW(Rela) *at = &object->relocations[table][i];
            const vst__hook *hook = hook_of(object, p, at);
            if (hook != NULL)
                patch_slot(object, p, at, hook);
        }
    return true;
}
