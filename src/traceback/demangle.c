/* Demangles C++ names. The core is C and links no C++: a program with C++
 * frames has a C++ runtime, which can demangle. We look for that runtime among
 * the loaded libraries, and load nothing. One thread at a time. */
#include "traceback/names.h"

#include <dlfcn.h>
#include <string.h>

typedef char *(*demangle_fn)(const char *symbol, char *buffer, size_t *size,
                             int *status);

/* Extensions of an interpreter are loaded with local symbols, so their C++
 * runtimes are looked up by file name. */
static demangle_fn find_demangler(void)
{
    static const char *const runtimes[] = {NULL, "libstdc++.so.6",
                                           "libc++abi.so.1"};
    demangle_fn found = NULL;

    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
        void *library = runtimes[i] == NULL
                            ? RTLD_DEFAULT
                            : dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
        void *symbol =
            i == 0 || library != NULL ? dlsym(library, "__cxa_demangle") : NULL;
        if (symbol != NULL) {
            memcpy(&found, &symbol, sizeof found);
            break; /* keep the handle open; a runtime is never unloaded */
        }
    }
    return found;
}

char *vst__demangle(const char *symbol)
{
    static demangle_fn demangle;
    int status;

    if (strncmp(symbol, "_Z", 2) != 0)
        return NULL;
    if (demangle == NULL)
        demangle = find_demangler();
    return demangle != NULL ? demangle(symbol, NULL, NULL, &status) : NULL;
}
