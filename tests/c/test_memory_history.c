/* The history of memory, read from files built by hand: the order between
 * threads, lost records, mappings and parts of mappings, and how much of the
 * history bounded and clipped files keep. A script consists of lines; a tick is
 * a nanosecond. */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "memory_model.h"
#include "trace_builder.h"

#define AT(address) (0x10000u + (uint64_t)(address) * 16)

/* ---- records ------------------------------------------------------------ */

static void put_alloc(builder *b, unsigned address, unsigned size,
                      uint32_t delta)
{
    builder_word(b, vst_word_fixed(VST_ESCAPE_ALLOC,
                                   size << 7 | VST_MEMORY_MALLOC, delta));
    builder_word(b, AT(address) >> 3 | (uint64_t)(address + 1) << 44);
}

static void put_large(builder *b, vst_memory_kind kind, uint64_t address,
                      uint64_t size, uint32_t delta)
{
    builder_word(b,
                 vst_word_fixed(VST_ESCAPE_ALLOC_LARGE, (uint32_t)kind, delta));
    builder_word(b, address);
    builder_word(b, size);
    builder_word(b, 9);
}

static void put_free(builder *b, unsigned address, uint32_t delta)
{
    builder_word(b, vst_word_fixed(VST_ESCAPE_FREE, VST_MEMORY_FREE, delta));
    builder_word(b, AT(address));
}

static void put_unmap(builder *b, uint64_t address, uint64_t size,
                      uint32_t delta)
{
    builder_word(
        b, vst_word_fixed(VST_ESCAPE_FREE_RANGE, VST_MEMORY_MUNMAP, delta));
    builder_word(b, address);
    builder_word(b, size);
}

/* Prints each event as "+size" or "-size"; "?": unknown block, "!": a lost
 * free, "@": the thread. */
static const char *text_of(const heard *all)
{
    static char text[4096];
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < all->count && at < sizeof text - 64; i++) {
        const vst_memory_event *event = &all->events[i];
        at += (size_t)snprintf(
            text + at, 64, "%s%c%llu%s%s@%u", i != 0 ? " " : "",
            event->flags & VST_MEMORY_FREES ? '-' : '+',
            (unsigned long long)event->size,
            event->flags & VST_MEMORY_UNKNOWN ? "?" : "",
            event->flags & VST_MEMORY_LOST_FREE ? "!" : "", event->thread);
    }
    return text;
}

static heard hear_built(builder *b)
{
    vst_trace *trace;
    vst_error error;
    heard all = {0};

    if (CHECK_INT(builder_open(b, &trace, &error), VST_OK)) {
        CHECK_INT(hear_trace(trace, VST_WINDOW_LAST, &all), VST_OK);
        vst_trace_close(trace);
    }
    builder_free(b);
    return all;
}

static void expect(builder *b, const char *golden)
{
    heard all = hear_built(b);

    CHECK_TEXT(text_of(&all), golden);
    heard_free(&all);
}

/* ---- order -------------------------------------------------------------- */

static void threads_are_merged_by_time(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_alloc(&b, 1, 1, 10); /* 1010 */
    put_alloc(&b, 2, 2, 20); /* 1030 */
    put_free(&b, 3, 30);     /* 1060 */
    builder_records(&b, 0, 2, 1000, 1);
    put_alloc(&b, 3, 3, 20); /* 1020 */
    put_free(&b, 1, 20);     /* 1040 */
    put_free(&b, 2, 30);     /* 1070 */
    expect(&b, "+1@1 +3@2 +2@1 -1@2 -3@1 -2@2");
}

static void at_the_same_time_a_free_comes_first(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_alloc(&b, 1, 1, 10); /* 1010 */
    put_alloc(&b, 2, 2, 40); /* allocated at 1050, and again at 1100 */
    put_alloc(&b, 1, 5, 50); /* 1100 */
    builder_records(&b, 0, 2, 1000, 1);
    put_free(&b, 1, 100); /* 1100 */
    expect(&b, "+1@1 +2@1 -1@2 +5@1");
}

static void but_not_before_its_own_allocation(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_free(&b, 1, 100); /* 1100 */
    builder_records(&b, 0, 2, 1000, 1);
    put_alloc(&b, 1, 5, 100); /* 1100 */
    expect(&b, "+5@2 -5@1");
}

/* Thread 2's clock is 300 ns behind: it allocates a block that thread 1 frees
 * later. */
