/* Reads switches of threads, see running.h. */
#include "replay/running.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "replay/escapes.h"
#include "store/live.h"

/* A place is an offset, which is a multiple of 8, with the number of the
 * escape's payload words in its low bits. */
enum { WORDS_BITS = 11, PLACE_SHIFT = WORDS_BITS - 3 };

_Static_assert(VST_ESCAPE_WORDS_MAX < 1u << WORDS_BITS, "words fit a place");

/* ---- finding the escapes ------------------------------------------------- */

static void running_note_until(vst_running *self, uint64_t word)
{
    int64_t ns = vst__clockmap_monotonic_to_ns(&self->trace->clock,
                                               vst_switch_value(word));

    if (vst_switch_what(word) == VST_SWITCHES_END)
        ns = INT64_MAX;
    if (ns > self->until_ns)
        self->until_ns = ns;
}

static vst_status running_note_piece(void *ctx, const vst__escape_found *found)
{
    vst_running *self = ctx;
    const uint64_t *word = found->word;
    uint32_t words = vst_word_escape_words(*word);

    if (word[1] == 0) {
        running_note_until(self, word[2]);
        return VST_OK;
    }
    if (!VST_RESERVE(self->pieces, self->count + 1, self->capacity))
        return VST_E_NOMEM;
    self->pieces[self->count++] = (vst__running_piece){
        .place = found->offset << PLACE_SHIFT | words,
        .thread = (uint32_t)word[1],
        .segment = found->segment,
    };
    return VST_OK;
}

static int by_thread(const void *a, const void *b)
{
    const vst__running_piece *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

vst_status vst__running_collect_new(vst_running *self, vst_trace *trace,
                                    const vst__window *window,
                                    vst__running_mark *mark)
{
    const vst__escape_visit visit = {VST_ESCAPE_SWITCHES, 2, running_note_piece,
                                     self};
    const vst__running_mark read = *mark;
    vst_status status = VST_OK;

    self->trace = trace;
    self->segments = &trace->segments[window->segments + window->segment_count];
    self->count = 0;
    if (self->words == NULL)
        self->words = malloc(VST_ESCAPE_WORDS_MAX * sizeof *self->words);
    if (self->words == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; status == VST_OK && i < window->switches; i++) {
        const vst__segment *segment = &self->segments[i];
        bool is_last = segment->start == read.start &&
                       segment->offset == read.offset && read.words != 0;
        uint64_t words = is_last ? read.words : 0;

        if (words > segment->words ||
            (!is_last && read.words != 0 && segment->start <= read.start))
            continue;
        status = vst__escapes_behind(trace, self->segments, (uint32_t)i, &words,
                                     &visit);
        *mark = (vst__running_mark){segment->start, segment->offset, words};
    }
    if (self->count > 1)
        qsort(self->pieces, self->count, sizeof *self->pieces, by_thread);
    return status;
}

vst_status vst__running_collect(vst_running *self, vst_trace *trace,
                                const vst__window *window)
{
    vst__running_mark mark = {0};

    self->until_ns = INT64_MIN;
    return vst__running_collect_new(self, trace, window, &mark);
}

/* ---- one thread ---------------------------------------------------------- */

/* Makes everything unknown after a loss, or after words that cannot be read. */
static void lose_track(vst_running *self)
{
    self->known_ns = INT64_MAX;
}

/* Reads the words of the next escape; returns false if there is none. */
static bool read_piece(vst_running *self)
{
    const vst__running_piece *piece = self->piece;
    uint32_t words;
    bool reused = false;
    size_t got;

    if (piece == self->end || self->status != VST_OK)
        return false;
    self->piece++;
    words = (uint32_t)(piece->place & ((1u << WORDS_BITS) - 1)) - 1;
    self->status = vst__source_read(
        &self->trace->source, self->words, words * sizeof *self->words,
        (piece->place >> WORDS_BITS << 3) + 2 * sizeof *self->words, &got);
    if (self->status == VST_OK)
        self->status = vst__live_is_reused(
            self->trace, &self->segments[piece->segment], &reused);
    self->at = 0;
    self->word_count = self->status != VST_OK || reused ? 0 : got / 8;
    if (self->word_count < words)
        lose_track(self);
    return self->status == VST_OK;
}

/* Finds the next word that has a time. */
static void find_next(vst_running *self)
{
    for (;;) {
        uint64_t word;

        while (self->at == self->word_count)
            if (!read_piece(self)) {
                self->next_ns = INT64_MAX;
                return;
            }
        word = self->words[self->at++];
        self->next = vst_switch_what(word);
        if (self->next == VST_SWITCH_LOST) {
            lose_track(self);
            continue;
        }
        self->next_ns = vst__clockmap_monotonic_to_ns(&self->trace->clock,
                                                      vst_switch_value(word));
        if (self->next_ns < self->since_ns)
            self->next_ns = self->since_ns;
        return;
    }
}

void vst__running_advance(vst_running *self, int64_t ns)
{
    while (self->next_ns <= ns && self->next_ns != INT64_MAX) {
        if (self->runs)
            self->ran_ns += self->next_ns - self->since_ns;
        if (self->is_preempted)
            self->lost_ns += self->next_ns - self->since_ns;
        self->since_ns = self->next_ns;
        self->runs = self->next == VST_SWITCH_IN;
        self->is_preempted = self->next == VST_SWITCH_PREEMPTED;
        if (self->known_ns == INT64_MAX)
            self->known_ns = self->since_ns;
        find_next(self);
    }
}

vst_status vst__running_resume(vst_running *self, uint32_t thread,
                               const vst__running_kept *kept)
{
    size_t low = 0, high = self->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (self->pieces[middle].thread < thread)
            low = middle + 1;
        else
            high = middle;
    }
    while (high < self->count && self->pieces[high].thread == thread)
        high++;
    self->piece = self->count != 0 ? self->pieces + low : NULL;
    self->end = self->count != 0 ? self->pieces + high : NULL;
    self->at = self->word_count = 0;
    self->runs = kept->runs;
    self->is_preempted = kept->is_preempted;
    self->since_ns = kept->is ? kept->since_ns : INT64_MIN;
    self->ran_ns = kept->ran_ns;
    self->lost_ns = kept->lost_ns;
    self->known_ns = kept->is ? kept->known_ns : INT64_MAX;
    find_next(self);
    return self->status;
}

