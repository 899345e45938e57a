/* Hooks of mappings: address space that is only reserved does not count as
 * memory, until it is opened or found to be in use. The library in the first
 * argument makes all calls. */
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/report.h"
#include "memory_session.h"
#include "oracle_session.h"

enum { RW = PROT_READ | PROT_WRITE, NO_SUCH_ACCESS = 1 << 20 };

static const oracle *o;
static const vst_memory_options all = {.native_allocators = true};
static size_t page;

/* The recorded sums of one address range. */
typedef struct sums {
    uintptr_t start, end;
    int64_t used, reserved;           /* now */
    int64_t most_used, most_reserved; /* the most at one moment */
    size_t samples;
    uint64_t resident;
} sums;

static void note(int64_t *now, int64_t *most, const vst_memory_event *event)
{
    int64_t size = (int64_t)event->size;

    *now += event->flags & VST_MEMORY_FREES ? -size : size;
    if (*now > *most)
        *most = *now;
}

static vst_status note_use(void *ctx, const vst_memory_event *event)
{
    sums *s = ctx;

    if (event->address >= s->start && event->address < s->end) {
        CHECK(!(event->flags & (VST_MEMORY_UNKNOWN | VST_MEMORY_LOST_FREE)));
        note(&s->used, &s->most_used, event);
    }
    return VST_OK;
}

static vst_status note_reserved(void *ctx, const vst_memory_event *event)
{
    sums *s = ctx;

    CHECK_INT(event->kind, VST_MEMORY_RESERVE);
    if (event->address >= s->start && event->address < s->end)
        note(&s->reserved, &s->most_reserved, event);
    return VST_OK;
}

static vst_status note_resident(void *ctx, const vst_memory_resident *resident)
{
    sums *s = ctx;

    s->samples++;
    CHECK(resident->file_bytes < resident->bytes);
    s->resident = resident->bytes;
    return VST_OK;
}

static sums end_of(void *start, size_t size)
{
    sums s = {.start = (uintptr_t)start, .end = (uintptr_t)start + size};
    const vst_memory_sink sink = {.ctx = &s,
                                  .event = note_use,
                                  .reserved = note_reserved,
                                  .resident = note_resident};

    memory_end();
    CHECK_INT(
        vst_trace_replay_memory(memory_trace, VST_WINDOW_ALL, &sink, NULL),
        VST_OK);
    return s;
}

/* Maps pages that the system does not join to huge pages. */
static char *map(size_t pages, int access, int flags)
{
    char *at = o->map_pages(NULL, pages * page, access, flags);

    CHECK(at != MAP_FAILED);
    madvise(at, pages * page, MADV_NOHUGEPAGE);
    return at;
}

static void touch(char *at, size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        at[i * page] = 1;
}

/* ---- without access ------------------------------------------------------ */

static void address_space_without_access_is_no_memory(void)
{
    size_t pages = (size_t)1 << 18;
    char *at;
    sums s;

    memory_begin(&all);
    at = map(pages, PROT_NONE, 0);
    s = end_of(at, pages * page);
    CHECK_INT(s.most_used, 0);
    CHECK_INT(s.reserved, pages * page);
    o->unmap_pages(at, pages * page);
}

static void what_is_opened_of_it_is_memory(void)
{
    char *at;
    sums s;

    memory_begin(&all);
    at = map(1000, PROT_NONE, MAP_NORESERVE);
    CHECK_INT(o->protect_pages(at + 100 * page, 10 * page, RW), 0);
    CHECK_INT(o->protect_pages(at + 105 * page, 10 * page, RW), 0);
    CHECK_INT(o->protect_pages(at + 100 * page, 15 * page, PROT_READ), 0);
    CHECK_INT(o->protect_pages(at + 100 * page, 15 * page, PROT_NONE), 0);
    s = end_of(at, 1000 * page);
    CHECK_INT(s.used, 15 * page);
    CHECK_INT(s.most_used, 15 * page);
    CHECK_INT(s.reserved, 985 * page);
    CHECK_INT(s.most_reserved, 1000 * page);
    o->unmap_pages(at, 1000 * page);
}

static void unmapping_a_part_ends_what_is_reserved_and_used_there(void)
{
    char *at;
    sums s;

    memory_begin(&all);
    at = map(100, PROT_NONE, 0);
    o->protect_pages(at + 40 * page, 20 * page, RW);
    CHECK_INT(o->unmap_pages(at + 30 * page, 20 * page), 0);
    s = end_of(at, 100 * page);
    CHECK_INT(s.used, 10 * page);
    CHECK_INT(s.reserved, 70 * page);
    o->unmap_pages(at, 100 * page);
}

static void a_mapping_into_a_reservation_is_memory(void)
{
    char *at;
    sums s;

    memory_begin(&all);
    at = map(100, PROT_NONE, 0);
    CHECK(o->map_pages(at + 10 * page, 5 * page, RW, MAP_FIXED) ==
          at + 10 * page);
    s = end_of(at, 100 * page);
    CHECK_INT(s.used, 5 * page);
    CHECK_INT(s.reserved, 95 * page);
    o->unmap_pages(at, 100 * page);
}

static void a_failed_call_changes_nothing(void)
{
    char *at;
    sums s;

    memory_begin(&all);
    at = map(100, PROT_NONE, 0);
    CHECK_INT(o->protect_pages(at, page, RW | NO_SUCH_ACCESS), -1);
    CHECK_INT(o->unmap_pages(at + 1, page), -1);
    CHECK_INT(o->advise_pages(at + 1, page, MADV_DONTNEED), -1);
    s = end_of(at, 100 * page);
    CHECK_INT(s.most_used, 0);
    CHECK_INT(s.reserved, 100 * page);
    o->unmap_pages(at, 100 * page);
}

