/* Devices, tested with the example device, which is made of threads
 * (examples/c/device): its activities are read back unchanged, whichever thread
 * launched them, however late they were delivered. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../examples/c/device/worker_device.h"
#include "check.h"
#include "exported.h"
#include "store/reader.h"

#include <vestige/operator.h>

enum { STREAMS = 4, LAUNCHERS = 8, NAMES = 8 };

/* The spans and launches that a test has read. */
typedef struct taken {
    vst_device_span *items;
    vst_device_launch *launches; /* same index as the span; thread 0: the span
                                  * has no launch */
    size_t count, capacity;
} taken;

static vst_status take(void *ctx, const vst_device_span *span)
{
    taken *self = ctx;

    if (self->count == self->capacity) {
        self->capacity = self->capacity != 0 ? 2 * self->capacity : 1024;
        self->items =
            realloc(self->items, self->capacity * sizeof *self->items);
        self->launches =
            realloc(self->launches, self->capacity * sizeof *self->launches);
    }
    self->items[self->count] = *span;
    self->launches[self->count++] =
        span->launch != NULL ? *span->launch : (vst_device_launch){0};
    return VST_OK;
}

static vst_status ignore(void *ctx, const vst_span *span)
{
    (void)ctx, (void)span;
    return VST_OK;
}

static void take_all(vst_trace *trace, taken *all)
{
    const vst_sink sink = {.ctx = all, .span = ignore, .device = take};

    memset(all, 0, sizeof *all);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
}

static void forget(taken *all)
{
    free(all->items);
    free(all->launches);
}

