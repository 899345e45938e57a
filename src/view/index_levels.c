/* Chooses how fine the levels of a thread are: a thread that records every 50
 * ns needs other levels than one that records every millisecond. */
#include <stdlib.h>

#include "view/index_build.h"

enum {
    /* The first threshold, in median times between two records, and the limits
     * of the sample. */
    THRESHOLD_DELTAS = 512,
    SAMPLES_MAX = 8192,
    SAMPLE_WORDS = 256,
    /* The last threshold fits this many times into the thread's time. */
    COARSEST = 256
};

/* ---- the threshold ------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Samples deltas at the heads of segments, where the words are certainly
 * records. */
static size_t sample_segment(vst__walk *walk, const vst__segment *segment,
                             uint32_t *samples)
{
    vst__stream stream;
    const uint64_t *word;
    size_t count = 0, words = SAMPLE_WORDS;

    if (words > segment->words)
        words = (size_t)segment->words;
    walk->block.size = SAMPLE_WORDS * sizeof(uint64_t);
    vst__stream_open(&stream, &walk->block, segment->offset, words, 0);
    while (vst__stream_fill(&stream))
        while ((word = vst__stream_next(&stream)) != NULL)
            if (vst_word_kind(*word) != VST_ESCAPE && count < SAMPLE_WORDS)
                samples[count++] = vst_word_delta(*word);
    walk->block.size = VST_BLOCK_SIZE;
    walk->block.count = 0;
    return count;
}

int64_t vst__index_find_threshold(vst__walk *walk, const vst__stretch *stretch)
{
    uint32_t *samples = malloc(SAMPLES_MAX * sizeof *samples);
    size_t step = stretch->segment_count / (SAMPLES_MAX / SAMPLE_WORDS) + 1;
    double ns_per_tick = 1e9 / walk->trace->header.ticks_per_second;
    double threshold = 0;
    size_t count = 0;

    if (samples == NULL)
        return 0;
    for (size_t i = 0;
         i < stretch->segment_count && count + SAMPLE_WORDS <= SAMPLES_MAX;
         i += step)
        count += sample_segment(walk, &stretch->segments[i], samples + count);
    if (count != 0) {
        qsort(samples, count, sizeof *samples, by_value);
        threshold = samples[count / 2] * ns_per_tick * THRESHOLD_DELTAS;
    }
    free(samples);
    if (threshold > 1e15)
        threshold = 1e15;
    return threshold > 1000 ? (int64_t)threshold : 1000;
}

/* Uses the stretch with most records for the whole thread. */
void vst__index_choose_levels(const vst__index_job *job, vst__walk *walk,
                              vst__index_thread *thread)
{
    const vst__stretch *most = NULL;
    int64_t first_ns = INT64_MAX, last_ns = INT64_MIN, threshold_ns;

    for (size_t i = 0; i < job->stretch_count; i++) {
        const vst__stretch *stretch = &job->stretches[i];
        int64_t start_ns, end_ns;

        if (stretch->thread != thread->number)
            continue;
        thread->records += stretch->words;
        if (most == NULL || stretch->words > most->words)
            most = stretch;
        start_ns = vst__clockmap_to_ns(&walk->clock, stretch->segments->start);
        end_ns = vst__clockmap_to_ns(&walk->clock, stretch->window->last);
        if (start_ns < first_ns)
            first_ns = start_ns;
        if (end_ns > last_ns)
            last_ns = end_ns;
    }
    if (thread->records <= VST_PYRAMID_RECORDS || last_ns <= first_ns)
        return;
    threshold_ns = vst__index_find_threshold(walk, most);
    if (threshold_ns == 0)
        return;
    thread->threshold_ns = threshold_ns;
    thread->level_count = 1;
    while (thread->level_count < VST_LEVELS_MAX - 1 &&
           threshold_ns < (last_ns - first_ns) / COARSEST / 4) {
        threshold_ns *= 4;
        thread->level_count++;
    }
}
