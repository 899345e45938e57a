/* Copies of files that are being written (store/mirror.h): after every pass the
 * copy is a valid trace, and in the end it lacks nothing that is not counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "bounded.h"
#include "os/os.h"
#include "store/format.h"
#include "store/local_files.h"
#include "whole_files.h"

static char target_path[64];
static int from, to;
static vst__mirror *mirror;
static unsigned recorded;

static void begin_copy(vst__copy_note *note)
{
    recorded = 0;
    snprintf(target_path, sizeof target_path, "/tmp/vestige-mirror-%d.vst",
             (int)getpid());
    from = open(path, O_RDWR | O_CLOEXEC);
    to = open(target_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(from >= 0 && to >= 0);
    CHECK_INT(vst__mirror_create(from, to, note, &mirror), 0);
}

static void end_copy(void)
{
    vst__mirror_destroy(mirror);
    close(from);
    close(to);
    unlink(target_path);
}

static void record_more(unsigned count)
{
    record_leaves(recorded, count);
    recorded += count;
}

static vst_trace_info info_of(const char *file)
{
    vst_trace_info info = {.words = 0};
    vst_trace *trace;

    if (CHECK_INT(vst_trace_open(file, &trace, NULL), VST_OK)) {
        vst_trace_get_info(trace, &info);
        for (vst_id id = 1; id <= vst_trace_definition_max(trace); id++)
            CHECK(vst_trace_definition(trace, id) != NULL);
        vst_trace_close(trace);
    }
    return info;
}

/* ---- an unbounded file --------------------------------------------------- */

static void check_equal_files(void)
{
    size_t size, copied;
    unsigned char *original = read_whole(path, &size);
    unsigned char *copy = read_whole(target_path, &copied);

    CHECK_INT(copied, size);
    CHECK(copied == size && memcmp(original, copy, size) == 0);
    free(original);
    free(copy);
}

static void the_copy_of_a_finished_recording_is_equal_byte_for_byte(void)
{
    begin(0, 0);
    begin_copy(NULL);
    for (int i = 0; i < 20; i++) {
        record_more(i % 3 == 0 ? 100000 : 7);
        CHECK_INT(vst__mirror_pass(mirror), 0);
    }
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK_INT(vst__mirror_pass(mirror), 0);
    CHECK(vst__mirror_is_finished(mirror));
    CHECK(!info_of(target_path).clean); /* that comes last */
    CHECK_INT(vst__mirror_complete(mirror), 0);
    CHECK(info_of(target_path).clean);
    check_equal_files();
    end_copy();
    end();
}

static void after_each_pass_the_copy_has_all_that_was_recorded(void)
{
    begin(0, 0);
    begin_copy(NULL);
    for (int i = 0; i < 30; i++) {
        record_more(i % 5 == 0 ? 30000 : 11);
        CHECK_INT(vst__mirror_pass(mirror), 0);
        CHECK_INT(info_of(target_path).words, info_of(path).words);
        CHECK_INT(info_of(target_path).damaged_at, 0);
    }
    CHECK_INT(vst__mirror_pass(mirror), 0);
    CHECK_INT(info_of(target_path).words, info_of(path).words);
    end_copy();
    end();
}

static void a_copy_of_a_killed_recording_has_every_word(void)
{
    begin(0, 0);
    begin_copy(NULL);
    record_more(50000);
    CHECK_INT(vst__mirror_pass(mirror), 0);
    record_more(50001);
    CHECK_INT(vst__mirror_complete(mirror), 0);
    CHECK_INT(info_of(target_path).words, info_of(path).words);
    CHECK(!info_of(target_path).clean);
    end_copy();
    end();
}

static void another_mirror_goes_on_where_the_first_one_ended(void)
{
    begin(0, 0);
    begin_copy(NULL);
    record_more(200000);
    CHECK_INT(vst__mirror_pass(mirror), 0);
    vst__mirror_destroy(mirror);
    record_more(100000);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK_INT(vst__mirror_create(from, to, NULL, &mirror), 0);
    CHECK_INT(vst__mirror_complete(mirror), 0);
    check_equal_files();
    end_copy();
    end();
}

static void a_copy_that_somebody_cuts_is_made_whole_again(void)
{
    begin(0, 0);
    begin_copy(NULL);
    for (int i = 0; i < 10; i++) {
        record_more(70000);
        CHECK_INT(vst__mirror_pass(mirror), 0);
        CHECK_INT(ftruncate(to, i * 50000), 0);
    }
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK_INT(vst__mirror_complete(mirror), 0);
    check_equal_files();
    end_copy();
    end();
}

