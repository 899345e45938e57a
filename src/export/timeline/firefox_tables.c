/* What all threads of a profile share: what is said of the whole, counters,
 * functions and stacks. See firefox.h. One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "export/timeline/firefox.h"

const char *const vst__ff_kind_names[VST_FF_KINDS] = {
    "Other",   "Python",  "Native",   "Annotation", "Garbage collection",
    "Instant", "Counter", "Operator", "Module"};

static const char *const colors[VST_FF_KINDS] = {
    "grey",      "yellow",   "blue",   "green",  "orange",
    "lightblue", "darkgrey", "purple", "magenta"};

static const char *const strings[VST_FF_FUNCTIONS] = {
    [VST_FF_LOST] = "records lost",
    [VST_FF_GAP] = "not recorded",
    [VST_FF_DROPPED] = "records dropped",
    [VST_FF_MEMORY] = "live memory",
    [VST_FF_FRAMEWORK_MEMORY] = "live framework memory",
};

static void put_ms(vst__output *output, int64_t ns)
{
    char *at = vst__output_reserve(output, VST_JSON_NUMBER_MAX);

    vst__output_commit(output, vst__json_ms(at, ns));
}

void vst__ff_put_column(vst__firefox *self, const char *key, size_t count,
                        vst__ff_put put)
{
    vst__output *output = self->timeline.output;

    vst__output_text(output, ",\n\"");
    vst__output_text(output, key);
    vst__output_text(output, "\":[");
    for (size_t i = 0; i < count; i++) {
        char *at = vst__output_reserve(output, 2 * VST_JSON_NUMBER_MAX);

        if (i != 0)
            *at++ = ',';
        vst__output_commit(output, put(self, i, at));
    }
    vst__output_text(output, "]");
}

/* ---- of the whole ------------------------------------------------------- */

static void put_categories(vst__output *output)
{
    for (size_t i = 0; i < VST_FF_KINDS; i++) {
        vst__output_text(output, i != 0 ? ",{\"name\":\"" : "{\"name\":\"");
        vst__output_text(output, vst__ff_kind_names[i]);
        vst__output_text(output, "\",\"color\":\"");
        vst__output_text(output, colors[i]);
        vst__output_text(output, "\",\"subcategories\":[\"Other\"]}");
    }
}

static void put_schemas(vst__output *output)
{
    for (size_t i = 0; i < VST_FF_KINDS; i++) {
        vst__output_text(output, i != 0 ? ",\n{\"name\":\"" : "\n{\"name\":\"");
        vst__output_text(output, vst__ff_kind_names[i]);
        vst__output_text(
            output, "\",\"display\":[\"marker-chart\",\"marker-table\","
                    "\"timeline-overview\"],"
                    "\"tooltipLabel\":\"{marker.name}\","
                    "\"tableLabel\":\"{marker.data.args}\","
                    "\"chartLabel\":\"{marker.name}\","
                    "\"fields\":[{\"key\":\"args\",\"label\":\"Arguments\","
                    "\"format\":\"string\"}]}");
    }
}

void vst__ff_put_meta(vst__firefox *self, int64_t end_ns)
{
    vst__output *output = self->timeline.output;

    self->timeline.process = &self->timeline.processes[0];
    self->timeline.trace = self->timeline.process->trace;
    vst__output_text(output, "{\"meta\":{\"version\":31,"
                             "\"preprocessedProfileVersion\":63,"
                             "\"product\":");
    vst__timeline_put_long_name(&self->timeline, output);
    vst__output_text(output, ",\"importedFrom\":\"vestige\",\"startTime\":");
    put_ms(output, self->base_ns);
    vst__output_text(output, ",\"endTime\":");
    put_ms(output, end_ns);
    vst__output_text(output, ",\"profilingStartTime\":0,\"profilingEndTime\":");
    put_ms(output, end_ns - self->base_ns);
    vst__output_text(
        output,
        ",\"interval\":0.001,\"processType\":0,\"stackwalk\":1,"
        "\"symbolicated\":true,\"symbolicationNotSupported\":true,"
        "\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,"
        "\"keepProfileThreadOrder\":true,\n\"categories\":[");
    put_categories(output);
    vst__output_text(output, "],\n\"markerSchema\":[");
    put_schemas(output);
    vst__output_text(output, "]}");
}

