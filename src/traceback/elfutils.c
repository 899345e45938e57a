/* Loads the functions of elfutils.h. */
#include "traceback/elfutils.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

vst__elfutils vst__dw;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_loaded;

/* libelf's functions are found through libdw, which depends on libelf. */
static void elfutils_load(void)
{
    void *library = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);
    void *symbol;

    is_loaded = library != NULL;
#define FIND(name)                                                             \
    symbol = is_loaded ? dlsym(library, #name) : NULL;                         \
    is_loaded = symbol != NULL;                                                \
    memcpy(&vst__dw.name, &symbol, sizeof symbol);
    VST_ELFUTILS_CALLS(FIND)
}

bool vst__elfutils_load(void)
{
    pthread_once(&once, elfutils_load);
    return is_loaded;
}
