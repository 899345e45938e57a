/* The first traces of targets that use trace_input.h: the traces of
 * make_corpus.c in this form, and a trace that has some of everything, once for
 * each choice of a target. */
#include <string.h>

#include <vestige/graph.h>
#include <vestige/memory.h>
#include <vestige/storage.h>

#include "make_corpus.h"
#include "node_bytes.h"
#include "target.h"
#include "trace_input.h"

enum {
    CHOICES = 20, /* number of formats in fuzz_export.c */
    EDITS = 12,   /* number of places of edits in fuzz_view.c */
    MAIN = 1,
    LEN,
    STEP,
    LOSS,
    GC,
    MUL,
    SCHEMA,
    LINEAR,
    FAR
};

/* ---- as inputs ----------------------------------------------------------- */

typedef struct bytes {
    unsigned char at[1 << 16];
    size_t count;
} bytes;

static void put(bytes *to, const void *from, size_t count)
{
    MUST(count <= sizeof to->at - to->count);
    memcpy(to->at + to->count, from, count);
    to->count += count;
}

/* Writes the chunk without the zeros at its end. */
static void put_chunk(bytes *to, const unsigned char *at, size_t room)
{
    vst_chunk_header header;
    size_t count = room;

    memcpy(&header, at, sizeof header);
    while (count > sizeof header && at[count - 1] == 0)
        count--;
    count = (count + 7) & ~(size_t)7;
    if (count > room)
        count = room;
    if (header.magic == VST_CHUNK_MAGIC)
        header.magic = 1; /* otherwise the field says how often the payload is
                           * repeated */
    header.checksum = (uint32_t)(count - sizeof header);
    put(to, &header, sizeof header);
    put(to, at + sizeof header, count - sizeof header);
}

void save_input(const builder *b, size_t size, const char *name,
                const uint8_t *choices)
{
    save_input_as("trace", b, size, name, choices);
}

void save_input_as(const char *kind, const builder *b, size_t size,
                   const char *name, const uint8_t *choices)
{
    static bytes to;
    size_t at = VST_FILE_HEADER_SIZE;

    to.count = 0;
    put(&to, choices, INPUT_CHOICES);
    put(&to, b->bytes, sizeof(vst_file_header));
    while (size > at && size - at >= sizeof(vst_chunk_header)) {
        vst_chunk_header header;
        size_t room = size - at;

        memcpy(&header, b->bytes + at, sizeof header);
        if (header.size < room && header.size >= VST_CHUNK_ALIGN)
            room = header.size;
        put_chunk(&to, b->bytes + at, room);
        at += room;
    }
    save(kind, name, to.at, to.count);
}

/* ---- some of everything -------------------------------------------------- */

static void define_all(builder *b)
{
    builder_define(b, VST_DEF_PYTHON, MAIN, "main", "/home/x/app.py", 3);
    builder_define(b, VST_DEF_NATIVE, LEN, "len<\"&>", "builtins", 0);
    builder_define(b, VST_DEF_ANNOTATION, STEP, "step \"\xff\n;", "", 0);
    builder_define(b, VST_DEF_COUNTER, LOSS, "loss", "", 0);
    builder_define(b, VST_DEF_GC, GC, "gc", "", 0);
    builder_define(b, VST_DEF_OPERATOR, MUL, "aten::mul", "", 0);
    builder_define(b, VST_DEF_OPERATOR, SCHEMA,
                   "aten::mul(Tensor a, Tensor b) -> Tensor", "", 0);
    builder_define(b, VST_DEF_MODULE, LINEAR, "Linear", "", 1);
    builder_define(b, VST_DEF_FAR_ENDS, FAR, "", "", 0);
    builder_thread(b, 1, 4242, "MainThread");
    builder_thread(b, 2, 4243, "worker");
    builder_metadata(b, "vestige.process_name", "\"python\"");
    builder_metadata(b, "vestige.command", "\"python x.py\"");
    builder_metadata(b, "vestige.trace_id", "\"a0a1\"");
    builder_metadata(b, "vestige.parent",
                     "{\"trace_id\": \"a0a1\", \"pid\": 4242, \"how\": "
                     "\"fork\", \"time_ns\": 1700000000000001100}");
    builder_metadata(b, "host_name", "\"h\"");
    builder_metadata(b, "profile_memory", "1");
}

