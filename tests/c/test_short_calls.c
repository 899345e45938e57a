/* Short calls that are left out: the recorded tree is the full tree with short
 * leaves pruned from the bottom up, in every kind of recording; all other
 * records stay, and all pruned calls are counted. The test controls the
 * clock. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "short_calls.h"

#include <vestige/operator.h>

static char path[64];

static uint32_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(random_state >> 4) * below >> 28);
}

/* Some calls are long, most are short; no two events have the same time. */
static void pass_time(void)
{
    fake_advance(2 + (draw(12) == 0 ? draw(3 * SHORT_NS) : draw(600)));
}

/* Runs a program of `steps` steps; equal seeds give equal programs. */
static void run_program(model *m, uint32_t seed, int steps)
{
    const uint32_t depth = m->depth;

    random_state = seed;
    for (int i = 0; i < steps; i++) {
        uint32_t what = draw(100);

        pass_time();
        if (what == 0) {
            vst_record_counter(model_ids[0], 1);
            model_other(m, 3);
        } else if (what == 1) {
            vst_record_instant(model_ids[0], "", 0);
            model_other(m, 2);
        } else if (m->depth == depth || (what < 52 && m->depth < MODEL_DEPTH)) {
            model_enter(m, model_ids[1 + draw(MODEL_IDS - 1)]);
        } else {
            model_leave(m, what == 60 ? VST_RAISE : VST_EXIT);
        }
    }
    while (m->depth > depth) {
        pass_time();
        model_leave(m, VST_EXIT);
    }
}

/* All calls are in one call, so that the time of pruned calls belongs to a
 * recorded call. */
static void run_in_main(model *m, uint32_t seed, int steps)
{
    model_enter(m, model_ids[0]);
    run_program(m, seed, steps);
    fake_advance(3 * SHORT_NS);
    model_leave(m, VST_EXIT);
}

static model_read read_back(void)
{
    vst_trace *trace;
    model_read read;

    CHECK_INT(vst_session_stop(model_session), VST_OK);
    CHECK_INT(vst_session_open_trace(model_session, &trace, NULL), VST_OK);
    read = model_replay(trace);
    vst_session_destroy(model_session);
    return read;
}

/* Compares all recorded calls with the model, from the end on: older calls may
 * have been dropped. */
static void check_calls(const model *m, const model_read *read)
{
    size_t i = 0;

    CHECK(read->count <= m->count);
    while (i < read->count && i < m->count &&
           model_is(&read->spans[read->count - 1 - i],
                    &m->ended[m->count - 1 - i]))
        i++;
    CHECK_INT(i, read->count);
    CHECK_INT(read->unmatched, 0);
    CHECK_INT(read->info.left_out, m->left_out);
    CHECK_INT(read->thread_left_out, m->left_out);
    CHECK_INT(read->info.min_duration_ns, m->shortest_ns);
    CHECK_INT(read->info.lost, 0);
}

static int64_t own_time(const model_read *read)
{
    int64_t sum = 0;

    for (size_t i = 0; i < read->count; i++)
        sum += read->spans[i].end_ns - read->spans[i].start_ns -
               read->spans[i].children_ns;
    return sum;
}

/* ---- the tree ------------------------------------------------------------ */

static void what_is_recorded_is_the_tree_without_its_short_leaves(void)
{
    for (uint32_t seed = 1; seed <= 4 / check_step(1, 2); seed++) {
        vst_session_options options = {0};
        int64_t own_times[2];
        uint64_t words[2];
        model full, pruned;
        model_read read;

        model_begin(&full, &options);
        run_in_main(&full, seed, 200000);
        read = read_back();
        check_calls(&full, &read);
        CHECK_INT(read.count, full.count);
        own_times[0] = own_time(&read);
        words[0] = read.info.words;
        free(read.spans);

        options.min_duration_ns = SHORT_NS;
        options.checkpoints = seed % 2 == 0;
        model_begin(&pruned, &options);
        run_in_main(&pruned, seed, 200000);
        read = read_back();
        check_calls(&pruned, &read);
        CHECK_INT(read.count, pruned.count);
        own_times[1] = own_time(&read);
        words[1] = read.info.words;
        free(read.spans);

        CHECK_INT(full.left_out, 0);
        CHECK_INT(pruned.left_out + pruned.count, full.count);
        CHECK(pruned.left_out > 10000 && pruned.count > 10000);
        CHECK(pruned.chunk > 4);
        CHECK_INT(own_times[1], own_times[0]);
        CHECK_INT(words[0] - words[1], 2 * pruned.left_out);
        model_free(&full);
        model_free(&pruned);
    }
}