static vst_session *begin(const vst_session_options *options)
{
    vst_session *session;

    CHECK_INT(vst_session_create(options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    return session;
}

static vst_trace *end(vst_session *session, taken *all)
{
    vst_trace *trace;

    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    take_all(trace, all);
    return trace;
}

static bool is_named(const vst_trace *trace, vst_id id, const char *name)
{
    const vst_definition *definition = vst_trace_definition(trace, id);

    return definition != NULL && strcmp(definition->name, name) == 0;
}

static const vst_device_span *find(const vst_trace *trace, const taken *all,
                                   const char *name)
{
    for (size_t i = 0; i < all->count; i++)
        if (is_named(trace, all->items[i].id, name))
            return &all->items[i];
    CHECK_TEXT("there is none", name);
    exit(1);
}

/* ---- a known schedule ---------------------------------------------------- */

static pthread_mutex_t meeting_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t meeting_changed = PTHREAD_COND_INITIALIZER;

/* Returns when two kernels are in meet(): they run at the same time. */
static void meet(void *argument)
{
    int *inside = argument;

    pthread_mutex_lock(&meeting_lock);
    ++*inside;
    pthread_cond_broadcast(&meeting_changed);
    while (*inside < 2)
        pthread_cond_wait(&meeting_changed, &meeting_lock);
    pthread_mutex_unlock(&meeting_lock);
}

/* The time of our clock while a kernel runs. */
typedef struct seen {
    vst_ticks first, last;
} seen;

static void look(void *argument)
{
    seen *self = argument;

    self->first = vst_clock_ticks();
    self->last = vst_clock_ticks();
}

static void order_and_overlap_are_those_of_the_schedule(void)
{
    static char from[1000], to[1000];
    const vst_session_options options = {.devices = true};
    vst_session *session = begin(&options);
    const vst_device_span *first, *second, *copy, *after, *set;
    const vst_trace_device *device;
    worker_event copied = {0};
    int inside = 0;
    seen clock;
    taken all;
    vst_trace *trace;

    worker_launch(0, "first", meet, &inside);
    worker_launch(1, "second", meet, &inside);
    worker_copy(0, to, from, sizeof to);
    worker_event_record(0, &copied);
    worker_event_wait(2, &copied);
    worker_launch(2, "after", look, &clock);
    worker_set(2, to, 1, sizeof to);
    trace = end(session, &all);

    CHECK_INT(trace->header.version, VST_FILE_VERSION);
    CHECK_INT(vst_trace_device_count(trace), 1);
    device = vst_trace_device_at(trace, 0);
    CHECK_TEXT(device->name, "threads of this process");
    CHECK_TEXT(device->platform, "workers");
    CHECK_INT(device->pairs, 2);
    CHECK(device->error_ns >= 0);
    CHECK_INT(vst_trace_stream_count(trace), STREAMS);
    CHECK_TEXT(vst_trace_stream_at(trace, 2)->name, "worker 2");

    first = find(trace, &all, "first");
    second = find(trace, &all, "second");
    copy = find(trace, &all, "Memcpy HtoD (Pageable -> Device)");
    after = find(trace, &all, "after");
    set = find(trace, &all, "Memset (Device)");
    CHECK(first->start_ns <= second->end_ns &&
          second->start_ns <= first->end_ns);
    CHECK(first->end_ns <= copy->start_ns);
    CHECK(copy->end_ns <= after->start_ns);
    CHECK(after->end_ns <= set->start_ns);
    CHECK_INT(copy->kind, VST_ACTIVITY_COPY);
    CHECK_INT(copy->bytes, 1000);
    CHECK_INT(set->kind, VST_ACTIVITY_SET);
    CHECK_INT(after->stream, 2);
    /* The device's clock has another origin and another rate than ours. */
    CHECK(after->start_ns - device->error_ns - 10 <=
          vst__clockmap_to_ns(&trace->clock, clock.first));
    CHECK(after->end_ns + device->error_ns + 10 >=
          vst__clockmap_to_ns(&trace->clock, clock.last));
    CHECK(vst_trace_metadata(trace, "vestige.devices") != NULL);
    vst_trace_close(trace);
    vst_session_destroy(session);
    forget(&all);
}

/* ---- many threads launch ------------------------------------------------- */

static void nothing(void *argument)
{
    (void)argument;
}

typedef struct launcher {
    pthread_t thread;
    unsigned number;
    unsigned launches;
    vst_id outer, inner, note;
    uint64_t handle;
} launcher;

static const char *const kernel_names[LAUNCHERS] = {
    "kernel 0", "kernel 1", "kernel 2", "kernel 3",
    "kernel 4", "kernel 5", "kernel 6", "kernel 7"};

/* Every second launch is in an operator inside another operator; every fourth
 * is in an annotation, too. */
static void *launch(void *argument)
{
    const launcher *self = argument;

    for (unsigned i = 0; i < self->launches; i++) {
        bool note = i % 4 == 3;

        vst_record_operator(self->outer, 0, NULL, 0);
        if (i % 2 != 0)
            vst_record_operator(self->inner, 0, NULL, 0);
        if (note)
            vst_record_operator(self->note, 0, NULL, 0);
        worker_launch((self->number + i) % STREAMS, kernel_names[self->number],
                      nothing, NULL);
        if (note)
            vst_record_operator_exit(VST_EXIT, self->note, 0);
        if (i % 2 != 0)
            vst_record_operator_exit(VST_EXIT, self->inner, 0);
        vst_record_operator_exit(VST_EXIT, self->outer, 0);
    }
    return NULL;
}

static vst_id define(vst_session *session, vst_definition_kind kind,
                     const char *name, unsigned number)
{
    const vst_definition definition = {.kind = kind,
                                       .name = name,
                                       .name_len = (uint32_t)strlen(name),
                                       .line = (int32_t)number,
                                       .file = ""};
    vst_id id = 0;

    vst_recording_define_id(vst_session_recording(session), &definition, &id);
    return id;
}

static void run_launchers(vst_session *session, launcher *launchers,
                          unsigned launches)
{
    for (unsigned i = 0; i < LAUNCHERS; i++) {
        launchers[i] = (launcher){
            .number = i,
            .launches = launches,
            .outer = define(session, VST_DEF_OPERATOR, "outer", i),
            .inner = define(session, VST_DEF_OPERATOR, "inner", i),
            .note = define(session, VST_DEF_ANNOTATION, "note", i),
        };
        pthread_create(&launchers[i].thread, NULL, launch, &launchers[i]);
    }
    for (unsigned i = 0; i < LAUNCHERS; i++)
        pthread_join(launchers[i].thread, NULL);
}

static const launcher *launcher_of(const vst_trace *trace,
                                   const launcher *launchers, vst_id kernel)
{
    for (unsigned i = 0; i < LAUNCHERS; i++)
        if (is_named(trace, kernel, kernel_names[i]))
            return &launchers[i];
    return NULL;
}

/* Counts the launches of each kind: in an operator, in an inner operator, in an
 * annotation. */
static void check_kernel(const vst_trace *trace, const launcher *launchers,
                         const vst_device_span *kernel,
                         const vst_device_launch *from, unsigned *kinds)
{
    const launcher *own = launcher_of(trace, launchers, kernel->id);
    int64_t error_ns = vst_trace_device_at(trace, 0)->error_ns + 10;

    if (own == NULL || from->thread == 0) {
        CHECK(own != NULL && from->thread != 0);
        return;
    }
    CHECK(is_named(trace, from->id, "workerLaunchKernel"));
    CHECK(from->start_ns <= kernel->start_ns + error_ns);
    CHECK(kernel->op.id == own->outer || kernel->op.id == own->inner);
    CHECK(kernel->op.serial != 0);
    CHECK(kernel->annotation.id == 0 || kernel->annotation.id == own->note);
    kinds[0] += kernel->op.id == own->outer;
    kinds[1] += kernel->op.id == own->inner;
    kinds[2] += kernel->annotation.id == own->note;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Reads the sorted ids of one end of the arrows in a Chrome file. Each arrow
 * end is a line. */
static uint64_t *arrow_ids(const char *text, const char *begin, size_t *count)
{
    static const char id[] = "\"name\": \"ac2g\", \"id\": ";
    size_t length = strlen(begin);
    uint64_t *ids = NULL;

    *count = 0;
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, begin, length) != 0 ||
            strncmp(line + length, id, sizeof id - 1) != 0)
            continue;
        ids = realloc(ids, (*count + 1) * sizeof *ids);
        ids[(*count)++] = strtoull(line + length + sizeof id - 1, NULL, 10);
    }
    qsort(ids, *count, sizeof *ids, by_number);
    return ids;
}

