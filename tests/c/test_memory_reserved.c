/* Reserved address space: the hooks' table of reserved ranges, and the history
 * of such ranges, read from files built by hand. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/report.h"
#include "memory/reserved.h"
#include "memory_model.h"
#include "trace_builder.h"

enum { PAGE = 4096, PAGES = 200 };

/* ---- the table ----------------------------------------------------------- */

/* For each page: 0 not reserved, 1 without access, 2 open. */
static size_t count_wrong(const char *expected)
{
    size_t wrong = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    vst__range part;

    for (uintptr_t i = 0; i < PAGES; i++) {
        uintptr_t at = (1 + i) * page;
        bool found = vst__reserved_find(at, at + page, &part);
        char is = found ? part.is_open ? 2 : 1 : 0;

        wrong += is != expected[i];
        wrong += found && (part.start != at || part.end != at + page);
    }
    return wrong;
}

static void random_ranges_are_those_of_a_table_of_pages(void)
{
    char expected[PAGES] = {0};
    size_t wrong = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned seed = 3;

    vst__reserved_forget();
    for (int i = 0; i < 3000; i++) {
        size_t first = (size_t)rand_r(&seed) % (PAGES - 20);
        size_t count = 1 + (size_t)rand_r(&seed) % 20;
        char what = (char)(rand_r(&seed) % 3);

        /* Touching one byte of a page counts the whole page. */
        if (what == 0)
            vst__reserved_remove((1 + first) * page, count * page - 1);
        else
            vst__reserved_add((1 + first) * page, count * page - 1, what == 2);
        memset(expected + first, what, count);
        wrong += count_wrong(expected);
    }
    CHECK_INT(wrong, 0);
    vst__reserved_remove(0, SIZE_MAX);
    CHECK(!vst__reserved_any());
    vst__reserved_forget();
}

static size_t touched_bytes, touched_runs;
static uintptr_t touched_first;

static void note_touched(uintptr_t start, size_t size)
{
    if (touched_runs++ == 0)
        touched_first = start;
    touched_bytes += size;
}

static void pages_in_use_are_found_once(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 20000;
    char *at = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uintptr_t start = (uintptr_t)at;

    CHECK(at != MAP_FAILED);
    madvise(at, pages * page, MADV_NOHUGEPAGE);
    touched_bytes = touched_runs = 0;
    vst__reserved_add(start, pages * page, true);
    vst__reserved_look(0, UINTPTR_MAX, note_touched);
    CHECK_INT(touched_runs, 0);
    for (size_t i = 0; i < 10; i++)
        at[(4090 + i) * page] = 1; /* at the border between two queries for
                                    * pages */
    at[19999 * page] = 1;
    vst__reserved_look(0, UINTPTR_MAX, note_touched);
    CHECK_INT(touched_bytes, 11 * page);
    CHECK_INT(touched_first, start + 4090 * page);
    vst__reserved_look(0, UINTPTR_MAX, note_touched);
    CHECK_INT(touched_bytes, 11 * page);
    /* Ranges without access, and ranges that are no longer mapped, are not
     * examined. */
    vst__reserved_add(start + 4090 * page, page, false);
    vst__reserved_add(start + 4091 * page, page, true);
    munmap(at, pages * page);
    vst__reserved_look(0, UINTPTR_MAX, note_touched);
    CHECK_INT(touched_bytes, 11 * page);
    vst__reserved_forget();
}

static void a_table_that_is_full_keeps_what_it_has(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), known = 0;
    vst__range part;
    uintptr_t at = 0;

    vst__reserved_add(page, 400000 * page, true);
    for (size_t i = 0; i < 100000; i++)
        vst__reserved_remove((3 + 2 * i) * page, page);
    for (; vst__reserved_find(at, UINTPTR_MAX, &part); at = part.end)
        known++;
    CHECK(known > 10000 && known <= 65536);
    vst__reserved_forget();
}

static void *change_ranges(void *argument)
{
    uintptr_t base = (uintptr_t)argument;
    vst__range part;

    for (uintptr_t i = 0; i < 2000; i++) {
        vst__reserved_add(base + i % 50 * PAGE * 2, PAGE, i % 2 == 0);
        vst__reserved_find(0, UINTPTR_MAX, &part);
        vst__reserved_remove(base + i % 7 * PAGE * 2, PAGE);
    }
    return NULL;
}

