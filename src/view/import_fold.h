/* Folds imports in the output of a walk: frames of the import system are left
 * out, and the calls inside them move up, by the rules of replay
 * (replay/imports.h). An import gets an id of its own, above those that the
 * trace defines: vst__import_fold_id. One thread at a time, like the walk.
 *
 * Spans arrive in the order of their ends. So reading a batch backwards gives
 * each span before the spans inside it; the frames that are open at the end of
 * the batch enclose all of them. */
#ifndef VST_VIEW_IMPORT_FOLD_H
#define VST_VIEW_IMPORT_FOLD_H

#include "replay/imports.h"
#include "view/view.h"

struct vst__open;
struct vst__walk;

/* Facts about an import. */
typedef struct vst__folded_import {
    int64_t start_ns;
    vst_import what;
    vst_id module;
    bool is_final; /* the import's module is known from an earlier batch */
} vst__folded_import;

typedef struct vst__folded_level {
    int64_t start_ns;
    /* 1 + the record of the import around it, or of itself; 0: none */
    size_t import;
    uint32_t hidden;  /* hidden frames up to and including this one */
    uint32_t between; /* visible frames since the import */
    unsigned char import_class, part;
} vst__folded_level;

typedef struct vst__import_fold {
    const vst_imports *imports; /* NULL: nothing is folded */
    /* by depth: the frames around the span being read */
    vst__folded_level *levels;
    size_t level_count, level_capacity;
    /* first of the open frames, then of the batch's spans */
    vst__folded_import *records;
    size_t record_capacity;
    /* by depth: imports that were open after the previous batch */
    vst__folded_import *known;
    size_t known_count, known_capacity;
    struct vst__open *open; /* the open frames after folding */
    size_t open_count, open_capacity;
} vst__import_fold;

void vst__import_fold_free(vst__import_fold *fold);
/* Begins at another place, where the given frames are open. */
vst_status vst__import_fold_begin(vst__import_fold *fold,
                                  const struct vst__open *open, size_t count);
/* Folds the spans of a batch, and the frames that are open behind it. */
vst_status vst__import_fold_batch(struct vst__walk *walk);

/* Returns the id by which an import is shown; `own` if `what` is
 * VST_IMPORT_NONE. */
static inline vst_id vst__import_fold_id(const vst_imports *imports,
                                         vst_import what, vst_id module,
                                         vst_id own)
{
    if (what == VST_IMPORT_NONE)
        return own;
    return vst_view_import_id(imports->max, what, module);
}

/* Returns whether two ids may belong to one span, of which one was read before
 * its imported module was known. */
static inline bool vst__import_fold_is_same(const vst_imports *imports,
                                            vst_id a, vst_id b)
{
    return a == b ||
           (imports != NULL && (a > imports->max || b > imports->max));
}

#endif
