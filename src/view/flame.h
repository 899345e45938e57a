/* A tree of calls that a walk fills, for the part of it that lies in a range:
 * the flame graph. One thread at a time. */
#ifndef VST_VIEW_FLAME_H
#define VST_VIEW_FLAME_H

#include "base/map64.h"
#include "view/view.h"

typedef struct vst__flame_frame {
    int64_t start_ns;
    uint64_t serial; /* of the matcher's frame, while it matches */
    uint32_t node;
    bool part; /* of its parent: there was no room for a row, or it is hidden */
    unsigned char of, import_part; /* see replay/imports.h */
    unsigned char import;          /* what it imported, as far as is known */
    vst_id id, module;
} vst__flame_frame;

typedef struct vst__flame {
    int64_t from_ns, to_ns;
    const struct vst_imports *imports; /* NULL: they are not folded */
    vst_view_flame_row *rows;
    size_t count, capacity;
    vst__map64 children;  /* parent + 1, id -> 1 + row */
    uint32_t *last_child; /* of each row, the one that was looked up last */
    size_t last_capacity;
    /* What is open, and the rows of it. */
    vst__flame_frame *frames;
    size_t frame_count, frame_capacity;
} vst__flame;

/* Past these, calls are part of what called them. */
enum { VST_FLAME_ROWS_MAX = 1 << 20 };

void vst__flame_free(vst__flame *tree);
vst_status vst__flame_push(vst__flame *tree, vst_id id, int64_t start_ns);
/* The innermost ends. */
void vst__flame_pop(vst__flame *tree, int64_t end_ns, bool raised);
/* The innermost is part of an import, of the module with this name. */
void vst__flame_name(const vst__flame *tree, vst_id id);
/* Removes the top frame without counting it as a call; what ran inside it stays
 * counted. */
void vst__flame_drop(vst__flame *tree);
void vst__flame_allocated(vst__flame *tree, int64_t time_ns, uint64_t bytes);
/* Ends all that is open at the end of the range. */
void vst__flame_end(vst__flame *tree);
/* Own times from those of the children. */
void vst__flame_finish(vst__flame *tree);

#endif
