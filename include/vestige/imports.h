/* Imports, as replay recognises them among calls: by the names of the functions
 * of the language's import system. */
#ifndef VESTIGE_IMPORTS_H
#define VESTIGE_IMPORTS_H

#include <stdbool.h>
#include <stddef.h>

#include "record.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a span of VST_SPAN_IMPORT imported. A module is named by the file of its
 * code. If no code of it ran (it is written in C, or a namespace package, or
 * its parent has imported it before, or it was not found), a VST_ESCAPE_IMPORT
 * names it: its definition is that of a native function whose name is
 * VST_MODULE_NAMED and the module's. Older traces have a call of such a
 * function in its place. Where there is neither, it is not named. */
#define VST_MODULE_NAMED "<module> "

typedef enum vst_import {
    VST_IMPORT_NONE = 0,
    VST_IMPORT_MODULE,    /* vst_span.module is the definition of its name */
    VST_IMPORT_EXTENSION, /* written in C, in a shared library */
    VST_IMPORT_BUILTIN,   /* written in C, a part of the interpreter */
    VST_IMPORT_NAMESPACE, /* a package that has no code */
    /* An exception, before any code of the module ran. vst_span.module may be
     * the definition of its name, else it is 0 */
    VST_IMPORT_FAILED,
    VST_IMPORT_UNKNOWN /* the trace does not tell */
} vst_import;

/* The name of a module, from the definition of its code: "pandas.core.frame" of
 * pandas/core/frame.py, or the path itself where the search path does not
 * explain it; or from its name as above. Copies at most size bytes without a
 * NUL; the length of the whole name, 0 if it is no module's. */
VST_API size_t vst_module_name(const vst_definition *definition, char *name,
                               size_t size);

enum { VST_IMPORT_NAME_MAX = 512 }; /* longer ones are cut */

struct vst_trace;

/* What a span of VST_SPAN_IMPORT imported: the module's name, with " (failed)"
 * behind it if it was, or "(extension module)" and the like. Its length. */
VST_API size_t vst_import_name(const struct vst_trace *trace, vst_import import,
                               vst_id module, char name[VST_IMPORT_NAME_MAX]);

#ifdef __cplusplus
}
#endif
#endif
