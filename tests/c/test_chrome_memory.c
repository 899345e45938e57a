/* Memory in the Chrome export: recorded through a session, read back as text.
 * Times are made up: only their order matters. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vestige/vestige.h>

#include "check.h"
#include "export/output/json.h"
#include "exported.h"

/* ---- a recording ----------------------------------------------------- */

typedef struct traced {
    char path[256];
    vst_session *session;
    vst_ticks now;
    vst_stack_id stack; /* app.py:7 in load, called by app.py:30 in main */
    vst_id load;
} traced;

static vst_id define_as(vst_recording *recording, vst_definition_kind kind,
                        const char *name, const char *file)
{
    vst_definition definition = {.kind = kind,
                                 .name = name,
                                 .name_len = (uint32_t)strlen(name),
                                 .file = file,
                                 .file_len = (uint32_t)strlen(file),
                                 .line = 1};
    vst_id id;

    CHECK_INT(vst_recording_define_id(recording, &definition, &id), VST_OK);
    return id;
}

static vst_id define(vst_recording *recording, const char *name,
                     const char *file)
{
    return define_as(recording, VST_DEF_PYTHON, name, file);
}

static void begin(traced *r, const char *name)
{
    vst_session_options options = {.path = r->path, .overwrite = true};
    vst_stack stack = {.kind = VST_STACK_LANGUAGE, .line = 30};
    vst_recording *recording;

    *r = (traced){.now = 0};
    snprintf(r->path, sizeof r->path, "%s/%s", folder, name);
    if (vst_session_create(&options, &r->session, NULL) != VST_OK ||
        vst_session_start(r->session, NULL) != VST_OK)
        abort();
    recording = vst_session_recording(r->session);
    r->load = define(recording, "load", "app.py");
    stack.function = define(recording, "main", "app.py");
    CHECK_INT(vst_recording_define_stack(recording, &stack, &r->stack), VST_OK);
    stack.parent = r->stack;
    stack.function = r->load;
    stack.line = 7;
    CHECK_INT(vst_recording_define_stack(recording, &stack, &r->stack), VST_OK);
    r->now = vst_clock_ticks();
}

static void allocate(traced *r, uintptr_t address, size_t size)
{
    r->now += 1;
    vst_record_alloc(VST_MEMORY_MALLOC, address, size, r->stack, 0, r->now);
}

static void release(traced *r, uintptr_t address)
{
    r->now += 1;
    vst_record_free(VST_MEMORY_FREE, address, 0, r->now);
}

static vst_trace *finish(traced *r)
{
    vst_trace *trace = NULL;

    CHECK_INT(vst_session_finish(r->session, NULL), VST_OK);
    vst_session_destroy(r->session);
    vst_thread_release();
    CHECK_INT(vst_trace_open(r->path, &trace, NULL), VST_OK);
    CHECK_INT(remove(r->path), 0);
    return trace;
}

/* Exports the trace, reads the file back and returns it; the caller frees the
 * text. */
static char *exported(vst_trace *const *traces, size_t count, bool events)
{
    vst_export_options options = {.window = VST_WINDOW_ALL,
                                  .no_memory_events = !events};
    const char *path = in_folder("t.json");
    char *text;

    CHECK_INT(vst_traces_export(traces, count, path, &options, NULL), VST_OK);
    for (size_t i = 0; i < count; i++)
        vst_trace_close(traces[i]);
    text = contents(path);
    CHECK(text != NULL && vst__json_is_value(text, strlen(text)));
    CHECK_INT(remove(path), 0);
    return text != NULL ? text : calloc(1, 1);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    while ((text = strstr(text, part)) != NULL) {
        text += strlen(part);
        count++;
    }
    return count;
}

/* ---- tests -------------------------------------------------------------- */

