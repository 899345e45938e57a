/* Writes the first inputs into <folder>/reader, <folder>/matcher,
 * <folder>/limit and <folder>/trace: one small file for each thing that a trace
 * can hold or lack. New inputs that libFuzzer finds go to these folders, or to
 * the folder of the target that found them. */
#include <string.h>
#include <sys/stat.h>

#include <vestige/device.h>

#include "make_corpus.h"
#include "target.h"
#include "trace_input.h"

static const char *folder;

void save(const char *kind, const char *name, const void *bytes, size_t size)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, kind);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", folder, kind, name);
    file = fopen(path, "wb");
    MUST(file != NULL && fwrite(bytes, 1, size, file) == size);
    MUST(fclose(file) == 0);
}

/* Saves the packed form of the file with this name. */
static void pack(const char *name)
{
    vst_pack_options options = {.overwrite = true};
    char from[4096], to[4096];

    snprintf(from, sizeof from, "%s/reader/%s", folder, name);
    snprintf(to, sizeof to, "%s/reader/packed_%s", folder, name);
    MUST(vst_trace_pack(from, to, &options, NULL) == VST_OK);
}

/* Saves the file, cut behind the used words of its last chunk like a finished
 * file; its packed form; and the file as an input of trace_input.h. */
static void save_trace(builder *b, const char *name)
{
    size_t size = b->size;

    if (b->chunk != 0)
        size = b->chunk + sizeof(vst_chunk_header) + b->used;
    builder_header(b)->size = size;
    save("reader", name, b->bytes, size);
    pack(name);
    save_input(b, size, name, (uint8_t[INPUT_CHOICES]){0});
    builder_free(b);
}

/* ---- traces ------------------------------------------------------------- */

static void begin(builder *b)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 0);
    builder_define(b, VST_DEF_PYTHON, 1, "main", "/home/x/app.py", 3);
    builder_define(b, VST_DEF_NATIVE, 2, "len", "builtins", 0);
    builder_define(b, VST_DEF_ANNOTATION, 3, "step \"\xff\n", "", 0);
    builder_define(b, VST_DEF_COUNTER, 4, "loss", "", 0);
    builder_define(b, VST_DEF_GC, 5, "gc", "", 0);
    builder_thread(b, 1, 4242, "MainThread");
    builder_metadata(b, "note", "\"first\"");
    builder_metadata(b, "vestige.process_name", "\"python\"");
    builder_metadata(b, "note", "not JSON");
}

static void make_finished(void)
{
    builder b;

    begin(&b);
    builder_window(&b, 0, 1000, 5000);
    builder_entry(
        &b,
        &(vst_file_entry){
            .kind = VST_ENTRY_CLOCK, .x = 5000000, .y = 6000000, .z = 1},
        "", "");
    builder_seal(&b, 1);
    builder_records(&b, 0, 1, 1000, 1);
    builder_enter(&b, 1, 100);
    builder_escape_text(&b, VST_ESCAPE_ARGS, 0, 6, "\"n\": 5");
    builder_escape_text(&b, VST_ESCAPE_ARGS, 0, 3, "bad");
    builder_enter(&b, 2, 100);
    builder_word(&b, vst_word(VST_RAISE, 2, 50));
    builder_escape_text(&b, VST_ESCAPE_INSTANT, 0, 6ull << 32 | 3, "\"n\": 5");
    builder_escape(&b, VST_ESCAPE_COUNTER, 0,
                   (uint64_t[]){4, 0x3ff8000000000000u}, 2);
    builder_exit(&b, 1, 50);
    builder_seal(&b, 1);
    builder_finish(&b);
    save_trace(&b, "finished");
}

static void make_torn(void)
{
    builder b;

    begin(&b);
    builder_records(&b, 0, 1, 1000, 1);
    builder_enter(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_TIME, 0, (uint64_t[]){1u << 30}, 1);
    builder_enter(&b, 99, 1);
    builder_word(&b, vst_word_escape(VST_ESCAPE_ARGS, 900, 0));
    save_trace(&b, "torn");
}

