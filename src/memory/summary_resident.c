/* Sums of a history that are not about allocations: reserved address space, and
 * how much of the process was in RAM. See summary_pass.h. One thread at a
 * time. */
#include <stdlib.h>
#include <string.h>

#include "memory/summary_pass.h"

bool vst__reservations_begin(vst__reservations *r, size_t stack_count)
{
    *r = (vst__reservations){.stack_count = stack_count};
    r->stacks = calloc(stack_count, sizeof *r->stacks);
    return r->stacks != NULL;
}

static void catch_up(const vst__reservations *r, vst__reserving *stack)
{
    if (stack->mark != r->mark) {
        stack->most = stack->now;
        stack->mark = r->mark;
    }
}

/* A window begins with nothing reserved. */
static void resident_begin_window(vst__reservations *r)
{
    for (size_t i = 0; i < r->stack_count; i++) {
        catch_up(r, &r->stacks[i]);
        r->stacks[i].now = (vst_memory_amount){0};
    }
    r->now = (vst_memory_amount){0};
    r->bytes = r->count = 0;
}

/* Ending a part in the middle of a reservation makes two reservations of it. */
void vst__reservations_add(vst__reservations *r, const vst_memory_event *e)
{
    bool ends = (e->flags & VST_MEMORY_FREES) != 0;
    double bytes = ends ? -(double)e->size : (double)e->size;
    vst_memory_amount change;
    vst__reserving *stack =
        &r->stacks[e->stack < r->stack_count ? e->stack : 0];

    if ((ends ? e->live_bytes + e->size : e->live_bytes - e->size) != r->bytes)
        resident_begin_window(r);
    change = (vst_memory_amount){(double)(int64_t)(e->live_count - r->count),
                                 bytes, 0};
    catch_up(r, stack);
    vst__memory_amount_add(&stack->now, &change);
    vst__memory_amount_add(&r->now, &change);
    r->bytes = e->live_bytes;
    r->count = e->live_count;
    if (r->now.bytes > r->most.bytes) {
        r->most = r->now;
        r->mark++;
    }
}

vst_memory_amount vst__reservations_of(const vst__reservations *r, size_t stack)
{
    const vst__reserving *s = &r->stacks[stack];

    return s->mark == r->mark ? s->most : s->now;
}

void vst__resident_add(vst_memory_summary *s, const vst_memory_resident *sample,
                       double live)
{
    if (s->resident.sampled == 0 && sample->bytes > sample->file_bytes)
        s->resident.before = sample->bytes - sample->file_bytes;
    if (sample->bytes <= s->resident.sampled)
        return;
    s->resident.sampled = sample->bytes;
    s->resident.sampled_files = sample->file_bytes;
    s->resident.sampled_ns = sample->time_ns;
    s->resident.sampled_live = live;
}

/* Reads vestige.memory.resident: {"peak": N} */
void vst__resident_read_peak(vst_memory_summary *s, const vst_trace *trace)
{
    static const char peak[] = "\"peak\":";
    const char *json = vst_trace_metadata(trace, "vestige.memory.resident");
    const char *key = json != NULL ? strstr(json, peak) : NULL;
    double told = key != NULL ? strtod(key + strlen(peak), NULL) : 0;

    s->resident.peak = s->resident.sampled;
    if (told > (double)s->resident.peak && told < 0x1p63)
        s->resident.peak = (uint64_t)told;
}