static void allocations_and_frees_are_torchs_memory_events(void)
{
    traced r;
    vst_trace *trace;
    char *text;

    begin(&r, "t.vst");
    allocate(&r, 0x10000, 100);
    allocate(&r, 0x20000, 70000);
    release(&r, 0x10000);
    trace = finish(&r);
    text = exported(&trace, 1, true);
    expect_line(text, "\"profile_memory\": 1,\n");
    expect_line(text, ",\n{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", "
                      "\"s\": \"t\", \"name\": \"[memory]\", \"pid\": ");
    expect_line(text,
                "\"args\": {\"Total Reserved\": 0, \"Total Allocated\": 100, "
                "\"Bytes\": 100, \"Device Id\": -1, \"Device Type\": 0, "
                "\"Addr\": 65536, \"Kind\": \"malloc\", "
                "\"At\": \"app.py:7 load\", \"Stack id\": 2, \"Ev Idx\": 1}}");
    expect_line(text, "\"Total Allocated\": 70100, \"Bytes\": 70000, ");
    expect_line(text, "\"Total Allocated\": 70000, \"Bytes\": -100, "
                      "\"Device Id\": -1, \"Device Type\": 0, "
                      "\"Addr\": 65536, \"Kind\": \"free\", "
                      "\"At\": \"app.py:7 load\", \"Stack id\": 2, "
                      "\"Ev Idx\": 3}}");
    CHECK_INT(count_of(text, "\"[memory]\""), 3);
    free(text);
}

static void what_clients_cannot_pair_has_no_event(void)
{
    traced r;
    vst_trace *trace;
    char *text;

    begin(&r, "t.vst");
    release(&r, 0x30000);
    release(&r, 0x30000);
    allocate(&r, 0x40000, 0);
    release(&r, 0x40000);
    allocate(&r, 0x50000, 8);
    trace = finish(&r);
    text = exported(&trace, 1, true);
    CHECK_INT(count_of(text, "\"[memory]\""), 1);
    expect_line(text, "\"Total Allocated\": 8, \"Bytes\": 8, ");
    free(text);
}

static void an_address_given_out_twice_is_freed_in_between(void)
{
    traced r;
    vst_trace *trace;
    char *text;

    begin(&r, "t.vst");
    allocate(&r, 0x50000, 8);
    allocate(&r, 0x50000, 24);
    trace = finish(&r);
    text = exported(&trace, 1, true);
    expect_line(text, "\"Total Allocated\": 0, \"Bytes\": -8, ");
    expect_line(text, "\"Total Allocated\": 24, \"Bytes\": 24, ");
    CHECK_INT(count_of(text, "\"[memory]\""), 3);
    free(text);
}

static void a_trace_without_memory_says_nothing_of_it(void)
{
    traced r;
    vst_trace *trace;
    char *text;

    begin(&r, "t.vst");
    vst_record(VST_ENTER, r.load);
    vst_record(VST_EXIT, r.load);
    trace = finish(&r);
    text = exported(&trace, 1, true);
    expect_line(text, "\"name\": \"app.py(1): load\"");
    CHECK_INT(count_of(text, "memory"), 0);
    CHECK_INT(count_of(text, "Allocated"), 0);
    free(text);
}

/* Returns the counter's values in the order of the document. */
static size_t read_counter(const char *text, unsigned long long *values,
                           size_t max)
{
    size_t count = 0;

    while ((text = strstr(text, "\"name\": \"live memory\"")) != NULL) {
        text = strstr(text, "\"bytes\": ");
        if (!CHECK(text != NULL && count < max))
            break;
        values[count++] = strtoull(text + strlen("\"bytes\": "), NULL, 10);
    }
    return count;
}

/* Usage goes up and down in small steps; in between, one large block exists for
 * a moment. */
static void the_counter_is_thin_and_its_peak_exact(void)
{
    enum { TEETH = 20000, PEAK = 1000003, MAX = 4000 };
    static unsigned long long values[MAX];
    traced r;
    vst_trace *trace;
    unsigned long long highest = 0;
    size_t count;
    char *text;

    begin(&r, "t.vst");
    allocate(&r, 0x100000, PEAK - 11);
    for (uintptr_t i = 0; i < TEETH; i++) {
        allocate(&r, 0x10000, 5);
        if (i == TEETH / 2) {
            allocate(&r, 0x20000, 6);
            release(&r, 0x20000);
        }
        release(&r, 0x10000);
    }
    release(&r, 0x100000);
    trace = finish(&r);
    text = exported(&trace, 1, false);
    CHECK_INT(count_of(text, "\"[memory]\""), 0);
    count = read_counter(text, values, MAX);
    CHECK(count >= 3 && count < TEETH / 10);
    for (size_t i = 0; i < count; i++)
        if (values[i] > highest)
            highest = values[i];
    CHECK_INT(highest, PEAK);
    CHECK_INT(values[0], PEAK - 11);
    CHECK_INT(values[count - 1], 0);
    free(text);
}

