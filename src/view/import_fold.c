/* See import_fold.h. */
#include "view/import_fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/walk_match.h"

#define DROPPED UINT32_MAX /* the depth of a span that is left out */

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

/* What was known of an import when the batch before ended. */
static vst__folded_import imports_look_up(const vst__import_fold *fold,
                                          size_t depth, int64_t start_ns,
                                          unsigned char of)
{
    vst__folded_import import = {.start_ns = start_ns,
                                 .what = vst__imports_say(VST_IMPORT_NONE, of)};

    if (depth < fold->known_count && fold->known[depth].start_ns == start_ns &&
        fold->known[depth].what != VST_IMPORT_NONE) {
        import = fold->known[depth];
        import.is_settled = import.what == VST_IMPORT_MODULE;
    }
    return import;
}

/* A frame of the import tells what it is of. Frames come backwards: the first
 * code of a module is met last. */
static void imports_tell(vst__folded_import *import, unsigned char of,
                         vst_id id)
{
    if (import->is_settled)
        return;
    if (of == VST_CLASS_MODULE_CODE) {
        import->what = VST_IMPORT_MODULE;
        import->module = id;
    } else if (import->what == VST_IMPORT_NONE ||
               import->what == VST_IMPORT_UNKNOWN) {
        import->what = vst__imports_say(import->what, of);
    }
}

/* Puts a frame on its level; `record` is for what it may import. The frame
 * around it is the one on the level below, if that was open then. */
static vst__folded_level *imports_enter(vst__import_fold *fold, size_t depth,
                                        vst_id id, int64_t start_ns,
                                        size_t record)
{
    const vst__folded_level none = {.of = VST_CLASS_OTHER};
    const vst__folded_level *around = &none;
    vst__folded_level *level = &fold->levels[depth];
    bool inner;

    if (depth != 0 && depth <= fold->level_count)
        around = level - 1;
    *level = (vst__folded_level){.start_ns = start_ns,
                                 .hidden = around->hidden,
                                 .of = vst__imports_class(fold->imports, id)};
    fold->level_count = depth + 1;
    if (around->start_ns > start_ns) /* what was around it left no span */
        around = &none;
    level->part = (unsigned char)vst__imports_part(
        level->of, around->of, (vst__import_part)around->part);
    inner = around->of != VST_CLASS_MODULE_CODE &&
            around->between < VST_IMPORT_FRAMES;
    level->import = inner ? around->import : 0;
    level->between = around->between + (level->part == VST_PART_NONE);
    level->hidden += imports_is_hidden(level);
    if (level->part == VST_PART_IMPORT) {
        fold->records[record] =
            imports_look_up(fold, depth, start_ns, level->of);
        level->import = record + 1;
        level->between = 0;
    } else if (level->import != 0 && (level->part == VST_PART_INSIDE ||
                                      level->of == VST_CLASS_MODULE_CODE)) {
        imports_tell(&fold->records[level->import - 1], level->of, id);
    }
    return level;
}

/* A name of the import that the level at this depth is part of. Names come
 * backwards, too: code of the module that ran later was met before. */
static void tell_name(vst__import_fold *fold, const vst__walk_span *name)
{
    const vst__folded_level *level = &fold->levels[name->depth - 1];
    vst__folded_import *import;

    if (name->depth > fold->level_count || level->import == 0 ||
        level->start_ns > name->start_ns)
        return;
    import = &fold->records[level->import - 1];
    if (import->what == VST_IMPORT_MODULE)
        return;
    import->what = vst__imports_say_named(import->what);
    import->module = name->id;
}

/* The id of an import, of which all that it ran was met. */
static vst_id imports_id_of(const vst__import_fold *fold,
                            const vst__folded_import *import, vst_id own,
                            bool raised)
{
    return vst__import_fold_id(
        fold->imports,
        vst__imports_settle(import->what, import->module, raised),
        import->module, own);
}

/* What is known of an import, for a checkpoint: a call has no pair. */
static uint64_t imports_pack(const vst__folded_import *import)
{
    return (uint64_t)import->module << 8 | (uint64_t)import->what;
}

vst_status vst__import_fold_begin(vst__import_fold *fold, const vst__open *open,
                                  size_t count)
{
    vst__folded_import *known =
        vst__grow(fold->known, &fold->known_capacity, count + 1, sizeof *known);

    fold->known_count = fold->open_count = 0;
    if (known == NULL)
        return VST_E_NOMEM;
    fold->known = known;
    for (size_t i = 0; i < count; i++) {
        uint64_t what = open[i].pair & 0xff, module = open[i].pair >> 8;

        known[i] = (vst__folded_import){.start_ns = open[i].start_ns};
        if (open[i].flags & VST_FRAME_BEGIN || what > VST_IMPORT_UNKNOWN ||
            module > fold->imports->max)
            continue;
        known[i].what = (vst_import)what;
        known[i].module = (vst_id)module;
    }
    fold->known_count = count;
    return VST_OK;
}

/* Keeps what is known of the imports that go on, and folds what is open. */
static vst_status keep_open(vst__import_fold *fold, vst__open *open,
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
        fold->records[i] = import; /* and not what was known before */
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

/* Enters what is open. Whether none of it is of an import. */
static bool enter_open(vst__import_fold *fold, const vst__open *open,
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

/* Outside of an import these are as any other call. */
static bool is_harmless(const vst__import_fold *fold, vst_id id)
{
    unsigned of = vst__imports_class(fold->imports, id);

    return of == VST_CLASS_OTHER || of == VST_CLASS_NATIVE ||
           of == VST_CLASS_MODULE_CODE;
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
                tell_name(fold, span);
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
        is_plain &= is_harmless(fold, walk->spans[i].id) &&
                    walk->spans[i].is_import != VST_WALK_NAMES;
    }
    status = imports_make_room(fold, (deepest > count ? deepest : count) + 1,
                               count + walk->span_count);
    if (status != VST_OK)
        return status;
    /* Most batches have nothing to fold. */
    is_plain &= enter_open(fold, open, count);
    if (!is_plain)
        fold_spans(fold, walk, count);
    return keep_open(fold, open, count);
}