static void a_little_skew_between_clocks_is_seen_through(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_alloc(&b, 1, 1, 10); /* 1010 */
    put_alloc(&b, 7, 7, 300);
    put_free(&b, 1, 190); /* 1500 */
    builder_records(&b, 0, 2, 1000, 1);
    put_alloc(&b, 1, 2, 200); /* 1200 */
    put_free(&b, 1, 10);      /* 1210: frees the second block, not the first */
    expect(&b, "+1@1 +7@1 -1@1 +2@2 -2@2");
}

static void skew_is_seen_through_a_chunk_further_on(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_alloc(&b, 1, 1, 10);
    builder_seal(&b, 1);
    builder_records(&b, 0, 2, 1000, 1);
    put_alloc(&b, 1, 2, 200); /* 1200 */
    builder_seal(&b, 1);
    builder_records(&b, 0, 1, 1300, 1);
    put_free(&b, 1, 50); /* 1350 */
    expect(&b, "+1@1 -1@1 +2@2");
}

static void a_free_that_was_lost_is_made_up(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_alloc(&b, 1, 1, 10);
    put_alloc(&b, 2, 3, 3000000);
    put_free(&b, 1, 10); /* too late to free the second block */
    builder_records(&b, 0, 2, 1000, 1);
    put_alloc(&b, 1, 2, 200);
    expect(&b, "+1@1 -1!@2 +2!@2 +3@1 -2@1");
}

static void recent_frees_name_the_last_allocation_of_their_place(void)
{
    uint32_t place = vst_recent_place(AT(1));
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_alloc(&b, 1, 1, 10);
    builder_word(&b, vst_word_fixed(VST_ESCAPE_FREE_RECENT,
                                    place << 5 | VST_MEMORY_FREE, 1));
    put_alloc(&b, 1, 2, 10);
    builder_seal(&b, 1);
    builder_records(&b, 0, 1, 2000, 1); /* empties the table */
    builder_word(&b, vst_word_fixed(VST_ESCAPE_FREE_RECENT,
                                    place << 5 | VST_MEMORY_FREE, 1));
    put_alloc(&b, 3, 3, 10);
    expect(&b, "+1@1 -1@1 +2@1 +3@1");
}

/* ---- mappings ----------------------------------------------------------- */

static void parts_of_mappings_are_unmapped(void)
{
    builder b;
    heard all;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_large(&b, VST_MEMORY_MMAP, 0x100000, 0x8000, 1);
    put_unmap(&b, 0x102000, 0x1000, 1); /* a part in the middle */
    put_unmap(&b, 0x100000, 0x1000, 1); /* the beginning */
    put_unmap(&b, 0x107000, 0x5000, 1); /* the end of the mapping, and beyond */
    put_large(&b, VST_MEMORY_MMAP, 0x108000, 0x1000, 1);
    put_unmap(&b, 0x0ff000, 0x20000, 1); /* all three remaining parts */
    put_unmap(&b, 0x0ff000, 0x20000, 1); /* nothing */
    all = hear_built(&b);
    CHECK_TEXT(text_of(&all), "+32768@1 -4096@1 -4096@1 -4096@1 +4096@1 "
                              "-4096@1 -16384@1 -4096@1 -131072?@1");
    CHECK_INT(all.events[1].address, 0x102000);
    CHECK_INT(all.events[1].serial, 1);
    CHECK_INT(all.events[1].live_bytes, 0x7000);
    CHECK_INT(all.events[1].live_count, 2);
    CHECK_INT(all.events[7].serial, 2);
    CHECK_INT(all.events[7].live_bytes, 0);
    CHECK_INT(all.events[7].live_count, 0);
    heard_free(&all);
}

static void a_mapping_over_another_takes_its_place(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_large(&b, VST_MEMORY_MMAP, 0x100000, 0x3000, 1);
    put_large(&b, VST_MEMORY_MMAP, 0x101000, 0x1000, 1);
    expect(&b, "+12288@1 -4096!@1 +4096!@1");
}

