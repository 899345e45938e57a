/* Turns bytes into events for the matcher. The first byte holds options. Each
 * event has four bytes: its kind, its id, how far time moves, and the number of
 * payload words; a payload word has two bytes. Events must give equal spans
 * when fed in the batches that the input chooses and one by one, and every tree
 * must follow the rules of trees. */
#include <string.h>

#include "replay/matcher.h"
#include "span_tree.h"
#include "target.h"

enum {
    OPTION_RECURSION = 1,
    OPTION_GIVE_UP = 2, /* the sink fails after a few spans */
    EVENTS_MAX = 2048,
    PAYLOAD_MAX = 16,
    GIVE_UP_AFTER = 5
};

/* Events that are not a vst_kind. */
enum { END_BATCH = VST_ESCAPE, END_THREAD, BEGIN_READING, FIRST_ESCAPE };
enum { ESCAPES = VST_ESCAPE_DROPPED + 2 }; /* with 0, and with an unknown one */

#define TIME_MAX ((vst_ticks)1 << 61) /* a converter gives no later time */

typedef struct input {
    const uint8_t *at, *end;
    vst_ticks now;
} input;

typedef struct feeding {
    vst_matcher *matcher;
    vst_compressed_event events[EVENTS_MAX];
    uint64_t payloads[EVENTS_MAX][PAYLOAD_MAX];
    size_t count;
    size_t batch_max;
    vst_sink sink;
    span_tree tree;
    size_t spans;      /* since the last BEGIN_READING */
    size_t give_up_at; /* 0: never */
    uint64_t hash;     /* hash of everything delivered */
} feeding;

static int64_t to_ns(void *ctx, vst_ticks ticks)
{
    (void)ctx;
    return (int64_t)ticks;
}

