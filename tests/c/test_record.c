/* The recorder: the words in a thread's chunks are exactly the recorded words,
 * however chunks, clocks, threads and the disk behave. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "memory_provider.h"
#include "record/recording.h"

static vst_recording *recording;

static void begin(void)
{
    const vst_chunk_provider *table = provider_begin();

    if (vst__recording_create(table, &recording) != VST_OK ||
        vst__recording_start(recording) != VST_OK)
        abort();
}

static void end(void)
{
    vst__recording_stop(recording);
    vst__recording_destroy(recording);
    provider_end();
}

/* The records of a chunk as text: "+1 -1 !2 TIME ...". A thread's first record
 * in a chunk is older than the chunk, so its time is written in full; that TIME
 * is left out. */
static const char *text_of(const kept_chunk *chunk)
{
    static const char *const names[] = {
        "?",       "TIME",  "SEGMENT", "BEGIN", "END",    "ARGS", "INSTANT",
        "COUNTER", "STACK", "MORE",    "LOST",  "SWITCH", "GAP"};
    static char text[65536];
    size_t n = 0;
    int is_first = 1;

    text[0] = 0;
    for (size_t i = 0; i < chunk->capacity && chunk->words[i];) {
        uint64_t word = chunk->words[i++];
        const char *space = n ? " " : "";
        if (vst_word_kind(word) == VST_ESCAPE) {
            uint32_t type = vst_word_escape_type(word);
            if (type != VST_ESCAPE_TIME || !is_first)
                n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", space,
                                      names[type]);
            i += vst_word_escape_words(word);
            is_first = type == VST_ESCAPE_SEGMENT;
        } else {
            is_first = 0;
            n +=
                (size_t)snprintf(text + n, sizeof text - n, "%s%c%u", space,
                                 "+-!"[vst_word_kind(word)], vst_word_id(word));
        }
    }
    return text;
}

/* Returns the payload of the nth escape of a type, counted from 0. */
static const uint64_t *payload(const kept_chunk *chunk, uint32_t type, int nth)
{
    for (size_t i = 0; i < chunk->capacity && chunk->words[i];) {
        uint64_t word = chunk->words[i++];
        if (vst_word_kind(word) != VST_ESCAPE)
            continue;
        if (vst_word_escape_type(word) == type && nth-- == 0)
            return &chunk->words[i];
        i += vst_word_escape_words(word);
    }
    abort();
}

/* ---- words -------------------------------------------------------------- */

static void records_are_stored_in_order_with_kind_and_id(void)
{
    begin();
    vst_record(VST_ENTER, 1);
    vst_record(VST_ENTER, VST_ID_MAX);
    vst_record(VST_EXIT, VST_ID_MAX);
    vst_record(VST_RAISE, 1);
    vst__recording_stop(recording);
    CHECK_TEXT(text_of(&provider.chunks[0]), "+1 +1073741823 -1073741823 !1");
    CHECK_INT(provider.chunks[0].used, 4 + 2);
    CHECK(provider.chunks[0].released);
    end();
}

static void nothing_is_stored_after_stop(void)
{
    begin();
    vst_record(VST_ENTER, 1);
    vst__recording_stop(recording);
    vst_record(VST_EXIT, 1);
    vst_record_counter(1, 1.0);
    CHECK_TEXT(text_of(&provider.chunks[0]), "+1");
    CHECK_INT(provider.chunk_count, 1);
    CHECK_INT(provider.lost, 0);
    end();
}

static void time_that_goes_back_or_too_far_is_written_in_full(void)
{
    vst_ticks now;
    const uint64_t *far, *back;

    begin();
    vst_record(VST_ENTER, 1);
    now = vst_thread_buffer->last;
    vst_record_slow(VST_ENTER, 2, now + ((vst_ticks)5 << 32));
    vst_record_slow(VST_EXIT, 2, now + 10);
    vst_record_slow(VST_EXIT, 1, now + 17);
    CHECK_TEXT(text_of(&provider.chunks[0]), "+1 TIME +2 TIME -2 -1");
    far = payload(&provider.chunks[0], VST_ESCAPE_TIME, 1);
    back = payload(&provider.chunks[0], VST_ESCAPE_TIME, 2);
    CHECK(far[0] == now + ((vst_ticks)5 << 32));
    CHECK_INT(vst_word_delta(far[1]), 0);
    CHECK(back[0] == now + 10);
    CHECK_INT(vst_word_delta(back[2]), 7);
    end();
}

