/* The reader, on files built by hand: whole, torn and damaged. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vestige/memory.h>
#include <vestige/trace.h>

#include "check.h"
#include "os/os.h"
#include "span_tree.h"
#include "store/clockmap.h"
#include "store/reader.h"
#include "trace_builder.h"

/* ---- what a trace says --------------------------------------------------- */

/* Returns the tree of a window; the trace must open. */
static const char *replayed(vst_trace *trace, int window, span_tree *tree)
{
    vst_sink sink = tree_sink(tree);

    tree->origin_ns = BUILDER_EPOCH_NS;
    CHECK_INT(vst_trace_replay(trace, window, NULL, &sink, NULL), VST_OK);
    return tree_text(tree);
}

static void expect_window(const builder *b, int window, const char *golden)
{
    span_tree tree = {0};
    vst_trace *trace;

    if (!CHECK_INT(builder_open(b, &trace, NULL), VST_OK))
        return;
    CHECK_TEXT(replayed(trace, window, &tree), golden);
    tree_free(&tree);
    vst_trace_close(trace);
}

/* Two threads, a definition of each kind, one window. */
static void build_small(builder *b)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 0);
    builder_define(b, VST_DEF_PYTHON, 1, "main", "/home/x/app.py", 3);
    builder_define(b, VST_DEF_NATIVE, 2, "len", "builtins", 0);
    builder_define(b, VST_DEF_ANNOTATION, 3, "step", "", 0);
    builder_thread(b, 0, 4242, "MainThread");
    builder_thread(b, 1, 4243, "worker");
    builder_metadata(b, "with_stack", "1");
    builder_metadata(b, "note", "\"first\"");
    builder_metadata(b, "note", "\"second\"");
    builder_window(b, 0, 1000, 5000);
    builder_seal(b, 1);
    builder_records(b, 0, 0, 1000, 1);
    builder_enter(b, 1, 100);
    builder_enter(b, 2, 100);
    builder_escape_text(b, VST_ESCAPE_ARGS, 0, 6, "\"n\": 5");
    builder_exit(b, 2, 50);
    builder_exit(b, 1, 50);
    builder_seal(b, 1);
    builder_records(b, 0, 1, 2000, 1);
    builder_escape(b, VST_ESCAPE_BEGIN, 10, &(uint64_t){3}, 1);
    builder_enter(b, 1, 10);
    builder_exit(b, 1, 10);
    builder_escape(b, VST_ESCAPE_END, 10, &(uint64_t){3}, 1);
    builder_seal(b, 1);
    builder_finish(b);
}

static void a_finished_file_tells_what_it_holds(void)
{
    builder b;
    vst_trace *trace;
    vst_trace_info info;
    vst_error error;
    const char *key;

    build_small(&b);
    CHECK_INT(builder_open(&b, &trace, &error), VST_OK);
    CHECK_INT(error.status, VST_OK);
    vst_trace_get_info(trace, &info);
    CHECK(info.clean);
    CHECK_INT(info.pid, BUILDER_PID);
    CHECK_INT(info.threads, 2);
    CHECK_INT(info.windows, 1);
    CHECK_INT(info.words, 7 + 6);
    CHECK_INT(info.bytes, b.size);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 1000);
    CHECK_INT(info.end_ns, BUILDER_EPOCH_NS + 5000);
    CHECK_INT(vst_trace_definition_max(trace), 3);
    CHECK(vst_trace_definition(trace, 0) == NULL);
    CHECK(vst_trace_definition(trace, 4) == NULL);
    CHECK_TEXT(vst_trace_definition(trace, 1)->name, "main");
    CHECK_INT(vst_trace_definition(trace, 1)->line, 3);
    CHECK_TEXT(vst_trace_definition(trace, 2)->file, "builtins");
    CHECK_INT(vst_trace_thread_count(trace), 2);
    CHECK_INT(vst_trace_thread_at(trace, 1)->system_tid, 4243);
    CHECK_INT(vst_trace_thread_find(trace, 0)->words, 7);
    CHECK(vst_trace_thread_find(trace, 2) == NULL);
    CHECK_TEXT(vst_trace_metadata(trace, "note"), "\"second\"");
    CHECK(vst_trace_metadata(trace, "other") == NULL);
    CHECK_TEXT(vst_trace_metadata_at(trace, 0, &key), "1");
    CHECK_TEXT(key, "with_stack");
    CHECK(vst_trace_metadata_at(trace, 2, &key) == NULL);
    vst_trace_close(trace);
    builder_free(&b);
}

