/* The slots of a bounded file, without the file: threads take, fill and seal
 * chunks in an order that a seed decides, and a model of the file knows the
 * right place of each chunk. The oldest part is always dropped first; chunks
 * never overlap; little room is free; and a busy thread gets longer chunks than
 * other threads. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "store/format.h"
#include "store/slots.h"

enum {
    KIB = 1024,
    MIB = 1024 * KIB,
    PAGE = VST_SLOT_PART_LEAST,
    PAGES_MAX = 64 * MIB / PAGE,
    OWNERS_MAX = 3000,
    NOBODY = 0,
};

typedef struct chunk {
    uint64_t place;
    uint32_t size, sequence;
    unsigned owner;
} chunk;

typedef struct model {
    vst__slots slots;
    uint64_t end;
    unsigned owners[PAGES_MAX]; /* owner of each page; a sealed chunk is its own
                                 * owner */
    chunk held[OWNERS_MAX];     /* by owner; size 0: the owner has no chunk */
    chunk *sealed;              /* in the order of sealing, from `oldest` on */
    size_t oldest, newest, capacity;
    uint64_t kept; /* bytes in sealed chunks */
    uint32_t sequence;
    vst_ticks now;
} model;

static model m;
static uint32_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)seed * below) >> 32);
}

static void begin(uint64_t max_size, uint64_t keep_ns)
{
    memset(&m, 0, sizeof m);
    vst__slots_init(&m.slots, max_size, keep_ns, 1e9);
    m.end = VST_FILE_HEADER_SIZE;
}

static void end(void)
{
    vst__slots_free(&m.slots);
    free(m.sealed);
}

/* Gives pages to an owner, or takes them back. Checks that nobody else owns
 * them. */
static void own(const chunk *c, unsigned from, unsigned to)
{
    size_t page = (size_t)(c->place - VST_FILE_HEADER_SIZE) / PAGE;
    size_t end_page = page + c->size / PAGE, wrong = 0;

    if (!CHECK(end_page <= PAGES_MAX))
        abort();
    for (; page < end_page; page++) {
        wrong += m.owners[page] != from;
        m.owners[page] = to;
    }
    CHECK_INT(wrong, 0);
}

/* Only the oldest chunk may be dropped. */
static void forget_oldest(const vst__slot_room *room)
{
    const chunk *c;

    if (!CHECK(m.oldest < m.newest))
        abort();
    c = &m.sealed[m.oldest++];
    CHECK_INT(room->place, c->place);
    CHECK_INT(room->size, c->size);
    CHECK_INT(room->words, c->size / 8);
    CHECK(vst__slots_has(&m.slots, c->place, c->sequence));
    m.kept -= c->size;
    own(c, c->owner, NOBODY);
}

static void grow(uint32_t size, vst__slot_room *room)
{
    CHECK_INT(vst__slots_prepare(&m.slots, m.end, size), VST_OK);
    *room = (vst__slot_room){.place = m.end, .size = size, .is_free = true};
    vst__slots_add(&m.slots, m.end);
    m.end += m.slots.size;
}

/* Finds room like writer_chunks.c. */
static bool find_room(uint32_t size, uint32_t least, vst__slot_room *room)
{
    vst__slot_wish wish = {.size = size,
                           .least = least,
                           .now = m.now,
                           .may_grow = vst__slots_may_grow(&m.slots, m.end)};

    for (;;) {
        switch (vst__slots_choose(&m.slots, &wish, room)) {
        case VST_SLOT_TAKE:
            CHECK_INT(vst__slots_prepare(&m.slots, room->place, room->size),
                      VST_OK);
            if (!room->is_free)
                forget_oldest(room);
            return true;
        case VST_SLOT_DROP:
            forget_oldest(room);
            vst__slots_drop_oldest(&m.slots, size);
            break;
        case VST_SLOT_GROW:
            grow(size, room);
            return true;
        case VST_SLOT_NONE:
            if (!vst__slots_stop_draining(&m.slots))
                return false;
            break;
        }
    }
}

