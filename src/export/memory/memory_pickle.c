/* The snapshot that torch's memory visualiser reads: {device_traces, segments}.
 * A process is shown as a device. The first pass finds what stays alive, the
 * second writes the events; the segments follow. Needs memory for a bit per
 * allocation, and for everything that is live at the end. One thread at a time.
 */
#include "export/memory/memory_pickle.h"

#include <stdlib.h>

#include "base/escape.h"
#include "base/grow.h"
#include "export/memory/memory_export.h"

/* items that a reader collects before it appends them */
enum { PROTOCOL = 2, BATCH = 1000 };

/* ---- opcodes ------------------------------------------------------------- */

static void put_u32(char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (char)(value >> 8 * i & 0xff);
}

void vst__pickle_int(vst__pickle *pickle, uint64_t value)
{
    char *at = vst__output_reserve(pickle->output, 16);

    if (value < 256) {
        *at++ = 'K';
        *at++ = (char)value;
    } else if (value <= INT32_MAX) {
        *at++ = 'J';
        put_u32(at, (uint32_t)value);
        at += 4;
    } else { /* LONG1 is signed: add a zero byte if the top bit is set */
        char *length = at + 1;
        *at = (char)0x8a;
        at += 2;
        for (; value != 0; value >>= 8)
            *at++ = (char)(value & 0xff);
        if ((at[-1] & 0x80) != 0)
            *at++ = 0;
        *length = (char)(at - length - 1);
    }
    vst__output_commit(pickle->output, at);
}

void vst__pickle_float(vst__pickle *pickle, double value)
{
    char *at = vst__output_reserve(pickle->output, 9);
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    *at++ = 'G';
    for (int i = 8; i-- > 0;)
        *at++ = (char)(bits >> 8 * i & 0xff);
    vst__output_commit(pickle->output, at);
}

void vst__pickle_string(vst__pickle *pickle, const char *bytes, size_t count)
{
    const unsigned char *at, *end = (const unsigned char *)bytes + count;
    size_t length = 0, size;
    char head[5] = "X";

    for (at = (const unsigned char *)bytes; at != end;
         at += size != 0 ? size : 1) {
        size = vst__json_utf8(at, end);
        length += size != 0 ? size : 3;
    }
    put_u32(head + 1, (uint32_t)length);
    vst__output_write(pickle->output, head, sizeof head);
    for (at = (const unsigned char *)bytes; at != end;
         at += size != 0 ? size : 1) {
        size = vst__json_utf8(at, end);
        vst__output_write(pickle->output,
                          size != 0 ? (const char *)at : "\xef\xbf\xbd",
                          size != 0 ? size : 3);
    }
}

static void put_memo(vst__pickle *pickle, char small, char large, uint32_t memo)
{
    char *at = vst__output_reserve(pickle->output, 5);

    if (memo < 256) {
        *at++ = small;
        *at++ = (char)memo;
    } else {
        *at++ = large;
        put_u32(at, memo);
        at += 4;
    }
    vst__output_commit(pickle->output, at);
}

void vst__pickle_put(vst__pickle *pickle, uint32_t memo)
{
    put_memo(pickle, 'q', 'r', memo);
}

void vst__pickle_get(vst__pickle *pickle, uint32_t memo)
{
    put_memo(pickle, 'h', 'j', memo);
}

static const char *const strings[VST_PICKLE_STRINGS] = {
    [VST_PICKLE_ACTION] = "action",
    [VST_PICKLE_ADDR] = "addr",
    [VST_PICKLE_ADDRESS] = "address",
    [VST_PICKLE_ALLOC] = "alloc",
    [VST_PICKLE_BLOCKS] = "blocks",
    [VST_PICKLE_DEVICE] = "device",
    [VST_PICKLE_FILENAME] = "filename",
    [VST_PICKLE_FRAMES] = "frames",
    [VST_PICKLE_FREE_COMPLETED] = "free_completed",
    [VST_PICKLE_FREE_REQUESTED] = "free_requested",
    [VST_PICKLE_INACTIVE] = "inactive",
    [VST_PICKLE_ACTIVE] = "active_allocated",
    [VST_PICKLE_LINE] = "line",
    [VST_PICKLE_NAME] = "name",
    [VST_PICKLE_REQUESTED_SIZE] = "requested_size",
    [VST_PICKLE_SIZE] = "size",
    [VST_PICKLE_STATE] = "state",
    [VST_PICKLE_STREAM] = "stream",
    [VST_PICKLE_TIME_US] = "time_us",
    [VST_PICKLE_TOTAL_SIZE] = "total_size",
    [VST_PICKLE_ACTIVE_SIZE] = "active_size",
    [VST_PICKLE_ALLOCATED_SIZE] = "allocated_size",
    [VST_PICKLE_SEGMENT_TYPE] = "segment_type",
    [VST_PICKLE_LARGE] = "large",
    [VST_PICKLE_THREAD] = "thread",
    [VST_PICKLE_ALLOCATOR] = "allocator",
    [VST_PICKLE_WEIGHT] = "weight",
};