static void put_node(builder *b, const node_bytes *values, uint64_t record,
                     unsigned flags)
{
    uint64_t payload[64] = {vst_node_word(record, flags, 1)};

    MUST(values->count <= sizeof payload - sizeof *payload);
    memcpy(payload + 1, values->at, values->count);
    builder_escape(b, VST_ESCAPE_NODE, 0, payload,
                   1 + (uint32_t)((values->count + 7) / 8));
}

static void put_values(builder *b, uint64_t record, unsigned flags)
{
    node_bytes *values = calloc(1, sizeof *values);

    MUST(values != NULL);
    put_byte(values, VST_VALUE_SCHEMA);
    put_count(values, SCHEMA);
    put_tensor(values, 0x500 + record, 0x7f0000000010, 2, 3);
    put_list(values, VST_VALUE_LIST, 2);
    put_number(values, -5);
    put_double(values, 0.5);
    put_string(values, VST_VALUE_STRING, "a\"b");
    put_byte(values, VST_VALUE_NONE);
    put_node(b, values, record, flags);
    free(values);
}

/* Writes the facts of an operator. */
static void put_facts(builder *b, uint64_t sequence, uint64_t forward)
{
    static const char facts[] = "\2\5float\2\4\6\2\6\2" /* a tensor */
                                "\5\7"                  /* an integer */
                                "\x0e\x10"              /* flops */
                                "\x0d\4what\10\1x";     /* text with a name */
    uint64_t words[2 + (sizeof facts + 7) / 8] = {
        sequence,
        vst_operator_word(1, forward,
                          forward ? VST_SCOPE_BACKWARD : VST_SCOPE_FUNCTION)};

    memcpy(words + 2, facts, sizeof facts - 1);
    builder_escape(b, VST_ESCAPE_OPERATOR, 0, words,
                   sizeof words / sizeof *words);
}

static void put_alloc(builder *b, unsigned kind, uint64_t address,
                      uint64_t size, uint64_t stack)
{
    builder_word(b, vst_word_fixed(VST_ESCAPE_ALLOC_LARGE, kind, 10));
    builder_word(b, address);
    builder_word(b, size);
    builder_word(b, stack);
}

static void put_free(builder *b, unsigned kind, uint64_t address)
{
    builder_word(b, vst_word_fixed(VST_ESCAPE_FREE, kind, 10));
    builder_word(b, address);
}

static void put_operator(builder *b, uint64_t record, uint64_t forward)
{
    const uint64_t input = 0x7f0000000010, output = 0x7f0000000010 + 64;

    builder_enter(b, MUL, 10);
    put_facts(b, 17, forward);
    put_values(b, record, 0);
    builder_escape(b, VST_ESCAPE_STORAGES, 0,
                   (uint64_t[]){vst_storage_word(input, VST_STORAGE_READ), 24,
                                vst_storage_word(output, VST_STORAGE_WRITTEN),
                                24},
                   4);
    put_alloc(b, VST_MEMORY_FRAMEWORK, output, 24, 2);
    put_values(b, record, VST_NODE_OUTPUTS);
    builder_exit(b, MUL, 10);
    put_free(b, VST_MEMORY_FRAMEWORK_FREE, output);
}

