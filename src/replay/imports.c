/* All rules about the import system's functions, see imports.h. Any thread, one
 * at a time for one stack. */
#include "replay/imports.h"

#include <stdlib.h>
#include <string.h>

#include "replay/matcher_stack.h"

/* ---- names --------------------------------------------------------------- */

/* Writes the name of a module from the definition of its code:
 * "pandas.core.frame" for pandas/core/frame.py, or the path itself if the
 * search path does not explain it; or from a VST_MODULE_NAMED. Copies at most
 * `size` bytes without a NUL. Returns the length of the whole name, 0 if the
 * definition is not a module's. */
static size_t module_name(const vst_definition *d, char *name, size_t size);

static bool imports_is_text(const char *bytes, size_t length, const char *text)
{
    return strlen(text) == length && memcmp(bytes, text, length) == 0;
}

static bool imports_ends_with(const char *bytes, size_t length,
                              const char *text)
{
    size_t size = strlen(text);

    return length >= size && memcmp(bytes + length - size, text, size) == 0;
}

static bool is_file(const vst_definition *d, const char *file)
{
    return imports_is_text(d->file, d->file_len, file);
}

static bool is_name(const vst_definition *d, const char *name)
{
    return imports_is_text(d->name, d->name_len, name);
}

static unsigned char class_of_native(const vst_definition *d)
{
    if (is_name(d, "<built-in function create_dynamic>"))
        return VST_CLASS_EXTENSION;
    if (is_name(d, "<built-in function create_builtin>"))
        return VST_CLASS_BUILTIN;
    if (module_name(d, NULL, 0) != 0)
        return VST_CLASS_MODULE_CODE;
    return VST_CLASS_NATIVE;
}

static bool is_machinery(const vst_definition *d)
{
    return is_file(d, "<frozen importlib._bootstrap>") ||
           is_file(d, "<frozen importlib._bootstrap_external>") ||
           is_file(d, "<frozen zipimport>");
}

static bool imports_begins_with(const vst_definition *d, const char *name)
{
    return d->name_len >= strlen(name) &&
           memcmp(d->name, name, strlen(name)) == 0;
}

static unsigned char class_of_machinery(const vst_definition *d)
{
    if (is_name(d, "_find_and_load"))
        return VST_CLASS_FINDS;
    if (is_name(d, "_find_and_load_unlocked") ||
        is_name(d, "_resolve_parents")) /* called from 3.15 on, before
                                         * _find_and_load_unlocked */
        return VST_CLASS_LOADS;
    if (imports_begins_with(d, "NamespaceLoader.") ||
        imports_begins_with(d, "_NamespaceLoader."))
        return VST_CLASS_NAMESPACE;
    if (imports_begins_with(d, "ExtensionFileLoader."))
        return VST_CLASS_EXTENSION;
    if (imports_ends_with(d->name, d->name_len, "exec_module"))
        return VST_CLASS_EXECUTES;
    return VST_CLASS_MACHINERY;
}

static unsigned char imports_class_of(const vst_definition *d)
{
    if (d == NULL)
        return VST_CLASS_OTHER;
    if (d->kind == VST_DEF_NATIVE)
        return class_of_native(d);
    if (d->kind != VST_DEF_PYTHON)
        return VST_CLASS_OTHER;
    if (is_machinery(d))
        return class_of_machinery(d);
    return module_name(d, NULL, 0) != 0 ? VST_CLASS_MODULE_CODE
                                        : VST_CLASS_OTHER;
}

bool vst__imports_make(vst_imports *imports, const vst_trace *trace)
{
    bool any = false;

    *imports = (vst_imports){.max = vst_trace_definition_max(trace)};
    imports->class_of = calloc((size_t)imports->max + 1, 1);
    if (imports->class_of == NULL)
        return false;
    for (vst_id id = 1; id <= imports->max; id++) {
        unsigned char import_class =
            imports_class_of(vst_trace_definition(trace, id));

        imports->class_of[id] = import_class;
        any |= import_class == VST_CLASS_FINDS ||
               import_class == VST_CLASS_EXECUTES;
    }
    if (!any)
        vst__imports_free(imports);
    return true;
}

void vst__imports_free(vst_imports *imports)
{
    free(imports->class_of);
    imports->class_of = NULL;
}

