/* See walk.h: beginning and continuing a walk. walk_match.c interprets the
 * events. */
#include "view/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/walk_match.h"

void vst__reading_init(vst__reading *reading, vst_trace *trace)
{
    *reading = (vst__reading){trace, trace->source, trace->clock, NULL};
}

vst_status vst__walk_init(vst__walk *walk, const vst__reading *reading)
{
    vst_trace *trace = reading->trace;

    memset(walk, 0, sizeof *walk);
    walk->trace = trace;
    /* A packed trace is unpacked in one place; other files are read by each
     * walk itself. */
    walk->source = reading->source;
    vst__block_init(&walk->block, reading->source.packed != NULL
                                      ? &trace->source
                                      : &walk->source);
    walk->block.file_size = trace->block.file_size;
    walk->clock = reading->clock;
    walk->converter = vst__clockmap_converter(&walk->clock);
    walk->count_until_ns = INT64_MAX;
    walk->fold.imports = reading->imports;
    walk->decoder = vst__decoder_create();
    return walk->decoder != NULL ? VST_OK : VST_E_NOMEM;
}

void vst__walk_free(vst__walk *walk)
{
    vst__decoder_destroy(walk->decoder);
    vst_matcher_destroy(walk->matcher);
    vst__block_free(&walk->block);
    free(walk->segments);
    free(walk->open);
    free(walk->spans);
    vst__import_fold_free(&walk->fold);
    memset(walk, 0, sizeof *walk);
}

/* Copies the segments from `place` on; the first one is cut to begin there. */
static vst_status take_segments(vst__walk *walk, const vst__place *place,
                                size_t last)
{
    const vst__stretch *stretch = walk->stretch;
    size_t first = place != NULL ? (size_t)place->segment : 0;
    vst__segment *segments;

    if (last >= stretch->segment_count)
        last = stretch->segment_count - 1;
    if (first > last)
        return VST_E_DAMAGED;
    walk->segment_first = first;
    walk->segment_count = last - first + 1;
    segments = vst__grow(walk->segments, &walk->segment_capacity,
                         walk->segment_count, sizeof *segments);
    if (segments == NULL)
        return VST_E_NOMEM;
    walk->segments = segments;
    memcpy(segments, stretch->segments + first,
           walk->segment_count * sizeof *segments);
    walk->words_before = 0;
    for (size_t i = 0; i < first; i++)
        walk->words_before += stretch->segments[i].words;
    if (place == NULL || place->word == 0)
        return VST_OK;
    if (place->word >= segments->words)
        return VST_E_DAMAGED;
    segments->offset += place->word * sizeof(uint64_t);
    segments->words -= place->word;
    segments->start = place->ticks;
    segments->checkpoint = 0;
    walk->words_before += place->word;
    return VST_OK;
}

static vst_status take_open(vst__walk *walk, const vst__place *place)
{
    if (!VST_RESERVE(walk->open, place != NULL ? place->open_count : 1,
                     walk->open_capacity))
        return VST_E_NOMEM;
    walk->open_count = walk->begun = 0;
    if (place == NULL || place->open_count == 0)
        return VST_OK;
    walk->open_count = place->open_count;
    memcpy(walk->open, place->open, walk->open_count * sizeof *walk->open);
    for (size_t i = 0; i < walk->open_count; i++)
        walk->begun += (walk->open[i].flags & VST_FRAME_BEGIN) != 0;
    return VST_OK;
}

vst_status vst__walk_fill_tree(vst__walk *walk)
{
    const vst_matcher *matcher = walk->plain ? NULL : walk->matcher;
    size_t count = matcher != NULL ? matcher->count : walk->open_count;
    vst__flame *tree = walk->tree;
    vst_status status = VST_OK;

    if (tree == NULL)
        return VST_OK;
    tree->frame_count = 0;
    for (size_t i = 0; status == VST_OK && i < count; i++)
        if (matcher == NULL) {
            status =
                vst__flame_push(tree, walk->open[i].id, walk->open[i].start_ns);
        } else {
            status = vst__flame_push(tree, matcher->frames[i].id,
                                     matcher->frames[i].start_ns);
            if (status == VST_OK)
                tree->frames[i].serial = matcher->frames[i].serial;
        }
    return status;
}

/* Makes the decoder begin at a place, or at the head. */
static vst_status open_decoder(vst__walk *walk, const vst__place *place,
                               size_t last)
{
    vst__decoder *decoder = walk->decoder;
    vst_status status = take_segments(walk, place, last);

    if (status != VST_OK)
        return status;
    walk->finished = false;
    walk->span_count = 0;
    walk->event_count = walk->matched = 0;
    walk->window = *walk->stretch->window;
    if (place != NULL) /* the bound in time lies before it */
        walk->window.began = UINT64_MAX;
    decoder->block = &walk->block;
    vst__decoder_open(decoder, walk->trace, &walk->window, walk->segments,
                      walk->segment_count);
    if (place != NULL) {
        decoder->records = place->records;
        decoder->known = place->ticks;
        decoder->at_head = place->word == 0;
    }
    return VST_OK;
}

