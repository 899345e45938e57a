/* The exporter of Perfetto's own format: its output, read by a reader written
 * from the format's documentation. The reader keeps the state of each sequence
 * and prints one line per event; tests/clients uses Perfetto itself. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <vestige/device.h>
#include <vestige/trace.h>

#include "export/output/proto.h"
#include "exported.h"
#include "trace_builder.h"
#include "whole_files.h"

enum { SEQUENCES = 130, NAMES = 64, LINES = 1 << 16 };

typedef struct part {
    const unsigned char *at, *end;
} part;

/* The reader's state for a sequence. */
typedef struct state {
    bool begun;
    int64_t now_ns;
    uint64_t track;
    part names[NAMES], keys[NAMES], categories[NAMES];
} state;

static state states[SEQUENCES];
static char lines[LINES];
static size_t written;
static size_t packets, bytes;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    written +=
        (size_t)vsnprintf(lines + written, LINES - written, format, arguments);
    va_end(arguments);
    if (written >= LINES)
        abort();
}

static uint64_t varint(part *p)
{
    uint64_t value = 0;

    for (unsigned shift = 0; p->at != p->end; shift += 7) {
        unsigned char byte = *p->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            break;
    }
    return value;
}

/* Reads the next field: its number, and a number or bytes. */
static uint32_t next(part *p, uint64_t *value, part *inner)
{
    uint64_t key;

    *value = 0;
    if (p->at == p->end)
        return 0;
    key = varint(p);
    switch (key & 7) {
    case VST_PROTO_VARINT:
        *value = varint(p);
        break;
    case VST_PROTO_FIXED64:
        memcpy(value, p->at, 8);
        p->at += 8;
        break;
    case VST_PROTO_BYTES:
        *value = varint(p);
        *inner = (part){p->at, p->at + *value};
        p->at += *value;
        break;
    default:
        CHECK(!"a wire type that is not used");
        p->at = p->end;
    }
    CHECK(p->at <= p->end);
    return (uint32_t)(key >> 3);
}

static void say_part(part p)
{
    say("%.*s", (int)(p.end - p.at), (const char *)p.at);
}

static void intern(state *s, part data)
{
    uint64_t value;
    part one;

    for (uint32_t kind; (kind = next(&data, &value, &one)) != 0;) {
        part *table = kind == 1   ? s->categories
                      : kind == 2 ? s->names
                                  : s->keys;
        uint64_t iid = 0;
        part name = {NULL, NULL};

        for (uint32_t field; (field = next(&one, &value, &name)) != 0;)
            if (field == 1)
                iid = value;
        if (CHECK(iid != 0 && iid < NAMES))
            table[iid] = name;
    }
}

static void annotation(const state *s, part p, const char *between)
{
    uint64_t value;
    part inner;
    bool list = false;

    say("%s", between);
    for (uint32_t field; (field = next(&p, &value, &inner)) != 0;) {
        double real;

        switch (field) {
        case 1:
            CHECK(s->keys[value].at != NULL);
            say_part(s->keys[value]);
            say("=");
            break;
        case 2:
            say(value ? "true" : "false");
            break;
        case 3:
        case 4:
            say("%" PRId64, (int64_t)value);
            break;
        case 5:
            memcpy(&real, &value, sizeof real);
            say("%g", real);
            break;
        case 6:
            say_part(inner);
            break;
        case 11:
        case 12:
            annotation(s, inner, list ? "," : field == 11 ? "{" : "[");
            list = true;
            break;
        default:
            CHECK(!"a field of an annotation that is not used");
        }
    }
    if (list)
        say("]");
}

/* Arrows are numbered in the order in which the reader meets them. */
static void say_arrow(const char *end, uint64_t id)
{
    static uint64_t ids[NAMES];
    static size_t count;
    size_t number = 0;

    while (number < count && ids[number] != id)
        number++;
    if (number == count && CHECK(count < NAMES))
        ids[count++] = id;
    say(" %s%zu", end, number);
}

