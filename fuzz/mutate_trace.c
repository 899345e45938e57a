/* Changes inputs of trace_input.h for libFuzzer: by whole records, chunks and
 * fields, so that the result is nearly always a valid trace. */
#include <stdbool.h>
#include <string.h>

#include "target.h"
#include "trace_input.h"

enum {
    BEFORE = INPUT_CHOICES + sizeof(vst_file_header),
    HEAD = sizeof(vst_chunk_header),
    CHUNKS_MAX = 64,
    RECORDS_MAX = 4096,
    RECORD_WORDS_MAX = 8, /* words of a made-up record */
    COPY_MAX = 512        /* bytes of one copy */
};

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size,
                               unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_size,
                                 const uint8_t *second, size_t second_size,
                                 uint8_t *out, size_t max_size, unsigned seed);

typedef struct part {
    size_t at;      /* fields of the header */
    size_t payload; /* bytes */
    bool is_records;
} part;

typedef struct input {
    uint8_t *bytes;
    size_t size, max_size;
    part parts[CHUNKS_MAX];
    size_t count;
    uint64_t random;
} input;

static uint64_t draw(input *in, uint64_t below)
{
    in->random += 0x9e3779b97f4a7c15u;
    uint64_t value = (in->random ^ in->random >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return (value ^ value >> 31) % below;
}

static size_t find_parts(const uint8_t *bytes, size_t size, part *parts)
{
    size_t count = 0, at = BEFORE;

    while (count < CHUNKS_MAX && size >= HEAD && at <= size - HEAD) {
        vst_chunk_header header;
        size_t left = size - at - HEAD;

        memcpy(&header, bytes + at, HEAD);
        parts[count].at = at;
        parts[count].payload = header.checksum < left ? header.checksum : left;
        parts[count].is_records = header.kind == VST_CHUNK_RECORDS;
        at += HEAD + parts[count++].payload;
    }
    return count;
}

/* ---- moving bytes -------------------------------------------------------- */

static void set_payload(input *in, const part *of, size_t payload)
{
    uint32_t count = (uint32_t)payload;

    memcpy(in->bytes + of->at + offsetof(vst_chunk_header, checksum), &count,
           sizeof count);
}

/* Makes room in a part; returns false if there is none. */
static bool open_gap(input *in, const part *of, size_t at, size_t count)
{
    if (count > in->max_size - in->size)
        return false;
    memmove(in->bytes + at + count, in->bytes + at, in->size - at);
    in->size += count;
    set_payload(in, of, of->payload + count);
    return true;
}

static void close_gap(input *in, const part *of, size_t at, size_t count)
{
    memmove(in->bytes + at, in->bytes + at + count, in->size - at - count);
    in->size -= count;
    set_payload(in, of, of->payload - count);
}

/* ---- records ------------------------------------------------------------- */

static uint32_t entry_size(const uint8_t *at)
{
    uint32_t size;

    memcpy(&size, at, sizeof size);
    return size;
}

/* Finds where the records or entries of a part begin; the last offset is the
 * part's end. */
static size_t find_records(const input *in, const part *of, size_t *records)
{
    size_t count = 0, at = of->at + HEAD, end = at + of->payload;

    while (count < RECORDS_MAX - 1 && at + sizeof(uint64_t) <= end) {
        size_t size = sizeof(uint64_t);
        uint64_t word;

        records[count++] = at;
        memcpy(&word, in->bytes + at, sizeof word);
        if (!of->is_records)
            size = (entry_size(in->bytes + at) + 7u) & ~(size_t)7;
        else if (vst_word_kind(word) == VST_ESCAPE)
            size += vst_word_escape_words(word) * sizeof word;
        if (size == 0 || size > end - at)
            size = sizeof(uint64_t);
        at += size;
    }
    records[count] = at;
    return count;
}

/* Draws a number, mostly a plausible one: a count, an id, an address. */
static uint64_t make_up_word(input *in)
{
    switch (draw(in, 6)) {
    case 0:
        return draw(in, 4);
    case 1:
        return 1 + draw(in, 12);
    case 2:
        return (1 + draw(in, 12)) | draw(in, 4) << 32;
    case 3:
        return 0x7f0000000000u + 16 * draw(in, 64);
    case 4:
        return (0x7f0000000000u + 16 * draw(in, 64)) >> 3 | draw(in, 6) << 44;
    default:
        return (uint64_t)1 << draw(in, 64);
    }
}

static uint32_t make_up_head(input *in, uint32_t type)
{
    uint32_t kind = 1 + (uint32_t)draw(in, 25);

    if (type == VST_ESCAPE_FREE_RECENT)
        return kind | vst_recent_place(0x7f0000000000u + 16 * draw(in, 64))
                          << 5;
    return kind | (uint32_t)draw(in, 1 << 10) << 5;
}

static size_t make_up_record(input *in, uint64_t *words)
{
    uint32_t delta = (uint32_t)(draw(in, 8) ? draw(in, 1000) : draw(in, ~0u));
    uint32_t type, payload;

    if (draw(in, 2)) {
        words[0] =
            vst_word((vst_kind)draw(in, 3), 1 + (vst_id)draw(in, 12), delta);
        return 1;
    }
    if (draw(in, 2)) {
        type = 1 + (uint32_t)draw(in, VST_ESCAPE_STORAGES);
        payload = (uint32_t)draw(in, RECORD_WORDS_MAX);
        words[0] = vst_word_escape(type, payload, delta);
    } else {
        type = VST_ESCAPE_FIXED + (uint32_t)draw(in, 5);
        words[0] = vst_word_fixed(type, make_up_head(in, type), delta);
        payload = vst_word_escape_words(words[0]);
    }
    for (uint32_t i = 0; i < payload; i++)
        words[1 + i] = make_up_word(in);
    return 1 + payload;
}

static void insert_record(input *in, const part *of, const size_t *records,
                          size_t count)
{
    uint64_t words[1 + RECORD_WORDS_MAX];
    size_t at = records[draw(in, count + 1)];
    size_t bytes = make_up_record(in, words) * sizeof *words;

    if (open_gap(in, of, at, bytes))
        memcpy(in->bytes + at, words, bytes);
}

static void remove_records(input *in, const part *of, const size_t *records,
                           size_t count)
{
    size_t first = draw(in, count), last = first + 1 + draw(in, 4);

    if (last > count)
        last = count;
    close_gap(in, of, records[first], records[last] - records[first]);
}

static void copy_records(input *in, const part *of, const size_t *records,
                         size_t count)
{
    size_t first = draw(in, count), last = first + 1 + draw(in, 8);
    size_t at = records[draw(in, count + 1)], bytes;
    uint8_t copy[COPY_MAX];

    if (last > count)
        last = count;
    bytes = records[last] - records[first];
    if (bytes > sizeof copy)
        return;
    memcpy(copy, in->bytes + records[first], bytes);
    if (open_gap(in, of, at, bytes))
        memcpy(in->bytes + at, copy, bytes);
}

/* Changes bytes of a record in place. */
static void change_record(input *in, const size_t *records, size_t count)
{
    size_t which = draw(in, count);
    size_t at = records[which], bytes = records[which + 1] - at;

    if (bytes > 8 && draw(in, 2)) { /* the record's payload */
        size_t skip = 8 * draw(in, bytes / 8);
        at += skip;
        bytes -= skip;
    }
    if (bytes > 64)
        bytes = 64;
    LLVMFuzzerMutate(in->bytes + at, bytes, bytes);
}

static void mutate_payload(input *in, const part *of)
{
    static size_t records[RECORDS_MAX];
    size_t count = find_records(in, of, records);

    if (count == 0 || (of->is_records && draw(in, 4) == 0))
        insert_record(in, of, records, count);
    else if (draw(in, 2))
        change_record(in, records, count);
    else if (draw(in, 2))
        copy_records(in, of, records, count);
    else
        remove_records(in, of, records, count);
}

/* ---- chunks -------------------------------------------------------------- */

static void mutate_head(input *in, const part *of)
{
    vst_chunk_header header;

    memcpy(&header, in->bytes + of->at, HEAD);
    switch (draw(in, 6)) {
    case 0:
        header.magic = (uint32_t)draw(in, 2u << draw(in, 11));
        header.size = VST_CHUNK_ALIGN * (1 + (uint32_t)draw(in, 16));
        break;
    case 1:
        header.thread = (uint32_t)draw(in, 4);
        break;
    case 2:
        header.window = (uint16_t)draw(in, 4);
        break;
    case 3:
        header.used = draw(in, 2) ? 0 : (uint32_t)(of->payload / 8);
        break;
    case 4:
        header.sample.ticks = draw(in, 10000);
        header.sample.monotonic_ns = (int64_t)header.sample.ticks;
        break;
    default:
        LLVMFuzzerMutate((uint8_t *)&header, HEAD, HEAD);
        header.checksum = (uint32_t)of->payload;
    }
    memcpy(in->bytes + of->at, &header, HEAD);
}

/* Copies a chunk of another input in front of the i-th chunk, or to the end. */
static void insert_chunk(input *in, const uint8_t *bytes, const part *from,
                         size_t before)
{
    size_t at = before < in->count ? in->parts[before].at : in->size;
    size_t size = HEAD + from->payload;
    uint8_t *copy;

    if (size > in->max_size - in->size)
        return;
    copy = malloc(size);
    MUST(copy != NULL);
    memcpy(copy, bytes + from->at, size);
    memmove(in->bytes + at + size, in->bytes + at, in->size - at);
    memcpy(in->bytes + at, copy, size);
    in->size += size;
    free(copy);
}

static void remove_chunk(input *in, const part *of)
{
    size_t end = of->at + HEAD + of->payload;

    memmove(in->bytes + of->at, in->bytes + end, in->size - end);
    in->size -= end - of->at;
}

static void mutate_file(input *in)
{
    const part *of = &in->parts[draw(in, in->count)];

    switch (draw(in, 4)) {
    case 0:
        remove_chunk(in, of);
        break;
    case 1:
        insert_chunk(in, in->bytes, of, draw(in, in->count + 1));
        break;
    default:
        LLVMFuzzerMutate(in->bytes + INPUT_CHOICES, sizeof(vst_file_header),
                         sizeof(vst_file_header));
    }
}

/* ---- the whole ----------------------------------------------------------- */

/* In targets that edit their own results of the trace, four choices together
 * are a place and a change. */
static void mutate_choices(input *in)
{
    uint8_t *at = in->bytes + 4 * draw(in, INPUT_CHOICES / 4);

    if (draw(in, 2))
        LLVMFuzzerMutate(in->bytes, INPUT_CHOICES, INPUT_CHOICES);
    else
        for (int i = 0; i < 4; i++)
            at[i] = (uint8_t)draw(in, 256);
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size,
                               unsigned seed)
{
    input in = {
        .bytes = bytes, .size = size, .max_size = max_size, .random = seed};
    uint64_t what = draw(&in, 32);

    if (size >= BEFORE)
        in.count = find_parts(bytes, size, in.parts);
    if (in.count == 0 || what == 0)
        return LLVMFuzzerMutate(bytes, size, max_size);
    if (what < 8)
        mutate_choices(&in);
    else if (what < 10)
        mutate_file(&in);
    else if (what < 13)
        mutate_head(&in, &in.parts[draw(&in, in.count)]);
    else
        mutate_payload(&in, &in.parts[draw(&in, in.count)]);
    return in.size;
}

/* The first trace, and a chunk of the second. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_size,
                                 const uint8_t *second, size_t second_size,
                                 uint8_t *out, size_t max_size, unsigned seed)
{
    input in = {.bytes = out, .max_size = max_size, .random = seed};
    part parts[CHUNKS_MAX];
    size_t count = find_parts(second, second_size, parts);

    in.size = first_size < max_size ? first_size : max_size;
    memcpy(out, first, in.size);
    if (in.size < BEFORE || count == 0)
        return in.size;
    in.count = find_parts(out, in.size, in.parts);
    insert_chunk(&in, second, &parts[draw(&in, count)],
                 draw(&in, in.count + 1));
    return in.size;
}
