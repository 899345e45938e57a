/* The index as a file: when the file is reused, when a view notices that it
 * cannot reuse the file, and that an index with any contents does no harm. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "view/lanes.h"
#include "view/view_state.h"
#include "view_random.h"
#include "whole_files.h"

static char path[64], other[64], index_path[80];

static void write_trace(char *to, uint64_t seed)
{
    view_random random = {.state = seed,
                          .threads = 1,
                          .windows = 1,
                          .pages = 10,
                          .chunks = 2,
                          .odd = 5};
    builder b;

    random_trace(&b, &random);
    strcpy(to, "/tmp/vestige-index-XXXXXX");
    random_file(&b, to);
    builder_free(&b);
}

/* Makes the lanes that an index has. */
static void make_lanes(vst_view *view)
{
    static const char *const kinds[] = {"counters", "losses"};
    const vst__lanes_options options = {.view = view};

    for (int i = 0; i < 2; i++) {
        vst__lanes *lanes;

        vst__lanes_create(NULL, kinds[i], &options, &lanes, NULL);
        vst__lanes_destroy(lanes);
    }
}

/* Returns whether the index had to be built; -1: the file cannot be opened. */
static int open_and_ask(const char *file, const vst_view_options *options,
                        bool *in_memory)
{
    vst_view_range range = {.pixels = 100};
    const vst_id id = 3;
    vst_view_info info;
    vst_view_span span;
    vst_view_flame_row *rows;
    uint32_t counts[100];
    vst_view *view;
    void *bytes;
    size_t count;

    if (vst__view_open(file, options, &view, NULL) != VST_OK)
        return -1;
    vst__view_get_info(view, &info);
    if (in_memory != NULL)
        *in_memory = info.index_path == NULL;
    range.from_ns = info.start_ns;
    range.to_ns = info.end_ns;
    for (int i = 0; i < 2; i++) {
        view->window_words_max = i ? 1 : 1000000;
        view->span_words_max = i ? 1 : 1000000;
        if (vst__view_window(view, &range, &bytes, &count, NULL) == VST_OK)
            free(bytes);
        for (uint32_t depth = 0; depth < 40; depth += 3)
            if (vst__view_span_at(view, 1, depth,
                                  (info.start_ns + info.end_ns) / 2, &span,
                                  NULL) == VST_OK)
                vst__view_span_free(&span);
    }
    if (vst__view_flame(view, &range, &rows, &count, NULL) == VST_OK)
        free(rows);
    vst__view_find(view, &range, &(vst_view_ids){&id, 1}, counts, NULL);
    vst__view_next(view, &range, &(vst_view_ids){&id, 1}, false, &span, NULL);
    make_lanes(view);
    vst__view_close(view);
    return info.built;
}

static int is_built(const char *file)
{
    vst_view *view;
    vst_view_info info;

    if (vst__view_open(file, NULL, &view, NULL) != VST_OK)
        return -1;
    vst__view_get_info(view, &info);
    vst__view_close(view);
    return info.built;
}

static void an_index_is_built_once(void)
{
    struct stat before, after;

    CHECK_INT(open_and_ask(path, NULL, NULL), 1);
    CHECK_INT(stat(index_path, &before), 0);
    CHECK_INT(open_and_ask(path, NULL, NULL), 0);
    CHECK_INT(stat(index_path, &after), 0);
    CHECK_INT(after.st_ino, before.st_ino);
}

static void an_index_of_another_trace_is_built_again(void)
{
    char theirs[80];

    snprintf(theirs, sizeof theirs, "%s.view", other);
    CHECK_INT(open_and_ask(other, NULL, NULL), 1);
    CHECK_INT(rename(theirs, index_path), 0);
    CHECK_INT(open_and_ask(path, NULL, NULL), 1);
    CHECK_INT(open_and_ask(path, NULL, NULL), 0);
}

static void a_trace_that_changed_is_noticed(void)
{
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct stat before;

    CHECK_INT(stat(path, &before), 0);
    CHECK_INT(utimensat(AT_FDCWD, path, times, 0), 0);
    CHECK_INT(open_and_ask(path, NULL, NULL), 1);
    CHECK_INT(open_and_ask(path, NULL, NULL), 0);
    CHECK_INT(truncate(path, before.st_size - 5000), 0);
    CHECK_INT(open_and_ask(path, NULL, NULL), 1);
    CHECK_INT(open_and_ask(path, NULL, NULL), 0);
}