static void a_span_has_the_bytes_it_allocated_and_its_callees(void)
{
    traced r;
    vst_trace *trace;
    vst_id inner;
    char *text;

    begin(&r, "t.vst");
    inner = define(vst_session_recording(r.session), "inner", "app.py");
    vst_record(VST_ENTER, r.load);
    r.now = vst_clock_ticks();
    allocate(&r, 0x10000, 100);
    vst_record(VST_ENTER, inner);
    r.now = vst_clock_ticks();
    allocate(&r, 0x20000, 30);
    release(&r, 0x10000);
    vst_record(VST_EXIT, inner);
    vst_record(VST_EXIT, r.load);
    vst_record(VST_ENTER, inner);
    vst_record(VST_EXIT, inner);
    trace = finish(&r);
    text = exported(&trace, 1, true);
    expect_line(text, "\"Ev Idx\": 1, \"Allocated Bytes\": 130, "
                      "\"Self Allocated Bytes\": 100}}");
    expect_line(text, "\"Ev Idx\": 2, \"Allocated Bytes\": 30, "
                      "\"Self Allocated Bytes\": 30}}");
    expect_line(text, "\"Ev Idx\": 3}}");
    /* "Ev Idx" of memory events continues the count. */
    expect_line(text, "\"Stack id\": 2, \"Ev Idx\": 4}}");
    expect_line(text, "\"Stack id\": 2, \"Ev Idx\": 6}}");
    free(text);
}

static void several_processes_have_their_own_memory(void)
{
    traced first, second;
    vst_trace *traces[2];
    char *text;

    begin(&first, "a.vst");
    vst_record(VST_ENTER, first.load);
    vst_record(VST_EXIT, first.load);
    traces[0] = finish(&first);
    begin(&second, "b.vst");
    allocate(&second, 0x10000, 7);
    traces[1] = finish(&second);
    text = exported(traces, 2, true);
    expect_line(text, "\"profile_memory\": 1,\n");
    CHECK_INT(count_of(text, "\"[memory]\""), 1);
    CHECK_INT(count_of(text, "\"live memory\""), 1);
    /* Numbers continue after the span of the first trace. */
    expect_line(text, "\"Stack id\": 2, \"Ev Idx\": 2}}");
    free(text);
}

static void a_frameworks_blocks_are_counted_apart(void)
{
    traced r;
    vst_trace *trace;
    char *text;

    begin(&r, "t.vst");
    allocate(&r, 0x10000, 4096);
    vst_record_alloc(VST_MEMORY_FRAMEWORK, 0x10000, 4000, 0, 0, ++r.now);
    vst_record_free(VST_MEMORY_FRAMEWORK_FREE, 0x10000, 0, ++r.now);
    trace = finish(&r);
    text = exported(&trace, 1, true);
    expect_line(text, "\"Total Allocated\": 4000, \"Bytes\": 4000, "
                      "\"Device Id\": -1, \"Device Type\": 0, "
                      "\"Addr\": 65536, \"Kind\": \"framework\", "
                      "\"Ev Idx\": 2}}");
    CHECK_INT(count_of(text, "\"live memory\""), 1);
    CHECK_INT(count_of(text, "\"live framework memory\""), 2);
    free(text);
}

/* A block of 1000 bytes is recorded with probability 1 - 1/e. */
static void samples_count_for_what_they_stand_for(void)
{
    traced r;
    vst_trace *trace;
    char *text;

    begin(&r, "t.vst");
    CHECK_INT(vst_recording_set_metadata(vst_session_recording(r.session),
                                         "vestige.memory",
                                         "{\"sample_bytes\": 1000}"),
              VST_OK);
    allocate(&r, 0x10000, 1000);
    allocate(&r, 0x20000, 1000);
    release(&r, 0x10000);
    trace = finish(&r);
    text = exported(&trace, 1, true);
    expect_line(text, "\"Total Allocated\": 3164, \"Bytes\": 1582, ");
    expect_line(text, "\"Total Allocated\": 1582, \"Bytes\": -1582, ");
    expect_line(text, "\"Size\": 1000, \"Weight\": 1.58");
    expect_line(text, "\"args\": {\"bytes\": 3164}}");
    free(text);
}

