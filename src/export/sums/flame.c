/* A flame graph: a self-contained SVG. A frame is as wide as the time of its
 * calls, including the calls inside, and lies below its caller. In a browser,
 * flame_file.js replaces the picture with the viewer's flame graph, which can
 * be zoomed and searched. Without scripts, for example as an image in a page,
 * the file is a picture.
 *
 * Frames of less than a 50,000th of all time are left out; their time is part
 * of their callers'. One thread at a time. */
#include <stdio.h>
#include <stdlib.h>

#include "export/exporter.h"
#include "export/output/json.h"
#include "export/sums/tree.h"

#include "flame_script.h"

enum {
    WIDTH = 1180, /* pixels for the time of all calls */
    LEFT = 10,
    TOP = 40,
    ROW = 16,
    LEAST_SHARE = 50000,
    LEAST_LABEL = 24 /* least width for a part of the name */
};

typedef struct flame {
    const vst__tree *tree;
    vst__output *output;
    int64_t *total_ns; /* by node: its time including the nodes below */
    int64_t *begin_ns; /* by node: its left edge */
    int64_t *next_ns;  /* by node: the left edge of its next child */
    uint32_t *depth;
    int64_t all_ns;
    uint32_t deepest;
} flame;

/* Replaces characters that XML cannot hold. */
static const char *flame_replacement(unsigned char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    default:
        return c < 0x20 ? "\xef\xbf\xbd" : NULL;
    }
}

static void flame_put_text(vst__output *output, const char *bytes, size_t count)
{
    vst__output_utf8(output, bytes, count, flame_replacement);
}

/* ---- positions of frames ------------------------------------------------- */

/* Parents come before their children, so one backward pass adds up the times,
 * and one forward pass places the frames. */
static void flame_place(flame *self)
{
    const vst__tree *tree = self->tree;
    size_t count = tree->node_count;
    int64_t next_root_ns = 0;

    for (size_t i = 0; i < count; i++)
        self->total_ns[i] = tree->nodes[i].self_ns;
    for (size_t i = count; i-- > 0;) {
        if (tree->nodes[i].parent != VST_TREE_ROOT)
            self->total_ns[tree->nodes[i].parent] += self->total_ns[i];
        else
            self->all_ns += self->total_ns[i];
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t parent = tree->nodes[i].parent;
        bool root = parent == VST_TREE_ROOT;
        int64_t *next = root ? &next_root_ns : &self->next_ns[parent];

        self->depth[i] = root ? 0 : self->depth[parent] + 1;
        self->begin_ns[i] = self->next_ns[i] = *next;
        *next += self->total_ns[i];
    }
}

static bool is_shown(const flame *self, size_t index)
{
    return self->total_ns[index] > 0 &&
           self->total_ns[index] >= self->all_ns / LEAST_SHARE;
}

/* ---- drawing ------------------------------------------------------------- */

static void flame_put_number(vst__output *output, const char *format,
                             double value)
{
    char text[64];
    int count = snprintf(text, sizeof text, format, value);

    for (int i = 0; i < count; i++)
        if (text[i] == ',') /* the locale's decimal point */
            text[i] = '.';
    vst__output_write(output, text, (size_t)count);
}

/* Chooses warm colours for Python, green for C, blue for annotations, slightly
 * different for each function's name. */
static void put_colour(const flame *self, const vst__tree_node *node)
{
    static const int hues[] = {
        [VST_DEF_PYTHON] = 22,      [VST_DEF_NATIVE] = 95,
        [VST_DEF_ANNOTATION] = 210, [VST_DEF_OPERATOR] = 265,
        [VST_DEF_MODULE] = 180,     [VST_DEF_GC] = 330};
    uint32_t hash = 2166136261u;
    const vst__tree_function *f;
    int hue = 0;
    char text[48];

    if (node->function != VST_TREE_PROCESS) {
        f = &self->tree->functions[node->function];
        for (size_t i = 0; i < f->name_len; i++)
            hash = (hash ^ (unsigned char)f->name[i]) * 16777619u;
        if ((size_t)f->kind < sizeof hues / sizeof hues[0])
            hue = hues[f->kind];
    }
    snprintf(text, sizeof text, "hsl(%d,%u%%,%u%%)", hue + (int)(hash % 22),
             60 + hash / 32 % 25, 66 + hash / 1024 % 10);
    vst__output_text(self->output, text);
}

/* Draws a frame as a nested SVG, which cuts off the part of the name that has
 * no room. */