static void event(state *s, part p)
{
    uint64_t value, type = 0, track = s->track;
    part inner, name = {NULL, NULL};
    part all = p;

    for (uint32_t field; (field = next(&p, &value, &inner)) != 0;) {
        if (field == 9)
            type = value;
        if (field == 11)
            track = value;
        if (field == 10)
            name = s->names[value];
        if (field == 23)
            name = inner;
    }
    say("%c %" PRIu64 " %" PRId64, type == 0 ? 'F' : "BEIC"[type - 1],
        track & 0xffffffff, s->now_ns - BUILDER_EPOCH_NS);
    if (name.at != NULL)
        say(" ");
    say_part(name);
    for (uint32_t field; (field = next(&all, &value, &inner)) != 0;) {
        double real;

        if (field == 3) {
            CHECK(s->categories[value].at != NULL);
            say(" (");
            say_part(s->categories[value]);
            say(")");
        }
        if (field == 4)
            annotation(s, inner, " ");
        if (field == 30)
            say(" %" PRId64, (int64_t)value);
        if (field == 47)
            say_arrow("from ", value);
        if (field == 48)
            say_arrow("to ", value);
        if (field == 44) {
            memcpy(&real, &value, sizeof real);
            say(" %g", real);
        }
    }
    say("\n");
}

static void descriptor(part p)
{
    uint64_t value, uuid = 0, tid = 0;
    part inner, name = {NULL, NULL}, one;
    uint32_t kind = 0;

    for (uint32_t field; (field = next(&p, &value, &inner)) != 0;) {
        if (field == 1)
            uuid = value & 0xffffffff;
        if (field == 2)
            name = inner;
        if (field == 3 || field == 4 || field == 8) {
            kind = field;
            for (uint32_t f; (f = next(&inner, &value, &one)) != 0;) {
                if (f == 2)
                    tid = value;
                if (f == (field == 3 ? 6u : 5u))
                    name = one;
            }
        }
    }
    say("track %" PRIu64 " %s %" PRIu64 " ", uuid,
        kind == 3   ? "process"
        : kind == 4 ? "thread"
        : kind == 8 ? "counter"
                    : "spans",
        tid);
    say_part(name);
    say("\n");
}

static void packet(part p)
{
    uint64_t value, sequence = 0, delta = 0;
    bool cleared = false, timed = false;
    part inner, interned = {NULL, NULL}, track_event = {NULL, NULL};
    part described = {NULL, NULL}, defaults = {NULL, NULL};
    state *s;

    for (uint32_t field; (field = next(&p, &value, &inner)) != 0;) {
        if (field == 10)
            sequence = value;
        if (field == 8) {
            delta = value;
            timed = true;
        }
        if (field == 13)
            cleared = value == 1;
        if (field == 12)
            interned = inner;
        if (field == 11)
            track_event = inner;
        if (field == 60)
            described = inner;
        if (field == 59)
            defaults = inner;
    }
    if (!CHECK(sequence != 0 && sequence < SEQUENCES))
        return;
    s = &states[sequence];
    if (cleared) {
        *s = (state){.begun = true, .now_ns = INT64_C(1696186170000000000)};
        while (next(&defaults, &value, &inner) != 0)
            if (value != 64 && next(&inner, &value, &inner) == 11)
                s->track = value;
    }
    intern(s, interned);
    if (timed)
        s->now_ns = (int64_t)((uint64_t)s->now_ns + delta);
    if (track_event.at != NULL) {
        CHECK(s->begun && timed);
        event(s, track_event);
    }
    if (described.at != NULL)
        descriptor(described);
}

/* Exports the trace, and puts the reader's lines into `lines`. */
static const char *exported(const builder *b)
{
    vst_export_options options = {.window = VST_WINDOW_ALL};
    const char *path = in_folder("t.pftrace");
    vst_trace *trace;
    unsigned char *document;
    part all, one;
    uint64_t value;

    written = packets = 0;
    lines[0] = '\0';
    memset(states, 0, sizeof states);
    if (!CHECK_INT(builder_open(b, &trace, NULL), VST_OK))
        return lines;
    CHECK_INT(vst_trace_export(trace, path, &options, NULL), VST_OK);
    vst_trace_close(trace);
    document = read_whole(path, &bytes);
    CHECK_INT(remove(path), 0);
    all = (part){document, document + bytes};
    while (next(&all, &value, &one) == 1) {
        packets++;
        packet(one);
    }
    free(document);
    return lines;
}

static void begin(builder *b)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 900000);
    builder_define(b, VST_DEF_PYTHON, 1, "main", "app.py", 3);
    builder_define(b, VST_DEF_NATIVE, 2, "<built-in function len>", "", 0);
    builder_define(b, VST_DEF_ANNOTATION, 3, "caf\xe9 \"step\"", "", 0);
    builder_define(b, VST_DEF_COUNTER, 6, "memory", "", 0);
    builder_define(b, VST_DEF_INSTANT, 7, "mark", "", 0);
    builder_thread(b, 0, 4242, "MainThread");
    builder_records(b, 0, 0, 1000, 4);
}