static void a_torn_index_is_built_again(void)
{
    size_t size;
    unsigned char *bytes = read_whole(index_path, &size);

    for (size_t cut = 8; cut < size; cut += size / 4) {
        write_whole(index_path, bytes, cut);
        CHECK_INT(is_built(path), 1);
    }
    CHECK_INT(is_built(path), 0);
    free(bytes);
}

static void no_flipped_bit_goes_unnoticed(void)
{
    size_t size, flips = 2000 / check_step(40, 100);
    unsigned char *bytes = read_whole(index_path, &size);

    for (size_t at = 8; at < size; at += 1 + size / flips) {
        bytes[at] ^= (unsigned char)(1u << at % 8);
        write_whole(index_path, bytes, size);
        CHECK_INT(is_built(path), 1);
        bytes[at] ^= (unsigned char)(1u << at % 8);
    }
    free(bytes);
}

/* Index files with a correct checksum but wrong numbers. */
static void an_index_made_to_do_harm_does_none(void)
{
    size_t size, tries = 2000 / check_step(10, 50);
    unsigned char *bytes = read_whole(index_path, &size), *copy = malloc(size);
    view_random random = {.state = 99};

    for (size_t i = 0; i < tries; i++) {
        vst__index_header *header = (vst__index_header *)(void *)copy;
        size_t tables = (size_t)header->blocks.offset;

        memcpy(copy, bytes, size);
        tables = (size_t)header->blocks.offset;
        for (int j = 0; j < 3; j++) {
            /* Half of the changes are in the header and the tables. */
            size_t at = random_number(&random) % 2
                            ? tables + random_number(&random) % (size - tables)
                            : random_number(&random) % size;
            uint64_t value = random_number(&random) % 4
                                 ? 1u << random_number(&random) % 8
                                 : random_number(&random);
            copy[at] ^= (unsigned char)value;
        }
        memcpy(header, bytes, offsetof(vst__index_header, checksum));
        header->identity = ((vst__index_header *)(void *)bytes)->identity;
        header->checksum = vst__index_sum(copy, size);
        write_whole(index_path, copy, size);
        CHECK(open_and_ask(path, NULL, NULL) >= 0);
    }
    free(bytes);
    free(copy);
    unlink(index_path);
}

/* A shell's `> t.vst.view` empties the index while a viewer uses it. */
static void an_index_that_is_cut_while_it_is_used_answers_on(void)
{
    vst_view_range range = {.pixels = 100};
    void *before = NULL, *after = NULL;
    size_t count = 0, count_after = 0;
    vst_view_info info;
    vst_view *view;

    if (!CHECK_INT(vst__view_open(path, NULL, &view, NULL), VST_OK))
        return;
    vst__view_get_info(view, &info);
    view->window_words_max = 1; /* read from the index, not from the records */
    range.from_ns = info.start_ns;
    range.to_ns = info.end_ns;
    CHECK_INT(vst__view_window(view, &range, &before, &count, NULL), VST_OK);
    CHECK_INT(truncate(index_path, 0), 0);
    CHECK_INT(vst__view_window(view, &range, &after, &count_after, NULL),
              VST_OK);
    if (CHECK_INT(count_after, count) && count != 0)
        CHECK(memcmp(before, after, count) == 0);
    free(before);
    free(after);
    vst__view_close(view);
    CHECK_INT(open_and_ask(path, NULL, NULL), 1);
}

/* The file claims a huge size (a hole): the view allocates no memory for it. */
static void an_index_larger_than_any_of_this_trace_is_built_again(void)
{
    size_t size;
    unsigned char *bytes = read_whole(index_path, &size);
    vst__index_header *header = (vst__index_header *)(void *)bytes;

    header->size = (uint64_t)1 << 40;
    write_whole(index_path, bytes, size);
    CHECK_INT(truncate(index_path, (off_t)header->size), 0);
    CHECK_INT(is_built(path), 1);
    CHECK_INT(is_built(path), 0);
    free(bytes);
}

static void without_a_place_for_it_an_index_lives_in_memory(void)
{
    vst_view_options options = {.index = "/nowhere/at/all.view"};
    bool in_memory = false;
    struct stat is;

    unlink(index_path);
    CHECK_INT(open_and_ask(path, &options, &in_memory), 1);
    CHECK(in_memory);
    in_memory = false;
    options = (vst_view_options){.no_file = true};
    CHECK_INT(open_and_ask(path, &options, &in_memory), 1);
    CHECK(in_memory);
    CHECK(stat(index_path, &is) != 0);
}

