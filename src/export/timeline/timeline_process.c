/* The processes and threads of a timeline: their numbers, names and places.
 * Numbers are the system's if they are unique, and every pid and tid is a
 * number (viewers fail on strings).
 *
 * In a document of several processes each is named by its rank and command
 * line; labels hold further differences. One thread at a time. */
#include <stdio.h>
#include <stdlib.h>

#include "export/timeline/timeline.h"

/* The kernel gives out no larger numbers, and viewers keep 32 bits. */
#define TID_MAX UINT32_C(0x7fffffff)

enum { NAME_MAX_CHARACTERS = 160 };

/* ---- numbers ------------------------------------------------------------- */

typedef struct claim {
    uint64_t number;
    size_t owner; /* index of the owner */
} claim;

static int by_number(const void *a, const void *b)
{
    const claim *x = a, *y = b;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->owner > y->owner) - (x->owner < y->owner);
}

/* Gives every thread a tid that is unique in its process, because events of two
 * threads on one track would not nest. The first thread with a system tid keeps
 * it; the others, and threads without one, get numbers above all of these. */
static vst_status assign_tids(const vst__timeline *timeline,
                              vst__timeline_process *process)
{
    const vst_trace *trace = process->trace;
    size_t count = trace->thread_count;
    claim *claims = malloc((count + 1) * sizeof *claims);
    uint32_t next = trace->header.pid < TID_MAX ? trace->header.pid : 0;

    process->tracks = calloc(count + 1, sizeof *process->tracks);
    if (claims == NULL || process->tracks == NULL) {
        free(claims);
        return VST_E_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t tid = trace->threads[i].system_tid;

        claims[i] = (claim){tid <= TID_MAX ? tid : 0, i};
        if (claims[i].number > next)
            next = (uint32_t)claims[i].number;
    }
    qsort(claims, count, sizeof *claims, by_number);
    for (size_t i = 0; i < count; i++) {
        bool taken = i != 0 && claims[i].number == claims[i - 1].number;

        process->tracks[claims[i].owner].tid = taken || claims[i].number == 0
                                                   ? ++next
                                                   : (uint32_t)claims[i].number;
    }
    process->drawn->windows_tid = ++next;
    if (timeline->drawing->ops->state == NULL && vst__trace_has_switches(trace))
        for (size_t i = 0; i < count; i++)
            process->tracks[i].states_tid = ++next;
    process->last_tid = next;
    free(claims);
    return VST_OK;
}

/* The first process with a pid keeps it. Others with this pid (on another
 * machine, or after an exec) get numbers above all pids. */
static vst_status assign_pids(vst__timeline *timeline)
{
    size_t count = timeline->drawing->process_count;
    claim *claims = malloc(count * sizeof *claims);
    uint32_t next = 0;

    if (claims == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        uint32_t pid = timeline->processes[i].trace->header.pid;

        claims[i] = (claim){pid, i};
        if (pid > next && pid < TID_MAX)
            next = pid;
    }
    qsort(claims, count, sizeof *claims, by_number);
    for (size_t i = 0; i < count; i++) {
        bool taken = i != 0 && claims[i].number == claims[i - 1].number;

        timeline->drawing->processes[claims[i].owner].pid =
            taken ? ++next : (uint32_t)claims[i].number;
    }
    free(claims);
    return VST_OK;
}

static void note_shown(vst__timeline_process *process,
                       const vst__window *window)
{
    const vst_trace *trace = process->trace;

    for (size_t i = 0; i < window->segment_count; i++) {
        const vst_trace_thread *thread = vst_trace_thread_find(
            trace, trace->segments[window->segments + i].thread);
        if (thread != NULL)
            process->tracks[thread - trace->threads].shown = true;
    }
}