static void make_segments(void)
{
    builder b;

    begin(&b);
    builder_records(&b, 0, 1, 1000, 1);
    builder_enter(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_SEGMENT, 0, (uint64_t[]){2, 3000}, 2);
    builder_enter(&b, 2, 10);
    builder_exit(&b, 2, 10);
    builder_escape(&b, VST_ESCAPE_SEGMENT, 0, (uint64_t[]){1, 4000}, 2);
    builder_exit(&b, 1, 10);
    builder_seal(&b, 3);
    builder_records(&b, 1, 2, 9000, 1);
    builder_enter(&b, 2, 10);
    save_trace(&b, "segments");
}

static void make_stacks(void)
{
    builder b;

    begin(&b);
    builder_records(&b, 0, 1, 1000, 1);
    builder_escape(&b, VST_ESCAPE_STACK, 10, (uint64_t[]){1, 2, 1}, 3);
    builder_escape(&b, VST_ESCAPE_STACK_MORE, 0, (uint64_t[]){2}, 1);
    builder_escape(&b, VST_ESCAPE_BEGIN, 10, (uint64_t[]){3}, 1);
    builder_escape(&b, VST_ESCAPE_SWITCH, 10, (uint64_t[]){7}, 1);
    builder_enter(&b, 5, 10);
    builder_escape(&b, VST_ESCAPE_SWITCH, 10, (uint64_t[]){0}, 1);
    builder_escape(&b, VST_ESCAPE_END, 10, (uint64_t[]){3}, 1);
    builder_escape(&b, VST_ESCAPE_GAP, 10, (uint64_t[]){0}, 1);
    builder_escape(&b, VST_ESCAPE_GAP, 10, (uint64_t[]){1}, 1);
    builder_escape(&b, VST_ESCAPE_STACK, 0, (uint64_t[]){1, 5}, 2);
    builder_escape(&b, VST_ESCAPE_LOST, 10, (uint64_t[]){12}, 1);
    builder_exit(&b, 1, 10);
    save_trace(&b, "stacks");
}

static void make_bounded(void)
{
    builder b;

    builder_bounded(&b);
    save_trace(&b, "bounded");
}

/* Shows only the last 1500 ns; one thread waits all the time. */
static void make_kept(void)
{
    builder b;

    begin(&b);
    builder_header(&b)->keep_ns = 1500;
    builder_header(&b)->slot_size = VST_CHUNK_ALIGN;
    builder_records(&b, 0, 1, 1000, 1);
    builder_enter(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_BEGIN, 10, (uint64_t[]){3}, 1);
    builder_enter(&b, 2, 900);
    builder_exit(&b, 2, 900);
    builder_enter(&b, 2, 900);
    builder_records(&b, 0, 2, 1000, 1);
    builder_enter(&b, 5, 100);
    save_trace(&b, "kept");
}

static void make_memory(void)
{
    builder b;

    builder_memory(&b);
    save_trace(&b, "memory");
}

/* Version 4: two threads; switches of one thread were lost. */
static void make_switches(void)
{
    const uint64_t first[] = {1, vst_switch_word(VST_SWITCH_IN, 1900),
                              vst_switch_word(VST_SWITCH_OUT, 2050),
                              vst_switch_word(VST_SWITCH_IN, 2150),
                              vst_switch_word(VST_SWITCH_PREEMPTED, 2250)};
    const uint64_t second[] = {2, vst_switch_word(VST_SWITCH_OUT, 1950),
                               vst_switch_word(VST_SWITCH_LOST, 3),
                               vst_switch_word(VST_SWITCH_IN, 2100)};
    const uint64_t told[] = {0, vst_switch_word(VST_SWITCHES_TOLD, 2260)};
    const uint64_t end[] = {0, vst_switch_word(VST_SWITCHES_END, 2900)};
    builder b;

    begin(&b);
    builder_header(&b)->version = VST_FILE_VERSION;
    builder_fix_header(&b);
    for (unsigned thread = 1; thread <= 2; thread++) {
        builder_records(&b, 0, thread, 2000, 1);
        builder_enter(&b, 1, 0);
        builder_escape(&b, VST_ESCAPE_WAIT, 100,
                       (uint64_t[]){2010, 2090, (uint64_t)2 << 32 | 1}, 3);
        builder_enter(&b, 2, 50);
        builder_exit(&b, 2, 50);
        builder_exit(&b, 1, 100);
        builder_seal(&b, 1);
    }
    builder_records(&b, 0, VST_THREAD_SWITCHES, 1900, 1);
    builder_escape(&b, VST_ESCAPE_SWITCHES, 0, first, 5);
    builder_escape(&b, VST_ESCAPE_SWITCHES, 0, second, 4);
    builder_escape(&b, VST_ESCAPE_SWITCHES, 0, told, 2);
    builder_escape(&b, VST_ESCAPE_SWITCHES, 0, end, 2);
    builder_seal(&b, 1);
    save_trace(&b, "switches");
}

