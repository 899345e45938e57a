/* Opens arbitrary bytes as a trace file, calls every reading function, replays
 * each window, checks the rules that hold for every tree, and exports the
 * trace, which must give JSON. */
#include <string.h>
#include <unistd.h>

#include <vestige/trace.h>

#include "export/output/json.h"
#include "memory/report.h"
#include "os/os.h"
#include "span_tree.h"
#include "store/reader.h"
#include "target.h"
#include "trace_input.h"

/* A few bytes of a packed file can stand for a mebibyte. */
enum { PACKED_MAX = 16 << 20 };

static vst_status take_span(void *ctx, const vst_span *span)
{
    span_tree *tree = ctx;
    vst_status status = tree_span(tree, span);

    return tree->count < INPUT_SPANS_MAX ? status : VST_E_CANCELLED;
}

/* Frames of a packed file are unpacked when they are read. */
static bool is_given_up(const vst_trace *trace, vst_status status)
{
    MUST(status == VST_OK || status == VST_E_CANCELLED ||
         (status == VST_E_DAMAGED && trace->source.packed != NULL));
    return status != VST_OK;
}

static void ask(const vst_trace *trace)
{
    vst_trace_info info;
    size_t bytes = 0;
    const char *key, *json;

    vst_trace_get_info(trace, &info);
    MUST(info.start_ns <= info.end_ns || info.windows > 1);
    MUST(info.words <= info.bytes / 8);
    MUST(info.threads <= vst_trace_thread_count(trace));
    for (size_t i = 0; i < vst_trace_thread_count(trace); i++) {
        const vst_trace_thread *thread = vst_trace_thread_at(trace, i);
        MUST(vst_trace_thread_find(trace, thread->number) == thread);
        bytes += strlen(thread->name);
    }
    for (size_t i = 0; i < trace->definition_count; i++) {
        const vst_definition *definition =
            vst_trace_definition(trace, trace->definition_ids[i]);
        MUST(definition == &trace->definitions[i]);
        MUST(definition->file_skip <= definition->file_len);
        MUST(definition->name[definition->name_len] == '\0');
        MUST(definition->file[definition->file_len] == '\0');
        bytes += strlen(definition->name) + strlen(definition->file);
    }
    for (size_t i = 0; (json = vst_trace_metadata_at(trace, i, &key)) != NULL;
         i++)
        bytes += strlen(key) + strlen(json);
    MUST(bytes <= info.bytes);
}

/* Replays each window by itself, because windows of a damaged file may
 * overlap. */
static bool replay(vst_trace *trace)
{
    size_t windows = trace->window_count;

    for (size_t i = 0; i < windows && i < INPUT_WINDOWS_MAX; i++) {
        span_tree tree = {0};
        vst_sink sink = tree_sink(&tree);
        bool given_up;

        sink.span = take_span;
        sink.recursion = i & 1;
        given_up = is_given_up(
            trace, vst_trace_replay(trace, (int)trace->windows[i].number, NULL,
                                    &sink, NULL));
        if (!given_up)
            tree_check(&tree);
        tree_free(&tree);
        MUST(checks_bad == 0);
        if (given_up)
            return false;
    }
    return true;
}

static vst_status take_memory(void *ctx, const vst_memory_event *event)
{
    uint64_t *live_bytes = ctx;

    if (event->kind == VST_MEMORY_FRAMEWORK ||
        event->kind == VST_MEMORY_FRAMEWORK_FREE)
        return VST_OK;
    if (!(event->flags & VST_MEMORY_FREES))
        *live_bytes += event->size;
    else if (!(event->flags & VST_MEMORY_UNKNOWN))
        *live_bytes -= event->size;
    MUST(event->live_bytes == *live_bytes);
    return VST_OK;
}

