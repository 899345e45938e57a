/* See flame.h. */
#include "view/flame.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/import_fold.h"

#define NO_ROW UINT32_MAX

void vst__flame_free(vst__flame *tree)
{
    free(tree->rows);
    free(tree->last_child);
    free(tree->frames);
    vst__map64_free(&tree->children);
    memset(tree, 0, sizeof *tree);
}

static vst_status flame_add_row(vst__flame *tree, uint32_t parent, vst_id id)
{
    if (!VST_RESERVE(tree->rows, tree->count + 1, tree->capacity))
        return VST_E_NOMEM;
    if (!VST_RESERVE(tree->last_child, tree->count + 1, tree->last_capacity))
        return VST_E_NOMEM;
    tree->last_child[tree->count] = NO_ROW;
    tree->rows[tree->count++] = (vst_view_flame_row){
        .parent = parent == NO_ROW ? -1 : (int64_t)parent, .id = id};
    return VST_OK;
}

static vst_status find_child(vst__flame *tree, uint32_t parent, vst_id id,
                             uint32_t *row)
{
    uint64_t key = (uint64_t)(parent + 1) << 32 | id;
    uint64_t *place;

    if (parent != NO_ROW && tree->last_child[parent] != NO_ROW &&
        tree->rows[tree->last_child[parent]].id == id) {
        *row = tree->last_child[parent];
        return VST_OK;
    }
    if (tree->count == VST_FLAME_ROWS_MAX && parent != NO_ROW) {
        place = vst__map64_find(&tree->children, key);
        *row = place != NULL ? (uint32_t)(*place - 1) : parent;
        return VST_OK;
    }
    place = vst__map64_put(&tree->children, key);
    if (place == NULL)
        return VST_E_NOMEM;
    if (*place == 0) {
        vst_status status = flame_add_row(tree, parent, id);
        if (status != VST_OK)
            return status;
        *place = tree->count;
    }
    *row = (uint32_t)(*place - 1);
    if (parent != NO_ROW)
        tree->last_child[parent] = *row;
    return VST_OK;
}

/* ---- imports ------------------------------------------------------------- */

static bool flame_is_hidden(const vst__flame_frame *frame)
{
    return frame->import_part == VST_PART_INSIDE ||
           frame->import_part == VST_PART_PLUMBING;
}

static void flame_classify(const vst__flame *tree, vst__flame_frame *frame)
{
    bool outermost = tree->frame_count == 0;

    frame->import_class = vst__imports_class(tree->imports, frame->id);
    frame->import_part = (unsigned char)vst__imports_part(
        frame->import_class,
        outermost ? (unsigned char)VST_CLASS_OTHER : frame[-1].import_class,
        outermost ? VST_PART_NONE : (vst__import_part)frame[-1].import_part);
    if (frame->import_part == VST_PART_IMPORT)
        frame->import = (unsigned char)vst__imports_after_frame(
            VST_IMPORT_NONE, frame->import_class);
}

static bool is_own_row(const vst__flame *tree, const vst__flame_frame *frame)
{
    return frame->import_part == VST_PART_IMPORT &&
           tree->count < VST_FLAME_ROWS_MAX;
}

/* Returns the index of the innermost import among the first `count` frames, or
 * -1. */
static ptrdiff_t flame_find_import(const vst__flame *tree, size_t count)
{
    size_t left = VST_IMPORT_FRAMES;

    for (size_t i = count; i-- != 0 && left != 0;) {
        if (tree->frames[i].import_part == VST_PART_IMPORT)
            return (ptrdiff_t)i;
        if (tree->frames[i].import_class == VST_CLASS_MODULE_CODE)
            return -1;
        left -= !flame_is_hidden(&tree->frames[i]);
    }
    return -1;
}

/* Gives the import around the top frame what this frame says about the imported
 * module. */
static void flame_note_import(const vst__flame *tree)
{
    const vst__flame_frame *top = &tree->frames[tree->frame_count - 1];
    vst__flame_frame *import;
    ptrdiff_t at;

    if (top->import_part != VST_PART_INSIDE &&
        top->import_class != VST_CLASS_MODULE_CODE)
        return;
    at = flame_find_import(tree, tree->frame_count - 1);
    if (at < 0 || tree->frames[at].import == VST_IMPORT_MODULE)
        return;
    import = &tree->frames[at];
    import->import = (unsigned char)vst__imports_after_frame(
        (vst_import)import->import, top->import_class);
    if (import->import == VST_IMPORT_MODULE)
        import->module = top->id;
}

void vst__flame_name(const vst__flame *tree, vst_id id)
{
    ptrdiff_t at =
        tree->imports != NULL ? flame_find_import(tree, tree->frame_count) : -1;
    vst__flame_frame *import = at >= 0 ? &tree->frames[at] : NULL;

    if (import == NULL || import->import == VST_IMPORT_MODULE)
        return;
    import->import =
        (unsigned char)vst__imports_after_name((vst_import)import->import);
    import->module = id;
}