/* Checks that an arrow leads from each launching call to the kernel with the
 * same id, and that there are no other arrows. */
static void check_arrows(vst_trace *trace, unsigned kernels)
{
    const vst_export_options options = {.window = VST_WINDOW_ALL};
    size_t starts, ends;
    uint64_t *from, *to;
    char *text;

    CHECK_INT(vst_trace_export(trace, in_folder("t.json"), &options, NULL),
              VST_OK);
    text = contents(in_folder("t.json"));
    unlink(in_folder("t.json"));
    from = arrow_ids(text, "{\"ph\": \"s\", \"cat\": \"ac2g\", ", &starts);
    to = arrow_ids(text, "{\"ph\": \"f\", \"bp\": \"e\", \"cat\": \"ac2g\", ",
                   &ends);
    CHECK_INT(starts, kernels);
    CHECK_INT(ends, kernels);
    for (size_t i = 0; i < starts && i < ends; i++)
        CHECK(from[i] == to[i] && (i == 0 || from[i] != from[i - 1]));
    free(from);
    free(to);
    free(text);
}

static void kernels_belong_to_the_calls_and_operators_that_launched_them(void)
{
    const unsigned launches = 1000;
    const vst_session_options options = {.devices = true};
    vst_session *session = begin(&options);
    launcher launchers[LAUNCHERS];
    unsigned kinds[3] = {0}, kernels = 0;
    uint32_t stream = 0;
    int64_t behind_ns = INT64_MIN;
    taken all;
    vst_trace *trace;

    run_launchers(session, launchers, launches);
    trace = end(session, &all);
    for (size_t i = 0; i < all.count; i++) {
        const vst_device_span *kernel = &all.items[i];

        if (kernel->kind != VST_ACTIVITY_KERNEL)
            continue;
        kernels++;
        if (kernel->stream != stream)
            behind_ns = INT64_MIN;
        CHECK(kernel->stream >= stream && kernel->start_ns >= behind_ns);
        stream = kernel->stream;
        behind_ns = kernel->end_ns;
        check_kernel(trace, launchers, kernel, &all.launches[i], kinds);
    }
    CHECK_INT(kernels, launches * LAUNCHERS);
    CHECK_INT(kinds[0], kernels / 2);
    CHECK_INT(kinds[1], kernels / 2);
    CHECK_INT(kinds[2], kernels / 4);
    check_arrows(trace, kernels);
    vst_trace_close(trace);
    vst_session_destroy(session);
    forget(&all);
}

