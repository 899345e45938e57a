/* Reads pictures of a trace. Builds the index, and compares the answers about
 * the whole trace with all its spans (view_oracle.h). Then changes the index at
 * offsets that the input gives, with correct checksums: the view must refuse
 * the index, or answer every question without harm, including questions about
 * tasks and marks. */
#include <string.h>
#include <unistd.h>

#include "os/os.h"
#include "target.h"
#include "trace_input.h"
#include "view/lanes.h"
#include "view/view_state.h"
#include "view_oracle.h"

enum {
    FIRST_EDIT = 4, /* from here on, choices are edits of EDIT each */
    EDIT = 4,
    PIXELS_MAX = 256
};

#define TIME_LIMIT ((int64_t)1 << 61) /* the limit of pass.c */

/* ---- questions ----------------------------------------------------------- */

static vst_view_range some_range(const vst_view *view, const uint8_t *choices,
                                 unsigned part)
{
    vst_view_info info;
    vst_view_range range = {.pixels = 1 + choices[1] % PIXELS_MAX};
    int64_t width_ns;

    vst__view_get_info(view, &info);
    width_ns = info.end_ns - info.start_ns;
    range.from_ns = info.start_ns + width_ns / 4 * (choices[2] & 3) * part;
    range.to_ns = info.end_ns - width_ns / 8 * (choices[2] >> 2 & 3) * part;
    if (range.to_ns <= range.from_ns)
        range.to_ns = range.from_ns + 1;
    range.max_depth = choices[2] >> 6;
    return range;
}

static void ask_window(vst_view *view, const vst_view_range *range)
{
    const vst_view_head *head;
    const vst_view_row *rows;
    void *bytes;
    size_t count;

    if (vst__view_window(view, range, &bytes, &count, NULL) != VST_OK)
        return;
    head = bytes;
    rows = (const vst_view_row *)(const void *)(head + 1);
    MUST(head->magic == VST_VIEW_MAGIC && head->rects <= VST_VIEW_RECTS_MAX);
    MUST(count == sizeof *head + head->rows * sizeof *rows +
                      head->rects * sizeof(vst_view_rect));
    for (uint32_t i = 0; i < head->rows; i++)
        MUST(rows[i].first <= head->rects &&
             rows[i].rects <= head->rects - rows[i].first);
    free(bytes);
}

static void ask_spans(vst_view *view, const vst_view_range *range,
                      uint32_t depth)
{
    const vst_id wanted[] = {1, 3};
    const vst_view_ids ids = {wanted, 2};
    uint32_t counts[PIXELS_MAX];
    vst_view_flame_row *rows;
    vst_view_span span;
    size_t count;

    for (size_t i = 0; i < vst__view_thread_count(view) && i < 2; i++) {
        vst_view_thread thread;

        vst__view_get_thread(view, i, &thread);
        if (vst__view_span_at(view, thread.number, depth,
                              range->from_ns / 2 + range->to_ns / 2, &span,
                              NULL) == VST_OK)
            vst__view_span_free(&span);
    }
    vst__view_find(view, range, &ids, counts, NULL);
    vst__view_next(view, range, &ids, depth & 1, &span, NULL);
    if (vst__view_flame(view, range, &rows, &count, NULL) != VST_OK)
        return;
    for (size_t i = 0; i < count; i++)
        MUST(rows[i].parent < (int64_t)i);
    free(rows);
}

/* Checks that every item is found in its row and by its id, that links lead to
 * items, and that the picture of all items has at most its maximal size. */
