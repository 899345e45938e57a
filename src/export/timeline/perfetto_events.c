/* Spans, instants, values, arrows and states in Perfetto's own format. A span
 * is two packets. If the span is a call whose name its sequence knows, the
 * packets are copied from a few prepared bytes. One thread at a time. */
#include <stdlib.h>

#include <vestige/record.h>

#include "export/timeline/perfetto.h"

enum {
    PACKETS_MAX = 128, /* bytes of a plain span */
    LABEL_MAX = 16,    /* prepared bytes of a label */
    CPUS_MAX = 100     /* readers support no more */
};

/* ---- spans --------------------------------------------------------------- */

/* Scrambles a number into 64 bits; the flow ids of a call's arrows count up
 * from the result. */
static uint64_t event_first_flow(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Each arrow goes from the earlier end to the later end, and has a number of
 * its own. If one end's clock is wrong, the arrow's end may be the earlier one.
 */
static void put_flows(vst__proto *event, const vst__drawn_span *span)
{
    const vst__drawn_flow *flow = span->flow;
    uint64_t first = event_first_flow(flow->id);

    for (uint32_t i = 0; i < flow->starts; i++)
        vst__proto_fixed64(event, VST_PF_EVENT_FLOW_IDS, first + i);
    if (flow->ends)
        vst__proto_fixed64(event,
                           span->start_ns >= flow->from_ns
                               ? VST_PF_EVENT_LAST_FLOW_IDS
                               : VST_PF_EVENT_FLOW_IDS,
                           first + flow->index);
}

/* Writes both packets with all facts; track 0 means the sequence's own track.
 */
static void event_write_span(vst__perfetto *self, uint32_t number,
                             uint64_t track, const vst__drawn_span *span)
{
    vst__pf *pf = &self->pf;
    vst__category category =
        span->lane != NULL ? span->category : span->label->category;

    vst__pf_open_event(pf, VST_PF_BEGIN, category, track);
    vst__pf_put_name(pf, number, span->label);
    if (span->args != NULL)
        vst__pf_put_args(pf, number, span->args);
    if (span->flow != NULL)
        put_flows(&pf->event, span);
    vst__pf_write_event(pf, number, span->start_ns);
    vst__pf_open_event(pf, VST_PF_END, category, track);
    vst__pf_write_event(pf, number, span->end_ns);
}

/* Prepares the event that begins a span of a label, without arguments. */
static void event_prepare_label(vst__perfetto *self, vst__label *label)
{
    char *at = malloc(LABEL_MAX); /* all LABEL_MAX bytes are copied later */

    label->ready = at;
    if (at == NULL) {
        vst__drawing_fail(&self->drawing, VST_E_NOMEM);
        return;
    }
    memset(at, 0, LABEL_MAX);
    *at++ = VST_PF_EVENT_TYPE << 3;
    *at++ = VST_PF_BEGIN;
    *at++ = VST_PF_EVENT_CATEGORY_IIDS << 3;
    *at++ = (char)label->category;
    *at++ = VST_PF_EVENT_NAME_IID << 3;
    at = vst__proto_varint(at, label->number);
    label->ready_count = (size_t)(at - label->ready);
}

/* Writes a packet's head, up to its event. The length, less than 128, is filled
 * in when it is known. */
static inline char *event_put_head(char *at, uint32_t number, uint64_t delta)
{
    at[0] = VST_PF_PACKET << 3 | VST_PROTO_BYTES;
    at[2] = VST_PF_PACKET_TIMESTAMP << 3;
    at = vst__proto_varint(at + 3, delta);
    at[0] = VST_PF_PACKET_SEQUENCE << 3;
    at[1] = (char)(number + 1);
    at[2] = VST_PF_PACKET_TRACK_EVENT << 3 | VST_PROTO_BYTES;
    return at + 3;
}

/* The output has room for PACKETS_MAX bytes. The members of the span are read
 * before bytes are written, which may alias any object. */
static inline void write_ready(vst__output *output, vst__pf_sequence *sequence,
                               uint32_t number, const vst__drawn_span *span)
{
    char *begin = output->at, *at;
    const char *ready = span->label->ready;
    size_t count = span->label->ready_count;
    int64_t start_ns = span->start_ns, end_ns = span->end_ns;
    int64_t last_ns = sequence->last_ns;

    sequence->last_ns = end_ns;
    at = event_put_head(begin, number, (uint64_t)start_ns - (uint64_t)last_ns);
    *at++ = (char)count;
    /* Copying a constant size takes a few moves; later output overwrites the
     * rest. */
    memcpy(at, ready, LABEL_MAX);
    at += count;
    begin[1] = (char)(at - begin - 2);
    begin = at;
    at = event_put_head(begin, number, (uint64_t)(end_ns - start_ns));
    at[0] = 2;
    at[1] = VST_PF_EVENT_TYPE << 3;
    at[2] = VST_PF_END;
    at += 3;
    begin[1] = (char)(at - begin - 2);
    vst__output_commit(output, at);
}

static void set_tid(vst__perfetto *self, uint32_t tid)
{
    self->tid = tid;
    self->has_tid = true;
    vst__pf_forget_sequences(&self->pf, VST_PF_DEPTHS);
}

/* Returns whether the sequence knows all that the packets of a call refer to.
 */
static inline bool event_is_known(const vst__perfetto *self,
                                  const vst__pf_sequence *sequence,
                                  const vst__drawn_span *span)
{
    return span->fit == VST_FIT_NESTS && span->args == NULL && self->has_tid &&
           self->tid == span->tid && sequence->begun &&
           span->label->ready != NULL &&
           vst__pf_set_has(&sequence->names, span->label->number);
}

/* Draws a span that the sequence does not know, or for which the output lacks
 * room. A function of its own: known spans then save no registers. */
VST_NOINLINE static void event_draw_first(vst__perfetto *self, uint32_t number,
                                          const vst__drawn_span *span)
{
    vst__pf_sequence *sequence = &self->pf.sequences[number];
    vst__label *label = span->label;

    if (span->fit != VST_FIT_NESTS) {
        event_write_span(self, VST_PF_OTHERS, vst__pf_track_of(self, span),
                         span);
        return;
    }
    if (event_is_known(self, sequence, span)) {
        vst__output_reserve(self->drawing.output, PACKETS_MAX);
        write_ready(self->drawing.output, sequence, number, span);
        return;
    }
    if (!self->has_tid || self->tid != span->tid)
        set_tid(self, span->tid);
    if (!sequence->begun)
        vst__pf_begin_sequence(
            &self->pf, number,
            vst__pf_lane_uuid(self->drawing.process, span->tid));
    if (label->ready == NULL && label->number != 0)
        event_prepare_label(self, label);
    event_write_span(self, number, 0, span);
}

void vst__perfetto_span(vst__drawing *drawing, const vst__drawn_span *span)
{
    vst__perfetto *self = vst__perfetto_of(drawing);
    vst__output *output = drawing->output;
    uint32_t number =
        span->depth < VST_PF_DEPTHS ? span->depth : VST_PF_DEPTHS - 1;
    vst__pf_sequence *sequence = &self->pf.sequences[number];

    if (VST_LIKELY(event_is_known(self, sequence, span) &&
                   output->end - output->at >= PACKETS_MAX))
        write_ready(output, sequence, number, span);
    else
        event_draw_first(self, number, span);
}

/* ---- instants, values and arrows ----------------------------------------- */

void vst__perfetto_instant(vst__drawing *drawing,
                           const vst__drawn_instant *instant)
{
    vst__pf *pf = &vst__perfetto_of(drawing)->pf;

    vst__pf_open_event(pf, VST_PF_INSTANT, instant->label->category,
                       vst__pf_lane_uuid(drawing->process, instant->tid));
    vst__pf_put_name(pf, VST_PF_OTHERS, instant->label);
    vst__pf_put_args(pf, VST_PF_OTHERS, instant->args);
    vst__pf_write_event(pf, VST_PF_OTHERS, instant->time_ns);
}

/* Draws a counter's value, as an integer if possible, which is shorter. */
void vst__perfetto_counter(vst__drawing *drawing, vst__label *label,
                           uint32_t tid, int64_t time_ns, const vst__arg *value)
{
    vst__perfetto *self = vst__perfetto_of(drawing);
    vst__proto *event = &self->pf.event;
    double number =
        value->type == VST_ARG_U64 ? (double)value->u64 : value->number;

    (void)tid;
    if (label->track == 0) {
        label->track = self->next_uuid++;
        vst__pf_put_track(self, label->track, self->process_uuid,
                          label->in_bytes ? VST_PF_OF_BYTES : VST_PF_OF_VALUES,
                          label->text, label->count);
    }
    vst__pf_open_event(&self->pf, VST_PF_COUNTER, VST_CATEGORY_COUNTER,
                       label->track);
    if (number >= 0 && number < 9007199254740992.0 &&
        number == (double)(int64_t)number)
        vst__proto_i64(event, VST_PF_EVENT_COUNTER_VALUE, (int64_t)number);
    else
        vst__proto_double(event, VST_PF_EVENT_DOUBLE_COUNTER_VALUE, number);
    vst__pf_write_event(&self->pf, VST_PF_OTHERS, time_ns);
}

/* Draws a mark for the end of an arrow on a track that is not a thread's, where
 * the old form of arrows has no effect. */
static void put_mark(vst__perfetto *self, const vst__arrow *arrow,
                     const vst__arrow_end *end)
{
    vst__proto *event = &self->pf.event;

    vst__pf_open_event(&self->pf, VST_PF_INSTANT, arrow->category,
                       vst__pf_lane_uuid(end->process, end->tid));
    vst__proto_text(event, VST_PF_EVENT_NAME, arrow->name);
    vst__proto_fixed64(event,
                       end == &arrow->to ? VST_PF_EVENT_LAST_FLOW_IDS
                                         : VST_PF_EVENT_FLOW_IDS,
                       arrow->id);
}

/* Draws the end of an arrow as an event in the old form, which binds to the
 * span that is open at its time: the spans are in the file already. */
static void put_end(vst__perfetto *self, const vst__arrow *arrow,
                    const vst__arrow_end *end)
{
    enum { PHASE = 2, UNSCOPED_ID = 6, BIND_TO_ENCLOSING = 12 };
    vst__proto *event = &self->pf.event;
    bool is_head = end == &arrow->to;
    size_t legacy;

    vst__proto_clear(event);
    vst__proto_u64(event, VST_PF_EVENT_CATEGORY_IIDS, arrow->category);
    vst__proto_u64(event, VST_PF_EVENT_TRACK_UUID,
                   vst__pf_lane_uuid(end->process, end->tid));
    vst__proto_text(event, VST_PF_EVENT_NAME, arrow->name);
    legacy = vst__proto_open(event, VST_PF_EVENT_LEGACY);
    vst__proto_u64(event, PHASE, is_head ? 'f' : 's');
    vst__proto_u64(event, UNSCOPED_ID, arrow->id);
    if (is_head)
        vst__proto_u64(event, BIND_TO_ENCLOSING, 1);
    vst__proto_close(event, legacy);
}

void vst__perfetto_arrow(vst__drawing *drawing, const vst__arrow *arrow)
{
    vst__perfetto *self = vst__perfetto_of(drawing);

    for (int i = 0; i < 2; i++) {
        const vst__arrow_end *end = i == 0 ? &arrow->from : &arrow->to;

        if (arrow->on_lanes)
            put_mark(self, arrow, end);
        else
            put_end(self, arrow, end);
        vst__pf_write_event(&self->pf, VST_PF_OTHERS, end->time_ns);
    }
}

/* ---- states -------------------------------------------------------------- */

/* Returns Linux's number of a thread state. */
static uint64_t number_of_state(vst__thread_state state)
{
    switch (state) {
    case VST_THREAD_PREEMPTED:
        return 0; /* runnable */
    case VST_THREAD_WAITS:
        return 1; /* sleeps */
    default:
        return 16; /* dead: after lost switches, and at the end */
    }
}

/* Draws states as the switches of a kernel, from which readers make the table
 * thread_state. */
void vst__perfetto_state(vst__drawing *drawing, const vst__drawn_state *state)
{
    static const vst__pf_side idle = {"swapper", 7, 0};
    const vst__pf_side own = {state->name, state->name_len, state->tid};
    vst__perfetto *self = vst__perfetto_of(drawing);

    if (state->what != VST_THREAD_RUNS)
        return;
    if (!self->has_state_tid || self->state_tid != state->tid) {
        if (self->next_cpu == 0)
            vst__pf_write_clocks(&self->pf);
        self->has_state_tid = true;
        self->state_tid = state->tid;
        self->state_cpu = self->next_cpu;
        self->next_cpu += self->next_cpu < CPUS_MAX;
    }
    if (self->state_cpu == CPUS_MAX)
        return;
    vst__pf_write_switch(&self->pf, self->state_cpu, state->start_ns, &idle, 0,
                         &own);
    vst__pf_write_switch(&self->pf, self->state_cpu, state->end_ns, &own,
                         number_of_state(state->next), &idle);
}