static void flame_put_frame(const flame *self, size_t index, uint32_t process)
{
    vst__output *output = self->output;
    const vst__tree_node *node = &self->tree->nodes[index];
    double x = (double)self->begin_ns[index] / (double)self->all_ns;
    double w = (double)self->total_ns[index] / (double)self->all_ns;

    vst__output_text(output, "<svg data-x=\"");
    flame_put_number(output, "%.12g", x);
    vst__output_text(output, "\" data-w=\"");
    flame_put_number(output, "%.12g", w);
    vst__output_text(output, "\" data-d=\"");
    vst__json_put_i64(output, self->depth[index]);
    vst__output_text(output, "\" x=\"");
    flame_put_number(output, "%.2f", LEFT + x * WIDTH);
    vst__output_text(output, "\" y=\"");
    vst__json_put_i64(output, TOP + (int64_t)self->depth[index] * ROW);
    vst__output_text(output, "\" width=\"");
    flame_put_number(output, "%.2f", w * WIDTH);
    vst__output_text(output, "\" height=\"15\" fill=\"");
    put_colour(self, node);
    vst__output_text(output, "\"><title>");
    vst__tree_put_name(self->tree, node, process, output, flame_put_text);
    vst__output_text(output, " (");
    flame_put_number(output, "%.3f ms", (double)self->total_ns[index] / 1e6);
    vst__output_text(output, ", ");
    flame_put_number(output, "%.2f%%", w * 100);
    vst__output_text(output, ", ");
    vst__json_put_i64(output, (int64_t)node->count);
    vst__output_text(output, " calls)</title><rect width=\"100%\" "
                             "height=\"15\"/>");
    if (w * WIDTH >= LEAST_LABEL) {
        vst__output_text(output, "<text x=\"3\" y=\"11\">");
        vst__tree_put_name(self->tree, node, process, output, flame_put_text);
        vst__output_text(output, "</text>");
    }
    vst__output_text(output, "</svg>\n");
}

static void flame_put_head(const flame *self)
{
    vst__output *output = self->output;
    char text[256];

    snprintf(text, sizeof text,
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
             "height=\"%u\" viewBox=\"0 0 %d %u\">\n",
             WIDTH + 2 * LEFT, TOP + (self->deepest + 2) * ROW,
             WIDTH + 2 * LEFT, TOP + (self->deepest + 2) * ROW);
    vst__output_text(output, text);
    vst__output_text(output,
                     "<style>text{font:11px monospace;fill:#000}</style>\n"
                     "<rect width=\"100%\" height=\"100%\" "
                     "fill=\"#fff\"/>\n<text x=\"10\" y=\"20\">");
    flame_put_number(output, "%.3f s", (double)self->all_ns / 1e9);
    vst__output_text(output, " in calls, of all threads</text>\n");
}

static void flame_put_all(flame *self)
{
    uint32_t process = UINT32_MAX;

    for (size_t i = 0; i < self->tree->node_count; i++)
        if (is_shown(self, i) && self->depth[i] > self->deepest)
            self->deepest = self->depth[i];
    flame_put_head(self);
    for (size_t i = 0; i < self->tree->node_count; i++) {
        process += self->tree->nodes[i].function == VST_TREE_PROCESS;
        if (is_shown(self, i))
            flame_put_frame(self, i, process);
    }
    vst__output_text(self->output, "<script><![CDATA[\n");
    vst__output_text(self->output, flame_script);
    vst__output_text(self->output, "]]></script>\n</svg>\n");
}

static vst_status flame_draw(const vst__tree *tree, vst__output *output)
{
    size_t count = tree->node_count + 1;
    flame self = {
        .tree = tree,
        .output = output,
        .total_ns = calloc(count, sizeof *self.total_ns),
        .begin_ns = calloc(count, sizeof *self.begin_ns),
        .next_ns = calloc(count, sizeof *self.next_ns),
        .depth = calloc(count, sizeof *self.depth),
    };
    bool failed = self.total_ns == NULL || self.begin_ns == NULL ||
                  self.next_ns == NULL || self.depth == NULL;

    if (!failed) {
        flame_place(&self);
        flame_put_all(&self);
    }
    free(self.total_ns);
    free(self.begin_ns);
    free(self.next_ns);
    free(self.depth);
    return failed ? VST_E_NOMEM : output->status;
}

static const vst__tree_format flamegraph = {.processes = true,
                                            .write = flame_draw};

const vst__exporter vst__exporter_flame = {"flamegraph", ".svg",
                                           .sums = &flamegraph};