static void ask_lanes_of(vst_trace *trace, vst_view *view,
                         const vst_view_range *range, const char *kind)
{
    enum { LANES = 8 };
    uint32_t numbers[LANES] = {0, 1, 2, 3, 4, 5, 6, 7},
             counts[PIXELS_MAX] = {0};
    const vst__lanes_options options = {
        .window = VST_WINDOW_ALL, .fold_imports = true, .view = view};
    uint64_t facts[VST_LANE_FACTS_MAX];
    vst__lane_item item, found;
    vst__lanes *lanes;
    vst__lane lane;
    uint8_t *packed;
    void *bytes;
    size_t size, count;
    uint32_t first;

    MUST(vst__lanes_create(trace, kind, &options, &lanes, NULL) == VST_OK);
    for (uint32_t i = 0; vst__lanes_item(lanes, i, &item); i++) {
        MUST(vst__lanes_get(lanes, item.lane, &lane) && item.row < lane.rows);
        vst__lanes_facts_of(lanes, i, facts);
        for (size_t j = 0; j < vst__lanes_linked(lanes, i, numbers, LANES); j++)
            MUST(j >= LANES || vst__lanes_item(lanes, numbers[j], &found));
        if (item.count == 0 || item.start_ns == INT64_MAX ||
            strcmp(kind, "tasks") == 0) /* steps may overlap in a damaged
                                         * trace */
            continue;
        MUST(vst__lanes_between(lanes, item.lane, item.row, item.start_ns,
                                item.start_ns + 1, &found, 1) != 0);
    }
    if (vst__lanes_item(lanes, 0, &item)) {
        const vst_view_ids ids = {&item.id, 1};

        vst__lanes_find(lanes, &ids, range->from_ns, range->to_ns,
                        range->pixels, counts);
        MUST(item.start_ns == INT64_MIN ||
             vst__lanes_next(lanes, &ids, INT64_MIN, false, &found) == VST_OK);
        for (int64_t width = 0; width < 2; width++) {
            MUST(vst__lanes_pack(lanes, 0, 0, range->from_ns, range->to_ns,
                                 width * 1000, &packed, &size, &first,
                                 &count) == VST_OK);
            free(packed);
        }
        vst__lanes_busy(lanes, 0, 0, range->from_ns, range->to_ns);
    }
    for (uint32_t i = 0; i < LANES; i++)
        numbers[i] = i;
    if (vst__lanes_draw(lanes, range->from_ns, range->to_ns, range->pixels,
                        numbers, LANES, &bytes, &size) == VST_OK) {
        MUST(((vst_view_head *)bytes)->rects <= VST_VIEW_RECTS_MAX);
        free(bytes);
    }
    vst__lanes_destroy(lanes);
}

/* Asks every question, of the records and of the levels. */
static void ask(vst_view *view, const uint8_t *choices)
{
    for (unsigned part = 0; part < 2; part++) {
        vst_view_range range = some_range(view, choices, part);

        view->window_words_max = part ? 1 : 1000000;
        view->span_words_max = part ? 1 : 1000000;
        ask_window(view, &range);
        ask_spans(view, &range, choices[3] % 8);
        ask_lanes_of(NULL, view, &range, "counters");
        ask_lanes_of(NULL, view, &range, "losses");
    }
}

/* ---- the truth ----------------------------------------------------------- */

static uint32_t count_lanes(vst_view *view, const char *kind, uint32_t *items)
{
    const vst__lanes_options options = {.view = view};
    vst__lanes *lanes;
    vst__lane_item item;
    vst__lane lane;
    uint32_t count = 0;

    MUST(vst__lanes_create(NULL, kind, &options, &lanes, NULL) == VST_OK);
    while (vst__lanes_get(lanes, count, &lane))
        count++;
    for (*items = 0; vst__lanes_item(lanes, *items, &item);)
        ++*items;
    vst__lanes_destroy(lanes);
    return count;
}

static void compare_lanes(vst_view *view, const oracle *truth)
{
    uint32_t items;

    MUST(count_lanes(view, "counters", &items) == truth->tracks.count);
    count_lanes(view, "losses", &items);
    MUST(items == truth->loss_count);
}

