/* What devices did, added up: every number follows from the times in a file
 * that is made by hand. Times are ticks, which are nanoseconds. */

#include "check.h"
#include "replay/device_sums.h"
#include "store/reader.h"
#include "trace_builder.h"

enum { KERNEL = 1, COPY, LAUNCH, OPERATOR };

static void add(builder *b, uint32_t kind, uint32_t device, uint32_t stream,
                vst_id id, uint64_t correlation, uint64_t start,
                uint64_t duration)
{
    uint64_t flags = VST_ACTIVITY_HOST_TIME | VST_ACTIVITY_HAS_BYTES;
    const uint64_t payload[] = {kind | flags << 8 | (uint64_t)device << 16 |
                                    (uint64_t)stream << 32,
                                id,
                                correlation,
                                start,
                                duration,
                                id == COPY ? 1000 : 0};

    builder_escape(b, VST_ESCAPE_DEVICE, 0, payload, 6);
}

static void work(builder *b, uint32_t stream, uint64_t correlation,
                 uint64_t start, uint64_t end)
{
    add(b, VST_ACTIVITY_KERNEL, 1, stream, KERNEL, correlation, start,
        end - start);
}

static void call(builder *b, uint64_t correlation, uint64_t start)
{
    add(b, VST_ACTIVITY_RUNTIME, 1, 0, LAUNCH, correlation, start, 10);
}

static void begin(builder *b)
{
    builder_init(b);
    builder_header(b)->version = VST_FILE_VERSION;
    builder_fix_header(b);
    builder_definitions(b, 1);
    builder_thread(b, 1, 77, "main");
    builder_define(b, VST_DEF_ACTIVITY, KERNEL, "kernel", "", 0);
    builder_define(b, VST_DEF_ACTIVITY, COPY, "copy", "", 0);
    builder_define(b, VST_DEF_ACTIVITY, LAUNCH, "launch", "", 0);
    builder_define(b, VST_DEF_OPERATOR, OPERATOR, "op", "", 0);
    for (uint32_t i = 1; i <= 2; i++)
        builder_entry(b,
                      &(vst_file_entry){.kind = VST_ENTRY_DEVICE,
                                        .id = i,
                                        .x = (i - 1) | UINT64_C(1) << 32},
                      "device", "");
}

static vst_device_sums *sums_of(builder *b, vst_trace **trace)
{
    vst_device_sums *sums = NULL;

    CHECK_INT(builder_open(b, trace, NULL), VST_OK);
    CHECK_INT(vst__device_sums_create(*trace, VST_WINDOW_ALL, &sums, NULL),
              VST_OK);
    return sums;
}

static const vst_device_use *use_of(const vst_device_sums *sums,
                                    uint32_t device, int stream)
{
    for (size_t i = 0; i < vst__device_sums_use_count(sums); i++) {
        const vst_device_use *use = vst__device_sums_use_at(sums, i);

        if (use->device == device && use->is_stream == (stream >= 0) &&
            (stream < 0 || use->stream == (uint32_t)stream))
            return use;
    }
    CHECK_TEXT("there is no such use", "");
    exit(1);
}

/* Two streams of one device that overlap, then nothing until a launch that
 * comes late, then nothing although something was launched. */
static void fill(builder *b)
{
    begin(b);
    builder_window(b, 0, 1000, 9000);
    builder_records(b, 0, 1, 1000, 1);
    builder_enter(b, OPERATOR, 100);
    call(b, 1, 1110);
    call(b, 2, 1130);
    call(b, 4, 1150);
    builder_exit(b, OPERATOR, 100);
    call(b, 3, 4500);
    work(b, 7, 1, 2000, 3000);
    work(b, 8, 2, 2500, 4000);
    work(b, 7, 3, 5000, 5500);
    add(b, VST_ACTIVITY_COPY, 1, 8, COPY, 4, 7000, 500);
    add(b, VST_ACTIVITY_KERNEL, 2, 7, KERNEL, 0, 2000, 100);
    add(b, VST_ACTIVITY_KERNEL, 2, 7, KERNEL, 0, 3000, 100);
    add(b, VST_ACTIVITY_SYNC, 1, 9, KERNEL, 0, 2000, 6000);
}

