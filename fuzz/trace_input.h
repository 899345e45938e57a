/* An input as a trace file. A trace as it lies on disk is mostly zeros and
 * checksums, which stand in a fuzzer's way, so an input is the same without
 * them:
 *
 *   INPUT_CHOICES bytes   what the target does with the trace, see below
 *   vst_file_header       magic, byte order, header size and checksum are set
 *   chunks, each          vst_chunk_header, whose checksum and magic are set;
 *                         in the input checksum is how many bytes of payload
 *                         follow, and magic how often they are repeated. What
 *                         is left of the chunk's size is zeros.
 *
 * An input may end anywhere. mutate_trace.c changes inputs of this form, and
 * all targets that read one begin with the same seeds (corpus/trace). What is
 * wrong with a file's frame, such as checksums, is for fuzz_reader.c, which
 * takes files as they are. One thread. */
#ifndef VST_FUZZ_TRACE_INPUT_H
#define VST_FUZZ_TRACE_INPUT_H

#include <stdbool.h>

#include <vestige/trace.h>

#include "store/format.h"

enum {
    INPUT_CHOICES = 16, /* the first one has flags, the others a target reads */
    INPUT_FILE_MAX = 1 << 20,
    /* Two stacks that switch to and fro deliver all of their calls each time;
     * what gives more spans than this is left alone. */
    INPUT_SPANS_MAX = 50000,
    INPUT_WINDOWS_MAX = 16
};

/* Flags of the first choice. */
enum {
    INPUT_WHOLE = 1,   /* the last chunk has its zeros too */
    INPUT_OFFSET = 2,  /* the trace is moved in time */
    INPUT_CLIP = 4,    /* only its middle is shown */
    INPUT_LAST = 8,    /* only its last window is asked for */
    INPUT_PACKED = 16, /* it is read from a packed file */
    INPUT_ALL = 0xff
};

typedef struct trace_input {
    uint8_t choices[INPUT_CHOICES];
    unsigned char *bytes; /* of the file; there is one input at a time */
    size_t size;
} trace_input;

/* False: it has no header. */
bool input_expand(trace_input *input, const uint8_t *bytes, size_t size);
void input_free(trace_input *input);

/* The file, in memory; the caller closes it. */
int input_file(const trace_input *input);
/* Opens it, moved and clipped as its flags say; NULL if it is no trace, or too
 * much of one. */
vst_trace *input_open(const trace_input *input);
/* Hides the first third of it, and the last. */
void input_clip(vst_trace *trace);
/* VST_WINDOW_ALL or the last one, as its flags say. */
int input_window(const trace_input *input);
/* Whether all can be replayed, in so many spans. */
bool input_is_small(vst_trace *trace);

/* A target's whole: opens the input, heeding those of its flags that are among
 * `flags`, and calls `use` with it, unless it is no trace or not a small one.
 * Returns what libFuzzer expects of a target. */
int input_use(const uint8_t *bytes, size_t size, unsigned flags,
              void (*use)(const trace_input *input, vst_trace *trace));

/* Files from now on get no longer than this. */
void input_limit_output(size_t bytes);
/* The folder for a target's files, removed with the input. */
const char *input_folder(void);

/* A file's bytes, gunzipped, with a NUL behind them; the caller frees. */
unsigned char *input_contents(const char *path, size_t *size);

#endif
