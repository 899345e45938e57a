/* Hooks of the loader's functions, so that libraries which a program loads
 * later also call our hooks. Any thread of the program, in any state in which
 * it calls these functions. The loader looks at the address to which dlopen()
 * and dlsym() return, for the caller's search path and its RTLD_NEXT. So a hook
 * does its work first and then jumps to the original, as if the hook did not
 * exist; C cannot do that. The next call of any of the three functions finds
 * what a dlopen() has loaded.
 *
 * If the path needs no search, it does not matter which code calls dlopen().
 * Only then does a hook call dlopen() itself, and finds the loaded libraries
 * right after it. */
#include "memory/hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "memory/funnel.h"
#include "memory/scan.h"
#include "objects/objects.h"

/* Used by the code below, which neither compiler nor linker reads. */
#define USED __attribute__((used, externally_visible))

USED void *vst__real_dlopen, *vst__real_dlsym, *vst__real_dlclose;

USED void vst__before_loader(void);
USED bool vst__dlopen_is_ours(const char *file, const void *caller);
USED void *vst__dlopen_and_look(const char *file, int mode);

void vst__before_loader(void)
{
    int error = errno;

    if (!vst__memory_is_on())
        return;
    vst_memory_enter();
    if (vst__memory_go_in()) {
        vst__scan();
        vst__memory_come_out();
    }
    vst_memory_leave();
    errno = error;
}

/* Returns whether the caller's search path holds for the libraries that it
 * loads. The program's own path holds for all libraries anyway. */
static bool hands_on_a_path(const void *caller)
{
    vst__object object;

    return !vst__objects_at(caller, &object) ||
           (object.name[0] && object.hands_on_a_path);
}

bool vst__dlopen_is_ours(const char *file, const void *caller)
{
    int error = errno;
    bool is_ours;

    vst__before_loader();
    is_ours = vst__memory_is_on() && file != NULL &&
              strchr(file, '/') != NULL && strchr(file, '$') == NULL &&
              !hands_on_a_path(caller);
    errno = error;
    return is_ours;
}

void *vst__dlopen_and_look(const char *file, int mode)
{
    void *(*original)(const char *, int);
    void *library;

    memcpy(&original, &vst__real_dlopen, sizeof original);
    library = original(file, mode);
    vst__before_loader();
    return library;
}

#if defined(__x86_64__)
/* The arguments are in rdi and rsi; at a call, the stack is a multiple of
 * 16. */
__asm__(".text\n"
        ".macro vst_saved_call target\n"
        "    pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    subq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    call \\target\n"
        "    addq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        ".endm\n"

        ".macro vst_loader_hook name, original\n"
        ".globl \\name\n"
        ".hidden \\name\n"
        ".type \\name, @function\n"
        "\\name:\n"
        "    .cfi_startproc\n"
        "    endbr64\n"
        "    vst_saved_call vst__before_loader\n"
        "    jmp *\\original(%rip)\n"
        "    .cfi_endproc\n"
        ".size \\name, .-\\name\n"
        ".endm\n"

        "vst_loader_hook vst__hook_dlsym, vst__real_dlsym\n"
        "vst_loader_hook vst__hook_dlclose, vst__real_dlclose\n"

        ".globl vst__hook_dlopen\n"
        ".hidden vst__hook_dlopen\n"
        ".type vst__hook_dlopen, @function\n"
        "vst__hook_dlopen:\n"
        "    .cfi_startproc\n"
        "    endbr64\n"
        "    pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    subq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    movq 24(%rsp), %rsi\n"
        "    call vst__dlopen_is_ours\n"
        "    addq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    testb %al, %al\n"
        "    jne vst__dlopen_and_look\n"
        "    jmp *vst__real_dlopen(%rip)\n"
        "    .cfi_endproc\n"
        ".size vst__hook_dlopen, .-vst__hook_dlopen\n");
#endif