static void each_thread_is_replayed_as_a_tree(void)
{
    builder b;

    build_small(&b);
    expect_window(&b, VST_WINDOW_LAST,
                  "a 1100..1300\n"
                  "  b 1200..1250 {\"n\": 5}\n"
                  "c 2010..2040\n"
                  "  a 2020..2030\n");
    builder_free(&b);
}

static void a_trace_replays_twice_with_the_same_result(void)
{
    span_tree first = {0}, second = {0};
    vst_trace *trace;
    builder b;

    build_small(&b);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    CHECK_TEXT(replayed(trace, 0, &first), replayed(trace, 0, &second));
    CHECK_INT(first.spans[0].serial, second.spans[0].serial);
    tree_free(&first);
    tree_free(&second);
    vst_trace_close(trace);
    builder_free(&b);
}

static void a_thread_goes_on_from_chunk_to_chunk(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 5, 1000, 1);
    builder_enter(&b, 1, 100);
    builder_seal(&b, 1);
    builder_records(&b, 0, 6, 1500, 1);
    builder_enter(&b, 3, 10);
    builder_exit(&b, 3, 10);
    builder_seal(&b, 1);
    builder_records(&b, 0, 5, 2000, 1);
    builder_enter(&b, 2, 100);
    builder_exit(&b, 2, 100);
    builder_exit(&b, 1, 100);
    expect_window(&b, 0,
                  "a 1100..2300\n"
                  "  b 2100..2200\n"
                  "c 1510..1520\n");
    builder_free(&b);
}

static void the_rest_of_a_chunk_belongs_to_another_thread(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    builder_enter(&b, 1, 100);
    builder_exit(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_SEGMENT, 0, (uint64_t[]){2, 3000}, 2);
    builder_enter(&b, 2, 10);
    builder_exit(&b, 2, 10);
    builder_escape(&b, VST_ESCAPE_SEGMENT, 0, (uint64_t[]){1, 4000}, 2);
    builder_enter(&b, 3, 10);
    builder_exit(&b, 3, 10);
    for (int sealed = 0; sealed < 2; sealed++) {
        expect_window(&b, 0,
                      "a 1100..1200\n"
                      "c 4010..4020\n"
                      "b 3010..3020\n");
        builder_seal(&b, 3);
    }
    builder_free(&b);
}

static void windows_are_replayed_one_by_one_or_together(void)
{
    vst_trace *trace;
    builder b;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_window(&b, 0, 1000, 2000);
    builder_window(&b, 1, 3000, 4000);
    builder_records(&b, 0, 0, 1000, 1);
    builder_enter(&b, 1, 100);
    builder_seal(&b, 1);
    builder_records(&b, 1, 0, 3000, 1);
    builder_escape(&b, VST_ESCAPE_STACK, 10, &(uint64_t){1}, 1);
    builder_exit(&b, 1, 10);
    builder_seal(&b, 1);
    expect_window(&b, 0, "a 1100..2000 open-at-end\n");
    expect_window(&b, 1, "a 3009..3020 open-at-start\n");
    expect_window(&b, VST_WINDOW_LAST, "a 3009..3020 open-at-start\n");
    expect_window(&b, VST_WINDOW_ALL,
                  "a 1100..2000 open-at-end\n"
                  "a 3009..3020 open-at-start\n");
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_replay(trace, 2, NULL, &(vst_sink){0}, NULL),
              VST_E_ARGUMENT);
    vst_trace_close(trace);
    builder_free(&b);
}

static void a_long_pause_is_an_absolute_time(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 0, 1000, 1);
    builder_enter(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_TIME, 0, &(uint64_t){9000000000}, 1);
    builder_exit(&b, 1, 5);
    expect_window(&b, 0, "a 1100..9000000005\n");
    builder_free(&b);
}

