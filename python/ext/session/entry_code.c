/* Two functions that gdb copies into a process in which vestige is not loaded
 * yet: python/vestige/cli/attach/entry_block.py finds them in this library by
 * their names and puts them behind a table of the functions that they call. A
 * copy is not relocated, so the functions call and read nothing but the table.
 * The table, the functions and the code object stay in the process, and are
 * never written.
 *
 * The interpreter calls vpy_entry_begin between two instructions of the
 * program, with the GIL. Everything that could fail happens in a new thread,
 * because at the recursion limit, for example, nothing can be called here. The
 * program's thread waits until the interpreter knows the new thread, as the
 * interpreter might otherwise end before that. */
#include <stddef.h>
#include <stdint.h>

struct vpy_entry { /* entry_block.py knows this layout */
    int (*is_initialized)(void);
    long (*magic_number)(void);
    void *(*lock_create)(void);
    int (*lock_acquire)(void *, int);
    void (*lock_release)(void *);
    void (*lock_free)(void *);
    unsigned long (*thread_start)(void (*)(void *), void *);
    void *(*gil_leave)(void);
    void (*gil_return)(void *);
    int (*state_ensure)(void);
    void (*state_release)(int);
    void *(*dict_create)(void);
    void *(*code_read)(const char *, ptrdiff_t);
    void *(*code_run)(void *, void *, void *);
    void (*object_drop)(void *); /* takes NULL */
    void (*error_clear)(void);
    int64_t magic;   /* of the code object: another Python cannot run it */
    int64_t run_at;  /* vpy_entry_run, in bytes behind this table */
    int64_t code_at; /* the code object as marshal writes it */
    int64_t code_size;
};

struct beginning { /* on the stack of the thread that waits */
    const struct vpy_entry *entry;
    void *is_known; /* a lock, free once the new thread is known */
};

/* No instrumentation: it would call functions outside of the table, and count
 * in data that is not copied. */
#define COPIED                                                                 \
    __attribute__((visibility("default"), used, noinline,                      \
                   no_instrument_function, no_profile_instrument_function,     \
                   no_sanitize("address", "thread", "undefined")))

COPIED int vpy_entry_begin(void *entry);
COPIED void vpy_entry_run(void *beginning);

/* A pending call of the interpreter: a result other than 0, or an exception,
 * would be raised in the program. */
int vpy_entry_begin(void *pointer)
{
    const struct vpy_entry *entry = pointer;
    struct beginning beginning = {entry, NULL};
    void *state;

    if (!entry->is_initialized()) /* the interpreter is ending and admits no new
                                   * thread */
        return 0;
    beginning.is_known = entry->lock_create();
    if (beginning.is_known == NULL)
        return 0;
    entry->lock_acquire(beginning.is_known, 1);
    if (entry->thread_start(
            (void (*)(void *))((uintptr_t)entry + (uintptr_t)entry->run_at),
            &beginning) != (unsigned long)-1) {
        state = entry->gil_leave();
        entry->lock_acquire(beginning.is_known, 1);
        entry->gil_return(state);
    }
    entry->lock_release(beginning.is_known);
    entry->lock_free(beginning.is_known);
    return 0;
}

void vpy_entry_run(void *pointer)
{
    const struct beginning *beginning = pointer;
    const struct vpy_entry *entry = beginning->entry;
    int state = entry->state_ensure();
    void *globals, *code = NULL;

    entry->lock_release(
        beginning->is_known); /* from here on `beginning` may be gone */
    globals = entry->dict_create();
    if (entry->magic_number() == entry->magic)
        code = entry->code_read((const char *)entry + entry->code_at,
                                (ptrdiff_t)entry->code_size);
    if (globals != NULL && code != NULL)
        entry->object_drop(entry->code_run(code, globals, globals));
    entry->error_clear();
    entry->object_drop(code);
    entry->object_drop(globals);
    entry->state_release(state);
}
