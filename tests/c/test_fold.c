/* The fold against the matcher: for any words, split at any place, a matcher
 * that reads the words which the fold of the first part emits, and then the
 * second part, delivers the same from the split on as a matcher that reads all
 * words. Only starts before the split, and the flags that say how a span began,
 * may differ. */
#include <stdlib.h>

#include <vestige/tracer.h>

#include "base/fold.h"
#include "check.h"

enum {
    STEP_NS = 10000, /* time from word to word */
    NEAR_NS = 4000,  /* spans opened at the same moment are less than this
                      * apart */
    WORDS_MAX = 4096,
    EVENTS_MAX = 2048,
    SPANS_MAX = 8192,
    IDS = 5
};

/* ---- random words ------------------------------------------------------- */

static uint64_t seed;

static unsigned pick(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

typedef struct words {
    uint64_t at[WORDS_MAX];
    size_t count;
    size_t events[EVENTS_MAX + 1]; /* index of each event's first word */
    bool splits[EVENTS_MAX + 1];   /* whether the second part may begin with
                                    * this event */
    size_t event_count;
} words;

static words all;

static void add(uint64_t word, const uint64_t *payload, size_t count)
{
    all.events[all.event_count] = all.count;
    all.splits[all.event_count++] = true;
    all.at[all.count++] = word;
    if (count)
        memcpy(&all.at[all.count], payload, count * 8);
    all.count += count;
}

static void add_escape(vst_escape type, const uint64_t *payload, uint32_t count)
{
    add(vst_word_escape(type, count, 0), payload, count);
}

/* The open calls, approximately, so that most exits match the innermost
 * call. */
static vst_id guess[WORDS_MAX];
static size_t guesses;
static uint64_t live[64];
static size_t lives;
static uint32_t instances;

static void add_stack(bool changes)
{
    uint64_t ids[64];
    uint32_t count = 0;
    uint32_t first;

    while (count < guesses && count < 48)
        ids[count] = guess[count], count++;
    if (changes && count != 0)
        count -= pick(count + 1);
    for (unsigned more = changes ? pick(4) : 0; more != 0; more--)
        ids[count++] = 1 + pick(IDS);
    for (guesses = 0; guesses < count; guesses++)
        guess[guesses] = (vst_id)ids[guesses];
    first = pick(2) ? count : pick(count + 1);
    add_escape(VST_ESCAPE_STACK, ids, first);
    while (first < count) {
        uint32_t part = 1 + pick(count - first);
        add_escape(VST_ESCAPE_STACK_MORE, ids + first, part);
        first += part;
    }
}

static void add_gap(void)
{
    add_escape(VST_ESCAPE_GAP, (uint64_t[]){0}, 1);
    if (pick(2) == 0) /* a word that can still be recorded while the hooks are
                       * removed */
        add_escape(VST_ESCAPE_NODE, (uint64_t[]){0}, 1);
    if (pick(4) == 0)
        return;
    add_escape(VST_ESCAPE_GAP, (uint64_t[]){1}, 1);
    add_stack(true);
    /* The state after a gap is unknown until the stack is recorded. */
    for (size_t i = all.event_count;
         vst_word_escape_type(all.at[all.events[--i]]) != VST_ESCAPE_GAP;)
        all.splits[i] = false;
}

static void add_begin_or_end(void)
{
    uint64_t pair;
    unsigned which;

    if (lives == 0 || (lives < 60 && pick(2))) {
        live[lives] = (uint64_t)++instances << 32 | (1 + pick(IDS));
        add_escape(VST_ESCAPE_BEGIN, &live[lives++], 1);
        return;
    }
    which = pick(3) ? (unsigned)lives - 1 : pick((unsigned)lives);
    pair = live[which];
    live[which] = live[--lives];
    add_escape(VST_ESCAPE_END, &pair, 1);
}

static void add_odd(void)
{
    switch (pick(13)) {
    case 11:
        add_escape(VST_ESCAPE_NODE, (uint64_t[]){0}, 1);
        break;
    case 12: /* a type that a later version may define */
        add_escape((vst_escape)100, (uint64_t[]){0}, pick(2));
        break;
    case 8:
        add(vst_word_escape(VST_ESCAPE_ALLOC, 16 << 7 | 1, 0),
            (uint64_t[]){0x1000}, 1);
        break;
    case 9:
        add(vst_word_escape(VST_ESCAPE_ALLOC_LARGE, 1, 0),
            (uint64_t[]){0x1000, 1 << 20, 1}, 3);
        break;
    case 10:
        add(vst_word_escape(VST_ESCAPE_FREE_RECENT, 8, 0), NULL, 0);
        break;
    case 0:
        add_gap();
        break;
    case 1:
        add_escape(VST_ESCAPE_ARGS, (uint64_t[]){6, 0x352065223a6e22}, 2);
        break;
    case 2:
        add_escape(VST_ESCAPE_LOST, (uint64_t[]){3}, 1);
        break;
    case 3:
        add_escape(VST_ESCAPE_GAP, (uint64_t[]){1}, 1);
        break;
    case 4:
        add(vst_word(VST_EXIT, IDS + 1, 0), NULL, 0);
        break;
    case 5:
        add_escape(VST_ESCAPE_END, (uint64_t[]){77}, 1);
        break;
    default:
        add_stack(pick(2));
    }
}

static void make_words(uint64_t with_seed, unsigned count, bool switches)
{
    seed = with_seed * 2 + 1;
    memset(&all, 0, sizeof all);
    guesses = lives = instances = 0;
    while (all.event_count < count) {
        unsigned what = pick(100);
        if (what < 42) {
            guess[guesses++] = 1 + pick(IDS);
            add(vst_word(VST_ENTER, guess[guesses - 1], 0), NULL, 0);
        } else if (what < 76 && guesses != 0) {
            add(vst_word(pick(4) ? VST_EXIT : VST_RAISE, guess[--guesses], 0),
                NULL, 0);
        } else if (what < 80) {
            add(vst_word(VST_EXIT, 1 + pick(IDS), 0), NULL, 0);
        } else if (what < 91) {
            add_begin_or_end();
        } else if (what < 96 && switches) {
            add_escape(VST_ESCAPE_SWITCH, (uint64_t[]){pick(4)}, 1);
            guesses = 0;
        } else {
            add_odd();
        }
    }
    all.events[all.event_count] = all.count;
}

/* ---- what a matcher makes of them --------------------------------------- */

typedef struct reading {
    vst_matcher *matcher;
    vst_span spans[SPANS_MAX];
    size_t count;
} reading;

static reading whole, rest;

static vst_status take_span(void *ctx, const vst_span *span)
{
    reading *r = ctx;

    CHECK(span->end_ns >= span->start_ns);
    CHECK(span->children_ns <= span->end_ns - span->start_ns ||
          span->flags & VST_SPAN_ASYNC);
    r->spans[r->count++] = *span;
    return VST_OK;
}

static int64_t to_ns(void *ctx, vst_ticks ticks)
{
    (void)ctx;
    return (int64_t)ticks;
}

static void feed_word(reading *r, const uint64_t *word, int64_t now_ns)
{
    vst_time_converter converter = {to_ns, NULL};
    vst_sink sink = {.ctx = r, .span = take_span};
    vst_compressed_event event = {.ticks = (vst_ticks)now_ns};
    vst_kind kind = vst_word_kind(*word);

    event.key = vst_trace_key_make((uint32_t)kind, vst_word_id(*word));
    if (kind == VST_ESCAPE) {
        event.key = vst_trace_key_make(
            vst_trace_key_kind_of_escape(vst_word_escape_type(*word)),
            vst_word_escape_type(*word) >= VST_ESCAPE_FIXED
                ? vst_word_escape_head(*word)
                : 0);
        event.payload = word + 1;
        event.payload_words = vst_word_escape_words(*word);
    }
    CHECK_INT(vst_matcher_feed(r->matcher, &converter, &event, 1, VST_TIME_OPEN,
                               &sink),
              VST_OK);
}

static void begin_reading(reading *r)
{
    memset(r, 0, sizeof *r);
    if (vst_matcher_create(&r->matcher) != VST_OK)
        abort();
}

static void end_reading(reading *r, int64_t end_ns)
{
    vst_time_converter converter = {to_ns, NULL};
    vst_sink sink = {.ctx = r, .span = take_span};

    CHECK_INT(vst_matcher_feed(r->matcher, &converter, NULL, 0, end_ns, &sink),
              VST_OK);
    vst_matcher_destroy(r->matcher);
}

static int64_t time_of(size_t event)
{
    return (int64_t)(event + 1) * STEP_NS;
}

/* ---- comparing ---------------------------------------------------------- */

static const vst_span *by_serial(const reading *r, uint64_t serial)
{
    for (size_t i = 0; serial != 0 && i < r->count; i++)
        if (r->spans[i].serial == serial)
            return &r->spans[i];
    return NULL;
}

/* Returns the span around this span, unless it is no longer on the stack. */
static vst_id around(const reading *r, uint64_t serial)
{
    const vst_span *span = by_serial(r, serial);

    return span != NULL && !(span->flags & VST_SPAN_ASYNC) ? span->id : 0;
}

static bool same_moment(int64_t of_whole, int64_t of_rest, int64_t split_ns)
{
    /* Pieces that are resumed together begin a nanosecond after each other. */
    if (of_whole > split_ns)
        return llabs(of_whole - of_rest) < 100;
    return of_rest > split_ns - NEAR_NS && of_rest < split_ns + NEAR_NS;
}

static bool same_span(const vst_span *a, const vst_span *b, int64_t split_ns)
{
    const uint32_t begins = VST_SPAN_OPEN_AT_START | VST_SPAN_RESUMED;

    return a->id == b->id && (a->flags & ~begins) == (b->flags & ~begins) &&
           same_moment(a->start_ns, b->start_ns, split_ns) &&
           same_moment(a->end_ns, b->end_ns, split_ns) &&
           around(&whole, a->caller) == around(&rest, b->caller) &&
           (around(&whole, a->parent) == around(&rest, b->parent) ||
            around(&whole, a->parent) == 0);
}

/* Spans off the stack that are open at the end come in any order. */
static int64_t sorting_split_ns;

static int in_order(const void *a, const void *b)
{
    const vst_span *x = a, *y = b;
    int64_t split_ns = sorting_split_ns + NEAR_NS;
    int64_t start_x = x->start_ns < split_ns ? 0 : x->start_ns;
    int64_t start_y = y->start_ns < split_ns ? 0 : y->start_ns;

    if (start_x != start_y)
        return start_x < start_y ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static void sort_open(reading *r, int64_t split_ns)
{
    const uint32_t open = VST_SPAN_ASYNC | VST_SPAN_OPEN_AT_END;
    size_t first = r->count;

    while (first != 0 && (r->spans[first - 1].flags & open) == open)
        first--;
    sorting_split_ns = split_ns;
    qsort(r->spans + first, r->count - first, sizeof *r->spans, in_order);
}

static bool compare(size_t from, int64_t split_ns)
{
    bool same = CHECK_INT(rest.count, whole.count - from);

    sort_open(&whole, split_ns);
    sort_open(&rest, split_ns);
    for (size_t i = 0; same && i < rest.count; i++) {
        const vst_span *a = &whole.spans[from + i], *b = &rest.spans[i];
        same = CHECK(same_span(a, b, split_ns));
        if (!same)
            printf("# span %zu: %u %lld..%lld flags %x, not %u %lld..%lld "
                   "flags %x, in %u/%u, not %u/%u\n",
                   i, b->id, (long long)b->start_ns, (long long)b->end_ns,
                   b->flags, a->id, (long long)a->start_ns,
                   (long long)a->end_ns, a->flags, around(&rest, b->parent),
                   around(&rest, b->caller), around(&whole, a->parent),
                   around(&whole, a->caller));
    }
    return same;
}

/* Folds the first `split` events, and reads the others unchanged. */
static bool check_split(size_t split)
{
    static uint64_t emitted[WORDS_MAX], again[WORDS_MAX];
    const uint64_t over = vst_word_escape(VST_ESCAPE_LOST, 0, 0);
    vst__fold fold = {0}, copy = {0};
    int64_t split_ns = time_of(split) - STEP_NS / 2;
    size_t count, from = 0;

    begin_reading(&whole);
    for (size_t i = 0; i < all.event_count; i++) {
        if (i == split)
            from = whole.count;
        feed_word(&whole, &all.at[all.events[i]], time_of(i));
    }
    end_reading(&whole, time_of(all.event_count));

    vst__fold_words(&fold, all.at, all.events[split]);
    count = vst__fold_emit(&fold, emitted, WORDS_MAX);
    CHECK_INT(count, vst__fold_size(&fold));
    /* The emitted words bring another fold to the same state, except that the
     * last STACK may continue there. */
    vst__fold_words(&copy, emitted, count);
    if (!fold.reconciling)
        vst__fold_words(&copy, &over, 1);
    /* A stack whose spans have all ended meanwhile is left out. */
    CHECK(vst__fold_size(&copy) <= count);
    if (vst__fold_emit(&copy, again, WORDS_MAX) == count)
        CHECK(memcmp(emitted, again, count * 8) == 0);

    begin_reading(&rest);
    for (size_t i = 0; i < count; i += 1 + vst_word_escape_words(emitted[i]))
        feed_word(&rest, &emitted[i], split_ns);
    CHECK_INT(rest.count, 0);
    for (size_t i = split; i < all.event_count; i++)
        feed_word(&rest, &all.at[all.events[i]], time_of(i));
    end_reading(&rest, time_of(all.event_count));
    vst__fold_free(&fold);
    vst__fold_free(&copy);
    return compare(from, split_ns);
}

static void check_all(unsigned seeds, unsigned count, bool switches)
{
    seeds /= check_step(1, 3);
    for (unsigned i = 0; i < seeds && checks_bad == 0; i++) {
        make_words(i, count, switches);
        for (size_t split = 0; split < all.event_count; split++)
            if (all.splits[split] && !check_split(split)) {
                printf("# seed %u, split at %zu of %zu\n", i, split,
                       all.event_count);
                return;
            }
    }
}

static void a_fold_takes_words_as_the_matcher_takes_events(void)
{
    check_all(60, 60, false);
    check_all(10, 300, false);
}

static void it_knows_several_stacks(void)
{
    check_all(60, 60, true);
    check_all(10, 300, true);
}

/* ---- the rest ----------------------------------------------------------- */

static vst__fold fold_of(unsigned depth)
{
    vst__fold fold = {0};

    for (unsigned i = 0; i < depth; i++) {
        uint64_t word = vst_word(VST_ENTER, 1 + i, 7);
        vst__fold_words(&fold, &word, 1);
    }
    return fold;
}

static void what_does_not_fit_is_the_innermost(void)
{
    static uint64_t emitted[5000];
    vst__fold fold = fold_of(3000);
    size_t count = vst__fold_emit(&fold, emitted, 100);

    CHECK_INT(vst__fold_size(&fold), 3003);
    CHECK_INT(count, 100);
    CHECK_INT(emitted[0], vst_word_escape(VST_ESCAPE_STACK, 99, 0));
    CHECK_INT(emitted[1], 1);
    CHECK_INT(emitted[99], 99);
    CHECK_INT(vst__fold_emit(&fold, emitted, 0), 0);
    vst__fold_free(&fold);
}

static void a_long_stack_goes_on_in_further_escapes(void)
{
    static uint64_t emitted[5000];
    vst__fold fold = fold_of(3000);

    CHECK_INT(vst__fold_emit(&fold, emitted, 5000), 3003);
    CHECK_INT(emitted[0], vst_word_escape(VST_ESCAPE_STACK, 1024, 0));
    CHECK_INT(emitted[1025], vst_word_escape(VST_ESCAPE_STACK_MORE, 1024, 0));
    CHECK_INT(emitted[2050], vst_word_escape(VST_ESCAPE_STACK_MORE, 952, 0));
    CHECK_INT(emitted[3002], 3000);
    vst__fold_free(&fold);
}

static void exits_that_match_nothing_cost_no_walk_each(void)
{
    vst__fold fold = fold_of(100000);
    uint64_t stray = vst_word(VST_EXIT, 200000, 0);
    uint64_t outermost = vst_word(VST_EXIT, 1, 0);

    for (int i = 0; i < 1000000; i++)
        vst__fold_words(&fold, &stray, 1);
    CHECK_INT(vst__fold_size(&fold), 100098);
    vst__fold_words(&fold, &outermost, 1);
    CHECK(vst__fold_is_empty(&fold));
    vst__fold_free(&fold);
}

static void a_cut_escape_is_left_alone(void)
{
    vst__fold fold = fold_of(2);
    uint64_t cut[2] = {vst_word_escape(VST_ESCAPE_STACK, 5, 0), 1};

    vst__fold_words(&fold, cut, 2);
    CHECK_INT(vst__fold_size(&fold), 3);
    vst__fold_reset(&fold);
    CHECK(vst__fold_is_empty(&fold));
    CHECK_INT(vst__fold_size(&fold), 0);
    vst__fold_free(&fold);
}

int main(void)
{
    TEST(a_fold_takes_words_as_the_matcher_takes_events);
    TEST(it_knows_several_stacks);
    TEST(what_does_not_fit_is_the_innermost);
    TEST(a_long_stack_goes_on_in_further_escapes);
    TEST(exits_that_match_nothing_cost_no_walk_each);
    TEST(a_cut_escape_is_left_alone);
    return checks_end();
}
