/* Memory over time by use: a small training step, made by hand, read as rows,
 * points and a page; and input that no framework writes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vestige/memory.h>
#include <vestige/operator.h>
#include <vestige/session.h>
#include <vestige/storage.h>

#include "check.h"
#include "export/output/json.h"
#include "exported.h"

enum { WEIGHT = 0x10000, X = 0x20000, H = 0x30000, SCRATCH = 0x40000 };
enum { GRADIENT = 0x50000, STATE = 0x60000, NUMBERS = 0x70000 };

static vst_session *started(void)
{
    vst_session_options options = {.path = NULL};
    vst_session *session = NULL;

    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    return session;
}

static vst_id enter(const char *name, unsigned scope)
{
    vst_definition definition = {.kind = VST_DEF_OPERATOR,
                                 .name = name,
                                 .name_len = (uint32_t)strlen(name),
                                 .file = ""};
    uint64_t words[2] = {UINT64_MAX, vst_operator_word(1, 0, scope)};
    vst_id id = vst_recording_define(&definition);

    CHECK(vst_record_operator(id, 0, words, 2));
    return id;
}

static void leave(vst_id id)
{
    vst_record_operator_exit(VST_EXIT, id, 0);
}

static void tell(vst_storage_role role, uint64_t address, uint64_t bytes)
{
    const uint64_t words[2] = {vst_storage_word(address, role), bytes};

    vst_record_storages(words, 2);
}

static void tell_two(vst_storage_role first, uint64_t a, vst_storage_role then,
                     uint64_t b, uint64_t bytes)
{
    const uint64_t words[4] = {vst_storage_word(a, first), bytes,
                               vst_storage_word(b, then), bytes};

    vst_record_storages(words, 4);
}

/* Rows with the same nanosecond are sorted by size, so each row comes clearly
 * later than the row before. */
static vst_ticks a_moment_later(void)
{
    static vst_ticks last;
    vst_ticks now = vst_clock_ticks();

    while (now - last < 1000)
        now = vst_clock_ticks();
    last = now;
    return now;
}

static void allocate(uintptr_t address, size_t size)
{
    vst_record_alloc(VST_MEMORY_FRAMEWORK, address, size, 0, 0,
                     a_moment_later());
}

static void release(uintptr_t address)
{
    vst_record_free(VST_MEMORY_FRAMEWORK_FREE, address, 0, a_moment_later());
}

/* ---- a training step ---------------------------------------------------- */

static void forward(void)
{
    vst_id id = enter("aten::randn", VST_SCOPE_FUNCTION), inner;

    vst_record_storages(NULL, 0);
    allocate(X, 64);
    leave(id);
    tell(VST_STORAGE_PARAMETER, WEIGHT, 100);
    id = enter("aten::linear", VST_SCOPE_FUNCTION);
    tell_two(VST_STORAGE_READ, X, VST_STORAGE_READ, WEIGHT, 64);
    allocate(SCRATCH, 8);
    inner = enter("aten::mm", VST_SCOPE_FUNCTION);
    tell_two(VST_STORAGE_READ, X, VST_STORAGE_READ, SCRATCH, 8);
    allocate(H, 32);
    leave(inner);
    release(SCRATCH);
    leave(id);
}

static void backward(void)
{
    vst_id id = enter("MmBackward0", VST_SCOPE_BACKWARD), inner;

    tell(VST_STORAGE_GIVEN, H, 32);
    inner = enter("aten::mm", VST_SCOPE_FUNCTION);
    tell_two(VST_STORAGE_READ, H, VST_STORAGE_READ, X, 32);
    allocate(GRADIENT, 100);
    allocate(NUMBERS, 16);
    leave(inner);
    leave(id);
    id = enter("torch::autograd::AccumulateGrad", VST_SCOPE_BACKWARD);
    tell(VST_STORAGE_GIVEN, GRADIENT, 100);
    inner = enter("aten::detach", VST_SCOPE_FUNCTION);
    tell(VST_STORAGE_READ, GRADIENT, 100);
    leave(inner);
    leave(id);
    id = enter("aten::sum", VST_SCOPE_FUNCTION);
    tell(VST_STORAGE_READ, NUMBERS, 16);
    leave(id);
    release(H);
}