void vst__pickle_word(vst__pickle *pickle, uint32_t word)
{
    if ((pickle->written >> word & 1u) != 0) {
        vst__pickle_get(pickle, word);
        return;
    }
    pickle->written |= (uint64_t)1 << word;
    vst__pickle_string(pickle, strings[word], strlen(strings[word]));
    vst__pickle_put(pickle, word);
}

/* ---- the snapshot -------------------------------------------------------- */

typedef struct snapshot {
    vst__pickle pickle;
    /* by kind: memo of its name; 0: not written yet */
    uint32_t kinds[VST_MEMORY_KINDS];
    /* The fields from here on belong to the process that is being written. */
    const vst_memory_summary *summary;
    const vst__serials *freed;
    uint32_t *frames, *nodes; /* numbers in the memo; 0: not written yet */
    vst__memory_paths paths;
    vst__pickle_block *blocks;
    size_t block_count, block_capacity;
    size_t batch;
} snapshot;

/* Puts a frame on the reader's stack. Node 0, the empty stack, stands for
 * frames that are left out. */
static void pickle_put_frame(snapshot *s, uint32_t node)
{
    uint32_t index = s->summary->nodes[node].frame;
    const vst_memory_frame *frame = &s->summary->frames[index];
    const char *name = node != 0 ? frame->name : VST_MEMORY_LEFT_OUT;
    vst__pickle *pickle = &s->pickle;

    if (s->frames[index] != 0) {
        vst__pickle_get(pickle, s->frames[index]);
        return;
    }
    vst__pickle_op(pickle, '}');
    s->frames[index] = s->pickle.memo++;
    vst__pickle_put(pickle, s->frames[index]);
    vst__pickle_op(pickle, '(');
    vst__pickle_word(pickle, VST_PICKLE_NAME);
    vst__pickle_string(pickle, name,
                       node != 0 ? frame->name_len : strlen(name));
    vst__pickle_word(pickle, VST_PICKLE_FILENAME);
    vst__pickle_string(pickle, frame->file, frame->file_len);
    vst__pickle_member(pickle, VST_PICKLE_LINE, frame->line);
    vst__pickle_op(pickle, 'u');
}

/* Puts the list of a stack's frames, innermost first, on the reader's stack. */
static void pickle_put_frames(snapshot *s, uint32_t node)
{
    vst__pickle *pickle = &s->pickle;

    if (s->nodes[node] != 0) {
        vst__pickle_get(pickle, s->nodes[node]);
        return;
    }
    vst__pickle_op(pickle, ']');
    s->nodes[node] = s->pickle.memo++;
    vst__pickle_put(pickle, s->nodes[node]);
    vst__pickle_op(pickle, '(');
    vst__memory_paths_find(&s->paths, node);
    for (size_t i = s->paths.count; i-- > 0;)
        pickle_put_frame(s, s->paths.nodes[i]);
    vst__pickle_op(pickle, 'e');
}

static void put_kind(snapshot *s, vst_memory_kind kind)
{
    uint32_t *memo = &s->kinds[(unsigned)kind % VST_MEMORY_KINDS];
    const char *name = vst_memory_kind_name(kind);

    if (*memo != 0) {
        vst__pickle_get(&s->pickle, *memo);
        return;
    }
    vst__pickle_string(&s->pickle, name, strlen(name));
    *memo = s->pickle.memo++;
    vst__pickle_put(&s->pickle, *memo);
}

static void put_event(snapshot *s, const vst_memory_event *e, uint32_t action)
{
    vst__pickle *pickle = &s->pickle;
    uint64_t us = e->time_ns > 0 ? (uint64_t)e->time_ns / 1000 : 0;

    vst__pickle_op(pickle, '}');
    vst__pickle_op(pickle, '(');
    vst__pickle_word(pickle, VST_PICKLE_ACTION);
    vst__pickle_word(pickle, action);
    vst__pickle_member(pickle, VST_PICKLE_ADDR, e->address);
    vst__pickle_member(pickle, VST_PICKLE_SIZE, e->size);
    vst__pickle_member(pickle, VST_PICKLE_STREAM, 0);
    vst__pickle_member(pickle, VST_PICKLE_TIME_US, us);
    vst__pickle_member(pickle, VST_PICKLE_THREAD, e->thread);
    vst__pickle_word(pickle, VST_PICKLE_ALLOCATOR);
    put_kind(s, e->kind);
    if (e->weight != 1) {
        vst__pickle_word(pickle, VST_PICKLE_WEIGHT);
        vst__pickle_float(pickle, e->weight);
    }
    vst__pickle_word(pickle, VST_PICKLE_FRAMES);
    pickle_put_frames(s, vst__memory_node_of(s->summary, e));
    vst__pickle_op(pickle, 'u');
    if (++s->batch == BATCH) {
        vst__pickle_op(pickle, 'e');
        vst__pickle_op(pickle, '(');
        s->batch = 0;
    }
}

