/* How long spans ran, computed from switches in hand-made files: every time is
 * known, and so is every number. */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "trace_builder.h"
#include "view/lanes.h"

enum { A = 1, B = 2, C = 3, SPANS_MAX = 64 };

typedef struct seen {
    vst_span spans[SPANS_MAX];
    size_t count;
} seen;

static vst_status see(void *ctx, const vst_span *span)
{
    seen *self = ctx;

    if (self->count < SPANS_MAX)
        self->spans[self->count++] = *span;
    return VST_OK;
}

/* Returns the running time of the only span of a function on a thread; -2:
 * there is none, -3: there are several. */
static long long running(const seen *self, unsigned thread, vst_id id)
{
    long long found = -2;

    for (size_t i = 0; i < self->count; i++)
        if (self->spans[i].thread == thread && self->spans[i].id == id)
            found = found == -2 ? (long long)self->spans[i].running_ns : -3;
    return found;
}

static void begin(builder *b)
{
    builder_init(b);
    builder_header(b)->version = VST_FILE_VERSION;
    builder_fix_header(b);
    builder_definitions(b, 1);
    builder_define(b, VST_DEF_PYTHON, A, "a", "f.py", 1);
    builder_define(b, VST_DEF_PYTHON, B, "b", "f.py", 2);
    builder_define(b, VST_DEF_PYTHON, C, "c", "f.py", 3);
    builder_thread(b, 1, 4242, "main");
    builder_thread(b, 2, 4243, "other");
    builder_window(b, 0, 1500, 9000);
    builder_seal(b, 1);
}

/* a 2000..8000 around b 3000..4000 and c 5000..7000. */
static void calls(builder *b, unsigned thread)
{
    builder_records(b, 0, thread, 1900, 1);
    builder_enter(b, A, 100);
    builder_enter(b, B, 1000);
    builder_exit(b, B, 1000);
    builder_enter(b, C, 1000);
    builder_exit(b, C, 2000);
    builder_exit(b, A, 1000);
    builder_seal(b, 1);
}

static void switches(builder *b, uint64_t thread, const uint64_t *words,
                     uint32_t count)
{
    uint64_t payload[32] = {thread};

    memcpy(payload + 1, words, count * sizeof *words);
    builder_escape(b, VST_ESCAPE_SWITCHES, 1, payload, count + 1);
}

#define SWITCHES(b, thread, ...)                                               \
    switches((b), (thread), (uint64_t[]){__VA_ARGS__},                         \
             sizeof((uint64_t[]){__VA_ARGS__}) / 8)

static uint64_t in(uint64_t time)
{
    return vst_switch_word(VST_SWITCH_IN, time);
}

static uint64_t out(uint64_t time)
{
    return vst_switch_word(VST_SWITCH_OUT, time);
}

static uint64_t preempted(uint64_t time)
{
    return vst_switch_word(VST_SWITCH_PREEMPTED, time);
}

static uint64_t lost(uint64_t count)
{
    return vst_switch_word(VST_SWITCH_LOST, count);
}

static void begin_switches(builder *b, vst_ticks ticks)
{
    builder_records(b, 0, VST_THREAD_SWITCHES, ticks, 1);
}

static void told(builder *b, uint32_t what, uint64_t time)
{
    const uint64_t payload[2] = {0, vst_switch_word(what, time)};

    builder_escape(b, VST_ESCAPE_SWITCHES, 1, payload, 2);
}

static void end_switches(builder *b)
{
    told(b, VST_SWITCHES_END, 8900);
    builder_seal(b, 1);
}

