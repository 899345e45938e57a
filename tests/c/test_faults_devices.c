/* Lanes of devices are made, drawn and searched, again and again, and each time
 * another allocation of the core fails: that is told, and nothing is half made.
 * Leaks are the sanitizer's to find. */
#include "faults.h"

#include <errno.h>

#include <vestige/device_lanes.h>

#include "device_traces.h"

enum { FAULTS_MAX = 1000 };

static vst_status draw(const vst_device_lanes *lanes)
{
    const uint32_t of[] = {0, 1, 2};
    void *bytes;
    size_t size;
    vst_status status = vst_device_lanes_draw(lanes, BUILDER_EPOCH_NS,
                                              BUILDER_EPOCH_NS + SPAN_NS, 50,
                                              of, 3, &bytes, &size);

    if (status == VST_OK)
        free(bytes);
    return status;
}

static vst_status search(const vst_device_lanes *lanes)
{
    const vst_id wanted[] = {FIRST_NAME};
    const vst_view_ids ids = {wanted, 1};
    uint32_t counts[10] = {0};
    vst_device_activity found;
    vst_status status = vst_device_lanes_search(
        lanes, BUILDER_EPOCH_NS, BUILDER_EPOCH_NS + SPAN_NS, 10, &ids, counts);

    return status == VST_OK ? vst_device_lanes_next(lanes, INT64_MIN, false,
                                                    UINT32_MAX, &ids, &found)
                            : status;
}

static vst_status make_and_ask(vst_trace *trace)
{
    vst_error error = {VST_OK, 0, 0};
    vst_device_lanes *lanes;
    vst_status status =
        vst_device_lanes_create(trace, VST_WINDOW_ALL, NULL, &lanes, &error);

    CHECK_INT(error.status, status);
    if (status != VST_OK) {
        CHECK(lanes == NULL);
        return status;
    }
    status = draw(lanes);
    if (status == VST_OK)
        status = search(lanes);
    vst_device_lanes_destroy(lanes);
    return status;
}

static void any_allocation_of_lanes_may_fail(void)
{
    vst_trace *trace = random_trace(3, 60);

    for (int lasting = 0; lasting < 2; lasting++) {
        unsigned n = 1;
        bool failed = true;

        while (failed && n < FAULTS_MAX) {
            vst_status status;

            faults_begin(FAULT_MEMORY, n++, lasting != 0, ENOMEM);
            status = make_and_ask(trace);
            failed = faults_end();
            CHECK_INT(status, failed ? VST_E_NOMEM : VST_OK);
        }
        CHECK(n > 20 && n < FAULTS_MAX);
    }
    vst_trace_close(trace);
}

int main(void)
{
    TEST(any_allocation_of_lanes_may_fail);
    return checks_end();
}