static vst_status pickle_on_event(void *ctx, const vst_memory_event *e)
{
    snapshot *s = ctx;

    /* Skip events of unknown size, and blocks that lie inside others. */
    if ((e->flags & VST_MEMORY_UNKNOWN) != 0 ||
        vst_memory_is_framework(e->kind) != s->summary->of_framework)
        return VST_OK;
    if (s->pickle.memo > UINT32_MAX / 2)
        return VST_E_NOMEM;
    if ((e->flags & VST_MEMORY_FREES) != 0) {
        put_event(s, e, VST_PICKLE_FREE_REQUESTED);
        put_event(s, e, VST_PICKLE_FREE_COMPLETED);
        return s->pickle.output->status;
    }
    put_event(s, e, VST_PICKLE_ALLOC);
    if (vst__serials_has(s->freed, e->serial) || e->size == 0)
        return s->pickle.output->status;
    if (!VST_RESERVE(s->blocks, s->block_count + 1, s->block_capacity))
        return VST_E_NOMEM;
    s->blocks[s->block_count++] = (vst__pickle_block){
        e->address, e->size, s->nodes[vst__memory_node_of(s->summary, e)]};
    return s->pickle.output->status;
}

/* Writes the list of one process's events. */
static vst_status write_events(vst__memory_job *job, size_t i, snapshot *s)
{
    const vst_memory_sink sink = {.ctx = s, .event = pickle_on_event};
    vst__serials freed = {0};
    vst_memory_summary *summary;
    vst_status status = vst__memory_job_summarize(job, i, &freed, &summary);

    if (status == VST_OK) {
        s->summary = summary;
        s->freed = &freed;
        s->frames = calloc(summary->frame_count + 1, sizeof *s->frames);
        s->nodes = calloc(summary->node_count + 1, sizeof *s->nodes);
        status = vst__memory_paths_make(
            &s->paths, summary, VST_MEMORY_OUTER_MAX, VST_MEMORY_INNER_MAX);
        if (s->frames == NULL || s->nodes == NULL)
            status = VST_E_NOMEM;
        vst__pickle_op(&s->pickle, ']');
        vst__pickle_op(&s->pickle, '(');
        s->batch = 0;
        if (status == VST_OK)
            status = vst__memory_job_replay(job, i, &sink);
        vst__pickle_op(&s->pickle, 'e');
        vst__pickle_op(&s->pickle, 'a');
        vst__memory_paths_end(&s->paths, job);
        free(s->frames);
        free(s->nodes);
        vst__memory_summary_free(summary);
    }
    free(freed.words);
    return status;
}

static vst_status pickle_write(vst__memory_job *job)
{
    snapshot s = {
        .pickle = {.output = job->output, .memo = VST_PICKLE_STRINGS}};
    vst__pickle *pickle = &s.pickle;
    size_t *counts = calloc(job->count + 1, sizeof *counts);
    vst_status status = counts != NULL ? VST_OK : VST_E_NOMEM;

    vst__pickle_op(pickle, (char)0x80);
    vst__pickle_op(pickle, PROTOCOL);
    vst__pickle_op(pickle, '}');
    vst__pickle_string(pickle, "device_traces", 13);
    vst__pickle_op(pickle, ']');
    for (size_t i = 0; i < job->count && status == VST_OK; i++) {
        status = write_events(job, i, &s);
        counts[i + 1] = s.block_count;
    }
    vst__pickle_op(pickle, 's');
    vst__pickle_string(pickle, "segments", 8);
    vst__pickle_op(pickle, ']');
    for (size_t i = 0; i < job->count && status == VST_OK; i++)
        /* an empty array of blocks may be NULL */
        if (counts[i + 1] != counts[i])
            vst__pickle_segments(pickle, s.blocks + counts[i],
                                 counts[i + 1] - counts[i], (uint32_t)i);
    vst__pickle_op(pickle, 's');
    vst__pickle_op(pickle, '.');
    free(s.blocks);
    free(counts);
    return status;
}

const vst__memory_format vst__memory_pickle = {".pickle", 2, pickle_write};
