/* An input as a trace file. A trace as it lies on disk is mostly zeros and
 * checksums, which hinder a fuzzer. An input is a trace without these:
 *
 *   INPUT_CHOICES bytes   what to do with the trace, see below
 *   vst_file_header       magic, byte order, header size and checksum are set
 *   chunks, each          vst_chunk_header, whose checksum and magic are set;
 *                         in the input checksum is how many bytes of payload
 *                         follow, and magic how often they are repeated. The
 *                         rest of the chunk is zeros.
 *
 * An input may end anywhere. mutate_trace.c changes inputs of this form, and
 * all targets that read such inputs share their seeds (corpus/trace).
 * fuzz_reader.c tests files with wrong frames, such as wrong checksums. One
 * thread. */
#ifndef VST_FUZZ_TRACE_INPUT_H
#define VST_FUZZ_TRACE_INPUT_H

#include <stdbool.h>

#include <vestige/trace.h>

#include "store/format.h"

enum {
    INPUT_CHOICES = 16, /* the first choice has flags, a target reads the
                         * others */
    INPUT_FILE_MAX = 1 << 20,
    /* If two stacks alternate, each switch delivers all calls of a stack.
     * Traces with more spans than this are skipped. */
    INPUT_SPANS_MAX = 50000,
    INPUT_WINDOWS_MAX = 16
};

/* Flags of the first choice. */
enum {
    INPUT_WHOLE = 1,   /* the last chunk keeps its final zeros */
    INPUT_OFFSET = 2,  /* the trace is moved in time */
    INPUT_CLIP = 4,    /* only the trace's middle is shown */
    INPUT_LAST = 8,    /* only the last window is read */
    INPUT_PACKED = 16, /* the trace is read from a packed file */
    INPUT_ALL = 0xff
};

typedef struct trace_input {
    uint8_t choices[INPUT_CHOICES];
    unsigned char *bytes; /* the file; there is one input at a time */
    size_t size;
} trace_input;

/* Returns false if the input has no header. */
bool input_expand(trace_input *input, const uint8_t *bytes, size_t size);
void input_free(trace_input *input);

/* Returns the file, in memory; the caller closes it. */
int input_file(const trace_input *input);
/* Opens the trace, moved and clipped as its flags say; returns NULL if the file
 * is not a trace, or a trace of too many spans. */
vst_trace *input_open(const trace_input *input);
/* Hides the first and the last third of the trace. */
void input_clip(vst_trace *trace);
/* Returns VST_WINDOW_ALL or the last window, as the flags say. */
int input_window(const trace_input *input);
/* Returns whether the whole trace can be replayed with at most this many
 * spans. */
bool input_is_small(vst_trace *trace);

/* Runs a target: opens the input, applies those of its flags that are among
 * `flags`, and calls `use` with the trace, unless the file is not a trace or is
 * too large. Returns the value that libFuzzer expects. */
int input_use(const uint8_t *bytes, size_t size, unsigned flags,
              void (*use)(const trace_input *input, vst_trace *trace));

/* Limits the size of files from now on. */
void input_limit_output(size_t bytes);
/* Returns the folder for a target's files, which is removed with the input. */
const char *input_folder(void);

/* Returns a file's bytes, gunzipped, with a NUL behind them; the caller frees
 * them. */
unsigned char *input_contents(const char *path, size_t *size);

#endif