/* Random maps and unmaps, compared with a table of pages. */
static void random_mappings_are_those_of_a_table_of_pages(void)
{
    enum { PAGES = 200, STEPS = 400 };
    uint64_t expected[STEPS] = {0};
    bool mapped[PAGES] = {false};
    unsigned seed = 7;
    size_t wrong = 0, step = 0;
    builder b;
    heard all;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 4);
    for (size_t i = 0; i < STEPS; i++) {
        unsigned first = (unsigned)rand_r(&seed) % (PAGES - 20);
        unsigned count = 1 + (unsigned)rand_r(&seed) % 20;
        bool maps = rand_r(&seed) % 2;
        if (maps)
            put_large(&b, VST_MEMORY_MMAP, (1 + first) * 4096ul, count * 4096ul,
                      1);
        else
            put_unmap(&b, (1 + first) * 4096ul, count * 4096ul, 1);
        for (unsigned j = first; j < first + count; j++)
            mapped[j] = maps;
        for (unsigned j = 0; j < PAGES; j++)
            expected[i] += mapped[j] ? 4096 : 0;
    }
    all = hear_built(&b);
    /* The last event of each step has the sum. */
    for (size_t i = 0; i < all.count; i++) {
        if (i + 1 != all.count &&
            all.events[i + 1].time_ns == all.events[i].time_ns)
            continue;
        wrong += all.events[i].live_bytes != expected[step++];
    }
    CHECK_INT(step, STEPS);
    CHECK_INT(wrong, 0);
    heard_free(&all);
}

/* ---- what is apart ------------------------------------------------------ */

/* A framework's block at the address of the block that contains it. */
static void a_frameworks_blocks_are_counted_apart(void)
{
    builder b;
    heard all;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_large(&b, VST_MEMORY_POSIX_MEMALIGN, AT(1), 1 << 20, 1);
    put_large(&b, VST_MEMORY_FRAMEWORK, AT(1), 1000000, 1);
    builder_word(&b,
                 vst_word_fixed(VST_ESCAPE_FREE, VST_MEMORY_FRAMEWORK_FREE, 1));
    builder_word(&b, AT(1));
    put_free(&b, 1, 1);
    all = hear_built(&b);
    CHECK_TEXT(text_of(&all), "+1048576@1 +1000000@1 -1000000@1 -1048576@1");
    CHECK_INT(all.events[0].live_bytes, 1 << 20);
    CHECK_INT(all.events[1].live_bytes, 1000000);
    CHECK_INT(all.events[2].live_bytes, 0);
    CHECK_INT(all.events[3].live_bytes, 0);
    heard_free(&all);
}

static void what_was_sampled_stands_for_more(void)
{
    builder b;
    heard all;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_metadata(&b, "vestige.memory", "{\"sample_bytes\": 1000}");
    builder_records(&b, 0, 1, 1000, 1);
    put_alloc(&b, 1, 10, 1);
    put_alloc(&b, 2, 30000, 1);
    put_free(&b, 1, 1);
    all = hear_built(&b);
    CHECK_INT(all.count, 3);
    CHECK(fabs(all.events[0].weight - 1 / (1 - exp(-0.01))) < 1e-6);
    CHECK(fabs(all.events[1].weight - 1) < 1e-6);
    CHECK(fabs(all.events[2].weight - all.events[0].weight) < 1e-9);
    heard_free(&all);
}

static void each_window_begins_with_nothing(void)
{
    vst_trace *trace;
    vst_error error;
    heard all;
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_alloc(&b, 1, 1, 10);
    builder_records(&b, 1, 1, 9000, 1);
    put_free(&b, 1, 10);
    put_alloc(&b, 1, 2, 10);
    CHECK_INT(builder_open(&b, &trace, &error), VST_OK);
    hear_trace(trace, VST_WINDOW_ALL, &all);
    CHECK_TEXT(text_of(&all), "+1@1 -0?@1 +2@1");
    heard_free(&all);
    hear_trace(trace, 0, &all);
    CHECK_TEXT(text_of(&all), "+1@1");
    heard_free(&all);
    CHECK_INT(hear_trace(trace, 5, &all), VST_E_ARGUMENT);
    vst_trace_close(trace);
    builder_free(&b);
}

/* ---- what is missing ---------------------------------------------------- */

