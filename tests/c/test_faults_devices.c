/* Makes, draws and searches lanes of devices, and adds up and exports their
 * activities, again and again, each time with another failing allocation: the
 * failure is reported, and no half-made result stays. Leaks are found by the
 * sanitizer. */
#include "faults.h"

#include <errno.h>
#include <unistd.h>

#include "device_traces.h"
#include "exported.h"
#include "tables/pass.h"
#include "view/lanes_devices.h"

enum { FAULTS_MAX = 1000 };

static vst_status draw(const vst__lanes *lanes)
{
    const uint32_t of[] = {0, 1, 2};
    void *bytes;
    size_t size;
    vst_status status =
        vst__lanes_draw(lanes, BUILDER_EPOCH_NS, BUILDER_EPOCH_NS + SPAN_NS, 50,
                        of, 3, &bytes, &size);

    if (status == VST_OK)
        free(bytes);
    return status;
}

static vst_status search(const vst__lanes *lanes)
{
    const vst_id wanted[] = {FIRST_NAME};
    const vst_view_ids ids = {wanted, 1};
    uint32_t counts[10] = {0};
    vst__lane_item found;
    vst_status status = vst__lanes_find(lanes, &ids, BUILDER_EPOCH_NS,
                                        BUILDER_EPOCH_NS + SPAN_NS, 10, counts);

    return status == VST_OK
               ? vst__lanes_next(lanes, &ids, INT64_MIN, false, &found)
               : status;
}

static vst_status pack(const vst__lanes *lanes)
{
    uint8_t *bytes;
    size_t size, count;
    uint32_t first;
    vst_status status = VST_OK;

    for (int64_t width_ns = 0; status == VST_OK && width_ns < 1000;
         width_ns += 999) {
        status = vst__lanes_pack(lanes, 0, 0, BUILDER_EPOCH_NS, INT64_MAX,
                                 width_ns, &bytes, &size, &first, &count);
        if (status == VST_OK)
            free(bytes);
    }
    return status;
}

static vst_status make_and_ask(vst_trace *trace)
{
    vst_error error = {VST_OK, 0, 0};
    vst__lanes *lanes;
    vst_status status =
        vst__lanes_create(trace, "devices", NULL, &lanes, &error);

    CHECK_INT(error.status, status);
    if (status != VST_OK) {
        CHECK(lanes == NULL);
        return status;
    }
    status = draw(lanes);
    if (status == VST_OK)
        status = search(lanes);
    if (status == VST_OK)
        status = pack(lanes);
    vst__lanes_destroy(lanes);
    return status;
}

/* Kinds of records that the trace lacks or has few of. */
static vst_status make_others(vst_trace *trace)
{
    static const char *const kinds[] = {"left_out", "marks", "states", "tasks"};
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < 4; i++) {
        vst_error error = {VST_OK, 0, 0};
        vst__lanes *lanes;

        status = vst__lanes_create(trace, kinds[i], NULL, &lanes, &error);
        CHECK_INT(error.status, status);
        CHECK((lanes == NULL) == (status != VST_OK));
        vst__lanes_destroy(lanes);
    }
    return status;
}

static vst_status add_up(vst_trace *trace)
{
    static const char *const names[] = {
        "device_sums", "device_uses", "device_gaps", "averages",  "contexts",
        "events",      "activities",  "gil_holders", "lock_waits"};
    enum { COUNT = sizeof names / sizeof names[0] };
    const vst__table_options options = {.shapes = true, .overloads = true};
    const vst__table *tables[COUNT];
    vst__table_pass pass;
    vst_status status;

    for (size_t i = 0; i < COUNT; i++)
        tables[i] = vst__table_of_any_kind(names[i]);
    status = vst__table_pass_create(&pass, tables, COUNT, &options);
    if (status == VST_OK)
        status = vst__table_pass_read(&pass, trace, NULL);
    vst__table_pass_free(&pass);
    return status;
}

/* All documents that are reported as complete are equal. */
static void check_whole(void)
{
    static char *whole;
    char *text;

    faults_pause(true);
    text = contents(in_folder("t.json"));
    if (whole == NULL)
        whole = text;
    CHECK(strlen(text) > 1000 && strcmp(text, whole) == 0);
    if (text != whole)
        free(text);
    faults_pause(false);
}

static vst_status export_as(vst_trace *trace, const char *name)
{
    const vst_export_options options = {.window = VST_WINDOW_ALL};
    vst_error error = {VST_OK, 0, 0};
    vst_status status =
        vst_trace_export(trace, in_folder(name), &options, &error);

    CHECK_INT(error.status, status);
    if (status == VST_OK && strcmp(name, "t.json") == 0)
        check_whole();
    unlink(in_folder(name));
    return status;
}

static vst_status export_perfetto(vst_trace *trace)
{
    return export_as(trace, "t.pftrace");
}

static vst_status export_chrome(vst_trace *trace)
{
    return export_as(trace, "t.json");
}

/* Makes each allocation fail, first alone, then with all later allocations. */
static void fail_each(vst_status (*work)(vst_trace *trace))
{
    vst_trace *trace = random_trace(3, 60);

    for (int lasting = 0; lasting < 2; lasting++) {
        unsigned n = 1;
        bool failed = true;

        while (failed && n < FAULTS_MAX) {
            vst_status status;

            faults_begin(FAULT_MEMORY, n++, lasting != 0, ENOMEM);
            status = work(trace);
            failed = faults_end();
            CHECK_INT(status, failed ? VST_E_NOMEM : VST_OK);
        }
        CHECK(n > 10 && n < FAULTS_MAX);
    }
    vst_trace_close(trace);
}

static void any_allocation_of_lanes_may_fail(void)
{
    fail_each(make_and_ask);
    fail_each(make_others);
}

static void any_allocation_of_sums_may_fail(void)
{
    fail_each(add_up);
}

static void any_allocation_of_an_export_may_fail(void)
{
    fail_each(export_perfetto);
    fail_each(export_chrome);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(any_allocation_of_lanes_may_fail);
    TEST(any_allocation_of_sums_may_fail);
    TEST(any_allocation_of_an_export_may_fail);
    rmdir(folder);
    return checks_end();
}