vst_status vst__walk_open(vst__walk *walk, const vst__stretch *stretch,
                          const vst__place *place, size_t last)
{
    vst_status status;

    walk->stretch = stretch;
    walk->plain = true;
    walk->delivered = place != NULL && place->delivered;
    walk->last_ns = place != NULL ? place->last_ns : INT64_MIN;
    walk->bytes = place != NULL ? place->bytes : 0;
    walk->allocations = place != NULL ? place->allocations : 0;
    status = take_open(walk, place);
    if (status == VST_OK && walk->fold.imports != NULL)
        status =
            vst__import_fold_begin(&walk->fold, walk->open, walk->open_count);
    if (status == VST_OK)
        status = vst__walk_fill_tree(walk);
    if (status == VST_OK)
        status = open_decoder(walk, place, last);
    if (status != VST_OK)
        return status;
    return walk->always_matcher ? vst__walk_to_matcher(walk) : VST_OK;
}

/* Returns how many words of the current segment were not decoded. */
static uint64_t walk_words_left(const vst__decoder *decoder)
{
    const vst__stream *stream = &decoder->stream;

    return stream->left + (uint64_t)(stream->end - stream->at);
}

bool vst__walk_place(const vst__walk *walk, vst__place *place)
{
    const vst__decoder *decoder = walk->decoder;
    size_t index = (size_t)(decoder->segment - walk->segments);
    uint64_t left = walk_words_left(decoder);

    if (!walk->plain || walk->finished || decoder->folding ||
        walk->matched != walk->event_count ||
        decoder->pending_at != decoder->pending_count ||
        decoder->segment == decoder->end ||
        (!decoder->at_head && (left > decoder->run_left || left == 0)))
        return false;
    *place = (vst__place){
        .segment = walk->segment_first + index,
        .word = 0,
        .ticks = decoder->known,
        .records = decoder->records,
        .last_ns = walk->last_ns,
        .bytes = walk->bytes,
        .allocations = walk->allocations,
        .delivered = walk->delivered,
        .open_count = (uint32_t)walk->open_count,
        .open = walk->open,
    };
    if (decoder->at_head)
        return true;
    /* Count in the whole segment, because this one may be its rest. */
    place->word = walk->stretch->segments[place->segment].words - left;
    place->ticks = decoder->stream.now;
    place->records += decoder->run_left - left;
    return true;
}

uint64_t vst__walk_words(const vst__walk *walk)
{
    return walk->words_before + vst__decoder_words(walk->decoder);
}

vst_status vst__walk_next(vst__walk *walk, bool *ends)
{
    bool reaches_end = walk->segment_first + walk->segment_count ==
                       walk->stretch->segment_count;
    vst_status status = VST_OK;
    size_t matched = 0;
    bool last;

    walk->span_count = 0;
    *ends = true;
    if (walk->finished)
        return VST_OK;
    if (walk->matched == walk->event_count) {
        walk->matched = 0;
        status =
            vst__decoder_next(walk->decoder, &walk->event_count, &walk->last);
    }
    if (status == VST_OK && walk->matched != walk->event_count)
        status = vst__walk_match(walk, walk->decoder->events + walk->matched,
                                 walk->event_count - walk->matched, &matched);
    walk->matched += matched;
    last = walk->last && walk->matched == walk->event_count;
    if (status == VST_OK && last && reaches_end && !walk->goes_on)
        status = vst__walk_finish(walk);
    walk->finished = last || status != VST_OK;
    *ends = walk->finished;
    if (status == VST_OK && walk->fold.imports != NULL)
        status = vst__import_fold_batch(walk);
    return status;
}

/* ---- continuing after a stop --------------------------------------------- */

void vst__walk_stop(const vst__walk *walk, vst__stop *stop)
{
    const vst__decoder *decoder = walk->decoder;
    const vst__segment *last =
        walk->stretch->segments + walk->segment_first + walk->segment_count - 1;

    *stop = (vst__stop){
        .offset = last->offset,
        .sequence = last->sequence,
        .start = last->start,
        .words = last->words - walk_words_left(decoder),
        .ticks = decoder->stream.now,
        .records = decoder->records,
    };
}

/* Finds where a stretch continues behind a stop. Returns false if it has
 * nothing more. */
static bool find_rest(const vst__stretch *stretch, const vst__stop *stop,
                      vst__place *place)
{
    const vst__segment *segments = stretch->segments;
    size_t i = stretch->segment_count;

    *place = (vst__place){.ticks = stop->ticks, .records = stop->records};
    /* Skip the older segments; most of the time there is one newer segment. */
    while (i != 0 && segments[i - 1].start > stop->start)
        i--;
    for (size_t at = i; at-- != 0 && segments[at].start == stop->start;)
        if (segments[at].offset == stop->offset &&
            segments[at].sequence == stop->sequence) {
            bool grew = segments[at].words > stop->words;

            place->word = grew ? stop->words : 0;
            i = grew ? at : at + 1;
            break;
        }
    place->segment = i;
    return i < stretch->segment_count;
}

vst_status vst__walk_resume(vst__walk *walk, const vst__stretch *stretch,
                            const vst__reading *reading, const vst__stop *stop,
                            bool *more)
{
    vst__place place;

    walk->stretch = stretch;
    walk->source = reading->source;
    walk->clock = reading->clock;
    walk->block.file_size = reading->trace->block.file_size;
    walk->block.count = 0; /* the block's bytes are from an earlier reading */
    *more = find_rest(stretch, stop, &place);
    return *more ? open_decoder(walk, &place, SIZE_MAX) : VST_OK;
}

void vst__walk_rest(vst__walk *walk)
{
    vst__block_free(&walk->block);
    free(walk->segments);
    free(walk->spans);
    walk->segments = NULL;
    walk->spans = NULL;
    walk->segment_capacity = walk->span_capacity = walk->span_count = 0;
}
