/* Finds the number of a thread by its key, for hooks that take no lock (see
 * lock_waits.h). The table has a fixed size; a key is in one of the few places
 * behind its hash. A thread that finds no free place is not named as a holder
 * of a lock. */
#include "record/lock_waits.h"

#include "base/at_fork.h"

enum { PLACES_BITS = 12, PLACES = 1 << PLACES_BITS, PROBES = 16 };

/* Written under the recorder's lock. A place's number is stored before its key,
 * with release; vst__thread_number() loads the key with acquire. A reader that
 * meets a place while it is given to another thread finds a different key when
 * it looks the second time. */
static struct {
    uintptr_t key; /* 0 if free */
    uint32_t number;
} places[PLACES];

static size_t first_place(uintptr_t key)
{
    return (size_t)((uint64_t)key * 0x9e3779b97f4a7c15u >> (64 - PLACES_BITS));
}

/* Places that were given a key since all were cleared; there may be others if
 * the list is full. Under the recorder's lock. */
static VST_AT_FORK uint16_t given[64];
static VST_AT_FORK size_t given_count;

static bool are_listed(void)
{
    return given_count < sizeof given / sizeof *given;
}

/* Does not touch the pages of places that nobody used. */
void vst__thread_numbers_clear(void)
{
    for (size_t i = 0; i < (are_listed() ? given_count : PLACES); i++)
        __atomic_store_n(&places[are_listed() ? given[i] : i].key, 0,
                         __ATOMIC_RELAXED);
    given_count = 0;
}

void vst__thread_numbers_remove(const vst_recording *recording, uint32_t number)
{
    for (size_t i = 0; recording == vst__recording_now && i < PLACES; i++)
        if (places[i].key != 0 && places[i].number == number)
            __atomic_store_n(&places[i].key, 0, __ATOMIC_RELAXED);
}

/* Returns the key's place, else a free place, else PLACES. */
static size_t find_place(uintptr_t key)
{
    size_t first = first_place(key), found = PLACES;

    for (size_t i = 0; i < PROBES; i++) {
        size_t at = (first + i) % PLACES;

        if (places[at].key == key)
            return at;
        if (places[at].key == 0 && found == PLACES)
            found = at;
    }
    return found;
}

void vst__thread_numbers_add(uintptr_t key, uint32_t number)
{
    size_t at = key != 0 ? find_place(key) : PLACES;

    if (at == PLACES)
        return;
    if (are_listed())
        given[given_count++] = (uint16_t)at;
    __atomic_store_n(&places[at].number, number, __ATOMIC_RELAXED);
    __atomic_store_n(&places[at].key, key, __ATOMIC_RELEASE);
}

uint32_t vst__thread_number(uintptr_t key)
{
    size_t first = first_place(key);

    for (size_t i = 0; key != 0 && i < PROBES; i++) {
        size_t at = (first + i) % PLACES;
        uint32_t number;

        if (__atomic_load_n(&places[at].key, __ATOMIC_ACQUIRE) != key)
            continue;
        number = __atomic_load_n(&places[at].number, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&places[at].key, __ATOMIC_RELAXED) == key)
            return number;
    }
    return 0;
}

void vst__recording_key_thread(vst_recording *recording, uint64_t handle,
                               uintptr_t key)
{
    vst__recorder_take();
    for (const vst__thread *t = recording->threads;
         t != NULL && vst__recording_now == recording; t = t->next)
        if (t->handle == handle) {
            vst__thread_numbers_add(key, t->number);
            break;
        }
    vst__recorder_give();
}
