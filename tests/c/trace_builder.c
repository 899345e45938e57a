/* See trace_builder.h. The builder ends the program if it runs out of memory or
 * files, because a test cannot continue then. */
#include "trace_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "os/os.h"

static void die(const char *what)
{
    fprintf(stderr, "trace_builder: %s\n", what);
    exit(2);
}

/* Appends zeros to the file. */
static void extend(builder *b, size_t count)
{
    b->bytes = realloc(b->bytes, b->size + count);
    if (b->bytes == NULL)
        die("out of memory");
    memset(b->bytes + b->size, 0, count);
    b->size += count;
}

vst_file_header *builder_header(builder *b)
{
    return (vst_file_header *)(void *)b->bytes;
}

vst_chunk_header *builder_chunk(builder *b)
{
    return (vst_chunk_header *)(void *)(b->bytes + b->chunk);
}

void builder_fix_header(builder *b)
{
    vst_file_header *header = builder_header(b);

    header->checksum =
        (uint32_t)crc32(0, b->bytes, offsetof(vst_file_header, checksum));
}

void builder_fix_chunk(builder *b, size_t offset)
{
    vst_chunk_header *chunk = (vst_chunk_header *)(void *)(b->bytes + offset);

    chunk->checksum = (uint32_t)crc32(0, b->bytes + offset,
                                      offsetof(vst_chunk_header, checksum));
}

void builder_init(builder *b)
{
    vst_file_header *header;

    memset(b, 0, sizeof *b);
    extend(b, VST_FILE_HEADER_SIZE);
    header = builder_header(b);
    memcpy(header->magic, VST_FILE_MAGIC, sizeof header->magic);
    header->version = VST_FILE_VERSION;
    header->byte_order = VST_FILE_BYTE_ORDER;
    header->header_size = VST_FILE_HEADER_SIZE;
    header->clock_kind = VST_CLOCK_MONOTONIC;
    header->ticks_per_second = 1e9;
    header->start.ticks = BUILDER_START;
    header->start.monotonic_ns = BUILDER_START;
    header->start.realtime_ns = BUILDER_EPOCH_NS + BUILDER_START;
    for (int i = 0; i < 16; i++)
        header->trace_id[i] = (uint8_t)(0xa0 + i);
    header->pid = BUILDER_PID;
    builder_fix_header(b);
}

void builder_free(builder *b)
{
    free(b->bytes);
    memset(b, 0, sizeof *b);
}

static void begin_chunk(builder *b, vst_chunk_kind kind, unsigned window,
                        unsigned thread, vst_ticks ticks, unsigned pages)
{
    vst_chunk_header *chunk;

    b->chunk = b->size;
    b->used = 0;
    extend(b, (size_t)pages * VST_CHUNK_ALIGN);
    chunk = builder_chunk(b);
    chunk->magic = VST_CHUNK_MAGIC;
    chunk->kind = (uint16_t)kind;
    chunk->window = (uint16_t)window;
    chunk->size = pages * VST_CHUNK_ALIGN;
    chunk->thread = thread;
    chunk->sample.ticks = ticks;
    chunk->sample.monotonic_ns = (int64_t)ticks;
    chunk->sample.realtime_ns = BUILDER_EPOCH_NS + (int64_t)ticks;
    chunk->sequence = b->sequence++;
    chunk->segments = 1;
    builder_fix_chunk(b, b->chunk);
}

void builder_records(builder *b, unsigned window, unsigned thread,
                     vst_ticks ticks, unsigned pages)
{
    begin_chunk(b, VST_CHUNK_RECORDS, window, thread, ticks, pages);
}

void builder_definitions(builder *b, unsigned pages)
{
    begin_chunk(b, VST_CHUNK_DEFINITIONS, 0, 0, BUILDER_START, pages);
}

void builder_seal(builder *b, unsigned segments)
{
    builder_chunk(b)->used = (uint32_t)(b->used / sizeof(uint64_t));
    builder_chunk(b)->segments = segments;
}

void builder_finish(builder *b)
{
    builder_header(b)->state = VST_FILE_FINISHED;
    builder_header(b)->size = b->size;
}

static void append(builder *b, const void *bytes, size_t count)
{
    size_t at = b->chunk + sizeof(vst_chunk_header) + b->used;

    if (at + count > b->size)
        die("the chunk is full");
    if (count != 0)
        memcpy(b->bytes + at, bytes, count);
    b->used += count;
}

void builder_word(builder *b, uint64_t word)
{
    append(b, &word, sizeof word);
}

