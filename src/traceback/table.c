/* All tracebacks, each once: a table by their frames, the counts of references,
 * and the lists of dead tracebacks. Any thread. One lock guards everything. A
 * caller that releases a traceback may hold any lock of the program, so nothing
 * is called while the table's lock is held: no allocator, no unwinder.
 *
 * The last reference is dropped with the lock held, and the traceback goes onto
 * a list of the dead. The table still has it, so an equal capture may revive
 * it, also with the lock held. A thread that can free dead tracebacks takes
 * them out of table and list with the lock held. From then on no other thread
 * can reach them. */
#include "traceback/traceback.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/at_fork.h"
#include "os/os.h"
#include "traceback/language.h"

enum { SLOTS_FIRST = 256 };

static VST_AT_FORK pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by the lock: open addressing, a power of two of slots. */
static vst_traceback **slots;
static size_t slots_count, used;

/* Ends a list, so that its last traceback has a `next` too. */
static vst_traceback no_more;
/* Guarded by the lock; read without it only as a hint. */
static _Atomic(vst_traceback *) dead_language = &no_more;
static _Atomic(vst_traceback *) dead_native = &no_more;

/* ---- fork ---------------------------------------------------------------- */

static void table_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void table_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
    vst__os_fork_hooks(table_before_fork, table_after_fork, table_after_fork);
}

/* ---- the hash ------------------------------------------------------------ */

static inline uint64_t table_mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Rotates, because addresses of code objects leave the highest bits and the
 * lowest four unused. */
static inline uint64_t frame_word(const vst__frames *f, size_t i)
{
    uint64_t number = f->instructions[i];

    return (uint64_t)(uintptr_t)f->codes[i] ^ (number << 44 | number >> 20);
}

static const uint64_t odd[4] = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f,
                                0x165667b19e3779f9, 0xd6e8feb86659fd93};

/* Hashes in four independent lanes. Never returns 0. */
static uint32_t table_hash_of(const vst__frames *f)
{
    uint64_t a = odd[0], b = odd[1], c = odd[2], d = odd[3], word;
    size_t i = 0;

    for (; i + 8 <= f->language; i += 8) {
        a = table_mix(frame_word(f, i) ^ a, frame_word(f, i + 1) ^ odd[0]);
        b = table_mix(frame_word(f, i + 2) ^ b, frame_word(f, i + 3) ^ odd[1]);
        c = table_mix(frame_word(f, i + 4) ^ c, frame_word(f, i + 5) ^ odd[2]);
        d = table_mix(frame_word(f, i + 6) ^ d, frame_word(f, i + 7) ^ odd[3]);
    }
    for (; i < f->language; i++) {
        word = table_mix(frame_word(f, i) ^ a, odd[1]);
        a = b, b = c, c = d, d = word;
    }
    for (i = 0; i + 4 <= f->native; i += 4) {
        a = table_mix(f->addresses[i] ^ a, odd[0]);
        b = table_mix(f->addresses[i + 1] ^ b, odd[1]);
        c = table_mix(f->addresses[i + 2] ^ c, odd[2]);
        d = table_mix(f->addresses[i + 3] ^ d, odd[3]);
    }
    for (; i < f->native; i++) {
        word = table_mix(f->addresses[i] ^ a, odd[2]);
        a = b, b = c, c = d, d = word;
    }
    a = table_mix(a ^ odd[1], b ^ odd[2]) ^ table_mix(c ^ odd[3], d ^ odd[0]);
    return (uint32_t)(a >> 32) | 1;
}

/* ---- the table; call all of this with the lock held ---------------------- */

/* The lowest bit of a hash is always 1, so the other bits choose the slot. */
static inline size_t table_slot_of(uint32_t hash)
{
    return (hash >> 1) & (slots_count - 1);
}

static inline bool is_equal(const vst_traceback *t, const vst__frames *f)
{
    return t->language == f->language && t->native == f->native &&
           (f->language == 0 ||
            (memcmp(vst__traceback_codes(t), f->codes,
                    f->language * sizeof *f->codes) == 0 &&
             memcmp(vst__traceback_instructions(t), f->instructions,
                    f->language * sizeof *f->instructions) == 0)) &&
           (f->native == 0 || memcmp(t->words, f->addresses,
                                     f->native * sizeof *f->addresses) == 0);
}

