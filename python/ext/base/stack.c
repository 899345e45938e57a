/* Where the C stack of a thread is. */
#include "vpy.h"

#include <pthread.h>

bool vpy_stack_find(uintptr_t *low, size_t *size)
{
    pthread_attr_t attributes;
    void *address = NULL;
    bool found;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    found = pthread_attr_getstack(&attributes, &address, size) == 0;
    pthread_attr_destroy(&attributes);
    *low = (uintptr_t)address;
    return found;
}
