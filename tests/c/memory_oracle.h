/* A library that calls every allocator and notes the result of each call. Tests
 * of hooks compare a recording with these notes. Built several times, see
 * meson.build. */
#ifndef VST_TESTS_MEMORY_ORACLE_H
#define VST_TESTS_MEMORY_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct oracle_event {
    int kind; /* a vst_memory_kind */
    bool frees;
    uintptr_t address;
    size_t size; /* size of an allocation, or of a munmap */
} oracle_event;

typedef struct oracle_log {
    oracle_event *events;
    size_t count, capacity;
    bool has_no_pvalloc; /* the allocator in use lacks pvalloc, so the system's
                          * would be called */
} oracle_log;

/* Makes many calls in an order that depends on the seed, and notes the calls in
 * a log, which must have room. */
typedef void oracle_run_fn(uint64_t seed, int calls, oracle_log *log);
/* Through these, a test makes this library call malloc and free. */
typedef void *oracle_malloc_fn(size_t size);
typedef void oracle_free_fn(void *block);

/* Functions for a program that does not call dlsym: the library's constructor
 * passes them to the program's function oracle_register, if it has one. */
typedef struct oracle {
    oracle_run_fn *run;
    oracle_malloc_fn *malloc;
    oracle_free_fn *free;
    /* Loads a library by its bare name, which only this library's search path
     * finds. */
    void *(*load)(const char *name, int mode);
    void *(*find)(void *library, const char *name); /* dlsym */
    int (*unload)(void *library);
    /* Maps and unmaps memory, called by a signal handler. */
    void (*map)(size_t size);
    /* These make the library map, move and change memory without a file. */
    void *(*map_pages)(void *at, size_t size, int access, int flags);
    int (*unmap_pages)(void *at, size_t size);
    void *(*move_pages)(void *at, size_t size, size_t new_size);
    int (*protect_pages)(void *at, size_t size, int access);
    int (*advise_pages)(void *at, size_t size, int advice);
} oracle;

typedef const oracle *oracle_get_fn(void);

#endif
