/* Folds imports in what a walk gives: frames of the import system are left out,
 * and what is inside of them moves up. The rules are those of replay
 * (replay/imports.h). An import gets an id of its own, behind those that the
 * trace defines: vst__import_fold_id. One thread at a time, as the walk.
 *
 * Spans come in the order of their ends, so that a batch read backwards has
 * each before what is inside of it; the frames that are open when it ends are
 * around all of them. */
#ifndef VST_VIEW_IMPORT_FOLD_H
#define VST_VIEW_IMPORT_FOLD_H

#include "replay/imports.h"
#include "view/view.h"

struct vst__open;
struct vst__walk;

/* What is known of an import. */
typedef struct vst__folded_import {
    int64_t start_ns;
    vst_import what;
    vst_id module;
    bool is_settled; /* the first code of it ran before this batch */
} vst__folded_import;

typedef struct vst__folded_level {
    int64_t start_ns;
    size_t import;    /* 1 + the record of the import around it, or its own */
    uint32_t hidden;  /* frames up to this one */
    uint32_t between; /* visible frames since the import */
    unsigned char of, part;
} vst__folded_level;

typedef struct vst__import_fold {
    const vst_imports *imports; /* NULL: nothing is folded */
    vst__folded_level *levels;  /* by depth: around the span that is read */
    size_t level_count, level_capacity;
    vst__folded_import *records; /* of what is open, then of the spans */
    size_t record_capacity;
    vst__folded_import *known; /* by depth: imports that were open before */
    size_t known_count, known_capacity;
    struct vst__open *open; /* what is open, folded */
    size_t open_count, open_capacity;
} vst__import_fold;

void vst__import_fold_free(vst__import_fold *fold);
/* The walk begins elsewhere; these are open there. */
vst_status vst__import_fold_begin(vst__import_fold *fold,
                                  const struct vst__open *open, size_t count);
/* Folds the spans of a batch, and what is open behind it. */
vst_status vst__import_fold_batch(struct vst__walk *walk);

/* The id that an import is shown by; VST_IMPORT_NONE: its own. */
static inline vst_id vst__import_fold_id(const vst_imports *imports,
                                         vst_import what, vst_id module,
                                         vst_id own)
{
    if (what == VST_IMPORT_NONE)
        return own;
    return vst_view_import_id(imports->max, what, module);
}

/* Whether two ids may be those of one span, of which one was met before it was
 * known what it imports. */
static inline bool vst__import_fold_is_same(const vst_imports *imports,
                                            vst_id a, vst_id b)
{
    return a == b ||
           (imports != NULL && (a > imports->max || b > imports->max));
}

#endif
