/* The state of thunks/: all of its variables that outlive a call. vpy_thunks
 * has a member for each file, which only that file changes unless a comment
 * says otherwise; the file calls its member `state`. A comment at a struct or a
 * field names the guard. */
#ifndef VPY_THUNKS_STATE_H
#define VPY_THUNKS_STATE_H

#include "vpy.h"

#include "thunks/watched_methods.h"

#pragma GCC visibility push(hidden)

#if defined(__x86_64__) || defined(__aarch64__)
enum { VPY_THUNKS = 16400 }; /* includes some for turbo_test.c */
#else
enum { VPY_THUNKS = 0 };
#endif

enum { VPY_CACHED_CALLS = 256 };

/* A pointer to a C function, whatever its arguments. */
typedef PyCFunction vpy_place __attribute__((may_alias));

typedef struct vpy_thunk_slot {
    PyCFunction original;
    /* recording << 32 | VPY_THUNK_ bits and id; with another recording: not
     * known yet */
    uint64_t value;
    /* with VPY_THUNK_BY_CLASS: the class that the id is for */
    PyTypeObject *owner;
    /* with VPY_THUNK_BY_CLASS: the class's tp_version_tag */
    uint32_t version;
    bool is_call_slot; /* a type's: the called object has the id */
} vpy_thunk_slot;

/* How a definition was found, which decides its name. */
typedef enum vpy_thunk_owner {
    VPY_OF_MODULE, /* where: the module's name */
    VPY_OF_SELF,   /* the name depends on the class of the object */
    VPY_OF_TYPE,   /* a static method; where: the class's name */
    /* The called class, object or Cython function has names of its own; where:
     * the module or class that holds the callable. */
    VPY_OF_CALLABLE,
    VPY_OF_CALLS /* each object of a type has names of its own */
} vpy_thunk_owner;

/* Which pointers are replaced: turbo replaces all. */
typedef enum vpy_thunk_covers {
    VPY_COVERS_OBJECTS = 1,   /* vectorcall pointers of objects */
    VPY_COVERS_CALLABLES = 2, /* calls of classes and of types' objects */
    VPY_COVERS_FUNCTIONS = 4, /* functions of definitions */
    VPY_COVERS_ALL = 7
} vpy_thunk_covers;

/* Facts that only some calls need. */
typedef struct vpy_thunk_about {
    vpy_place *place;    /* the pointer in whose place the thunk is */
    PyMethodDef *method; /* the definition whose pointer it is, or NULL */
    /* weak reference to the object that keeps a freeable place alive */
    PyObject *keeper;
    char *where; /* name of its module or class; "" if not needed */
    vpy_thunk_owner owner;
    bool in_image;
    bool is_object;      /* an object's, whose end vpy_object_watch sees */
    bool had_vectorcall; /* see type_calls.c */
    bool patched;
    /* patched, but a budget makes callers call the function directly for a
     * time */
    bool rests;
    uint32_t is; /* VPY_THUNK_IMPORTS, VPY_THUNK_CACHED or 0 */
} vpy_thunk_about;

enum { VPY_UNCOVERED_MAX = 400 };

/* Counts of the recording in progress, or of the last one. */
typedef struct vpy_thunk_counts {
    size_t covered;   /* definitions that are called through a thunk */
    size_t callables; /* classes, objects and types with a thunk */
    size_t overflow;  /* places without a thunk, because none was free */
    size_t read_only; /* places in memory that may not be written */
    /* definitions whose address the interpreter or a module compares */
    size_t excluded;
    size_t foreign; /* places whose pointer other code has replaced */
    size_t freed;   /* places that were covered and then freed */
    /* The first names of the two kinds. */
    char read_only_names[VPY_UNCOVERED_MAX];
    char excluded_names[VPY_UNCOVERED_MAX];
} vpy_thunk_counts;

