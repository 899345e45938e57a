/* See import_fold.h. */
#include "view/import_fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/walk_match.h"

#define DROPPED UINT32_MAX /* depth of a span that is left out */

void vst__import_fold_free(vst__import_fold *fold)
{
    free(fold->levels);
    free(fold->records);
    free(fold->known);
    free(fold->open);
    memset(fold, 0, sizeof *fold);
}

static bool imports_is_hidden(const vst__folded_level *level)
{
    return level->part == VST_PART_INSIDE || level->part == VST_PART_PLUMBING;
}

static vst_status imports_make_room(vst__import_fold *fold, size_t depth,
                                    size_t records)
{
    vst__folded_level *levels = vst__grow(fold->levels, &fold->level_capacity,
                                          depth + 1, sizeof *levels);
    vst__folded_import *made = vst__grow(fold->records, &fold->record_capacity,
                                         records + 1, sizeof *made);

    if (levels != NULL)
        fold->levels = levels;
    if (made != NULL)
        fold->records = made;
    return levels != NULL && made != NULL ? VST_OK : VST_E_NOMEM;
}

/* Returns what was known of an import when the previous batch ended. */
static vst__folded_import imports_look_up(const vst__import_fold *fold,
                                          size_t depth, int64_t start_ns,
                                          unsigned char import_class)
{
    vst__folded_import import = {
        .start_ns = start_ns,
        .what = vst__imports_after_frame(VST_IMPORT_NONE, import_class)};

    if (depth < fold->known_count && fold->known[depth].start_ns == start_ns &&
        fold->known[depth].what != VST_IMPORT_NONE) {
        import = fold->known[depth];
        import.is_final = import.what == VST_IMPORT_MODULE;
    }
    return import;
}

/* Notes what a frame says about the import around it. Frames are read
 * backwards, so the first code of a module is read last, and wins. */
static void imports_note_frame(vst__folded_import *import,
                               unsigned char import_class, vst_id id)
{
    if (import->is_final)
        return;
    if (import_class == VST_CLASS_MODULE_CODE) {
        import->what = VST_IMPORT_MODULE;
        import->module = id;
    } else if (import->what == VST_IMPORT_NONE ||
               import->what == VST_IMPORT_UNKNOWN) {
        import->what = vst__imports_after_frame(import->what, import_class);
    }
}

/* Puts a frame on its level; if the frame is an import, `record` is the index
 * of its record. The frame around it is on the level below, if that frame was
 * open at the time. */
static vst__folded_level *imports_enter(vst__import_fold *fold, size_t depth,
                                        vst_id id, int64_t start_ns,
                                        size_t record)
{
    const vst__folded_level none = {.import_class = VST_CLASS_OTHER};
    const vst__folded_level *around = &none;
    vst__folded_level *level = &fold->levels[depth];
    bool inner;

    if (depth != 0 && depth <= fold->level_count)
        around = level - 1;
    *level = (vst__folded_level){.start_ns = start_ns,
                                 .hidden = around->hidden,
                                 .import_class =
                                     vst__imports_class(fold->imports, id)};
    fold->level_count = depth + 1;
    if (around->start_ns > start_ns) /* the frame around it left no span */
        around = &none;
    level->part = (unsigned char)vst__imports_part(
        level->import_class, around->import_class,
        (vst__import_part)around->part);
    inner = around->import_class != VST_CLASS_MODULE_CODE &&
            around->between < VST_IMPORT_FRAMES;
    level->import = inner ? around->import : 0;
    level->between = around->between + (level->part == VST_PART_NONE);
    level->hidden += imports_is_hidden(level);
    if (level->part == VST_PART_IMPORT) {
        fold->records[record] =
            imports_look_up(fold, depth, start_ns, level->import_class);
        level->import = record + 1;
        level->between = 0;
    } else if (level->import != 0 &&
               (level->part == VST_PART_INSIDE ||
                level->import_class == VST_CLASS_MODULE_CODE)) {
        imports_note_frame(&fold->records[level->import - 1],
                           level->import_class, id);
    }
    return level;
}

/* Gives a module's name to the import around the level at this depth. Names are
 * read backwards, too: code of the module, which ran later, has been read
 * before and wins. */
static void imports_note_name(vst__import_fold *fold,
                              const vst__walk_span *name)
{
    const vst__folded_level *level = &fold->levels[name->depth - 1];
    vst__folded_import *import;

    if (name->depth > fold->level_count || level->import == 0 ||
        level->start_ns > name->start_ns)
        return;
    import = &fold->records[level->import - 1];
    if (import->what == VST_IMPORT_MODULE)
        return;
    import->what = vst__imports_after_name(import->what);
    import->module = name->id;
}

/* Returns the shown id of an import whose whole content has been read. */
static vst_id imports_id_of(const vst__import_fold *fold,
                            const vst__folded_import *import, vst_id own,
                            bool raised)
{
    return vst__import_fold_id(
        fold->imports,
        vst__imports_at_end(import->what, import->module, raised),
        import->module, own);
}

/* Packs what is known of an import into the `pair` of a checkpoint's frame,
 * which is unused for calls. */
static uint64_t imports_pack(const vst__folded_import *import)
{
    return (uint64_t)import->module << 8 | (uint64_t)import->what;
}