vst_status vst__timeline_assign(vst__timeline *timeline)
{
    vst_status status = assign_pids(timeline);

    for (size_t i = 0; status == VST_OK && i < timeline->drawing->process_count;
         i++) {
        vst__timeline_process *process = &timeline->processes[i];

        status = assign_tids(timeline, process);
        if (status == VST_OK)
            status = vst__timeline_make_groups(timeline, process);
        for (size_t k = 0; status == VST_OK && k < process->window_count; k++)
            note_shown(process,
                       &process->trace->windows[process->first_window + k]);
    }
    return status;
}

uint32_t vst__timeline_tid(const vst__timeline_process *process,
                           uint32_t number)
{
    const vst_trace_thread *thread =
        vst_trace_thread_find(process->trace, number);

    return thread != NULL
               ? process->tracks[thread - process->trace->threads].tid
               : process->drawn->windows_tid;
}

/* ---- names --------------------------------------------------------------- */

static vst__json_part process_metadata(const vst_trace *trace, const char *key)
{
    return vst__json_whole(vst_trace_metadata(trace, key));
}

static bool find_rank(const vst_trace *trace, int64_t *rank)
{
    return vst__json_integer(
               vst__json_member(process_metadata(trace, "distributedInfo"),
                                "rank"),
               rank) &&
           *rank >= 0;
}

/* Writes the content of a JSON string, cut after `room` characters. Returns the
 * remaining room. */
static size_t put_cut(vst__output *output, vst__json_part text, size_t room)
{
    const char *at = text.at, *end;

    if (text.count == 0)
        return room;
    end = at + text.count;
    while (at != end && room != 0) {
        size_t count = 1;

        if (*at == '\\')
            count = at[1] == 'u' ? 6 : 2;
        else
            count = vst__json_utf8((const unsigned char *)at,
                                   (const unsigned char *)end);
        at += count;
        room--;
    }
    vst__output_write(output, text.at, (size_t)(at - text.at));
    if (at != end)
        vst__output_text(output, "\xe2\x80\xa6"); /* an ellipsis */
    return room;
}

static bool process_contains(vst__json_part text, vst__json_part part)
{
    for (size_t i = 0; i + part.count <= text.count; i++)
        if (memcmp(text.at + i, part.at, part.count) == 0)
            return true;
    return false;
}

/* Returns the content of a word without the folders of a program's path. */
static vst__json_part without_folder(vst__json_part text)
{
    for (size_t i = text.count; i-- > 0;)
        if (text.at[i] == '/' && i + 1 < text.count)
            return (vst__json_part){text.at + i + 1, text.count - i - 1};
    return text;
}

/* Returns whether a process's name adds something to its command line. */
static bool process_name_adds(vst__json_part name, vst__json_part command)
{
    static const char *const generic[] = {"python", "command"};

    for (size_t i = 0; i < sizeof generic / sizeof generic[0]; i++)
        if (command.count != 0 && name.count == strlen(generic[i]) &&
            memcmp(name.at, generic[i], name.count) == 0)
            return false;
    return name.count != 0 && !process_contains(command, name);
}

/* Writes `rank 3: ForkPoolWorker-1: python train.py --steps 10`: the known
 * parts, and the process's own name only if the command line does not contain
 * it. */
static void put_long_name(const vst__timeline *timeline, vst__output *output)
{
    vst__json_part name = vst__json_inside(
        process_metadata(timeline->trace, VST_DRAWING_INTERNAL "process_name"));
    vst__json_part command =
        process_metadata(timeline->trace, VST_DRAWING_INTERNAL "command");
    vst__json_part word;
    const char *at = NULL, *between = "";
    size_t room = NAME_MAX_CHARACTERS;
    bool first = true;
    int64_t rank;

    if (find_rank(timeline->trace, &rank)) {
        vst__output_text(output, "rank ");
        vst__json_put_u64(output, (uint64_t)rank);
        between = ": ";
    }
    if (process_name_adds(name, command)) {
        vst__output_text(output, between);
        room = put_cut(output, name, room);
        between = ": ";
    }
    while (room != 0 && vst__json_next(command, &at, &word)) {
        word = vst__json_inside(word);
        vst__output_text(output, between);
        room = put_cut(output, first ? without_folder(word) : word, room);
        between = " ";
        first = false;
    }
    if (between[0] == '\0')
        vst__output_text(output, "python");
}

