/* The exporter "memory-timeline", in the formats of torch.profiler's
 * export_memory_timeline: single events if the name ends in raw.json.gz, a page
 * if it ends in .html, else [times in µs, [0 and the bytes of each category]].
 * All rows are kept in memory, 24 bytes each; the output is not. One thread at
 * a time uses a trace. */
#include "export/memory/memory_timeline.h"

#include <string.h>

#include "export/exporter.h"
#include "export/output/json.h"

static int64_t timeline_microseconds(const vst__memory_row *row)
{
    return row->time_ns < 0 ? VST_TIME_BEFORE : row->time_ns / 1000;
}

void vst__memory_timeline_add(vst__memory_timeline_point *point,
                              const vst__memory_row *row)
{
    int64_t *bytes = &point->bytes[row->category];

    point->time_us = timeline_microseconds(row);
    /* Sums may wrap around, because a damaged file may hold any values. */
    *bytes = (int64_t)((uint64_t)*bytes + (uint64_t)row->bytes);
}

/* Makes the next point, from all rows of one microsecond; `point` holds the
 * previous point, all zero at first. Returns false after the last. */
static bool next_point(const vst__memory_rows *rows, size_t *at,
                       vst__memory_timeline_point *point)
{
    if (*at == rows->count)
        return false;
    do
        vst__memory_timeline_add(point, &rows->rows[(*at)++]);
    while (*at < rows->count &&
           timeline_microseconds(&rows->rows[*at]) == point->time_us);
    return true;
}

/* Returns the time of the first row. */
static int64_t find_first_us(const vst__memory_rows *rows,
                             const vst_trace *trace)
{
    vst_trace_info info;

    for (size_t i = 0; i < rows->count; i++)
        if (rows->rows[i].time_ns >= 0)
            return rows->rows[i].time_ns / 1000;
    vst_trace_get_info(trace, &info);
    return info.start_ns / 1000;
}

static void timeline_put_number(vst__output *output, const char *before,
                                int64_t value)
{
    size_t count = strlen(before);
    char *at = vst__output_reserve(output, count + VST_JSON_NUMBER_MAX);

    memcpy(at, before, count);
    vst__output_commit(output, vst__json_i64(at + count, value));
}

static void put_points(vst__output *output, const vst__memory_rows *rows,
                       int64_t first_us)
{
    vst__memory_timeline_point point = {0};
    const char *before = "[[";

    for (size_t at = 0; next_point(rows, &at, &point); before = ", ")
        timeline_put_number(output, before,
                            point.time_us == VST_TIME_BEFORE ? first_us
                                                             : point.time_us);
    vst__output_text(output, rows->count != 0 ? "], [" : "[[], [");
    memset(&point, 0, sizeof point);
    before = "[0";
    for (size_t at = 0; next_point(rows, &at, &point); before = ", [0") {
        vst__output_text(output, before);
        for (size_t i = 0; i < VST_CATEGORIES; i++)
            timeline_put_number(output, ", ", point.bytes[i]);
        vst__output_text(output, "]");
    }
    vst__output_text(output, "]]");
}

static void put_raw(vst__output *output, const vst__memory_rows *rows)
{
    vst__output_text(output, "[");
    for (size_t i = 0; i < rows->count; i++) {
        const vst__memory_row *row = &rows->rows[i];
        timeline_put_number(output, i != 0 ? ", [" : "[", row->time_ns);
        timeline_put_number(output, ", ", row->action);
        timeline_put_number(output, ", ", row->bytes);
        timeline_put_number(output, ", ", row->category);
        vst__output_text(output, "]");
    }
    vst__output_text(output, "]");
}

static bool timeline_ends_with(const char *path, const char *suffix)
{
    size_t length = strlen(path), count = strlen(suffix);

    return length >= count && strcmp(path + length - count, suffix) == 0;
}

static vst_status write_timeline(vst_trace *const *traces, size_t count,
                                 const vst_export_options *options,
                                 vst__output *output, vst_error *error)
{
    const char *path = output->path;
    vst__memory_rows rows = {0};
    vst_status status;

    if (count != 1) /* addresses of several processes must not be mixed */
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    status = vst__memory_rows_read(&rows, traces[0], options->window, error);
    if (status == VST_OK) {
        int64_t first_us = find_first_us(&rows, traces[0]);
        if (timeline_ends_with(path, ".html") ||
            timeline_ends_with(path, ".html.gz"))
            status = vst__memory_timeline_page(&rows, first_us, output);
        else if (timeline_ends_with(path, "raw.json.gz") ||
                 timeline_ends_with(path, "raw.json"))
            put_raw(output, &rows);
        else
            put_points(output, &rows, first_us);
        if (status != VST_OK)
            vst_error_set(error, status, 0, 0);
    }
    vst__memory_rows_free(&rows);
    return status;
}

const vst__exporter vst__exporter_memory_timeline = {
    .name = "memory-timeline",
    .write = write_timeline,
};