vst_status vst__import_fold_begin(vst__import_fold *fold, const vst__open *open,
                                  size_t count)
{
    fold->known_count = fold->open_count = 0;

    if (!VST_RESERVE(fold->known, count + 1, fold->known_capacity))
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        uint64_t what = open[i].pair & 0xff, module = open[i].pair >> 8;

        fold->known[i] = (vst__folded_import){.start_ns = open[i].start_ns};
        if (open[i].flags & VST_FRAME_BEGIN || what > VST_IMPORT_UNKNOWN ||
            module > fold->imports->max)
            continue;
        fold->known[i].what = (vst_import)what;
        fold->known[i].module = (vst_id)module;
    }
    fold->known_count = count;
    return VST_OK;
}

/* Keeps what is known of the imports that are still open, and folds the open
 * frames. */
static vst_status imports_keep_open(vst__import_fold *fold, vst__open *open,
                                    size_t count)
{
    vst__folded_import *known =
        vst__grow(fold->known, &fold->known_capacity, count + 1, sizeof *known);
    vst__open *folded =
        vst__grow(fold->open, &fold->open_capacity, count + 1, sizeof *folded);
    size_t made = 0;

    if (known != NULL)
        fold->known = known;
    if (folded != NULL)
        fold->open = folded;
    if (known == NULL || folded == NULL)
        return VST_E_NOMEM;
    fold->level_count = 0;
    for (size_t i = 0; i < count; i++) {
        vst__folded_import import = fold->records[i];
        const vst__folded_level *level;

        level = imports_enter(fold, i, open[i].id, open[i].start_ns, i);
        /* discard what was known before this batch */
        fold->records[i] = import;
        known[i] = (vst__folded_import){.what = VST_IMPORT_NONE};
        if (imports_is_hidden(level))
            continue;
        folded[made] = open[i];
        if (level->part == VST_PART_IMPORT) {
            known[i] = import;
            open[i].pair = imports_pack(&import);
            folded[made].id = imports_id_of(fold, &import, open[i].id, false);
        }
        made++;
    }
    fold->known_count = count;
    fold->open_count = made;
    return VST_OK;
}

/* Enters the open frames. Returns whether none of them belongs to an import. */
static bool imports_enter_open(vst__import_fold *fold, const vst__open *open,
                               size_t count)
{
    bool is_plain = true;

    fold->level_count = 0;
    for (size_t i = 0; i < count; i++)
        is_plain &=
            imports_enter(fold, i, open[i].id, open[i].start_ns, i)->part ==
            VST_PART_NONE;
    return is_plain;
}

/* Returns whether a function is an ordinary call outside of imports. */
static bool imports_is_ordinary(const vst__import_fold *fold, vst_id id)
{
    unsigned import_class = vst__imports_class(fold->imports, id);

    return import_class == VST_CLASS_OTHER ||
           import_class == VST_CLASS_NATIVE ||
           import_class == VST_CLASS_MODULE_CODE;
}

static void fold_spans(vst__import_fold *fold, vst__walk *walk, size_t count)
{
    size_t kept = 0;

    for (size_t i = walk->span_count; i-- != 0;) {
        vst__walk_span *span = &walk->spans[i];
        const vst__folded_level *level;

        if (span->flags & VST_SPAN_ASYNC)
            continue;
        if (span->is_import == VST_WALK_NAMES) {
            if (span->depth != 0)
                imports_note_name(fold, span);
            span->depth = DROPPED;
            continue;
        }
        level = imports_enter(fold, span->depth, span->id, span->start_ns,
                              count + i);
        span->is_import = level->part == VST_PART_IMPORT;
        span->depth =
            imports_is_hidden(level) ? DROPPED : span->depth - level->hidden;
    }
    for (size_t i = 0; i < walk->span_count; i++) {
        if (walk->spans[i].depth == DROPPED)
            continue;
        if (walk->spans[i].is_import)
            walk->spans[i].id = imports_id_of(
                fold, &fold->records[count + i], walk->spans[i].id,
                walk->spans[i].flags & VST_SPAN_RAISED);
        walk->spans[kept++] = walk->spans[i];
    }
    walk->span_count = kept;
}

vst_status vst__import_fold_batch(vst__walk *walk)
{
    vst__import_fold *fold = &walk->fold;
    size_t count, deepest = 0;
    vst__open *open = vst__walk_all_open(walk, &count);
    bool is_plain = true;
    vst_status status;

    if (open == NULL)
        return VST_E_NOMEM;
    if (walk->finished)
        count = 0;
    for (size_t i = 0; i < walk->span_count; i++) {
        if (walk->spans[i].depth > deepest)
            deepest = walk->spans[i].depth;
        is_plain &= imports_is_ordinary(fold, walk->spans[i].id) &&
                    walk->spans[i].is_import != VST_WALK_NAMES;
    }
    status = imports_make_room(fold, (deepest > count ? deepest : count) + 1,
                               count + walk->span_count);
    if (status != VST_OK)
        return status;
    /* Most batches have nothing to fold. */
    is_plain &= imports_enter_open(fold, open, count);
    if (!is_plain)
        fold_spans(fold, walk, count);
    return imports_keep_open(fold, open, count);
}
