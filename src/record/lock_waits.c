/* The hooks of record/language_lock.h: the library that has the language's lock
 * calls them in place of pthread_cond_timedwait and pthread_cond_wait. Any
 * thread of the program, with a mutex of that library held, so the hooks take
 * no lock and touch no files. A wait is stored in the thread's own buffer; if
 * the buffer has no room, or the thread has not joined the recording, the wait
 * is kept for the thread's next record. A thread may wait many times during one
 * long call: there is room for the shortest waits of one second. Waits for
 * other things pass through.
 *
 * One wait for the lock consists of many timed waits, because the thread checks
 * every few milliseconds who has the lock. They become one record, which names
 * the thread that had the lock for most of the time, as far as the waiting
 * thread has seen.
 *
 * The hooks' code is never unloaded, so nobody waits for threads to leave it. A
 * thread that comes out of a wait after the recording ended finds that no lock
 * is watched. */
#include "record/lock_waits.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/at_fork.h"
#include "os/os.h"
#include "record/slots.h"

enum {
    WAIT_WORDS = 3,
    FEW = 4,    /* waits that a thread can keep before it joins a recording */
    MANY = 2048 /* waits that a thread can keep after that */
};

typedef struct wait_record {
    uint64_t payload[WAIT_WORDS];
} wait_record;

/* The waits of one thread. The thread changes them while it is inside a hook
 * (see below) or records; vst__lock_waits_end() reads them when the thread can
 * do neither. */
typedef struct vst__thread_waits {
    const void **learn;    /* see vst__lock_learn */
    uint64_t watch;        /* number of the watch that the fields below belong
                            * to */
    vst_ticks began;       /* when the wait in progress began; 0 if there is
                            * none */
    vst_ticks seen;        /* when the timed wait in progress began */
    uintptr_t seen_holder; /* who had the lock at `seen` */
    uintptr_t holder;      /* who had the lock for most of the time before
                            * `seen` */
    /* ticks by which `holder` had the lock longer than all other threads */
    uint64_t majority;
    vst_wait_reason reason; /* reason of the wait in progress */
    vst_ticks ended; /* when the wait ended, if that was after the end of the
                      * watch; else 0. Atomic, relaxed: a plain time */
    uint32_t kept_count;
    uint32_t lost; /* waits lost because there was no room to keep them */
    wait_record few[FEW];
    wait_record *many; /* MANY waits, mapped; NULL until the thread joins */
} vst__thread_waits;

static VST_THREAD_LOCAL vst__thread_waits here VST_TLS_MODEL;

/* seq_cst on both sides: a thread that counts itself inside, and then finds the
 * lock still watched, is waited for by vst__lock_watch(). */
static const vst_lock *watched;
static VST_AT_FORK uint32_t inside;
static uint64_t watch_number; /* changes only while no lock is watched */

/* Constant while any hook is installed. */
static struct {
    __typeof__(&pthread_cond_timedwait) timedwait;
    __typeof__(&pthread_cond_wait) wait;
} real;

/* ---- recording a wait ---------------------------------------------------- */

static bool is_ready(const vst__writer *writer)
{
    return writer->hot.epoch == vst_record_epoch() &&
           writer->chunk.words != NULL;
}

/* Makes the thread's next record take the slow path, which stores the waits
 * that are kept. */
static void ask_for_slow_path(vst__writer *writer)
{
    if (is_ready(writer))
        writer->hot.limit = writer->hot.cursor;
}

static void lock_keep(const wait_record *wait)
{
    uint32_t at = here.kept_count;

    if (at >= FEW + (here.many != NULL ? MANY : 0)) {
        here.lost++;
        return;
    }
    *(at < FEW ? &here.few[at] : &here.many[at - FEW]) = *wait;
    here.kept_count++;
}

static void lock_store(vst__writer *writer, const wait_record *wait,
                       vst_ticks now)
{
    vst__writer_fixed(writer, vst_word_escape(VST_ESCAPE_WAIT, WAIT_WORDS, 0),
                      wait->payload, now);
}

static wait_record lock_make(vst_ticks began, vst_ticks ended, uintptr_t holder,
                             vst_wait_reason reason)
{
    return (wait_record){
        {began, ended, (uint64_t)vst__thread_number(holder) << 32 | reason}};
}

static void lock_record(vst_ticks began, vst_ticks ended, uintptr_t holder)
{
    vst__writer *writer = (vst__writer *)vst_thread_buffer;
    const wait_record wait = lock_make(began, ended, holder, VST_WAIT_GIL);

    if (here.kept_count == 0 && is_ready(writer) &&
        vst__writer_has_room(writer, 1 + WAIT_WORDS)) {
        lock_store(writer, &wait, ended);
        return;
    }
    lock_keep(&wait);
    ask_for_slow_path(writer);
}

/* Between go_in and come_out, nobody takes the thread's chunk away. Returns
 * false if the lock is not watched. */