static void so_are_recordings_that_are_bounded(void)
{
    const vst_session_options bounds[] = {
        {.max_size = 1 << 20, .min_duration_ns = SHORT_NS},
        {.last_ns = 100000000, .min_duration_ns = SHORT_NS},
    };

    for (int i = 0; i < 2; i++) {
        model m;
        model_read read;

        model_begin(&m, &bounds[i]);
        run_in_main(&m, 5, 600000);
        read = read_back();
        check_calls(&m, &read);
        CHECK(read.count > 1000 && read.count < m.count * 3 / 4);
        CHECK(read.info.dropped > 100000);
        CHECK(m.left_out > 100000);
        free(read.spans);
        model_free(&m);
    }
}

static void counts_go_on_from_window_to_window(void)
{
    const vst_session_options options = {.min_duration_ns = SHORT_NS};
    model m;
    model_read read;

    model_begin(&m, &options);
    run_in_main(&m, 6, 2000);
    CHECK_INT(vst_session_stop(model_session), VST_OK);
    fake_advance(1000000);
    CHECK_INT(vst_session_start(model_session, NULL), VST_OK);
    run_in_main(&m, 7, 2000);
    read = read_back();
    CHECK_INT(read.count, m.count);
    check_calls(&m, &read);
    CHECK_INT(read.info.windows, 2);
    free(read.spans);
    model_free(&m);
}

/* ---- what stays ---------------------------------------------------------- */

/* Payloads whose last word looks like the ENTER of the call. */
static void a_payload_is_never_taken_for_the_begin_of_a_call(void)
{
    const vst_session_options options = {.min_duration_ns = SHORT_NS};
    model m;
    uint64_t enter, payload[3] = {0};
    double value;
    model_read read;

    model_begin(&m, &options);
    enter = vst_word(VST_ENTER, model_ids[3], 0);
    payload[2] = enter;
    memcpy(&value, &enter, sizeof value);
    for (int way = 0; way < 5; way++) {
        const uint64_t *cursor;

        model_enter(&m, model_ids[3]);
        fake_advance(10);
        if (way == 0)
            vst_record_counter(model_ids[0], value);
        else if (way == 1)
            vst_record_args((const char *)&enter, sizeof enter);
        else if (way == 2)
            vst_record_alloc(VST_MEMORY_MALLOC, (uintptr_t)enter << 3, 8, 0, 0,
                             (vst_ticks)fake_now());
        else if (way == 3)
            vst_record_alloc(VST_MEMORY_MALLOC, 0x1000, 1 << 20,
                             (vst_stack_id)enter, 0, (vst_ticks)fake_now());
        else
            vst_record_operator(model_ids[3], 0, payload, 3);
        cursor = vst_thread_buffer->cursor;
        CHECK_INT((uint32_t)cursor[-1], enter);
        vst_record_end_of_call(VST_EXIT, model_ids[3]);
        CHECK(vst_thread_buffer->cursor == cursor + 1);
        CHECK_INT(vst_word_kind(*cursor), VST_EXIT);
        m.depth--;
    }
    read = read_back();
    CHECK_INT(read.count, 6); /* the operator's own span never ends */
    CHECK_INT(read.info.left_out, 0);
    free(read.spans);
    model_free(&m);
}

static void a_call_that_begins_after_a_long_time_can_be_taken_back(void)
{
    const vst_session_options options = {.min_duration_ns = SHORT_NS};
    model m;
    model_read read;

    model_begin(&m, &options);
    model_enter(&m, model_ids[0]);
    for (int i = 0; i < 3; i++) {
        fake_advance(5000000000);
        model_enter(&m, model_ids[1]); /* needs a TIME word before it, which
                                        * stays */
        fake_advance(SHORT_NS - 1);
        model_leave(&m, VST_RAISE);
        fake_advance(5000000000);
        model_enter(&m, model_ids[2]);
        fake_advance(SHORT_NS);
        model_leave(&m, VST_RAISE);
    }
    model_leave(&m, VST_EXIT);
    read = read_back();
    check_calls(&m, &read);
    CHECK_INT(read.count, 4);
    CHECK_INT(read.info.left_out, 3);
    free(read.spans);
    model_free(&m);
}

