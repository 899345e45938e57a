/* Traces of devices, made by hand. Replay puts each activity into a plain
 * array, for tests that look at all activities. */
#ifndef VST_TESTS_DEVICE_TRACES_H
#define VST_TESTS_DEVICE_TRACES_H

#include <vestige/vestige.h>

#include "check.h"
#include "trace_builder.h"

enum {
    OPERATOR = 1,
    ANNOTATION = 2,
    FIRST_NAME = 3, /* id of the first of six names of activities */
    NAMES = 6,
    DEVICES = 2,
    STREAMS = 3,
    THREAD = 77
};

#define SPAN_NS 4000000

/* ---- the oracle ---------------------------------------------------------- */

typedef struct one {
    vst_device_span span;
    vst_device_launch launch;
    char args[32];
    bool seen;
} one;

typedef struct oracle {
    one *all;
    size_t count, capacity;
} oracle;

static inline vst_status keep(void *ctx, const vst_device_span *span)
{
    oracle *self = ctx;
    one *kept;

    if (self->count == self->capacity) {
        self->capacity = self->capacity * 2 + 64;
        self->all = realloc(self->all, self->capacity * sizeof *kept);
        if (self->all == NULL)
            abort();
    }
    kept = &self->all[self->count++];
    *kept = (one){.span = *span};
    if (span->launch != NULL)
        kept->launch = *span->launch;
    snprintf(kept->args, sizeof kept->args, "%.*s", (int)span->args_len,
             span->args != NULL ? span->args : "");
    return VST_OK;
}

static inline vst_status ignore(void *ctx, const vst_span *span)
{
    (void)ctx, (void)span;
    return VST_OK;
}

static inline oracle read_slowly(vst_trace *trace)
{
    oracle self = {0};
    const vst_sink sink = {.ctx = &self, .span = ignore, .device = keep};

    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    return self;
}

/* ---- traces -------------------------------------------------------------- */

static uint64_t state;

static inline uint32_t random_below(uint32_t limit)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)((state >> 33) % limit);
}

static inline void put_activity(builder *b, uint32_t kind, uint32_t device,
                                uint32_t stream, vst_id id,
                                uint64_t correlation, uint64_t start,
                                uint64_t length)
{
    bool on_thread = vst_activity_is_on_thread(kind);
    char text[16] = "";
    uint64_t payload[VST_ACTIVITY_WORDS + 5] = {
        kind | (uint64_t)device << 16 | (uint64_t)stream << 32,
        id | UINT64_C(7) << 32, correlation, start, length};
    uint32_t flags = VST_ACTIVITY_HOST_TIME, words = VST_ACTIVITY_WORDS;

    if (on_thread) {
        flags |= VST_ACTIVITY_HAS_THREAD;
        payload[words++] = THREAD;
    }
    if (kind == VST_ACTIVITY_COPY) {
        flags |= VST_ACTIVITY_HAS_BYTES;
        payload[words++] = length * 3;
    }
    if (random_below(2) == 0) {
        flags |= VST_ACTIVITY_HAS_ATTRIBUTES;
        snprintf(text, sizeof text, "\"grid\": %u", random_below(5));
        payload[words++] = strlen(text);
        memcpy(&payload[words], text, sizeof text);
        words += 2;
    }
    payload[0] |= (uint64_t)flags << 8;
    builder_escape(b, VST_ESCAPE_DEVICE, 0, payload, words);
}

static inline void begin_trace(builder *b, unsigned pages)
{
    builder_init(b);
    builder_header(b)->version = VST_FILE_VERSION;
    builder_fix_header(b);
    builder_definitions(b, 1);
    builder_thread(b, 1, THREAD, "main");
    builder_define(b, VST_DEF_OPERATOR, OPERATOR, "aten::mm", "", 0);
    builder_define(b, VST_DEF_ANNOTATION, ANNOTATION, "step", "", 0);
    for (unsigned i = 0; i < NAMES; i++) {
        char name[16];

        snprintf(name, sizeof name, "kernel %u", i);
        builder_define(b, VST_DEF_ACTIVITY, FIRST_NAME + i, name, "", 0);
    }
    for (uint32_t i = 1; i <= DEVICES; i++)
        builder_entry(b,
                      &(vst_file_entry){.kind = VST_ENTRY_DEVICE,
                                        .id = i,
                                        .line = VST_DEVICE_ENTRY_DEVICE,
                                        .x = (i - 1) | UINT64_C(1) << 32,
                                        .z = 0x61647563},
                      "a device", "");
    builder_seal(b, 1);
    builder_records(b, 0, 1, BUILDER_START, pages);
}

static inline vst_trace *open_trace(const builder *b)
{
    vst_trace *trace = NULL;

    CHECK_INT(builder_open(b, &trace, NULL), VST_OK);
    return trace;
}

/* Calls inside operators and the activities that they launched: short and long,
 * in sequence and overlapping, all reported at the end in any order. */
static inline vst_trace *random_trace(uint64_t seed, uint32_t launches)
{
    const uint32_t kinds[] = {VST_ACTIVITY_KERNEL, VST_ACTIVITY_COPY,
                              VST_ACTIVITY_SET, VST_ACTIVITY_SYNC};
    uint32_t step = SPAN_NS / launches;
    vst_trace *trace;
    builder b;

    state = seed;
    begin_trace(&b, launches / 10 + 2);
    builder_enter(&b, ANNOTATION, 1);
    for (uint32_t i = 0; i < launches / 2; i++) {
        builder_enter(&b, OPERATOR, step);
        builder_exit(&b, OPERATOR, step);
    }
    builder_exit(&b, ANNOTATION, step);
    for (uint32_t i = 0; i < launches; i++) {
        uint32_t at = random_below(launches);
        uint64_t start = BUILDER_START + (uint64_t)at * step;
        uint32_t device = 1 + random_below(DEVICES);
        vst_id id = FIRST_NAME + random_below(NAMES);

        if (random_below(8) != 0)
            put_activity(&b, VST_ACTIVITY_RUNTIME + random_below(2), device, 0,
                         FIRST_NAME + random_below(NAMES), i + 1, start,
                         1 + random_below(step));
        for (uint32_t j = random_below(3); j-- > 0;)
            put_activity(&b, kinds[random_below(4)], device,
                         random_below(STREAMS), id, i + 1,
                         start + random_below(50 * step),
                         random_below(10) == 0 ? random_below(100 * step)
                                               : random_below(2 * step));
    }
    trace = open_trace(&b);
    builder_free(&b);
    return trace;
}

#endif