static void threads_change_ranges_of_their_own(void)
{
    pthread_t threads[4];

    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, change_ranges,
                       (void *)((1 + i) << 32));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(vst__reserved_any());
    vst__reserved_forget();
}

/* ---- the history --------------------------------------------------------- */

static void put_range(builder *b, uint64_t address, uint64_t size,
                      unsigned range, vst_stack_id stack)
{
    builder_word(b,
                 vst_word_fixed(VST_ESCAPE_ALLOC_LARGE,
                                VST_MEMORY_MMAP | range << VST_RANGE_SHIFT, 1));
    builder_word(b, address);
    builder_word(b, size);
    builder_word(b, stack);
}

static void put_unmap(builder *b, uint64_t address, uint64_t size)
{
    builder_word(b,
                 vst_word_fixed(VST_ESCAPE_FREE_RANGE, VST_MEMORY_MUNMAP, 1));
    builder_word(b, address);
    builder_word(b, size);
}

static void put_counter(builder *b, vst_id id, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    builder_escape(b, VST_ESCAPE_COUNTER, 1, (const uint64_t[]){id, bits}, 2);
}

/* Prints each event as "+size:stack" or "-size:stack", reserved ranges in
 * brackets; "*": touched, "?": unknown, "!": lost. */
typedef struct told {
    char text[4096];
    size_t at;
    uint64_t used, reserved, used_count, reserved_count;
    vst_memory_resident resident;
} told;

static void put_text(told *t, const vst_memory_event *e, bool reserved)
{
    if (t->at < sizeof t->text - 64)
        t->at += (size_t)snprintf(
            t->text + t->at, 64, "%s%s%c%llu:%u%s%s%s%s", t->at != 0 ? " " : "",
            reserved ? "[" : "", e->flags & VST_MEMORY_FREES ? '-' : '+',
            (unsigned long long)e->size, e->stack,
            e->flags & VST_MEMORY_TOUCHED ? "*" : "",
            e->flags & VST_MEMORY_UNKNOWN ? "?" : "",
            e->flags & VST_MEMORY_LOST_FREE ? "!" : "", reserved ? "]" : "");
}

static vst_status on_event(void *ctx, const vst_memory_event *event)
{
    told *t = ctx;

    put_text(t, event, false);
    t->used = event->live_bytes;
    t->used_count = event->live_count;
    return VST_OK;
}

static vst_status on_reserved(void *ctx, const vst_memory_event *event)
{
    told *t = ctx;

    put_text(t, event, true);
    t->reserved = event->live_bytes;
    t->reserved_count = event->live_count;
    return VST_OK;
}

static vst_status on_resident(void *ctx, const vst_memory_resident *resident)
{
    ((told *)ctx)->resident = *resident;
    return VST_OK;
}

static void tell(builder *b, told *t)
{
    const vst_memory_sink sink = {.ctx = t,
                                  .event = on_event,
                                  .reserved = on_reserved,
                                  .resident = on_resident};
    vst_trace *trace;

    memset(t, 0, sizeof *t);
    if (CHECK_INT(builder_open(b, &trace, NULL), VST_OK)) {
        CHECK_INT(vst_trace_replay_memory(trace, VST_WINDOW_ALL, &sink, NULL),
                  VST_OK);
        vst_trace_close(trace);
    }
    builder_free(b);
}

enum {
    RESERVES = VST_RANGE_RESERVED,
    OPENS = VST_RANGE_CHANGES,
    TOUCHES = VST_RANGE_CHANGES | VST_RANGE_TOUCHED,
    GIVES_BACK = VST_RANGE_CHANGES | VST_RANGE_RESERVED
};