/* Takes a chunk; returns its length, 0: there is none. */
static uint32_t take(unsigned owner, uint32_t wanted, uint32_t least)
{
    uint32_t size = vst__slots_size_for(&m.slots, wanted, least);
    vst__slot_room room;
    chunk *c;

    if (!find_room(size, least, &room))
        return 0;
    CHECK(room.size >= least && room.size <= m.slots.size);
    c = &m.held[owner];
    *c = (chunk){room.place, room.size, m.sequence++, owner};
    vst__slots_take(&m.slots, &room, c->sequence, m.now);
    CHECK(vst__slots_has(&m.slots, c->place, c->sequence));
    own(c, NOBODY, owner);
    return room.size;
}

static bool seal(unsigned owner)
{
    chunk *c = &m.held[owner];
    bool slow;

    if (c->size == 0)
        return false;
    slow = vst__slots_seal(&m.slots, c->place, m.now, c->size / 8, false);
    if (m.newest == m.capacity) {
        m.capacity = m.capacity ? m.capacity * 2 : 1024;
        m.sealed = realloc(m.sealed, m.capacity * sizeof *m.sealed);
        if (m.sealed == NULL)
            abort();
    }
    m.sealed[m.newest++] = *c;
    m.kept += c->size;
    *c = (chunk){.size = 0};
    return slow;
}

/* Returns the bytes that nobody owns. */
static uint64_t check_free(void)
{
    size_t pages = (size_t)(m.end - VST_FILE_HEADER_SIZE) / PAGE, free = 0;

    for (size_t page = 0; page < pages; page++)
        free += m.owners[page] == NOBODY;
    /* A page that is being drained is in no list. */
    if (m.slots.draining == 0)
        CHECK_INT(m.slots.free_size, free * PAGE);
    else
        CHECK(m.slots.free_size <= free * PAGE);
    return free * PAGE;
}

/* Records `bytes` bytes as a thread without pauses; returns the average size of
 * its chunks. */
static uint32_t record_busily(unsigned owner, uint64_t bytes, uint32_t wanted)
{
    uint64_t got = 0, chunks = 0;

    while (got < bytes) {
        seal(owner);
        got += take(owner, wanted, 200);
        chunks++;
    }
    return (uint32_t)(got / chunks);
}

static uint64_t kept_of(unsigned owner)
{
    uint64_t bytes = 0;

    for (size_t i = m.oldest; i < m.newest; i++)
        bytes += m.sealed[i].owner == owner ? m.sealed[i].size : 0;
    return bytes;
}

/* ---- the order ---------------------------------------------------------- */

static void parts_are_dropped_in_the_order_in_which_they_were_sealed(void)
{
    const uint64_t bounds[] = {MIB, 3 * MIB, 16 * MIB};

    for (seed = 1; seed < 40; seed++) {
        unsigned owners = 2 + seed * 7 % 150;
        uint64_t most;

        begin(bounds[seed % 3], 0);
        for (int i = 0; i < 4000; i++) {
            /* Some owners are much busier than others. */
            unsigned owner = 1 + draw(1 + draw(owners));
            uint32_t wanted = (uint32_t)PAGE << draw(9);

            seal(owner);
            if (draw(8) != 0)
                take(owner, wanted, draw(8) == 0 ? 9000 : 200);
        }
        most = 3 + m.slots.count / 16;
        CHECK(m.oldest > 0);
        CHECK(check_free() <= most * m.slots.size);
        for (unsigned owner = 1; owner <= owners; owner++)
            seal(owner);
        CHECK_INT(m.slots.in_use_size, 0);
        CHECK_INT(m.slots.busy, 0);
        check_free();
        end();
    }
}

