/* The collector for CUDA, with a replacement of libcupti (tests/cupti/stub.h):
 * the device's activities are read back unchanged, even if they arrive late or
 * out of order, and each failure is reported in one line.
 *
 * test_cupti <stub> <version of CUPTI's interface> */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vestige/operator.h>
#include <vestige/vestige.h>

#include "../../adapters/cupti/cupti.h"
#include "../../adapters/cupti/records.h"
#include "../cupti/stub.h"
#include "check.h"

enum { TAKEN = 64, ARGS = 768, REFUSABLE = 27 };

static const stub_control *stub;
static const char *gemm = "_Z4gemmPfi"; /* the kernel's name, as a report shows
                                         * it */
static uint32_t version;

/* ---- a recording --------------------------------------------------------- */

typedef struct taken {
    vst_device_span spans[TAKEN];
    char args[TAKEN][ARGS];
    size_t count;
} taken;

static vst_status take(void *ctx, const vst_device_span *span)
{
    taken *self = ctx;

    if (self->count < TAKEN) {
        snprintf(self->args[self->count], ARGS, "%.*s", (int)span->args_len,
                 span->args != NULL ? span->args : "");
        self->spans[self->count] = *span;
    }
    self->count++;
    return VST_OK;
}

static vst_status ignore(void *ctx, const vst_span *span)
{
    (void)ctx, (void)span;
    return VST_OK;
}

static vst_session *begin(void)
{
    const vst_session_options options = {.devices = true};
    vst_session *session;

    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    return session;
}

static vst_trace *end(vst_session *session, taken *all)
{
    const vst_sink sink = {.ctx = all, .span = ignore, .device = take};
    vst_trace *trace;

    all->count = 0;
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    return trace;
}

/* Returns whether any line for the user contains this text. */
static bool was_told(vst_session *session, const char *text)
{
    char line[320];
    bool found = false;

    while (vst_session_next_note(session, line, sizeof line))
        found |= strstr(line, text) != NULL;
    return found;
}

static const char *name_of(const vst_trace *trace, const vst_device_span *span)
{
    const vst_definition *definition = vst_trace_definition(trace, span->id);

    return definition != NULL ? definition->name : "none";
}

static const vst_device_span *find(const vst_trace *trace, const taken *all,
                                   const char *name)
{
    static const vst_device_span none;

    for (size_t i = 0; i < all->count && i < TAKEN; i++)
        if (strcmp(name_of(trace, &all->spans[i]), name) == 0)
            return &all->spans[i];
    CHECK_TEXT("there is none", name);
    return &none;
}

static void check_args(const taken *all, const vst_device_span *span,
                       const char *wanted)
{
    CHECK_TEXT(all->args[span - all->spans], wanted);
}

static void forget(vst_trace *trace, vst_session *session)
{
    vst_trace_close(trace);
    vst_session_destroy(session);
}

static vst_id define(vst_session *session, vst_definition_kind kind,
                     const char *name)
{
    const vst_definition definition = {.kind = kind,
                                       .name = name,
                                       .name_len = (uint32_t)strlen(name),
                                       .file = ""};
    vst_id id = 0;

    vst_recording_define_id(vst_session_recording(session), &definition, &id);
    return id;
}

/* ---- what a device does -------------------------------------------------- */

#define ADD(record) stub->add(&(record), sizeof(record))

static cupti_kernel kernel_of(uint32_t correlation)
{
    cupti_kernel kernel = {
        .kind = CUPTI_KERNEL,
        .registers = 32,
        .device = 1,
        .context = 7,
        .stream = 13,
        .grid = {216, 1, 1},
        .block = {256, 1, 1},
        .static_shared = 1000,
        .dynamic_shared = 24,
        .correlation = correlation,
        .name = "_Z4gemmPfi",
        .graph = 3,
        .graph_node = UINT64_C(17179869187),
        .channel = 9,
        .channel_type = 1,
        .priority = -5,
    };

    kernel.start = stub->now();
    kernel.end = stub->now();
    return kernel;
}

static cupti_call call_of(int kind, uint32_t callback, uint32_t correlation)
{
    cupti_call call = {.kind = kind,
                       .callback = callback,
                       .process = (uint32_t)getpid(),
                       .thread = (uint32_t)syscall(SYS_gettid),
                       .correlation = correlation};

    call.start = stub->now();
    call.end = stub->now();
    return call;
}