static void a_device_is_busy_while_any_stream_is(void)
{
    const vst_device_use *use;
    vst_device_sums *sums;
    vst_trace *trace;
    builder b;

    fill(&b);
    sums = sums_of(&b, &trace);
    CHECK_INT(vst__device_sums_use_count(sums), 5);
    use = use_of(sums, 1, -1);
    CHECK_INT(use->works, 4);
    CHECK_INT(use->span_ns, 5500);
    CHECK_INT(use->busy_ns, 2000 + 500 + 500);
    CHECK_INT(use->idle_ns, 1000 + 1500);
    CHECK_INT(use->gaps, 2);
    CHECK_INT(use->longest_gap_ns, 1500);
    CHECK_INT(use->unlaunched_ns, 500);
    CHECK_INT(use->launched, 4);
    CHECK_INT(use->delay_ns, 880 + 1360 + 490 + 5840);
    use = use_of(sums, 1, 7);
    CHECK_INT(use->busy_ns, 1500);
    CHECK_INT(use->idle_ns, 2000);
    CHECK_INT(use->queue_max, 1);
    use = use_of(sums, 1, 8);
    CHECK_INT(use->queue_max, 2);
    CHECK_INT(use->queue_sum, 3);
    use = use_of(sums, 2, -1);
    CHECK_INT(use->launched, 0);
    CHECK_INT(use->unlaunched_ns, 0);
    CHECK_INT(use->idle_ns, 900);
    vst__device_sums_destroy(sums);
    vst_trace_close(trace);
    builder_free(&b);
}

static void gaps_say_what_ended_them(void)
{
    const vst_device_gap *gap;
    vst_device_sums *sums;
    vst_trace *trace;
    builder b;

    fill(&b);
    sums = sums_of(&b, &trace);
    CHECK_INT(vst__device_sums_gap_count(sums), 3);
    gap = vst__device_sums_gap_at(sums, 0);
    CHECK_INT(gap->end_ns - gap->start_ns, 1500);
    CHECK_INT(gap->unlaunched_ns, 0);
    CHECK_INT(gap->id, COPY);
    CHECK_INT(gap->op, OPERATOR);
    CHECK_INT(gap->stream, 8);
    gap = vst__device_sums_gap_at(sums, 1);
    CHECK_INT(gap->unlaunched_ns, 500);
    CHECK_INT(gap->op, 0);
    CHECK_INT(gap->thread, 1);
    gap = vst__device_sums_gap_at(sums, 2);
    CHECK_INT(gap->device, 2);
    CHECK_INT(gap->unlaunched_ns, -1);
    vst__device_sums_destroy(sums);
    vst_trace_close(trace);
    builder_free(&b);
}

static void activities_are_added_up_by_name(void)
{
    const vst_device_named *named;
    vst_device_sums *sums;
    vst_trace *trace;
    builder b;

    fill(&b);
    sums = sums_of(&b, &trace);
    CHECK_INT(vst__device_sums_named_count(sums), 5);
    named = vst__device_sums_named_at(sums, 0);
    CHECK_INT(named->kind, VST_ACTIVITY_KERNEL);
    CHECK_INT(named->count, 3);
    CHECK_INT(named->total_ns, 3000);
    CHECK_INT(named->longest_ns, 1500);
    named = vst__device_sums_named_at(sums, 1);
    CHECK_INT(named->kind, VST_ACTIVITY_COPY);
    CHECK_INT(named->bytes, 1000);
    CHECK_INT(vst__device_sums_named_at(sums, 2)->kind, VST_ACTIVITY_SYNC);
    CHECK_INT(vst__device_sums_named_at(sums, 3)->count, 4);
    CHECK_INT(vst__device_sums_named_at(sums, 4)->device, 2);
    vst__device_sums_destroy(sums);
    vst_trace_close(trace);
    builder_free(&b);
}