static void a_reservation_becomes_memory_and_address_space_again(void)
{
    builder b;
    told t;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_range(&b, 0x100000, 0x10000, RESERVES, 5);
    put_range(&b, 0x102000, 0x1000, OPENS, 6);
    put_range(&b, 0x104000, 0x1000, TOUCHES, 0);
    put_range(&b, 0x102000, 0x1000, OPENS, 7); /* is already */
    put_range(&b, 0x101000, 0x2000, GIVES_BACK, 0);
    put_unmap(&b, 0x100000, 0x10000);
    tell(&b, &t);
    CHECK_TEXT(t.text, "[+65536:5] [-4096:5] +4096:6 [-4096:5] +4096:5* "
                       "-4096:6 [+4096:6] -4096:5 "
                       "[-8192:5] [-4096:6] [-4096:5] [-45056:5]");
    CHECK_INT(t.used, 0);
    CHECK_INT(t.reserved, 0);
    CHECK_INT(t.used_count, 0);
    CHECK_INT(t.reserved_count, 0);
}

static void a_change_of_what_is_not_mapped_is_nothing(void)
{
    builder b;
    told t;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_range(&b, 0x100000, 0x10000, OPENS, 5);
    put_range(&b, 0x100000, 0x10000, TOUCHES, 0);
    put_range(&b, 0x100000, 0x10000, GIVES_BACK, 0);
    put_range(&b, 0x100000, 0x1000, 0, 5);
    put_range(&b, 0x100000, UINT64_MAX, OPENS, 5);
    tell(&b, &t);
    CHECK_TEXT(t.text, "+4096:5");
}

static void a_mapping_over_a_reservation_takes_its_place(void)
{
    builder b;
    told t;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    put_range(&b, 0x100000, 0x3000, RESERVES, 5);
    put_range(&b, 0x101000, 0x1000, 0, 6);
    put_range(&b, 0x101000, 0x2000, RESERVES, 7);
    tell(&b, &t);
    CHECK_TEXT(t.text, "[+12288:5] [-4096:5] +4096:6 -4096:6! [-4096:5] "
                       "[+8192:7]");
}

/* Random changes, compared with a table of pages: 0 not mapped, 1 used, 2
 * reserved. */
static void random_changes_are_those_of_a_table_of_pages(void)
{
    static const unsigned ranges[] = {0, RESERVES, OPENS, TOUCHES, GIVES_BACK};
    char pages[PAGES] = {0};
    unsigned seed = 11;
    uint64_t sums[3] = {0, 0, 0};
    builder b;
    told t;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 40);
    for (int i = 0; i < 3000; i++) {
        unsigned first = (unsigned)rand_r(&seed) % (PAGES - 20);
        unsigned count = 1 + (unsigned)rand_r(&seed) % 20;
        unsigned what = (unsigned)rand_r(&seed) % 6;
        char now[] = {1, 2, 1, 1, 2, 0};

        if (what == 5)
            put_unmap(&b, (1 + first) * 4096ul, count * 4096ul);
        else
            put_range(&b, (1 + first) * 4096ul, count * 4096ul, ranges[what],
                      what != 3);
        for (unsigned j = first; j < first + count; j++)
            if (what < 2 || what == 5 || pages[j])
                pages[j] = now[what];
    }
    tell(&b, &t);
    for (int i = 0; i < PAGES; i++)
        sums[(int)pages[i]] += 4096;
    CHECK_INT(t.used, sums[1]);
    CHECK_INT(t.reserved, sums[2]);
    CHECK(sums[1] && sums[2]);
}

static void samples_of_the_resident_set_are_passed_on(void)
{
    builder b;
    told t;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_define(&b, VST_DEF_COUNTER, 7, VST_COUNTER_RESIDENT, "", 0);
    builder_define(&b, VST_DEF_COUNTER, 8, VST_COUNTER_RESIDENT_FILES, "", 0);
    builder_define(&b, VST_DEF_COUNTER, 9, "resident", "", 0);
    builder_records(&b, 0, 1, 1000, 1);
    put_counter(&b, 8, 1000);
    put_counter(&b, 7, 5000);
    put_counter(&b, 9, 77);
    put_counter(&b, 7, -1);
    put_counter(&b, 7, 1e300);
    tell(&b, &t);
    CHECK_TEXT(t.text, "");
    CHECK_INT(t.resident.bytes, 5000);
    CHECK_INT(t.resident.file_bytes, 1000);
}

/* ---- the summary --------------------------------------------------------- */