static void launch(uint32_t correlation)
{
    cupti_call call = call_of(CUPTI_RUNTIME, 211, correlation);
    cupti_kernel kernel = kernel_of(correlation);

    CHECK(ADD(call));
    CHECK(ADD(kernel));
}

static void add_rest(void)
{
    cupti_memcpy copy = {.kind = CUPTI_MEMCPY,
                         .copy_kind = 1,
                         .from_kind = 1,
                         .to_kind = 3,
                         .bytes = 4096,
                         .device = 1,
                         .context = 7,
                         .stream = 13,
                         .correlation = 2};
    cupti_memcpy_peer peer = {.kind = CUPTI_MEMCPY_PEER,
                              .copy_kind = 10,
                              .from_kind = 3,
                              .to_kind = 3,
                              .bytes = 64,
                              .device = 1,
                              .context = 7,
                              .stream = 14,
                              .from_device = 0,
                              .from_context = 6,
                              .to_device = 1,
                              .to_context = 7,
                              .correlation = 3};
    cupti_memset set = {.kind = CUPTI_MEMSET,
                        .bytes = 100,
                        .device = 0,
                        .context = 6,
                        .stream = 7,
                        .correlation = 4,
                        .memory_kind = 3};
    cupti_sync sync = {.kind = CUPTI_SYNC,
                       .type = 4,
                       .correlation = 5,
                       .context = 7,
                       .stream = CUPTI_NONE,
                       .event = CUPTI_NONE};
    cupti_overhead overhead = {.kind = CUPTI_OVERHEAD,
                               .overhead_kind = 1 << 16};

    copy.start = peer.start = set.start = sync.start = overhead.start =
        stub->now();
    copy.end = peer.end = set.end = sync.end = overhead.end = stub->now();
    CHECK(ADD(sync)); /* before any record says which device the context belongs
                       * to */
    CHECK(ADD(copy));
    CHECK(ADD(peer));
    CHECK(ADD(set));
    CHECK(ADD(overhead));
}

/* ---- tests --------------------------------------------------------------- */

static void cupti_is_started_in_the_order_that_it_needs(void)
{
    vst_session *session;
    const char *calls;
    uint64_t wanted = 0;
    static const int kinds[] = {1, 2, 4, 5, 8, 9, 10, 17, 22, 36, 38, 39};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        wanted |= UINT64_C(1) << kinds[i];
    stub->reset(version, 0);
    session = begin();
    calls = stub->calls();
    CHECK(strncmp(calls, "cuptiActivityRegisterTimestampCallback ", 39) == 0);
    if (version >= 21)
        CHECK(strstr(calls, "cuptiActivitySetAttribute") <
              strstr(calls, "cuptiActivityRegisterCallbacks"));
    else
        CHECK(strstr(calls, "cuptiActivitySetAttribute") == NULL);
    CHECK(strstr(calls, "cuptiActivityRegisterCallbacks") <
          strstr(calls, "cuptiActivityEnable "));
    CHECK(stub->enabled() == wanted);
    vst_session_stop(session);
    CHECK(stub->enabled() == 0);
    CHECK(strstr(calls, "cuptiActivityDisable") <
          strstr(calls, "cuptiActivityFlushAll"));
    CHECK(!was_told(session, ""));
    vst_session_destroy(session);
}

/* Devices are declared by records, and by the driver if it is running. */
static void check_devices(const vst_trace *trace)
{
    CHECK_INT(vst_trace_device_count(trace), 2);
    for (uint32_t i = 0; i < 2; i++) {
        const vst_trace_device *device = vst_trace_device_at(trace, i);

        CHECK_TEXT(device->platform, "cuda");
        CHECK(!device->has_clock);
        CHECK_TEXT(device->name,
                   device->ordinal == 0 ? "Stub GPU 0" : "Stub GPU 1");
        CHECK(strstr(device->attributes, "\"numSms\": 108, ") != NULL);
    }
}