static void a_million_activities_are_all_there(void)
{
    const unsigned launches = 62500 / check_step(1, 50);
    const vst_session_options options = {.devices = true};
    vst_session *session = begin(&options);
    launcher launchers[LAUNCHERS];
    size_t kernels = 0, with_call = 0;
    taken all;
    vst_trace *trace;

    run_launchers(session, launchers, launches);
    vst_session_flush_devices(session);
    CHECK_INT(vst_session_lost(session), 0);
    trace = end(session, &all);
    for (size_t i = 0; i < all.count; i++) {
        kernels += all.items[i].kind == VST_ACTIVITY_KERNEL;
        with_call += all.items[i].kind == VST_ACTIVITY_KERNEL &&
                     all.launches[i].thread != 0;
    }
    CHECK_INT(kernels, (size_t)launches * LAUNCHERS);
    CHECK_INT(with_call, kernels);
    CHECK_INT(all.count, 2 * kernels + 1); /* including the last
                                            * synchronisation */
    CHECK_INT(vst_trace_device_at(trace, 0)->pairs, 3);
    vst_trace_close(trace);
    vst_session_destroy(session);
    forget(&all);
}

/* ---- a file that is bounded, or whose process dies ----------------------- */

static void a_bounded_file_keeps_the_newest(void)
{
    const unsigned launches = 20000;
    const vst_session_options options = {.devices = true, .max_size = 1 << 20};
    vst_session *session = begin(&options);
    vst_trace_info info;
    uint64_t last = 0;
    taken all;
    vst_trace *trace;

    for (unsigned i = 0; i < launches; i++)
        worker_launch(i % STREAMS, "kernel", nothing, NULL);
    worker_synchronize();
    worker_launch(0, "newest", nothing, NULL);
    trace = end(session, &all);
    vst_trace_get_info(trace, &info);
    CHECK(info.bytes <= 2 << 20);
    CHECK(info.dropped != 0);
    CHECK_INT(info.lost, 0);
    CHECK(all.count > 1000 && all.count < 2 * launches);
    last = find(trace, &all, "newest")->correlation;
    CHECK(last != 0);
    vst_trace_close(trace);
    vst_session_destroy(session);
    forget(&all);
}

/* The child is killed while its threads record. */
static void what_was_delivered_is_there_after_a_crash(void)
{
    char path[] = "/tmp/vestige_device_XXXXXX";
    int fd = mkstemp(path), status;
    pid_t child = fork();
    vst_trace *trace;
    taken all;

    close(fd);
    if (child == 0) {
        const vst_session_options options = {
            .devices = true, .path = path, .overwrite = true};
        vst_session *session;

        if (worker_device_open(STREAMS) != 0)
            _exit(1);
        session = begin(&options);
        for (unsigned i = 0; i < 1000; i++)
            worker_launch(i % STREAMS, "kernel", nothing, NULL);
        worker_synchronize();
        vst_session_flush_devices(session);
        raise(SIGKILL);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    take_all(trace, &all);
    CHECK_INT(all.count, 2001);
    CHECK_INT(vst_trace_device_at(trace, 0)->pairs, 2);
    vst_trace_close(trace);
    forget(&all);
    unlink(path);
}

/* ---- copies -------------------------------------------------------------- */

/* Returns a copy of the name; several copies may be in use. */
static const char *in_copies(const char *name)
{
    static char paths[8][64];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof *paths, "%s/%s", folder, name);
    return path;
}

/* Counts the kernels of a file, and checks whether the launch of each kernel is
 * in the file, too. */
static size_t kernels_in(const char *path, bool *have_calls)
{
    size_t kernels = 0, with_call = 0;
    vst_trace *trace;
    taken all;

    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    take_all(trace, &all);
    for (size_t i = 0; i < all.count; i++) {
        bool is_kernel = all.items[i].kind == VST_ACTIVITY_KERNEL;

        kernels += is_kernel;
        with_call += is_kernel && all.launches[i].thread != 0;
        CHECK(!is_kernel || is_named(trace, all.items[i].id, "kernel"));
    }
    *have_calls = with_call == kernels;
    CHECK_INT(vst_trace_device_count(trace), 1);
    vst_trace_close(trace);
    forget(&all);
    unlink(path);
    return kernels;
}

static void launch_some(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        worker_launch(i % STREAMS, "kernel", nothing, NULL);
    worker_synchronize();
}

