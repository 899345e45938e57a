/* The table of locks that threads waited for: who waited, who held the lock
 * meanwhile, and the function that took most of that time. Spans do not say
 * which lock a call is about. A wait is ascribed to the holder whose time with
 * a lock covers at least half of the wait; a holder that took its lock in the
 * waiting function is preferred. Condition variables, and queues and pools made
 * of them, do not count as locks: threads that wait in them are idle. One
 * thread at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "tables/lock_holds.h"
#include "tables/pass.h"
#include "tables/table.h"

enum {
    LOOK_BACK = 64, /* holds that are compared with a wait */
    COVERED = 2     /* 1/COVERED of a wait must be covered */
};

/* The waits of one thread in one place, and the holder to which they are
 * ascribed. */
typedef struct lock_row {
    uint32_t thread, holder_thread;
    vst_id waiter, waiter_outer, holder, holder_outer, inside;
    uint64_t waits;
    int64_t wait_ns, inside_ns;
} lock_row;

typedef struct lock_rows {
    lock_row *rows;
    size_t count, capacity;
} lock_rows;

typedef struct lock_table {
    vst__lock_holds holds;
    lock_rows found;
} lock_table;

/* ---- matching ------------------------------------------------------------ */

static int by_end(const void *a, const void *b)
{
    const vst__lock_hold *x = a, *y = b;

    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* Returns the number of holds that ended up to a time. */
static size_t holds_until(const vst__lock_holds *all, int64_t ns)
{
    size_t low = 0, high = all->hold_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (all->holds[middle].end_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t overlap(const vst__lock_hold *hold, const vst__lock_wait *wait)
{
    int64_t from =
        hold->start_ns > wait->start_ns ? hold->start_ns : wait->start_ns;
    int64_t to = hold->end_ns < wait->end_ns ? hold->end_ns : wait->end_ns;

    return to > from ? to - from : 0;
}

/* Returns how long other threads held locks during the wait that they took in
 * the function that took the lock of `like`. */
static int64_t held_by(const vst__lock_holds *all, size_t end,
                       const vst__lock_wait *wait, const vst__lock_hold *like)
{
    int64_t ns = 0;

    for (size_t i = end; i != 0 && end - i < LOOK_BACK; i--) {
        const vst__lock_hold *hold = &all->holds[i - 1];

        if (hold->thread != wait->thread && hold->caller == like->caller &&
            hold->outer == like->outer)
            ns += overlap(hold, wait);
    }
    return ns;
}

/* Returns the holder to which a wait is ascribed, or NULL. Holders in the
 * waiting function hold the lock one after the other, so their times are added
 * up. */
static const vst__lock_hold *find_holder(const vst__lock_holds *all,
                                         const vst__lock_wait *wait)
{
    const vst__lock_hold *same = NULL, *other = NULL;
    int64_t same_ns = 0, same_most = 0, other_ns = 0, from = wait->end_ns;
    /* The holder may release the lock before the waiter has woken. */
    size_t end = holds_until(all, wait->end_ns);

    for (size_t i = end; i != 0 && end - i < LOOK_BACK; i--) {
        const vst__lock_hold *hold = &all->holds[i - 1];
        int64_t ns = overlap(hold, wait);

        if (hold->end_ns <= wait->start_ns)
            break;
        if (hold->thread == wait->thread || ns == 0)
            continue;
        from = hold->start_ns < from ? hold->start_ns : from;
        if (hold->caller == wait->caller && hold->outer == wait->outer) {
            same_ns += ns;
            if (ns > same_most) {
                same_most = ns;
                same = hold;
            }
        } else if (ns > other_ns) {
            other_ns = ns;
            other = hold;
        }
    }
    from = from < wait->start_ns ? wait->start_ns : from;
    if (same_ns * COVERED >= wait->end_ns - from)
        return same;
    other_ns = other != NULL ? held_by(all, end, wait, other) : 0;
    return other_ns * COVERED >= wait->end_ns - from ? other : NULL;
}

static bool is_row_of(const lock_row *row, const vst__lock_wait *wait,
                      const vst__lock_hold *hold)
{
    return row->thread == wait->thread && row->waiter == wait->caller &&
           row->waiter_outer == wait->outer && row->holder == hold->caller &&
           row->holder_outer == hold->outer;
}

/* Finds the function with most of the time in all holds, without a sum for each
 * function: others take from the time of the one that leads. */
static void lock_row_vote(lock_row *row, const vst__lock_hold *hold)
{
    if (hold->inside == row->inside) {
        row->inside_ns += hold->inside_ns;
    } else if (hold->inside_ns <= row->inside_ns) {
        row->inside_ns -= hold->inside_ns;
    } else {
        row->inside_ns = hold->inside_ns - row->inside_ns;
        row->inside = hold->inside;
        row->holder_thread = hold->thread;
    }
}

static bool lock_rows_add(lock_rows *found, const vst__lock_wait *wait,
                          const vst__lock_hold *hold)
{
    lock_row *row = NULL;

    for (size_t i = found->count; i != 0 && row == NULL; i--)
        if (is_row_of(&found->rows[i - 1], wait, hold))
            row = &found->rows[i - 1];
    if (row == NULL) {
        if (!VST_RESERVE(found->rows, found->count + 1, found->capacity))
            return false;
        row = &found->rows[found->count++];
        *row = (lock_row){.thread = wait->thread,
                          .waiter = wait->caller,
                          .waiter_outer = wait->outer,
                          .holder = hold->caller,
                          .holder_outer = hold->outer};
    }
    row->waits++;
    row->wait_ns += wait->ns;
    lock_row_vote(row, hold);
    return true;
}

static bool lock_table_match(lock_table *self)
{
    vst__lock_holds *all = &self->holds;

    if (all->hold_count != 0)
        qsort(all->holds, all->hold_count, sizeof *all->holds, by_end);
    for (size_t i = 0; i < all->wait_count; i++) {
        const vst__lock_hold *holder = find_holder(all, &all->waits[i]);

        if (holder != NULL &&
            !lock_rows_add(&self->found, &all->waits[i], holder))
            return false;
    }
    return true;
}

/* ---- the table ----------------------------------------------------------- */

#define LOCK_COLUMNS(COLUMN)                                                   \
    COLUMN(I32, thread, row->thread)                                           \
    /* the function that took the lock, and the function that called it */     \
    COLUMN(I32, waiter, row->waiter)                                           \
    COLUMN(I32, waiter_outer, row->waiter_outer)                               \
    COLUMN(I32, holder, row->holder)                                           \
    COLUMN(I32, holder_outer, row->holder_outer)                               \
    COLUMN(I32, holder_thread, row->holder_thread)                             \
    /* the function that took most time while the lock was held; null: the     \
     * holder called nothing */                                                \
    COLUMN(I32_UNLESS_0, inside, row->inside)                                  \
    COLUMN(I64, waits, row->waits)                                             \
    COLUMN(I64, wait_ns, row->wait_ns)

static vst_status on_span(void *ctx, const vst_span *span)
{
    lock_table *self = ((vst__filling *)ctx)->own;

    return vst__lock_holds_span(&self->holds, span) ? VST_OK : VST_E_NOMEM;
}

static vst_status lock_begin(vst__filling *filling)
{
    lock_table *self = calloc(1, sizeof *self);

    filling->own = self;
    if (self == NULL ||
        !vst__lock_holds_begin(&self->holds, filling->pass->trace))
        return VST_E_NOMEM;
    if (!self->holds.has_locks)
        return VST_OK;
    filling->sink =
        (vst_sink){.ctx = filling, .no_args = true, .span = on_span};
    filling->is_read = true;
    return VST_OK;
}

static void lock_put(vst__filling *filling)
{
    lock_table *self = filling->own;

    if (!self->holds.has_locks)
        return;
    if (!vst__lock_holds_end(&self->holds) || !lock_table_match(self))
        filling->batch.status = VST_E_NOMEM;
    for (size_t i = 0; i < self->found.count; i++) {
        const lock_row *row = &self->found.rows[i];

        VST_PUT_ROW(&filling->batch, LOCK_COLUMNS);
    }
}

static void lock_end(vst__filling *filling)
{
    lock_table *self = filling->own;

    filling->own = NULL;
    if (self == NULL)
        return;
    vst__lock_holds_free(&self->holds);
    free(self->found.rows);
    free(self);
}

const vst__table vst__table_lock_waits = {
    .name = "lock_waits",
    VST_COLUMNS(LOCK_COLUMNS),
    .begin = lock_begin,
    .put = lock_put,
    .end = lock_end,
};