/* ---- counters ----------------------------------------------------------- */

static void put_string(vst__firefox *self, uint32_t string)
{
    vst__output *output = self->timeline.output;
    const vst__tree_function *f;

    if (string < VST_FF_FUNCTIONS) {
        vst__json_string(output, strings[string], strlen(strings[string]));
        return;
    }
    f = &self->tree.functions[string - VST_FF_FUNCTIONS];
    vst__json_string(output, f->name, f->name_len);
}

static int by_counter(const void *a, const void *b)
{
    const vst__ff_point *x = a, *y = b;

    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The profiler draws the sum of what was counted so far: a point tells how much
 * more it is than the one before. */
static void put_points(vst__firefox *self, const vst__ff_point *points,
                       size_t count)
{
    vst__output *output = self->timeline.output;

    vst__output_text(output, ",\"samples\":{\"length\":");
    vst__json_put_u64(output, count);
    vst__output_text(output, ",\n\"time\":[");
    for (size_t i = 0; i < count; i++) {
        if (i != 0)
            vst__output_text(output, ",");
        put_ms(output, points[i].time_ns - self->base_ns);
    }
    vst__output_text(output, "],\n\"count\":[");
    for (size_t i = 0; i < count; i++) {
        double before = i != 0 ? points[i - 1].value : 0;
        char *at = vst__output_reserve(output, 2 * VST_JSON_NUMBER_MAX);

        if (i != 0)
            *at++ = ',';
        vst__output_commit(output,
                           vst__json_double(at, points[i].value - before));
    }
    vst__output_text(output, "]}");
}

static void put_counter(vst__firefox *self, const vst__ff_point *points,
                        size_t count)
{
    vst__output *output = self->timeline.output;
    bool memory = points->name < VST_FF_FUNCTIONS;

    vst__output_text(output, "{\"name\":");
    put_string(self, points->name);
    vst__output_text(output, memory ? ",\"category\":\"Memory\""
                                    : ",\"category\":\"Counter\"");
    vst__output_text(output, ",\"description\":\"\",\"pid\":\"");
    vst__json_put_u64(output, self->timeline.processes[points->process].pid);
    vst__output_text(output, "\",\"mainThreadIndex\":");
    vst__json_put_u64(output, self->main_threads[points->process]);
    vst__output_text(output, ",\"display\":{\"graphType\":\"line-accumulated\","
                             "\"unit\":\"");
    vst__output_text(output, memory ? "bytes" : "");
    vst__output_text(output, "\",\"color\":\"");
    vst__output_text(output, memory ? "orange" : "blue");
    vst__output_text(output, "\",\"markerSchemaLocation\":null,\"sortWeight\":"
                             "20,\"label\":");
    put_string(self, points->name);
    vst__output_text(output, ",\"tooltipRows\":[{\"type\":\"value\","
                             "\"source\":\"accumulated\",\"format\":"
                             "{\"unit\":\"");
    vst__output_text(output, memory ? "bytes" : "number");
    vst__output_text(output, "\"},\"label\":");
    put_string(self, points->name);
    vst__output_text(output, "}]}");
    put_points(self, points, count);
    vst__output_text(output, "}");
}

void vst__ff_put_counters(vst__firefox *self)
{
    vst__output *output = self->timeline.output;
    size_t count;

    if (self->point_count > 1)
        qsort(self->points, self->point_count, sizeof *self->points,
              by_counter);
    vst__output_text(output, ",\n\"counters\":[");
    for (size_t i = 0; i < self->point_count; i += count) {
        const vst__ff_point *first = &self->points[i];

        for (count = 1; i + count < self->point_count; count++)
            if (first[count].process != first->process ||
                first[count].name != first->name)
                break;
        vst__output_text(output, i != 0 ? ",\n" : "\n");
        put_counter(self, first, count);
    }
    vst__output_text(output, "]");
}

/* ---- functions and stacks ----------------------------------------------- */

static char *put_function_number(vst__firefox *self, size_t index, char *at)
{
    (void)self;
    return vst__json_u64(at, index);
}

static char *put_function_name(vst__firefox *self, size_t index, char *at)
{
    (void)self;
    return vst__json_u64(at, VST_FF_FUNCTIONS + index);
}

static char *put_category(vst__firefox *self, size_t index, char *at)
{
    return vst__json_u64(at, vst__ff_kind(self->tree.functions[index].kind));
}

static char *put_null(vst__firefox *self, size_t index, char *at)
{
    (void)self;
    (void)index;
    memcpy(at, "null", 4);
    return at + 4;
}

static char *put_zero(vst__firefox *self, size_t index, char *at)
{
    (void)self;
    (void)index;
    *at = '0';
    return at + 1;
}

static char *put_one(vst__firefox *self, size_t index, char *at)
{
    (void)self;
    (void)index;
    *at = '1';
    return at + 1;
}

static char *put_minus_one(vst__firefox *self, size_t index, char *at)
{
    (void)self;
    (void)index;
    memcpy(at, "-1", 2);
    return at + 2;
}

static char *put_false(vst__firefox *self, size_t index, char *at)
{
    (void)self;
    (void)index;
    memcpy(at, "false", 5);
    return at + 5;
}

static char *put_line(vst__firefox *self, size_t index, char *at)
{
    int32_t line = self->tree.functions[index].line;

    return line > 0 ? vst__json_i64(at, line) : put_null(self, index, at);
}

static char *put_stack_function(vst__firefox *self, size_t index, char *at)
{
    return vst__json_u64(at, self->stacks[index].function);
}

static char *put_stack_parent(vst__firefox *self, size_t index, char *at)
{
    uint32_t parent = self->stacks[index].parent;

    return parent != VST_FF_NO_STACK ? vst__json_u64(at, parent)
                                     : put_null(self, index, at);
}

/* The files of functions, each once: which of them a function is in. */
typedef struct files {
    uint32_t *of;    /* by function: 1 + number, 0: none */
    uint32_t *first; /* by number: a function that is in it */
    size_t count;
} files;

static vst_status find_files(vst__firefox *self, files *found)
{
    size_t functions = self->tree.function_count;
    vst__intern *known = vst__intern_create();
    vst_status status = VST_OK;

    found->of = calloc(functions + 1, sizeof *found->of);
    found->first = calloc(functions + 1, sizeof *found->first);
    if (known == NULL || found->of == NULL || found->first == NULL)
        status = VST_E_NOMEM;
    for (size_t i = 0; i < functions && status == VST_OK; i++) {
        const vst__tree_function *f = &self->tree.functions[i];

        if (f->file_len == 0)
            continue;
        found->of[i] = vst__intern_find(known, f->file, f->file_len);
        if (found->of[i] != 0)
            continue;
        found->first[found->count++] = (uint32_t)i;
        found->of[i] = (uint32_t)found->count;
        status = vst__intern_add(known, f->file, f->file_len, found->of[i]);
    }
    vst__intern_destroy(known);
    return status;
}

static void put_sources(vst__firefox *self, const files *found)
{
    vst__output *output = self->timeline.output;
    size_t strings_before = VST_FF_FUNCTIONS + self->tree.function_count;

    vst__output_text(output, ",\n\"sources\":{\"length\":");
    vst__json_put_u64(output, found->count);
    vst__output_text(output, ",\"filename\":[");
    for (size_t i = 0; i < found->count; i++) {
        if (i != 0)
            vst__output_text(output, ",");
        vst__json_put_u64(output, strings_before + i);
    }
    vst__output_text(output, "]");
    vst__ff_put_column(self, "id", found->count, put_null);
    vst__ff_put_column(self, "startLine", found->count, put_one);
    vst__ff_put_column(self, "startColumn", found->count, put_one);
    vst__ff_put_column(self, "sourceMapURL", found->count, put_null);
    vst__output_text(output, "}");
}

static void put_functions(vst__firefox *self, const files *found)
{
    vst__output *output = self->timeline.output;
    size_t count = self->tree.function_count;

    vst__output_text(output, ",\n\"funcTable\":{\"length\":");
    vst__json_put_u64(output, count);
    vst__ff_put_column(self, "name", count, put_function_name);
    vst__ff_put_column(self, "isJS", count, put_false);
    vst__ff_put_column(self, "relevantForJS", count, put_false);
    vst__ff_put_column(self, "resource", count, put_minus_one);
    vst__ff_put_column(self, "lineNumber", count, put_line);
    vst__ff_put_column(self, "columnNumber", count, put_null);
    vst__output_text(output, ",\n\"source\":[");
    for (size_t i = 0; i < count; i++) {
        if (i != 0)
            vst__output_text(output, ",");
        if (found->of[i] != 0)
            vst__json_put_u64(output, found->of[i] - 1);
        else
            vst__output_text(output, "null");
    }
    vst__output_text(output, "]}");
}

/* A function has one frame, of the same number. */
static void put_frames(vst__firefox *self)
{
    vst__output *output = self->timeline.output;
    size_t count = self->tree.function_count;

    vst__output_text(output, ",\n\"frameTable\":{\"length\":");
    vst__json_put_u64(output, count);
    vst__ff_put_column(self, "func", count, put_function_number);
    vst__ff_put_column(self, "category", count, put_category);
    vst__ff_put_column(self, "subcategory", count, put_zero);
    vst__ff_put_column(self, "line", count, put_line);
    vst__ff_put_column(self, "column", count, put_null);
    vst__ff_put_column(self, "address", count, put_minus_one);
    vst__ff_put_column(self, "inlineDepth", count, put_zero);
    vst__ff_put_column(self, "nativeSymbol", count, put_null);
    vst__ff_put_column(self, "innerWindowID", count, put_zero);
    vst__output_text(output, "}");
}

static void put_stacks(vst__firefox *self)
{
    vst__output *output = self->timeline.output;

    vst__output_text(output, "\"stackTable\":{\"length\":");
    vst__json_put_u64(output, self->stack_count);
    vst__ff_put_column(self, "frame", self->stack_count, put_stack_function);
    vst__ff_put_column(self, "prefix", self->stack_count, put_stack_parent);
    vst__output_text(output, "}");
}

vst_status vst__ff_put_shared(vst__firefox *self)
{
    vst__output *output = self->timeline.output;
    files found = {.count = 0};
    vst_status status = find_files(self, &found);
    size_t named = VST_FF_FUNCTIONS + self->tree.function_count;

    vst__output_text(output, ",\n\"shared\":{");
    if (status == VST_OK) {
        put_stacks(self);
        put_frames(self);
        put_functions(self, &found);
        put_sources(self, &found);
        vst__output_text(
            output,
            ",\n\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],"
            "\"host\":[],\"type\":[]},\n\"nativeSymbols\":{\"length\":0,"
            "\"libIndex\":[],\"address\":[],\"name\":[],"
            "\"functionSize\":[]},\n\"stringArray\":[");
        for (size_t i = 0; i < named; i++) {
            vst__output_text(output, i != 0 ? ",\n" : "\n");
            put_string(self, (uint32_t)i);
        }
        for (size_t i = 0; i < found.count; i++) {
            const vst__tree_function *f = &self->tree.functions[found.first[i]];
            vst__output_text(output, ",\n");
            vst__json_string(output, f->file, f->file_len);
        }
        vst__output_text(output, "]");
    }
    vst__output_text(output, "}");
    free(found.of);
    free(found.first);
    return status;
}
