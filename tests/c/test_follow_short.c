/* Following a recording that leaves out short calls: the reader reads only
 * words that the recorder can no longer take back. */
#include <stdio.h>
#include <unistd.h>

#include "short_calls.h"
#include "view/follow/followers.h"

static model program;
static char path[64];

typedef struct followed {
    vst__following following;
    size_t ended; /* number of read calls, all equal to the model's */
} followed;

static void take_batch(followed *self, const vst__follower *follower)
{
    for (size_t i = 0; i < follower->walk.span_count; i++) {
        const vst__walk_span *span = &follower->walk.spans[i];
        vst_span as = {.id = span->id,
                       .start_ns = span->start_ns - FAKE_EPOCH_NS,
                       .end_ns = span->end_ns - FAKE_EPOCH_NS,
                       .depth = span->depth,
                       .flags = span->flags};

        if (!CHECK(self->ended < program.count &&
                   model_is(&as, &program.ended[self->ended])))
            return;
        self->ended++;
    }
}

static void follow(followed *self)
{
    if (self->following.trace == NULL)
        CHECK_INT(vst__following_open(&self->following, path, NULL), VST_OK);
    else
        CHECK_INT(vst__following_grow(&self->following, NULL), VST_OK);
    for (size_t i = 0; i < self->following.count; i++) {
        vst__follower *follower = self->following.followers[i];
        bool more;

        CHECK_INT(vst__follower_begin(&self->following, follower, &more),
                  VST_OK);
        while (more && checks_bad == 0) {
            CHECK_INT(vst__follower_next(follower, &more), VST_OK);
            take_batch(self, follower);
        }
        vst__follower_end(follower);
    }
}

static void try_following(uint64_t max_size)
{
    vst_session_options options = {.path = path,
                                   .overwrite = true,
                                   .min_duration_ns = SHORT_NS,
                                   .max_size = max_size};
    followed self = {0};
    uint32_t state = 7;

    snprintf(path, sizeof path, "/tmp/vestige-follow-%d.vst", (int)getpid());
    model_begin(&program, &options);
    for (unsigned i = 0; i < 60000 && checks_bad == 0; i++) {
        state = state * 1664525u + 1013904223u;
        fake_advance(state >> 28 == 0 ? SHORT_NS : 1 + (state >> 29));
        if (program.depth < 12 && (program.depth == 0 || state >> 31))
            model_enter(&program, model_ids[program.depth]);
        else
            model_leave(&program, VST_EXIT);
        if ((state >> 8) % 100 == 0)
            follow(&self);
    }
    follow(&self);
    CHECK_INT(self.ended, program.count);
    CHECK(program.left_out > 1000);
    vst_session_finish(model_session, NULL);
    follow(&self);
    vst__following_close(&self.following);
    vst_session_destroy(model_session);
    model_free(&program);
    unlink(path);
}

static void only_calls_that_stay_are_read(void)
{
    try_following(0);
}

static void so_it_is_in_a_bounded_file(void)
{
    try_following(1 << 20);
}

int main(void)
{
    fake_clock_begin();
    TEST(only_calls_that_stay_are_read);
    TEST(so_it_is_in_a_bounded_file);
    return checks_end();
}