/* ---- files that were never finished ------------------------------------- */

static void a_torn_file_ends_with_its_last_record(void)
{
    vst_trace *trace;
    vst_trace_info info;
    builder b;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_window(&b, 0, 1000, 0);
    builder_records(&b, 0, 0, 1000, 1);
    builder_enter(&b, 1, 100);
    builder_seal(&b, 1);
    builder_records(&b, 0, 1, 2000, 1);
    builder_enter(&b, 2, 500);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    vst_trace_get_info(trace, &info);
    CHECK(!info.clean);
    CHECK_INT(info.words, 2);
    CHECK_INT(info.end_ns, BUILDER_EPOCH_NS + 2500);
    vst_trace_close(trace);
    expect_window(&b, 0,
                  "a 1100..2500 open-at-end\n"
                  "b 2500..2500 open-at-end\n");
    builder_free(&b);
}

static void space_allocated_ahead_is_not_damage(void)
{
    vst_error error;
    vst_trace *trace;
    builder b;

    build_small(&b);
    b.bytes = realloc(b.bytes, b.size + 8192);
    memset(b.bytes + b.size, 0, 8192);
    b.size += 8192;
    CHECK_INT(builder_open(&b, &trace, &error), VST_OK);
    CHECK_INT(error.status, VST_OK);
    vst_trace_close(trace);
    builder_free(&b);
}

static void the_offset_of_damage_is_told(void)
{
    vst_error error;
    vst_trace *trace;
    vst_trace_info info;
    size_t whole;
    builder b;

    build_small(&b);
    whole = b.chunk; /* up to the end of the last chunk */
    b.bytes[whole + 8] ^= 1;
    CHECK_INT(builder_open(&b, &trace, &error), VST_OK);
    CHECK_INT(error.status, VST_E_DAMAGED);
    CHECK_INT(error.offset, whole);
    vst_trace_get_info(trace, &info);
    CHECK(!info.clean);
    CHECK_INT(info.threads, 1);
    vst_trace_close(trace);
    builder_free(&b);
}

static void what_is_no_trace_is_refused_with_a_reason(void)
{
    vst_error error;
    vst_trace *trace = NULL;
    builder b;

    build_small(&b);
    b.bytes[0] ^= 1;
    CHECK_INT(builder_open(&b, &trace, &error), VST_E_NOT_A_TRACE);
    b.bytes[0] ^= 1;
    for (uint32_t version = 0; version < 100; version++) {
        builder_header(&b)->version = version;
        if (version == VST_FILE_VERSION)
            continue;
        CHECK_INT(builder_open(&b, &trace, &error), VST_E_VERSION);
        CHECK_INT(error.offset, 8);
    }
    builder_header(&b)->version = VST_FILE_VERSION;
    builder_header(&b)->byte_order = 0x04030201;
    CHECK_INT(builder_open(&b, &trace, &error), VST_E_UNSUPPORTED);
    builder_header(&b)->byte_order = VST_FILE_BYTE_ORDER;
    builder_header(&b)->pid++;
    CHECK_INT(builder_open(&b, &trace, &error), VST_E_DAMAGED);
    builder_header(&b)->pid--;
    builder_header(&b)->ticks_per_second = 0;
    builder_fix_header(&b);
    CHECK_INT(builder_open(&b, &trace, &error), VST_E_DAMAGED);
    CHECK_INT(vst_trace_open("/nonexistent/x.vst", &trace, &error), VST_E_IO);
    CHECK(error.sys_errno != 0);
    CHECK(trace == NULL);
    builder_free(&b);
}

/* Readers keep pointers to before the first window and behind the last; with no
 * windows these are NULL, and NULL + 0 is undefined. */
static void a_trace_without_records_has_arrays_all_the_same(void)
{
    span_tree tree = {0};
    vst_trace *trace;
    builder b;

    builder_init(&b);
    if (CHECK_INT(builder_open(&b, &trace, NULL), VST_OK)) {
        CHECK_INT(trace->window_count, 0);
        CHECK_INT(trace->segment_count, 0);
        CHECK(trace->windows != NULL);
        CHECK(trace->segments != NULL);
        CHECK_TEXT(replayed(trace, VST_WINDOW_ALL, &tree), "");
        tree_free(&tree);
        vst_trace_close(trace);
    }
    builder_free(&b);
}

