/* Every way of reading a trace takes at most 20 times the (unpacked) trace's
 * size and a fixed amount of memory. Readers must check a file's claims (ids,
 * depths, counts) before they allocate memory by them. The input chooses the
 * way; the linker sends each allocation of the core to this file (--wrap). A
 * way that takes too long is given up, and judged by the memory until then. */
#include <malloc.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "memory/report.h"
#include "replay/contexts.h"
#include "store/reader.h"
#include "tables/pass.h"
#include "tables/tables.h"
#include "target.h"
#include "trace_input.h"
#include "view/view.h"

/* Users are promised a fixed amount of 64 MiB. The core's own fixed part is
 * smaller (buffers of an output, frames of a packed trace, blocks of columns),
 * and inputs of this target are small: a tighter limit finds more errors. */
#define FIXED ((size_t)28 << 20)

enum {
    TIMES = 20,
    TURNS_MAX = 10, /* the number of checks, 50 ms apart, after which a replay
                     * or export is given up */
    SPANS_MAX = 1000000,
    ROWS_MAX = 500000,
    OUTPUT_MAX = 16 << 20,
};

/* ---- memory ------------------------------------------------------------- */

static atomic_size_t in_use, peak;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

static void *note(void *memory)
{
    size_t now, most = peak;

    if (memory == NULL)
        return NULL;
    now = atomic_fetch_add(&in_use, malloc_usable_size(memory)) +
          malloc_usable_size(memory);
    while (now > most && !atomic_compare_exchange_weak(&peak, &most, now))
        ;
    return memory;
}

static void forget(void *memory)
{
    if (memory != NULL)
        atomic_fetch_sub(&in_use, malloc_usable_size(memory));
}