/* Returns the traceback with a reference for the caller; NULL if there is
 * none. */
static vst_traceback *table_find(const vst__frames *frames, uint32_t hash)
{
    if (slots_count == 0)
        return NULL;
    for (size_t i = table_slot_of(hash); slots[i] != NULL;
         i = (i + 1) & (slots_count - 1)) {
        vst_traceback *t = slots[i];
        if (t->hash == hash && is_equal(t, frames)) {
            atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed);
            return t;
        }
    }
    return NULL;
}

static void table_insert(vst_traceback *traceback)
{
    size_t i = table_slot_of(traceback->hash);

    while (slots[i] != NULL)
        i = (i + 1) & (slots_count - 1);
    slots[i] = traceback;
}

static bool table_has_room(void)
{
    return used + 1 <= slots_count / 4 * 3;
}

/* Removes a traceback, and moves entries behind it up, so that no search ends
 * at the empty slot. */
static void table_take_out(vst_traceback *traceback)
{
    size_t mask = slots_count - 1, hole = table_slot_of(traceback->hash), i;

    while (slots[hole] != traceback)
        hole = (hole + 1) & mask;
    for (i = (hole + 1) & mask; slots[i] != NULL; i = (i + 1) & mask) {
        size_t home = table_slot_of(slots[i]->hash);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            slots[hole] = slots[i];
            hole = i;
        }
    }
    slots[hole] = NULL;
    traceback->hash = 0;
    used--;
}

static bool is_any_dead(bool entered)
{
    return (entered && atomic_load_explicit(
                           &dead_language, memory_order_relaxed) != &no_more) ||
           atomic_load_explicit(&dead_native, memory_order_relaxed) != &no_more;
}

/* Puts the tracebacks of a list that are still dead in front of `taken`. */
static vst_traceback *take_dead(_Atomic(vst_traceback *) *list,
                                vst_traceback *taken)
{
    vst_traceback *t = atomic_load_explicit(list, memory_order_relaxed);

    atomic_store_explicit(list, &no_more, memory_order_relaxed);
    while (t != &no_more) {
        vst_traceback *next = t->next_dead;

        t->next_dead = NULL;
        if (atomic_load_explicit(&t->references, memory_order_relaxed) == 0) {
            if (t->hash != 0)
                table_take_out(t);
            t->next_dead = taken;
            taken = t;
        }
        t = next;
    }
    return taken;
}

/* ---- called without the lock --------------------------------------------- */

/* Doubles the slots, unless another thread already did. */
static bool table_grow(size_t from)
{
    size_t count = from == 0 ? SLOTS_FIRST : 2 * from;
    vst_traceback **larger = calloc(count, sizeof(vst_traceback *));
    vst_traceback **old;

    if (larger == NULL)
        return false;
    pthread_mutex_lock(&lock);
    if (slots_count != from) {
        old = larger;
    } else {
        old = slots;
        slots = larger;
        slots_count = count;
        for (size_t i = 0; i < from; i++)
            if (old[i] != NULL)
                table_insert(old[i]);
    }
    pthread_mutex_unlock(&lock);
    free(old);
    return true;
}

static vst_traceback *table_make(const vst__frames *f, uint32_t hash)
{
    size_t size = offsetof(vst_traceback, words) +
                  f->native * sizeof *f->addresses +
                  f->language * (sizeof *f->codes + sizeof *f->instructions);
    vst_traceback *t = malloc(size > sizeof *t ? size : sizeof *t);

    if (t == NULL)
        return NULL;
    atomic_init(&t->references, 1);
    t->hash = hash;
    t->language = (uint32_t)f->language;
    t->native = (uint32_t)f->native;
    t->next_dead = NULL;
    t->user = NULL;
    if (f->native != 0)
        memcpy(t->words, f->addresses, f->native * sizeof *f->addresses);
    if (f->language != 0) {
        memcpy(vst__traceback_codes(t), f->codes,
               f->language * sizeof *f->codes);
        memcpy(vst__traceback_instructions(t), f->instructions,
               f->language * sizeof *f->instructions);
        vst__unwinder_installed()->retain(f->codes, f->language);
    }
    return t;
}

