/* A library that calls a function of its own through a slot. */
#include "slot_library.h"

__attribute__((visibility("default"), noinline)) int slot_value(int of)
{
    __asm__ volatile("");
    return of + 1;
}

__attribute__((visibility("default"))) int slot_ask(int of)
{
    return 10 * slot_value(of);
}