static void update(void)
{
    vst_id id = enter("aten::zeros_like", VST_SCOPE_FUNCTION);

    tell(VST_STORAGE_READ, GRADIENT, 100);
    allocate(STATE, 100);
    leave(id);
    id = enter("aten::add_", VST_SCOPE_FUNCTION);
    tell_two(VST_STORAGE_WRITTEN, WEIGHT, VST_STORAGE_READ, GRADIENT, 100);
    leave(id);
    tell(VST_STORAGE_OPTIMIZER, STATE, 100);
    release(GRADIENT);
    release(X);
}

/* ---- reading it back ---------------------------------------------------- */

static vst_status write_to(vst_trace *trace, const char *name)
{
    vst_export_options options = {.window = VST_WINDOW_ALL,
                                  .format = "memory-timeline"};

    return vst_trace_export(trace, in_folder(name), &options, NULL);
}

static char *exported(vst_trace *trace, const char *name)
{
    char *text;

    CHECK_INT(write_to(trace, name), VST_OK);
    text = contents(in_folder(name));
    CHECK_INT(remove(in_folder(name)), 0);
    return text != NULL ? text : calloc(1, 1);
}

static vst_trace *finished(vst_session *session)
{
    vst_trace *trace = NULL;

    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    return trace;
}

/* Returns rows without their times, except for rows from before the recording:
 * "2 64 2; ". */
static char *without_times(const char *text)
{
    char *all = calloc(1, strlen(text) + 1);
    int count = 0;

    if (all == NULL)
        abort();
    for (const char *at = strchr(text + 1, '['); at != NULL;
         at = strchr(at + 1, '[')) {
        long long time_ns, action, bytes, category;
        if (sscanf(at, "[%lld, %lld, %lld, %lld]", &time_ns, &action, &bytes,
                   &category) != 4)
            break;
        CHECK((time_ns == -1) == (action == 1));
        count +=
            sprintf(all + count, "%lld %lld %lld; ", action, bytes, category);
    }
    return all;
}

static void each_block_has_the_category_that_the_flow_gives_it(void)
{
    vst_session *session = started();
    vst_trace *trace;
    char *text, *rows;

    forward();
    backward();
    update();
    trace = finished(session);
    text = exported(trace, "t.raw.json.gz");
    CHECK(vst__json_is_value(text, strlen(text)));
    rows = without_times(text);
    CHECK_TEXT(rows, "1 100 0; "             /* the parameter existed before */
                     "2 64 2; "              /* the input */
                     "2 8 3; 2 32 4; "       /* a temporary, an activation */
                     "4 -8 3; "              /* */
                     "2 100 5; 2 16 6; "     /* a gradient, autograd's own
                                              * memory */
                     "4 -32 4; "             /* */
                     "2 100 1; "             /* the optimizer's */
                     "3 -100 0; 3 100 0; "   /* the parameter changes */
                     "4 -100 5; 4 -64 2; "); /* */
    free(rows);
    free(text);
    text = exported(trace, "t.json");
    CHECK(vst__json_is_value(text, strlen(text)));
    expect_line(text, "[[0, 100, 0, 0, 0, 0, 0, 0, 0], ");
    expect_line(text, "[0, 100, 100, 0, 0, 0, 0, 16, 0]]]");
    free(text);
    text = exported(trace, "t.html");
    expect_line(text, "<title>OPTIMIZER_STATE</title>");
    expect_line(text, "<b>380 B</b> (380 bytes)");
    CHECK(strstr(text, "<title>UNKNOWN</title>") == NULL);
    free(text);
    vst_trace_close(trace);
    vst_session_destroy(session);
}

static void without_a_framework_only_frees_tell(void)
{
    vst_session *session = started();
    vst_ticks now = vst_clock_ticks();
    vst_trace *trace;
    char *text, *rows;

    vst_record_alloc(VST_MEMORY_MALLOC, 0x1000, 10, 0, 0, now);
    vst_record_alloc(VST_MEMORY_MALLOC, 0x2000, 20, 0, 0, now + 100);
    vst_record_free(VST_MEMORY_FREE, 0x1000, 0, now + 200);
    vst_record_free(VST_MEMORY_FREE, 0x3000, 0, now + 300);
    trace = finished(session);
    text = exported(trace, "t.raw.json");
    rows = without_times(text);
    CHECK_TEXT(rows, "2 10 3; 2 20 7; 4 -10 3; ");
    free(rows);
    free(text);
    vst_trace_close(trace);
    vst_session_destroy(session);
}

