/* A self-contained page that shows a memory history: memory_page/page.html with
 * the data as JSON in place of its marker. If there are very many stacks, the
 * smallest are merged, so that the page stays small. One thread at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/memory/memory_export.h"
#include "memory_page.h"

enum { NODES_MAX = 50000, LINES_MAX = 500 };

static const char marker[] = "/*DATA*/";

/* ---- choosing nodes ------------------------------------------------------ */

typedef struct ranked {
    double share; /* the largest of the shares in each view */
    uint32_t index;
} ranked;

/* Sorts by share. With equal shares the parent comes first, because its index
 * is lower. */
static int by_share(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    if (x->share != y->share)
        return x->share > y->share ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static double share_of(const vst_memory_summary *s,
                       const vst_memory_amount *views)
{
    double most = 0;

    for (int view = 0; view < VST_MEMORY_VIEWS; view++) {
        double whole = s->views[view].bytes;
        double share = whole > 0 ? views[view].bytes / whole : 0;
        most = share > most ? share : most;
    }
    return most;
}

typedef struct page {
    vst__output *output;
    const vst_memory_summary *summary;
    uint32_t *place; /* by node: place on the page; UINT32_MAX: left out */
    uint32_t *order; /* the nodes on the page, by place */
    uint32_t count;
    uint32_t *frame_place; /* by frame: place on the page */
    uint32_t frame_count;
    uint32_t left_out;
    /* by place of the parent: sums of merged nodes */
    vst_memory_amount (*others)[VST_MEMORY_VIEWS];
    bool *has_others;
} page;

static vst_status choose_nodes(page *p)
{
    const vst_memory_summary *s = p->summary;
    ranked *nodes = malloc(s->node_count * sizeof *nodes);

    p->place = malloc(s->node_count * sizeof *p->place);
    p->order = malloc(s->node_count * sizeof *p->order);
    if (nodes == NULL || p->place == NULL || p->order == NULL) {
        free(nodes);
        return VST_E_NOMEM;
    }
    for (size_t i = 0; i < s->node_count; i++)
        nodes[i] = (ranked){i == 0 ? 2 : share_of(s, s->nodes[i].inclusive),
                            (uint32_t)i};
    if (s->node_count > NODES_MAX)
        qsort(nodes, s->node_count, sizeof *nodes, by_share);
    for (size_t i = 0; i < s->node_count; i++)
        p->place[nodes[i].index] = i < NODES_MAX ? 0 : UINT32_MAX;
    free(nodes);
    /* Keep the original order: parents first. */
    for (uint32_t i = 0; i < s->node_count; i++)
        if (p->place[i] == 0) {
            p->place[i] = p->count;
            p->order[p->count++] = i;
        }
    p->left_out = (uint32_t)(s->node_count - p->count);
    return VST_OK;
}

/* Adds whole branches that are left out to the node from which they branch off.
 */
static vst_status gather_others(page *p)
{
    const vst_memory_summary *s = p->summary;

    p->others = calloc(p->count, sizeof *p->others);
    p->has_others = calloc(p->count, sizeof *p->has_others);
    if (p->others == NULL || p->has_others == NULL)
        return VST_E_NOMEM;
    for (size_t i = 1; i < s->node_count && p->left_out != 0; i++) {
        uint32_t parent = p->place[s->nodes[i].parent];

        if (p->place[i] != UINT32_MAX || parent == UINT32_MAX)
            continue;
        p->has_others[parent] = true;
        for (int view = 0; view < VST_MEMORY_VIEWS; view++)
            vst__memory_amount_add(&p->others[parent][view],
                                   &s->nodes[i].inclusive[view]);
    }
    return VST_OK;
}

static uint32_t frame_place(page *p, uint32_t frame)
{
    if (p->frame_place[frame] == UINT32_MAX)
        p->frame_place[frame] = p->frame_count++;
    return p->frame_place[frame];
}

/* ---- writing ------------------------------------------------------------- */

static void html_comma(page *p, size_t i)
{
    if (i != 0)
        vst__output_write(p->output, ",", 1);
}

static void put_list(page *p, const char *name)
{
    vst__output_text(p->output, ",\n\"");
    vst__output_text(p->output, name);
    vst__output_text(p->output, "\":[");
}

static void put_tree(page *p)
{
    const vst_memory_summary *s = p->summary;
    size_t next = 0;

    put_list(p, "parents");
    for (uint32_t i = 0; i < p->count; i++) {
        html_comma(p, next++);
        vst__json_put_u64(p->output, p->place[s->nodes[p->order[i]].parent]);
    }
    for (uint32_t i = 0; i < p->count; i++)
        if (p->has_others[i]) {
            html_comma(p, next++);
            vst__json_put_u64(p->output, i);
        }
    vst__output_text(p->output, "]");
    put_list(p, "nodeFrames");
    next = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        html_comma(p, next++);
        vst__json_put_u64(p->output,
                          frame_place(p, s->nodes[p->order[i]].frame));
    }
    for (uint32_t i = 0; i < p->count; i++)
        if (p->has_others[i])
            vst__output_text(p->output, ",-1");
    vst__output_text(p->output, "]");
}

