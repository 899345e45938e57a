/* Texts and numbers that the formats of a memory history share. One thread at
 * a time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "export/memory/memory_export.h"
#include "export/output/json.h"

/* ---- numbers and strings ------------------------------------------------- */

void vst__memory_put_round(vst__output *output, double value)
{
    vst__json_put_double(output, round(value));
}

void vst__memory_put_string(vst__output *output, const char *bytes,
                            size_t count)
{
    const char *end = bytes + count;

    vst__output_write(output, "\"", 1);
    while (bytes != end) {
        const char *stop = memchr(bytes, '<', (size_t)(end - bytes));
        const char *part = stop != NULL ? stop : end;

        vst__json_put_escaped(output, bytes, (size_t)(part - bytes));
        bytes = part;
        if (stop != NULL) {
            vst__output_text(output, "\\u003c");
            bytes++;
        }
    }
    vst__output_write(output, "\"", 1);
}

static void put_amount(vst__output *output, const vst_memory_summary *s,
                       int view)
{
    const vst_memory_amount *amount = &s->views[view];

    vst__output_text(output, "{\"count\": ");
    vst__memory_put_round(output, amount->count);
    vst__output_text(output, ", \"bytes\": ");
    vst__memory_put_round(output, amount->bytes);
    if (s->is_sampled) {
        vst__output_text(output, ", \"count_error\": ");
        vst__memory_put_round(output, sqrt(s->count_variance[view]));
        vst__output_text(output, ", \"bytes_error\": ");
        vst__memory_put_round(output, sqrt(amount->variance));
    }
    vst__output_text(output, "}");
}

static void put_member(vst__output *output, const char *key, uint64_t value)
{
    vst__output_text(output, key);
    vst__json_put_u64(output, value);
}

/* Writes the resident set, if it is known. */
static void put_resident(vst__output *output, const vst_memory_summary *s)
{
    if (s->resident.peak == 0)
        return;
    put_member(output, ", \"resident\": {\"peak\": ", s->resident.peak);
    put_member(output, ", \"before\": ", s->resident.before);
    put_member(output, ", \"sampled\": ", s->resident.sampled);
    put_member(output, ", \"files\": ", s->resident.sampled_files);
    vst__output_text(output, ", \"live\": ");
    vst__memory_put_round(output, s->resident.sampled_live);
    vst__output_text(output, ", \"sampled_ns\": ");
    vst__json_put_i64(output, s->resident.sampled_ns);
    vst__output_text(output, "}");
}

void vst__memory_put_facts(vst__output *output, const vst_trace *trace,
                           const vst_memory_summary *s)
{
    vst_trace_info info;
    const char *command = vst_trace_metadata(trace, "vestige.command");
    char id[33];

    vst_trace_get_info(trace, &info);
    for (int i = 0; i < 16; i++)
        snprintf(id + 2 * i, 3, "%02X", info.trace_id[i]);
    put_member(output, "\"pid\": ", info.pid);
    vst__output_text(output, ", \"trace_id\": \"");
    vst__output_text(output, id);
    vst__output_text(output, "\", \"command\": ");
    /* The command is written as a string, even if it is JSON. */
    vst__memory_put_string(output, command != NULL ? command : "",
                           command != NULL ? strlen(command) : 0);
    vst__output_text(output, ", \"start_ns\": ");
    vst__json_put_i64(output, info.start_ns);
    vst__output_text(output, ", \"end_ns\": ");
    vst__json_put_i64(output, info.end_ns);
    vst__output_text(output, info.clean ? ", \"complete\": true"
                                        : ", \"complete\": false");
    put_member(output, ", \"lost\": ", s->lost);
    put_member(output, ", \"dropped\": ", info.dropped);
    put_member(output, ", \"records\": ", s->records);
    put_member(output, ", \"frees\": ", s->frees);
    put_member(output, ", \"unknown_frees\": ", s->unknown_frees);
    vst__output_text(output, s->is_sampled ? ", \"sampled\": true"
                                           : ", \"sampled\": false");
    put_member(output, ", \"temporary_within\": ", s->temporary);
    vst__output_text(output, ", \"peak_ns\": ");
    vst__json_put_i64(output, s->peak_ns);
    put_resident(output, s);
    for (int view = 0; view < VST_MEMORY_VIEWS; view++) {
        if (view == VST_MEMORY_RESERVED && s->views[view].count == 0)
            continue;
        vst__output_text(output, ", \"");
        vst__output_text(output, vst_memory_view_name((vst_memory_view)view));
        vst__output_text(output, "\": ");
        if (view == VST_MEMORY_TEMPORARY && s->is_sampled)
            vst__output_text(output, "null");
        else
            put_amount(output, s, view);
    }
}

