/* Builds trace files by hand, byte for byte from format.h and not with the
 * writer, so that what the reader is tested against is the specification. */
#ifndef VST_TESTS_TRACE_BUILDER_H
#define VST_TESTS_TRACE_BUILDER_H

#include <stddef.h>

#include <vestige/memory.h>
#include <vestige/trace.h>

#include "store/format.h"

/* In all built files a tick is a nanosecond, and tick 0 is this moment. */
#define BUILDER_EPOCH_NS INT64_C(1700000000000000000)
#define BUILDER_START 1000u
#define BUILDER_PID 4242u

typedef struct builder {
    unsigned char *bytes;
    size_t size;
    size_t chunk; /* offset of the open one */
    size_t used;  /* bytes of its payload */
    uint32_t sequence;
} builder;

void builder_init(builder *b);
void builder_free(builder *b);
vst_file_header *builder_header(builder *b);
/* The last chunk begun; good until the next one is. */
vst_chunk_header *builder_chunk(builder *b);
void builder_fix_header(builder *b);
void builder_fix_chunk(builder *b, size_t offset);

/* A chunk of so many pages. */
void builder_records(builder *b, unsigned window, unsigned thread,
                     vst_ticks ticks, unsigned pages);
void builder_definitions(builder *b, unsigned pages);
/* Sealed, the open chunk says how much of it is used. */
void builder_seal(builder *b, unsigned segments);
/* The file says that it was finished. */
void builder_finish(builder *b);

void builder_word(builder *b, uint64_t word);
void builder_enter(builder *b, vst_id id, uint32_t delta);
void builder_exit(builder *b, vst_id id, uint32_t delta);
void builder_escape(builder *b, vst_escape type, uint32_t delta,
                    const uint64_t *payload, uint32_t words);
/* An escape whose payload is `head` and then text. */
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

/* A stack: one frame on top of `parent`, or of VST_STACK_BOTH two stacks. */
void builder_stack(builder *b, vst_stack_id id, vst_stack_id parent,
                   vst_stack_kind kind, uint64_t value);
/* That there are records of memory, a module, and stacks: 1 and 2 are of the
 * language, 3 is native, 4 is 3 and `value` together. */
void builder_memory_entries(builder *b, vst_stack_id value);

/* A whole file, bounded: its first runs were dropped, and a slot is being
 * emptied. */
void builder_bounded(builder *b);

/* A whole file of records of memory by two threads: every kind of them, stacks
 * and a module. */
void builder_memory(builder *b);

/* The file as an unlinked one; the caller closes it. */
int builder_file(const builder *b);
vst_status builder_open(const builder *b, vst_trace **trace, vst_error *error);

#endif