vst_status vst__running_open(vst_running *self, uint32_t thread)
{
    return vst__running_resume(self, thread, &(vst__running_kept){0});
}

void vst__running_keep(vst_running *self, int64_t ns, vst__running_kept *kept)
{
    vst__running_advance(self, ns);
    *kept = (vst__running_kept){
        true,           self->runs,   self->is_preempted, self->since_ns,
        self->known_ns, self->ran_ns, self->lost_ns};
}

static vst__thread_state state_now(const vst_running *self)
{
    return self->runs           ? VST_THREAD_RUNS
           : self->is_preempted ? VST_THREAD_PREEMPTED
                                : VST_THREAD_WAITS;
}

/* known_ns is INT64_MAX between a loss and the word behind it. */
vst_status vst__running_each(vst_running *self, uint32_t thread,
                             void (*fn)(void *ctx,
                                        const vst__thread_stretch *stretch),
                             void *ctx)
{
    vst_status status = vst__running_open(self, thread);
    vst__thread_stretch stretch = {.what = VST_THREAD_UNKNOWN};

    while (status == VST_OK && self->next_ns != INT64_MAX) {
        bool is_lost = self->known_ns == INT64_MAX;

        stretch.end_ns = self->next_ns;
        vst__running_advance(self, self->next_ns);
        stretch.next = state_now(self);
        status = self->status;
        if (!is_lost && stretch.next == stretch.what)
            continue; /* the stream repeats the last word */
        if (!is_lost && stretch.what != VST_THREAD_UNKNOWN)
            fn(ctx, &stretch);
        stretch.what = stretch.next;
        stretch.start_ns = stretch.end_ns;
    }
    stretch.end_ns = self->until_ns;
    stretch.next = VST_THREAD_UNKNOWN;
    if (status == VST_OK && stretch.what != VST_THREAD_UNKNOWN &&
        self->known_ns != INT64_MAX && stretch.end_ns > stretch.start_ns)
        fn(ctx, &stretch);
    return status;
}

void vst__running_free(vst_running *self)
{
    free(self->pieces);
    free(self->words);
    memset(self, 0, sizeof *self);
}
