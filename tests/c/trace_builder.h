/* Builds trace files by hand, byte for byte from format.h and not with the
 * writer, so that tests compare the reader with the specification. */
#ifndef VST_TESTS_TRACE_BUILDER_H
#define VST_TESTS_TRACE_BUILDER_H

#include <stddef.h>

#include <vestige/memory.h>
#include <vestige/trace.h>

#include "store/format.h"

/* Time zero of built files. A tick is a nanosecond, and tick 0 is this
 * moment. */
#define BUILDER_EPOCH_NS INT64_C(1700000000000000000)
#define BUILDER_START 1000u
#define BUILDER_PID 4242u

typedef struct builder {
    unsigned char *bytes;
    size_t size;
    size_t chunk; /* offset of the open chunk */
    size_t used;  /* used bytes of the open chunk's payload */
    uint32_t sequence;
} builder;

void builder_init(builder *b);
void builder_free(builder *b);
vst_file_header *builder_header(builder *b);
/* Returns the chunk begun last; valid until the next chunk begins. */
vst_chunk_header *builder_chunk(builder *b);
void builder_fix_header(builder *b);
void builder_fix_chunk(builder *b, size_t offset);

/* Begins a chunk of `pages` pages. */
void builder_records(builder *b, unsigned window, unsigned thread,
                     vst_ticks ticks, unsigned pages);
void builder_definitions(builder *b, unsigned pages);
/* Seals the open chunk: its header then says how much is used. */
void builder_seal(builder *b, unsigned segments);
/* Marks the file as finished. */
void builder_finish(builder *b);

void builder_word(builder *b, uint64_t word);
void builder_enter(builder *b, vst_id id, uint32_t delta);
void builder_exit(builder *b, vst_id id, uint32_t delta);
void builder_escape(builder *b, vst_escape type, uint32_t delta,
                    const uint64_t *payload, uint32_t words);
/* Adds an escape whose payload is `head` and then text. */
void builder_escape_text(builder *b, vst_escape type, uint32_t delta,
                         uint64_t head, const char *text);

void builder_entry(builder *b, const vst_file_entry *entry, const char *first,
                   const char *second);
void builder_define(builder *b, unsigned kind, vst_id id, const char *name,
                    const char *file, int line);
void builder_thread(builder *b, unsigned number, uint64_t tid,
                    const char *name);
void builder_metadata(builder *b, const char *key, const char *json);
void builder_window(builder *b, unsigned number, vst_ticks first,
                    vst_ticks last);

/* Defines a stack: one frame on top of `parent`, or, for VST_STACK_BOTH, a pair
 * of stacks. */
void builder_stack(builder *b, vst_stack_id id, vst_stack_id parent,
                   vst_stack_kind kind, uint64_t value);
/* Adds the entry for records of memory, a module, and stacks: 1 and 2 are the
 * language's, 3 is native, 4 joins 3 and `value`. */
void builder_memory_entries(builder *b, vst_stack_id value);

/* Builds a bounded file: its first runs were dropped, and a slot is being
 * emptied. */
void builder_bounded(builder *b);

/* Builds a file with records of memory by two threads: every kind of record,
 * stacks and a module. */
void builder_memory(builder *b);

/* Returns an unlinked file with the built bytes; the caller closes it. */
int builder_file(const builder *b);
vst_status builder_open(const builder *b, vst_trace **trace, vst_error *error);

#endif