static vst_memory_summary *summarize(builder *b)
{
    vst_memory_summary *summary = NULL;
    vst_trace *trace;

    if (CHECK_INT(builder_open(b, &trace, NULL), VST_OK)) {
        CHECK_INT(vst__trace_summarize_memory(trace, NULL, &summary, NULL),
                  VST_OK);
        vst_trace_close(trace);
    }
    builder_free(b);
    return summary;
}

static void reservations_are_summed_apart(void)
{
    builder b;
    vst_memory_summary *s;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_entry(&b, &(vst_file_entry){.kind = VST_ENTRY_MEMORY}, "", "");
    builder_records(&b, 0, 1, 1000, 1);
    put_range(&b, 0x1000000, 0x10000, RESERVES, 0);
    put_range(&b, 0x2000000, 0x40000, RESERVES, 0);
    put_range(&b, 0x2000000, 0x1000, TOUCHES, 0);
    put_unmap(&b, 0x2000000, 0x40000);
    put_range(&b, 0x3000000, 0x2000, 0, 0);
    s = summarize(&b);
    if (s == NULL)
        return;
    CHECK(s->views[VST_MEMORY_RESERVED].bytes == 0x50000);
    CHECK(s->views[VST_MEMORY_RESERVED].count == 2);
    CHECK(s->views[VST_MEMORY_TOTAL].bytes == 0x3000);
    CHECK(s->views[VST_MEMORY_PEAK].bytes == 0x2000);
    CHECK(s->views[VST_MEMORY_LEAKS].bytes == 0x2000);
    CHECK_INT(s->unknown_frees, 0);
    CHECK(s->nodes[0].inclusive[VST_MEMORY_RESERVED].bytes == 0x50000);
    CHECK_INT(s->resident.peak, 0);
    vst__memory_summary_free(s);
}

static void each_window_reserves_anew(void)
{
    builder b;
    vst_memory_summary *s;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_entry(&b, &(vst_file_entry){.kind = VST_ENTRY_MEMORY}, "", "");
    builder_records(&b, 0, 1, 1000, 1);
    put_range(&b, 0x1000000, 0x3000, RESERVES, 0);
    builder_records(&b, 1, 1, 100000, 1);
    put_range(&b, 0x2000000, 0x2000, RESERVES, 0);
    put_range(&b, 0x3000000, 0x1000, 0, 0);
    s = summarize(&b);
    if (s == NULL)
        return;
    CHECK(s->views[VST_MEMORY_RESERVED].bytes == 0x3000);
    CHECK(s->views[VST_MEMORY_RESERVED].count == 1);
    vst__memory_summary_free(s);
}

static void the_system_tells_the_peak_of_what_was_resident(void)
{
    builder b;
    vst_memory_summary *s;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_entry(&b, &(vst_file_entry){.kind = VST_ENTRY_MEMORY}, "", "");
    builder_define(&b, VST_DEF_COUNTER, 7, VST_COUNTER_RESIDENT, "", 0);
    builder_metadata(&b, "vestige.memory.resident", "{\"peak\": 9000}");
    builder_records(&b, 0, 1, 1000, 1);
    put_range(&b, 0x1000000, 0x3000, 0, 0);
    put_counter(&b, 7, 5000);
    put_counter(&b, 7, 4000);
    s = summarize(&b);
    if (s == NULL)
        return;
    CHECK_INT(s->resident.peak, 9000);
    CHECK_INT(s->resident.sampled, 5000);
    CHECK(s->resident.sampled_live == 0x3000);
    CHECK(s->resident.point_count != 0);
    vst__memory_summary_free(s);
}

int main(void)
{
    TEST(random_ranges_are_those_of_a_table_of_pages);
    TEST(pages_in_use_are_found_once);
    TEST(a_table_that_is_full_keeps_what_it_has);
    TEST(threads_change_ranges_of_their_own);
    TEST(a_reservation_becomes_memory_and_address_space_again);
    TEST(a_change_of_what_is_not_mapped_is_nothing);
    TEST(a_mapping_over_a_reservation_takes_its_place);
    TEST(random_changes_are_those_of_a_table_of_pages);
    TEST(samples_of_the_resident_set_are_passed_on);
    TEST(reservations_are_summed_apart);
    TEST(each_window_reserves_anew);
    TEST(the_system_tells_the_peak_of_what_was_resident);
    return checks_end();
}