static void table_destroy(vst_traceback *traceback)
{
    if (traceback->language != 0)
        vst__unwinder_installed()->release(vst__traceback_codes(traceback),
                                           traceback->language);
    free(traceback);
}

/* Dropping a reference may run code that captures and releases tracebacks. */
static size_t destroy_all(vst_traceback *taken)
{
    size_t count = 0;

    while (taken != NULL) {
        vst_traceback *next = taken->next_dead;
        table_destroy(taken);
        taken = next;
        count++;
    }
    return count;
}

__attribute__((noinline)) static vst_traceback *add(const vst__frames *frames,
                                                    uint32_t hash)
{
    vst_traceback *made = table_make(frames, hash), *found = NULL;
    bool is_added = false, has_failed = made == NULL;

    while (found == NULL && !is_added && !has_failed) {
        size_t count;

        pthread_mutex_lock(&lock);
        count = slots_count;
        found = table_find(frames, hash);
        is_added = found == NULL && table_has_room();
        if (is_added) {
            table_insert(made);
            used++;
        }
        pthread_mutex_unlock(&lock);
        if (found == NULL && !is_added)
            has_failed = !table_grow(count);
    }
    if (is_added)
        return made;
    if (made != NULL)
        table_destroy(made);
    return found;
}

vst_traceback *vst__table_intern(const vst__frames *frames, bool entered)
{
    uint32_t hash = table_hash_of(frames);
    vst_traceback *found, *dead = NULL;

    pthread_mutex_lock(&lock);
    found = table_find(frames, hash);
    if (is_any_dead(entered)) {
        dead = take_dead(&dead_native, NULL);
        if (entered)
            dead = take_dead(&dead_language, dead);
    }
    pthread_mutex_unlock(&lock);
    if (found == NULL)
        found = add(frames, hash);
    if (dead != NULL)
        destroy_all(dead);
    return found;
}

bool vst__table_remove(vst_traceback *traceback)
{
    bool is_alone;

    pthread_mutex_lock(&lock);
    is_alone = vst__traceback_is_sole(traceback);
    if (is_alone && traceback->hash != 0)
        table_take_out(traceback);
    pthread_mutex_unlock(&lock);
    return is_alone;
}

size_t vst__table_count(void)
{
    size_t count;

    pthread_mutex_lock(&lock);
    count = used;
    pthread_mutex_unlock(&lock);
    return count;
}

/* ---- references ---------------------------------------------------------- */

vst_traceback *vst_traceback_retain(vst_traceback *traceback)
{
    atomic_fetch_add_explicit(&traceback->references, 1, memory_order_relaxed);
    return traceback;
}

/* Drops the last reference with the lock held, so that nobody can free the
 * traceback before it is on the list. */
void vst_traceback_release(vst_traceback *t)
{
    unsigned count;

    if (t == NULL)
        return;
    count = atomic_load_explicit(&t->references, memory_order_relaxed);
    while (count > 1)
        if (atomic_compare_exchange_weak_explicit(
                &t->references, &count, count - 1, memory_order_release,
                memory_order_relaxed))
            return;
    pthread_mutex_lock(&lock);
    count = atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel);
    if (count == 1 && t->next_dead == NULL) {
        _Atomic(vst_traceback *) *list =
            t->language != 0 ? &dead_language : &dead_native;
        t->next_dead = atomic_load_explicit(list, memory_order_relaxed);
        atomic_store_explicit(list, t, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
}

size_t vst_traceback_free_dead(void)
{
    bool has_unwinder = vst__unwinder_installed() != NULL;
    vst_traceback *dead = NULL;

    if (!is_any_dead(has_unwinder))
        return 0;
    pthread_mutex_lock(&lock);
    dead = take_dead(&dead_native, NULL);
    if (has_unwinder)
        dead = take_dead(&dead_language, dead);
    pthread_mutex_unlock(&lock);
    return destroy_all(dead);
}