static void put_values(page *p, const char *name, int view, bool bytes)
{
    const vst_memory_summary *s = p->summary;
    size_t next = 0;

    put_list(p, name);
    for (uint32_t i = 0; i < p->count; i++) {
        const vst_memory_amount *own = &s->nodes[p->order[i]].own[view];
        html_comma(p, next++);
        vst__memory_put_round(p->output, bytes ? own->bytes : own->count);
    }
    for (uint32_t i = 0; i < p->count; i++)
        if (p->has_others[i]) {
            const vst_memory_amount *more = &p->others[i][view];
            html_comma(p, next++);
            vst__memory_put_round(p->output, bytes ? more->bytes : more->count);
        }
    vst__output_text(p->output, "]");
}

static void put_views(page *p)
{
    static const char *const names[][2] = {{"totalBytes", "totalCount"},
                                           {"peakBytes", "peakCount"},
                                           {"leaksBytes", "leaksCount"},
                                           {"temporaryBytes", "temporaryCount"},
                                           {"reservedBytes", "reservedCount"}};

    for (int view = 0; view < VST_MEMORY_VIEWS; view++) {
        put_values(p, names[view][0], view, true);
        put_values(p, names[view][1], view, false);
    }
}

static vst_status put_lines(page *p)
{
    const vst_memory_summary *s = p->summary;
    ranked *lines = malloc((s->line_count + 1) * sizeof *lines);

    if (lines == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < s->line_count; i++)
        lines[i] = (ranked){share_of(s, s->lines[i].own), (uint32_t)i};
    if (s->line_count != 0)
        qsort(lines, s->line_count, sizeof *lines, by_share);
    put_list(p, "lines");
    for (size_t i = 0; i < s->line_count && i < LINES_MAX; i++) {
        const vst_memory_line *line = &s->lines[lines[i].index];

        html_comma(p, i);
        vst__output_text(p->output, "[");
        vst__json_put_u64(p->output, frame_place(p, line->frame));
        for (int view = 0; view < VST_MEMORY_VIEWS; view++) {
            vst__output_text(p->output, ",");
            vst__memory_put_round(p->output, line->own[view].bytes);
            vst__output_text(p->output, ",");
            vst__memory_put_round(p->output, line->own[view].count);
        }
        vst__output_text(p->output, "]");
    }
    vst__output_text(p->output, "]");
    free(lines);
    return VST_OK;
}

static void put_curve(page *p, const char *name, const vst_memory_point *points,
                      size_t count)
{
    const vst_memory_summary *s = p->summary;

    put_list(p, name);
    for (size_t i = 0; i < count; i++) {
        const vst_memory_point *point = &points[i];

        html_comma(p, i);
        vst__output_text(p->output, "[");
        vst__json_put_i64(p->output, point->max_ns - s->first_ns);
        vst__output_text(p->output, ",");
        vst__memory_put_round(p->output, point->max_bytes);
        vst__output_text(p->output, ",");
        vst__json_put_i64(p->output, point->last_ns - s->first_ns);
        vst__output_text(p->output, ",");
        vst__memory_put_round(p->output, point->last_bytes);
        vst__output_text(p->output, "]");
    }
    vst__output_text(p->output, "]");
}