void builder_enter(builder *b, vst_id id, uint32_t delta)
{
    builder_word(b, vst_word(VST_ENTER, id, delta));
}

void builder_exit(builder *b, vst_id id, uint32_t delta)
{
    builder_word(b, vst_word(VST_EXIT, id, delta));
}

void builder_escape(builder *b, vst_escape type, uint32_t delta,
                    const uint64_t *payload, uint32_t words)
{
    builder_word(b, vst_word_escape(type, words, delta));
    append(b, payload, words * sizeof *payload);
}

static void pad(builder *b)
{
    static const char zeros[8];

    append(b, zeros, (8 - b->used % 8) % 8);
}

void builder_escape_text(builder *b, vst_escape type, uint32_t delta,
                         uint64_t head, const char *text)
{
    size_t count = strlen(text);

    builder_word(b,
                 vst_word_escape(type, (uint32_t)(1 + (count + 7) / 8), delta));
    builder_word(b, head);
    append(b, text, count);
    pad(b);
}

void builder_entry(builder *b, const vst_file_entry *entry, const char *first,
                   const char *second)
{
    vst_file_entry whole = *entry;

    whole.a_len = (uint32_t)strlen(first);
    whole.b_len = (uint32_t)strlen(second);
    whole.size = (uint32_t)(sizeof whole + whole.a_len + whole.b_len + 7) & ~7u;
    append(b, &whole, sizeof whole);
    append(b, first, whole.a_len);
    append(b, second, whole.b_len);
    pad(b);
}

void builder_define(builder *b, unsigned kind, vst_id id, const char *name,
                    const char *file, int line)
{
    builder_entry(
        b, &(vst_file_entry){.kind = (uint16_t)kind, .id = id, .line = line},
        name, file);
}

void builder_thread(builder *b, unsigned number, uint64_t tid, const char *name)
{
    builder_entry(
        b, &(vst_file_entry){.kind = VST_ENTRY_THREAD, .id = number, .x = tid},
        name, "");
}

void builder_metadata(builder *b, const char *key, const char *json)
{
    builder_entry(b, &(vst_file_entry){.kind = VST_ENTRY_METADATA}, key, json);
}

void builder_window(builder *b, unsigned number, vst_ticks first,
                    vst_ticks last)
{
    builder_entry(
        b,
        &(vst_file_entry){
            .kind = VST_ENTRY_WINDOW, .id = number, .x = first, .y = last},
        "", "");
}

/* Builds a bounded file whose first run was dropped and whose third slot is
 * being emptied: with checkpoints, and with new definitions in front of old
 * ones. */
void builder_bounded(builder *b)
{
    builder_init(b);
    builder_header(b)->slot_size = VST_CHUNK_ALIGN;
    builder_header(b)->dropped = 12;
    b->sequence = 9;
    builder_definitions(b, 1);
    builder_metadata(b, "note", "\"last\"");
    b->sequence = 0;
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 0);
    builder_define(b, VST_DEF_PYTHON, 1, "main", "/home/x/app.py", 3);
    builder_define(b, VST_DEF_ANNOTATION, 2, "step", "", 0);
    builder_metadata(b, "note", "\"first\"");
    builder_records(b, 0, 1, 2000, 1);
    memset(b->bytes + b->chunk, 0, 4);
    builder_records(b, 0, 1, 4000, 1);
    builder_escape(b, VST_ESCAPE_CHECKPOINT, 0, (uint64_t[]){21, 2, 12}, 3);
    builder_escape(b, VST_ESCAPE_BEGIN, 0, (uint64_t[]){2, 3}, 2);
    builder_escape(b, VST_ESCAPE_SWITCH, 0, (uint64_t[]){7, 1}, 2);
    builder_escape(b, VST_ESCAPE_STACK, 0, (uint64_t[]){1, 1}, 2);
    builder_escape(b, VST_ESCAPE_SWITCH, 0, (uint64_t[]){0, 1}, 2);
    builder_escape(b, VST_ESCAPE_STACK, 0, (uint64_t[]){1}, 1);
    builder_escape(b, VST_ESCAPE_BEGIN, 0, (uint64_t[]){1ull << 32 | 2, 1}, 2);
    builder_escape(b, VST_ESCAPE_STACK_MORE, 0, (uint64_t[]){1}, 1);
    builder_exit(b, 1, 10);
    builder_escape(b, VST_ESCAPE_END, 10, (uint64_t[]){2}, 1);
    builder_seal(b, 1);
    builder_records(b, 0, 1, 3000, 1);
    builder_escape(b, VST_ESCAPE_CHECKPOINT, 0, (uint64_t[]){0, 1, 10}, 3);
    builder_enter(b, 1, 10);
    builder_enter(b, 1, 10);
    builder_seal(b, 1);
    builder_records(b, 0, 1, 5000, 1);
    builder_escape(b, VST_ESCAPE_CHECKPOINT, 0, (uint64_t[]){4, 4, 40}, 3);
    builder_escape(b, VST_ESCAPE_STACK, 0, (uint64_t[]){1, 1, 1}, 3);
    builder_exit(b, 1, 10);
}