static void snapshots_packed_and_recovered_files_have_all_of_it(void)
{
    const vst_pack_options pack = {0};
    const vst_session_options options = {.devices = true,
                                         .path = in_copies("t.vst")};
    vst_session *session = begin(&options);
    const char *path = in_copies("t.vst"), *packed = in_copies("packed.vst");
    bool have_calls;

    launch_some(400);
    vst_session_flush_devices(session);
    CHECK_INT(vst_session_snapshot(session, in_copies("now.vst"), false, 0,
                                   NULL, NULL),
              VST_OK);
    launch_some(200);
    /* Leaves the file like a process that dies now. */
    vst_session_flush_devices(session);
    CHECK_INT(vst_trace_recover(path, in_copies("died.vst"), false, NULL),
              VST_OK);
    launch_some(100);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    vst_session_destroy(session);

    CHECK_INT(kernels_in(in_copies("now.vst"), &have_calls), 400);
    CHECK(have_calls);
    CHECK_INT(kernels_in(in_copies("died.vst"), &have_calls), 600);
    CHECK(have_calls);
    if (vst_trace_pack(path, packed, &pack, NULL) == VST_OK) {
        CHECK_INT(vst_trace_unpack(packed, in_copies("again.vst"), &pack, NULL),
                  VST_OK);
        CHECK_INT(kernels_in(packed, &have_calls), 700);
        CHECK(have_calls);
        CHECK_INT(kernels_in(in_copies("again.vst"), &have_calls), 700);
    }
    CHECK_INT(kernels_in(path, &have_calls), 700);
    CHECK(have_calls);
}

/* A flight recorder's file drops the oldest records; its snapshot has the
 * newest. */
static void a_snapshot_of_the_last_moments_has_the_newest(void)
{
    const vst_session_options options = {
        .devices = true, .path = in_copies("t.vst"), .max_size = 1 << 20};
    const unsigned launches = 20000 / check_step(1, 10);
    vst_session *session = begin(&options);
    bool have_calls;
    size_t kernels;

    launch_some(launches);
    vst_session_flush_devices(session);
    CHECK_INT(vst_session_snapshot(session, in_copies("last.vst"), false,
                                   UINT64_C(60000000000), NULL, NULL),
              VST_OK);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    vst_session_destroy(session);
    kernels = kernels_in(in_copies("last.vst"), &have_calls);
    CHECK(kernels > 1000 && kernels <= launches);
    unlink(in_copies("t.vst"));
}

/* Activities inside a range or across its edge are shown whole. */
static void a_range_shows_what_devices_did_in_it(void)
{
    const vst_session_options options = {.devices = true};
    vst_session *session = begin(&options);
    size_t before = 0, behind = 0;
    int64_t middle_ns;
    taken all, first, second;
    vst_trace *trace;

    launch_some(100);
    trace = end(session, &all);
    middle_ns = all.items[all.count - 50].start_ns;
    for (size_t i = 0; i < all.count; i++) {
        before += all.items[i].start_ns < middle_ns;
        behind += all.items[i].end_ns >= middle_ns;
    }
    vst_trace_set_range(trace, INT64_MIN, middle_ns - 1);
    take_all(trace, &first);
    vst_trace_set_range(trace, middle_ns, INT64_MAX);
    take_all(trace, &second);
    CHECK_INT(first.count, before);
    CHECK_INT(second.count, behind);
    CHECK(before != 0 && behind != 0);
    vst_trace_close(trace);
    vst_session_destroy(session);
    forget(&all);
    forget(&first);
    forget(&second);
}

int main(void)
{
    /* This test forks, so it runs before other tests start threads. */
    TEST(what_was_delivered_is_there_after_a_crash);
    if (mkdtemp(folder) == NULL || worker_device_open(STREAMS) != 0)
        return 1;
    TEST(order_and_overlap_are_those_of_the_schedule);
    TEST(kernels_belong_to_the_calls_and_operators_that_launched_them);
    TEST(a_million_activities_are_all_there);
    TEST(a_bounded_file_keeps_the_newest);
    TEST(snapshots_packed_and_recovered_files_have_all_of_it);
    TEST(a_snapshot_of_the_last_moments_has_the_newest);
    TEST(a_range_shows_what_devices_did_in_it);
    rmdir(folder);
    worker_device_close();
    return checks_end();
}
