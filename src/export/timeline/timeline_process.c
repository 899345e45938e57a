/* The processes and threads of a timeline: their numbers, names and places.
 * Numbers are the system's where they are unique, and every pid and tid is a
 * number (viewers fail on strings).
 *
 * In a document of several processes each is named by its rank and command
 * line; what else tells them apart is in their labels. One thread at a time. */
#include <stdlib.h>

#include "export/timeline/timeline.h"

/* The kernel gives out no larger numbers, and viewers keep 32 bits. */
#define TID_MAX UINT32_C(0x7fffffff)

enum { NAME_MAX_CHARACTERS = 160 };

/* ---- numbers ------------------------------------------------------------ */

typedef struct claim {
    uint64_t number;
    size_t owner; /* index */
} claim;

static int by_number(const void *a, const void *b)
{
    const claim *x = a, *y = b;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->owner > y->owner) - (x->owner < y->owner);
}

/* Every thread gets a tid that no other of its process has: events of two
 * threads on one track would not nest. The first to have had a system tid keeps
 * it; the others, and those without, get numbers above all of them. */
static vst_status assign_tids(vst__timeline_process *process)
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
    process->windows_tid = ++next;
    for (size_t i = 0; vst__trace_has_switches(trace) && i < count; i++)
        process->tracks[i].states_tid = ++next;
    free(claims);
    return VST_OK;
}

/* The first process to have had a pid keeps it. Others of the same pid (of
 * another machine, or the same process after an exec) get numbers above all. */
static vst_status assign_pids(vst__timeline *timeline)
{
    size_t count = timeline->process_count;
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

        timeline->processes[claims[i].owner].pid =
            taken ? ++next : (uint32_t)claims[i].number;
    }
    free(claims);
    return VST_OK;
}

static bool is_pid(const vst__timeline *timeline, uint32_t pid)
{
    for (size_t i = 0; i < timeline->process_count; i++) {
        const vst__timeline_process *process = &timeline->processes[i];

        if (process->pid == pid)
            return true;
        for (size_t k = 0; process->device_pids != NULL &&
                           k < vst_trace_device_count(process->trace);
             k++)
            if (process->device_pids[k] == pid)
                return true;
    }
    return false;
}

/* A device is shown as a process whose pid is the device's ordinal, as torch
 * does; where that is taken, it gets one of the largest that there are. */
static vst_status assign_device_pids(vst__timeline *timeline,
                                     vst__timeline_process *process)
{
    const vst_trace *trace = process->trace;
    size_t count = vst_trace_device_count(trace);
    uint32_t *pids, next = TID_MAX;

    if (count == 0)
        return VST_OK;
    pids = malloc(count * sizeof *pids);
    if (pids == NULL)
        return VST_E_NOMEM;
    memset(pids, 0xff, count * sizeof *pids); /* no pid yet */
    process->device_pids = pids;
    for (size_t i = 0; i < count; i++) {
        uint32_t pid = vst_trace_device_at(trace, i)->ordinal;

        while (pid > TID_MAX || is_pid(timeline, pid))
            pid = next--;
        pids[i] = pid;
    }
    return VST_OK;
}

uint32_t vst__timeline_device_pid(const vst__timeline_process *process,
                                  uint32_t device)
{
    size_t index = vst__trace_device_index(process->trace, device);

    return index < vst_trace_device_count(process->trace)
               ? process->device_pids[index]
               : process->pid;
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

    for (size_t i = 0; status == VST_OK && i < timeline->process_count; i++) {
        vst__timeline_process *process = &timeline->processes[i];

        status = assign_tids(process);
        if (status == VST_OK)
            status = assign_device_pids(timeline, process);
        for (size_t k = 0; status == VST_OK && k < process->window_count; k++)
            note_shown(process,
                       &process->trace->windows[process->first_window + k]);
    }
    return status;
}

/* ---- names -------------------------------------------------------------- */

static vst__json_part metadata(const vst_trace *trace, const char *key)
{
    return vst__json_whole(vst_trace_metadata(trace, key));
}

static bool find_rank(const vst_trace *trace, int64_t *rank)
{
    return vst__json_integer(
               vst__json_member(metadata(trace, "distributedInfo"), "rank"),
               rank) &&
           *rank >= 0;
}

/* The inside of a JSON string, cut behind so many characters; how many there is
 * room for after it. */
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
        vst__output_text(output, "\xe2\x80\xa6"); /* … */
    return room;
}

static bool contains(vst__json_part text, vst__json_part part)
{
    for (size_t i = 0; i + part.count <= text.count; i++)
        if (memcmp(text.at + i, part.at, part.count) == 0)
            return true;
    return false;
}

/* The inside of a word, without the folders of the program it names. */
static vst__json_part without_folder(vst__json_part text)
{
    for (size_t i = text.count; i-- > 0;)
        if (text.at[i] == '/' && i + 1 < text.count)
            return (vst__json_part){text.at + i + 1, text.count - i - 1};
    return text;
}

/* Whether a process's name says more than its command line does. */
static bool is_telling(vst__json_part name, vst__json_part command)
{
    static const char *const generic[] = {"python", "command"};

    for (size_t i = 0; i < sizeof generic / sizeof generic[0]; i++)
        if (command.count != 0 && name.count == strlen(generic[i]) &&
            memcmp(name.at, generic[i], name.count) == 0)
            return false;
    return name.count != 0 && !contains(command, name);
}

/* `rank 3: ForkPoolWorker-1: python train.py --steps 10`: what is known of it,
 * and a name of its own only where the command line does not have it. */
void vst__timeline_put_long_name(vst__timeline *timeline, vst__output *output)
{
    vst__json_part name = vst__json_inside(
        metadata(timeline->trace, VST_TIMELINE_INTERNAL "process_name"));
    vst__json_part command =
        metadata(timeline->trace, VST_TIMELINE_INTERNAL "command");
    vst__json_part word;
    const char *at = NULL, *between = "";
    size_t room = NAME_MAX_CHARACTERS;
    bool first = true;
    int64_t rank;

    vst__output_text(output, "\"");
    if (find_rank(timeline->trace, &rank)) {
        vst__output_text(output, "rank ");
        vst__json_put_u64(output, (uint64_t)rank);
        between = ": ";
    }
    if (is_telling(name, command)) {
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
    vst__output_text(output, "\"");
}

void vst__timeline_put_labels(vst__timeline *timeline, vst__output *output)
{
    vst__json_part host = metadata(timeline->trace, "host_name");
    vst__json_part first = metadata(timeline->processes[0].trace, "host_name");
    int64_t rank;

    vst__output_text(output, "\"");
    if (find_rank(timeline->trace, &rank)) {
        vst__output_text(output, "rank ");
        vst__json_put_u64(output, (uint64_t)rank);
        vst__output_text(output, ", ");
    }
    vst__output_text(output, "CPU");
    if (timeline->process->pid != timeline->trace->header.pid) {
        vst__output_text(output, ", pid ");
        vst__json_put_u64(output, timeline->trace->header.pid);
    }
    if (host.count != first.count ||
        (host.count != 0 && memcmp(host.at, first.at, host.count) != 0)) {
        vst__output_text(output, ", on ");
        put_cut(output, vst__json_inside(host), NAME_MAX_CHARACTERS);
    }
    vst__output_text(output, "\"");
}