/* ---- frames -------------------------------------------------------------- */

/* Returns the innermost import among the frames; NULL if there is none, or if
 * code of a module is further in. */
static vst__frame *import_around(const vst_imports *imports, vst__frame *frames,
                                 size_t count)
{
    for (size_t i = count, left = VST_IMPORT_FRAMES; i-- != 0 && left;) {
        if (frames[i].flags & VST_SPAN_IMPORT)
            return &frames[i];
        if (vst__imports_class(imports, frames[i].id) == VST_CLASS_MODULE_CODE)
            return NULL;
        left -= !(frames[i].flags & VST_SPAN_MACHINERY);
    }
    return NULL;
}

vst_import vst__imports_after_frame(vst_import before,
                                    unsigned char import_class)
{
    if (before == VST_IMPORT_MODULE)
        return before;
    switch (import_class) {
    case VST_CLASS_MODULE_CODE:
        return VST_IMPORT_MODULE;
    case VST_CLASS_EXTENSION:
        return VST_IMPORT_EXTENSION;
    case VST_CLASS_BUILTIN:
        return VST_IMPORT_BUILTIN;
    case VST_CLASS_NAMESPACE:
        return VST_IMPORT_NAMESPACE;
    case VST_CLASS_LOADS:
    case VST_CLASS_EXECUTES:
        return before == VST_IMPORT_NONE ? VST_IMPORT_UNKNOWN : before;
    default:
        return before;
    }
}

static vst__import_part part_of(const vst__frame *frame)
{
    if (frame->flags & VST_SPAN_IMPORT)
        return VST_PART_IMPORT;
    if (!(frame->flags & VST_SPAN_MACHINERY))
        return VST_PART_NONE;
    return frame->flags & VST_FRAME_PLUMBING ? VST_PART_PLUMBING
                                             : VST_PART_INSIDE;
}

/* Notes what the frame `top`, of class `import_class`, says about the import
 * that it is part of. */
static void imports_note_frame(vst__frame *import, const vst__frame *top,
                               unsigned char import_class)
{
    if (import == NULL || import->import == VST_IMPORT_MODULE)
        return;
    import->import =
        (unsigned char)vst__imports_after_frame(import->import, import_class);
    if (import->import == VST_IMPORT_MODULE)
        import->module = top->id;
}

void vst__imports_enter(const vst_imports *imports, vst__frame *frames,
                        size_t count)
{
    vst__frame *top = &frames[count - 1];
    unsigned char import_class = vst__imports_class(imports, top->id);
    unsigned char around = VST_CLASS_OTHER;
    vst__import_part part = VST_PART_NONE;

    if (VST_LIKELY(import_class == VST_CLASS_OTHER ||
                   top->flags & VST_FRAME_BEGIN))
        return;
    if (count > 1) {
        around = vst__imports_class(imports, top[-1].id);
        part = part_of(top - 1);
    }
    part = vst__imports_part(import_class, around, part);
    if (part == VST_PART_IMPORT) {
        top->flags |= VST_SPAN_IMPORT;
        top->import = (unsigned char)vst__imports_after_frame(VST_IMPORT_NONE,
                                                              import_class);
        return;
    }
    if (part != VST_PART_NONE)
        top->flags |= VST_SPAN_MACHINERY;
    if (part == VST_PART_PLUMBING)
        top->flags |= VST_FRAME_PLUMBING;
    if (part == VST_PART_INSIDE || import_class == VST_CLASS_MODULE_CODE)
        imports_note_frame(import_around(imports, frames, count - 1), top,
                           import_class);
}

void vst__imports_name(const vst_imports *imports, vst__frame *frames,
                       size_t count, vst_id id)
{
    vst__frame *import = import_around(imports, frames, count);

    if (import == NULL || import->import == VST_IMPORT_MODULE)
        return;
    import->import = vst__imports_after_name(import->import);
    import->module = id;
}

void vst__imports_leave(vst__frame *top, bool raised)
{
    if (!(top->flags & VST_SPAN_IMPORT))
        return;
    /* the module was there already, so this is an ordinary call */
    if (top->import == VST_IMPORT_NONE)
        top->flags &= ~(uint32_t)VST_SPAN_IMPORT;
    top->import = vst__imports_at_end(top->import, top->module, raised);
}

