/* vst_trace_export: chooses the exporter by the path's suffix and gives it an
 * output. Knows the formats by name only. One thread at a time uses a trace. */
#include <string.h>

#include "export/exporter.h"

static const vst__exporter *const exporters[] = {
    &vst__exporter_chrome,
};

static bool ends_with(const char *text, size_t length, const char *suffix)
{
    size_t count = strlen(suffix);

    return length > count && memcmp(text + length - count, suffix, count) == 0;
}

static const vst__exporter *choose(const char *path, bool *gzip)
{
    size_t length = strlen(path);

    *gzip = ends_with(path, length, ".gz");
    if (*gzip)
        length -= strlen(".gz");
    for (size_t i = 0; i < sizeof exporters / sizeof exporters[0]; i++)
        if (ends_with(path, length, exporters[i]->suffix))
            return exporters[i];
    return NULL;
}

vst_status vst_trace_export(vst_trace *trace, const char *path,
                            const vst_export_options *options, vst_error *error)
{
    static const vst_export_options usual = {VST_WINDOW_LAST, NULL};
    vst__output output;
    vst_status status;
    bool gzip;
    const vst__exporter *exporter = choose(path, &gzip);

    vst_error_set(error, VST_OK, 0, 0);
    if (exporter == NULL)
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    status = vst__output_create(path, gzip, &output, error);
    if (status != VST_OK)
        return status;
    status = exporter->write(trace, options != NULL ? options : &usual, path,
                             &output, error);
    return vst__output_finish(&output, status, error);
}