static void a_file_being_written_shows_what_is_there(void)
{
    span_tree before = {0}, after = {0};
    vst_trace *trace;
    builder b;
    uint64_t word = vst_word(VST_EXIT, 1, 100);
    int fd;

    builder_init(&b);
    builder_records(&b, 0, 0, 1000, 1);
    builder_enter(&b, 1, 100);
    fd = builder_file(&b);
    CHECK_INT(vst_trace_open_fd(fd, &trace, NULL), VST_OK);
    CHECK_INT(pwrite(fd, &word, sizeof word,
                     (off_t)(b.chunk + sizeof(vst_chunk_header) + b.used)),
              8);
    CHECK_TEXT(replayed(trace, 0, &before), "a 1100..1100 open-at-end\n");
    vst_trace_close(trace);
    CHECK_INT(vst_trace_open_fd(fd, &trace, NULL), VST_OK);
    CHECK_TEXT(replayed(trace, 0, &after), "a 1100..1200\n");
    vst_trace_close(trace);
    vst__os_file_close(fd);
    tree_free(&before);
    tree_free(&after);
    builder_free(&b);
}

/* ---- the clock ---------------------------------------------------------- */

static void ticks_become_nanoseconds_piece_by_piece(void)
{
    /* The clock runs at 2 ticks per nanosecond, then 4, then 1, as the header
     * says. */
    vst_clock_sample start = {1000, 500, 1000500};
    vst_clock_sample second = {20001000, 10000500, 0};
    vst_clock_sample third = {60001000, 20000500, 0};
    vst__clockmap map;

    vst__clockmap_init(&map);
    vst__clockmap_add(&map, &third);
    vst__clockmap_add(&map, &second);
    CHECK_INT(vst__clockmap_build(&map, 1e9, &start), VST_OK);
    CHECK_INT(vst__clockmap_to_ns(&map, 1000), 1000500);
    CHECK_INT(vst__clockmap_to_ns(&map, 10001000), 6000500);
    CHECK_INT(vst__clockmap_to_ns(&map, 20001000), 11000500);
    CHECK_INT(vst__clockmap_to_ns(&map, 40001000), 16000500);
    CHECK_INT(vst__clockmap_to_ns(&map, 60001500), 21001000);
    CHECK_INT(vst__clockmap_to_ns(&map, 0), 999500);
    CHECK_INT(vst__clockmap_to_ns(&map, 1001), 1000500);
    vst__clockmap_free(&map);
}

static void time_never_goes_back_whatever_the_samples_say(void)
{
    uint64_t seed = 7;

    for (int round = 0; round < 200; round++) {
        vst_clock_sample start = {5000, 5000, BUILDER_EPOCH_NS};
        int64_t last = INT64_MIN;
        vst__clockmap map;

        vst__clockmap_init(&map);
        for (int i = 0; i < 30; i++) {
            vst_clock_sample sample;
            seed = seed * UINT64_C(6364136223846793005) + 1;
            sample.ticks = seed >> (20 + i);
            seed = seed * UINT64_C(6364136223846793005) + 1;
            sample.monotonic_ns = (int64_t)(seed >> (i % 5)) >> (30 - i);
            sample.realtime_ns = 0;
            vst__clockmap_add(&map, &sample);
        }
        CHECK_INT(vst__clockmap_build(&map, 3e9, &start), VST_OK);
        for (unsigned i = 0; i < 64; i++)
            for (unsigned k = 0; k < 16; k++) {
                vst_ticks ticks = (UINT64_C(1) << i) / 16 * (16 + k);
                int64_t ns = vst__clockmap_to_ns(&map, ticks);
                CHECK(ns >= last);
                last = ns;
            }
        vst__clockmap_free(&map);
    }
}

/* ---- damage ------------------------------------------------------------- */

