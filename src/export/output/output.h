/* Where an exporter writes: a buffer in front of a file, plain or gzip. The
 * file has a temporary name beside its own until it is finished. An error is
 * remembered and returned at the end, so that exporters need not check every
 * write. One thread at a time. */
#ifndef VST_EXPORT_OUTPUT_H
#define VST_EXPORT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <vestige/status.h>
#include <vestige/trace.h>

typedef struct vst__output vst__output;

/* The most that vst__output_reserve gives. */
#define VST_OUTPUT_RESERVE_MAX ((size_t)64 * 1024)

struct vst__output {
    char *at;  /* where the next byte goes */
    char *end; /* of the buffer */
    vst_status status;
    struct vst__output_file *file;
};

vst_status vst__output_create(const char *path, bool gzip, vst__output *output,
                              vst_error *error);
/* Gives the file its name if all went well, and removes it if not. `status` is
 * what the exporter returned. */
vst_status vst__output_finish(vst__output *output, vst_status status,
                              vst_error *error);
/* More bytes than a file explains are an error, VST_E_OUTPUT: the bytes of all
 * traces that are written. A damaged one could else fill the disk. No honest
 * trace comes near: the most that one was seen to become is 300 times as large,
 * as CSV with a stack of 150 frames in each row. */
void vst__output_expect(vst__output *output, vst_trace *const *traces,
                        size_t count);
void vst__output_flush(vst__output *output);
void vst__output_write(vst__output *output, const char *bytes, size_t count);
/* Text in UTF-8. What is not is replaced, and so are the characters of one byte
 * for which `instead_of` does not return NULL. */
void vst__output_utf8(vst__output *output, const char *bytes, size_t count,
                      const char *(*instead_of)(unsigned char c));

/* Room for count bytes, at most VST_OUTPUT_RESERVE_MAX; what was written there
 * counts once it is committed. */
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