/* thunk_slots.c. Guarded by the GIL, except where a field names its guard. */
struct vpy_thunk_slots_state {
    /* Slots of thunks. Threads of interpreters with a GIL of their own read
     * slots, too: a slot is written before its thunk's address is stored in a
     * definition. Only thunks.c writes values. */
    vpy_thunk_slot slots[VPY_THUNKS + 1];
    vpy_thunk_about abouts[VPY_THUNKS + 1];
    uint32_t used;
    uint32_t recording;
    uint32_t counted_for; /* the recording that the counts began with */
    unsigned covers;      /* a bit for each of vpy_thunk_covers */
    vpy_thunk_counts counts;
    /* table of entries: which slot a place has */
    struct vpy_thunk_entry *entries;
    size_t entries_mask, entries_used;
};

/* thunks.c. Guarded by the GIL, except where a field names its guard. */
struct vpy_thunk_calls_state {
    /* The number of the recording << 32, as in the value of a slot. 0: nothing
     * is recorded. Atomic: threads of other interpreters read it. */
    uint64_t recording;
    uint32_t recordings;
    PyInterpreterState *interpreter; /* the interpreter that is recorded */
    /* an import may have made definitions that were not found yet */
    bool pending;
    vst_ticks walk_ended, walk_cost;
    bool is_ready; /* thunks are in place for a recording that begins soon */
    bool passes_on;
};

typedef struct vpy_range {
    uintptr_t start, end;
    bool flag; /* for `mapped`: whether the range may be written */
} vpy_range;

typedef struct vpy_ranges {
    vpy_range *items; /* sorted by address */
    size_t count, capacity;
    size_t last; /* the range that was found last */
} vpy_ranges;

/* definition_memory.c. Guarded by the state lock. */
struct vpy_definition_memory_state {
    vpy_ranges mapped, images;
    /* How many libraries the loader had loaded and unloaded when the ranges
     * were read. */
    struct vpy_library_loads {
        unsigned long long added, removed;
    } loads_known;
};

/* function_identity.c. Guarded by the state lock; changed in a stopped world,
 * because any thread may compare functions. */
struct vpy_function_identity_state {
    hashfunc old_hash;
    richcmpfunc old_compare;
    unsigned keepers; /* a bit for each vpy_identity_keeper that needs it */
};

#if VPY_KNOWS_INSIDE
/* cached_callables.c. Guarded by the GIL. */
struct vpy_cached_callables_state {
    /* Addresses of instructions that are known to call one of the callables. */
    uintptr_t calls[VPY_CACHED_CALLS];
    PyObject *noted[VPY_CALLABLES];  /* the originals; borrowed */
    PyInterpreterState *interpreter; /* NULL: nothing is hidden */
    struct vpy_cached_place *places;
    size_t places_mask, places_used;
    vpy_watched len;
};
#endif

enum { VPY_WATCHED_TYPES = 64 };

/* type_calls.c and object_calls.c. Guarded by the GIL. A type stays in its
 * list: objects of a class that was made meanwhile may go on calling us. */
struct vpy_callables_state {
    struct vpy_watched_type {
        PyTypeObject *type; /* borrowed */
        PyObject *alive;    /* weak reference; NULL: not watched now */
        destructor dealloc; /* its own */
        descrgetfunc get;   /* its own, or NULL */
    } watched[VPY_WATCHED_TYPES];
    size_t watched_count;
};

/* compiled_code.c. Guarded by the GIL. */
struct vpy_compiled_code_state {
    bool is_known, is_compiling;
};

/* watched_methods.c: the list of watched methods. Changed with the state lock
 * in a stopped world. */
struct vpy_watched_state {
    vpy_watched *all;
};

struct vpy_thunks_state {
    struct vpy_thunk_slots_state slots;
    struct vpy_thunk_calls_state calls;
    struct vpy_definition_memory_state memory;
    struct vpy_function_identity_state identity;
#if VPY_KNOWS_INSIDE
    struct vpy_cached_callables_state cached;
#endif
    struct vpy_compiled_code_state compiled;
    struct vpy_callables_state callables;
    struct vpy_watched_state watched;
};

extern struct vpy_thunks_state vpy_thunks;

#pragma GCC visibility pop
#endif
