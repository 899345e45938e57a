/* Which frames of a stack belong to an import: imports.c knows the functions of
 * the import system, matcher_stack.c keeps frames, and the viewer's walk
 * (src/view/import_fold.c) follows the same rules.
 *
 * An import is the span of _find_and_load, through which every import passes:
 * the statement, __import__(), importlib.import_module(), lazy imports; or that
 * of a loader's exec_module that something else calls (a lazy loader, reload).
 * The first module code that runs in it names it, else the import system's own
 * argument does (VST_ESCAPE_IMPORT). The import system's other
 * frames, what they call in C, and the module's code are VST_SPAN_MACHINERY:
 * pictures that fold imports leave them out. What they call in other files is
 * not. */
#ifndef VST_REPLAY_IMPORTS_H
#define VST_REPLAY_IMPORTS_H

#include <vestige/trace.h>

struct vst__frame;

/* What a span of VST_SPAN_IMPORT imported: the module's name, with " (failed)"
 * behind it if it was, or "(extension module)" and the like. Its length. */
size_t vst__import_name(const vst_trace *trace, vst_import import,
                        vst_id module, char name[VST_IMPORT_NAME_MAX]);

/* What a definition is to the import system. */
enum {
    VST_CLASS_OTHER,
    VST_CLASS_FINDS,      /* _find_and_load */
    VST_CLASS_LOADS,      /* is called if the module was not there yet */
    VST_CLASS_EXECUTES,   /* exec_module of a loader */
    VST_CLASS_MACHINERY,  /* another function of the import system */
    VST_CLASS_NATIVE,     /* any function in C, but for these: */
    VST_CLASS_EXTENSION,  /* the import is of an extension module */
    VST_CLASS_BUILTIN,    /* of a built-in one */
    VST_CLASS_NAMESPACE,  /* of a namespace package */
    VST_CLASS_MODULE_CODE /* <module>, or the name of a module */
};

/* An import and the code that another loader runs for it may have so many
 * frames between them that are not the import system's. */
enum { VST_IMPORT_FRAMES = 16 };

/* What a frame is in a stack. */
typedef enum vst__import_part {
    VST_PART_NONE,
    VST_PART_IMPORT,
    VST_PART_INSIDE,  /* the import system's, inside of an import */
    VST_PART_PLUMBING /* the same, but no import is around it */
} vst__import_part;

typedef struct vst_imports {
    unsigned char *class_of; /* by definition id */
    vst_id max;
} vst_imports;

/* False without memory. A trace in which nothing was imported gives an empty
 * one: class_of is NULL. */
bool vst__imports_make(vst_imports *imports, const vst_trace *trace);
void vst__imports_free(vst_imports *imports);

static inline unsigned char vst__imports_class(const vst_imports *imports,
                                               vst_id id)
{
    return id <= imports->max ? imports->class_of[id]
                              : (unsigned char)VST_CLASS_OTHER;
}

/* By a frame's class, and by class and part of the frame around it: it does not
 * depend on what follows. */
static inline vst__import_part vst__imports_part(unsigned char of,
                                                 unsigned char around,
                                                 vst__import_part part_around)
{
    vst__import_part inner = part_around == VST_PART_IMPORT    ? VST_PART_INSIDE
                             : around == VST_CLASS_MODULE_CODE ? VST_PART_NONE
                                                               : part_around;

    switch (of) {
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

/* What an import is known to be, once a frame of this class is part of it. */
vst_import vst__imports_say(vst_import before, unsigned char of);

/* The same, once it has ended, or the trace has; module: the definition that
 * names it, 0: none does. */
static inline vst_import vst__imports_settle(vst_import what, vst_id module,
                                             bool raised)
{
    if (what == VST_IMPORT_NONE || what == VST_IMPORT_MODULE)
        return what;
    if (raised && (module != 0 || what == VST_IMPORT_UNKNOWN))
        return VST_IMPORT_FAILED;
    return module != 0 ? VST_IMPORT_MODULE : what;
}

/* The same, once a name was recorded in it: that is done only for a module
 * which is not there yet. Where the frames inside of the import were left out,
 * nothing else tells. */
static inline vst_import vst__imports_say_named(vst_import before)
{
    return before == VST_IMPORT_NONE ? VST_IMPORT_UNKNOWN : before;
}

/* Whether this may be the definition of a VST_ESCAPE_IMPORT. */
static inline bool vst__imports_is_name(const vst_imports *imports, uint64_t id)
{
    return id <= imports->max && imports->class_of[id] == VST_CLASS_MODULE_CODE;
}

/* The top frame, frames[count - 1], was opened. */
void vst__imports_enter(const vst_imports *imports, struct vst__frame *frames,
                        size_t count);
/* The top frame is an import, or part of one, of the module with this name. */
void vst__imports_name(const vst_imports *imports, struct vst__frame *frames,
                       size_t count, vst_id id);
/* The frame is about to be closed: decides what it imported. */
void vst__imports_leave(struct vst__frame *top, bool raised);

#endif