static void losses_are_passed_on(void)
{
    builder b;
    heard all;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_alloc(&b, 1, 1, 10);
    builder_escape(&b, VST_ESCAPE_LOST, 10, (uint64_t[]){5}, 1);
    builder_escape(&b, VST_ESCAPE_GAP, 10, (uint64_t[]){0}, 1);
    put_alloc(&b, 2, 2, 10);
    builder_escape(&b, VST_ESCAPE_GAP, 10, (uint64_t[]){1}, 1);
    builder_escape(&b, VST_ESCAPE_GAP, 10, (uint64_t[]){0}, 1);
    all = hear_built(&b);
    CHECK_TEXT(text_of(&all), "+1@1 +2@1");
    CHECK_INT(all.loss_count, 3);
    CHECK_INT(all.losses[0].kind, VST_LOSS_RECORDS);
    CHECK_INT(all.losses[0].records, 5);
    CHECK_INT(all.losses[0].start_ns, BUILDER_EPOCH_NS + 1010);
    CHECK_INT(all.losses[0].end_ns, BUILDER_EPOCH_NS + 1020);
    CHECK_INT(all.losses[1].kind, VST_LOSS_GAP);
    CHECK_INT(all.losses[1].start_ns, BUILDER_EPOCH_NS + 1030);
    CHECK_INT(all.losses[1].end_ns, BUILDER_EPOCH_NS + 1050);
    CHECK_INT(all.losses[2].start_ns, BUILDER_EPOCH_NS + 1060);
    heard_free(&all);
}

static void a_loss_that_reaches_over_the_end_of_the_range_ends_there(void)
{
    vst_trace *trace;
    heard all;
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_alloc(&b, 1, 1, 10);
    builder_escape(&b, VST_ESCAPE_LOST, 100, (uint64_t[]){5}, 1);
    builder_escape(&b, VST_ESCAPE_GAP, 10, (uint64_t[]){0}, 1);
    builder_escape(&b, VST_ESCAPE_GAP, 100, (uint64_t[]){1}, 1);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    vst_trace_set_range(trace, INT64_MIN, BUILDER_EPOCH_NS + 1050);
    hear_trace(trace, VST_WINDOW_LAST, &all);
    CHECK_TEXT(text_of(&all), "+1@1");
    CHECK_INT(all.loss_count, 1);
    CHECK_INT(all.losses[0].kind, VST_LOSS_RECORDS);
    CHECK_INT(all.losses[0].end_ns, BUILDER_EPOCH_NS + 1050);
    heard_free(&all);
    vst_trace_set_range(trace, INT64_MIN, BUILDER_EPOCH_NS + 1150);
    hear_trace(trace, VST_WINDOW_LAST, &all);
    CHECK_INT(all.loss_count, 2);
    CHECK_INT(all.losses[1].kind, VST_LOSS_GAP);
    CHECK_INT(all.losses[1].end_ns, BUILDER_EPOCH_NS + 1150);
    heard_free(&all);
    vst_trace_close(trace);
    builder_free(&b);
}

static void what_lies_outside_of_the_range_is_not_known(void)
{
    vst_trace *trace;
    vst_error error;
    heard all;
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_alloc(&b, 1, 1, 1000);
    put_alloc(&b, 2, 2, 1000);
    put_free(&b, 1, 1000); /* 4000 */
    put_free(&b, 2, 1000);
    put_alloc(&b, 3, 3, 0);
    CHECK_INT(builder_open(&b, &trace, &error), VST_OK);
    vst_trace_set_range(trace, BUILDER_EPOCH_NS + 2500, INT64_MAX);
    hear_trace(trace, VST_WINDOW_LAST, &all);
    CHECK_TEXT(text_of(&all), "+2@1 -0?@1 -2@1 +3@1");
    CHECK_INT(all.loss_count, 1);
    CHECK_INT(all.losses[0].kind, VST_LOSS_DROPPED);
    CHECK_INT(all.losses[0].records, 2);
    heard_free(&all);
    vst_trace_set_range(trace, BUILDER_EPOCH_NS + 2000,
                        BUILDER_EPOCH_NS + 4000);
    hear_trace(trace, VST_WINDOW_LAST, &all);
    CHECK_TEXT(text_of(&all), "+1@1 +2@1 -1@1");
    CHECK_INT(all.loss_count, 0);
    heard_free(&all);
    vst_trace_set_range(trace, BUILDER_EPOCH_NS + 3500,
                        BUILDER_EPOCH_NS + 3600);
    hear_trace(trace, VST_WINDOW_LAST, &all);
    CHECK_INT(all.count, 0);
    CHECK_INT(all.loss_count, 1);
    heard_free(&all);
    vst_trace_set_range(trace, INT64_MIN, INT64_MAX);
    hear_trace(trace, VST_WINDOW_LAST, &all);
    CHECK_INT(all.count, 5);
    heard_free(&all);
    vst_trace_close(trace);
    builder_free(&b);
}

