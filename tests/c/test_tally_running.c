/* How long functions ran, look by look, from switches in a hand-made file that
 * grows: every time is known, and so is every number. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "store/stream.h"
#include "trace_builder.h"
#include "view/tally.h"

enum { A = 1, B = 2, C = 3, ALL = 1000 };

static char path[] = "/tmp/vestige-tally-running-XXXXXX";
static int fd;

/* a 2000..8000 around b 3000..4000 and c 5000..7000. */
static void calls(builder *b, unsigned thread)
{
    builder_records(b, 0, thread, 1900, 1);
    builder_enter(b, A, 100);
    builder_enter(b, B, 1000);
    builder_exit(b, B, 1000);
    builder_enter(b, C, 1000);
    builder_exit(b, C, 2000);
    builder_exit(b, A, 1000);
    builder_seal(b, 1);
}

static uint64_t word(vst_switch what, uint64_t time)
{
    return vst_switch_word(what, time);
}

/* Away from a processor: 3500..4500, 5200..5300, 6000..6900; the second thread
 * always but for 2500..3400. */
static void build(builder *b, bool with_switches)
{
    const uint64_t first[] = {1, word(VST_SWITCH_IN, 1850),
                              word(VST_SWITCH_OUT, 3500),
                              word(VST_SWITCH_IN, 4500)};
    const uint64_t other[] = {2, word(VST_SWITCH_OUT, 1850),
                              word(VST_SWITCH_IN, 2500),
                              word(VST_SWITCH_OUT, 3400)};
    const uint64_t second[] = {
        1, word(VST_SWITCH_PREEMPTED, 5200), word(VST_SWITCH_IN, 5300),
        word(VST_SWITCH_OUT, 6000), word(VST_SWITCH_IN, 6900)};

    builder_init(b);
    builder_header(b)->version = VST_FILE_VERSION;
    builder_fix_header(b);
    builder_definitions(b, 1);
    builder_define(b, VST_DEF_PYTHON, A, "a", "f.py", 1);
    builder_define(b, VST_DEF_PYTHON, B, "b", "f.py", 2);
    builder_define(b, VST_DEF_PYTHON, C, "c", "f.py", 3);
    builder_thread(b, 1, 4242, "main");
    builder_thread(b, 2, 4243, "other");
    builder_window(b, 0, 1500, 0); /* it goes on */
    builder_seal(b, 1);
    calls(b, 1);
    if (!with_switches)
        return;
    calls(b, 2);
    builder_records(b, 0, VST_THREAD_SWITCHES, 1800, 1);
    builder_escape(b, VST_ESCAPE_SWITCHES, 1, first, 4);
    builder_escape(b, VST_ESCAPE_SWITCHES, 1, other, 4);
    builder_escape(b, VST_ESCAPE_SWITCHES, 1, second, 5);
    builder_seal(b, 1);
}

/* Writes the file as it was when so many records of each thread were there, and
 * so many escapes of switches. */
static void show(const builder *whole, size_t records, size_t escapes)
{
    unsigned char *bytes = malloc(whole->size);
    size_t at = VST_FILE_HEADER_SIZE;

    if (bytes == NULL)
        abort();
    memcpy(bytes, whole->bytes, whole->size);
    ((vst_file_header *)(void *)bytes)->state = VST_FILE_RECORDING;
    while (at < whole->size) {
        vst_chunk_header *chunk = (void *)(bytes + at);
        uint64_t *words = (uint64_t *)(void *)(chunk + 1);
        size_t capacity = (chunk->size - sizeof *chunk) / 8, kept = 0;
        size_t left = chunk->thread == VST_THREAD_SWITCHES ? escapes : records;

        at += chunk->size;
        if (chunk->kind != VST_CHUNK_RECORDS || left == ALL)
            continue;
        while (kept < capacity && words[kept] != 0 && left-- != 0)
            kept += vst__stream_words(words[kept]);
        memset(words + kept, 0, (capacity - kept) * 8);
        chunk->used = 0;
        chunk->last = 0;
    }
    if (pwrite(fd, bytes, whole->size, 0) != (ssize_t)whole->size)
        abort();
    free(bytes);
}

static void check(const vst_tally_look *look, vst_id id, int64_t own_ns,
                  int64_t total_ns)
{
    for (size_t i = 0; i < look->function_count; i++)
        if (look->functions[i].id == id) {
            CHECK_INT(look->functions[i].own_running_ns, own_ns);
            CHECK_INT(look->functions[i].total_running_ns, total_ns);
            return;
        }
    CHECK(own_ns == 0 && total_ns == 0);
}

static vst_tally *opened(void)
{
    vst_tally *tally = NULL;

    if (!CHECK_INT(vst__tally_open(path, INT64_C(1) << 40, &tally, NULL),
                   VST_OK))
        abort();
    return tally;
}

static vst_tally_look look_at(vst_tally *tally)
{
    vst_tally_look look = {0};

    CHECK_INT(vst__tally_next(tally, false, &look, NULL), VST_OK);
    return look;
}

static void a_look_adds_up_how_long_functions_ran_on_all_threads(void)
{
    vst_tally_look look;
    vst_tally *tally;
    builder b;

    build(&b, true);
    show(&b, ALL, ALL);
    tally = opened();
    look = look_at(tally);
    CHECK(look.knows_running);
    check(&look, A, 2500 + 500, 4000 + 900);
    check(&look, B, 500 + 400, 500 + 400);
    check(&look, C, 1000, 1000);
    vst__tally_close(tally);
    builder_free(&b);
}

static void looks_go_on_where_the_last_one_was(void)
{
    vst_tally_look look;
    vst_tally *tally;
    builder b;

    build(&b, true);
    show(&b, 3, 2); /* up to 4000 */
    tally = opened();
    look = look_at(tally);
    check(&look, A, 1000 + 500, 1500 + 900);
    check(&look, B, 500 + 400, 500 + 400);
    show(&b, ALL, ALL);
    look = look_at(tally);
    check(&look, A, 1500, 2500);
    check(&look, B, 0, 0);
    check(&look, C, 1000, 1000);
    vst__tally_close(tally);
    builder_free(&b);
}

/* Until it is told, a thread is taken to go on as it did. */
static void switches_that_are_told_late_count_from_the_next_look_on(void)
{
    vst_tally_look look;
    vst_tally *tally;
    builder b;

    build(&b, true);
    show(&b, 5, 2); /* up to 7000; told is nothing after 4500 */
    tally = opened();
    look = look_at(tally);
    check(&look, C, 2000, 2000);
    show(&b, ALL, ALL);
    look = look_at(tally);
    check(&look, A, 1000, 1000);
    vst__tally_close(tally);
    builder_free(&b);
}

static void without_switches_nothing_is_said_of_running(void)
{
    vst_tally_look look;
    vst_tally *tally;
    builder b;

    build(&b, false);
    if (ftruncate(fd, 0) != 0)
        abort();
    show(&b, ALL, ALL);
    tally = opened();
    look = look_at(tally);
    CHECK(!look.knows_running);
    check(&look, A, 0, 0);
    CHECK_INT(look.functions[0].total_ns, 6000);
    vst__tally_close(tally);
    builder_free(&b);
}

int main(void)
{
    fd = mkstemp(path);
    if (fd < 0)
        return 1;
    TEST(a_look_adds_up_how_long_functions_ran_on_all_threads);
    TEST(looks_go_on_where_the_last_one_was);
    TEST(switches_that_are_told_late_count_from_the_next_look_on);
    TEST(without_switches_nothing_is_said_of_running);
    close(fd);
    unlink(path);
    return checks_end();
}