/* ---- tests -------------------------------------------------------------- */

static void spans_have_names_tracks_and_exact_times(void)
{
    builder b;

    begin(&b);
    builder_enter(&b, 1, 100);
    builder_enter(&b, 2, 1);
    builder_exit(&b, 2, 2);
    builder_word(&b, vst_word(VST_ENTER, 2, 0));
    builder_word(&b, vst_word(VST_RAISE, 2, 0));
    builder_exit(&b, 1, 1000);
    exported(&b);
    expect_line(lines, "track 0 process 0 python\n");
    expect_line(lines, "track 4243 thread 4242 MainThread\n");
    expect_line(lines, "track 4244 thread 4243 Recording windows\n");
    expect_line(lines, "B 4243 1101 <built-in function len> "
                       "(python_function)\nE 4243 1103\n");
    expect_line(lines, "B 4243 1103 <built-in function len> "
                       "(python_function) raised=1\nE 4243 1103\n");
    expect_line(lines, "B 4243 1100 app.py(3): main (python_function)\n"
                       "E 4243 2103\n");
    expect_line(lines, "B 4244 1000 vestige (0) (Trace)\nE 4244 900000\n");
    builder_free(&b);
}

static void arguments_become_what_their_json_says(void)
{
    static const char args[] =
        "\"n\": [1, [], [2.5, -3]], \"s\": \"a\\n\\u00e9\\ud83d\\ude00\", "
        "\"d\": {\"k\": true, \"n\": null}, \"big\": 1e300";
    builder b;

    begin(&b);
    builder_enter(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_BEGIN, 10, &(uint64_t){3}, 1);
    builder_escape_text(&b, VST_ESCAPE_ARGS, 0, strlen(args), args);
    builder_escape(&b, VST_ESCAPE_END, 10, &(uint64_t){3}, 1);
    builder_escape_text(&b, VST_ESCAPE_ARGS, 0, 7, "\"n\": 1}");
    builder_exit(&b, 1, 1000);
    exported(&b);
    expect_line(lines,
                "B 4243 1110 caf\xef\xbf\xbd \"step\" (user_annotation) "
                "External id=2 Record function id=2 Ev Idx=2 n=[1,,[2.5,-3]] "
                "s=a\n\xc3\xa9\xf0\x9f\x98\x80 d={k=true,n=null] big=1e+300\n"
                "E 4243 1120\n");
    expect_line(lines, " args=\"n\": 1}\n");
    builder_free(&b);
}

static void what_overlaps_has_a_track_of_its_own(void)
{
    builder b;

    begin(&b);
    builder_enter(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_BEGIN, 10, &(uint64_t){3}, 1);
    builder_exit(&b, 1, 10);
    builder_enter(&b, 1, 10);
    builder_escape(&b, VST_ESCAPE_END, 10, &(uint64_t){3}, 1);
    builder_exit(&b, 1, 10);
    exported(&b);
    expect_line(lines, " spans 0 overlapping spans\nB ");
    expect_line(lines, " 1110 caf\xef\xbf\xbd \"step\" (user_annotation) ");
    CHECK(strstr(lines, "B 4243 1110") == NULL);
    builder_free(&b);
}

static void counters_instants_and_losses_are_there(void)
{
    double half = 2.5, whole = 7;
    uint64_t counter[2] = {6, 0};
    builder b;

    begin(&b);
    memcpy(&counter[1], &half, sizeof half);
    builder_escape(&b, VST_ESCAPE_COUNTER, 100, counter, 2);
    memcpy(&counter[1], &whole, sizeof whole);
    builder_escape(&b, VST_ESCAPE_COUNTER, 100, counter, 2);
    builder_escape_text(&b, VST_ESCAPE_INSTANT, 100, (uint64_t)6 << 32 | 7,
                        "\"k\": 1");
    builder_escape(&b, VST_ESCAPE_LOST, 100, &(uint64_t){12}, 1);
    exported(&b);
    expect_line(lines, "counter 0 memory\nC ");
    expect_line(lines, " 1100 2.5\n");
    expect_line(lines, " 1200 7\n");
    expect_line(lines, "I 4243 1300 mark (instant) k=1\n");
    expect_line(lines, "I 4243 1300 lost records (instant) "
                       "start_ns=1700000000000001300 duration_ns=100 "
                       "records=12\n");
    builder_free(&b);
}