static void a_file_that_is_no_index_stays_as_it_is(void)
{
    const char text[] = "somebody's notes";
    unsigned char *bytes;
    bool in_memory = false;
    size_t size;

    write_whole(index_path, (const unsigned char *)text, sizeof text);
    CHECK_INT(open_and_ask(path, NULL, &in_memory), 1);
    CHECK(in_memory);
    bytes = read_whole(index_path, &size);
    CHECK_INT(size, sizeof text);
    CHECK(memcmp(bytes, text, sizeof text) == 0);
    free(bytes);
    unlink(index_path);
}

static int stop_at_once(void *ctx, double done)
{
    (void)done;
    ++*(int *)ctx;
    return 1;
}

static void a_build_can_be_stopped_and_leaves_nothing(void)
{
    int calls = 0;
    vst_view_options options = {.progress = stop_at_once,
                                .progress_ctx = &calls};
    struct stat is;
    vst_view *view;
    vst_error error;
    vst_status status = vst__view_open(path, &options, &view, &error);

    /* The index may be complete before the callback is called. */
    if (status == VST_OK) {
        CHECK_INT(calls, 0);
        vst__view_close(view);
    } else {
        CHECK_INT(status, VST_E_CANCELLED);
        CHECK(stat(index_path, &is) != 0);
    }
    unlink(index_path);
}

static void packed_and_bounded_traces_have_views(void)
{
    char packed[80];
    vst_status status;
    builder b;

    snprintf(packed, sizeof packed, "%s.packed", other);
    status =
        vst_trace_pack(other, packed, &(vst_pack_options){.level = 1}, NULL);
    if (status != VST_E_NO_ZSTD) {
        char theirs[90];
        CHECK_INT(status, VST_OK);
        CHECK_INT(open_and_ask(packed, NULL, NULL), 1);
        CHECK_INT(open_and_ask(packed, NULL, NULL), 0);
        snprintf(theirs, sizeof theirs, "%s.view", packed);
        unlink(theirs);
        unlink(packed);
    }
    builder_bounded(&b);
    strcpy(packed, "/tmp/vestige-index-XXXXXX");
    random_file(&b, packed);
    builder_free(&b);
    CHECK_INT(open_and_ask(packed, &(vst_view_options){.no_file = true}, NULL),
              1);
    unlink(packed);
    builder_init(&b);
    strcpy(packed, "/tmp/vestige-index-XXXXXX");
    random_file(&b, packed);
    builder_free(&b);
    CHECK_INT(open_and_ask(packed, &(vst_view_options){.no_file = true}, NULL),
              1);
    unlink(packed);
}

static void *ask(void *arg)
{
    vst_view *view = arg;
    vst_view_range range = {.pixels = 300};
    void *bytes;
    size_t count;
    vst_view_info info;

    vst__view_get_info(view, &info);
    range.from_ns = info.start_ns;
    range.to_ns = info.end_ns;
    for (int i = 0; i < 5; i++) {
        if (vst__view_window(view, &range, &bytes, &count, NULL) == VST_OK)
            free(bytes);
        make_lanes(view);
    }
    return NULL;
}

static void several_threads_may_ask_at_once(void)
{
    vst_view_options options = {.no_file = true, .workers = 2};
    pthread_t threads[3];
    vst_view *view;

    if (!CHECK_INT(vst__view_open(other, &options, &view, NULL), VST_OK))
        return;
    for (int i = 0; i < 3; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, ask, view), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    vst__view_close(view);
}

int main(void)
{
    write_trace(path, 12345);
    write_trace(other, 54321);
    snprintf(index_path, sizeof index_path, "%s.view", path);
    TEST(an_index_is_built_once);
    TEST(an_index_of_another_trace_is_built_again);
    if (!FOR_THREADS) {
        TEST(a_torn_index_is_built_again);
        TEST(no_flipped_bit_goes_unnoticed);
        TEST(an_index_larger_than_any_of_this_trace_is_built_again);
        TEST(an_index_made_to_do_harm_does_none);
    }
    TEST(an_index_that_is_cut_while_it_is_used_answers_on);
    TEST(without_a_place_for_it_an_index_lives_in_memory);
    TEST(a_file_that_is_no_index_stays_as_it_is);
    TEST(a_build_can_be_stopped_and_leaves_nothing);
    TEST(a_trace_that_changed_is_noticed);
    TEST(packed_and_bounded_traces_have_views);
    TEST(several_threads_may_ask_at_once);
    unlink(path);
    unlink(other);
    unlink(index_path);
    return checks_end();
}
