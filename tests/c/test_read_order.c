/* Reading a running recording on a machine that reorders loads: a read may see
 * the word that announces a payload, or an entry's size, while the payload or
 * entry still reads as zeros. The linker sends the core's pread here first (see
 * meson.build), so that a test can do this. In the end, the reader has all
 * data. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <vestige/vestige.h>

#include "check.h"

#define VALUE 12345678.5
#define NAME "a name that one read does not see"

static char path[] = "/tmp/vestige-test-read-order-XXXXXX";

/* ---- a read that sees too little ----------------------------------------- */

static const void *late; /* the first read sees zeros in place of these bytes */
static size_t late_size;
static int missed;

ssize_t __real_pread64(int fd, void *bytes, size_t count, off_t offset);
ssize_t __wrap_pread64(int fd, void *bytes, size_t count, off_t offset);

ssize_t __wrap_pread64(int fd, void *bytes, size_t count, off_t offset)
{
    ssize_t got = __real_pread64(fd, bytes, count, offset);
    void *at = late != NULL && got > 0
                   ? memmem(bytes, (size_t)got, late, late_size)
                   : NULL;

    if (at != NULL) {
        memset(at, 0, late_size);
        late = NULL;
        missed++;
    }
    return got;
}

static void miss_once(const void *bytes, size_t size)
{
    late = bytes;
    late_size = size;
    missed = 0;
}

/* ---- a recording -------------------------------------------------------- */

static vst_session *session;
static vst_id counted, named;

static void begin(void)
{
    vst_session_options options = {.path = NULL};
    vst_definition counter = {
        .kind = VST_DEF_COUNTER, .name = "counted", .name_len = 7, .file = ""};
    vst_definition function = {.kind = VST_DEF_ANNOTATION,
                               .name = NAME,
                               .name_len = sizeof NAME - 1,
                               .file = ""};
    vst_recording *recording;

    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    recording = vst_session_recording(session);
    CHECK_INT(vst_recording_define_id(recording, &counter, &counted), VST_OK);
    vst_record_counter(counted, 1);
    vst_record_counter(counted, 2);
    vst_record_counter(counted, VALUE);
    CHECK_INT(vst_recording_define_id(recording, &function, &named), VST_OK);
}

static void finish(void)
{
    vst_session_destroy(session);
    session = NULL;
}

static vst_trace *open_it(void)
{
    vst_trace *trace = NULL;

    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    return trace;
}

static vst_trace *copy_it(void)
{
    vst_trace *trace = NULL;

    CHECK_INT(vst_session_snapshot(session, path, true, 0, NULL, NULL), VST_OK);
    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    return trace;
}

/* ---- what a reader has -------------------------------------------------- */

typedef struct counters {
    int count, wrong;
} counters;

static vst_status see_counter(void *ctx, const vst_counter *counter)
{
    counters *seen = ctx;
    const double values[] = {1, 2, VALUE};

    if (seen->count >= 3 || counter->value != values[seen->count])
        seen->wrong++;
    seen->count++;
    return VST_OK;
}

static void check_counters(vst_trace *trace)
{
    counters seen = {0, 0};
    vst_sink sink = {.ctx = &seen, .counter = see_counter};

    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    CHECK(seen.count >= 2);
    CHECK_INT(seen.wrong, 0);
}

static void check_name(const vst_trace *trace)
{
    const vst_definition *definition = vst_trace_definition(trace, named);

    if (definition != NULL)
        CHECK_TEXT(definition->name, NAME);
}

static void check_both(vst_trace *(*get)(void))
{
    const double value = VALUE;
    vst_trace *trace;

    begin();
    miss_once(&value, sizeof value);
    trace = get();
    check_counters(trace);
    CHECK_INT(missed, 1);
    vst_trace_close(trace);
    miss_once(NAME, sizeof NAME - 1);
    trace = get();
    check_name(trace);
    CHECK_INT(missed, 1);
    vst_trace_close(trace);
    finish();
}

static void a_reader_has_whole_records_and_names(void)
{
    check_both(open_it);
}

static void so_has_a_snapshot(void)
{
    check_both(copy_it);
}

int main(void)
{
    close(mkstemp(path));
    TEST(a_reader_has_whole_records_and_names);
    TEST(so_has_a_snapshot);
    unlink(path);
    return checks_end();
}