static void what_is_not_due_stays_and_the_file_grows(void)
{
    begin(0, 1000);
    for (int i = 0; i < 40; i++, m.now += 100) {
        seal(1);
        CHECK(take(1, MIB, 200) != 0);
        /* Ten chunks are younger than 1000 ticks, and one is being written. */
        CHECK_INT(m.newest - m.oldest, i < 12 ? i : 11);
    }
    CHECK(m.end <= VST_FILE_HEADER_SIZE + 13 * (uint64_t)m.slots.size);
    end();
}

/* ---- how much, and how long --------------------------------------------- */

static void all_that_was_halved_becomes_whole_again(void)
{
    enum { PAGES = 1000 };

    begin(4 * MIB, 0);
    for (unsigned owner = 1; owner <= PAGES; owner++)
        take(owner, PAGE, 200);
    /* 37 and 1000 have no common divisor: every chunk is sealed, but not in the
     * order of places. */
    for (unsigned owner = 1; owner <= PAGES; owner++)
        seal(1 + owner * 37 % PAGES);
    CHECK_INT(m.slots.in_use_size, 0);
    for (int i = 0; i < 30; i++) {
        record_busily(1, 4 * MIB, MIB);
        CHECK(m.kept + 8 * (uint64_t)m.slots.size > 4 * MIB);
    }
    CHECK_INT(record_busily(1, 4 * MIB, MIB), m.slots.size);
    CHECK_INT(m.slots.draining, 0);
    check_free();
    end();
}

static void a_thread_beside_many_that_wait_has_nearly_all_of_the_file(void)
{
    enum { WAITING = 2000 };

    begin(64 * MIB, 0);
    for (unsigned owner = 2; owner < 2 + WAITING; owner++)
        CHECK_INT(take(owner, PAGE, 200), PAGE);
    record_busily(1, 128 * MIB, MIB);
    CHECK_INT(record_busily(1, 128 * MIB, MIB), m.slots.size);
    CHECK(kept_of(1) + WAITING * PAGE + 3 * MIB > 64 * MIB);
    /* Each waiting owner continues at some time. */
    for (unsigned owner = 2; owner < 2 + WAITING; owner++) {
        seal(owner);
        CHECK(take(owner, PAGE, 200) != 0);
        record_busily(1, MIB / 4, MIB);
    }
    CHECK(kept_of(1) + WAITING * PAGE + 5 * MIB > 64 * MIB);
    CHECK(record_busily(1, 128 * MIB, MIB) > 64 * KIB);
    end();
}

/* Each thread asks for a chunk twice as long as before, unless filling that
 * chunk took long. */
static void slow_threads_do_not_hold_what_fast_ones_could_fill(void)
{
    enum { FAST = 4, ALL = 270 };
    static uint32_t wanted[ALL + 1];
    static uint64_t full_at[ALL + 1];

    seed = 7;
    begin(64 * MIB, 0);
    for (unsigned owner = 1; owner <= ALL; owner++) {
        wanted[owner] = PAGE;
        full_at[owner] = draw(1000);
    }
    for (int i = 0; i < 20000; i++) {
        unsigned next = 1;
        uint32_t before, size;
        for (unsigned owner = 2; owner <= ALL; owner++)
            if (full_at[owner] < full_at[next])
                next = owner;
        before = m.held[next].size;
        if (seal(next))
            wanted[next] = before;
        size = take(next, wanted[next], 200);
        CHECK(size != 0);
        if (wanted[next] < MIB)
            wanted[next] *= 2;
        full_at[next] +=
            (uint64_t)size * (next <= FAST ? 1 : 1000) * (50 + draw(100)) / 100;
    }
    CHECK(m.kept > 56 * MIB);
    end();
}

/* Fills the chunk of an owner with `bytes` bytes, and continues in a next
 * chunk, which is twice as long unless filling the chunk took long. */
static void record_bytes(unsigned owner, uint64_t *bytes, uint32_t *wanted)
{
    while (*bytes >= m.held[owner].size) {
        uint32_t before = m.held[owner].size;

        *bytes -= before;
        if (seal(owner))
            *wanted = before;
        take(owner, *wanted, 200);
        if (*wanted < 256 * KIB)
            *wanted *= 2;
    }
}

