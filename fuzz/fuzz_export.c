/* Every format that a trace, or its history of memory, can be written as. The
 * input chooses the format. All formats share the reading code, so one corpus
 * serves all of them; a corpus for each format would take a dozen times as long
 * to grow. Formats that are JSON or protocol buffers must come out as such,
 * texts as lines without control characters. */
#include <string.h>

#include "export/output/json.h"
#include "memory/report.h"
#include "target.h"
#include "trace_input.h"

enum { OUTPUT_MAX = 64 << 20 }; /* bytes; longer outputs are given up */

typedef enum content {
    ANYTHING,
    JSON,
    PROTO,
    TEXT, /* Checks for UTF-8 without control characters other than line ends
           * and tabs. */
} content;

typedef struct format {
    const char *suffix; /* suffix of the file */
    const char *name;   /* name of the format; NULL: the suffix decides */
    content content;
    bool is_memory;
} format;

static const format formats[] = {
    {"json", NULL, JSON, false},
    {"json.gz", NULL, JSON, false},
    {"pftrace", NULL, PROTO, false},
    {"speedscope.json", NULL, JSON, false},
    {"pftrace.gz", NULL, PROTO, false},
    {"folded", "folded", TEXT, false},
    {"folded", "folded-ns", TEXT, false},
    {"svg", NULL, TEXT, false},
    {"pb.gz", "pprof", PROTO, false},
    {"pstats", NULL, ANYTHING, false},
    {"callgrind", "callgrind", TEXT, false},
    {"json", "execution-trace", JSON, false},
    {"json", "memory-timeline", JSON, false},
    {"raw.json.gz", "memory-timeline", JSON, false},
    {"html", "memory-timeline", TEXT, false},
    {"pickle", NULL, ANYTHING, true},
    {"json", NULL, JSON, true},
    {"csv", NULL, TEXT, true},
    {"folded", NULL, TEXT, true},
    {"html", NULL, TEXT, true},
};

enum { FORMATS = sizeof formats / sizeof *formats };

/* ---- what comes out ------------------------------------------------------ */

static bool take_varint(const unsigned char **at, const unsigned char *end,
                        uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at != end && shift < 64; shift += 7) {
        unsigned char byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Reads fields one after the other, up to the end. */
static bool is_proto(const unsigned char *at, const unsigned char *end)
{
    while (at != end) {
        uint64_t key, value;

        if (!take_varint(&at, end, &key) || key >> 3 == 0)
            return false;
        if ((key & 7) == 1 || (key & 7) == 5) {
            value = (key & 7) == 1 ? 8 : 4;
        } else {
            if (((key & 7) != 0 && (key & 7) != 2) ||
                !take_varint(&at, end, &value))
                return false;
            if ((key & 7) == 0)
                value = 0;
        }
        if (value > (uint64_t)(end - at))
            return false;
        at += value;
    }
    return true;
}

/* Returns the length of the character at this place, 0 if there is none. */
static size_t character(const unsigned char *at, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = *at < 0x80 ? 1 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
    uint32_t code = *at & (length == 1 ? 0x7fu : 0xffu >> (length + 1));

    if ((*at >= 0x80 && *at < 0xc2) || *at > 0xf4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3fu);
    }
    if (code < least[length] || code > 0x10ffff || code >> 11 == 0x1b)
        return 0;
    return code >= ' ' || code == '\n' || code == '\t' ? length : 0;
}

static bool is_text(const unsigned char *bytes, size_t size)
{
    size_t length;

    for (size_t at = 0; at < size; at += length) {
        length = character(bytes + at, size - at);
        if (length == 0)
            return false;
    }
    return true;
}

static void check(const format *of, const char *path)
{
    size_t size;
    unsigned char *bytes = input_contents(path, &size);

    if (of->content == JSON)
        MUST(vst__json_is_value((const char *)bytes, size));
    if (of->content == PROTO)
        MUST(is_proto(bytes, bytes + size));
    if (of->content == TEXT)
        MUST(is_text(bytes, size));
    free(bytes);
}

/* ---- exports ------------------------------------------------------------- */

static vst_status export_one(const format *of, const trace_input *input,
                             vst_trace *const *traces, size_t count,
                             const char *path)
{
    const uint8_t *choices = input->choices;
    vst_export_options options = {
        .window = input_window(input),
        .no_memory_events = choices[3] & 1,
        .format = of->name,
        .observer = choices[4] & 3,
    };
    vst_memory_report_options report = {
        .window = input_window(input),
        .temporary = choices[5],
        .view = (vst_memory_view)(choices[6] % VST_MEMORY_VIEWS),
    };
    vst_error error = {0};

    if (of->is_memory)
        return vst_traces_export_memory(traces, count, path, &report, &error);
    return vst_traces_export(traces, count, path, &options, &error);
}

/* Returns whether a failure is expected: no memory records, an output that is
 * too large, or two traces for a format of one. */
static bool is_fair(const format *of, vst_status status, vst_trace *trace,
                    size_t count)
{
    if (status == VST_E_STATE)
        return of->is_memory && !vst_trace_has_memory(trace);
    if (status == VST_E_ARGUMENT)
        return count != 1;
    return status == VST_E_OUTPUT || status == VST_E_IO;
}

static void export(const trace_input *input, vst_trace *trace)
{
    const format *of = &formats[input->choices[1] % FORMATS];
    vst_trace *traces[2] = {trace, NULL};
    size_t count = 1;
    char path[4200];
    vst_status status;

    if (input->choices[2] & 1)
        traces[1] = input_open(input);
    count += traces[1] != NULL;
    snprintf(path, sizeof path, "%s/out.%s", input_folder(), of->suffix);
    status = export_one(of, input, traces, count, path);
    if (status == VST_OK)
        check(of, path);
    else
        MUST(is_fair(of, status, trace, count));
    remove(path);
    vst_trace_close(traces[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    input_limit_output(OUTPUT_MAX);
    return input_use(bytes, size, INPUT_ALL, export);
}