static void put_points(page *p)
{
    const vst_memory_summary *s = p->summary;

    put_curve(p, "points", s->points, s->point_count);
    put_curve(p, "residentPoints", s->resident.points, s->resident.point_count);
    vst__output_text(p->output, ",\"firstNs\":");
    vst__json_put_i64(p->output, s->first_ns);
}

/* Writes [function, file, line, native] for the frames on the page. */
static vst_status html_put_frames(page *p)
{
    const vst_memory_summary *s = p->summary;
    uint32_t *used = malloc((s->frame_count + 1) * sizeof *used);

    if (used == NULL)
        return VST_E_NOMEM;
    for (uint32_t i = 0; i < s->frame_count; i++)
        if (p->frame_place[i] != UINT32_MAX)
            used[p->frame_place[i]] = i;
    put_list(p, "frames");
    for (uint32_t i = 0; i < p->frame_count; i++) {
        const vst_memory_frame *frame = &s->frames[used[i]];
        size_t length;
        const char *file = vst__memory_file(frame, &length);

        vst__output_text(p->output, i == 0 ? "[" : ",\n[");
        vst__memory_put_string(p->output, frame->name, frame->name_len);
        vst__output_text(p->output, ",");
        vst__memory_put_string(p->output, file, length);
        vst__output_text(p->output, ",");
        vst__json_put_u64(p->output, frame->line);
        vst__output_text(p->output, frame->is_native ? ",1]" : ",0]");
    }
    vst__output_text(p->output, "]");
    free(used);
    return VST_OK;
}

static void put_sizes(page *p)
{
    put_list(p, "sizes");
    for (size_t i = 0; i < VST_MEMORY_SIZES; i++) {
        html_comma(p, i);
        vst__memory_put_round(p->output, p->summary->sizes[i].count);
    }
    vst__output_text(p->output, "]");
}

static vst_status write_process(page *p, const vst_trace *trace)
{
    const vst_memory_summary *s = p->summary;
    vst_status status = choose_nodes(p);

    if (status == VST_OK)
        status = gather_others(p);
    p->frame_place = malloc((s->frame_count + 1) * sizeof *p->frame_place);
    if (p->frame_place == NULL)
        status = VST_E_NOMEM;
    if (status != VST_OK)
        return status;
    for (size_t i = 0; i < s->frame_count; i++)
        p->frame_place[i] = UINT32_MAX;
    vst__output_text(p->output, "{");
    vst__memory_put_facts(p->output, trace, s);
    vst__output_text(p->output, ",\"leftOut\":");
    vst__json_put_u64(p->output, p->left_out);
    put_points(p);
    put_sizes(p);
    put_tree(p);
    put_views(p);
    status = put_lines(p);
    if (status == VST_OK)
        status = html_put_frames(p);
    vst__output_text(p->output, "}");
    return status != VST_OK ? status : p->output->status;
}

static vst_status write_processes(vst__memory_job *job)
{
    vst_status status = VST_OK;

    for (size_t i = 0; i < job->count && status == VST_OK; i++) {
        page p = {.output = job->output};
        vst_memory_summary *summary;

        status = vst__memory_job_summarize(job, i, NULL, &summary);
        if (status != VST_OK)
            return status;
        vst__output_text(job->output, i == 0 ? "\n" : ",\n");
        p.summary = summary;
        status = write_process(&p, job->traces[i]);
        free(p.place);
        free(p.order);
        free(p.frame_place);
        free(p.others);
        free(p.has_others);
        vst__memory_summary_free(summary);
    }
    return status;
}

static vst_status html_write(vst__memory_job *job)
{
    const char *at = strstr(memory_page, marker);
    vst_status status;

    vst__output_write(job->output, memory_page, (size_t)(at - memory_page));
    vst__output_text(job->output, "{\"processes\":[");
    status = write_processes(job);
    vst__output_text(job->output, "]}");
    vst__output_text(job->output, at + sizeof marker - 1);
    return status;
}

const vst__memory_format vst__memory_html = {".html", 1, html_write};