static bool go_in(const vst_lock *lock)
{
    __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&watched, __ATOMIC_SEQ_CST) == lock)
        return true;
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    return false;
}

static void go_out(void)
{
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

/* Drops the fields of an earlier watch. */
static void waits_reset(void)
{
    uint64_t number = __atomic_load_n(&watch_number, __ATOMIC_RELAXED);

    if (here.watch == number)
        return;
    here.watch = number;
    here.began = 0;
    __atomic_store_n(&here.ended, 0, __ATOMIC_RELAXED);
    here.kept_count = here.lost = 0;
}

size_t vst__lock_waits_kept(void)
{
    if (VST_LIKELY(here.kept_count == 0))
        return 0;
    waits_reset();
    return here.kept_count * (1u + WAIT_WORDS);
}

/* MANY waits are mapped in advance; pages that nobody writes take no memory. */
void vst__lock_waits_join(vst__writer *writer)
{
    writer->waits = &here;
    if (here.many == NULL)
        here.many = vst__os_pages(MANY * sizeof *here.many);
}

void vst__lock_waits_leave(vst__writer *writer)
{
    wait_record *many = here.many;

    writer->waits = NULL;
    here.kept_count = 0;
    here.many = NULL;
    if (many != NULL)
        vst__os_unmap(many, MANY * sizeof *many);
}

/* Stores the kept waits with the time of the previous record, because the
 * record that follows already has its time. */
static void store_kept(vst__writer *writer, vst__thread_waits *waits)
{
    for (uint32_t i = 0; i < waits->kept_count; i++)
        lock_store(writer, i < FEW ? &waits->few[i] : &waits->many[i - FEW],
                   writer->hot.last);
    for (uint32_t i = 0; i < waits->lost; i++)
        vst__writer_count_lost(writer);
    waits->kept_count = waits->lost = 0;
}

void vst__lock_waits_store(vst__writer *writer)
{
    store_kept(writer, &here);
}

/* ---- the hooks ----------------------------------------------------------- */

/* Counts who had the lock during the timed wait that ends now. */
static void waits_count_holder(vst__thread_waits *waits, vst_ticks now)
{
    vst_ticks for_ticks = now - waits->seen;

    if (waits->seen_holder == waits->holder) {
        waits->majority += for_ticks;
    } else if (waits->majority >= for_ticks) {
        waits->majority -= for_ticks;
    } else {
        waits->holder = waits->seen_holder;
        waits->majority = for_ticks - waits->majority;
    }
}

/* Returns false if the lock is not watched any more. */
static bool begin_timed(const vst_lock *lock)
{
    if (!go_in(lock))
        return false;
    waits_reset();
    here.seen = vst_clock_ticks();
    here.seen_holder = __atomic_load_n(lock->holder, __ATOMIC_RELAXED);
    if (here.began == 0) {
        here.began = here.seen;
        here.reason = VST_WAIT_GIL;
        here.holder = here.majority = 0;
    }
    go_out();
    return true;
}

static void end_timed(const vst_lock *lock)
{
    vst_ticks now = vst_clock_ticks();
    bool is_over = __atomic_load_n(lock->is_held, __ATOMIC_RELAXED) == 0;

    if (!go_in(lock)) {
        if (is_over)
            __atomic_store_n(&here.ended, now, __ATOMIC_RELAXED);
        return;
    }
    waits_reset(); /* another watch of this lock may have begun meanwhile */
    if (here.began != 0) {
        waits_count_holder(&here, now);
        if (is_over) {
            lock_record(here.began, now, here.holder);
            here.began = 0;
        }
    }
    go_out();
}

static const vst_lock *lock_of(const void *condition)
{
    const vst_lock *lock = __atomic_load_n(&watched, __ATOMIC_ACQUIRE);

    if (lock != NULL &&
        (condition == lock->condition || condition == lock->given_condition))
        return lock;
    return NULL;
}

static int hook_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                          const struct timespec *until)
{
    const vst_lock *lock = lock_of(condition);
    int result, error;

    if (here.learn != NULL)
        __atomic_store_n(here.learn, condition, __ATOMIC_RELEASE);
    if (lock == NULL || condition != lock->condition || !begin_timed(lock))
        return real.timedwait(condition, mutex, until);
    result = real.timedwait(condition, mutex, until);
    error = errno;
    end_timed(lock);
    errno = error;
    return result;
}

/* The thread gave the lock away. Nobody has the lock until another thread takes
 * it. */
static int hook_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    const vst_lock *lock = lock_of(condition);
    vst_ticks began;
    int result, error;

    if (lock == NULL || condition != lock->given_condition)
        return real.wait(condition, mutex);
    began = vst_clock_ticks();
    result = real.wait(condition, mutex);
    error = errno;
    if (go_in(lock)) {
        waits_reset();
        lock_record(began, vst_clock_ticks(), 0);
        go_out();
    }
    errno = error;
    return result;
}