void *__wrap_malloc(size_t size)
{
    return note(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return note(__real_calloc(count, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    size_t before = memory != NULL ? malloc_usable_size(memory) : 0;
    void *moved = __real_realloc(memory, size);

    if (moved != NULL)
        atomic_fetch_sub(&in_use, before);
    return note(moved);
}

void __wrap_free(void *memory)
{
    forget(memory);
    __real_free(memory);
}

/* The core's own heap is meant for recording; here it calls malloc, too. */
__attribute__((constructor)) static void use_malloc(void)
{
    vst__heap_is_malloc = true;
}

/* ---- what is done ------------------------------------------------------- */

static int give_up(void *ctx, double done)
{
    int *turns = ctx;

    (void)done;
    return ++*turns > TURNS_MAX;
}

static const char *const formats[] = {
    "chrome",    "perfetto",        "speedscope",      "flamegraph",
    "folded",    "folded-ns",       "pprof",           "pstats",
    "callgrind", "execution-trace", "memory-timeline",
};
static const char *const memory_suffixes[] = {"pickle", "json", "csv", "folded",
                                              "html"};

enum {
    FORMATS = sizeof formats / sizeof *formats,
    MEMORY_FORMATS = sizeof memory_suffixes / sizeof *memory_suffixes,
    TABLES = 15,
    OTHERS = 4,
    WAYS = OTHERS + TABLES + FORMATS + MEMORY_FORMATS
};

static void export(vst_trace *trace, const trace_input *input, unsigned which)
{
    vst_export_options options = {.window = input_window(input),
                                  .format = formats[which]};
    char path[4200];

    snprintf(path, sizeof path, "%s/out.json", input_folder());
    vst_trace_export(trace, path, &options, NULL);
    remove(path);
}

static void export_memory(vst_trace *trace, const trace_input *input,
                          unsigned which)
{
    vst_memory_report_options options = {
        .window = input_window(input),
        .temporary = input->choices[3],
        .view = (vst_memory_view)(input->choices[4] % VST_MEMORY_VIEWS),
    };
    char path[4200];

    snprintf(path, sizeof path, "%s/out.%s", input_folder(),
             memory_suffixes[which]);
    vst_traces_export_memory(&trace, 1, path, &options, NULL);
    remove(path);
}

typedef struct gathered {
    vst_contexts *tree;
    size_t spans;
} gathered;

static vst_status add_span(void *ctx, const vst_span *span)
{
    gathered *self = ctx;

    return ++self->spans < SPANS_MAX ? vst__contexts_add(self->tree, span, 0)
                                     : VST_E_CANCELLED;
}

static vst_status leave(void *ctx, uint32_t depth)
{
    return vst__contexts_leave(((gathered *)ctx)->tree, depth);
}

static void gather(vst_trace *trace, const trace_input *input)
{
    gathered self = {NULL, 0};
    vst_sink sink = {.ctx = &self, .span = add_span, .leave = leave};
    const vst_context_row *rows;
    size_t count;

    MUST(vst__contexts_create(&self.tree) == VST_OK);
    vst_trace_set_by_running(trace, input->choices[3] & 1);
    vst_trace_replay(trace, input_window(input), NULL, &sink, NULL);
    vst__contexts_finish(self.tree, &rows, &count);
    vst__contexts_destroy(self.tree);
}

static void read_table(const trace_input *input, unsigned which)
{
    int fd = input_file(input);
    char path[64];
    vst_table_source source = {
        .path = path, .parent_pid = -1, .rank = -1, .world_size = -1};
    vst_arrow_stream stream;
    vst_arrow_array batch;
    int64_t rows = 0;

    MUST(vst__table_name(TABLES - 1) != NULL &&
         vst__table_name(TABLES) == NULL);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    MUST(vst__table_stream(vst__table_name(which), &source, 1, &stream) ==
         VST_OK);
    while (rows < ROWS_MAX && stream.get_next(&stream, &batch) == 0 &&
           batch.release != NULL) {
        rows += batch.length;
        batch.release(&batch);
    }
    stream.release(&stream);
    close(fd);
}

static void summarize(vst_trace *trace, const trace_input *input)
{
    vst_memory_report_options options = {.window = input_window(input),
                                         .temporary = input->choices[3]};
    vst_memory_summary *summary;

    if (vst_trace_has_memory(trace) &&
        vst__trace_summarize_memory(trace, &options, &summary, NULL) == VST_OK)
        vst__memory_summary_free(summary);
}

static void add_up_devices(vst_trace *trace, const trace_input *input)
{
    const vst__table_options options = {.window = input_window(input)};
    const vst__table *table = vst__table_of_any_kind("device_uses");
    vst__table_pass pass;

    if (vst__table_pass_create(&pass, &table, 1, &options) == VST_OK)
        vst__table_pass_read(&pass, trace, NULL);
    vst__table_pass_free(&pass);
}

static void look(const trace_input *input)
{
    int fd = input_file(input);
    vst_view *view;
    char path[64];
    int turns = 0;
    vst_view_options options = {.no_file = true,
                                .workers = 1,
                                .progress = give_up,
                                .progress_ctx = &turns};

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (vst__view_open(path, &options, &view, NULL) == VST_OK)
        vst__view_close(view);
    close(fd);
}

static void read_one_way(vst_trace *trace, const trace_input *input,
                         unsigned way)
{
    if (way == 0)
        gather(trace, input);
    else if (way == 1)
        summarize(trace, input);
    else if (way == 2)
        look(input);
    else if (way == 3)
        add_up_devices(trace, input);
    else if (way < OTHERS + TABLES)
        read_table(input, way - OTHERS);
    else if (way < OTHERS + TABLES + FORMATS)
        export(trace, input, way - OTHERS - TABLES);
    else
        export_memory(trace, input, way - OTHERS - TABLES - FORMATS);
}

/* Each way opens the trace again, like a command. */
static void measure(const trace_input *input, unsigned way)
{
    size_t before = in_use;
    vst_trace *trace;
    int turns = 0;

    peak = before;
    trace = input_open(input);
    if (trace != NULL) {
        vst_trace_set_progress(trace, give_up, &turns);
        read_one_way(trace, input, way);
    }
    vst_trace_close(trace);
    if (peak - before > FIXED + TIMES * input->size)
        fprintf(stderr, "%zu bytes for a trace of %zu, way %u\n", peak - before,
                input->size, way);
    MUST(peak - before <= FIXED + TIMES * input->size);
}

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t max_size)
    __attribute__((weak));

/* Takes one way under libFuzzer, which allows little time; inputs made by hand
 * take all ways. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    trace_input input;

    input_limit_output(OUTPUT_MAX);
    if (input_expand(&input, bytes, size)) {
        bool all = input.choices[2] & 1 && LLVMFuzzerMutate == NULL;

        for (unsigned way = 0; way < WAYS; way++)
            if (all || way == input.choices[1] % WAYS)
                measure(&input, way);
    }
    input_free(&input);
    return 0;
}
