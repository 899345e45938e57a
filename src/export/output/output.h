/* The output of an exporter: a buffer in front of a file, plain or gzip. Until
 * the file is finished it has a temporary name next to its own. The first error
 * is remembered and returned at the end, so that exporters need not check every
 * write. One thread at a time. */
#ifndef VST_EXPORT_OUTPUT_H
#define VST_EXPORT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <vestige/status.h>
#include <vestige/trace.h>

typedef struct vst__output vst__output;

/* The most that vst__output_reserve can reserve. */
#define VST_OUTPUT_RESERVE_MAX ((size_t)64 * 1024)

struct vst__output {
    char *at;  /* place of the next byte */
    char *end; /* end of the buffer */
    vst_status status;
    const char *path; /* belongs to the caller */
    struct vst__output_file *file;
};

vst_status vst__output_create(const char *path, bool gzip, vst__output *output,
                              vst_error *error);
/* Renames the file to its name if all went well, and removes it if not.
 * `status` is the exporter's. */
vst_status vst__output_finish(vst__output *output, vst_status status,
                              vst_error *error);
/* Sets a limit in proportion to the bytes of all traces: more output is an
 * error, VST_E_OUTPUT, because a damaged trace could otherwise fill the disk.
 * No valid trace comes near: the largest known output is 300 times the trace,
 * as CSV with a stack of 150 frames in each row. */
void vst__output_expect(vst__output *output, vst_trace *const *traces,
                        size_t count);
void vst__output_flush(vst__output *output);
void vst__output_write(vst__output *output, const char *bytes, size_t count);
/* Writes text as UTF-8. Replaces invalid bytes, and those characters of one
 * byte for which `replacement` does not return NULL. */
void vst__output_utf8(vst__output *output, const char *bytes, size_t count,
                      const char *(*replacement)(unsigned char c));

/* Returns room for count bytes, at most VST_OUTPUT_RESERVE_MAX;
 * vst__output_commit says how far the room was used. */
static inline char *vst__output_reserve(vst__output *output, size_t count)
{
    if ((size_t)(output->end - output->at) < count)
        vst__output_flush(output);
    return output->at;
}

static inline void vst__output_commit(vst__output *output, char *end)
{
    output->at = end;
}

static inline void vst__output_text(vst__output *output, const char *text)
{
    vst__output_write(output, text, strlen(text));
}

#endif