/* A bounded recording that is much longer than its bound. */
static void a_bounded_recording_knows_its_newest_part(void)
{
    enum { ROUNDS = 300000, LIVE = 100 };
    vst_session_options options = {.max_size = 1 << 20};
    vst_session *session = session_begin(&options);
    size_t unknown = 0, wrong = 0;
    heard all;

    for (unsigned i = 0; i < ROUNDS; i++) {
        allocate(i, i % 1000, 1);
        if (i >= LIVE)
            release(i - LIVE);
    }
    vst_session_stop(session);
    hear_session(session, &all);
    CHECK(all.count > 10000 && all.count < ROUNDS);
    CHECK_INT(all.loss_count, 1);
    CHECK_INT(all.losses[0].kind, VST_LOSS_DROPPED);
    for (size_t i = 0; i < all.count; i++)
        unknown += (all.events[i].flags & VST_MEMORY_UNKNOWN) != 0;
    CHECK_INT(unknown, LIVE);
    if (all.count != 0) {
        wrong += all.events[all.count - 1].address !=
                 fake_address(ROUNDS - 1 - LIVE);
        wrong += all.events[all.count - 1].live_count != LIVE;
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(vst_session_lost(session), 0);
    heard_free(&all);
    vst_session_destroy(session);
}

/* ---- many --------------------------------------------------------------- */

/* Ten thousand threads, alive at the same time, in little memory. */
static void ten_thousand_threads_need_little_memory(void)
{
#if defined(__SANITIZE_ADDRESS__)
    enum { THREADS = 300 }; /* ASan copies the file for each chunk */
#else
    enum { THREADS = 10000 };
#endif
    struct rusage before, after;
    builder b;
    heard all;

    builder_init(&b);
    for (unsigned i = 0; i < THREADS; i++) {
        builder_records(&b, 0, i + 1, 1000, 1);
        put_alloc(&b, i, 1, i);
        put_free(&b, i, 20000);
        builder_seal(&b, 1);
    }
    getrusage(RUSAGE_SELF, &before);
    all = hear_built(&b);
    getrusage(RUSAGE_SELF, &after);
    CHECK_INT(all.count, 2 * THREADS);
    CHECK_INT(all.events[THREADS - 1].live_count, THREADS);
    CHECK_INT(all.events[2 * THREADS - 1].live_count, 0);
#if !defined(__SANITIZE_ADDRESS__)
    CHECK(after.ru_maxrss - before.ru_maxrss < 400 * 1024); /* KiB */
#endif
    heard_free(&all);
}

static int give_up(void *ctx, double done)
{
    CHECK(done >= 0 && done <= 1);
    ++*(int *)ctx;
    return 1;
}

static void progress_is_told_and_cancels(void)
{
    vst_session *session = session_begin(NULL);
    vst_trace *trace;
    vst_error error;
    int told = 0;
    heard all;

    for (unsigned i = 0; i < 40000; i++)
        allocate(i, 1, 1);
    vst_session_stop(session);
    CHECK_INT(vst_session_open_trace(session, &trace, &error), VST_OK);
    vst_trace_set_progress(trace, give_up, &told);
    CHECK_INT(hear_trace(trace, VST_WINDOW_LAST, &all), VST_E_CANCELLED);
    CHECK_INT(told, 1);
    vst_trace_close(trace);
    heard_free(&all);
    vst_session_destroy(session);
}

int main(void)
{
    TEST(threads_are_merged_by_time);
    TEST(at_the_same_time_a_free_comes_first);
    TEST(but_not_before_its_own_allocation);
    TEST(a_little_skew_between_clocks_is_seen_through);
    TEST(skew_is_seen_through_a_chunk_further_on);
    TEST(a_free_that_was_lost_is_made_up);
    TEST(recent_frees_name_the_last_allocation_of_their_place);
    TEST(parts_of_mappings_are_unmapped);
    TEST(a_mapping_over_another_takes_its_place);
    TEST(random_mappings_are_those_of_a_table_of_pages);
    TEST(a_frameworks_blocks_are_counted_apart);
    TEST(what_was_sampled_stands_for_more);
    TEST(each_window_begins_with_nothing);
    TEST(losses_are_passed_on);
    TEST(a_loss_that_reaches_over_the_end_of_the_range_ends_there);
    TEST(what_lies_outside_of_the_range_is_not_known);
    TEST(a_bounded_recording_knows_its_newest_part);
    TEST(ten_thousand_threads_need_little_memory);
    TEST(progress_is_told_and_cancels);
    return checks_end();
}