/* Replays each window by itself: in a damaged file, windows may overlap. */
static void replay_each(vst_trace *trace, const vst_trace_info *info)
{
    for (int window = 0; window < 2; window++) {
        span_tree tree = {.limit = 4096};
        vst_sink sink = tree_sink(&tree);
        vst_status status = vst_trace_replay(trace, window, NULL, &sink, NULL);

        CHECK(status == VST_OK || status == VST_E_ARGUMENT);
        CHECK(tree.count <= info->bytes / 8 * 1024);
        tree_free(&tree);
    }
}

typedef struct memory_seen {
    uint64_t allocations, frees, live_bytes, live_count;
} memory_seen;

/* For any file, the running sums are those of the events. */
static vst_status see_memory(void *ctx, const vst_memory_event *event)
{
    memory_seen *seen = ctx;

    if (event->kind == VST_MEMORY_FRAMEWORK ||
        event->kind == VST_MEMORY_FRAMEWORK_FREE)
        return VST_OK;
    if (!(event->flags & VST_MEMORY_FREES)) {
        CHECK(event->serial != 0);
        seen->live_bytes += event->size;
        seen->allocations++;
    } else if (!(event->flags & VST_MEMORY_UNKNOWN)) {
        CHECK(event->allocated_ns <= event->time_ns);
        seen->live_bytes -= event->size;
        seen->frees++;
    }
    CHECK(event->live_bytes == seen->live_bytes);
    CHECK(event->weight >= 1);
    return VST_OK;
}

static void replay_memory(vst_trace *trace)
{
    for (int window = 0; window < 2; window++) {
        memory_seen seen = {0};
        vst_memory_sink sink = {.ctx = &seen, .event = see_memory};
        vst_status status = vst_trace_replay_memory(trace, window, &sink, NULL);

        CHECK(status == VST_OK || status == VST_E_ARGUMENT);
    }
    for (vst_stack_id id = vst_trace_stack_max(trace), steps = 0; id != 0;) {
        const vst_stack *stack = vst_trace_stack(trace, id);
        CHECK(stack == NULL || stack->parent < id);
        CHECK(++steps < 100);
        id = stack != NULL ? stack->parent : 0;
    }
    for (size_t i = 0; i < vst_trace_module_count(trace); i++)
        CHECK(vst_trace_module(trace, i)->path != NULL);
}

/* Opens any bytes; if they open, calls every reading function. */
static void survive(int fd)
{
    vst_trace_info info;
    vst_error error;
    vst_trace *trace;
    const char *key;
    int64_t third_ns;

    if (vst_trace_open_fd(fd, &trace, &error) != VST_OK) {
        CHECK(error.status < 0);
        return;
    }
    vst_trace_get_info(trace, &info);
    for (size_t i = 0; i < vst_trace_thread_count(trace); i++)
        CHECK(vst_trace_thread_at(trace, i)->name != NULL);
    for (vst_id id = 0; id < 8; id++)
        if (vst_trace_definition(trace, id) != NULL)
            CHECK(vst_trace_definition(trace, id)->name != NULL);
    for (size_t i = 0; vst_trace_metadata_at(trace, i, &key) != NULL; i++)
        CHECK(vst_trace_metadata(trace, key) != NULL);
    replay_each(trace, &info);
    replay_memory(trace);
    third_ns = (info.end_ns - info.start_ns) / 3;
    vst_trace_set_range(trace, info.start_ns + third_ns,
                        info.end_ns - third_ns);
    replay_each(trace, &info);
    replay_memory(trace);
    vst_trace_close(trace);
}

/* With a stride, cuts only at each stride-th of the zeros behind a page's used
 * part. */
static void cut_at_each_byte(builder *b, size_t stride)
{
    const size_t step = check_step(1, 17);
    int fd = builder_file(b);

    for (size_t size = b->size; checks_bad == 0 && size != 0;) {
        size -= size < step ? size : step;
        if (size % 4096 > 700 && size % stride >= step)
            continue;
        CHECK_INT(vst__os_file_truncate(fd, size), 0);
        survive(fd);
    }
    vst__os_file_close(fd);
    builder_free(b);
}