/* Gives the row of a finished import its final id. While it is open, an import
 * has a row of its own, because only its end shows what it imported. Afterwards
 * the row gets the import's id, or is added to a sibling that has this id.
 * Returns the row. */
static uint32_t flame_name_row(vst__flame *tree, const vst__flame_frame *frame,
                               bool raised)
{
    uint32_t row = frame->node;
    int64_t parent = tree->rows[row].parent;
    vst_import what =
        vst__imports_at_end((vst_import)frame->import, frame->module, raised);
    vst_id id =
        vst__import_fold_id(tree->imports, what, frame->module, frame->id);
    uint64_t *place =
        vst__map64_put(&tree->children, (uint64_t)(parent + 1) << 32 | id);

    tree->rows[row].id = id;
    if (place == NULL) /* without memory there are two rows of this id */
        return row;
    if (*place == 0)
        *place = (uint64_t)row + 1;
    if (*place == (uint64_t)row + 1)
        return row;
    for (size_t i = row; i < tree->count; i++)
        if (tree->rows[i].parent == (int64_t)row)
            tree->rows[i].parent = (int64_t)*place - 1;
    tree->rows[*place - 1].self_bytes += tree->rows[row].self_bytes;
    tree->rows[row].self_bytes = 0;
    return (uint32_t)(*place - 1);
}

vst_status vst__flame_push(vst__flame *tree, vst_id id, int64_t start_ns)
{
    uint32_t parent = tree->frame_count != 0
                          ? tree->frames[tree->frame_count - 1].node
                          : NO_ROW;
    vst__flame_frame *frames = vst__grow(tree->frames, &tree->frame_capacity,
                                         tree->frame_count + 1, sizeof *frames);
    vst_status status = VST_OK;
    uint32_t row;

    if (frames == NULL)
        return VST_E_NOMEM;
    tree->frames = frames;
    frames += tree->frame_count;
    *frames = (vst__flame_frame){.start_ns = start_ns, .id = id};
    if (tree->imports != NULL)
        flame_classify(tree, frames);
    row = parent;
    if (is_own_row(tree, frames)) {
        status = flame_add_row(tree, parent, id);
        row = (uint32_t)(tree->count - 1);
    } else if (parent == NO_ROW || !flame_is_hidden(frames)) {
        status = find_child(tree, parent, id, &row);
    }
    if (status != VST_OK)
        return status;
    frames->node = row;
    frames->part = row == parent;
    tree->frame_count++;
    if (tree->imports != NULL)
        flame_note_import(tree);
    return VST_OK;
}

void vst__flame_pop(vst__flame *tree, int64_t end_ns, bool raised)
{
    const vst__flame_frame *top = &tree->frames[--tree->frame_count];
    int64_t start =
        top->start_ns > tree->from_ns ? top->start_ns : tree->from_ns;
    int64_t end = end_ns < tree->to_ns ? end_ns : tree->to_ns;
    vst_view_flame_row *row;

    row = &tree->rows[top->import_part == VST_PART_IMPORT && !top->part
                          ? flame_name_row(tree, top, raised)
                          : top->node];
    if (top->part || end_ns < tree->from_ns || top->start_ns >= tree->to_ns)
        return;
    row->count++;
    row->total_ns += end > start ? end - start : 0;
}

void vst__flame_drop(vst__flame *tree)
{
    tree->frame_count--;
}

void vst__flame_allocated(vst__flame *tree, int64_t time_ns, uint64_t bytes)
{
    if (tree->frame_count != 0 && time_ns >= tree->from_ns &&
        time_ns < tree->to_ns)
        tree->rows[tree->frames[tree->frame_count - 1].node].self_bytes +=
            bytes;
}

void vst__flame_end(vst__flame *tree)
{
    while (tree->frame_count != 0)
        vst__flame_pop(tree, tree->to_ns, false);
}

/* Removes rows with nothing in the range. A child always comes behind its
 * parent. */
static void flame_remove_empty(vst__flame *tree)
{
    /* no more look-ups follow, so reuse the array */
    uint32_t *moved = tree->last_child;
    size_t to = 0;

    for (size_t i = 0; i < tree->count; i++) {
        vst_view_flame_row row = tree->rows[i];

        if (row.count == 0 && row.total_ns == 0 && row.self_bytes == 0) {
            moved[i] = NO_ROW;
            continue;
        }
        if (row.parent >= 0)
            row.parent =
                moved[row.parent] == NO_ROW ? -1 : (int64_t)moved[row.parent];
        moved[i] = (uint32_t)to;
        tree->rows[to++] = row;
    }
    tree->count = to;
}

void vst__flame_finish(vst__flame *tree)
{
    /* Up to here, self_ns is the time of the children. */
    for (size_t i = tree->count; i-- != 0;) {
        vst_view_flame_row *row = &tree->rows[i];

        if (row->total_ns < row->self_ns) /* a child continued off the stack */
            row->total_ns = row->self_ns;
        if (row->parent >= 0)
            tree->rows[row->parent].self_ns += row->total_ns;
        row->self_ns = row->total_ns - row->self_ns;
    }
    flame_remove_empty(tree);
}