static void what_the_device_did_is_read_back(void)
{
    const vst_device_span *span;
    vst_session *session;
    vst_trace *trace;
    vst_id op, note;
    cupti_call call;
    taken all;

    stub->reset(version, 1);
    session = begin();
    op = define(session, VST_DEF_OPERATOR, "aten::mm");
    note = define(session, VST_DEF_ANNOTATION, "step");
    vst_record_operator(note, 0, NULL, 0);
    vst_record_operator(op, 0, NULL, 0);
    launch(1);
    vst_record_operator_exit(VST_EXIT, op, 0);
    vst_record_operator_exit(VST_EXIT, note, 0);
    add_rest();
    call = call_of(CUPTI_RUNTIME, 17, 6); /* cudaGetDevice: calls of this
                                           * function are left out */
    CHECK(ADD(call));
    call = call_of(CUPTI_DRIVER, 154, 7); /* nor cuCtxGetCurrent */
    CHECK(ADD(call));
    call = call_of(CUPTI_DRIVER, 307, 8);
    CHECK(ADD(call));
    trace = end(session, &all);

    CHECK_INT(all.count, 8);
    check_devices(trace);
    span = find(trace, &all, gemm);
    CHECK_INT(span->kind, VST_ACTIVITY_KERNEL);
    CHECK_INT(vst_trace_device_find(trace, span->device)->ordinal, 1);
    CHECK_INT(span->stream, 13);
    CHECK_INT(span->context, 7);
    CHECK_INT(span->correlation, 1);
    CHECK(span->op.id == op && span->annotation.id == note);
    check_args(&all, span,
               version >= 130100
                   ? "\"queued\": 0, \"registers per thread\": 32, \"shared "
                     "memory\": 1024, \"blocks per SM\": 2, \"warps per SM\": "
                     "16, \"est. achieved occupancy %\": 25, \"grid\": [216, "
                     "1, 1], \"block\": [256, 1, 1], \"graph id\": 3, \"graph "
                     "node id\": 17179869187, \"priority\": -5, \"channel\": "
                     "9, \"channel_type\": 1"
                   : "\"queued\": 0, \"registers per thread\": 32, \"shared "
                     "memory\": 1024, \"blocks per SM\": 2, \"warps per SM\": "
                     "16, \"est. achieved occupancy %\": 25, \"grid\": [216, "
                     "1, 1], \"block\": [256, 1, 1], \"graph id\": 3, \"graph "
                     "node id\": 17179869187, \"channel\": 9, "
                     "\"channel_type\": 1");
    span = find(trace, &all, "cudaLaunchKernel");
    CHECK_INT(span->kind, VST_ACTIVITY_RUNTIME);
    CHECK_INT(span->launched, 1);
    CHECK(span->thread != 0 && span->op.id == op);
    check_args(&all, span, "\"cbid\": 211");
    span = find(trace, &all, "Memcpy HtoD (Pageable -> Device)");
    CHECK_INT(span->kind, VST_ACTIVITY_COPY);
    CHECK_INT(span->bytes, 4096);
    span = find(trace, &all, "Memcpy PtoP (Device -> Device)");
    CHECK(strstr(all.args[span - all.spans], "\"fromDevice\": 0, ") != NULL);
    CHECK(strstr(all.args[span - all.spans], "\"toContext\": 7") != NULL);
    span = find(trace, &all, "Memset (Device)");
    CHECK_INT(span->kind, VST_ACTIVITY_SET);
    CHECK_INT(span->bytes, 100);
    span = find(trace, &all, "Context Sync");
    CHECK_INT(vst_trace_device_find(trace, span->device)->ordinal, 1);
    CHECK_TEXT(vst_trace_stream_find(trace, span->device, CUPTI_NONE)->name,
               "no stream");
    CHECK_INT(find(trace, &all, "Buffer Flush")->kind, VST_ACTIVITY_OVERHEAD);
    CHECK_INT(find(trace, &all, "cuLaunchKernel")->kind, VST_ACTIVITY_DRIVER);
    CHECK_INT(vst_session_lost(session), 0);
    CHECK(!was_told(session, ""));
    forget(trace, session);
}

/* If the driver starts after the recording, CUPTI's records describe the
 * devices; these records come before or behind the devices' activities. */
static void a_record_says_what_a_device_is_like(void)
{
    cupti_device device = {.kind = CUPTI_DEVICE,
                           .memory = 1 << 20,
                           .warp_size = 32,
                           .multiprocessors = 10,
                           .max_warps = 64,
                           .max_blocks = 32,
                           .shared_a_multiprocessor = 102400,
                           .registers_a_multiprocessor = 65536,
                           .id = 1,
                           .major = 8,
                           .name = "Told GPU"};
    const vst_device_span *span;
    vst_session *session;
    vst_trace *trace;
    taken all;

    stub->reset(version, 0);
    session = begin();
    launch(1);
    CHECK(ADD(device));
    trace = end(session, &all);
    span = find(trace, &all, gemm);
    CHECK_TEXT(vst_trace_device_find(trace, span->device)->name, "Told GPU");
    CHECK(strstr(all.args[span - all.spans],
                 "\"blocks per SM\": 21.6, \"warps per SM\": 172.8, \"est. "
                 "achieved occupancy %\": 100, ") != NULL);
    forget(trace, session);
}