static void mix(feeding *f, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        f->hash = (f->hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
}

static vst_status take_span(void *ctx, const vst_span *span)
{
    feeding *f = ctx;

    /* Hashes the numbers, which come first; behind them there may be
     * padding. */
    mix(f, span, offsetof(vst_span, place) + sizeof span->place);
    if (span->args_len != 0)
        mix(f, span->args, span->args_len);
    f->spans++;
    tree_span(&f->tree, span);
    return f->spans == f->give_up_at ? VST_E_CANCELLED : VST_OK;
}

/* Lets the tree find the children of a span. */
static vst_status take_leave(void *ctx, uint32_t depth)
{
    feeding *f = ctx;

    mix(f, &depth, sizeof depth);
    return tree_leave(&f->tree, depth);
}

static vst_status take_instant(void *ctx, const vst_instant *instant)
{
    feeding *f = ctx;

    mix(f, &instant->time_ns, sizeof instant->time_ns);
    if (instant->args_len != 0)
        mix(f, instant->args, instant->args_len);
    return VST_OK;
}

static vst_status take_loss(void *ctx, const vst_loss *loss)
{
    feeding *f = ctx;

    MUST(loss->end_ns >= loss->start_ns);
    mix(f, &loss->records, sizeof loss->records);
    return VST_OK;
}

static void forget_tree(feeding *f)
{
    tree_free(&f->tree);
    memset(&f->tree, 0, sizeof f->tree);
}

/* ---- events ------------------------------------------------------------- */

static unsigned take(input *in)
{
    return in->at != in->end ? *in->at++ : 0;
}

/* Moves time: mostly forward by a little, sometimes by much, or back. */
static void move_time(input *in)
{
    unsigned by = take(in);

    if (by < 128)
        in->now += by;
    else if (by < 192)
        in->now += (vst_ticks)1 << (by & 63);
    else
        in->now -= in->now < by ? in->now : by;
    if (in->now > TIME_MAX)
        in->now = TIME_MAX;
}

static uint64_t take_word(input *in)
{
    uint64_t low = take(in), high = take(in);

    return high == 255 ? ~low : high << 32 | low;
}

/* Reads the next event; returns false at the end of the input. An event that is
 * not an escape is then at events[count], and not counted yet. */
static bool take_event(feeding *f, input *in, unsigned *what)
{
    vst_compressed_event *event = &f->events[f->count];
    vst_id id;

    if (in->at == in->end)
        return false;
    *what = take(in) % (FIRST_ESCAPE + ESCAPES);
    id = take(in);
    move_time(in);
    memset(event, 0, sizeof *event);
    event->ticks = in->now;
    event->payload_words = take(in) % (PAYLOAD_MAX + 1);
    for (unsigned i = 0; i < event->payload_words; i++)
        f->payloads[f->count][i] = take_word(in);
    if (*what < FIRST_ESCAPE) {
        event->payload_words = 0;
        event->key = vst_trace_key_make(*what, id + 1);
    } else {
        event->payload = f->payloads[f->count];
        event->key = vst_trace_key_make(
            vst_trace_key_kind_of_escape(*what - FIRST_ESCAPE), id);
    }
    return true;
}

/* ---- feeding ------------------------------------------------------------ */

static void feed(feeding *f, int64_t end_ns)
{
    vst_time_converter converter = {to_ns, NULL};
    vst_status status = vst_matcher_feed(f->matcher, &converter, f->events,
                                         f->count, end_ns, &f->sink);

    MUST(status == VST_OK || (f->give_up_at != 0 && f->spans >= f->give_up_at));
    f->count = 0;
    if (status != VST_OK) {
        f->spans = 0;
        MUST(vst_matcher_feed(f->matcher, NULL, NULL, 0, VST_TIME_OPEN,
                              &f->sink) == VST_OK);
    } else if (end_ns != VST_TIME_OPEN) {
        tree_check(&f->tree);
    }
    MUST(checks_bad == 0);
    if (status != VST_OK || end_ns != VST_TIME_OPEN)
        forget_tree(f);
}

static void begin_reading(feeding *f)
{
    vst_matcher_counts counts;

    vst__matcher_count(f->matcher, &counts);
    MUST(counts.spans == f->spans);
    MUST(counts.cut_spans <= counts.spans);
    MUST(vst_matcher_feed(f->matcher, NULL, NULL, 0, VST_TIME_OPEN, &f->sink) ==
         VST_OK);
    f->spans = 0;
    f->count = 0;
    forget_tree(f);
}

static void feed_all(feeding *f, input in)
{
    unsigned what;

    while (take_event(f, &in, &what)) {
        switch (what) {
        case END_BATCH:
            feed(f, VST_TIME_OPEN);
            break;
        case END_THREAD:
            feed(f, (int64_t)in.now);
            break;
        case BEGIN_READING:
            feed(f, VST_TIME_OPEN);
            begin_reading(f);
            break;
        default:
            if (++f->count == f->batch_max)
                feed(f, VST_TIME_OPEN);
        }
    }
    feed(f, (int64_t)in.now);
    begin_reading(f);
}

/* Returns the hash of everything delivered. */
static uint64_t run(input in, unsigned options, size_t batch_max)
{
    static feeding f;

    memset(&f, 0, sizeof f);
    f.batch_max = batch_max;
    f.sink = (vst_sink){
        .ctx = &f,
        .recursion = options & OPTION_RECURSION,
        .span = take_span,
        .leave = take_leave,
        .instant = take_instant,
        .loss = take_loss,
    };
    f.give_up_at = options & OPTION_GIVE_UP ? GIVE_UP_AFTER : 0;
    MUST(vst_matcher_create(&f.matcher) == VST_OK);
    feed_all(&f, in);
    vst_matcher_destroy(f.matcher);
    forget_tree(&f);
    return f.hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    input in = {bytes, bytes + size, 1000};
    unsigned options = take(&in);
    uint64_t in_batches = run(in, options, EVENTS_MAX);
    uint64_t one_by_one = run(in, options, 1);

    MUST(in_batches == one_by_one || options & OPTION_GIVE_UP);
    return 0;
}
