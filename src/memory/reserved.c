/* The table of reserved.h: ranges sorted by address, without overlaps. Calls
 * that map, unmap and change mappings are rare, so the table is an array under
 * a lock; while the lock is held, only our own heap is called. Pages are looked
 * at without the lock. If another thread changes them meanwhile, at most a page
 * too many is reported as resident; a reader of the trace leaves it out if
 * nothing is reserved there. */
#include "memory/reserved.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/heap.h"
#include "os/os.h"

enum {
    /* limit for `count`; at the limit, pages of unknown use stay reserved */
    RANGES_MAX = 65536,
    PAGES_A_LOOK = 4096,
    /* limit for the runs of one look; the next look finds the other runs */
    RUNS_A_LOOK = 4096,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static vst__range *ranges;     /* guarded by the lock */
static size_t count, capacity; /* guarded by the lock */
static atomic_size_t known;    /* a copy of count; relaxed: a hint */

bool vst__reserved_any(void)
{
    return atomic_load_explicit(&known, memory_order_relaxed) != 0;
}

uintptr_t vst__reserved_end(uintptr_t start, size_t size)
{
    uintptr_t page = vst__os_page_size();
    uintptr_t end = start + size;

    if (end < start || end > UINTPTR_MAX - page)
        return UINTPTR_MAX / page * page;
    return (end + page - 1) / page * page;
}

/* ---- with the lock held -------------------------------------------------- */

/* Returns the index of the first range that ends behind an address. */
static size_t reserved_find(uintptr_t address)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ranges[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool reserved_insert(size_t index, const vst__range *range)
{
    if (count == capacity) {
        size_t more = capacity ? capacity * 2 : 64;
        vst__range *moved = more <= RANGES_MAX
                                ? vst__realloc(ranges, more * sizeof *moved)
                                : NULL;
        if (moved == NULL)
            return false;
        ranges = moved;
        capacity = more;
    }
    memmove(ranges + index + 1, ranges + index,
            (count - index) * sizeof *ranges);
    ranges[index] = *range;
    count++;
    return true;
}

/* Removes a range. If there is no memory to keep the part behind it, that part
 * is removed too. */
static void reserved_take_out(uintptr_t start, uintptr_t end)
{
    size_t index = reserved_find(start), last;

    if (index < count && ranges[index].start < start) {
        vst__range rest = ranges[index];

        ranges[index++].end = start;
        rest.start = end;
        if (rest.end > end && reserved_insert(index, &rest))
            return;
    }
    for (last = index; last < count && ranges[last].end <= end; last++)
        ;
    if (last != index) /* if the two are equal, there may be no table yet */
        memmove(ranges + index, ranges + last, (count - last) * sizeof *ranges);
    count -= last - index;
    if (index < count && ranges[index].start < end)
        ranges[index].start = end;
}

static void reserved_give(void)
{
    atomic_store_explicit(&known, count, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}

/* ---- reserved.h ---------------------------------------------------------- */

void vst__reserved_add(uintptr_t start, size_t size, bool is_open)
{
    const vst__range range = {start, vst__reserved_end(start, size), is_open};

    if (range.end <= start)
        return;
    pthread_mutex_lock(&lock);
    reserved_take_out(start, range.end);
    reserved_insert(reserved_find(start), &range);
    reserved_give();
}

void vst__reserved_remove(uintptr_t start, size_t size)
{
    uintptr_t end = vst__reserved_end(start, size);

    if (end <= start)
        return;
    pthread_mutex_lock(&lock);
    reserved_take_out(start, end);
    reserved_give();
}

bool vst__reserved_find(uintptr_t start, uintptr_t end, vst__range *part)
{
    bool found;
    size_t index;

    pthread_mutex_lock(&lock);
    index = reserved_find(start);
    found = start < end && index < count && ranges[index].start < end;
    if (found)
        *part = ranges[index];
    pthread_mutex_unlock(&lock);
    if (!found)
        return false;
    if (part->start < start)
        part->start = start;
    if (part->end > end)
        part->end = end;
    return true;
}

/* Reports the runs of resident pages. Returns how many runs there were. */
static size_t reserved_report_runs(uintptr_t start, const unsigned char *pages,
                                   size_t page_count,
                                   void (*touched)(uintptr_t start,
                                                   size_t size))
{
    size_t page = vst__os_page_size(), runs = 0;

    for (size_t i = 0, end; i < page_count; i = end) {
        bool is_resident = pages[i] & 1;

        for (end = i + 1; end < page_count && (pages[end] & 1) == is_resident;
             end++)
            ;
        if (!is_resident)
            continue;
        vst__reserved_remove(start + i * page, (end - i) * page);
        touched(start + i * page, (end - i) * page);
        runs++;
    }
    return runs;
}

void vst__reserved_look(uintptr_t start, uintptr_t end,
                        void (*touched)(uintptr_t start, size_t size))
{
    unsigned char pages[PAGES_A_LOOK];
    size_t page = vst__os_page_size(), runs = 0;
    vst__range part;

    for (; runs < RUNS_A_LOOK && vst__reserved_find(start, end, &part);
         start = part.end) {
        if (!part.is_open)
            continue;
        if (part.end - part.start > PAGES_A_LOOK * page)
            part.end = part.start + PAGES_A_LOOK * page;
        if (vst__os_pages_resident(part.start, part.end - part.start, pages))
            runs += reserved_report_runs(
                part.start, pages, (part.end - part.start) / page, touched);
    }
}

void vst__reserved_forget(void)
{
    pthread_mutex_lock(&lock);
    vst__free(ranges);
    ranges = NULL;
    count = capacity = 0;
    reserved_give();
}

/* In the child, the table may be in the middle of a change, so it is
 * abandoned. */
void vst__reserved_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    ranges = NULL;
    count = capacity = 0;
    atomic_store_explicit(&known, 0, memory_order_relaxed);
}