/* ---- frames -------------------------------------------------------------- */

/* Appends a name without characters that would end the frame, the field or the
 * line, and without invalid UTF-8. */
static void append_name(vst__text *t, const char *bytes, size_t count,
                        unsigned style)
{
    const unsigned char *at = (const unsigned char *)bytes, *end = at + count;

    while (at != end) {
        size_t size = vst__json_utf8(at, end);

        if (size == 0)
            vst__text_add(t, "\xef\xbf\xbd", 3);
        else if (*at < 0x20 || *at == ';' || *at == 0x7f)
            vst__text_add(t, "_", 1);
        else if (*at == '"' && (style & VST_TEXT_QUOTED) != 0)
            vst__text_add(t, "\"\"", 2);
        else
            vst__text_add(t, (const char *)at, size);
        at += size != 0 ? size : 1;
    }
}

static void append_place(vst__text *t, const vst_memory_frame *frame,
                         unsigned style)
{
    char number[16];
    size_t length = frame->file_len;
    const char *file = (style & VST_TEXT_FOLDED) != 0
                           ? vst__memory_file(frame, &length)
                           : frame->file;

    append_name(t, file, length, style);
    if (frame->line != 0) {
        snprintf(number, sizeof number, ":%u", (unsigned)frame->line);
        vst__text_add(t, number, strlen(number));
    }
}

static void append_frame(vst__text *t, const vst_memory_frame *frame,
                         unsigned style)
{
    bool folded = (style & VST_TEXT_FOLDED) != 0;

    if (frame->file_len == 0) {
        append_name(t, frame->name, frame->name_len, style);
    } else if (folded) {
        append_name(t, frame->name, frame->name_len, style);
        vst__text_add(t, " (", 2);
        append_place(t, frame, style);
        vst__text_add(t, ")", 1);
    } else {
        append_place(t, frame, style);
        vst__text_add(t, " ", 1);
        append_name(t, frame->name, frame->name_len, style);
    }
}

vst_status vst__memory_texts_make(vst__memory_texts *texts,
                                  const vst_memory_summary *s, unsigned style)
{
    vst__text t = {0};
    vst_status status;

    *texts = (vst__memory_texts){
        .texts = calloc(s->frame_count + 1, sizeof *texts->texts),
        .lengths = calloc(s->frame_count + 1, sizeof *texts->lengths)};
    status =
        texts->texts != NULL && texts->lengths != NULL ? VST_OK : VST_E_NOMEM;
    for (size_t i = 0; i < s->frame_count && status == VST_OK; i++) {
        t.count = 0;
        append_frame(&t, &s->frames[i], style);
        texts->lengths[i] = t.count;
        texts->texts[i] = vst__arena_copy(&texts->arena, t.bytes, t.count);
        if (t.failed || texts->texts[i] == NULL)
            status = VST_E_NOMEM;
    }
    free(t.bytes);
    return status;
}

void vst__memory_texts_free(vst__memory_texts *texts)
{
    free(texts->texts);
    free(texts->lengths);
    vst__arena_free(&texts->arena);
}