static void blocks_of_the_systems_allocator_are_tensors_if_they_were_given(void)
{
    vst_session *session = started();
    vst_trace *trace;
    char *text, *rows;
    vst_id id;

    vst_record_alloc(VST_MEMORY_POSIX_MEMALIGN, X, 64, 0, 0, vst_clock_ticks());
    vst_record_alloc(VST_MEMORY_POSIX_MEMALIGN, H, 32, 0, 0, vst_clock_ticks());
    vst_record_alloc(VST_MEMORY_MALLOC, STATE, 16, 0, 0, vst_clock_ticks());
    tell(VST_STORAGE_PARAMETER, X, 64);
    id = enter("aten::add", VST_SCOPE_FUNCTION);
    tell(VST_STORAGE_READ, X, 64);
    leave(id);
    vst_record_free(VST_MEMORY_FREE, X, 0, vst_clock_ticks());
    /* Another tensor is put at the same address. */
    vst_record_alloc(VST_MEMORY_MALLOC, X, 24, 0, 0, vst_clock_ticks());
    trace = finished(session);
    text = exported(trace, "t.raw.json");
    rows = without_times(text);
    CHECK_TEXT(rows, "2 64 0; 2 32 7; 4 -64 0; ");
    free(rows);
    free(text);
    vst_trace_close(trace);
    vst_session_destroy(session);
}

static void an_empty_recording_has_no_rows(void)
{
    vst_session *session = started();
    vst_trace *trace = finished(session);
    vst_trace *twice[2] = {trace, trace};
    vst_export_options options = {.window = VST_WINDOW_ALL,
                                  .format = "memory-timeline"};
    char *text = exported(trace, "t.raw.json.gz");

    CHECK_TEXT(text, "[]");
    free(text);
    text = exported(trace, "t.json");
    CHECK_TEXT(text, "[[], []]");
    free(text);
    text = exported(trace, "t.html");
    expect_line(text, "<b>0 B</b>");
    free(text);
    CHECK_INT(vst_traces_export(twice, 2, in_folder("t.json"), &options, NULL),
              VST_E_ARGUMENT);
    CHECK(access(in_folder("t.json"), F_OK) != 0);
    vst_trace_close(trace);
    vst_session_destroy(session);
}

/* Spans that never end, unknown roles, half a pair, more words than fit one
 * record, addresses that repeat: rows come out in every case. */
static void nonsense_is_read_to_its_end(void)
{
    static uint64_t words[VST_ESCAPE_WORDS_MAX];
    unsigned seed = 7;
    vst_session *session = started();
    vst_trace *trace;
    char *text;

    for (int i = 0; i < 20000; i++) {
        uint32_t count = (seed = seed * 1103515245u + 12345u) >> 16 & 7;
        uintptr_t address = 0x1000u * (1 + (seed >> 8 & 31));
        const char *names[] = {"aten::add_", "torch::autograd::AccumulateGrad",
                               "aten::detach", "SumBackward0"};
        for (uint32_t j = 0; j < 8; j++)
            words[j] = 0x1000u * (1 + (seed >> j & 31)) |
                       (uint64_t)(seed >> (j + 4) & 7) << 56;
        switch (seed >> 24 & 7) {
        case 0:
        case 1:
            enter(names[count & 3], count & 1);
            break;
        case 2:
            vst_record_operator_exit(VST_RAISE, 1 + count, 0);
            break;
        case 3:
            allocate(address, seed & 0xffff);
            break;
        case 4:
            release(address);
            break;
        default:
            vst_record_storages(words, count);
        }
    }
    for (unsigned i = 0; i < VST_ESCAPE_WORDS_MAX; i++)
        words[i] = vst_storage_word(0x100000u + 64u * i, VST_STORAGE_OPTIMIZER);
    vst_record_storages(words, VST_ESCAPE_WORDS_MAX);
    vst_record_storages(words, VST_ESCAPE_WORDS_MAX + 1); /* refused */
    trace = finished(session);
    text = exported(trace, "t.raw.json");
    CHECK(vst__json_is_value(text, strlen(text)));
    free(text);
    text = exported(trace, "t.json.gz");
    CHECK(vst__json_is_value(text, strlen(text)));
    free(text);
    free(exported(trace, "t.html"));
    vst_trace_close(trace);
    vst_session_destroy(session);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 2;
    TEST(each_block_has_the_category_that_the_flow_gives_it);
    TEST(without_a_framework_only_frees_tell);
    TEST(blocks_of_the_systems_allocator_are_tensors_if_they_were_given);
    TEST(an_empty_recording_has_no_rows);
    TEST(nonsense_is_read_to_its_end);
    rmdir(folder);
    return checks_end();
}