static void replay_memory(vst_trace *trace)
{
    size_t windows = trace->window_count;

    for (size_t i = 0; i < windows && i < INPUT_WINDOWS_MAX; i++) {
        uint64_t live_bytes = 0;
        vst_memory_sink sink = {.ctx = &live_bytes, .event = take_memory};

        if (is_given_up(trace,
                        vst_trace_replay_memory(
                            trace, (int)trace->windows[i].number, &sink, NULL)))
            return;
    }
    for (size_t i = 0; i < trace->stack_count; i++) {
        const vst__stack_entry *entry = &trace->stacks[i];
        MUST(vst_trace_stack(trace, entry->id) == &entry->stack);
        MUST(entry->stack.parent < entry->id);
    }
}

static void check_json(const char *path)
{
    size_t size;
    unsigned char *text = input_contents(path, &size);

    MUST(vst__json_is_value((const char *)text, size));
    free(text);
}

static void export(vst_trace *trace)
{
    vst_export_options options = {.window = VST_WINDOW_ALL};
    char path[64];

    snprintf(path, sizeof path, "/tmp/vestige-fuzz-%d.json", (int)getpid());
    MUST(vst_trace_export(trace, path, &options, NULL) == VST_OK);
    check_json(path);
    options.format = "execution-trace";
    MUST(vst_trace_export(trace, path, &options, NULL) == VST_OK);
    check_json(path);
    unlink(path);
}

/* Exports in another format, which the input's size chooses. */
static void export_otherwise(vst_trace *trace, size_t size)
{
    static const char *const suffixes[] = {
        "pftrace", "speedscope.json", "folded",    "svg",
        "pb",      "pstats",          "callgrind",
    };
    const char *suffix = suffixes[size % (sizeof suffixes / sizeof *suffixes)];
    vst_export_options options = {.window = VST_WINDOW_ALL};
    char path[96];

    snprintf(path, sizeof path, "/tmp/vestige-fuzz-%d.%s", (int)getpid(),
             suffix);
    MUST(vst_trace_export(trace, path, &options, NULL) == VST_OK);
    if (strcmp(suffix, "speedscope.json") == 0)
        check_json(path);
    unlink(path);
}

/* Checks that the summary of memory adds up, whatever the stacks are. */
static void summarize(vst_trace *trace)
{
    vst_memory_summary *s;

    if (!vst_trace_has_memory(trace) ||
        is_given_up(trace, vst__trace_summarize_memory(trace, NULL, &s, NULL)))
        return;
    for (size_t i = 1; i < s->node_count; i++)
        MUST(s->nodes[i].parent < i && s->nodes[i].frame < s->frame_count);
    MUST(s->is_sampled || s->nodes[0].inclusive[VST_MEMORY_TOTAL].count ==
                              s->views[VST_MEMORY_TOTAL].count);
    MUST(s->point_count <= VST_MEMORY_POINTS_MAX);
    vst__memory_summary_free(s);
}

static bool is_too_large(const uint8_t *bytes, size_t size)
{
    vst_pack_header header;

    if (size < sizeof header)
        return false;
    memcpy(&header, bytes, sizeof header);
    return memcmp(header.magic, VST_PACK_MAGIC, sizeof header.magic) == 0 &&
           header.size > PACKED_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    vst_trace *trace;
    vst_error error;
    vst_status status;
    int fd;

    if (is_too_large(bytes, size))
        return 0;
    MUST(vst__os_file_create_in_memory(&fd) == 0);
    MUST(write(fd, bytes, size) == (ssize_t)size);
    status = vst_trace_open_fd(fd, &trace, &error);
    vst__os_file_close(fd);
    if (status != VST_OK) {
        MUST(error.status == status);
        MUST(status == VST_E_NOT_A_TRACE || status == VST_E_DAMAGED ||
             status == VST_E_VERSION || status == VST_E_UNSUPPORTED ||
             status == VST_E_NO_ZSTD);
        return 0;
    }
    ask(trace);
    if (replay(trace) && trace->window_count <= INPUT_WINDOWS_MAX) {
        export(trace);
        export_otherwise(trace, size);
    }
    replay_memory(trace);
    summarize(trace);
    input_clip(trace);
    ask(trace);
    replay(trace);
    replay_memory(trace);
    vst_trace_close(trace);
    return 0;
}