static void replay(const builder *b, seen *result)
{
    const vst_sink sink = {.ctx = result, .span = see};
    vst_trace *trace = NULL;

    result->count = 0;
    CHECK_INT(builder_open(b, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    vst_trace_close(trace);
}

static void check_calls(builder *b, unsigned thread, long long a, long long ab,
                        long long ac)
{
    seen result;

    replay(b, &result);
    CHECK_INT(running(&result, thread, A), a);
    CHECK_INT(running(&result, thread, B), ab);
    CHECK_INT(running(&result, thread, C), ac);
}

static void a_span_ran_while_its_thread_had_a_processor(void)
{
    builder b;

    begin(&b);
    calls(&b, 1);
    begin_switches(&b, 1800);
    SWITCHES(&b, 1, in(1850), out(3500), in(4500));
    SWITCHES(&b, 1, preempted(5200), in(5300), out(6000), in(6900));
    end_switches(&b);
    /* Off a processor: 3500..4500, 5200..5300, 6000..6900. */
    check_calls(&b, 1, 6000 - 1000 - 100 - 900, 500, 2000 - 100 - 900);
    builder_free(&b);
}

static void switches_of_threads_do_not_mix(void)
{
    builder b;

    begin(&b);
    calls(&b, 1);
    calls(&b, 2);
    begin_switches(&b, 1800);
    SWITCHES(&b, 2, in(1850));
    SWITCHES(&b, 1, out(1850), in(3400));
    SWITCHES(&b, 2, out(3900));
    SWITCHES(&b, 1, out(3600));
    end_switches(&b);
    check_calls(&b, 1, 200, 200, 0);
    check_calls(&b, 2, 1900, 900, 0);
    builder_free(&b);
}

static void without_switches_a_running_time_is_not_known(void)
{
    builder b;
    vst_trace_info info;
    vst_trace *trace;

    begin(&b);
    calls(&b, 1);
    check_calls(&b, 1, -1, -1, -1);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    vst_trace_get_info(trace, &info);
    CHECK(!info.switches);
    vst_trace_close(trace);
    begin_switches(&b, 1800); /* switches of another thread only */
    SWITCHES(&b, 2, in(1850));
    end_switches(&b);
    check_calls(&b, 1, -1, -1, -1);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    vst_trace_get_info(trace, &info);
    CHECK(info.switches);
    vst_trace_close(trace);
    builder_free(&b);
}

static void what_was_before_the_first_word_is_not_known(void)
{
    builder b;

    begin(&b);
    calls(&b, 1);
    begin_switches(&b, 1800);
    SWITCHES(&b, 1, in(3000), out(6000));
    end_switches(&b);
    check_calls(&b, 1, -1, 1000, 1000);
    builder_free(&b);
}

static void where_switches_were_lost_it_is_not_known_and_later_it_is(void)
{
    builder b;

    begin(&b);
    calls(&b, 1);
    begin_switches(&b, 1800);
    SWITCHES(&b, 1, in(1850), out(3200), lost(7), in(4600), out(6000));
    end_switches(&b);
    check_calls(&b, 1, -1, -1, 1000);
    builder_free(&b);
}

static void after_the_last_time_that_was_told_it_is_not_known(void)
{
    builder b;

    begin(&b);
    calls(&b, 1);
    begin_switches(&b, 1800);
    SWITCHES(&b, 1, in(1850), out(3200));
    told(&b, VST_SWITCHES_TOLD, 4500);
    builder_seal(&b, 1);
    check_calls(&b, 1, -1, 200, -1);
    begin_switches(&b, 5000);
    told(&b, VST_SWITCHES_TOLD, 7500);
    builder_seal(&b, 1);
    check_calls(&b, 1, -1, 200, 0);
    builder_free(&b);
}

/* A damaged file may have times that go back. */
static void times_that_go_back_take_nothing_away(void)
{
    builder b;
    seen result;

    begin(&b);
    calls(&b, 1);
    begin_switches(&b, 1800);
    SWITCHES(&b, 1, in(1850), out(3500), in(100), out(UINT64_MAX >> 2),
             in(6000));
    SWITCHES(&b, UINT64_MAX, in(1));
    builder_escape(&b, VST_ESCAPE_SWITCHES, 0, (uint64_t[]){1}, 1);
    builder_escape(&b, VST_ESCAPE_SWITCHES, 0, NULL, 0);
    end_switches(&b);
    replay(&b, &result);
    CHECK_INT(result.count, 3);
    for (size_t i = 0; i < result.count; i++)
        CHECK(result.spans[i].running_ns >= -1 &&
              result.spans[i].running_ns <=
                  result.spans[i].end_ns - result.spans[i].start_ns);
    builder_free(&b);
}

static void a_word_that_is_told_again_changes_nothing(void)
{
    builder b;

    begin(&b);
    calls(&b, 1);
    begin_switches(&b, 1800);
    SWITCHES(&b, 1, in(1850), out(3500));
    builder_seal(&b, 1);
    begin_switches(&b, 4200);
    SWITCHES(&b, 1, out(3500));
    SWITCHES(&b, 1, in(5500));
    end_switches(&b);
    check_calls(&b, 1, 1500 + 2500, 500, 1500);
    builder_free(&b);
}

static void the_stream_of_switches_is_no_thread(void)
{
    builder b;
    vst_trace_info info;
    vst_trace *trace;

    begin(&b);
    calls(&b, 1);
    begin_switches(&b, 1800);
    SWITCHES(&b, 1, in(1850));
    end_switches(&b);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.threads, 1);
    CHECK_INT(info.words, 6);
    CHECK_INT(vst_trace_thread_count(trace), 2);
    CHECK(vst_trace_thread_find(trace, VST_THREAD_SWITCHES) == NULL);
    vst_trace_close(trace);
    builder_free(&b);
}

static void a_range_begins_in_the_midst_of_switches(void)
{
    const vst_sink sink = {.ctx = &(seen){.count = 0}, .span = see};
    seen *result = sink.ctx;
    builder b;
    vst_trace *trace;

    begin(&b);
    calls(&b, 1);
    begin_switches(&b, 1800);
    SWITCHES(&b, 1, in(1850), out(3500), in(4500), out(6000));
    end_switches(&b);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    vst_trace_set_range(trace, BUILDER_EPOCH_NS + 4000,
                        BUILDER_EPOCH_NS + 5800);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    CHECK_INT(running(result, 1, C), 800);
    CHECK_INT(running(result, 1, A), 1300);
    vst_trace_set_offset(trace, 77);
    vst_trace_set_range(trace, INT64_MIN, INT64_MAX);
    result->count = 0;
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    CHECK_INT(running(result, 1, A), 1500 + 1500);
    vst_trace_close(trace);
    builder_free(&b);
}

/* ---- waits -------------------------------------------------------------- */

typedef struct seen_waits {
    vst_wait waits[8];
    size_t count;
    seen spans;
} seen_waits;

static vst_status see_wait(void *ctx, const vst_wait *wait)
{
    seen_waits *self = ctx;

    if (self->count < 8)
        self->waits[self->count++] = *wait;
    return VST_OK;
}

static vst_status see_beside(void *ctx, const vst_span *span)
{
    return see(&((seen_waits *)ctx)->spans, span);
}

static void replay_waits(const builder *b, seen_waits *result)
{
    const vst_sink sink = {.ctx = result, .span = see_beside, .wait = see_wait};
    vst_trace *trace = NULL;

    result->count = result->spans.count = 0;
    CHECK_INT(builder_open(b, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    vst_trace_close(trace);
}

static long long gil(const seen_waits *self, vst_id id)
{
    for (size_t i = 0; i < self->spans.count; i++)
        if (self->spans.spans[i].id == id)
            return (long long)self->spans.spans[i].gil_ns;
    return -2;
}

static void waited(builder *b, uint64_t start, uint64_t end, uint64_t holder)
{
    builder_escape(b, VST_ESCAPE_WAIT, 0,
                   (uint64_t[]){start, end, holder << 32 | VST_WAIT_GIL}, 3);
}

/* a 2000..8000 around b 3000..4000 and c 5000..7000, with waits in each. */
static void calls_that_wait(builder *b)
{
    builder_records(b, 0, 1, 1900, 1);
    builder_enter(b, A, 100);
    builder_enter(b, B, 1000);
    builder_exit(b, B, 1000);
    waited(b, 4100, 4400, 0);
    builder_enter(b, C, 1000);
    builder_exit(b, C, 2000);
    builder_exit(b, A, 1000);
    builder_seal(b, 1);
}

static void waits_for_the_lock_are_part_of_the_calls_they_are_in(void)
{
    builder b;
    seen_waits result;

    begin(&b);
    builder_definitions(&b, 1);
    builder_metadata(&b, VST_WAITS_METADATA, "true");
    builder_seal(&b, 1);
    builder_records(&b, 0, 1, 1900, 1);
    builder_enter(&b, A, 100);
    builder_enter(&b, B, 1000);
    waited(&b, 3100, 3600, 2); /* written late, at the time of the enter */
    builder_exit(&b, B, 1000);
    waited(&b, 3000, 4500, 2); /* begins at 4000, because the wait before ended
                                * then */
    waited(&b, 4400, 4700, 0); /* begins at 4500 */
    waited(&b, 4900, 4800, 2); /* ignored: a wait cannot end before it begins */
    builder_escape(&b, VST_ESCAPE_WAIT, 0, (uint64_t[]){4750, 4900, 99}, 3);
    builder_escape(&b, VST_ESCAPE_WAIT, 0, (uint64_t[]){4750, 4900}, 2);
    builder_enter(&b, C, 1000);
    builder_exit(&b, C, 2000);
    builder_exit(&b, A, 1000);
    builder_seal(&b, 1);
    replay_waits(&b, &result);
    CHECK_INT(result.count, 4);
    CHECK_INT(result.waits[0].end_ns - result.waits[0].start_ns, 500);
    CHECK_INT(result.waits[0].id, B);
    CHECK_INT(result.waits[0].holder, 2);
    CHECK_INT(result.waits[1].end_ns - result.waits[1].start_ns, 500);
    CHECK_INT(result.waits[1].id, A);
    CHECK_INT(result.waits[2].end_ns - result.waits[2].start_ns, 200);
    CHECK_INT(result.waits[3].reason,
              99); /* recorded, but not a wait for the lock */
    CHECK_INT(gil(&result, B), 500);
    CHECK_INT(gil(&result, C), 0);
    CHECK_INT(gil(&result, A), 500 + 500 + 200);
    builder_free(&b);
}

static void a_trace_that_does_not_tell_of_waits_has_none(void)
{
    builder b;
    seen_waits result;

    begin(&b);
    calls_that_wait(&b);
    replay_waits(&b, &result);
    CHECK_INT(gil(&result, A), VST_RUNNING_UNKNOWN);
    builder_free(&b);
}

static void what_others_had_the_processor_for_is_told_apart(void)
{
    builder b;
    seen result;

    begin(&b);
    calls(&b, 1);
    begin_switches(&b, 1800);
    SWITCHES(&b, 1, in(1850), preempted(3500), in(4500), out(5500), in(6000));
    end_switches(&b);
    replay(&b, &result);
    CHECK_INT(running(&result, 1, A), 4500);
    for (size_t i = 0; i < result.count; i++)
        CHECK_INT(result.spans[i].preempted_ns,
                  result.spans[i].id == A ? 1000
                                          : (result.spans[i].id == B) * 500);
    builder_free(&b);
}

/* Thread 1 is off the processor 3500 to 4500 and 5500 to 6000, and waits for
 * the lock from 4100 to 4400. */
static void states_are_lanes_of_stretches(void)
{
    vst__lanes *states = NULL;
    vst__lane_item wait;
    vst__lane lane;
    vst_trace *trace = NULL;
    int64_t base;
    builder b;

    begin(&b);
    builder_definitions(&b, 1);
    builder_metadata(&b, VST_WAITS_METADATA, "true");
    builder_seal(&b, 1);
    calls_that_wait(&b);
    begin_switches(&b, 1800);
    SWITCHES(&b, 1, in(1850), preempted(3500), in(4500), out(5500), in(6000));
    end_switches(&b);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    CHECK_INT(vst__lanes_create(trace, "states", NULL, &states, NULL), VST_OK);
    base = BUILDER_EPOCH_NS;
    vst_trace_close(trace);
    CHECK(!vst__lanes_get(states, 1, &lane));
    CHECK(vst__lanes_get(states, 0, &lane));
    CHECK_INT(lane.thread, 1);
    CHECK_INT(lane.rows, 3);
    CHECK_INT(vst__lanes_busy(states, 0, 0, base + 4000, base + 5750), 250);
    CHECK_INT(vst__lanes_busy(states, 0, 1, base + 4000, base + 5750), 500);
    CHECK_INT(vst__lanes_busy(states, 0, 2, base + 4000, base + 5750), 300);
    CHECK(vst__lanes_at(states, 0, 2, base + 4200, &wait));
    CHECK_INT(wait.start_ns, base + 4100);
    CHECK_INT(wait.end_ns, base + 4400);
    CHECK(!vst__lanes_at(states, 0, 2, base + 4500, &wait));
    vst__lanes_destroy(states);
    builder_free(&b);
}

/* An invalid wait, and reserved escape types. */
static void escapes_that_are_not_known_are_passed_over(void)
{
    builder b;
    seen result;

    begin(&b);
    builder_records(&b, 0, 1, 1900, 1);
    builder_enter(&b, A, 100);
    builder_escape(&b, VST_ESCAPE_WAIT, 100,
                   (uint64_t[]){1950, 1990, (uint64_t)2 << 32 | 1}, 3);
    for (unsigned type = VST_ESCAPE_WAIT + 1; type < VST_ESCAPE_FIXED; type++)
        builder_escape(&b, (vst_escape)type, 10, (uint64_t[]){1, 2}, type % 3);
    builder_exit(&b, A, 100);
    builder_seal(&b, 1);
    replay(&b, &result);
    CHECK_INT(result.count, 1);
    CHECK_INT(result.spans[0].end_ns - result.spans[0].start_ns,
              200 + 10 * (VST_ESCAPE_FIXED - VST_ESCAPE_WAIT - 1));
    builder_free(&b);
}

static void a_recovered_copy_says_the_same(void)
{
    char from[] = "/tmp/vestige-running-XXXXXX", to[64];
    const vst_sink sink = {.ctx = &(seen){.count = 0}, .span = see};
    seen *result = sink.ctx;
    builder b;
    vst_trace *trace;
    int fd = mkstemp(from);

    begin(&b);
    calls(&b, 1);
    begin_switches(&b, 1800);
    SWITCHES(&b, 1, in(1850), out(3500), in(4500));
    end_switches(&b);
    CHECK(fd >= 0);
    CHECK_INT(write(fd, b.bytes, b.size), (ssize_t)b.size);
    close(fd);
    snprintf(to, sizeof to, "%s.copy", from);
    CHECK_INT(vst_trace_recover(from, to, true, NULL), VST_OK);
    CHECK_INT(vst_trace_open(to, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    CHECK_INT(running(result, 1, A), 5000);
    vst_trace_close(trace);
    unlink(from);
    unlink(to);
    builder_free(&b);
}

int main(void)
{
    TEST(a_span_ran_while_its_thread_had_a_processor);
    TEST(switches_of_threads_do_not_mix);
    TEST(without_switches_a_running_time_is_not_known);
    TEST(what_was_before_the_first_word_is_not_known);
    TEST(where_switches_were_lost_it_is_not_known_and_later_it_is);
    TEST(after_the_last_time_that_was_told_it_is_not_known);
    TEST(times_that_go_back_take_nothing_away);
    TEST(a_word_that_is_told_again_changes_nothing);
    TEST(the_stream_of_switches_is_no_thread);
    TEST(a_range_begins_in_the_midst_of_switches);
    TEST(escapes_that_are_not_known_are_passed_over);
    TEST(a_recovered_copy_says_the_same);
    TEST(waits_for_the_lock_are_part_of_the_calls_they_are_in);
    TEST(a_trace_that_does_not_tell_of_waits_has_none);
    TEST(what_others_had_the_processor_for_is_told_apart);
    TEST(states_are_lanes_of_stretches);
    return checks_end();
}