static void payloads_stand_behind_their_escape(void)
{
    double value;
    const kept_chunk *chunk;

    begin();
    vst_record(VST_ENTER, 1);
    vst_record_args("\"x\": 1", 6);
    vst_record_counter(3, 2.5);
    vst_record_instant(4, "", 0);
    vst_record_begin(5, 77);
    vst_record_end_args(5, 77, "\"y\": 23", 7);
    CHECK_TEXT(text_of(&provider.chunks[0]),
               "+1 ARGS COUNTER INSTANT BEGIN END");
    chunk = &provider.chunks[0];
    CHECK_INT(payload(chunk, VST_ESCAPE_ARGS, 0)[0], 6);
    CHECK(memcmp(&payload(chunk, VST_ESCAPE_ARGS, 0)[1], "\"x\": 1\0\0", 8) ==
          0);
    memcpy(&value, &payload(chunk, VST_ESCAPE_COUNTER, 0)[1], 8);
    CHECK(value == 2.5);
    CHECK(payload(chunk, VST_ESCAPE_BEGIN, 0)[0] == ((uint64_t)77 << 32 | 5));
    CHECK(payload(chunk, VST_ESCAPE_END, 0)[0] == ((uint64_t)77 << 32 | 5));
    CHECK_INT(payload(chunk, VST_ESCAPE_END, 0)[1], 7);
    CHECK(memcmp(&payload(chunk, VST_ESCAPE_END, 0)[2], "\"y\": 23", 8) == 0);
    end();
}

static void arguments_that_are_too_long_leave_a_note(void)
{
    static char big[9000];
    const uint64_t *args;

    memset(big, 'x', sizeof big);
    begin();
    vst_record(VST_ENTER, 1);
    vst_record_args(big, sizeof big);
    vst_record_begin(5, 77);
    vst_record_end_args(5, 77, big, sizeof big);
    CHECK_TEXT(text_of(&provider.chunks[0]), "+1 ARGS BEGIN END");
    args = payload(&provider.chunks[0], VST_ESCAPE_ARGS, 0);
    CHECK(strstr((const char *)&args[1], "too long") != NULL);
    args = payload(&provider.chunks[0], VST_ESCAPE_END, 0);
    CHECK(strstr((const char *)&args[2], "too long") != NULL);
    end();
}

/* ---- chunks ------------------------------------------------------------- */

static void a_full_chunk_is_followed_by_one_of_twice_the_size(void)
{
    size_t total = 0;

    begin();
    for (int i = 0; i < 400000; i++)
        vst_record(VST_ENTER, 1 + (vst_id)i % 1000);
    vst__recording_stop(recording);
    CHECK_INT((provider.chunks[0].capacity + 8) * 8, 16 * 1024);
    CHECK_INT((provider.chunks[1].capacity + 8) * 8, 32 * 1024);
    CHECK_INT((provider.chunks[6].capacity + 8) * 8, 1024 * 1024);
    CHECK_INT((provider.chunks[7].capacity + 8) * 8, 1024 * 1024);
    for (size_t i = 0; i < provider.chunk_count; i++) {
        kept_chunk *chunk = &provider.chunks[i];
        for (size_t j = 0; j < chunk->used;) {
            uint64_t word = chunk->words[j++];
            if (vst_word_kind(word) == VST_ESCAPE) {
                j += vst_word_escape_words(word);
                continue;
            }
            CHECK_INT(vst_word_id(word), 1 + total % 1000);
            total++;
        }
        CHECK(chunk->released);
    }
    CHECK_INT(total, 400000);
    end();
}

static void a_payload_never_crosses_a_chunk(void)
{
    char args[800];
    size_t records;

    memset(args, 'y', sizeof args);
    begin();
    for (int i = 0; i < 1000; i++) {
        vst_record(VST_ENTER, 1);
        vst_record_args(args, (size_t)(i % 800));
    }
    vst__recording_stop(recording);
    records = 0;
    for (size_t i = 0; i < provider.chunk_count; i++) {
        kept_chunk *chunk = &provider.chunks[i];
        for (size_t j = 0; j < chunk->used;) {
            uint64_t word = chunk->words[j++];
            if (vst_word_kind(word) == VST_ESCAPE) {
                j += vst_word_escape_words(word);
                CHECK(j <= chunk->used);
                records += vst_word_escape_type(word) == VST_ESCAPE_ARGS;
            } else {
                records++;
            }
        }
    }
    CHECK_INT(records, 2000);
    end();
}

static void what_finds_no_room_is_counted_for_every_chunk_that_can_fail(void)
{
    for (size_t n = 0; n < 9; n++) {
        size_t kept = 0;
        begin();
        provider.acquire_fails_after = n;
        for (int i = 0; i < 300000; i++)
            vst_record(VST_ENTER, 1);
        vst__recording_stop(recording);
        for (size_t i = 0; i < provider.chunk_count; i++)
            for (size_t j = 0; j < provider.chunks[i].used; j++) {
                uint64_t word = provider.chunks[i].words[j];
                if (vst_word_kind(word) == VST_ESCAPE)
                    j += vst_word_escape_words(word);
                else
                    kept++;
            }
        CHECK_INT(kept + provider.lost, 300000);
        if (n > 0 && provider.lost)
            CHECK_INT(*payload(&provider.chunks[n - 1], VST_ESCAPE_GAP, 0), 0);
        end();
    }
}

