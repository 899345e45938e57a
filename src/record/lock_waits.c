/* The hooks of <vestige/waits.h>: what the library that has the language's lock
 * calls in place of pthread_cond_timedwait and pthread_cond_wait. Any thread of
 * the program, with a mutex of that library's held. So the hooks take no lock
 * and do nothing with files: a wait is stored in the thread's own buffer, and
 * where that has no room, or the thread has not joined the recording, the wait
 * is kept for the thread's next record. A thread may be in one call for long
 * and wait many times in it: there is room for a second's worth of the shortest
 * waits. Waits for anything else pass through.
 *
 * One wait for the lock is many timed waits, because the thread looks every few
 * milliseconds who has it. They are one record, which names the thread that had
 * the lock for most of the time, as far as this thread has seen.
 *
 * Nobody waits for the hooks' code to be left: it stays loaded, and a thread
 * that comes out of a wait after the end finds that nothing is watched. */
#include "record/lock_waits.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "os/os.h"
#include "record/slots.h"

enum {
    WAIT_WORDS = 3,
    FEW = 4,    /* that a thread keeps before it joins a recording */
    MANY = 2048 /* and after that */
};

typedef struct wait_record {
    uint64_t payload[WAIT_WORDS];
} wait_record;

/* Of one thread. It changes its own while it is inside (see below), or where it
 * records; vst__lock_waits_end() reads them when it can do neither. */
typedef struct vst__thread_waits {
    const void **learn;     /* see vst_lock_learn */
    uint64_t watch;         /* number of the watch that the rest belongs to */
    vst_ticks began;        /* of the wait in progress, 0: there is none */
    vst_ticks seen;         /* when the timed wait in progress began, */
    uintptr_t seen_holder;  /* and who had the lock then */
    uintptr_t holder;       /* who had it for most of the time before, */
    uint64_t majority;      /* by how many ticks more than all others */
    vst_wait_reason reason; /* of the wait in progress */
    vst_ticks ended; /* when the wait ended after the watch did; 0: it did not.
                      * Atomic, relaxed: a plain time */
    uint32_t kept_count;
    uint32_t lost; /* waits that could not be kept either */
    wait_record few[FEW];
    wait_record *many; /* MANY of them, mapped; NULL: not yet */
} vst__thread_waits;

static VST_THREAD_LOCAL vst__thread_waits here VST_TLS_MODEL;

/* seq_cst on both sides: a thread that counts itself inside, and then finds the
 * lock still watched, is waited for by vst_lock_watch(). */
static const vst_lock *watched;
static uint32_t inside;
static uint64_t watch_number; /* changed while nothing is watched */

/* Constant while any hook is in. */
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

/* The next record takes the slow path, which stores what is kept. */
static void ask_for_slow_path(vst__writer *writer)
{
    if (is_ready(writer))
        writer->hot.limit = writer->hot.cursor;
}

static void keep(const wait_record *wait)
{
    uint32_t at = here.kept_count;

    if (at >= FEW + (here.many != NULL ? MANY : 0)) {
        here.lost++;
        return;
    }
    *(at < FEW ? &here.few[at] : &here.many[at - FEW]) = *wait;
    here.kept_count++;
}

static void store(vst__writer *writer, const wait_record *wait, vst_ticks now)
{
    vst__writer_fixed(writer, vst_word_escape(VST_ESCAPE_WAIT, WAIT_WORDS, 0),
                      wait->payload, now);
}

static wait_record make(vst_ticks began, vst_ticks ended, uintptr_t holder,
                        vst_wait_reason reason)
{
    return (wait_record){
        {began, ended, (uint64_t)vst__thread_number(holder) << 32 | reason}};
}

static void record(vst_ticks began, vst_ticks ended, uintptr_t holder)
{
    vst__writer *writer = (vst__writer *)vst_thread_buffer;
    const wait_record wait = make(began, ended, holder, VST_WAIT_GIL);

    if (here.kept_count == 0 && is_ready(writer) &&
        vst__writer_has_room(writer, 1 + WAIT_WORDS)) {
        store(writer, &wait, ended);
        return;
    }
    keep(&wait);
    ask_for_slow_path(writer);
}

/* Between these two, the thread's chunk is not taken away. */
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

/* What is left of an earlier watch is of no use. */
static void begin_anew(void)
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
    begin_anew();
    return here.kept_count * (1u + WAIT_WORDS);
}

