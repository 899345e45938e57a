/* Finds libcupti and libcuda. Called by one thread at a time; loaded libraries
 * stay, because the program may use them too. libcupti is not touched before
 * the driver was found: some versions end the process if there is no driver
 * (13.2 did in cuptiGetVersion). */
#include "library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

cupti_library cupti;

static char trouble[320];
static bool is_loaded;

static const char *const system_names[] = {"libcupti.so.13", "libcupti.so.12"};
enum { SYSTEM_NAMES = sizeof system_names / sizeof *system_names };

static const char *library_fail(const char *form, const char *what,
                                const char *why)
{
    snprintf(trouble, sizeof trouble, form, what, why);
    return trouble;
}

static void *open_library(const char *path, int flags)
{
    return dlopen(path, RTLD_LAZY | RTLD_LOCAL | flags);
}

/* Uses the library that the process has loaded, from whichever path, unless the
 * user names another: a process must not have two of them. */
static void *library_find(const char *named, const char *const *paths)
{
    void *found = NULL;

    if (named != NULL)
        return open_library(named, 0);
    for (size_t i = 0; found == NULL && i < SYSTEM_NAMES; i++)
        found = open_library(system_names[i], RTLD_NOLOAD);
    for (; found == NULL && *paths != NULL; paths++)
        found = open_library(*paths, 0);
    for (size_t i = 0; found == NULL && i < SYSTEM_NAMES; i++)
        found = open_library(system_names[i], 0);
    return found;
}

/* ISO C cannot convert void * to a function pointer; POSIX can. */
#define LOOK_UP(name, parameters)                                              \
    *(void **)(void *)&cupti.name = dlsym(library, #name);

/* Returns the name of a function that is missing, NULL if all are there. */
static const char *take_functions(void *library)
{
#define IS_MISSING(name, parameters)                                           \
    if (cupti.name == NULL)                                                    \
        return #name;
    CUPTI_FUNCTIONS(LOOK_UP)
    CUPTI_NEWER_FUNCTIONS(LOOK_UP)
    CUPTI_FUNCTIONS(IS_MISSING)
#undef IS_MISSING
    return NULL;
}

static bool take_driver(void *library)
{
    bool is_whole = true;

    CUDA_FUNCTIONS(LOOK_UP)
#define IS_FOUND(name, parameters) is_whole = is_whole && cupti.name != NULL;
    CUDA_FUNCTIONS(IS_FOUND)
#undef IS_FOUND
    return is_whole;
}

const char *cupti_load(const char *named, const char *const *paths)
{
    void *driver, *library;
    const char *missing, *error;
    int result;

    if (is_loaded)
        return NULL;
    driver = open_library("libcuda.so.1", 0);
    if (driver == NULL || !take_driver(driver))
        return library_fail("there is no CUDA driver here (libcuda.so.1)%s%s",
                            "", "");
    library = library_find(named, paths);
    if (library == NULL && named != NULL) {
        error = dlerror();
        return library_fail("VESTIGE_LIBCUPTI cannot be loaded: %s%s",
                            error != NULL ? error : named, "");
    }
    if (library == NULL)
        return library_fail(
            "libcupti 12 or 13 was not found; install %s, or name it "
            "in VESTIGE_LIBCUPTI%s",
            "nvidia-cuda-cupti", "");
    missing = take_functions(library);
    if (missing != NULL)
        return library_fail("this libcupti has no %s: %s", missing,
                            "vestige needs libcupti of CUDA 12 or 13");
    result = cupti.cuptiGetVersion(&cupti.version);
    if (result != CUPTI_OK)
        return library_fail("libcupti does not work here: %s of %s",
                            cupti_result_name(result), "cuptiGetVersion");
    is_loaded = true;
    return NULL;
}

const char *cupti_result_name(int result)
{
    const char *name = NULL;

    if (cupti.cuptiGetResultString(result, &name) != CUPTI_OK || name == NULL)
        return "an unknown error";
    return name;
}