/* ---- texts --------------------------------------------------------------- */

static const char *imports_text_of(vst_import import)
{
    switch (import) {
    case VST_IMPORT_NONE:
    case VST_IMPORT_MODULE:
        break;
    case VST_IMPORT_EXTENSION:
        return "(extension module)";
    case VST_IMPORT_BUILTIN:
        return "(built-in module)";
    case VST_IMPORT_NAMESPACE:
        return "(namespace package)";
    case VST_IMPORT_FAILED:
        return "(failed)";
    case VST_IMPORT_UNKNOWN:
        return "(unknown module)";
    }
    return "";
}

static bool is_identifier(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        bool letter =
            c >= 0x80 || c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z');

        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return length != 0;
}

/* Returns whether this is a folder or archive in which modules are
 * installed. */
static bool holds_packages(const char *bytes, size_t length)
{
    static const char *const ends[] = {
        "site-packages", "dist-packages", ".zip", ".whl", ".egg", ".pyz"};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (imports_ends_with(bytes, length, ends[i]))
            return true;
    return false;
}

/* Returns the part of the file's path that is the module's path. The search
 * path may have grown since the recording began, so a folder that cannot be a
 * package starts the path again. Returns NULL for an absolute path that the
 * search path does not explain. */
static const char *path_in_search_path(const vst_definition *d, size_t *length)
{
    const char *end = d->file + d->file_len;
    const char *path = d->file + d->file_skip, *from = path;
    bool explained = path == end || *path != '/';

    for (const char *at = path; at < end; at++) {
        size_t size = (size_t)(at - from);

        if (*at != '/')
            continue;
        if (holds_packages(from, size) ||
            (explained && !is_identifier(from, size))) {
            path = at + 1;
            explained = true;
        }
        from = at + 1;
    }
    *length = (size_t)(end - path);
    return explained ? path : NULL;
}

static size_t imports_copy(char *name, size_t size, const char *bytes,
                           size_t length, bool dots)
{
    for (size_t i = 0; i < length && i < size; i++)
        name[i] = dots && bytes[i] == '/' ? '.' : bytes[i];
    return length;
}

static size_t module_name(const vst_definition *d, char *name, size_t size)
{
    static const char frozen[] = "<frozen ", package[] = "/__init__";
    static const char named[] = VST_MODULE_NAMED;
    size_t head = sizeof frozen - 1, length;
    const char *path;

    if (d->kind == VST_DEF_NATIVE && imports_begins_with(d, named))
        return imports_copy(name, size, d->name + sizeof named - 1,
                            d->name_len - (sizeof named - 1), false);
    if (d->kind != VST_DEF_PYTHON || !is_name(d, "<module>") || !d->file_len)
        return 0;
    /* not a file; only frozen modules have a name then */
    if (d->file[0] == '<') {
        if (d->file_len <= head + 1 || memcmp(d->file, frozen, head) != 0)
            return 0;
        return imports_copy(name, size, d->file + head, d->file_len - head - 1,
                            false);
    }
    path = path_in_search_path(d, &length);
    if (path == NULL || !imports_ends_with(path, length, ".py"))
        return imports_copy(name, size, d->file, d->file_len, false);
    length -= 3;
    if (length > sizeof package - 1 && imports_ends_with(path, length, package))
        length -= sizeof package - 1;
    return imports_copy(name, size, path, length, true);
}

size_t vst__import_name(const vst_trace *trace, vst_import import,
                        vst_id module, char name[VST_IMPORT_NAME_MAX])
{
    const vst_definition *d =
        import == VST_IMPORT_MODULE || import == VST_IMPORT_FAILED
            ? vst_trace_definition(trace, module)
            : NULL;
    size_t size = VST_IMPORT_NAME_MAX, length = 0;
    const char *text;

    if (d != NULL && import == VST_IMPORT_MODULE) {
        length = module_name(d, name, size);
        return length < size ? length : size;
    }
    text = imports_text_of(import == VST_IMPORT_MODULE ? VST_IMPORT_UNKNOWN
                                                       : import);
    size -= strlen(text) + 1;
    if (d != NULL)
        length = module_name(d, name, size);
    if (length > size)
        length = size;
    if (length != 0)
        name[length++] = ' ';
    memcpy(name + length, text, strlen(text));
    return length + strlen(text);
}
