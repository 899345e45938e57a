/* Imports, as replay recognises them among calls: by the names of the functions
 * of the language's import system, so that nothing is recorded for it. */
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
 * code; one without code by the definition of a native function whose name is
 * VST_MODULE_WITHOUT_CODE and the module's, entered while the import system
 * makes it. Where the trace has neither, it is not named. */
#define VST_MODULE_WITHOUT_CODE "<module> "

typedef enum vst_import {
    VST_IMPORT_NONE = 0,
    VST_IMPORT_MODULE,    /* vst_span.module is the definition of its name */
    VST_IMPORT_EXTENSION, /* written in C, in a shared library */
    VST_IMPORT_BUILTIN,   /* written in C, a part of the interpreter */
    VST_IMPORT_NAMESPACE, /* a package that has no code */
    VST_IMPORT_FAILED,    /* an exception, before any code of the module ran */
    VST_IMPORT_UNKNOWN    /* the trace does not tell */
} vst_import;

/* The name of a module, from the definition of its code: "pandas.core.frame" of
 * pandas/core/frame.py, or the path itself where the search path does not
 * explain it; of one without code as above. Copies at most size bytes without a
 * NUL; the length of the whole name, 0 if it is no module's. */
VST_API size_t vst_module_name(const vst_definition *definition, char *name,
                               size_t size);

enum { VST_IMPORT_NAME_MAX = 512 }; /* longer ones are cut */

struct vst_trace;

/* What a span of VST_SPAN_IMPORT imported: the module's name, or
 * "(extension module)" and the like. Its length. */
VST_API size_t vst_import_name(const struct vst_trace *trace, vst_import import,
                               vst_id module, char name[VST_IMPORT_NAME_MAX]);

#ifdef __cplusplus
}
#endif
#endif
