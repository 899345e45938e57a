/* Sums of device activities: every number follows from the times in a file that
 * is made by hand. Times are ticks, which are nanoseconds. */
#include "tables/device_sums.h"
#include "tables/pass.h"

#include "check.h"
#include "table_cells.h"
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

enum { NAMED, USES, GAPS, TABLES };

typedef struct reading {
    builder b;
    vst_trace *trace;
    vst__table_pass pass;
    const vst__filling *rows; /* by table */
} reading;

static void read_range(reading *r, int64_t from_ns, int64_t to_ns)
{
    static const char *const names[TABLES] = {"device_sums", "device_uses",
                                              "device_gaps"};
    const vst__table *tables[TABLES];

    for (size_t i = 0; i < TABLES; i++)
        tables[i] = vst__table_of_any_kind(names[i]);
    CHECK_INT(builder_open(&r->b, &r->trace, NULL), VST_OK);
    vst_trace_set_range(r->trace, from_ns, to_ns);
    CHECK_INT(vst__table_pass_create(&r->pass, tables, TABLES, NULL), VST_OK);
    CHECK_INT(vst__table_pass_read(&r->pass, r->trace, NULL), VST_OK);
    r->rows = r->pass.fillings;
}

static void read_all(reading *r)
{
    read_range(r, INT64_MIN, INT64_MAX);
}

static void end(reading *r)
{
    vst__table_pass_free(&r->pass);
    vst_trace_close(r->trace);
    builder_free(&r->b);
}

static size_t rows_of(const reading *r, size_t table)
{
    return r->rows[table].batch.rows;
}

/* Returns a column of a device's use, or of a stream's if stream is not
 * NONE. */
static int64_t use(const reading *r, int64_t device, int64_t stream,
                   const char *name)
{
    const vst__filling *uses = &r->rows[USES];

    for (size_t i = 0; i < uses->batch.rows; i++)
        if (cell(uses, i, "device") == device &&
            cell(uses, i, "stream") == stream)
            return cell(uses, i, name);
    return MISSING;
}

static int64_t named(const reading *r, size_t row, const char *name)
{
    return cell(&r->rows[NAMED], row, name);
}

static int64_t gap(const reading *r, size_t row, const char *name)
{
    return cell(&r->rows[GAPS], row, name);
}

static int64_t gap_ns(const reading *r, size_t row)
{
    return gap(r, row, "end_ns") - gap(r, row, "start_ns");
}

/* Two streams of one device that overlap, then an idle time because the launch
 * came late, then an idle time although an activity was launched. */
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
    reading r;

    fill(&r.b);
    read_all(&r);
    CHECK_INT(rows_of(&r, USES), 5);
    CHECK_INT(use(&r, 1, NONE, "works"), 4);
    CHECK_INT(use(&r, 1, NONE, "span_ns"), 5500);
    CHECK_INT(use(&r, 1, NONE, "busy_ns"), 2000 + 500 + 500);
    CHECK_INT(use(&r, 1, NONE, "idle_ns"), 1000 + 1500);
    CHECK_INT(use(&r, 1, NONE, "gaps"), 2);
    CHECK_INT(use(&r, 1, NONE, "longest_gap_ns"), 1500);
    CHECK_INT(use(&r, 1, NONE, "unlaunched_ns"), 500);
    CHECK_INT(use(&r, 1, NONE, "launched"), 4);
    CHECK_INT(use(&r, 1, NONE, "delay_ns"), 880 + 1360 + 490 + 5840);
    CHECK_INT(use(&r, 1, 7, "busy_ns"), 1500);
    CHECK_INT(use(&r, 1, 7, "idle_ns"), 2000);
    CHECK_INT(use(&r, 1, 7, "queue_max"), 1);
    CHECK_INT(use(&r, 1, 8, "queue_max"), 2);
    CHECK_INT(use(&r, 1, 8, "queue_sum"), 3);
    CHECK_INT(use(&r, 2, NONE, "launched"), 0);
    CHECK_INT(use(&r, 2, NONE, "unlaunched_ns"), 0);
    CHECK_INT(use(&r, 2, NONE, "idle_ns"), 900);
    end(&r);
}