/* Pages that nobody writes to take no memory. */
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

/* With the time of the record before: the one that follows was made already. */
static void store_kept(vst__writer *writer, vst__thread_waits *waits)
{
    for (uint32_t i = 0; i < waits->kept_count; i++)
        store(writer, i < FEW ? &waits->few[i] : &waits->many[i - FEW],
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

/* Weighs who had the lock during a timed wait that ends now. */
static void weigh_holder(vst__thread_waits *waits, vst_ticks now)
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

/* False: the lock is not watched any more. */
static bool begin_timed(const vst_lock *lock)
{
    if (!go_in(lock))
        return false;
    begin_anew();
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
    begin_anew(); /* the watch may be another one of the same lock */
    if (here.began != 0) {
        weigh_holder(&here, now);
        if (is_over) {
            record(here.began, now, here.holder);
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

/* The lock was given away, and until another thread takes it nobody has it. */
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
        begin_anew();
        record(began, vst_clock_ticks(), 0);
        go_out();
    }
    errno = error;
    return result;
}

/* ---- waits on semaphores: parked_waits.c -------------------------------- */

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
    begin_anew();
    here.began = here.seen = vst_clock_ticks();
    here.reason = reason;
    here.holder = here.seen_holder = here.majority = 0;
    go_out();
    return lock;
}

/* The thread may be anywhere, also in the middle of a record: so the wait is
 * always kept for the next one. */
void vst__parked_end(const vst_lock *lock)
{
    vst_ticks now = vst_clock_ticks();

    if (!go_in(lock)) {
        __atomic_store_n(&here.ended, now, __ATOMIC_RELAXED);
        return;
    }
    begin_anew();
    if (here.began != 0) {
        const wait_record wait = make(here.began, now, 0, here.reason);
        /* Before its first record a thread has no call that could miss it. */
        if (here.many != NULL || here.kept_count < FEW)
            keep(&wait);
        ask_for_slow_path((vst__writer *)vst_thread_buffer);
    }
    here.began = 0;
    go_out();
}

/* ---- in and out --------------------------------------------------------- */

enum { TIMEDWAIT, WAIT, HOOKS };

static vst__hook hooks[HOOKS] = {
    [TIMEDWAIT] = {"pthread_cond_timedwait", (void *)hook_timedwait, NULL},
    [WAIT] = {"pthread_cond_wait", (void *)hook_wait, NULL},
};

static vst__slots slots = {.hooks = hooks, .count = HOOKS};

vst_status vst_lock_hook(const void *address)
{
    vst__slots_find(&slots);
    if (real.wait == NULL) { /* once: a thread may still be in a hook */
        memcpy(&real.timedwait, &hooks[TIMEDWAIT].original,
               sizeof real.timedwait);
        memcpy(&real.wait, &hooks[WAIT].original, sizeof real.wait);
    }
    if (real.timedwait == NULL || real.wait == NULL)
        return VST_E_UNSUPPORTED;
    return vst__slots_hook(&slots, address);
}

void vst_lock_unhook(void)
{
    vst__slots_unhook(&slots);
}

void vst_lock_learn(const void **condition)
{
    here.learn = condition;
}

void vst_lock_watch(const vst_lock *lock)
{
    const struct timespec moment = {0, 20000};

    /* Sleeping lets a thread on that has less of a priority, too. */
    if (__atomic_exchange_n(&watched, NULL, __ATOMIC_SEQ_CST) != NULL)
        while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) != 0)
            nanosleep(&moment, NULL);
    if (lock == NULL)
        return;
    __atomic_add_fetch(&watch_number, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&watched, lock, __ATOMIC_SEQ_CST);
}

/* ---- the end of a recording --------------------------------------------- */

/* The wait in progress up to now, or to when it ended after the watch did. */
static bool open_wait(vst__thread_waits *waits, vst_ticks now,
                      wait_record *wait)
{
    vst_ticks ended = __atomic_load_n(&waits->ended, __ATOMIC_RELAXED);

    if (waits->began == 0)
        return false;
    if (ended != 0 && ended < now)
        now = ended;
    weigh_holder(waits, now);
    *wait = make(waits->began, now, waits->holder, waits->reason);
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
        store(writer, &wait, now);
}

/* The threads that were inside are not here. */
void vst__lock_waits_after_fork(void)
{
    __atomic_store_n(&inside, 0, __ATOMIC_RELAXED);
}
