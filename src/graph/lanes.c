/* Reads the threads of a window together; each thread is a lane. A lane is fed
 * until a node begins or may end, because that matters to the other lanes, and
 * waits there until it is the earliest. A lane has memory from its first record
 * to its last. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include <vestige/graph.h>

#include "graph/graph.h"
#include "os/progress.h"
#include "replay/decode.h"

enum {
    /* approximate size of the blocks of all threads together */
    BLOCKS_SIZE = 8 * 1024 * 1024,
    BLOCK_LEAST = 16 * 1024,
};

/* A thread while it is read. */
typedef struct lane {
    vst__graph_lane graph_lane;
    vst_sink sink;
    vst__block block;
    vst_matcher *matcher;
    size_t at, count; /* position among, and number of, the decoder's events */
    bool waiting;     /* events[at] must wait until this lane is the earliest */
    bool last;        /* `events` has the last events of the thread */
    uint64_t words;   /* words that the progress has counted */
    vst__decoder decoder;
} lane;

/* A thread of the window. */
typedef struct stream {
    const vst__segment *segments;
    size_t segment_count;
    uint32_t thread;
    vst_ticks time; /* no event of the thread is earlier */
    lane *lane;     /* NULL if the thread is not open */
} stream;

typedef struct reading {
    vst__graph *graph;
    vst_trace *trace;
    const vst__window *window;
    vst_time_converter converter;
    int64_t end_ns;
    stream *streams; /* sorted by time */
    size_t count, opened;
    stream **heap; /* waiting streams, the earliest on top */
    size_t heap_count;
    size_t block_size;
    uint64_t words, words_total;
    int64_t next_progress_ns;
} reading;

/* ---- the heap ------------------------------------------------------------ */

static bool lanes_comes_before(const stream *a, const stream *b)
{
    return a->time != b->time ? a->time < b->time : a->thread < b->thread;
}

static void lanes_sift_down(reading *self)
{
    stream *moved = self->heap[0];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < self->heap_count) {
        if (child + 1 < self->heap_count &&
            lanes_comes_before(self->heap[child + 1], self->heap[child]))
            child++;
        if (!lanes_comes_before(self->heap[child], moved))
            break;
        self->heap[at] = self->heap[child];
        at = child;
    }
    self->heap[at] = moved;
}