/* ---- waits on semaphores: parked_waits.c --------------------------------- */

const void **vst__waits_learn(void)
{
    return here.learn;
}

const vst_lock *vst__parked_begin(const void *semaphore)
{
    const vst_lock *lock = __atomic_load_n(&watched, __ATOMIC_ACQUIRE);
    vst_wait_reason reason = lock != NULL && lock->parked_for != NULL
                                 ? lock->parked_for(semaphore)
                                 : VST_WAIT_NONE;

    if (reason == VST_WAIT_NONE || !go_in(lock))
        return NULL;
    waits_reset();
    here.began = here.seen = vst_clock_ticks();
    here.reason = reason;
    here.holder = here.seen_holder = here.majority = 0;
    go_out();
    return lock;
}

/* The thread may be anywhere, even in the middle of a record, so the wait is
 * always kept for the thread's next record. */
void vst__parked_end(const vst_lock *lock)
{
    vst_ticks now = vst_clock_ticks();

    if (!go_in(lock)) {
        __atomic_store_n(&here.ended, now, __ATOMIC_RELAXED);
        return;
    }
    waits_reset();
    if (here.began != 0) {
        const wait_record wait = lock_make(here.began, now, 0, here.reason);
        /* Before its first record, a thread has no open call that the wait
         * could be missing from. */
        if (here.many != NULL || here.kept_count < FEW)
            lock_keep(&wait);
        ask_for_slow_path((vst__writer *)vst_thread_buffer);
    }
    here.began = 0;
    go_out();
}

/* ---- installing and removing the hooks ----------------------------------- */

enum { TIMEDWAIT, WAIT, HOOKS };

static vst__hook hooks[HOOKS] = {
    [TIMEDWAIT] = {"pthread_cond_timedwait", (void *)hook_timedwait, NULL},
    [WAIT] = {"pthread_cond_wait", (void *)hook_wait, NULL},
};

static vst__slots slots = {.hooks = hooks, .count = HOOKS};

vst_status vst__lock_hook(const void *address)
{
    vst__slots_find(&slots);
    if (real.wait == NULL) { /* set once: a thread may still be in a hook */
        memcpy(&real.timedwait, &hooks[TIMEDWAIT].original,
               sizeof real.timedwait);
        memcpy(&real.wait, &hooks[WAIT].original, sizeof real.wait);
    }
    if (real.timedwait == NULL || real.wait == NULL)
        return VST_E_UNSUPPORTED;
    return vst__slots_hook(&slots, address);
}

void vst__lock_unhook(void)
{
    vst__slots_unhook(&slots);
}

void vst__lock_learn(const void **condition)
{
    here.learn = condition;
}

void vst__lock_watch(const vst_lock *lock)
{
    const struct timespec moment = {0, 20000};

    /* sched_yield would not let a thread of lower priority run; sleeping does.
     */
    if (__atomic_exchange_n(&watched, NULL, __ATOMIC_SEQ_CST) != NULL)
        while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) != 0)
            nanosleep(&moment, NULL);
    if (lock == NULL)
        return;
    __atomic_add_fetch(&watch_number, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&watched, lock, __ATOMIC_SEQ_CST);
}

/* ---- the end of a recording ---------------------------------------------- */

/* Writes the wait in progress: up to now, or up to its end if it ended after
 * the watch did. */
static bool open_wait(vst__thread_waits *waits, vst_ticks now,
                      wait_record *wait)
{
    vst_ticks ended = __atomic_load_n(&waits->ended, __ATOMIC_RELAXED);

    if (waits->began == 0)
        return false;
    if (ended != 0 && ended < now)
        now = ended;
    waits_count_holder(waits, now);
    *wait = lock_make(waits->began, now, waits->holder, waits->reason);
    waits->began = 0;
    return now > wait->payload[0];
}

void vst__lock_waits_end(vst__writer *writer, vst_ticks now)
{
    vst__thread_waits *waits = writer->waits;
    wait_record wait;
    size_t words;

    if (waits == NULL || __atomic_load_n(&watched, __ATOMIC_SEQ_CST) != NULL ||
        waits->watch != __atomic_load_n(&watch_number, __ATOMIC_RELAXED))
        return;
    words = (waits->kept_count + 1u) * (1u + WAIT_WORDS);
    if (writer->chunk.words != NULL && !vst__writer_has_room(writer, words) &&
        (waits->kept_count != 0 || waits->began != 0))
        vst__writer_change_chunk(writer, words);
    if (writer->chunk.words == NULL)
        return;
    store_kept(writer, waits);
    if (open_wait(waits, now, &wait))
        lock_store(writer, &wait, now);
}

/* In a forked child, the threads that were inside a hook do not exist. */
void vst__lock_waits_after_fork(void)
{
    __atomic_store_n(&inside, 0, __ATOMIC_RELAXED);
}
