/* The page of a memory timeline: one self-contained file with a stacked area
 * for each category, a legend and the peak. A column of the plot shows its
 * moment of highest use. One thread at a time. */
#include "export/memory/memory_timeline.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory_timeline_head.h"

enum {
    COLUMNS = 1200,
    SCALE = 10, /* units per column */
    WIDTH = COLUMNS * SCALE,
    HEIGHT = 5000,
    GRID = 5 /* grid lines; the head's style says where they are */
};

/* torch.profiler's colours. */
static const char *const colours[VST_CATEGORIES] = {
    "darkgreen", "goldenrod",  "black",     "mediumpurple",
    "red",       "mediumblue", "royalblue", "grey",
};

typedef struct column {
    int64_t total;
    int64_t bytes[VST_CATEGORIES];
} column;

typedef struct plot {
    column columns[COLUMNS];
    column most; /* the moment of highest use */
    int64_t most_us;
    int64_t peaks[VST_CATEGORIES];
    int64_t first_us, length_us;
} plot;

static void html_put(vst__output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void html_put(vst__output *output, const char *format, ...)
{
    char text[512];
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    vst__output_text(output, text);
}

/* Formats bytes for people, with one decimal. */
static const char *size_text(char *text, size_t room, int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    long long tenths;

    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    tenths = (long long)(value * 10 + 0.5);
    if (unit == 0)
        snprintf(text, room, "%lld B", (long long)bytes);
    else
        snprintf(text, room, "%lld.%lld %s", tenths / 10, tenths % 10,
                 units[unit]);
    return text;
}

/* ---- the content of the plot --------------------------------------------- */

static column html_sum(const vst__memory_timeline_point *point)
{
    column all = {0};

    for (size_t i = 0; i < VST_CATEGORIES; i++) {
        all.bytes[i] = point->bytes[i] > 0 ? point->bytes[i] : 0;
        all.total = (int64_t)((uint64_t)all.total + (uint64_t)all.bytes[i]);
    }
    return all;
}

static void html_take(plot *self, const vst__memory_rows *rows)
{
    vst__memory_timeline_point point = {0};
    column now = {0};
    size_t reached = 0; /* all columns before this one are finished */

    for (size_t at = 0; at < rows->count; at++) {
        int64_t time_us;
        size_t place;

        vst__memory_timeline_add(&point, &rows->rows[at]);
        time_us =
            point.time_us == VST_TIME_BEFORE ? self->first_us : point.time_us;
        place = (size_t)((double)(time_us - self->first_us) * (COLUMNS - 1) /
                         (double)self->length_us);
        while (reached < place)
            self->columns[++reached] = now;
        now = html_sum(&point);
        if (now.total >= self->columns[place].total)
            self->columns[place] = now;
        if (now.total > self->most.total) {
            self->most = now;
            self->most_us = time_us;
        }
        for (size_t i = 0; i < VST_CATEGORIES; i++)
            if (now.bytes[i] > self->peaks[i])
                self->peaks[i] = now.bytes[i];
    }
    while (reached + 1 < COLUMNS)
        self->columns[++reached] = now;
}

/* ---- the page ------------------------------------------------------------ */

/* Returns the height of the upper edge of the first `categories` categories. */
static int html_height(const plot *self, int column_at, size_t categories)
{
    double bytes = 0,
           most = self->most.total > 0 ? (double)self->most.total : 1;

    for (size_t i = 0; i < categories; i++)
        bytes += (double)self->columns[column_at].bytes[i];
    bytes = bytes > most ? most : bytes;
    return HEIGHT - (int)(bytes / most * (HEIGHT * 0.95));
}

/* Writes the upper edge from left to right, then the lower edge back. */
static void put_area(vst__output *output, const plot *self, size_t category)
{
    int at = html_height(self, 0, category + 1);

    html_put(output, "<path fill=\"%s\" fill-opacity=\".7\" d=\"M0 %d",
             colours[category], at);
    for (int i = 1; i < COLUMNS; i++) {
        int next = html_height(self, i, category + 1);
        if (next != at)
            html_put(output, "H%dV%d", i * SCALE, next);
        at = next;
    }
    at = html_height(self, COLUMNS - 1, category);
    html_put(output, "H%dV%d", WIDTH, at);
    for (int i = COLUMNS - 1; i-- != 0;) {
        int next = html_height(self, i, category);
        if (next != at)
            html_put(output, "H%dV%d", (i + 1) * SCALE, next);
        at = next;
    }
    html_put(output, "H0Z\"><title>%s</title></path>\n",
             vst__category_names[category]);
}

static void put_plot(vst__output *output, const plot *self)
{
    char text[32];

    html_put(
        output,
        "<figure><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
        "role=\"img\" aria-label=\"bytes in use by category over time\">\n",
        WIDTH, HEIGHT);
    for (size_t i = 0; i < VST_CATEGORIES; i++)
        if (self->peaks[i] > 0)
            put_area(output, self, i);
    vst__output_text(output, "</svg>\n");
    for (int i = 0; i <= GRID; i++)
        html_put(output, "<span class=\"y y%d\">%s</span>\n", i,
                 size_text(text, sizeof text,
                           (int64_t)((double)self->most.total * i / GRID)));
    for (int i = 0; i <= GRID; i++) {
        long long us = (long long)(self->length_us * i / GRID);
        html_put(output, "<span class=\"x x%d\">%lld.%03lld ms</span>\n", i,
                 us / 1000, us % 1000);
    }
    vst__output_text(output, "</figure>\n");
}

static void put_legend(vst__output *output, const plot *self)
{
    char peak[32], then[32];

    vst__output_text(output, "<table><tr><th>category</th><th>at most</th>"
                             "<th>at the maximum</th></tr>\n");
    for (size_t i = 0; i < VST_CATEGORIES; i++)
        html_put(
            output,
            "<tr><td><svg class=\"c\" viewBox=\"0 0 1 1\"><rect width=\"1\" "
            "height=\"1\" fill=\"%s\"/></svg>%s</td>"
            "<td>%s</td><td>%s</td></tr>\n",
            colours[i], vst__category_names[i],
            size_text(peak, sizeof peak, self->peaks[i]),
            size_text(then, sizeof then, self->most.bytes[i]));
    vst__output_text(output, "</table>\n</body></html>\n");
}

vst_status vst__memory_timeline_page(const vst__memory_rows *rows,
                                     int64_t first_us, vst__output *output)
{
    plot *self = calloc(1, sizeof *self);
    char text[32];
    long long after_us;

    if (self == NULL)
        return VST_E_NOMEM;
    self->first_us = self->most_us = first_us;
    if (rows->count != 0 && rows->rows[rows->count - 1].time_ns >= 0)
        self->length_us = rows->rows[rows->count - 1].time_ns / 1000 - first_us;
    if (self->length_us < 1)
        self->length_us = 1;
    html_take(self, rows);
    after_us = (long long)(self->most_us - first_us);
    vst__output_text(output, memory_timeline_head);
    html_put(output,
             "<p>Maximum: <b>%s</b> (%lld bytes) after %lld.%03lld ms.</p>\n",
             size_text(text, sizeof text, self->most.total),
             (long long)self->most.total, after_us / 1000, after_us % 1000);
    put_plot(output, self);
    put_legend(output, self);
    free(self);
    return VST_OK;
}
