/* Sampling: decides which allocations are recorded, and keeps their addresses,
 * so that only their frees are recorded. Any thread, inside any allocator:
 * memory comes from the system itself, and locks are held for a few loads and
 * stores. A free first looks into a table of small counters, without a lock. A
 * thread that frees an address got it from the thread that allocated it, and so
 * sees the counter that this thread incremented. */
#include <sched.h>
#include <string.h>

#include "memory/funnel.h"
#include "os/os.h"

enum {
    FILTER_BITS = 18,
    SHARD_BITS = 6,
    SHARDS = 1 << SHARD_BITS,
    FIRST_CAPACITY = 512,
    FULL = UINT8_MAX, /* a counter with this value never changes again */
};

/* A hash table with linear probing; 0 means empty. */
typedef struct shard {
    atomic_flag lock;
    uintptr_t *slots;       /* guarded by the lock */
    size_t capacity, count; /* guarded by the lock */
} shard;

static shard shards[SHARDS];
/* Changed with the lock of its shard held; the low bits of an index are the
 * shard. */
static atomic_uchar filter[1 << FILTER_BITS];

uint32_t vst__sample_number;
static double mean_gap;      /* constant while memory is traced */
static uint64_t first_seed;  /* constant while memory is traced */
static atomic_uint samplers; /* how many threads drew a seed */

/* ---- gaps ---------------------------------------------------------------- */

/* Returns the natural logarithm of x, 0 < x <= 1, exact to the last digits:
 * from its exponent and the series of atanh. */
static double natural_log(double x)
{
    uint64_t bits;
    double mantissa, z, square, term, sum = 0;
    int exponent;

    memcpy(&bits, &x, sizeof bits);
    exponent = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
    memcpy(&mantissa, &bits, sizeof bits); /* now 1 <= mantissa < 2 */
    if (mantissa > 1.4142135623730951) {
        mantissa /= 2;
        exponent++;
    }
    term = z = (mantissa - 1) / (mantissa + 1);
    square = z * z;
    for (int i = 1; i < 24; i += 2) {
        sum += term / i;
        term *= square;
    }
    return 2 * sum + exponent * 0.69314718055994530942;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

static uint64_t sample_spread(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

/* Draws the next gap, rounded up: a count of whole bytes reaches the rounded
 * gap exactly when it reaches the real one. */
void vst__sample_draw(vst__sampler *sampler)
{
    double chance, gap;

    if (sampler->sampling != vst__sample_number) {
        uint64_t number = atomic_fetch_add(&samplers, 1) + 1;
        sampler->sampling = vst__sample_number;
        sampler->random =
            sample_spread(first_seed + number * 0x9e3779b97f4a7c15u);
        if (!sampler->random)
            sampler->random = 1;
    }
    chance = (double)((next_random(&sampler->random) >> 11) + 1) * 0x1p-53;
    gap = -natural_log(chance) * mean_gap;
    sampler->until = gap < 0x1p62 ? (uint64_t)gap + 1 : (uint64_t)1 << 62;
}

/* ---- the set ------------------------------------------------------------- */

static uint64_t sample_hash_of(uintptr_t address)
{
    return (uint64_t)address * 0x9e3779b97f4a7c15u;
}

static void lock_shard(shard *s)
{
    while (atomic_flag_test_and_set_explicit(&s->lock, memory_order_acquire))
        sched_yield();
}

static void unlock_shard(shard *s)
{
    atomic_flag_clear_explicit(&s->lock, memory_order_release);
}

static size_t sample_place_of(uintptr_t address, size_t capacity)
{
    return (size_t)(sample_hash_of(address) >> 8) & (capacity - 1);
}

static void sample_put(uintptr_t *slots, size_t capacity, uintptr_t address)
{
    size_t i = sample_place_of(address, capacity);

    while (slots[i])
        i = (i + 1) & (capacity - 1);
    slots[i] = address;
}

static bool sample_has_room(shard *s)
{
    size_t capacity;
    uintptr_t *slots;

    if (s->count * 2 < s->capacity)
        return true;
    capacity = s->capacity ? s->capacity * 2 : FIRST_CAPACITY;
    slots = vst__os_pages(capacity * sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < s->capacity; i++)
        if (s->slots[i])
            sample_put(slots, capacity, s->slots[i]);
    if (s->slots != NULL)
        vst__os_unmap(s->slots, s->capacity * sizeof *s->slots);
    s->slots = slots;
    s->capacity = capacity;
    return true;
}

/* Removes an entry and moves the entries behind it up, so that no search ends
 * at the hole. */
static void sample_take_out(shard *s, size_t hole)
{
    size_t mask = s->capacity - 1;

    for (size_t i = (hole + 1) & mask; s->slots[i]; i = (i + 1) & mask) {
        size_t home = sample_place_of(s->slots[i], s->capacity);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            s->slots[hole] = s->slots[i];
            hole = i;
        }
    }
    s->slots[hole] = 0;
    s->count--;
}

bool vst__sample_add(uintptr_t address)
{
    size_t place = (size_t)(sample_hash_of(address) >> (64 - FILTER_BITS));
    shard *s = &shards[place & (SHARDS - 1)];
    bool kept;

    lock_shard(s);
    kept = sample_has_room(s);
    if (kept) {
        uint8_t count =
            atomic_load_explicit(&filter[place], memory_order_relaxed);
        sample_put(s->slots, s->capacity, address);
        s->count++;
        if (count != FULL)
            atomic_store_explicit(&filter[place], (uint8_t)(count + 1),
                                  memory_order_relaxed);
    }
    unlock_shard(s);
    return kept;
}

bool vst__sample_remove(uintptr_t address)
{
    size_t place = (size_t)(sample_hash_of(address) >> (64 - FILTER_BITS));
    shard *s = &shards[place & (SHARDS - 1)];
    size_t i;
    bool found;

    if (atomic_load_explicit(&filter[place], memory_order_relaxed) == 0)
        return false;
    lock_shard(s);
    i = s->capacity ? sample_place_of(address, s->capacity) : 0;
    while (s->capacity && s->slots[i] && s->slots[i] != address)
        i = (i + 1) & (s->capacity - 1);
    found = s->capacity && s->slots[i] == address;
    if (found) {
        uint8_t count =
            atomic_load_explicit(&filter[place], memory_order_relaxed);
        sample_take_out(s, i);
        if (count != FULL)
            atomic_store_explicit(&filter[place], (uint8_t)(count - 1),
                                  memory_order_relaxed);
    }
    unlock_shard(s);
    return found;
}

void vst__sample_begin(uint64_t bytes, uint64_t seed)
{
    mean_gap = (double)bytes;
    first_seed = seed;
    atomic_store(&samplers, 0);
    vst__sample_number++;
    if (vst__sample_number == 0)
        vst__sample_number = 1;
    for (size_t i = 0; i < SHARDS; i++) {
        lock_shard(&shards[i]);
        if (shards[i].slots != NULL)
            vst__os_unmap(shards[i].slots,
                          shards[i].capacity * sizeof(uintptr_t));
        shards[i].slots = NULL;
        shards[i].capacity = shards[i].count = 0;
        for (size_t place = i; place < 1 << FILTER_BITS && bytes;
             place += SHARDS)
            atomic_store_explicit(&filter[place], 0, memory_order_relaxed);
        unlock_shard(&shards[i]);
    }
}

/* The child does not have the threads that held locks. A shard that was being
 * changed is emptied before anybody reads it. */
void vst__sample_after_fork(void)
{
    for (size_t i = 0; i < SHARDS; i++)
        atomic_flag_clear(&shards[i].lock);
}
