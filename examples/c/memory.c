/* A C program without Python. It records the allocations of the program and of
 * every library that it uses. The program leaks a little, and prints how much
 * and from where.
 *
 * cc memory.c $(pkg-config --cflags --libs vestige) -o memory ./memory
 * memory.vst
 *
 * If vestige is linked into the program itself by libvestige.a, only the
 * allocations of libraries are recorded: vestige could not distinguish the
 * program's allocations from its own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <vestige/vestige.h>

enum { LEAKS = 3, LEAK_SIZE = 1000 };

/* volatile, so that the compiler does not remove the allocations */
static void *volatile used;
static void *volatile kept[LEAKS];

static void work(void)
{
    for (int i = 0; i < 1000; i++) {
        used = malloc(64 + (size_t)i);
        free(used);
    }
    for (int i = 0; i < LEAKS; i++)
        kept[i] = malloc(LEAK_SIZE);
}

/* ---- the summary -------------------------------------------------------- */

typedef struct summary {
    uint64_t allocations, frees, live_bytes, peak_bytes;
    vst_stack_id last_stack;
} summary;

static vst_status count(void *ctx, const vst_memory_event *event)
{
    summary *sums = ctx;

    if (event->flags & VST_MEMORY_FREES) {
        sums->frees++;
    } else {
        sums->allocations++;
        sums->last_stack = event->stack;
    }
    sums->live_bytes = event->live_bytes;
    if (event->live_bytes > sums->peak_bytes)
        sums->peak_bytes = event->live_bytes;
    return VST_OK;
}

static void print_stack(const vst_trace *trace, vst_stack_id id)
{
    const vst_stack *frame;

    for (; (frame = vst_trace_stack(trace, id)) != NULL; id = frame->parent)
        for (size_t i = 0; i < vst_trace_module_count(trace); i++) {
            const vst_module *module = vst_trace_module(trace, i);
            if (frame->address >= module->start && frame->address < module->end)
                printf("    %s+0x%" PRIx64 "\n", module->path,
                       frame->address - module->bias);
        }
}

static int fail(const char *what, vst_status status)
{
    fprintf(stderr, "%s: %s\n", what, vst_status_string(status));
    return 1;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "memory.vst";
    const vst_session_options options = {.path = path, .overwrite = true};
    const vst_memory_options memory = {.native_allocators = true,
                                       .native_stacks = true};
    summary sums = {.allocations = 0};
    const vst_memory_sink sink = {.ctx = &sums, .event = count};
    vst_session *session;
    vst_trace *trace;
    vst_status status;

    if ((status = vst_session_create(&options, &session, NULL)) != VST_OK ||
        (status = vst_session_start(session, NULL)) != VST_OK)
        return fail(path, status);
    status = vst_memory_start(vst_session_recording(session), &memory, NULL);
    if (status != VST_OK)
        return fail("memory", status);
    work();
    vst_memory_stop();
    vst_session_finish(session, NULL);

    if ((status = vst_session_open_trace(session, &trace, NULL)) != VST_OK)
        return fail("open", status);
    status = vst_trace_replay_memory(trace, VST_WINDOW_ALL, &sink, NULL);
    if (status == VST_OK) {
        printf("%" PRIu64 " allocations, %" PRIu64 " frees, peak %" PRIu64
               " bytes, %" PRIu64 " bytes left; the last from\n",
               sums.allocations, sums.frees, sums.peak_bytes, sums.live_bytes);
        print_stack(trace, sums.last_stack);
    }
    vst_trace_close(trace);
    vst_session_destroy(session);
    return status == VST_OK ? 0 : fail(path, status);
}