/* ---- definitions -------------------------------------------------------- */

static vst_status define(const char *name, int line, vst_id *id)
{
    vst_definition definition = {
        .kind = VST_DEF_PYTHON,
        .line = line,
        .name = name,
        .name_len = (uint32_t)strlen(name),
        .file = "a.py",
        .file_len = 4,
    };

    return vst_recording_define_id(recording, &definition, id);
}

static void equal_definitions_share_an_id_and_are_written_once(void)
{
    vst_id f, again, g, other_line;
    char name[16];

    begin();
    CHECK_INT(define("f", 1, &f), VST_OK);
    CHECK_INT(define("g", 1, &g), VST_OK);
    CHECK_INT(define("f", 2, &other_line), VST_OK);
    CHECK_INT(define("f", 1, &again), VST_OK);
    CHECK(f == again && f != g && f != other_line && g != other_line);
    CHECK_INT(provider.entry_count, 3);
    for (int i = 0; i < 2000; i++) {
        vst_id first, second;
        snprintf(name, sizeof name, "n%d", i);
        define(name, i, &first);
        define(name, i, &second);
        CHECK(first != 0 && first == second);
    }
    CHECK_INT(provider.entry_count, 2003);
    end();
}

static void add_file(void *ctx, vst_id id, const char *file, uint32_t length)
{
    char *text = ctx;

    snprintf(text + strlen(text), 64, "%u:%.*s ", (unsigned)id, (int)length,
             file);
}

static void files_of_python_functions_are_passed_on(void)
{
    vst_definition native = {
        .kind = VST_DEF_NATIVE, .name = "len", .name_len = 3};
    char text[256] = "";
    vst_id f, other;

    begin();
    CHECK_INT(vst_recording_define_id(recording, &native, &other), VST_OK);
    CHECK_INT(define("f", 1, &f), VST_OK);
    vst__recording_each_file(recording, add_file, text);
    CHECK_TEXT(text, "2:a.py ");
    end();
}

static void a_definition_that_cannot_be_kept_gets_no_id(void)
{
    vst_id id = 7;

    begin();
    provider.define_fails_after = 0;
    CHECK_INT(define("f", 1, &id), VST_E_NOSPACE);
    CHECK_INT(id, 0);
    vst__recording_stop(recording);
    CHECK_INT(provider.lost, 1);
    end();
}

/* ---- threads ------------------------------------------------------------ */

static void *record_one_call(void *id)
{
    vst_record(VST_ENTER, *(vst_id *)id);
    vst_record(VST_EXIT, *(vst_id *)id);
    return NULL;
}

static void the_rest_of_a_dead_threads_chunk_goes_to_the_next_thread(void)
{
    pthread_t thread;

    begin();
    for (vst_id id = 1; id <= 3; id++) {
        pthread_create(&thread, NULL, record_one_call, &id);
        pthread_join(thread, NULL);
    }
    vst__recording_stop(recording);
    CHECK_INT(provider.chunk_count, 1);
    CHECK_INT(provider.chunks[0].segments, 3);
    CHECK_TEXT(text_of(&provider.chunks[0]),
               "+1 -1 SEGMENT +2 -2 SEGMENT +3 -3");
    CHECK_INT(payload(&provider.chunks[0], VST_ESCAPE_SEGMENT, 0)[0], 2);
    CHECK_INT(payload(&provider.chunks[0], VST_ESCAPE_SEGMENT, 1)[0], 3);
    end();
}

static void open_calls_are_announced_before_the_thread_records(void)
{
    vst_id stack[3] = {1, 2, 3};

    begin();
    vst_recording_open_stack(recording, vst_thread_handle(), 42, stack, 3);
    vst_record(VST_EXIT, 3);
    CHECK_TEXT(text_of(&provider.chunks[0]), "STACK SEGMENT -3");
    CHECK_INT(provider.chunks[0].thread, 1);
    CHECK_INT(provider.chunks[0].words[5], 1);
    CHECK_INT(provider.entries[0].x, 42);
    end();
}