static void events_are_found_that_streams_wait_for(void)
{
    cupti_event event = {.kind = CUPTI_EVENT,
                         .correlation = 20,
                         .context = 7,
                         .stream = 13,
                         .event = 4};
    cupti_sync wait = {.kind = CUPTI_SYNC,
                       .type = 2,
                       .correlation = 21,
                       .context = 7,
                       .stream = 14,
                       .event = 4};
    vst_session *session;
    vst_trace *trace;
    taken all;

    stub->reset(version, 1);
    session = begin();
    launch(1);
    wait.start = wait.end = stub->now();
    CHECK(ADD(wait));
    wait.start = wait.end = stub->now();
    wait.event = 5; /* no record describes this event */
    CHECK(ADD(wait));
    CHECK(ADD(event)); /* the event's record comes behind the wait for the
                        * event */
    trace = end(session, &all);
    CHECK_INT(all.count, 4);
    check_args(&all, &all.spans[2],
               "\"wait_on_stream\": 13, \"wait_on_cuda_event_record_corr_id\": "
               "20, \"wait_on_cuda_event_id\": 4");
    check_args(&all, &all.spans[3],
               "\"wait_on_stream\": -1, \"wait_on_cuda_event_record_corr_id\": "
               "-1, \"wait_on_cuda_event_id\": 5");
    forget(trace, session);
}

static void ids_that_others_give_are_kept(void)
{
    cupti_external external = {.kind = CUPTI_EXTERNAL,
                               .external_kind = 3,
                               .external = 4711,
                               .correlation = 1};
    vst_session *session;
    vst_trace *trace;
    taken all;

    stub->reset(version, 1);
    session = begin();
    launch(1);
    launch(2);
    CHECK(ADD(external)); /* the external id comes behind the activity that has
                           * the id */
    trace = end(session, &all);
    CHECK_INT(all.count, 4);
    for (size_t i = 0; i < all.count; i++)
        CHECK_INT(all.spans[i].external,
                  all.spans[i].correlation == 1 ? 4711 : 0);
    forget(trace, session);
}

/* ---- late, in any order, too much ---------------------------------------- */

static void buffers_come_late_and_in_any_order(void)
{
    vst_session *session, *next;
    vst_trace *trace;
    taken all;

    stub->reset(version, 1);
    session = begin();
    for (uint32_t i = 1; i <= 4; i++) {
        launch(i);
        stub->hold();
    }
    stub->release(); /* the newest record first */
    launch(5);
    vst_session_flush_devices(session);
    launch(6);
    stub->hold();
    vst_session_stop(session);
    stub->release(); /* delivered after the stop */
    CHECK_INT(vst_session_lost(session), 2);
    trace = end(session, &all);
    CHECK_INT(all.count, 10);
    for (size_t i = 5; i < 10; i++) /* the kernels, in order of time */
        CHECK_INT(all.spans[i].correlation, i - 4);

    /* The next recording does not show activities of the first. */
    next = begin();
    launch(7);
    stub->hold();
    vst_session_stop(next);
    CHECK_INT(vst_session_start(next, NULL), VST_OK);
    stub->release();
    launch(8);
    forget(trace, session);
    trace = end(next, &all);
    CHECK_INT(all.count, 2);
    CHECK_INT(all.spans[0].correlation, 8);
    CHECK(was_told(next, "2 activities ended before the recording began"));
    forget(trace, next);
    stub->complete_foreign(); /* delivered while nothing collects */
}

static void what_has_no_times_is_counted(void)
{
    vst_session *session;
    vst_trace *trace;
    cupti_kernel kernel;
    taken all;

    stub->reset(version, 1);
    session = begin();
    kernel = kernel_of(1);
    kernel.end = 0;
    CHECK(ADD(kernel));
    kernel.start = 0;
    CHECK(ADD(kernel));
    trace = end(session, &all);
    CHECK_INT(all.count, 0);
    CHECK_INT(vst_session_lost(session), 2);
    CHECK(was_told(session, "2 activities have no times and are lost"));
    forget(trace, session);
}

