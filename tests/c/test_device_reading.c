/* Devices that do not exist: collectors that fail or deliver too late,
 * comparisons of clocks, and files with impossible records of devices. */
#include <vestige/vestige.h>

#include "base/device_clock.h"
#include "check.h"
#include "store/reader.h"
#include "trace_builder.h"

/* ---- collectors ---------------------------------------------------------- */

static vst_recording *recording;
static uint32_t device;
static int started, flushed, stopped, destroyed;
static vst_status start_status;

static vst_status start(vst_collector *collector)
{
    (void)collector;
    started++;
    return start_status;
}

static void flush(vst_collector *collector)
{
    (void)collector;
    flushed++;
}

static void stop(vst_collector *collector)
{
    (void)collector;
    stopped++;
}

static void destroy(vst_collector *collector)
{
    (void)collector;
    destroyed++;
}

static const vst_collector_ops ops = {start, flush, stop, destroy};
static vst_collector the_collector = {&ops};

static vst_status make(vst_recording *made_for, vst_collector **collector)
{
    const vst_device one = {.platform = "fake", .ordinal = 3, .name = "one"};

    recording = made_for;
    *collector = &the_collector;
    return vst_device_declare(recording, &one, &device);
}

static vst_status fail(vst_recording *made_for, vst_collector **collector)
{
    (void)made_for, (void)collector;
    return VST_E_UNSUPPORTED;
}

static void forget_calls(void)
{
    started = flushed = stopped = destroyed = 0;
    start_status = VST_OK;
}