/* ---- storage that is given back ------------------------------------------ */

static void the_local_file_gives_back_what_was_copied(void)
{
    vst__copy_note note = {.limit = 8 * MIB};
    vst_trace_info whole;
    struct stat st;

    begin(0, 0);
    begin_copy(&note);
    for (int i = 0; i < 40; i++) {
        record_more(40000);
        CHECK_INT(vst__mirror_pass(mirror), 0);
    }
    CHECK_INT(fstat(from, &st), 0);
    CHECK(note.freed > 10 * MIB);
    CHECK(st.st_size - (off_t)note.freed <= 8 * MIB);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK_INT(vst__mirror_complete(mirror), 0);
    whole = info_of(target_path);
    CHECK(whole.clean);
    CHECK_INT(whole.lost, 0);
    CHECK(whole.words >= 2 * (uint64_t)recorded);
    end_copy();
    end();
}

static void what_a_cut_copy_cannot_get_again_is_counted(void)
{
    vst__copy_note note = {.limit = 8 * MIB};
    vst_trace_info before, after;

    begin(0, 0);
    begin_copy(&note);
    for (int i = 0; i < 30; i++) {
        record_more(40000);
        CHECK_INT(vst__mirror_pass(mirror), 0);
    }
    before = info_of(target_path);
    CHECK_INT(ftruncate(to, 2 * MIB), 0);
    CHECK_INT(vst__mirror_pass(mirror), 0);
    CHECK_INT(ftruncate(to, 2 * MIB), 0); /* again: nothing counts twice */
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK_INT(vst__mirror_complete(mirror), 0);
    after = info_of(target_path);
    CHECK(after.clean);
    CHECK(after.lost > 0);
    CHECK(after.words >= 2 * MIB / 8 - 4096);
    CHECK(after.words + after.lost >= before.words);
    CHECK(after.words + after.lost < before.words + 100); /* the stop */
    end_copy();
    end();
}

/* ---- a bounded file ------------------------------------------------------ */

static void the_copy_of_a_bounded_file_has_the_same_records(void)
{
    vst_trace_info original, copy;

    begin(MIB, 0);
    begin_copy(NULL);
    for (int i = 0; i < 60; i++) {
        record_more(i % 4 == 0 ? 20000 : 13);
        CHECK_INT(vst__mirror_pass(mirror), 0);
        CHECK_INT(info_of(target_path).words, info_of(path).words);
    }
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK_INT(vst__mirror_complete(mirror), 0);
    original = info_of(path);
    copy = info_of(target_path);
    CHECK(copy.clean && original.dropped > 0);
    CHECK_INT(copy.words, original.words);
    CHECK_INT(copy.dropped, original.dropped);
    end_copy();
    end();
}

/* ---- a program that is nobody's child ------------------------------------ */

static volatile sig_atomic_t children_ended;

static void count_child(int number)
{
    (void)number;
    children_ended++;
}

static void a_detached_program_is_nobodys_child(void)
{
    char script[] = "test -z \"$HOME\" && echo done >&3 && read line <&4";
    char *words[] = {"sh", "-c", script, NULL};
    int out[2], in[2];
    char text[8] = "";

    CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(in, O_CLOEXEC) == 0);
    signal(SIGCHLD, count_child);
    CHECK_INT(vst__os_start_detached("/bin/sh", words,
                                     (const int[]){out[1], in[0]}, 2),
              0);
    close(out[1]);
    CHECK_INT(read(out[0], text, sizeof text), 5);
    CHECK_TEXT(text, "done\n");
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
    CHECK_INT(errno, ECHILD);
    close(in[0]);
    close(in[1]);
    CHECK_INT(read(out[0], text, sizeof text), 0); /* it has ended */
    CHECK_INT(children_ended, 0);
    signal(SIGCHLD, SIG_DFL);
    close(out[0]);
    CHECK_INT(vst__os_start_detached("/no/such/program", words, NULL, 0),
              ENOENT);
}

int main(void)
{
    TEST(the_copy_of_a_finished_recording_is_equal_byte_for_byte);
    TEST(after_each_pass_the_copy_has_all_that_was_recorded);
    TEST(a_copy_of_a_killed_recording_has_every_word);
    TEST(another_mirror_goes_on_where_the_first_one_ended);
    TEST(a_copy_that_somebody_cuts_is_made_whole_again);
    TEST(the_local_file_gives_back_what_was_copied);
    TEST(what_a_cut_copy_cannot_get_again_is_counted);
    TEST(the_copy_of_a_bounded_file_has_the_same_records);
    TEST(a_detached_program_is_nobodys_child);
    return checks_end();
}
