/* Reading a recording that leaves short calls out while it goes on: the
 * recorder takes back words that a reader has seen, and writes other words in
 * their place. The words that the reader has in the end were in the file at one
 * moment. The linker sends the core's pread here first (see meson.build), so
 * that a test can record in the middle. */
#include <pthread.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include "short_calls.h"

enum {
    LARGE = 100000, /* reads of more bytes than this read many words */
    /* words of the first chunk that is larger than one read */
    CHUNK_WORDS = 512 * 1024 / 8 - 8,
    BLOCK_WORDS = 256 * 1024 / 8,
    NESTED = 5, /* short calls that are open when the reader comes */
};

static char path[64];

/* ---- in the middle of a read --------------------------------------------- */

static int acts_in = -1; /* number of large reads before `act` is called;
                          * negative: never */
static void (*act)(void);

ssize_t __real_pread64(int fd, void *bytes, size_t count, off_t offset);
ssize_t __wrap_pread64(int fd, void *bytes, size_t count, off_t offset);

ssize_t __wrap_pread64(int fd, void *bytes, size_t count, off_t offset)
{
    if (acts_in >= 0 && count > LARGE && acts_in-- == 0)
        act();
    return __real_pread64(fd, bytes, count, offset);
}

static model program;

static void long_call(int id)
{
    fake_advance(100);
    model_enter(&program, model_ids[id]);
    fake_advance(SHORT_NS);
    model_leave(&program, VST_EXIT);
}

/* The open calls end: the last words, ENTERs, are taken back, and more calls
 * follow. */
static void take_back_and_go_on(void)
{
    for (int i = 0; i < NESTED; i++) {
        fake_advance(50);
        model_leave(&program, VST_EXIT);
    }
    fake_advance(SHORT_NS);
    model_leave(&program, VST_EXIT);
    for (int i = 0; i < 40; i++)
        long_call(5);
}

/* Records until the first large chunk has `words` words, the last of which are
 * ENTERs. */
static void fill(size_t words)
{
    vst_session_options options = {.min_duration_ns = SHORT_NS};
    const uint64_t *begin = NULL;

    model_begin(&program, &options);
    model_enter(&program, model_ids[0]);
    while (begin == NULL) {
        unsigned chunk = program.chunk;

        long_call(1);
        /* The chunk that the thread begins with has only 16 KiB. */
        if (chunk != program.chunk && program.chunk == 6)
            begin = vst_thread_buffer->limit + 8 - CHUNK_WORDS;
    }
    while (vst_thread_buffer->cursor - begin + 3 + NESTED <= (ptrdiff_t)words)
        long_call(2);
    if (vst_thread_buffer->cursor - begin + 2 + NESTED == (ptrdiff_t)words) {
        vst_record(VST_ENTER, model_ids[0]); /* pretends that the call begins
                                              * again */
        program.cursor = vst_thread_buffer->cursor;
        program.open[1] = program.open[0];
        program.open[1].start_ns = fake_now();
        program.open[1].depth = 1;
        program.depth++;
    }
    fake_advance(100);
    model_enter(&program, model_ids[3]);
    for (int i = 0; i < NESTED; i++) {
        fake_advance(100);
        model_enter(&program, model_ids[4 + i]);
    }
    CHECK_INT(vst_thread_buffer->cursor - begin, words);
}

static void check_trace(vst_trace *trace)
{
    model_read read = model_replay(trace);

    model_check_beginning(&program, &read);
    CHECK(read.count > 256 * 1024 / 16);
    free(read.spans);
}

static vst_trace *copy_it(void)
{
    vst_trace *trace;

    CHECK_INT(vst_session_snapshot(model_session, path, true, 0, NULL, NULL),
              VST_OK);
    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    return trace;
}

static vst_trace *open_it(void)
{
    vst_trace *trace;

    CHECK_INT(vst_session_open_trace(model_session, &trace, NULL), VST_OK);
    return trace;
}

/* The reader reads words in pieces. A piece that ends with words which are
 * taken back is read before that, the next piece afterwards. */
static void try_where_pieces_meet(vst_trace *(*get)(void), size_t end)
{
    act = take_back_and_go_on;
    for (size_t words = end; words <= end + NESTED; words++)
        for (unsigned reads = 0; reads < 6; reads += check_step(1, 2)) {
            fill(words);
            acts_in = (int)reads;
            check_trace(get());
            acts_in = -1;
            vst_session_destroy(model_session);
            model_free(&program);
        }
}

static void a_copy_ends_before_what_was_taken_back(void)
{
    try_where_pieces_meet(copy_it, BLOCK_WORDS);
}

/* These pieces continue from chunk to chunk. */
static void so_does_a_trace_that_is_read_while_it_is_written(void)
{
    try_where_pieces_meet(open_it, 2048);
    try_where_pieces_meet(open_it, BLOCK_WORDS);
    try_where_pieces_meet(open_it, BLOCK_WORDS + 2048);
}

/* ---- on another thread --------------------------------------------------- */

enum { COPIES = 40 };

static _Atomic bool goes_on;

/* Records calls whose id is their depth: deep and short calls, and a few that
 * stay. */
static void *record(void *unused)
{
    uint32_t state = 1;
    int depth = 0;

    (void)unused;
    while (goes_on || depth > 0) {
        state = state * 1664525u + 1013904223u;
        fake_advance(state >> 20 == 0 ? SHORT_NS : 1 + (state >> 29));
        if (goes_on && depth < 12 && (depth == 0 || state >> 31))
            vst_record(VST_ENTER, model_ids[depth++]);
        else
            vst_record_end_of_call(VST_EXIT, model_ids[--depth]);
    }
    return NULL;
}

/* Calls may be short if their chunk was left while they were open. */
static void check_depths(vst_trace *trace)
{
    model_read read = model_replay(trace);
    size_t short_leaves = 0;

    for (size_t i = 0; i < read.count; i++) {
        const vst_span *span = &read.spans[i];

        CHECK_INT(span->id, model_ids[span->depth]);
        short_leaves += !(span->flags & VST_SPAN_OPEN_AT_END) &&
                        span->children_ns == 0 &&
                        span->end_ns - span->start_ns < SHORT_NS;
    }
    CHECK(short_leaves < 200);
    CHECK_INT(read.unmatched, 0);
    free(read.spans);
}

static void readers_beside_the_thread_that_records_see_whole_calls(void)
{
    const vst_session_options kinds[] = {
        {.min_duration_ns = SHORT_NS},
        {.min_duration_ns = SHORT_NS, .max_size = 1 << 20},
    };

    for (int kind = 0; kind < 2; kind++) {
        pthread_t thread;
        model m;

        model_begin(&m, &kinds[kind]);
        goes_on = true;
        pthread_create(&thread, NULL, record, NULL);
        for (int i = 0; i < COPIES; i++)
            check_depths(i % 2 == 0 ? copy_it() : open_it());
        goes_on = false;
        pthread_join(thread, NULL);
        check_depths(copy_it());
        vst_session_destroy(model_session);
        model_free(&m);
    }
}

int main(void)
{
    fake_clock_begin();
    snprintf(path, sizeof path, "/tmp/vestige-live-%d.vst", (int)getpid());
    if (!FOR_THREADS) {
        TEST(a_copy_ends_before_what_was_taken_back);
        TEST(so_does_a_trace_that_is_read_while_it_is_written);
    }
    TEST(readers_beside_the_thread_that_records_see_whole_calls);
    remove(path);
    return checks_end();
}