static void only_the_end_of_the_call_that_was_entered_last_takes_it_back(void)
{
    const vst_session_options options = {.min_duration_ns = SHORT_NS};
    model m;
    model_read read;

    model_begin(&m, &options);
    vst_record(VST_ENTER, model_ids[0]);
    vst_record(VST_ENTER, model_ids[1]);
    fake_advance(5);
    vst_record_end_of_call(VST_EXIT, model_ids[2]); /* no such call was
                                                     * entered */
    fake_advance(5);
    vst_record_end_of_call(VST_EXIT, model_ids[1]);
    fake_advance(5);
    vst_record(VST_ENTER, model_ids[3]);
    vst_record(VST_EXIT, model_ids[3]); /* not a call but, for example, a
                                         * collection */
    fake_advance(5);
    vst_record_end_of_call(VST_EXIT, model_ids[0]);
    read = read_back();
    CHECK_INT(read.count, 3);
    CHECK_INT(read.unmatched, 1);
    CHECK_INT(read.info.left_out, 0);
    free(read.spans);
    model_free(&m);
}

static void a_recording_without_a_limit_leaves_nothing_out(void)
{
    const vst_session_options with = {.min_duration_ns = SHORT_NS};
    const vst_session_options without = {0};
    model m;

    for (int i = 0; i < 3; i++) {
        model_read read;

        model_begin(&m, i == 1 ? &with : &without);
        CHECK_INT(vst_thread_buffer->left_out, 0);
        run_in_main(&m, 8, 100);
        read = read_back();
        check_calls(&m, &read);
        CHECK_INT(m.left_out != 0, i == 1);
        free(read.spans);
        model_free(&m);
    }
}

/* ---- dying --------------------------------------------------------------- */

static void a_process_that_dies_leaves_a_valid_file(void)
{
    const vst_session_options options = {
        .path = path, .overwrite = true, .min_duration_ns = SHORT_NS};
    vst_trace *trace;
    model m;
    int64_t now;
    pid_t child;
    vst_session_options again;
    model_read read;
    uint64_t left_out;

    snprintf(path, sizeof path, "/tmp/vestige-short-%d.vst", (int)getpid());
    /* The clock is the same in both processes. */
    now = fake_now();
    child = fork();
    if (child == 0) {
        model_begin(&m, &options);
        model_enter(&m, model_ids[0]);
        run_program(&m, 9, 20000);
        model_enter(&m, model_ids[1]);
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
    again = options;
    again.path = NULL;
    CHECK_INT(fake_now(), now);
    model_begin(&m, &again);
    model_enter(&m, model_ids[0]);
    run_program(&m, 9, 20000);
    vst_session_destroy(model_session);

    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    read = model_replay(trace);
    CHECK_INT(read.count, m.count + 2);
    model_check_beginning(&m, &read);
    CHECK(read.info.left_out <= m.left_out);
    CHECK(read.info.left_out + VST_LEFT_OUT_TOLD > m.left_out);
    CHECK(!read.info.clean);
    free(read.spans);

    CHECK_INT(vst_trace_recover(path, path, true, NULL), VST_OK);
    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    left_out = read.info.left_out;
    read = model_replay(trace);
    CHECK_INT(read.count, m.count + 2);
    CHECK_INT(read.info.left_out, left_out);
    CHECK_INT(read.info.min_duration_ns, SHORT_NS);
    CHECK(read.info.clean);
    free(read.spans);
    model_free(&m);
    remove(path);
}

int main(void)
{
    fake_clock_begin();
    TEST(what_is_recorded_is_the_tree_without_its_short_leaves);
    TEST(so_are_recordings_that_are_bounded);
    TEST(counts_go_on_from_window_to_window);
    TEST(a_payload_is_never_taken_for_the_begin_of_a_call);
    TEST(a_call_that_begins_after_a_long_time_can_be_taken_back);
    TEST(only_the_end_of_the_call_that_was_entered_last_takes_it_back);
    TEST(a_recording_without_a_limit_leaves_nothing_out);
    TEST(a_process_that_dies_leaves_a_valid_file);
    return checks_end();
}