static void memory_for_buffers_is_bounded(void)
{
    vst_session *session;
    vst_trace *trace;
    taken all;
    int refused = 0;

    stub->reset(version, 1);
    session = begin();
    for (uint32_t i = 1; i <= 40; i++) {
        cupti_kernel kernel = kernel_of(i);

        refused += !ADD(kernel);
        stub->hold();
    }
    stub->release();
    launch(50);
    trace = end(session, &all);
    CHECK_INT(refused, version >= REFUSABLE ? 8 : 0);
    CHECK_INT(all.count, 42 - refused);
    CHECK_INT(vst_session_lost(session), refused);
    CHECK(was_told(session, "128 MiB of buffers") == (refused != 0));
    forget(trace, session);
}

static void buffers_of_another_profiler_are_left_alone(void)
{
    vst_session *session;

    stub->reset(version, 1);
    session = begin();
    stub->complete_foreign();
    stub->complete_foreign();
    CHECK(was_told(session, "another profiler uses CUPTI"));
    CHECK_INT(vst_session_lost(session), 0);
    vst_session_destroy(session);
}

/* ---- failures ------------------------------------------------------------ */

/* A call that fails, and how many records are then left: none or both. */
typedef struct failure {
    const char *function;
    int kind;
    size_t left;
    const char *told;
} failure;

static const failure failures[] = {
    {"cuptiActivityRegisterTimestampCallback", 0, 0, "no CUDA activity"},
    {"cuptiActivityRegisterCallbacks", 0, 0, "no CUDA activity"},
    {"cuptiActivitySetAttribute", 0, 2, "threads share buffers"},
    {"cuptiSetThreadIdType", 0, 2, "calls have no thread"},
    {"cuptiActivityEnable", 0, 0, "no kernels"},
    {"cuptiActivityEnable", CUPTI_KERNEL, 1, "no kernels"},
    {"cuptiActivityEnable", CUPTI_RUNTIME, 1, "no calls of the runtime"},
    {"cuptiActivityEnableRuntimeApi", 0, 2,
     "calls that are left out cost time"},
    {"cuptiActivityEnableDriverApi", 0, 2, "calls that are left out cost time"},
    {"cuptiActivityFlushPeriod", 0, 2, "buffers are read only when"},
    {"cuptiActivityDisable", 0, 2, "cuptiActivityDisable failed"},
    {"cuptiActivityFlushAll", 0, 0, "records in buffers are lost"},
    {"cuptiActivityGetNextRecord", 0, 0, "a part of a buffer is lost"},
    {"cuptiActivityGetNumDroppedRecords", 0, 2,
     "not known how many records were lost"},
    {"cuptiGetCallbackName", 0, 2, "some calls are shown as INVALID"},
    {"cuptiGetResultString", 0, 2, ""},
};

static void a_failure_is_told_in_a_line_and_the_rest_goes_on(void)
{
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        const failure *one = &failures[i];
        cupti_call call;
        cupti_kernel kernel;
        vst_session *session;
        vst_trace *trace;
        vst_id op;
        taken all;

        if (strcmp(one->function, "cuptiActivitySetAttribute") == 0 &&
            version < 21)
            continue;
        stub->reset(version, 1);
        stub->fail(one->function, one->kind);
        session = begin();
        op = define(session, VST_DEF_OPERATOR, "aten::mm");
        vst_record_operator(op, 0, NULL, 0);
        call = call_of(CUPTI_RUNTIME, 211, 1);
        kernel = kernel_of(1);
        ADD(call);
        ADD(kernel);
        vst_record_operator_exit(VST_EXIT, op, 0);
        trace = end(session, &all);
        if (all.count != one->left)
            CHECK_TEXT(one->function, "not what is left");
        if (one->told[0] != 0 && !was_told(session, one->told))
            CHECK_TEXT(one->function, "not told");
        if (one->told[0] != 0)
            CHECK(vst_trace_metadata(trace, "vestige.collector.cuda") != NULL);
        stub->fail(NULL, 0);
        stub->hold(); /* records that a flush left */
        stub->release();
        forget(trace, session);
    }
}