static void a_range_cuts_the_times(void)
{
    const vst_device_use *use;
    vst_device_sums *sums;
    vst_trace *trace;
    builder b;

    fill(&b);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    vst_trace_set_range(trace, BUILDER_EPOCH_NS + 2800,
                        BUILDER_EPOCH_NS + 5200);
    CHECK_INT(vst__device_sums_create(trace, VST_WINDOW_ALL, &sums, NULL),
              VST_OK);
    use = use_of(sums, 1, -1);
    CHECK_INT(use->span_ns, 2400);
    CHECK_INT(use->busy_ns, 1200 + 200);
    CHECK_INT(use->idle_ns, 1000);
    vst__device_sums_destroy(sums);
    vst_trace_close(trace);
    builder_free(&b);
}

static void time_between_windows_is_not_idle(void)
{
    const vst_device_use *use;
    vst_device_sums *sums;
    vst_trace *trace;
    builder b;

    begin(&b);
    builder_window(&b, 0, 1000, 3000);
    builder_window(&b, 1, 50000, 53000);
    builder_records(&b, 0, 1, 1000, 1);
    work(&b, 7, 0, 1100, 1200);
    work(&b, 7, 0, 1500, 1600);
    builder_records(&b, 1, 1, 50000, 1);
    work(&b, 7, 0, 50100, 50200);
    work(&b, 7, 0, 50300, 50400);
    sums = sums_of(&b, &trace);
    use = use_of(sums, 1, -1);
    CHECK_INT(use->works, 4);
    CHECK_INT(use->span_ns, 500 + 300);
    CHECK_INT(use->busy_ns, 400);
    CHECK_INT(use->idle_ns, 300 + 100);
    CHECK_INT(use->gaps, 2);
    vst__device_sums_destroy(sums);
    vst_trace_close(trace);
    builder_free(&b);
}

/* The longest gaps are kept, whenever they come. */
static void of_many_gaps_the_longest_are_told(void)
{
    enum { COUNT = 60 };
    vst_device_sums *sums;
    uint64_t at = 2000;
    vst_trace *trace;
    builder b;

    begin(&b);
    builder_window(&b, 0, 1000, 10000000);
    builder_records(&b, 0, 1, 1000, 1);
    for (uint64_t i = 0; i < COUNT; i++) {
        work(&b, 7, 0, at, at + 10);
        at += 10 + (i * 17) % COUNT + 1; /* each gap from 1 to COUNT once */
    }
    work(&b, 7, 0, at, at + 10);
    sums = sums_of(&b, &trace);
    CHECK_INT(use_of(sums, 1, -1)->gaps, COUNT);
    CHECK_INT(vst__device_sums_gap_count(sums), VST_DEVICE_GAPS_MAX);
    for (size_t i = 0; i < VST_DEVICE_GAPS_MAX; i++) {
        const vst_device_gap *gap = vst__device_sums_gap_at(sums, i);

        CHECK_INT(gap->end_ns - gap->start_ns, COUNT - (int64_t)i);
    }
    vst__device_sums_destroy(sums);
    vst_trace_close(trace);
    builder_free(&b);
}

static void centuries_do_not_overflow(void)
{
    vst_device_sums *sums;
    vst_trace *trace;
    builder b;

    begin(&b);
    builder_window(&b, 0, 1000, 9000);
    builder_records(&b, 0, 1, 1000, 1);
    for (uint64_t i = 0; i < 16; i++) {
        call(&b, i + 1, 1100);
        add(&b, VST_ACTIVITY_KERNEL, 1, 7, KERNEL, i + 1, 2000, UINT64_MAX / 2);
    }
    sums = sums_of(&b, &trace);
    CHECK_INT(vst__device_sums_named_at(sums, 0)->total_ns, INT64_MAX);
    CHECK_INT(use_of(sums, 1, -1)->busy_ns, 7000);
    vst__device_sums_destroy(sums);
    vst_trace_close(trace);
    builder_free(&b);
}

int main(void)
{
    TEST(a_device_is_busy_while_any_stream_is);
    TEST(gaps_say_what_ended_them);
    TEST(activities_are_added_up_by_name);
    TEST(a_range_cuts_the_times);
    TEST(time_between_windows_is_not_idle);
    TEST(of_many_gaps_the_longest_are_told);
    TEST(centuries_do_not_overflow);
    return checks_end();
}
