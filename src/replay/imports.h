/* Which frames of a stack belong to an import. imports.c knows the functions of
 * the import system, matcher_stack.c keeps the frames, and the viewer's walk
 * (import_fold.c) follows the same rules.
 *
 * An import is the span of _find_and_load, through which every import passes:
 * the statement, __import__(), importlib.import_module(), lazy imports. The
 * span of a loader's exec_module is an import too if something else calls it (a
 * lazy loader, reload). The first module code that runs in an import names it,
 * otherwise the import system's own argument (VST_ESCAPE_IMPORT). The import
 * system's other frames, the C functions that they call, and the module's code
 * are VST_SPAN_MACHINERY, which pictures that fold imports leave out. Functions
 * of other files that they call are not. */
#ifndef VST_REPLAY_IMPORTS_H
#define VST_REPLAY_IMPORTS_H

#include <vestige/trace.h>

struct vst__frame;

/* Writes what a span of VST_SPAN_IMPORT imported: the module's name, followed
 * by " (failed)", "(extension module)" or similar if that is known. Returns the
 * length. */
size_t vst__import_name(const vst_trace *trace, vst_import import,
                        vst_id module, char name[VST_IMPORT_NAME_MAX]);

/* The class of a definition in the import system. */
enum {
    VST_CLASS_OTHER,
    VST_CLASS_FINDS,      /* _find_and_load */
    VST_CLASS_LOADS,      /* called if the module was not loaded yet */
    VST_CLASS_EXECUTES,   /* exec_module of a loader */
    VST_CLASS_MACHINERY,  /* another function of the import system */
    VST_CLASS_NATIVE,     /* any C function except the next three: */
    VST_CLASS_EXTENSION,  /* called for an extension module */
    VST_CLASS_BUILTIN,    /* called for a built-in module */
    VST_CLASS_NAMESPACE,  /* called for a namespace package */
    VST_CLASS_MODULE_CODE /* <module>, or the name of a module */
};

/* At most this many frames that do not belong to the import system may lie
 * between an import and the code that another loader runs for it. */
enum { VST_IMPORT_FRAMES = 16 };

/* The role of a frame in its stack. */
typedef enum vst__import_part {
    VST_PART_NONE,
    VST_PART_IMPORT,
    VST_PART_INSIDE,  /* a frame of the import system inside an import */
    VST_PART_PLUMBING /* a frame of the import system outside any import */
} vst__import_part;

typedef struct vst_imports {
    unsigned char *class_of; /* by definition id */
    vst_id max;
} vst_imports;

/* Returns false if memory ran out. For a trace without imports, class_of is
 * NULL. */
bool vst__imports_make(vst_imports *imports, const vst_trace *trace);
void vst__imports_free(vst_imports *imports);

static inline unsigned char vst__imports_class(const vst_imports *imports,
                                               vst_id id)
{
    return id <= imports->max ? imports->class_of[id]
                              : (unsigned char)VST_CLASS_OTHER;
}

/* Finds a frame's part from its class and from the class and part of the frame
 * around it; later frames do not matter. */
static inline vst__import_part vst__imports_part(unsigned char import_class,
                                                 unsigned char around,
                                                 vst__import_part part_around)
{
    vst__import_part inner = part_around == VST_PART_IMPORT    ? VST_PART_INSIDE
                             : around == VST_CLASS_MODULE_CODE ? VST_PART_NONE
                                                               : part_around;

    switch (import_class) {
    case VST_CLASS_OTHER:
        return VST_PART_NONE;
    case VST_CLASS_FINDS:
        return VST_PART_IMPORT;
    case VST_CLASS_EXECUTES:
        return inner == VST_PART_INSIDE ? inner : VST_PART_IMPORT;
    case VST_CLASS_LOADS:
    case VST_CLASS_MACHINERY:
        return inner == VST_PART_INSIDE ? inner : VST_PART_PLUMBING;
    default:
        return inner;
    }
}

/* Returns what is known of an import once a frame of this class is part of
 * it. */
vst_import vst__imports_after_frame(vst_import before,
                                    unsigned char import_class);

/* Returns what is known of an import when it, or the trace, has ended. module:
 * the definition that names it; 0 if none does. */
static inline vst_import vst__imports_at_end(vst_import what, vst_id module,
                                             bool raised)
{
    if (what == VST_IMPORT_NONE || what == VST_IMPORT_MODULE)
        return what;
    if (raised && (module != 0 || what == VST_IMPORT_UNKNOWN))
        return VST_IMPORT_FAILED;
    return module != 0 ? VST_IMPORT_MODULE : what;
}

/* Returns what is known of an import once a name was recorded in it. Names are
 * recorded only for modules that are not loaded yet; if the frames inside the
 * import were left out, nothing else says so. */
static inline vst_import vst__imports_after_name(vst_import before)
{
    return before == VST_IMPORT_NONE ? VST_IMPORT_UNKNOWN : before;
}

/* Returns whether this may be the definition of a VST_ESCAPE_IMPORT. */
static inline bool vst__imports_is_name(const vst_imports *imports, uint64_t id)
{
    return id <= imports->max && imports->class_of[id] == VST_CLASS_MODULE_CODE;
}

/* Call when the top frame, frames[count - 1], was opened. */
void vst__imports_enter(const vst_imports *imports, struct vst__frame *frames,
                        size_t count);
/* Call when the top frame is an import, or part of an import, of the module
 * with this name. */
void vst__imports_name(const vst_imports *imports, struct vst__frame *frames,
                       size_t count, vst_id id);
/* Call before the frame is closed: decides what it imported. */
void vst__imports_leave(struct vst__frame *top, bool raised);

#endif