static void a_file_cut_at_any_byte_is_read_up_to_there(void)
{
    builder b;

    build_small(&b);
    cut_at_each_byte(&b, 1);
    builder_bounded(&b);
    cut_at_each_byte(&b, 64);
    builder_memory(&b);
    cut_at_each_byte(&b, 64);
}

static void a_cut_chunk_keeps_the_records_before_the_cut(void)
{
    builder b;

    build_small(&b);
    /* Cut after the BEGIN and the ENTER of the second thread. */
    b.size = b.chunk + sizeof(vst_chunk_header) + 3 * 8 + 4;
    expect_window(&b, 0,
                  "a 1100..1300\n"
                  "  b 1200..1250 {\"n\": 5}\n"
                  "c 2010..5000 open-at-end\n"
                  "  a 2020..5000 open-at-end\n");
    builder_free(&b);
}

static void flip_each_bit(int fd, builder *b, size_t offset, size_t count)
{
    const size_t step = check_step(1, 37);

    for (size_t bit = 0; checks_bad == 0 && bit < count * 8; bit += step) {
        size_t at = offset + bit / 8;
        unsigned char flipped = (unsigned char)(b->bytes[at] ^ 1u << bit % 8);

        CHECK_INT(pwrite(fd, &flipped, 1, (off_t)at), 1);
        survive(fd);
        CHECK_INT(pwrite(fd, &b->bytes[at], 1, (off_t)at), 1);
    }
}

static void flip_all(builder *b)
{
    int fd = builder_file(b);

    flip_each_bit(fd, b, 0, sizeof(vst_file_header));
    for (size_t chunk = VST_FILE_HEADER_SIZE; chunk < b->size; chunk += 4096)
        flip_each_bit(fd, b, chunk, sizeof(vst_chunk_header) + 160);
    vst__os_file_close(fd);
    builder_free(b);
}

static void any_bit_flipped_in_a_header_or_record_is_survived(void)
{
    builder b;

    build_small(&b);
    flip_all(&b);
    builder_bounded(&b);
    flip_all(&b);
    builder_memory(&b);
    flip_all(&b);
}

static uint32_t random_below(uint64_t *seed, uint32_t limit)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % limit;
}

/* Changes random bytes. Corrects the checksums in half of the files, so that
 * the reader looks behind them. */
static void mutate(builder *b, uint64_t *seed)
{
    uint32_t changes = 1 + random_below(seed, 12);

    for (uint32_t i = 0; i < changes; i++) {
        size_t page = random_below(seed, (uint32_t)(b->size / 4096)) * 4096u;
        size_t at = page + random_below(seed, 600);
        switch (random_below(seed, 4)) {
        case 0:
            b->bytes[at] ^= (unsigned char)(1u << random_below(seed, 8));
            break;
        case 1:
            b->bytes[at] = (unsigned char)random_below(seed, 256);
            break;
        case 2:
            b->bytes[at] = 0xff;
            break;
        default:
            memcpy(&b->bytes[at & ~(size_t)7],
                   &b->bytes[page + random_below(seed, 60) * 8], 8);
            break;
        }
    }
    if (random_below(seed, 2) == 0) {
        builder_fix_header(b);
        for (size_t at = VST_FILE_HEADER_SIZE; at < b->size; at += 4096)
            builder_fix_chunk(b, at);
    }
}

static void damage(const builder *b, unsigned rounds)
{
    uint64_t seed = 1234567;

    rounds /= check_step(1, 5);
    for (unsigned round = 0; checks_bad == 0 && round < rounds; round++) {
        builder copy = *b;
        int fd;

        copy.bytes = malloc(b->size);
        if (copy.bytes == NULL)
            abort();
        memcpy(copy.bytes, b->bytes, b->size);
        mutate(&copy, &seed);
        fd = builder_file(&copy);
        survive(fd);
        vst__os_file_close(fd);
        builder_free(&copy);
    }
}

static void thousands_of_damaged_files_are_survived(void)
{
    builder b;

    build_small(&b);
    damage(&b, 6000);
    builder_free(&b);
    builder_bounded(&b);
    damage(&b, 3000);
    builder_free(&b);
    builder_memory(&b);
    damage(&b, 6000);
    builder_free(&b);
}