void builder_stack(builder *b, vst_stack_id id, vst_stack_id parent,
                   vst_stack_kind kind, uint64_t value)
{
    vst_file_stack stack = {.size = sizeof stack,
                            .kind = VST_ENTRY_STACK,
                            .what = (uint16_t)kind,
                            .id = id,
                            .parent = parent,
                            .value = value};

    append(b, &stack, sizeof stack);
}

void builder_memory_entries(builder *b, vst_stack_id value)
{
    const vst_file_entry module = {.kind = VST_ENTRY_MODULE,
                                   .id = 1,
                                   .x = 0x1000,
                                   .y = 0x1000,
                                   .z = 0x9000};
    const uint64_t frame = 1ull << 32 | 7; /* function 1, line 7 */

    builder_entry(b, &(vst_file_entry){.kind = VST_ENTRY_MEMORY}, "", "");
    builder_entry(b, &module, "/lib/x.so", "\1\2\3");
    builder_stack(b, 1, 0, VST_STACK_LANGUAGE, frame);
    builder_stack(b, 2, 1, VST_STACK_LANGUAGE, frame);
    builder_stack(b, 3, 2, VST_STACK_NATIVE, frame);
    builder_stack(b, 4, 3, VST_STACK_BOTH, value);
}

static void memory_words(builder *b, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        builder_word(b, words[i]);
}

void builder_memory(builder *b)
{
    const uint64_t a = 0x7f0000000010, z = 0x7f0000000020, m = 0x7f0000100000;
    const uint64_t first[] = {
        vst_word(VST_ENTER, 1, 10),
        vst_word_escape(VST_ESCAPE_ALLOC, 64 << 7 | 1, 10),
        a >> 3 | 2ull << 44,
        vst_word_escape(VST_ESCAPE_ALLOC, 100 << 7 | 1, 10),
        z >> 3 | 3ull << 44,
        vst_word_escape(VST_ESCAPE_FREE_RECENT, vst_recent_place(a) << 5 | 8,
                        10),
        vst_word_escape(VST_ESCAPE_ALLOC_LARGE, 9, 10),
        m,
        0x8000,
        4,
        vst_word_escape(VST_ESCAPE_ALLOC, 32 << 7 | 1, 5000),
        a >> 3 | 1ull << 44,
        vst_word(VST_EXIT, 1, 10),
    };
    const uint64_t second[] = {
        vst_word_escape(VST_ESCAPE_FREE, 8, 100),
        z,
        vst_word_escape(VST_ESCAPE_FREE_RANGE, 10, 10),
        m + 0x2000,
        0x1000,
        vst_word_escape(VST_ESCAPE_ALLOC, 8 << 7 | 1, 10),
        a >> 3 | 1ull << 44,
        vst_word_escape(VST_ESCAPE_FREE, 8, 10),
        0x7f0000000990,
    };

    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 9000);
    builder_define(b, VST_DEF_PYTHON, 1, "main", "/home/x/app.py", 3);
    builder_metadata(b, "vestige.memory", "{\"sample_bytes\": 512}");
    builder_memory_entries(b, 2);
    builder_records(b, 0, 1, 1000, 1);
    memory_words(b, first, sizeof first / sizeof *first);
    builder_seal(b, 1);
    builder_records(b, 0, 2, 1000, 1);
    memory_words(b, second, sizeof second / sizeof *second);
}

int builder_file(const builder *b)
{
    int fd;

    if (vst__os_file_create_in_memory(&fd) != 0)
        die("no file in memory");
    if (pwrite(fd, b->bytes, b->size, 0) != (ssize_t)b->size)
        die("cannot write");
    return fd;
}

vst_status builder_open(const builder *b, vst_trace **trace, vst_error *error)
{
    int fd = builder_file(b);
    vst_status status = vst_trace_open_fd(fd, trace, error);

    vst__os_file_close(fd);
    return status;
}