static void compare_threads(const vst_view *view, const oracle *truth)
{
    vst_view_info info;

    vst__view_get_info(view, &info);
    MUST(info.spans == truth->spans);
    MUST(vst__view_thread_count(view) == truth->thread_count);
    for (size_t i = 0; i < truth->thread_count; i++) {
        const oracle_thread *of = &truth->threads[i];
        vst_view_thread thread;

        vst__view_get_thread(view, i, &thread);
        MUST(thread.number == of->number && thread.levels == of->levels);
        MUST(thread.off_stack == of->off_stack && thread.spans == of->count);
        MUST(thread.start_ns == of->start_ns && thread.end_ns == of->end_ns);
    }
}

static void compare(vst_view *view, const char *path)
{
    const vst_view_options options = {0};
    oracle *truth;

    MUST(oracle_open(path, &options, &truth, NULL) == VST_OK);
    compare_threads(view, truth);
    compare_lanes(view, truth);
    oracle_close(truth);
}

/* ---- the index ----------------------------------------------------------- */

/* Returns the place of an edit: a byte of a row of a table, or of the
 * header. */
static size_t find_place(const vst__index_header *header, size_t size,
                         const uint8_t *edit)
{
    const vst__index_table *tables = &header->blocks;
    static const size_t rows[] = {
#define ROW_SIZE(name, type) sizeof(type),
        VST_INDEX_TABLES(ROW_SIZE)
#undef ROW_SIZE
    };
    size_t count = sizeof rows / sizeof *rows, which = edit[0] % (count + 2);
    size_t at = edit[1] | (size_t)edit[2] << 8;

    if (which == count)
        return offsetof(vst__index_header, spans) +
               at % (sizeof *header - offsetof(vst__index_header, spans));
    if (which > count || tables[which].count == 0)
        return sizeof *header + at % (size - sizeof *header + 1);
    return (size_t)tables[which].offset +
           edit[1] % tables[which].count * rows[which] + edit[2] % rows[which];
}

/* Loads the view's index after the input's changes; returns false if the index
 * was refused. */
static bool load_changed(vst_view *view, const uint8_t *choices)
{
    size_t size = view->index.size;
    unsigned char *bytes = malloc(size);
    vst__index_header *header = (vst__index_header *)(void *)bytes;
    vst__index_identity identity;
    vst__index changed;
    vst_status status;
    int fd;

    MUST(bytes != NULL);
    memcpy(bytes, view->index.bytes, size);
    identity = header->identity;
    for (size_t i = FIRST_EDIT; i + EDIT <= INPUT_CHOICES; i += EDIT) {
        size_t at = find_place(view->index.header, size, choices + i);
        if (at < size)
            bytes[at] ^= choices[i + EDIT - 1];
    }
    header->checksum = vst__index_sum(bytes, size);
    MUST(vst__os_file_create_in_memory(&fd) == 0);
    MUST(write(fd, bytes, size) == (ssize_t)size);
    free(bytes);
    status = vst__index_load(&changed, fd, view->trace, &identity,
                             view->stretches, view->stretch_count);
    close(fd);
    MUST(status == VST_OK || status == VST_E_DAMAGED);
    if (status == VST_OK) {
        vst__index_unload(&view->index);
        view->index = changed;
    }
    return status == VST_OK;
}

static void look(const trace_input *input, vst_trace *trace)
{
    vst_view_options options = {.no_file = true, .workers = 1};
    int fd = input_file(input);
    vst_view_range range;
    vst_view *view;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    MUST(vst__view_open(path, &options, &view, NULL) == VST_OK);
    compare(view, path);
    ask(view, input->choices);
    range = some_range(view, input->choices, 1);
    ask_lanes_of(trace, NULL, &range, "calls");
    ask_lanes_of(trace, NULL, &range, "devices");
    ask_lanes_of(trace, NULL, &range, "left_out");
    ask_lanes_of(trace, NULL, &range, "marks");
    ask_lanes_of(trace, NULL, &range, "states");
    ask_lanes_of(trace, NULL, &range, "tasks");
    if (load_changed(view, input->choices))
        ask(view, input->choices);
    vst__view_close(view);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return input_use(bytes, size, INPUT_ALL, look);
}