static void gaps_say_what_ended_them(void)
{
    reading r;

    fill(&r.b);
    read_all(&r);
    CHECK_INT(rows_of(&r, GAPS), 3);
    CHECK_INT(gap_ns(&r, 0), 1500);
    CHECK_INT(gap(&r, 0, "unlaunched_ns"), 0);
    CHECK_INT(gap(&r, 0, "func"), COPY);
    CHECK_INT(gap(&r, 0, "op"), OPERATOR);
    CHECK_INT(gap(&r, 0, "stream"), 8);
    CHECK_INT(gap(&r, 1, "unlaunched_ns"), 500);
    CHECK_INT(gap(&r, 1, "op"), NONE);
    CHECK_INT(gap(&r, 1, "thread"), 1);
    CHECK_INT(gap(&r, 2, "device"), 2);
    CHECK_INT(gap(&r, 2, "unlaunched_ns"), NONE);
    end(&r);
}

static void activities_are_added_up_by_name(void)
{
    reading r;

    fill(&r.b);
    read_all(&r);
    CHECK_INT(rows_of(&r, NAMED), 5);
    CHECK_INT(named(&r, 0, "kind"), VST_ACTIVITY_KERNEL);
    CHECK_INT(named(&r, 0, "activities"), 3);
    CHECK_INT(named(&r, 0, "total_ns"), 3000);
    CHECK_INT(named(&r, 0, "longest_ns"), 1500);
    CHECK_INT(named(&r, 1, "kind"), VST_ACTIVITY_COPY);
    CHECK_INT(named(&r, 1, "bytes"), 1000);
    CHECK_INT(named(&r, 2, "kind"), VST_ACTIVITY_SYNC);
    CHECK_INT(named(&r, 3, "activities"), 4);
    CHECK_INT(named(&r, 4, "device"), 2);
    end(&r);
}

static void a_range_cuts_the_times(void)
{
    reading r;

    fill(&r.b);
    read_range(&r, BUILDER_EPOCH_NS + 2800, BUILDER_EPOCH_NS + 5200);
    CHECK_INT(use(&r, 1, NONE, "span_ns"), 2400);
    CHECK_INT(use(&r, 1, NONE, "busy_ns"), 1200 + 200);
    CHECK_INT(use(&r, 1, NONE, "idle_ns"), 1000);
    end(&r);
}

static void time_between_windows_is_not_idle(void)
{
    reading r;

    begin(&r.b);
    builder_window(&r.b, 0, 1000, 3000);
    builder_window(&r.b, 1, 50000, 53000);
    builder_records(&r.b, 0, 1, 1000, 1);
    work(&r.b, 7, 0, 1100, 1200);
    work(&r.b, 7, 0, 1500, 1600);
    builder_records(&r.b, 1, 1, 50000, 1);
    work(&r.b, 7, 0, 50100, 50200);
    work(&r.b, 7, 0, 50300, 50400);
    read_all(&r);
    CHECK_INT(use(&r, 1, NONE, "works"), 4);
    CHECK_INT(use(&r, 1, NONE, "span_ns"), 500 + 300);
    CHECK_INT(use(&r, 1, NONE, "busy_ns"), 400);
    CHECK_INT(use(&r, 1, NONE, "idle_ns"), 300 + 100);
    CHECK_INT(use(&r, 1, NONE, "gaps"), 2);
    end(&r);
}

/* The longest gaps are kept, in whatever order gaps occur. */
static void of_many_gaps_the_longest_are_told(void)
{
    enum { COUNT = 60 };
    uint64_t at = 2000;
    reading r;

    begin(&r.b);
    builder_window(&r.b, 0, 1000, 10000000);
    builder_records(&r.b, 0, 1, 1000, 1);
    for (uint64_t i = 0; i < COUNT; i++) {
        work(&r.b, 7, 0, at, at + 10);
        at += 10 + (i * 17) % COUNT + 1; /* each length from 1 to COUNT occurs
                                          * once */
    }
    work(&r.b, 7, 0, at, at + 10);
    read_all(&r);
    CHECK_INT(use(&r, 1, NONE, "gaps"), COUNT);
    CHECK_INT(rows_of(&r, GAPS), VST_DEVICE_GAPS);
    for (size_t i = 0; i < VST_DEVICE_GAPS; i++)
        CHECK_INT(gap_ns(&r, i), COUNT - (int64_t)i);
    end(&r);
}

static void centuries_do_not_overflow(void)
{
    reading r;

    begin(&r.b);
    builder_window(&r.b, 0, 1000, 9000);
    builder_records(&r.b, 0, 1, 1000, 1);
    for (uint64_t i = 0; i < 16; i++) {
        call(&r.b, i + 1, 1100);
        add(&r.b, VST_ACTIVITY_KERNEL, 1, 7, KERNEL, i + 1, 2000,
            UINT64_MAX / 2);
    }
    read_all(&r);
    CHECK_INT(named(&r, 0, "total_ns"), INT64_MAX);
    CHECK_INT(use(&r, 1, NONE, "busy_ns"), 7000);
    end(&r);
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
