/* Following a running recording. With a bounded recording, records that were
 * dropped before they were read are reported as missing; no others are
 * missing. */
#include <pthread.h>

#include "bounded.h"
#include "view/follow/followers.h"

typedef struct followed {
    vst__following following;
    seen s;
    uint64_t growths;
} followed;

static vst_status take_loss(void *ctx, const vst_loss *loss)
{
    followed *self = ctx;

    self->s.losses++;
    self->s.dropped += loss->records;
    self->s.next[loss->thread] = 0;
    return VST_OK;
}

static void take_batch(followed *self, const vst__follower *follower)
{
    for (size_t i = 0; i < follower->walk.span_count; i++) {
        const vst__walk_span *span = &follower->walk.spans[i];
        vst_span as = {.id = span->id,
                       .thread = follower->thread,
                       .start_ns = span->start_ns,
                       .end_ns = span->end_ns,
                       .depth = span->depth,
                       .flags = span->flags};

        /* A cut span belongs to the records before the missing records. */
        if (!(span->flags & VST_SPAN_CUT))
            CHECK_INT(see_span(&self->s, &as), VST_OK);
    }
}

static void follow(followed *self)
{
    vst_sink also = {.ctx = self, .loss = take_loss};

    if (self->following.trace == NULL)
        CHECK_INT(vst__following_open(&self->following, path, NULL), VST_OK);
    else
        CHECK_INT(vst__following_grow(&self->following, NULL), VST_OK);
    self->growths++;
    self->s.trace = self->following.trace;
    for (size_t i = 0; i < self->following.count; i++) {
        vst__follower *follower = self->following.followers[i];
        bool more;

        follower->walk.event_sink = &also;
        CHECK_INT(vst__follower_begin(&self->following, follower, &more),
                  VST_OK);
        while (more && checks_bad == 0) {
            CHECK_INT(vst__follower_next(follower, &more), VST_OK);
            take_batch(self, follower);
        }
        vst__follower_end(follower);
    }
}

static void nothing_is_missing_of_what_is_read_in_time(void)
{
    followed self = {0};
    vst_trace_info info;
    unsigned done = 0;

    begin(MIB, 0);
    record_outer(VST_ENTER);
    for (unsigned i = 1; i < 300; i++) {
        record_leaves(done, i * 17 % 1500);
        done += i * 17 % 1500;
        follow(&self);
        CHECK_INT(self.s.leaves, done);
    }
    record_outer(VST_EXIT);
    vst_session_finish(session, NULL);
    follow(&self);
    CHECK_INT(self.s.leaves, done);
    CHECK_INT(self.s.outer, OUTER);
    CHECK_INT(self.s.gaps + self.s.losses, 0);
    CHECK(self.following.trace->header.dropped > 0);
    vst_trace_get_info(self.following.trace, &info);
    CHECK(info.clean);
    CHECK_INT(info.damaged_at, 0);
    vst__following_close(&self.following);
    end();
}

static void what_was_dropped_unread_is_reported(void)
{
    followed self = {0};
    unsigned done = 0;

    begin(MIB, 0);
    record_outer(VST_ENTER);
    for (unsigned i = 1; i < 12; i++) {
        record_leaves(done, i % 3 == 0 ? 150000 : 100);
        done += i % 3 == 0 ? 150000 : 100;
        follow(&self);
    }
    CHECK_INT(self.s.losses, 3);
    CHECK_INT(self.s.gaps, 0);
    /* A leaf takes two words; some chunks begin with a word for the time. */
    CHECK(self.s.leaves + self.s.dropped / 2 >= done - 6 &&
          self.s.leaves + self.s.dropped / 2 <= done + done / 500);
    vst__following_close(&self.following);
    vst_session_finish(session, NULL);
    end();
}

static int stopping; /* atomic */

/* Records until `stopping` is set or `most` leaves are recorded. */
static void *record_some(void *most)
{
    unsigned i = 0;

    record_outer(VST_ENTER);
    while (!__atomic_load_n(&stopping, __ATOMIC_RELAXED) &&
           i < *(const unsigned *)most) {
        record_leaves(i, 1000);
        i += 1000;
    }
    record_outer(VST_EXIT);
    return NULL;
}

static void follow_threads(uint64_t max_size)
{
    followed self = {0};
    unsigned most = max_size == 0 ? 200000 : UINT32_MAX;
    pthread_t threads[2];

    begin(max_size, 0);
    stopping = 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, record_some, &most);
    for (unsigned i = 100 / check_step(1, 3); i > 0 && checks_bad == 0; i--) {
        follow(&self);
        CHECK_INT(self.s.gaps, 0);
    }
    while (self.s.leaves == 0)
        follow(&self);
    __atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    vst_session_finish(session, NULL);
    follow(&self);
    CHECK_INT(self.s.gaps, 0);
    if (max_size == 0) {
        vst_trace_info info;
        vst_trace *trace = open_file(&info);

        CHECK_INT(self.s.leaves, see(trace).leaves);
        CHECK_INT(self.s.losses, 0);
        vst_trace_close(trace);
        vst_trace_get_info(self.following.trace, &info);
        CHECK(info.clean);
        CHECK_INT(info.damaged_at, 0);
    }
    vst__following_close(&self.following);
    end();
}

static void two_threads_that_record_meanwhile_are_followed(void)
{
    follow_threads(0);
}

static void so_are_those_that_overwrite_what_is_old(void)
{
    follow_threads(MIB);
}

static void a_file_that_is_cut_or_replaced_is_noticed(void)
{
    vst__following following = {0};
    vst_error error;

    begin(0, 0);
    record_leaves(0, 5000);
    CHECK_INT(vst__following_open(&following, path, NULL), VST_OK);
    CHECK_INT(vst__following_grow(&following, &error), VST_OK);
    vst_session_finish(session, NULL);
    CHECK_INT(vst__following_grow(&following, &error), VST_OK);
    CHECK_INT(truncate(path, 100), 0);
    CHECK_INT(vst__following_grow(&following, &error), VST_E_DAMAGED);
    CHECK_INT(truncate(path, 0), 0);
    CHECK_INT(vst__following_grow(&following, &error), VST_E_DAMAGED);
    vst__following_close(&following);
    end();
}

int main(void)
{
    TEST(nothing_is_missing_of_what_is_read_in_time);
    TEST(what_was_dropped_unread_is_reported);
    TEST(two_threads_that_record_meanwhile_are_followed);
    TEST(so_are_those_that_overwrite_what_is_old);
    TEST(a_file_that_is_cut_or_replaced_is_noticed);
    return checks_end();
}