static void a_forked_child_is_left_alone(void)
{
    vst_session *session;
    int status;
    pid_t child;

    stub->reset(version, 1);
    session = begin();
    vst_session_destroy(session);
    child = fork();
    if (child == 0) {
        session = begin();
        _exit(was_told(session, "forked from one which uses it") ? 0 : 1);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
}

/* ---- threads ------------------------------------------------------------- */

enum { THREADS = 4, LAUNCHES = 2000 };

static pthread_mutex_t stub_lock = PTHREAD_MUTEX_INITIALIZER;

static void *launch_many(void *argument)
{
    uint32_t first = *(uint32_t *)argument;

    for (uint32_t i = 0; i < LAUNCHES; i++) {
        pthread_mutex_lock(&stub_lock);
        launch(first + i);
        pthread_mutex_unlock(&stub_lock);
    }
    return NULL;
}

static vst_status count_launched(void *ctx, const vst_device_span *span)
{
    if (span->kind == VST_ACTIVITY_KERNEL && span->launch != NULL)
        ++*(int *)ctx;
    return VST_OK;
}

static void threads_launch_while_another_flushes(void)
{
    pthread_t threads[THREADS];
    uint32_t firsts[THREADS];
    vst_session *session;
    vst_trace *trace;
    int launched = 0;
    const vst_sink sink = {.ctx = &launched, .device = count_launched};

    stub->reset(version, 1);
    session = begin();
    for (uint32_t i = 0; i < THREADS; i++) {
        firsts[i] = 1 + i * LAUNCHES;
        pthread_create(&threads[i], NULL, launch_many, &firsts[i]);
    }
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&stub_lock);
        vst_session_flush_devices(session);
        pthread_mutex_unlock(&stub_lock);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    CHECK_INT(launched, THREADS * LAUNCHES);
    CHECK_INT(vst_session_lost(session), 0);
    forget(trace, session);
}

static void *release(void *unused)
{
    stub->release();
    return unused;
}

/* Each thread has calls, kernels, a device and a context; together these are
 * all the shared objects. */
static void buffers_are_read_on_several_threads_at_once(void)
{
    enum { BUFFERS = 24, A_BUFFER = 100 };
    cupti_device device = {.kind = CUPTI_DEVICE, .id = 1, .name = "Told GPU"};
    cupti_external external = {.kind = CUPTI_EXTERNAL, .external = 1};
    pthread_t threads[THREADS];
    vst_session *session;
    vst_trace *trace;
    int launched = 0;
    const vst_sink sink = {.ctx = &launched, .device = count_launched};

    stub->reset(version, 0);
    session = begin();
    for (uint32_t i = 0; i < BUFFERS; i++) {
        for (uint32_t j = 1; j <= A_BUFFER; j++)
            launch(i * A_BUFFER + j);
        external.correlation = i;
        CHECK(ADD(external));
        CHECK(ADD(device));
        stub->hold();
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, release, NULL);
    vst_session_flush_devices(session);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    CHECK_INT(launched, BUFFERS * A_BUFFER);
    CHECK_INT(vst_session_lost(session), 0);
    forget(trace, session);
}

int main(int argc, char **argv)
{
    static const char *const none[] = {NULL};
    const stub_control *(*get)(void) = NULL;
    void *library;

    if (argc != 3)
        return 2;
    CHECK_TEXT(vst_cupti_register(argv[1], none),
               "there is no CUDA driver here (libcuda.so.1)");
    library = dlopen(argv[1], RTLD_NOW); /* the file's name is libcuda.so.1 */
    if (library != NULL)
        *(void **)(void *)&get = dlsym(library, "stub_get");
    if (get == NULL)
        return 2;
    stub = get();
    if (dlopen("libstdc++.so.6", RTLD_LAZY) != NULL)
        gemm = "gemm(float*, int)";
    version = (uint32_t)strtoul(argv[2], NULL, 10);
    stub->reset(version, 0);
    stub->fail("cuptiGetVersion", 0);
    CHECK(strstr(vst_cupti_register(argv[1], none), "cuptiGetVersion") != NULL);
    stub->fail(NULL, 0);
    CHECK(vst_cupti_register(argv[1], none) == NULL);
    TEST(cupti_is_started_in_the_order_that_it_needs);
    TEST(what_the_device_did_is_read_back);
    TEST(a_record_says_what_a_device_is_like);
    TEST(events_are_found_that_streams_wait_for);
    TEST(ids_that_others_give_are_kept);
    TEST(buffers_come_late_and_in_any_order);
    TEST(what_has_no_times_is_counted);
    TEST(memory_for_buffers_is_bounded);
    TEST(buffers_of_another_profiler_are_left_alone);
    TEST(a_failure_is_told_in_a_line_and_the_rest_goes_on);
    TEST(threads_launch_while_another_flushes);
    TEST(buffers_are_read_on_several_threads_at_once);
    TEST(a_forked_child_is_left_alone);
    return checks_end();
}
