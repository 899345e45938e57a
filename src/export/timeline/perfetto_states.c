/* When threads ran, in Perfetto's own format: as the switches of a kernel, from
 * which readers make the table thread_state. A trace does not tell on which
 * processor a thread ran, so each thread has one of its own. Readers know a
 * limited number of processors, which is that of the threads whose states are
 * written. One thread at a time. */
#include "export/timeline/perfetto.h"

enum {
    BUNDLE = 1, /* of a packet: ftrace's events of a processor */
    BUNDLE_CPU = 1,
    BUNDLE_EVENT = 2,
    EVENT_TIME = 1,
    EVENT_PID = 2,
    EVENT_SWITCH = 4,
    PREVIOUS_NAME = 1,
    PREVIOUS_PID = 2,
    PREVIOUS_PRIORITY = 3,
    PREVIOUS_STATE = 4,
    NEXT_NAME = 5,
    NEXT_PID = 6,
    NEXT_PRIORITY = 7,

    /* As Linux has them. */
    STATE_RUNNABLE = 0,
    STATE_SLEEPS = 1,
    STATE_DEAD = 16,
    PRIORITY = 120,

    CPUS_MAX = 100
};

typedef struct side {
    const char *name;
    size_t name_len;
    uint32_t tid;
} side;

static void put_switch(vst__perfetto *self, uint32_t cpu, int64_t time_ns,
                       const side *from, uint64_t state, const side *to)
{
    vst__proto *packet = &self->packet;
    size_t bundle, event, body;

    vst__proto_u64(packet, VST_PF_PACKET_SEQUENCE, VST_PERFETTO_BESIDE + 1);
    bundle = vst__proto_open(packet, BUNDLE);
    vst__proto_u64(packet, BUNDLE_CPU, cpu);
    event = vst__proto_open(packet, BUNDLE_EVENT);
    vst__proto_u64(packet, EVENT_TIME, (uint64_t)time_ns);
    vst__proto_u64(packet, EVENT_PID, from->tid);
    body = vst__proto_open(packet, EVENT_SWITCH);
    vst__proto_bytes(packet, PREVIOUS_NAME, from->name, from->name_len);
    vst__proto_u64(packet, PREVIOUS_PID, from->tid);
    vst__proto_u64(packet, PREVIOUS_PRIORITY, PRIORITY);
    vst__proto_u64(packet, PREVIOUS_STATE, state);
    vst__proto_bytes(packet, NEXT_NAME, to->name, to->name_len);
    vst__proto_u64(packet, NEXT_PID, to->tid);
    vst__proto_u64(packet, NEXT_PRIORITY, PRIORITY);
    vst__proto_close(packet, body);
    vst__proto_close(packet, event);
    vst__proto_close(packet, bundle);
    if (self->status == VST_OK)
        self->status =
            vst__proto_write(packet, VST_PF_PACKET, self->timeline.output);
}

/* Times of switches are those of another clock than all others; here they are
 * the same. */
static void put_clocks(vst__perfetto *self)
{
    enum { CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME = 2, WALL = 1, BOOT = 6 };
    vst__proto *packet = &self->packet;
    int64_t now_ns = self->timeline.base_ns;
    size_t snapshot;

    vst__proto_u64(packet, VST_PF_PACKET_SEQUENCE, VST_PERFETTO_BESIDE + 1);
    snapshot = vst__proto_open(packet, VST_PF_PACKET_CLOCK_SNAPSHOT);
    for (uint64_t id = WALL; id <= BOOT; id += BOOT - WALL) {
        size_t clock = vst__proto_open(packet, CLOCK);

        vst__proto_u64(packet, CLOCK_ID, id);
        vst__proto_i64(packet, CLOCK_TIME, now_ns);
        vst__proto_close(packet, clock);
    }
    vst__proto_close(packet, snapshot);
    if (self->status == VST_OK)
        self->status =
            vst__proto_write(packet, VST_PF_PACKET, self->timeline.output);
}

/* The processor of a thread, which it gets with its first state; false: there
 * are too many. */
static bool find_cpu(vst__perfetto *self, const vst_trace_thread *thread,
                     uint32_t *cpu)
{
    if (self->state_thread != thread) {
        if (self->next_cpu == 0)
            put_clocks(self);
        self->state_thread = thread;
        self->state_cpu = self->next_cpu;
        self->next_cpu += self->next_cpu < CPUS_MAX;
    }
    *cpu = self->state_cpu;
    return self->state_cpu < CPUS_MAX;
}

static uint64_t state_of(vst__thread_state state)
{
    switch (state) {
    case VST_THREAD_PREEMPTED:
        return STATE_RUNNABLE;
    case VST_THREAD_WAITS:
        return STATE_SLEEPS;
    default:
        return STATE_DEAD; /* where switches were lost, and at the end */
    }
}

void vst__pf_draw_state(vst__timeline *timeline, const vst__state *state)
{
    static const side idle = {"swapper", 7, 0};
    vst__perfetto *self = (vst__perfetto *)timeline;
    const vst_trace_thread *thread = state->thread;
    const vst__timeline_track *track =
        &timeline->process->tracks[thread - timeline->trace->threads];
    const side own = {thread->name, thread->name_len, track->tid};
    uint32_t cpu;

    if (state->what != VST_THREAD_RUNS || !find_cpu(self, thread, &cpu))
        return;
    put_switch(self, cpu, state->start_ns, &idle, STATE_RUNNABLE, &own);
    put_switch(self, cpu, state->end_ns, &own, state_of(state->next), &idle);
}
