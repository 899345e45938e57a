/* Facts about spans as frameworks' profilers show them: bytes of the
 * framework's own allocator, and members of a span's arguments. For tables that
 * show these. */
#ifndef VST_TABLES_FRAMEWORK_H
#define VST_TABLES_FRAMEWORK_H

#include "export/output/json.h"
#include "tables/pass.h"
#include "tables/table.h"

static inline int64_t vst__self_bytes(const vst_span *span,
                                      const vst__table_options *options)
{
    return options->framework ? span->self_framework_bytes
                              : (int64_t)span->self_bytes;
}

static inline int64_t vst__total_bytes(const vst_span *span,
                                       const vst__table_options *options)
{
    return options->framework ? span->total_framework_bytes
                              : (int64_t)span->total_bytes;
}

/* Returns whether a span is a call of the language, or has a place among calls.
 */
static inline bool vst__is_call(vst_definition_kind kind)
{
    return kind == VST_DEF_PYTHON || kind == VST_DEF_NATIVE ||
           kind == VST_DEF_GC || kind == VST_DEF_MODULE;
}

/* Looks up the text of a member's value among the table's own names. Sets
 * *number to 1 + the name's number; 0: the span has no such member. */
vst_status vst__member_number(vst__filling *filling, const vst_span *span,
                              const char *key, uint32_t *number);

#endif