/* One thread is busy; twenty take longer than the kept time to fill 256 KiB. */
static void slow_threads_do_not_make_a_file_grow_that_time_bounds(void)
{
    enum { SLOW = 20, KEEP = 60000, STEP = 10, BUSY_RATE = 200 };
    static uint64_t bytes[SLOW + 2];
    static uint32_t wanted[SLOW + 2];
    const uint64_t needed = (uint64_t)KEEP * (BUSY_RATE + SLOW);

    begin(0, KEEP);
    for (unsigned owner = 1; owner <= SLOW + 1; owner++)
        wanted[owner] = PAGE;
    for (m.now = 1; m.now < (vst_ticks)40 * KEEP; m.now += STEP)
        for (unsigned owner = 1; owner <= SLOW + 1; owner++) {
            bytes[owner] += STEP * (owner == 1 ? (uint64_t)BUSY_RATE : 1);
            record_bytes(owner, &bytes[owner], &wanted[owner]);
        }
    CHECK(m.end > needed);
    CHECK(m.end < needed + needed / 4);
    end();
}

static void as_many_get_a_page_as_there_are_pages(void)
{
    const unsigned pages = 63 * 4; /* the header has room for 63 slots */
    unsigned taken = 0;

    begin(MIB, 0);
    /* Chunks are sealed in random order, so a request for more than a page must
     * drain slots. */
    for (unsigned owner = 1; owner <= pages; owner++)
        take(owner, PAGE, 200);
    for (unsigned owner = 1; owner <= pages; owner++)
        seal(1 + owner * 37 % pages);
    take(1, MIB, 200);
    CHECK(m.slots.draining > 0);
    seal(1);
    while (take(1 + taken, PAGE, 200) != 0)
        taken++;
    CHECK_INT(taken, pages);
    CHECK_INT(check_free(), 0);
    end();
}

/* Every other page is in use, so no request for two pages can succeed. */
static void what_cannot_be_had_drops_little_however_often_it_is_asked_for(void)
{
    const unsigned pages = 63 * 4;
    uint64_t kept;

    begin(MIB, 0);
    for (unsigned owner = 1; owner <= pages; owner++)
        take(owner, PAGE, 200);
    for (size_t page = 0; page < pages; page += 2)
        seal(m.owners[page]);
    kept = m.kept;
    for (int i = 0; i < 100; i++)
        CHECK_INT(take(pages + 1, 9000, 9000), 0);
    CHECK(m.kept + m.slots.size >= kept);
    end();
}

static void without_storage_for_what_is_free_the_oldest_is_taken(void)
{
    const vst__slot_wish wish = {
        .size = 8 * KIB, .least = 200, .may_grow = true, .without_free = true};
    vst__slot_room room;
    uint64_t place;

    begin(MIB, 0);
    take(1, PAGE, 200);
    CHECK_INT(vst__slots_choose(&m.slots, &wish, &room), VST_SLOT_NONE);
    place = m.held[1].place;
    seal(1);
    CHECK_INT(vst__slots_choose(&m.slots, &wish, &room), VST_SLOT_TAKE);
    CHECK_INT(room.place, place);
    CHECK_INT(room.size, PAGE);
    CHECK(!room.is_free);
    end();
}

int main(void)
{
    TEST(parts_are_dropped_in_the_order_in_which_they_were_sealed);
    TEST(what_is_not_due_stays_and_the_file_grows);
    TEST(all_that_was_halved_becomes_whole_again);
    TEST(a_thread_beside_many_that_wait_has_nearly_all_of_the_file);
    TEST(slow_threads_do_not_hold_what_fast_ones_could_fill);
    TEST(slow_threads_do_not_make_a_file_grow_that_time_bounds);
    TEST(as_many_get_a_page_as_there_are_pages);
    TEST(what_cannot_be_had_drops_little_however_often_it_is_asked_for);
    TEST(without_storage_for_what_is_free_the_oldest_is_taken);
    return checks_end();
}