static void put_labels(const vst__timeline *timeline, vst__output *output)
{
    vst__json_part host = process_metadata(timeline->trace, "host_name");
    vst__json_part first =
        process_metadata(timeline->processes[0].trace, "host_name");
    int64_t rank;

    if (find_rank(timeline->trace, &rank)) {
        vst__output_text(output, "rank ");
        vst__json_put_u64(output, (uint64_t)rank);
        vst__output_text(output, ", ");
    }
    vst__output_text(output, "CPU");
    if (timeline->process->drawn->pid != timeline->trace->header.pid) {
        vst__output_text(output, ", pid ");
        vst__json_put_u64(output, timeline->trace->header.pid);
    }
    if (host.count != first.count ||
        (host.count != 0 && memcmp(host.at, first.at, host.count) != 0)) {
        vst__output_text(output, ", on ");
        put_cut(output, vst__json_inside(host), NAME_MAX_CHARACTERS);
    }
}

/* ---- drawing ------------------------------------------------------------- */

enum { LONG_NAME_MAX = 4096 };

static vst__json_part process_text(const vst__timeline *timeline, char *bytes,
                                   void (*put)(const vst__timeline *,
                                               vst__output *))
{
    vst__output output = {.at = bytes, .end = bytes + LONG_NAME_MAX};

    put(timeline, &output);
    return (vst__json_part){bytes, (size_t)(output.at - bytes)};
}

static void draw_thread(vst__timeline *timeline, size_t index)
{
    const vst_trace_thread *thread = &timeline->trace->threads[index];
    const vst__timeline_track *track = &timeline->process->tracks[index];
    vst__drawing *drawing = timeline->drawing;
    char number[32], states[128];
    vst__drawn_lane lane = {
        .pid = drawing->process->pid,
        .tid = track->tid,
        .name = thread->name,
        .name_len = thread->name_len,
        .place = index + 1,
    };

    if (lane.name_len == 0) {
        lane.name = number;
        lane.name_len =
            (size_t)snprintf(number, sizeof number, "thread %u", track->tid);
    }
    drawing->ops->lane(drawing, &lane);
    if (track->states_tid == 0)
        return;
    /* States lie below the thread's lane: viewers sort lanes of one place by
     * their numbers. */
    lane.name_len = (size_t)snprintf(
        states, sizeof states, "states of %.*s",
        (int)(lane.name_len < 100 ? lane.name_len : 100), lane.name);
    lane.name = states;
    lane.tid = track->states_tid;
    lane.under = track->tid;
    drawing->ops->lane(drawing, &lane);
}

void vst__timeline_draw_process(vst__timeline *timeline)
{
    static const char windows[] = "Recording windows";
    vst__drawing *drawing = timeline->drawing;
    vst__drawn_process *process = timeline->process->drawn;
    char name[LONG_NAME_MAX], labels[LONG_NAME_MAX];
    vst__drawn_lane lane = {.pid = process->pid,
                            .tid = process->windows_tid,
                            .name = windows,
                            .name_len = sizeof windows - 1};

    process->labels = process_text(timeline, labels, put_labels);
    if (drawing->process_count > 1)
        process->name = process_text(timeline, name, put_long_name);
    else
        process->name = vst__json_inside(process_metadata(
            timeline->trace, VST_DRAWING_INTERNAL "process_name"));
    if (process->name.count == 0)
        process->name = (vst__json_part){"python", strlen("python")};
    drawing->ops->process(drawing);
    drawing->ops->lane(drawing, &lane);
    for (size_t i = 0; i < timeline->trace->thread_count; i++)
        if (timeline->process->tracks[i].shown)
            draw_thread(timeline, i);
    for (size_t i = 0; drawing->ops->group != NULL && i < process->group_count;
         i++)
        drawing->ops->group(drawing, &process->groups[i]);
}