/* ---- without memory set aside -------------------------------------------- */

/* Touched pages count at the latest before they are unmapped. */
static void pages_that_were_touched_are_memory(void)
{
    char *at;
    sums s;

    memory_begin(&all);
    at = map(100000, RW, MAP_NORESERVE);
    touch(at + 500 * page, 10);
    touch(at + 90000 * page, 3);
    CHECK_INT(o->unmap_pages(at, 100000 * page), 0);
    s = end_of(at, 100000 * page);
    CHECK_INT(s.most_used, 13 * page);
    CHECK_INT(s.most_reserved, 100000 * page);
    CHECK_INT(s.used, 0);
    CHECK_INT(s.reserved, 0);
}

static void what_is_given_back_is_reserved_until_it_is_touched(void)
{
    char *at;
    sums s;

    memory_begin(&all);
    at = map(64, RW, 0);
    touch(at, 64);
    CHECK_INT(o->advise_pages(at + 16 * page, 32 * page - 1, MADV_DONTNEED), 0);
    touch(at + 20 * page, 4);
    CHECK_INT(o->advise_pages(at + 20 * page, page, MADV_WILLNEED), 0);
    CHECK_INT(o->unmap_pages(at + 32 * page, 32 * page), 0);
    CHECK_INT(o->unmap_pages(at, 20 * page), 0);
    CHECK_INT(o->unmap_pages(at + 22 * page, 10 * page), 0);
    s = end_of(at, 64 * page);
    CHECK_INT(s.most_used, 64 * page);
    CHECK_INT(s.most_reserved, 32 * page);
    CHECK_INT(s.used + s.reserved, 2 * page); /* the hooks may have counted the
                                               * two pages or not */
    o->unmap_pages(at + 20 * page, 2 * page);
}

static void a_reservation_that_moves_stays_one(void)
{
    char *at, *moved;
    sums s;

    memory_begin(&all);
    at = map(1000, RW, MAP_NORESERVE);
    touch(at + 10 * page, 5);
    moved = o->move_pages(at, 1000 * page, 100000 * page);
    CHECK(moved != MAP_FAILED);
    s = end_of(moved, 100000 * page);
    CHECK_INT(s.used, 0); /* the hooks have not examined the new place */
    CHECK_INT(s.reserved, 100000 * page);
    o->unmap_pages(moved, 100000 * page);
}

/* ---- what is none of it -------------------------------------------------- */

static void blocks_are_not_touched_by_calls_on_their_pages(void)
{
    char *block, *first;
    sums s;

    memory_begin(&all);
    block = o->malloc(64 * page);
    first = block + (page - (uintptr_t)block % page);
    o->advise_pages(first, 8 * page, MADV_DONTNEED);
    o->protect_pages(first, page, PROT_NONE);
    o->protect_pages(first, page, RW);
    s = end_of(block, 64 * page);
    CHECK_INT(s.used, 64 * page);
    CHECK_INT(s.most_reserved, 0);
    o->free(block);
}

static void mappings_are_all_recorded_where_blocks_are_sampled(void)
{
    const vst_memory_options sampled = {.native_allocators = true,
                                        .sample_bytes = (uint64_t)1 << 40};
    char *at;
    sums s;

    memory_begin(&sampled);
    at = map(10, RW, 0);
    o->unmap_pages(at, 5 * page);
    s = end_of(at, 10 * page);
    CHECK_INT(s.used, 5 * page);
    CHECK_INT(memory_count, 2);
    for (size_t i = 0; i < memory_count; i++)
        CHECK(memory_events[i].weight == 1);
    o->unmap_pages(at, 10 * page);
}

static void what_is_resident_is_recorded_beside(void)
{
    vst_memory_summary *summary;
    char *at;
    sums s;

    memory_begin(&all);
    at = map(2000, RW, 0);
    touch(at, 2000);
    o->unmap_pages(at, 2000 * page);
    s = end_of(at, 2000 * page);
    CHECK(s.samples >= 1);
    CHECK(s.resident > 100 * page);
    CHECK_INT(vst__trace_summarize_memory(memory_trace, NULL, &summary, NULL),
              VST_OK);
    CHECK(summary->resident.peak >= summary->resident.sampled);
    CHECK(summary->resident.sampled >= s.resident);
    CHECK_INT(summary->resident.point_count != 0, 1);
    vst__memory_summary_free(summary);
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

    if (library == NULL)
        return 2;
    o = oracle_in(library);
    page = (size_t)sysconf(_SC_PAGESIZE);
    TEST(address_space_without_access_is_no_memory);
    TEST(what_is_opened_of_it_is_memory);
    TEST(unmapping_a_part_ends_what_is_reserved_and_used_there);
    TEST(a_mapping_into_a_reservation_is_memory);
    TEST(a_failed_call_changes_nothing);
    TEST(pages_that_were_touched_are_memory);
    TEST(what_is_given_back_is_reserved_until_it_is_touched);
    TEST(a_reservation_that_moves_stays_one);
    TEST(blocks_are_not_touched_by_calls_on_their_pages);
    TEST(mappings_are_all_recorded_where_blocks_are_sampled);
    TEST(what_is_resident_is_recorded_beside);
    memory_forget();
    return checks_end();
}