static void add_activity(builder *b, uint32_t kind, uint32_t stream, vst_id id,
                         uint64_t start, uint64_t duration)
{
    const uint64_t payload[] = {kind | VST_ACTIVITY_HOST_TIME << 8 |
                                    UINT64_C(1) << 16 | (uint64_t)stream << 32,
                                id, 5, start, duration};

    builder_escape(b, VST_ESCAPE_DEVICE, 0, payload, 5);
}

/* Two kernels of one call on one stream, which overlap. */
static void devices_have_groups_streams_tracks_and_calls_arrows(void)
{
    builder b;

    builder_init(&b);
    builder_header(&b)->version = VST_FILE_VERSION;
    builder_fix_header(&b);
    builder_definitions(&b, 1);
    builder_window(&b, 0, 1000, 900000);
    builder_define(&b, VST_DEF_ACTIVITY, 1, "cudaLaunchKernel", "", 0);
    builder_define(&b, VST_DEF_ACTIVITY, 2, "gemm", "", 0);
    builder_define(&b, VST_DEF_ANNOTATION, 3, "step", "", 0);
    builder_thread(&b, 0, 4242, "MainThread");
    builder_entry(&b,
                  &(vst_file_entry){.kind = VST_ENTRY_DEVICE,
                                    .id = 1,
                                    .x = UINT64_C(1) << 32,
                                    .z = 0x61647563},
                  "A GPU", "");
    builder_records(&b, 0, 0, 1000, 4);
    builder_enter(&b, 3, 100);
    add_activity(&b, VST_ACTIVITY_RUNTIME, 0, 1, 1100, 20);
    builder_exit(&b, 3, 100);
    add_activity(&b, VST_ACTIVITY_KERNEL, 7, 2, 2000, 500);
    add_activity(&b, VST_ACTIVITY_KERNEL, 7, 2, 2400, 300);
    exported(&b);
    expect_line(lines, " spans 0 device calls\nB ");
    expect_line(lines, " 1100 cudaLaunchKernel (cuda_runtime) External id=1 "
                       "correlation=5 from 0 from 1\nE ");
    expect_line(lines, " spans 0 GPU 0: A GPU\ntrack ");
    expect_line(lines, " spans 0 stream 7\nB ");
    expect_line(lines, " 2000 gemm (kernel) External id=1 device=0 context=0 "
                       "stream=7 correlation=5 to 0\nE ");
    expect_line(lines, " 2500\ntrack "); /* the second kernel is on another
                                          * track */
    expect_line(lines, " 2400 gemm (kernel) External id=1 device=0 context=0 "
                       "stream=7 correlation=5 to 1\nE ");
    expect_line(lines, " spans 0 annotations of stream 7\nB ");
    expect_line(lines, " 2000 step (gpu_user_annotation) External id=1\nE ");
    builder_free(&b);
}

static void a_deep_stack_is_written_whole(void)
{
    enum { DEPTH = 300 };
    builder b;
    char line[64];

    begin(&b);
    for (int i = 0; i < DEPTH; i++)
        builder_enter(&b, 1, 10);
    for (int i = 0; i < DEPTH; i++)
        builder_exit(&b, 1, 10);
    exported(&b);
    for (int i = 0; i < DEPTH; i++) {
        snprintf(line, sizeof line, "B 4243 %d app.py(3): main ",
                 1010 + 10 * i);
        expect_line(lines, line);
        snprintf(line, sizeof line, "E 4243 %d\n", 1000 + 10 * (2 * DEPTH - i));
        expect_line(lines, line);
    }
    builder_free(&b);
}

static void a_call_takes_less_than_thirty_bytes(void)
{
    enum { CALLS = 500 };
    builder b;
    size_t before;

    begin(&b);
    exported(&b);
    before = bytes;
    for (int i = 0; i < CALLS; i++) {
        builder_enter(&b, 1, 150);
        builder_enter(&b, 2, 150);
        builder_exit(&b, 2, 150);
        builder_exit(&b, 1, 150);
    }
    exported(&b);
    CHECK((bytes - before) / (2 * CALLS) < 30);
    builder_free(&b);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(spans_have_names_tracks_and_exact_times);
    TEST(arguments_become_what_their_json_says);
    TEST(what_overlaps_has_a_track_of_its_own);
    TEST(counters_instants_and_losses_are_there);
    TEST(devices_have_groups_streams_tracks_and_calls_arrows);
    TEST(a_deep_stack_is_written_whole);
    TEST(a_call_takes_less_than_thirty_bytes);
    rmdir(folder);
    return checks_end();
}