/* Readers pair events of the same name by address. */
static void where_a_framework_tells_of_its_blocks_only_they_are_memory(void)
{
    traced r;
    vst_trace *trace;
    char *text;

    begin(&r, "t.vst");
    define_as(vst_session_recording(r.session), VST_DEF_OPERATOR, "add", "");
    allocate(&r, 0x10000, 4096);
    vst_record_alloc(VST_MEMORY_FRAMEWORK, 0x10000, 4000, 0, 0, ++r.now);
    vst_record_free(VST_MEMORY_FRAMEWORK_FREE, 0x10000, 0, ++r.now);
    release(&r, 0x10000);
    trace = finish(&r);
    text = exported(&trace, 1, true);
    CHECK_INT(count_of(text, "\"[memory]\""), 2);
    CHECK_INT(count_of(text, "\"[system memory]\""), 2);
    expect_line(text, "\"Bytes\": 4000, ");
    CHECK(strstr(strstr(text, "\"[system memory]\""), "\"Kind\": \"malloc\"") !=
          NULL);
    free(text);
}

/* Operators alone change no event. */
static void memory_beside_operators_is_memory(void)
{
    traced r;
    vst_trace *trace;
    char *text;

    begin(&r, "t.vst");
    define_as(vst_session_recording(r.session), VST_DEF_OPERATOR, "add", "");
    allocate(&r, 0x10000, 4096);
    trace = finish(&r);
    text = exported(&trace, 1, true);
    CHECK_INT(count_of(text, "\"[memory]\""), 1);
    CHECK_INT(count_of(text, "\"[system memory]\""), 0);
    free(text);
}

static void long_names_are_cut_and_hostile_ones_escaped(void)
{
    static char name[3000];
    traced r;
    vst_trace *trace;
    vst_stack stack = {.kind = VST_STACK_LANGUAGE, .line = -1};
    char *text;

    memset(name, '"', sizeof name - 1);
    begin(&r, "t.vst");
    stack.function = define(vst_session_recording(r.session), name, name);
    CHECK_INT(vst_recording_define_stack(vst_session_recording(r.session),
                                         &stack, &r.stack),
              VST_OK);
    allocate(&r, 0x10000, 1);
    r.stack = 1000000; /* a stack that is not defined */
    allocate(&r, 0x20000, 1);
    trace = finish(&r);
    text = exported(&trace, 1, true);
    expect_line(text, "\\\"\\\":-1 \\\"\\\"");
    CHECK_INT(count_of(text, "\"[memory]\""), 2);
    free(text);
}

/* ---- progress ----------------------------------------------------------- */

typedef struct told {
    double last;
    int calls, cancel_after;
} told;

static int tell(void *ctx, double done)
{
    told *t = ctx;

    CHECK(done >= t->last && done <= 1);
    t->last = done;
    return ++t->calls == t->cancel_after;
}

static void a_cancelled_export_leaves_no_file(void)
{
    traced r;
    told t = {.cancel_after = 1};
    vst_trace *trace;
    const char *path;

    begin(&r, "t.vst");
    for (uintptr_t i = 0; i < 200000; i++)
        allocate(&r, 0x10000 + 16 * i, 16);
    trace = finish(&r);
    path = in_folder("t.json");
    vst_trace_set_progress(trace, tell, &t);
    CHECK_INT(vst_trace_export(trace, path, NULL, NULL), VST_E_CANCELLED);
    CHECK(access(path, F_OK) != 0);
    t = (told){.cancel_after = -1};
    CHECK_INT(vst_trace_export(trace, path, NULL, NULL), VST_OK);
    CHECK(t.calls > 0);
    CHECK_INT(remove(path), 0);
    vst_trace_close(trace);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 2;
    TEST(allocations_and_frees_are_torchs_memory_events);
    TEST(what_clients_cannot_pair_has_no_event);
    TEST(an_address_given_out_twice_is_freed_in_between);
    TEST(a_trace_without_memory_says_nothing_of_it);
    TEST(the_counter_is_thin_and_its_peak_exact);
    TEST(a_span_has_the_bytes_it_allocated_and_its_callees);
    TEST(several_processes_have_their_own_memory);
    TEST(a_frameworks_blocks_are_counted_apart);
    TEST(samples_count_for_what_they_stand_for);
    TEST(where_a_framework_tells_of_its_blocks_only_they_are_memory);
    TEST(memory_beside_operators_is_memory);
    TEST(long_names_are_cut_and_hostile_ones_escaped);
    TEST(a_cancelled_export_leaves_no_file);
    rmdir(folder);
    return checks_end();
}