static void a_deep_stack_is_written_in_parts(void)
{
    static vst_id ids[5000];
    size_t seen = 0;

    for (size_t i = 0; i < 5000; i++)
        ids[i] = (vst_id)i + 1;
    begin();
    vst__record_stack(ids, 5000);
    vst__recording_stop(recording);
    for (size_t i = 0; i < provider.chunk_count; i++)
        for (size_t j = 0; j < provider.chunks[i].used;) {
            uint64_t word = provider.chunks[i].words[j++];
            uint32_t words = vst_word_escape_words(word);
            uint32_t type = vst_word_escape_type(word);
            if (type == VST_ESCAPE_STACK || type == VST_ESCAPE_STACK_MORE)
                for (uint32_t k = 0; k < words; k++)
                    CHECK_INT(provider.chunks[i].words[j + k], ++seen);
            j += words;
        }
    CHECK_INT(seen, 5000);
    end();
}

static pthread_barrier_t barrier;

static void *record_freely(void *unused)
{
    (void)unused;
    CHECK(vst_thread_enter_free());
    vst_record(VST_ENTER, 1);
    pthread_barrier_wait(&barrier); /* meanwhile, the recording is stopped */
    pthread_barrier_wait(&barrier);
    vst_record(VST_EXIT, 1);
    CHECK_TEXT(text_of(&provider.chunks[0]), "+1");
    CHECK(!vst_thread_enter_free());
    CHECK(provider.chunks[0].released);
    CHECK_INT(provider.chunks[0].used, 1);
    return NULL;
}

static void a_free_running_threads_chunk_stays_until_it_comes_by(void)
{
    pthread_t thread;

    pthread_barrier_init(&barrier, NULL, 2);
    begin();
    pthread_create(&thread, NULL, record_freely, NULL);
    pthread_barrier_wait(&barrier);
    vst__recording_stop(recording);
    CHECK(!provider.chunks[0].released);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    end();
    pthread_barrier_destroy(&barrier);
}

static int attended;

static void attend(void *ctx)
{
    (void)ctx;
    attended++;
}

static void every_thread_attends_once_when_asked(void)
{
    begin();
    attended = 0;
    vst__recording_set_attention(recording, attend, NULL);
    vst_record(VST_ENTER, 1);
    vst_record(VST_EXIT, 1);
    CHECK_INT(attended, 1);
    vst__recording_request_attention(recording);
    CHECK_INT(attended, 1);
    vst_record(VST_ENTER, 1);
    vst_record(VST_EXIT, 1);
    CHECK_INT(attended, 2);
    CHECK_TEXT(text_of(&provider.chunks[0]), "+1 -1 +1 -1");
    end();
}

/* ---- the recording as a whole ------------------------------------------- */

static void a_second_recording_is_refused_while_one_runs(void)
{
    vst_recording *second;

    begin();
    vst__recording_create(&provider.table, &second);
    CHECK_INT(vst__recording_start(second), VST_E_BUSY);
    vst_record(VST_ENTER, 1);
    vst__recording_destroy(second);
    vst_record(VST_EXIT, 1);
    CHECK_TEXT(text_of(&provider.chunks[0]), "+1 -1");
    end();
}

static void a_forked_child_leaves_the_parents_records_alone(void)
{
    int status = -1;
    pid_t child;

    begin();
    vst_record(VST_ENTER, 1);
    child = fork();
    if (child == 0) {
        const char *text;

        vst_record(VST_ENTER, 2);
        text = text_of(&provider.chunks[0]);
        _exit(strcmp(text, "+1") != 0 || vst_thread_enter_free());
    }
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
    vst_record(VST_EXIT, 1);
    CHECK_TEXT(text_of(&provider.chunks[0]), "+1 -1");
    end();
}

int main(void)
{
    TEST(records_are_stored_in_order_with_kind_and_id);
    TEST(nothing_is_stored_after_stop);
    TEST(time_that_goes_back_or_too_far_is_written_in_full);
    TEST(payloads_stand_behind_their_escape);
    TEST(arguments_that_are_too_long_leave_a_note);
    TEST(a_full_chunk_is_followed_by_one_of_twice_the_size);
    TEST(a_payload_never_crosses_a_chunk);
    TEST(what_finds_no_room_is_counted_for_every_chunk_that_can_fail);
    TEST(equal_definitions_share_an_id_and_are_written_once);
    TEST(files_of_python_functions_are_passed_on);
    TEST(a_definition_that_cannot_be_kept_gets_no_id);
    TEST(the_rest_of_a_dead_threads_chunk_goes_to_the_next_thread);
    TEST(open_calls_are_announced_before_the_thread_records);
    TEST(a_deep_stack_is_written_in_parts);
    TEST(a_free_running_threads_chunk_stays_until_it_comes_by);
    TEST(every_thread_attends_once_when_asked);
    TEST(a_second_recording_is_refused_while_one_runs);
    TEST(a_forked_child_leaves_the_parents_records_alone);
    return checks_end();
}