/* Version 4: a device with its own clock, calls on one thread and the
 * activities that they launched, reported by another thread. */
static void make_devices(void)
{
    const double rate = 5e8;
    vst_file_entry entry = {.kind = VST_ENTRY_DEVICE,
                            .id = 1,
                            .x = UINT64_C(1) << 32,
                            .z = 0x61647563};
    const uint64_t call[] = {6 | 1 << 16, 1 | UINT64_C(1) << 32, 7, 2110, 20};
    const uint64_t kernel[] = {1 | 16 << 8 | 1 << 16 | UINT64_C(7) << 32,
                               2 | UINT64_C(1) << 32,
                               7,
                               1080,
                               30,
                               6,
                               UINT64_C(0x31203a226122)};
    const uint64_t copy[] = {2 | 0x0e << 8 | 1 << 16 | UINT64_C(9) << 32,
                             2 | UINT64_C(1) << 32,
                             8,
                             1090,
                             40,
                             77,
                             5,
                             4096};
    const uint64_t lost[] = {8 | 1 << 16, 0, 3, 0, 0};
    builder b;

    begin(&b);
    memcpy(&entry.y, &rate, sizeof entry.y);
    builder_entry(&b, &entry, "a device", "\"numSms\": 1");
    entry.line = VST_DEVICE_ENTRY_STREAM;
    entry.x = 7;
    builder_entry(&b, &entry, "stream", "");
    entry.line = VST_DEVICE_ENTRY_PAIR;
    for (uint64_t i = 0; i < 3; i++) {
        entry.x = 1000 + 100 * i;
        entry.y = 2000 + 201 * i;
        entry.z = 2;
        builder_entry(&b, &entry, "", "");
    }
    builder_header(&b)->version = VST_FILE_VERSION;
    builder_fix_header(&b);
    builder_records(&b, 0, 1, 2000, 1);
    builder_enter(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_DEVICE, 50, call, 5);
    builder_exit(&b, 1, 50);
    builder_seal(&b, 1);
    builder_records(&b, 0, 2, 2300, 1);
    builder_escape(&b, VST_ESCAPE_DEVICE, 10, copy, 8);
    builder_escape(&b, VST_ESCAPE_DEVICE, 10, kernel, 7);
    builder_escape(&b, VST_ESCAPE_DEVICE, 10, lost, 5);
    builder_seal(&b, 1);
    save_trace(&b, "devices");
}

/* A file in which every number that can be too large is too large. */
static void make_claims(void)
{
    builder b;
    vst_file_entry entry = {.kind = VST_DEF_PYTHON, .id = VST_ID_MAX, .x = ~0u};

    begin(&b);
    builder_entry(&b, &entry, "huge", "");
    ((vst_file_entry *)(void *)(b.bytes + b.chunk + sizeof(vst_chunk_header) +
                                b.used - 56))
        ->size = 1u << 30;
    builder_records(&b, 65535, UINT32_MAX, UINT64_MAX, 1);
    builder_enter(&b, VST_ID_MAX, UINT32_MAX);
    builder_chunk(&b)->size = VST_CHUNK_SIZE_MAX;
    builder_chunk(&b)->used = UINT32_MAX;
    builder_chunk(&b)->segments = UINT32_MAX;
    builder_fix_chunk(&b, b.chunk);
    builder_header(&b)->windows = UINT32_MAX;
    builder_header(&b)->lost = UINT64_MAX;
    save_trace(&b, "claims");
}

