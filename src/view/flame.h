/* Flame graph: a tree of calls that a walk fills for the part inside a range.
 * One thread at a time. */
#ifndef VST_VIEW_FLAME_H
#define VST_VIEW_FLAME_H

#include "base/map64.h"
#include "view/view.h"

typedef struct vst__flame_frame {
    int64_t start_ns;
    /* serial of the matcher's frame, while the matcher matches */
    uint64_t serial;
    uint32_t node;
    bool part; /* belongs to its parent's row: hidden, or no room for a row */
    /* see vst__imports_class and vst__imports_part (replay/imports.h) */
    unsigned char import_class, import_part;
    unsigned char import; /* vst_import, as far as known */
    vst_id id, module;
} vst__flame_frame;

typedef struct vst__flame {
    int64_t from_ns, to_ns;
    const struct vst_imports *imports; /* NULL: imports are not folded */
    vst_view_flame_row *rows;
    size_t count, capacity;
    vst__map64 children;  /* (parent + 1, id) -> 1 + row */
    uint32_t *last_child; /* by row: the child that was looked up last */
    size_t last_capacity;
    /* The open frames, and how many. */
    vst__flame_frame *frames;
    size_t frame_count, frame_capacity;
} vst__flame;

/* With this many rows, further calls belong to their callers' rows. */
enum { VST_FLAME_ROWS_MAX = 1 << 20 };

void vst__flame_free(vst__flame *tree);
vst_status vst__flame_push(vst__flame *tree, vst_id id, int64_t start_ns);
/* Ends the innermost frame. */
void vst__flame_pop(vst__flame *tree, int64_t end_ns, bool raised);
/* Names the module of the import around the innermost frame. */
void vst__flame_name(const vst__flame *tree, vst_id id);
/* Removes the innermost frame without counting a call; what ran inside it stays
 * counted. */
void vst__flame_drop(vst__flame *tree);
void vst__flame_allocated(vst__flame *tree, int64_t time_ns, uint64_t bytes);
/* Ends all open frames at the end of the range. */
void vst__flame_end(vst__flame *tree);
/* Computes own times, and removes empty rows. */
void vst__flame_finish(vst__flame *tree);

#endif
