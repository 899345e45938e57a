/* A trace made by hand, as an exporter writes it. */
#ifndef VST_TESTS_EXPORT_BUILT_H
#define VST_TESTS_EXPORT_BUILT_H

#include "exported.h"
#include "trace_builder.h"

/* Exports a built trace and returns the file's contents ("" if there is no
 * file), which the caller frees. Deletes the file. format may be NULL. */
static inline char *export_built(const builder *b, const char *name,
                                 const char *format, int window)
{
    vst_export_options options = {.window = window, .format = format};
    const char *path = in_folder(name);
    vst_trace *trace;
    char *text;

    if (!CHECK_INT(builder_open(b, &trace, NULL), VST_OK))
        return calloc(1, 1);
    CHECK_INT(vst_trace_export(trace, path, &options, NULL), VST_OK);
    vst_trace_close(trace);
    text = contents(path);
    CHECK_INT(remove(path), 0);
    return text != NULL ? text : calloc(1, 1);
}

#endif
