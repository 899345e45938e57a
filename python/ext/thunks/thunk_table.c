/* The thunks: 16,400 functions that differ only in one number. Every calling
 * convention of a C function passes at most five words, in registers. A thunk
 * puts its number into the sixth and jumps to vpy_thunk_call. The thunks are
 * one block of instructions, all of one size: so a thunk's number follows from
 * its address, no table of addresses has to be relocated when we are loaded,
 * and one entry describes to debuggers and exceptions how to unwind all of
 * them. Any thread may be in here, with the GIL of any interpreter. */
#include "thunks/thunks.h"

/* A thunk, and the letter that the assembler needs before a section's type. */
#if defined(__x86_64__)
#define SIGIL "@"
#define THUNK "endbr64\nmovl $vpy_thunk_n, %r9d\njmp vpy_thunk_call\n"
#elif defined(__aarch64__)
#define SIGIL "%"
#define THUNK "hint #34\nmov w5, #vpy_thunk_n\nb vpy_thunk_call\n" /* bti c */
#endif

#ifdef THUNK
enum { THUNK_SIZE = 16 };

__asm__(".pushsection .text.vpy_thunks, \"ax\", " SIGIL "progbits\n"
        ".balign 64\n"
        ".hidden vpy_thunk_table\n"
        ".globl vpy_thunk_table\n"
        ".type vpy_thunk_table, " SIGIL "function\n"
        "vpy_thunk_table:\n"
        ".cfi_startproc\n"
        ".set vpy_thunk_n, 0\n"
        ".rept 16400\n"
        ".balign 16\n" THUNK ".set vpy_thunk_n, vpy_thunk_n + 1\n"
        ".endr\n"
        ".balign 16\n"
        ".cfi_endproc\n"
        ".size vpy_thunk_table, . - vpy_thunk_table\n"
        ".popsection\n");

extern const unsigned char vpy_thunk_table[]
    __attribute__((visibility("hidden")));

PyCFunction vpy_thunk(uint32_t number)
{
    return (PyCFunction)(uintptr_t)(vpy_thunk_table +
                                    (size_t)number * THUNK_SIZE);
}

uint32_t vpy_thunk_number(PyCFunction function)
{
    uintptr_t offset = (uintptr_t)function - (uintptr_t)vpy_thunk_table;

    return offset < (uintptr_t)VPY_THUNKS * THUNK_SIZE
               ? (uint32_t)(offset / THUNK_SIZE)
               : VPY_THUNKS;
}
#else
PyCFunction vpy_thunk(uint32_t number)
{
    (void)number;
    return NULL;
}

uint32_t vpy_thunk_number(PyCFunction function)
{
    (void)function;
    return VPY_THUNKS;
}
#endif