static void make_no_trace(void)
{
    builder b;

    save("reader", "empty", "", 0);
    builder_init(&b);
    save("reader", "header_cut", b.bytes, 64);
    save("reader", "header_only", b.bytes, b.size);
    builder_header(&b)->version = VST_FILE_VERSION + 1;
    builder_fix_header(&b);
    save("reader", "newer", b.bytes, sizeof(vst_file_header));
    builder_free(&b);
}

/* ---- events ------------------------------------------------------------- */

/* Words for fuzz_matcher.c: enters are 0, exits 1, the end of a thread is 4,
 * and an escape is 6 and its type. */
static void make_events(void)
{
    static const uint8_t nested[] = {0, 0, 1, 5, 0, 0, 2, 5, 0, 1, 2, 5, 0,
                                     3, 0, 0, 0, 2, 1, 5, 0, 1, 9, 5, 0};
    static const uint8_t begun[] = {1, 0, 1,  5, 0, 9, 3, 1, 1, 3, 1, 1, 1,
                                    5, 0, 10, 3, 1, 1, 3, 1, 4, 0, 9, 0};
    static const uint8_t stacks[] = {0, 14, 0, 5, 2, 1, 0, 2, 0, 15, 0,
                                     0, 1,  3, 0, 0, 1, 9, 0, 4, 0,  9,
                                     0, 2,  0, 1, 0, 4, 0, 1, 0};
    static const uint8_t switched[] = {0, 0,  1, 5, 0, 9, 3, 1, 1,  3, 1, 17, 0,
                                       5, 1,  7, 0, 0, 2, 1, 0, 17, 0, 5, 1,  0,
                                       0, 10, 3, 1, 1, 3, 1, 4, 0,  5, 0};
    static const uint8_t gaps[] = {0,  0,  1, 5, 0, 18, 0,  5, 1, 0, 0,
                                   18, 0,  5, 1, 1, 0,  14, 0, 5, 1, 2,
                                   0,  16, 0, 5, 1, 9,  0,  4, 0, 9, 0};
    static const uint8_t texts[] = {2,  0, 1, 5, 0, 11, 0, 0, 2,  8, 0, 34, 97,
                                    12, 0, 1, 2, 3, 8,  1, 1, 13, 0, 1, 2,  4,
                                    0,  0, 9, 5, 0, 9,  9, 0, 4,  0, 9, 0};
    static const uint8_t checkpoint[] = {
        0, 0, 1, 5, 0, 20, 0, 5,  2, 9, 0, 1, 0, 9,  0, 0, 2, 3, 0, 3, 0, 17,
        0, 0, 2, 7, 0, 1,  0, 14, 0, 0, 1, 2, 0, 17, 0, 0, 2, 0, 0, 1, 0, 9,
        0, 0, 2, 4, 0, 1,  0, 15, 0, 0, 1, 5, 0, 1,  4, 5, 0, 4, 0, 9, 0};

    save("matcher", "nested", nested, sizeof nested);
    save("matcher", "begun", begun, sizeof begun);
    save("matcher", "stacks", stacks, sizeof stacks);
    save("matcher", "switched", switched, sizeof switched);
    save("matcher", "gaps", gaps, sizeof gaps);
    save("matcher", "texts", texts, sizeof texts);
    save("matcher", "checkpoint", checkpoint, sizeof checkpoint);
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    folder = argv[1];
    make_finished();
    make_torn();
    make_segments();
    make_stacks();
    make_bounded();
    make_kept();
    make_memory();
    make_switches();
    make_devices();
    make_claims();
    make_no_trace();
    make_events();
    make_inputs();
    make_limits();
    return 0;
}