/* ---- sizes, progress ---------------------------------------------------- */

static int cancel(void *ctx, double done)
{
    CHECK(done >= 0 && done <= 1);
    ++*(int *)ctx;
    return 1;
}

static void a_replay_can_be_cancelled(void)
{
    vst_sink sink = {0};
    vst_error error;
    vst_trace *trace;
    builder b;
    int calls = 0;

    build_small(&b);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    vst_trace_set_progress(trace, cancel, &calls);
    CHECK_INT(vst_trace_replay(trace, 0, NULL, &sink, &error), VST_E_CANCELLED);
    CHECK_INT(error.status, VST_E_CANCELLED);
    CHECK_INT(calls, 1);
    vst_trace_close(trace);
    builder_free(&b);
}

static vst_status count_events(vst_tracer *tracer,
                               const vst_time_converter *converter,
                               const vst_compressed_event *enters, size_t count,
                               int64_t end_time_ns, const vst_sink *sink)
{
    uint64_t *seen;

    (void)tracer;
    (void)converter;
    seen = sink->ctx;

    for (size_t i = 0; i < count; i++) {
        CHECK_INT(enters[i].where.resource, 9);
        CHECK_INT(enters[i].where.device, BUILDER_PID);
        CHECK_INT(enters[i].system_tid, 77);
    }
    seen[0] += count;
    seen[1] += end_time_ns != VST_TIME_OPEN;
    return VST_OK;
}

static void a_tracer_gets_every_event_and_one_end(void)
{
    enum { CALLS = 100000 };
    static const vst_tracer_ops ops = {.get_events = count_events};
    vst_tracer tracer = {&ops};
    uint64_t seen[2] = {0, 0};
    vst_sink sink = {.ctx = seen};
    uint64_t text[3] = {16, 0x2020202020202020u, 0x2020202020202020u};
    vst_trace *trace;
    builder b;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_thread(&b, 9, 77, "t");
    for (int sealed = 0; sealed < 2; sealed++) {
        builder_records(&b, 0, 9, 1000, 1200);
        for (int i = 0; i < CALLS / 2; i++) {
            builder_enter(&b, 1, 1);
            builder_escape(&b, VST_ESCAPE_ARGS, 0, text, 3);
            builder_exit(&b, 1, 1);
        }
        if (sealed)
            builder_seal(&b, 1);
    }
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_replay(trace, 0, &tracer, &sink, NULL), VST_OK);
    CHECK_INT(seen[0], 3 * CALLS);
    CHECK_INT(seen[1], 1);
    vst_trace_close(trace);
    builder_free(&b);
}

int main(void)
{
    TEST(a_finished_file_tells_what_it_holds);
    TEST(each_thread_is_replayed_as_a_tree);
    TEST(a_trace_replays_twice_with_the_same_result);
    TEST(a_thread_goes_on_from_chunk_to_chunk);
    TEST(the_rest_of_a_chunk_belongs_to_another_thread);
    TEST(windows_are_replayed_one_by_one_or_together);
    TEST(a_long_pause_is_an_absolute_time);
    TEST(a_torn_file_ends_with_its_last_record);
    TEST(space_allocated_ahead_is_not_damage);
    TEST(the_offset_of_damage_is_told);
    TEST(what_is_no_trace_is_refused_with_a_reason);
    TEST(a_trace_without_records_has_arrays_all_the_same);
    TEST(a_file_being_written_shows_what_is_there);
    TEST(ticks_become_nanoseconds_piece_by_piece);
    TEST(time_never_goes_back_whatever_the_samples_say);
    TEST(a_file_cut_at_any_byte_is_read_up_to_there);
    TEST(a_cut_chunk_keeps_the_records_before_the_cut);
    TEST(any_bit_flipped_in_a_header_or_record_is_survived);
    TEST(thousands_of_damaged_files_are_survived);
    TEST(a_replay_can_be_cancelled);
    TEST(a_tracer_gets_every_event_and_one_end);
    return checks_end();
}