static void put_main_thread(builder *b)
{
    builder_enter(b, MAIN, 100);
    builder_escape_text(b, VST_ESCAPE_ARGS, 0, 6, "\"n\": 5");
    put_alloc(b, VST_MEMORY_FRAMEWORK, 0x7f0000000010, 24, 1);
    put_alloc(b, VST_MEMORY_MMAP, 0x7f0000100000, 0x8000, 4);
    builder_escape(
        b, VST_ESCAPE_STORAGES, 0,
        (uint64_t[]){vst_storage_word(0x7f0000000010, VST_STORAGE_PARAMETER),
                     24},
        2);
    builder_enter(b, LINEAR, 10);
    put_operator(b, 1, 0);
    builder_exit(b, LINEAR, 10);
    put_operator(b, 2, 1);
    builder_escape(b, VST_ESCAPE_BEGIN, 10, (uint64_t[]){1ull << 32 | STEP}, 1);
    builder_word(b, vst_word_escape(VST_ESCAPE_ALLOC, 64 << 7 | 1, 10));
    builder_word(b, 0x7f0000000200 >> 3 | 3ull << 44);
    put_free(b, VST_MEMORY_FREE, 0x7f0000000200);
    builder_escape(b, VST_ESCAPE_COUNTER, 5,
                   (uint64_t[]){LOSS, 0x3ff8000000000000u}, 2);
    builder_escape_text(b, VST_ESCAPE_INSTANT, 5, 6ull << 32 | STEP,
                        "\"n\": 5");
    builder_escape(b, VST_ESCAPE_LOST, 10, (uint64_t[]){12}, 1);
    builder_word(b, vst_word(VST_RAISE, MAIN, 50));
}

static void build_all(builder *b)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 9000);
    define_all(b);
    builder_memory_entries(b, 3);
    builder_records(b, 0, 1, 1000, 1);
    put_main_thread(b);
    builder_seal(b, 1);
    builder_records(b, 0, 2, 1000, 1);
    builder_enter(b, GC, 100);
    builder_enter(b, LEN, 10);
    builder_exit(b, LEN, 10);
    builder_escape(b, VST_ESCAPE_FAR_END, 1500, (uint64_t[]){1ull << 32 | STEP},
                   1);
}

/* So many calls that an index of the trace has levels and checkpoints. */
static void build_many(builder *b)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 0);
    define_all(b);
    builder_records(b, 0, 1, 1000, 25);
    builder_enter(b, MAIN, 100);
    builder_enter(b, LEN, 10);
    builder_enter(b, LEN, 10);
    builder_exit(b, LEN, 10);
    builder_exit(b, LEN, 10);
    builder_escape(b, VST_ESCAPE_COUNTER, 5,
                   (uint64_t[]){LOSS, 0x3ff8000000000000u}, 2);
    builder_exit(b, MAIN, 10);
    builder_chunk(b)->magic = 1200; /* times */
}

static void save_one(const builder *b, const char *name, unsigned number,
                     const uint8_t *choices)
{
    char whole[64];

    snprintf(whole, sizeof whole, "%s_%u", name, number);
    save_input(b, b->size, whole, choices);
}

void make_inputs(void)
{
    builder b;

    build_all(&b);
    for (unsigned i = 0; i < CHOICES; i++)
        save_one(&b, "all", i, (uint8_t[INPUT_CHOICES]){0, (uint8_t)i});
    for (unsigned i = 1; i <= INPUT_PACKED; i *= 2)
        save_one(&b, "all_flag", i, (uint8_t[INPUT_CHOICES]){(uint8_t)i});
    builder_free(&b);
    build_many(&b);
    save_one(&b, "many", 0, (uint8_t[INPUT_CHOICES]){0});
    save_one(&b, "many", 1, (uint8_t[INPUT_CHOICES]){INPUT_PACKED});
    /* Edits each table of an index: adds much to its second number. */
    for (unsigned i = 0; i < EDITS; i++)
        save_one(&b, "many_edit", i,
                 (uint8_t[INPUT_CHOICES]){0, 0, 0, 0, (uint8_t)i, 0, 8, 0x40});
    builder_free(&b);
}