static vst_session *begin(const vst_session_options *options)
{
    vst_session *session;

    CHECK_INT(vst_session_create(options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    return session;
}

static vst_trace *open_trace(vst_session *session)
{
    vst_trace *trace = NULL;

    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    return trace;
}

static vst_status count(void *ctx, const vst_device_span *span)
{
    (void)span;
    ++*(int *)ctx;
    return VST_OK;
}

static int count_all(vst_trace *trace)
{
    int found = 0;
    const vst_sink sink = {.ctx = &found, .device = count};

    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    return found;
}

static const vst_activity kernel = {
    .kind = VST_ACTIVITY_KERNEL, .device = 1, .id = 1, .host_time = true};

static bool deliver(void)
{
    vst_activity now = kernel;

    now.start = now.end = vst_clock_ticks();
    return vst_device_deliver(recording, &now);
}

static void without_a_collector_or_the_option_a_file_is_as_it_was(void)
{
    const vst_session_options with = {.devices = true}, without = {0};

    for (int i = 0; i < 2; i++) {
        vst_session *session;
        vst_trace *trace;

        forget_calls();
        if (i == 1)
            CHECK_INT(vst_collector_register("fake", make), VST_OK);
        session = begin(i == 0 ? &with : &without);
        vst_session_flush_devices(session);
        vst_session_stop(session);
        trace = open_trace(session);
        CHECK_INT(vst_trace_device_count(trace), 0);
        CHECK_INT(count_all(trace), 0);
        CHECK(vst_trace_metadata(trace, "vestige.devices") == NULL);
        vst_trace_close(trace);
        vst_session_destroy(session);
        CHECK_INT(started + flushed + stopped + destroyed, 0);
    }
    vst_collector_unregister("fake");
}

static void a_collector_lives_as_long_as_its_session(void)
{
    const vst_session_options options = {.devices = true, .max_depth = 1};
    vst_session *session;
    vst_trace *trace;

    forget_calls();
    CHECK_INT(vst_collector_register("fake", make), VST_OK);
    session = begin(&options);
    CHECK(deliver());
    vst_session_flush_devices(session);
    CHECK_INT(flushed, 1);
    vst_session_stop(session);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    CHECK(deliver());
    CHECK(deliver());
    vst_session_stop(session);
    CHECK_INT(started, 2);
    CHECK_INT(stopped, 2);
    trace = open_trace(session);
    CHECK_INT(count_all(trace), 3);
    CHECK_INT(vst_trace_device_count(trace), 1);
    CHECK_INT(vst_trace_device_at(trace, 0)->ordinal, 3);
    CHECK(vst_trace_device_find(trace, 2) == NULL);
    vst_trace_close(trace);
    vst_session_destroy(session);
    CHECK_INT(destroyed, 1);
    vst_collector_unregister("fake");
}

static void what_comes_after_the_stop_is_counted(void)
{
    const vst_session_options options = {.devices = true};
    vst_session *session;
    vst_trace_info info;
    vst_trace *trace;

    CHECK_INT(vst_collector_register("fake", make), VST_OK);
    session = begin(&options);
    CHECK(deliver());
    vst_device_lost(recording, device, 5);
    vst_session_stop(session);
    CHECK(!deliver());
    CHECK(!deliver());
    CHECK_INT(vst_session_lost(session), 7);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    trace = open_trace(session);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.lost, 7);
    CHECK_INT(count_all(trace), 1);
    CHECK_TEXT(vst_trace_metadata(trace, "vestige.devices"),
               "{\"clocks\": [], \"late\": 2}");
    vst_trace_close(trace);
    vst_session_destroy(session);
    vst_collector_unregister("fake");
}

static void one_that_fails_is_left_out_and_the_trace_says_so(void)
{
    const vst_session_options options = {.devices = true};
    vst_session *session;
    vst_trace *trace;

    forget_calls();
    start_status = VST_E_IO;
    CHECK_INT(vst_collector_register("broken", fail), VST_OK);
    CHECK_INT(vst_collector_register("fake", make), VST_OK);
    session = begin(&options);
    vst_session_stop(session);
    CHECK_INT(started, 1);
    CHECK_INT(stopped, 0);
    trace = open_trace(session);
    CHECK_TEXT(vst_trace_metadata(trace, "vestige.collector.broken"),
               "\"not started: not supported by this build\"");
    CHECK_TEXT(vst_trace_metadata(trace, "vestige.collector.fake"),
               "\"not started: the file could not be read or written\"");
    vst_trace_close(trace);
    vst_session_destroy(session);
    CHECK_INT(destroyed, 1);
    vst_collector_unregister("fake");
    vst_collector_unregister("broken");
}

static vst_status fail_and_say_why(vst_recording *made_for,
                                   vst_collector **collector)
{
    (void)collector;
    vst_collector_tell(made_for, "broken", "no \"driver\"\x1b is here");
    return VST_E_UNSUPPORTED;
}

static void what_collectors_tell_is_in_the_trace_and_handed_over_once(void)
{
    const vst_session_options options = {.devices = true};
    char line[64];
    vst_session *session;
    vst_trace *trace;

    CHECK_INT(vst_collector_register("broken", fail_and_say_why), VST_OK);
    session = begin(&options);
    CHECK(vst_session_next_note(session, line, sizeof line));
    CHECK_TEXT(line, "broken: no 'driver'? is here");
    CHECK(!vst_session_next_note(session, line, sizeof line));
    for (int i = 0; i < 100; i++)
        vst_collector_tell(vst_session_recording(session), "broken", "again");
    for (int i = 1; i < 16; i++)
        CHECK(vst_session_next_note(session, line, sizeof line));
    CHECK(!vst_session_next_note(session, line, sizeof line));
    vst_session_stop(session);
    trace = open_trace(session);
    CHECK(strncmp(vst_trace_metadata(trace, "vestige.collector.broken"),
                  "\"no 'driver'? is here; again; again", 34) == 0);
    vst_trace_close(trace);
    vst_session_destroy(session);
    vst_collector_unregister("broken");
}

static void devices_can_be_stopped_ahead_of_the_rest(void)
{
    const vst_session_options options = {.devices = true};
    vst_session *session;

    forget_calls();
    CHECK_INT(vst_collector_register("fake", make), VST_OK);
    session = begin(&options);
    vst_session_stop_devices(session);
    vst_session_stop_devices(session);
    vst_session_flush_devices(session);
    CHECK_INT(stopped, 1);
    CHECK_INT(flushed, 0);
    CHECK_INT(vst_session_stop(session), VST_OK);
    vst_session_stop_devices(session);
    CHECK_INT(stopped, 1);
    vst_session_destroy(session);
    vst_collector_unregister("fake");
}

static void the_registry_has_room_for_a_few(void)
{
    static const char *const names[] = {"a", "b", "c", "d", "e",
                                        "f", "g", "h", "i"};

    for (int i = 0; i < VST_COLLECTORS_MAX; i++)
        CHECK_INT(vst_collector_register(names[i], fail), VST_OK);
    CHECK_INT(vst_collector_register(names[VST_COLLECTORS_MAX], fail),
              VST_E_NOMEM);
    CHECK_INT(vst_collector_register(names[0], make), VST_OK);
    for (int i = 0; i < VST_COLLECTORS_MAX; i++)
        vst_collector_unregister(names[i]);
    vst_collector_unregister("never there");
}

/* ---- clocks -------------------------------------------------------------- */

static void a_clock_is_straight_between_its_pairs(void)
{
    const vst__clock_pair pairs[] = {
        {100, 1000, 2}, {200, 1200, 3}, {300, 1440, 1}};
    vst__clock_fit fit = {0};

    for (int i = 0; i < 3; i++)
        CHECK(vst__clock_fit_add(&fit, &pairs[i]));
    CHECK(!vst__clock_fit_add(&fit, &(vst__clock_pair){300, 1500, 9}));
    CHECK(!vst__clock_fit_add(&fit, &(vst__clock_pair){400, 1440, 9}));
    CHECK_INT(fit.count, 3);
    /* The sample in the middle is 20 away from the line, with an error of 3. */
    CHECK_INT(fit.error, 23);
    CHECK_INT(vst__clock_pairs_convert(pairs, 3, 1, 150), 1100);
    CHECK_INT(vst__clock_pairs_convert(pairs, 3, 1, 200), 1200);
    CHECK_INT(vst__clock_pairs_convert(pairs, 3, 1, 250), 1320);
    CHECK_INT(vst__clock_pairs_convert(pairs, 3, 1, 400), 1660);
    CHECK_INT(vst__clock_pairs_convert(pairs, 3, 1, 0), 780);
    CHECK_INT(vst__clock_pairs_convert(pairs, 1, 0.5, 120), 1010);
    CHECK_INT(vst__clock_pairs_convert(pairs, 1, 1e9, 0), 0);
    CHECK_INT(vst__clock_pairs_convert(pairs, 1, 1e9, UINT64_MAX), INT64_MAX);
}

/* ---- files that say anything --------------------------------------------- */

static void entry(builder *b, int32_t what, uint32_t id, const char *name,
                  uint64_t x, uint64_t y, uint64_t z)
{
    builder_entry(b,
                  &(vst_file_entry){.kind = VST_ENTRY_DEVICE,
                                    .id = id,
                                    .line = what,
                                    .x = x,
                                    .y = y,
                                    .z = z},
                  name, "");
}

static uint64_t rate(double ticks_per_second)
{
    uint64_t bits;

    memcpy(&bits, &ticks_per_second, sizeof bits);
    return bits;
}

static uint64_t head(uint32_t kind, uint32_t flags, uint32_t number)
{
    return kind | flags << 8 | (uint64_t)number << 16;
}

typedef struct first {
    int count;
    vst_device_span span;
    char args[64];
} first;

static vst_status keep_first(void *ctx, const vst_device_span *span)
{
    first *self = ctx;

    if (self->count++ == 0) {
        self->span = *span;
        snprintf(self->args, sizeof self->args, "%.*s", (int)span->args_len,
                 span->args != NULL ? span->args : "");
    }
    return VST_OK;
}

static void begin_file(builder *b)
{
    builder_init(b);
    builder_header(b)->version = VST_FILE_VERSION;
    builder_fix_header(b);
    builder_definitions(b, 1);
    builder_thread(b, 1, 77, "main");
    builder_define(b, VST_DEF_ACTIVITY, 1, "kernel", "", 0);
    entry(b, VST_DEVICE_ENTRY_DEVICE, 1, "old", 0, rate(5e8), 0);
    entry(b, VST_DEVICE_ENTRY_DEVICE, 1, "new", UINT64_C(1) << 32, rate(5e8),
          0x1b636261);
    entry(b, VST_DEVICE_ENTRY_DEVICE, 0, "no number", 0, 0, 0);
    entry(b, VST_DEVICE_ENTRY_DEVICE, 70000, "too large", 0, 0, 0);
    entry(b, VST_DEVICE_ENTRY_DEVICE, 2, "no rate", 0, rate(-1), 0);
    entry(b, 99, 1, "of a newer writer", 0, 0, 0);
    entry(b, VST_DEVICE_ENTRY_PAIR, 1, "", 900, 2800, 5);
    entry(b, VST_DEVICE_ENTRY_PAIR, 1, "", 100, 1200, 4);
    entry(b, VST_DEVICE_ENTRY_PAIR, 1, "", 500, 1100, 3); /* goes back */
    entry(b, VST_DEVICE_ENTRY_PAIR, 9, "", 1, 1, 1);      /* of none */
    builder_seal(b, 1);
    builder_records(b, 0, 1, 1000, 1);
}

static void a_file_may_say_anything_of_devices(void)
{
    const uint64_t good[7] = {
        head(VST_ACTIVITY_KERNEL, VST_ACTIVITY_HAS_ATTRIBUTES, 1),
        1,
        42,
        200,
        50,
        6,
        0};
    const uint64_t too_long[7] = {
        head(VST_ACTIVITY_KERNEL, VST_ACTIVITY_HAS_ATTRIBUTES, 1),
        1,
        43,
        300,
        50,
        1000,
        0};
    const uint64_t cut[5] = {head(VST_ACTIVITY_RUNTIME, 0xff, 9), 77, 42, 1500,
                             UINT64_MAX};
    const uint64_t strange[5] = {head(200, 0, 1), 1, 1, 1, 1};
    uint64_t payload[7];
    vst_trace *trace;
    first found = {0};
    const vst_sink sink = {.ctx = &found, .device = keep_first};
    builder b;

    begin_file(&b);
    builder_escape(&b, VST_ESCAPE_DEVICE, 100, strange, 5);
    builder_escape(&b, VST_ESCAPE_DEVICE, 0, good, 4);
    memcpy(payload, good, sizeof good);
    memcpy(&payload[6], "\"a\": 1", 6);
    builder_escape(&b, VST_ESCAPE_DEVICE, 100, payload, 7);
    builder_escape(&b, VST_ESCAPE_DEVICE, 100, too_long, 7);
    builder_escape(&b, VST_ESCAPE_DEVICE, 2000, cut, 5);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_device_count(trace), 2);
    CHECK_TEXT(vst_trace_device_at(trace, 0)->name, "new");
    CHECK_TEXT(vst_trace_device_at(trace, 0)->platform, "abc?");
    CHECK_INT(vst_trace_device_at(trace, 0)->pairs, 2);
    CHECK_INT(vst_trace_device_at(trace, 0)->error_ns, 5);
    CHECK(!vst_trace_device_at(trace, 1)->has_clock);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    CHECK_INT(found.count, 3);
    CHECK_INT(found.span.kind, VST_ACTIVITY_RUNTIME);
    found.count = 0;
    vst_trace_set_range(trace, INT64_MIN, BUILDER_EPOCH_NS + 1450);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    CHECK_INT(found.count, 1);
    CHECK_INT(found.span.correlation, 42);
    CHECK_INT(found.span.start_ns, BUILDER_EPOCH_NS + 1400);
    CHECK_INT(found.span.end_ns, BUILDER_EPOCH_NS + 1500);
    CHECK_TEXT(found.args, "\"a\": 1");
    vst_trace_close(trace);
    builder_free(&b);
}

int main(void)
{
    TEST(without_a_collector_or_the_option_a_file_is_as_it_was);
    TEST(a_collector_lives_as_long_as_its_session);
    TEST(what_comes_after_the_stop_is_counted);
    TEST(one_that_fails_is_left_out_and_the_trace_says_so);
    TEST(what_collectors_tell_is_in_the_trace_and_handed_over_once);
    TEST(devices_can_be_stopped_ahead_of_the_rest);
    TEST(the_registry_has_room_for_a_few);
    TEST(a_clock_is_straight_between_its_pairs);
    TEST(a_file_may_say_anything_of_devices);
    return checks_end();
}