static void lanes_push(reading *self, stream *added)
{
    size_t at = self->heap_count++;

    while (at != 0 && lanes_comes_before(added, self->heap[(at - 1) / 2])) {
        self->heap[at] = self->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    self->heap[at] = added;
}

/* ---- lanes --------------------------------------------------------------- */

static void close_lane(stream *closed)
{
    lane *self = closed->lane;

    if (self == NULL)
        return;
    vst_matcher_destroy(self->matcher);
    vst__decoder_close(&self->decoder);
    vst__block_free(&self->block);
    vst__graph_lane_free(&self->graph_lane);
    free(self);
    closed->lane = NULL;
}

static vst_status open_lane(reading *self, stream *opened)
{
    const vst_trace_thread *thread =
        vst_trace_thread_find(self->trace, opened->thread);
    lane *made = calloc(1, sizeof *made);
    vst_status status;

    if (made == NULL)
        return VST_E_NOMEM;
    opened->lane = made;
    made->graph_lane.graph = self->graph;
    made->graph_lane.system_tid = thread != NULL && thread->system_tid != 0
                                      ? thread->system_tid
                                      : opened->thread + UINT64_C(1);
    made->sink = vst__graph_lane_sink;
    made->sink.ctx = &made->graph_lane;
    vst__block_init(&made->block, &self->trace->source);
    made->block.file_size = self->trace->block.file_size;
    made->block.size = self->block_size;
    made->decoder.block = &made->block;
    status = vst_matcher_create(&made->matcher);
    if (status == VST_OK)
        vst__decoder_open(&made->decoder, self->trace, self->window,
                          opened->segments, opened->segment_count);
    return status;
}

static vst_status lanes_report_progress(reading *self, lane *of)
{
    vst_trace *trace = self->trace;
    uint64_t words = vst__decoder_words(&of->decoder);

    self->words += words - of->words;
    of->words = words;
    return vst__progress_report(
        trace->progress, trace->progress_ctx, &self->next_progress_ns,
        (double)self->words / (double)self->words_total);
}

static vst_status lanes_feed(reading *self, lane *to, size_t count)
{
    const vst_compressed_event *events = to->decoder.events + to->at;

    to->at += count;
    return count != 0 ? vst_matcher_feed(to->matcher, &self->converter, events,
                                         count, VST_TIME_OPEN, &to->sink)
                      : VST_OK;
}

/* Returns whether an event must come in order among the events of other
 * lanes. */
static bool lanes_matters(const lane *of, const vst_compressed_event *event)
{
    uint32_t kind = vst_trace_key_kind(event->key);
    uint32_t type = vst_trace_key_escape_type(event->key);

    if (type == VST_ESCAPE_NODE)
        return true;
    if (kind == VST_ENTER || of->graph_lane.thread == NULL ||
        of->graph_lane.thread->open_count == 0)
        return false;
    return kind == VST_EXIT || kind == VST_RAISE || type == VST_ESCAPE_END ||
           type == VST_ESCAPE_SETTLE;
}

/* Feeds events up to the next one that must wait. *waits is false if the thread
 * has no more. */
static vst_status lanes_advance(reading *self, stream *moved, bool alone,
                                bool *waits)
{
    lane *to = moved->lane;
    vst_status status = VST_OK;

    *waits = true;
    if (to->waiting)
        status = lanes_feed(self, to, 1);
    to->waiting = false;
    while (status == VST_OK) {
        size_t next = alone ? to->count : to->at;

        while (next < to->count &&
               !lanes_matters(to, &to->decoder.events[next]))
            next++;
        status = lanes_feed(self, to, next - to->at);
        if (status != VST_OK)
            break;
        if (to->at < to->count) {
            vst_ticks time = to->decoder.events[to->at].ticks;
            if (time > moved->time)
                moved->time = time;
            to->waiting = true;
            return VST_OK;
        }
        if (to->last)
            break;
        status = vst__decoder_next(&to->decoder, &to->count, &to->last);
        to->at = 0;
        if (status != VST_OK)
            self->trace->block.sys_errno = to->block.sys_errno;
        else
            status = lanes_report_progress(self, to);
    }
    *waits = false;
    if (status == VST_OK)
        status = vst_matcher_feed(to->matcher, &self->converter, NULL, 0,
                                  self->end_ns, &to->sink);
    if (status == VST_OK)
        status = vst__graph_lane_finish(&to->graph_lane);
    return status;
}

/* ---- a window ------------------------------------------------------------ */

static int lanes_by_time(const void *a, const void *b)
{
    const stream *x = a, *y = b;

    return lanes_comes_before(x, y) ? -1 : lanes_comes_before(y, x);
}

static vst_status find_streams(reading *self)
{
    const vst__window *window = self->window;
    const vst__segment *segments = &self->trace->segments[window->segments];
    size_t count = 0;

    for (size_t i = 0; i < window->segment_count; i++)
        count += i == 0 || segments[i].thread != segments[i - 1].thread;
    self->streams = calloc(count + 1, sizeof *self->streams);
    self->heap = malloc((count + 1) * sizeof(stream *));
    if (self->streams == NULL || self->heap == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < window->segment_count; i++) {
        if (i == 0 || segments[i].thread != segments[i - 1].thread)
            self->streams[self->count++] = (stream){
                .segments = &segments[i],
                .thread = segments[i].thread,
                .time = segments[i].start,
            };
        self->streams[self->count - 1].segment_count++;
    }
    qsort(self->streams, count, sizeof *self->streams, lanes_by_time);
    self->block_size = BLOCKS_SIZE / (count + 1);
    if (self->block_size > VST_BLOCK_SIZE)
        self->block_size = VST_BLOCK_SIZE;
    if (self->block_size < BLOCK_LEAST)
        self->block_size = BLOCK_LEAST;
    self->block_size &= ~(size_t)7;
    return VST_OK;
}

/* Opens all threads that may have the next event. */
static vst_status open_due(reading *self)
{
    vst_status status = VST_OK;

    while (status == VST_OK && self->opened < self->count) {
        stream *next = &self->streams[self->opened];
        bool waits;

        if (self->heap_count != 0 && next->time > self->heap[0]->time)
            break;
        self->opened++;
        status = open_lane(self, next);
        if (status == VST_OK)
            status = lanes_advance(
                self, next,
                self->heap_count == 0 && self->opened == self->count, &waits);
        if (status == VST_OK && waits)
            lanes_push(self, next);
        else
            close_lane(next);
    }
    return status;
}

static vst_status read_window(reading *self)
{
    vst_status status = find_streams(self);

    if (status == VST_OK)
        status = open_due(self);
    while (status == VST_OK && self->heap_count != 0) {
        stream *first = self->heap[0];
        bool alone = self->heap_count == 1 && self->opened == self->count;
        bool waits;

        status = lanes_advance(self, first, alone, &waits);
        if (status != VST_OK)
            break;
        if (!waits) {
            close_lane(first);
            self->heap[0] = self->heap[--self->heap_count];
        }
        if (self->heap_count != 0)
            lanes_sift_down(self);
        status = open_due(self);
    }
    for (size_t i = 0; i < self->count; i++)
        close_lane(&self->streams[i]);
    free(self->streams);
    free(self->heap);
    self->streams = NULL;
    self->heap = NULL;
    self->count = self->opened = self->heap_count = 0;
    return status;
}

static vst_status lanes_failed(const vst_trace *trace, vst_status status,
                               vst_error *error)
{
    return vst_error_set(error, status,
                         status == VST_E_IO ? trace->block.sys_errno : 0, 0);
}

/* ---- all windows --------------------------------------------------------- */

/* A window of one of the traces. */
typedef struct piece {
    reading *of;
    const vst__window *window;
    int64_t began_ns;
} piece;

static int by_beginning(const void *a, const void *b)
{
    const piece *x = a, *y = b;

    if (x->began_ns != y->began_ns)
        return x->began_ns < y->began_ns ? -1 : 1;
    return (x->window > y->window) - (x->window < y->window);
}

static vst_status add_pieces(reading *of, int window, piece *pieces,
                             size_t *count)
{
    vst_trace *trace = of->trace;
    size_t first = 0, windows = 0;
    vst_status status =
        vst__trace_select_windows(trace, window, &first, &windows);

    for (size_t i = first; status == VST_OK && i < first + windows; i++) {
        of->words_total += trace->windows[i].words;
        if (!vst__window_is_gone(trace, &trace->windows[i]))
            pieces[(*count)++] = (piece){
                .of = of,
                .window = &trace->windows[i],
                .began_ns =
                    vst__graph_monotonic(trace, trace->windows[i].began),
            };
    }
    return status;
}

static vst_status read_piece(const piece *next)
{
    reading *self = next->of;

    self->window = next->window;
    self->end_ns = vst__clockmap_to_ns(&self->trace->clock, next->window->last);
    self->graph->trace = self->trace;
    return read_window(self);
}

static vst_status read_pieces(vst__graph *graph, vst_trace *const *traces,
                              size_t count, int window, vst_error *error)
{
    reading *readings = calloc(count + 1, sizeof *readings);
    size_t piece_count = 0, most = 1;
    piece *pieces;
    vst_status status = VST_OK;

    for (size_t i = 0; i < count; i++)
        most += traces[i]->window_count;
    pieces = calloc(most, sizeof *pieces);
    if (readings == NULL || pieces == NULL)
        status = vst_error_set(error, VST_E_NOMEM, 0, 0);
    for (size_t i = 0; status == VST_OK && i < count; i++) {
        readings[i] = (reading){
            .graph = graph,
            .trace = traces[i],
            .converter = vst__clockmap_converter(&traces[i]->clock),
        };
        status = add_pieces(&readings[i], window, pieces, &piece_count);
        vst_error_set(error, status, 0, 0);
    }
    if (status == VST_OK)
        qsort(pieces, piece_count, sizeof *pieces, by_beginning);
    for (size_t i = 0; status == VST_OK && i < piece_count; i++) {
        status = read_piece(&pieces[i]);
        lanes_failed(pieces[i].of->trace, status, error);
    }
    free(pieces);
    free(readings);
    return status;
}

vst_status vst__graph_read(vst_trace *const *traces, size_t count, int window,
                           unsigned observer, const vst__graph_sink *sink,
                           vst_error *error)
{
    vst__graph graph = {
        .sink = *sink,
        .observer = observer,
        .last_id = VST_GRAPH_PROCESS_ID,
    };
    vst_status status = read_pieces(&graph, traces, count, window, error);

    if (status == VST_OK)
        status = vst_error_set(error, vst__graph_finish(&graph), 0, 0);
    vst__graph_free(&graph);
    return status;
}

/* ---- counting ------------------------------------------------------------ */

static vst_status count_segment(vst_trace *trace, const vst__segment *segment,
                                bool any, uint64_t *count)
{
    vst__stream words;
    const uint64_t *word;
    bool more = false;

    vst__segment_open(segment, &trace->block, &words);
    while (vst__stream_fill(&words))
        while ((word = vst__stream_next(&words)) != NULL) {
            unsigned flags;

            if (vst_word_kind(*word) != VST_ESCAPE ||
                vst_word_escape_type(*word) != VST_ESCAPE_NODE ||
                vst_word_escape_words(*word) == 0 || words.now < trace->clip ||
                words.now > trace->until)
                continue;
            flags = vst_node_flags(word[1]);
            if (!(flags & VST_NODE_OUTPUTS) && !more)
                ++*count;
            more = (flags & VST_NODE_MORE) != 0;
            if (any && *count != 0)
                return VST_OK;
        }
    return words.status;
}

bool vst__graph_may_have_nodes(const vst_trace *trace)
{
    for (size_t i = 0; i < trace->definition_count; i++)
        if (trace->definitions[i].kind == VST_DEF_OPERATOR ||
            trace->definitions[i].kind == VST_DEF_ANNOTATION)
            return true;
    return false;
}

vst_status vst__graph_count(vst_trace *trace, int window, bool any,
                            uint64_t *count, vst_error *error)
{
    size_t first = 0, windows = 0;
    vst_status status =
        vst__trace_select_windows(trace, window, &first, &windows);

    *count = 0;
    if (!vst__graph_may_have_nodes(trace))
        windows = 0;
    for (size_t i = first; status == VST_OK && i < first + windows; i++)
        for (size_t k = 0;
             status == VST_OK && k < trace->windows[i].segment_count &&
             !(any && *count != 0);
             k++)
            status = count_segment(
                trace, &trace->segments[trace->windows[i].segments + k], any,
                count);
    return lanes_failed(trace, status, error);
}
