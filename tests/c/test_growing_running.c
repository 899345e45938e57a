/* How long functions ran, according to sums of a hand-made file that grows and
 * has switches: every time is known, and so is every number. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "store/stream.h"
#include "tables/growing.h"
#include "trace_builder.h"

enum { A = 1, B = 2, C = 3, ALL = 1000, UNKNOWN = -1 };

static char path[] = "/tmp/vestige-growing-running-XXXXXX";
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

/* Off a processor: 3500..4500, 5200..5300, 6000..6900; the second thread runs
 * only 2500..3400. */
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
    builder_window(b, 0, 1500, 0); /* the window is still open */
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

/* Writes the file as it was when it held this many records of each thread and
 * this many escapes of switches. */
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

static const vst__column *column(const vst__batch *rows, const char *name)
{
    for (size_t i = 0; i < rows->column_count; i++)
        if (strcmp(rows->specs[i].name, name) == 0)
            return &rows->columns[i];
    abort();
}

static int64_t value(const vst__batch *rows, const char *name, size_t row)
{
    const vst__column *of = column(rows, name);

    return of->valid[row / 8] >> row % 8 & 1
               ? ((const int64_t *)of->values)[row]
               : UNKNOWN;
}

static void check(const vst__growth *growth, vst_id id, int64_t self_ns,
                  int64_t total_ns)
{
    const vst__batch *rows = growth->functions;
    const int32_t *ids = column(rows, "func")->values;

    for (size_t i = 0; i < rows->rows; i++)
        if (ids[i] == (int32_t)id) {
            CHECK_INT(value(rows, "self_running_ns", i), self_ns);
            CHECK_INT(value(rows, "running_ns", i), total_ns);
            return;
        }
    CHECK(self_ns == 0 && total_ns == 0);
}

static vst__growing *opened(void)
{
    vst__growing *sums = NULL;

    if (!CHECK_INT(vst__growing_open(path, INT64_C(1) << 40, &sums, NULL),
                   VST_OK))
        abort();
    return sums;
}

static vst__growth grown(vst__growing *sums)
{
    vst__growth growth = {0};

    CHECK_INT(vst__growing_read(sums, false, &growth, NULL), VST_OK);
    return growth;
}

static void check_whole(const vst__growth *growth)
{
    CHECK(growth->knows_running);
    check(growth, A, 2500 + 500, 4000 + 900);
    check(growth, B, 500 + 400, 500 + 400);
    check(growth, C, 1000, 1000);
}

static void sums_say_how_long_functions_ran_on_all_threads(void)
{
    vst__growth growth;
    vst__growing *sums;
    builder b;

    build(&b, true);
    show(&b, ALL, ALL);
    sums = opened();
    growth = grown(sums);
    check_whole(&growth);
    vst__growing_close(sums);
    builder_free(&b);
}

static void they_go_on_where_the_last_reading_was(void)
{
    vst__growth growth;
    vst__growing *sums;
    builder b;

    build(&b, true);
    for (size_t records = 1; records < 6; records++) {
        show(&b, records, 2);
        sums = opened();
        grown(sums);
        show(&b, ALL, ALL);
        for (int i = 0; i < 3; i++) { /* reading again counts nothing twice */
            growth = grown(sums);
            if (records <= 3) /* records up to 4000; both threads' switches are
                                 known until 4500 */
                check_whole(&growth);
        }
        vst__growing_close(sums);
    }
    builder_free(&b);
}

/* Until a switch is reported, the reader assumes that a thread continues. */
static void switches_that_are_told_late_count_from_the_next_reading_on(void)
{
    vst__growth growth;
    vst__growing *sums;
    builder b;

    build(&b, true);
    show(&b, 4, 2); /* in c from 5000 on; no switch after 4500 is known */
    sums = opened();
    grown(sums);
    show(&b, 4, ALL); /* off the processor: 100 before 5300, and 900 before
                       * 6900 */
    grown(sums);
    show(&b, ALL, ALL);
    growth = grown(sums);
    check_whole(&growth);
    vst__growing_close(sums);
    builder_free(&b);
}

static void sums_begin_anew_when_it_turns_out_that_switches_are_told(void)
{
    vst__growth growth;
    vst__growing *sums;
    builder b;

    build(&b, true);
    show(&b, 3, 0);
    sums = opened();
    growth = grown(sums);
    show(&b, ALL, ALL);
    growth = grown(sums);
    check_whole(&growth);
    vst__growing_close(sums);
    builder_free(&b);
}

static void without_switches_nothing_is_said_of_running(void)
{
    vst__growth growth;
    vst__growing *sums;
    builder b;

    build(&b, false);
    if (ftruncate(fd, 0) != 0)
        abort();
    show(&b, ALL, ALL);
    sums = opened();
    growth = grown(sums);
    CHECK(!growth.knows_running);
    check(&growth, A, UNKNOWN, UNKNOWN);
    CHECK_INT(
        ((const int64_t *)column(growth.functions, "total_ns")->values)[0],
        6000);
    vst__growing_close(sums);
    builder_free(&b);
}

int main(void)
{
    fd = mkstemp(path);
    if (fd < 0)
        return 1;
    TEST(sums_say_how_long_functions_ran_on_all_threads);
    TEST(they_go_on_where_the_last_reading_was);
    TEST(switches_that_are_told_late_count_from_the_next_reading_on);
    TEST(sums_begin_anew_when_it_turns_out_that_switches_are_told);
    TEST(without_switches_nothing_is_said_of_running);
    close(fd);
    unlink(path);
    return checks_end();
}
