/* Reads the DEFINITIONS chunks: the names of ids, threads and windows, and
 * facts about the trace. They are read once, when a trace is opened, and kept
 * in sorted arrays. A later entry replaces an earlier one, so each array is
 * sorted stably and the last of equal entries is kept. One thread at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "store/live.h"

enum { STRINGS_BLOCK = 64 * 1024 };

struct vst__strings_block {
    struct vst__strings_block *next;
    size_t used, size;
    char bytes[];
};

/* Returns a copy with a NUL at its end, NULL if memory runs out. */
static char *entries_keep(vst__strings *strings, const char *bytes,
                          size_t length)
{
    struct vst__strings_block *block = strings->blocks;
    char *copy;

    if (block == NULL || block->size - block->used < length + 1) {
        size_t size = length + 1 > STRINGS_BLOCK ? length + 1 : STRINGS_BLOCK;
        block = malloc(sizeof *block + size);
        if (block == NULL)
            return NULL;
        block->next = strings->blocks;
        block->used = 0;
        block->size = size;
        strings->blocks = block;
    }
    copy = block->bytes + block->used;
    if (length != 0)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    block->used += length + 1;
    return copy;
}

void vst__entries_free(vst_trace *trace)
{
    while (trace->strings.blocks != NULL) {
        struct vst__strings_block *block = trace->strings.blocks;
        trace->strings.blocks = block->next;
        free(block);
    }
    free(trace->definitions);
    free(trace->definition_ids);
    free(trace->threads);
    free(trace->metadata);
    free(trace->windows);
    vst__stacks_free_all(trace);
    vst__trace_devices_free(trace);
}

/* ---- one entry ----------------------------------------------------------- */

static vst_status add_definition(vst_trace *trace, const vst_file_entry *entry,
                                 const char *a, const char *b)
{
    vst_definition definition = {
        .kind = (vst_definition_kind)entry->kind,
        .line = entry->line,
        .file_skip = entry->x <= entry->b_len ? (uint32_t)entry->x : 0,
        .name_len = entry->a_len,
        .file_len = entry->b_len,
    };

    if (entry->id == 0 || entry->id > VST_ID_MAX)
        return VST_OK;
    definition.name = entries_keep(&trace->strings, a, entry->a_len);
    definition.file = entries_keep(&trace->strings, b, entry->b_len);
    if (!VST_RESERVE(trace->definitions, trace->definition_count + 1,
                     trace->definition_capacity))
        return VST_E_NOMEM;
    if (!VST_RESERVE(trace->definition_ids, trace->definition_count + 1,
                     trace->definition_id_capacity))
        return VST_E_NOMEM;
    if (definition.name == NULL || definition.file == NULL)
        return VST_E_NOMEM;
    trace->definition_ids[trace->definition_count] = entry->id;
    trace->definitions[trace->definition_count++] = definition;
    return VST_OK;
}

static vst_status entries_add_thread(vst_trace *trace,
                                     const vst_trace_thread *thread)
{
    if (!VST_RESERVE(trace->threads, trace->thread_count + 1,
                     trace->thread_capacity))
        return VST_E_NOMEM;
    if (thread->name == NULL)
        return VST_E_NOMEM;
    trace->threads[trace->thread_count++] = *thread;
    return VST_OK;
}

vst_status vst__entries_note_thread(vst_trace *trace, uint32_t number)
{
    return entries_add_thread(
        trace, &(vst_trace_thread){.number = number, .name = ""});
}

static vst_status add_metadata(vst_trace *trace, const char *a, size_t a_len,
                               const char *b, size_t b_len)
{
    vst__metadata fact = {
        .key = entries_keep(&trace->strings, a, a_len),
        .json = entries_keep(&trace->strings, b, b_len),
        .order = trace->metadata_count,
    };

    if (!VST_RESERVE(trace->metadata, trace->metadata_count + 1,
                     trace->metadata_capacity))
        return VST_E_NOMEM;
    if (fact.key == NULL || fact.json == NULL)
        return VST_E_NOMEM;
    trace->metadata[trace->metadata_count++] = fact;
    return VST_OK;
}

vst_status vst__entries_note_window(vst_trace *trace, const vst__window *window)
{
    if (!VST_RESERVE(trace->windows, trace->window_count + 1,
                     trace->window_capacity))
        return VST_E_NOMEM;
    trace->windows[trace->window_count++] = *window;
    return VST_OK;
}

static vst_status add_entry(vst_trace *trace, const vst_file_entry *entry,
                            const char *a, const char *b)
{
    if (entry->kind > 0 && entry->kind < VST_ENTRY_THREAD)
        return add_definition(trace, entry, a, b);
    switch (entry->kind) {
    case VST_ENTRY_THREAD:
        return entries_add_thread(
            trace, &(vst_trace_thread){
                       .number = entry->id,
                       .system_tid = entry->x,
                       .left_out = entry->y,
                       .name = entries_keep(&trace->strings, a, entry->a_len),
                       .name_len = entry->a_len});
    case VST_ENTRY_METADATA:
        return add_metadata(trace, a, entry->a_len, b, entry->b_len);
    case VST_ENTRY_WINDOW:
        if (entry->id > UINT16_MAX) /* no chunk could belong to this window */
            return VST_OK;
        return vst__entries_note_window(trace,
                                        &(vst__window){.number = entry->id,
                                                       .closed = entry->y != 0,
                                                       .first = entry->x,
                                                       .last = entry->y});
    case VST_ENTRY_CLOCK:
        return vst__clockmap_add(
            &trace->clock, &(vst_clock_sample){entry->x, (int64_t)entry->y,
                                               (int64_t)entry->z});
    case VST_ENTRY_STACK:
        if (entry->size != sizeof(vst_file_stack))
            return VST_OK;
        return vst__stacks_add(trace, entry);
    case VST_ENTRY_MODULE:
        return vst__modules_add(trace, entry,
                                entries_keep(&trace->strings, a, entry->a_len),
                                entries_keep(&trace->strings, b, entry->b_len));
    case VST_ENTRY_DEVICE:
        return vst__trace_devices_add(
            trace, entry, entries_keep(&trace->strings, a, entry->a_len),
            entries_keep(&trace->strings, b, entry->b_len));
    case VST_ENTRY_MEMORY:
        trace->has_memory = true;
        return VST_OK;
    default: /* an entry of a newer writer */
        return VST_OK;
    }
}

/* Reads the shorter entry of a stack into the struct of the other entries. */
static bool read_stack(const unsigned char *bytes, vst_file_entry *entry)
{
    vst_file_stack stack;

    memcpy(&stack, bytes, sizeof stack);
    if (stack.kind != VST_ENTRY_STACK || stack.size != sizeof stack)
        return false;
    *entry = (vst_file_entry){
        .size = sizeof stack,
        .kind = VST_ENTRY_STACK,
        .id = stack.id,
        .x = stack.parent,
        .y = stack.value,
        .z = stack.what,
    };
    return true;
}

vst_status vst__entry_read(vst_trace *trace, uint64_t offset, uint64_t room,
                           vst_file_entry *entry, const char **strings)
{
    const unsigned char *bytes;
    size_t got, size;
    vst_status status;

    entry->size = 0;
    if (room < sizeof(vst_file_stack))
        return VST_OK;
    status =
        vst__block_view(&trace->block, offset, sizeof *entry, &bytes, &got);
    if (status != VST_OK || got < sizeof(vst_file_stack))
        return status;
    if (read_stack(bytes, entry)) {
        *strings = "";
        return VST_OK;
    }
    if (room < sizeof *entry || got < sizeof *entry)
        return VST_OK;
    memcpy(entry, bytes, sizeof *entry);
    size = entry->size;
    entry->size = 0;
    if (size < sizeof *entry || size % 8 != 0 || size > room ||
        (uint64_t)entry->a_len + entry->b_len > size - sizeof *entry)
        return VST_OK;
    status = vst__block_view(&trace->block, offset, size, &bytes, &got);
    if (status != VST_OK || got < size)
        return status;
    entry->size = (uint32_t)size;
    *strings = (const char *)bytes + sizeof *entry;
    return VST_OK;
}

vst_status vst__entries_add(vst_trace *trace, uint64_t offset, uint64_t room,
                            uint64_t *read)
{
    uint64_t begin = offset;
    const char *strings = NULL;
    vst_file_entry entry;

    if (vst__trace_is_live(trace)) {
        vst_status status = vst__live_entries(trace, offset, &room);
        if (status != VST_OK)
            return status;
    }
    for (;;) {
        vst_status status =
            vst__entry_read(trace, offset, room, &entry, &strings);

        if (read != NULL)
            *read = offset - begin;
        if (status != VST_OK || entry.size == 0)
            return status;
        status = add_entry(trace, &entry, strings, strings + entry.a_len);
        if (status != VST_OK)
            return status;
        offset += entry.size;
        room -= entry.size;
    }
}

/* ---- sorting the entries ------------------------------------------------- */

/* qsort is not stable, so these functions sort (key, position) pairs. */
typedef struct place {
    uint32_t key;
    size_t index;
} place;

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Sorts the places of `count` items, and returns memory for as many items of
 * `size` bytes. Returns NULL if memory runs out; then there is nothing to
 * free. */
static void *make_room_sorted(size_t size, const void *keys, size_t stride,
                              size_t count, place **sorted)
{
    place *places = malloc(count * sizeof *places);
    void *room = malloc(count * size);
    bool ascending = true;

    *sorted = places;
    if (places == NULL || room == NULL) {
        free(places);
        free(room);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(&places[i].key, (const char *)keys + i * stride,
               sizeof places[i].key);
        places[i].index = i;
        ascending = ascending && (i == 0 || places[i - 1].key <= places[i].key);
    }
    if (!ascending)
        qsort(places, count, sizeof *places, by_place);
    return room;
}

static bool is_last_of_key(const place *places, size_t i, size_t count)
{
    return i + 1 == count || places[i + 1].key != places[i].key;
}

static vst_status finish_definitions(vst_trace *trace)
{
    uint64_t bound = vst__trace_id_bound(trace, sizeof(vst_file_entry));
    size_t count = trace->definition_count, kept = 0;
    vst_definition *sorted;
    place *places;

    if (count == 0)
        return VST_OK;
    sorted = make_room_sorted(sizeof *sorted, trace->definition_ids,
                              sizeof(vst_id), count, &places);
    if (sorted == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        if (is_last_of_key(places, i, count) && places[i].key <= bound) {
            sorted[kept] = trace->definitions[places[i].index];
            trace->definition_ids[kept++] = places[i].key;
        }
    free(trace->definitions);
    free(places);
    trace->definitions = sorted;
    trace->definition_count = trace->definition_capacity = kept;
    return VST_OK;
}

/* Keeps a thread's last name and last known tid. The plain entry of a thread
 * that recorded removes neither. */
static vst_status finish_threads(vst_trace *trace)
{
    size_t count = trace->thread_count, kept = 0;
    vst_trace_thread *sorted, merged = {0};
    place *places;

    if (count == 0)
        return VST_OK;
    sorted = make_room_sorted(sizeof *sorted, &trace->threads->number,
                              sizeof *sorted, count, &places);
    if (sorted == NULL)
        return VST_E_NOMEM;
    merged.name = "";
    for (size_t i = 0; i < count; i++) {
        const vst_trace_thread *thread = &trace->threads[places[i].index];

        merged.number = thread->number;
        if (thread->system_tid != 0)
            merged.system_tid = thread->system_tid;
        if (thread->left_out != 0)
            merged.left_out = thread->left_out;
        if (thread->name_len != 0) {
            merged.name = thread->name;
            merged.name_len = thread->name_len;
        }
        if (is_last_of_key(places, i, count)) {
            sorted[kept++] = merged;
            merged = (vst_trace_thread){.name = ""};
        }
    }
    free(trace->threads);
    free(places);
    trace->threads = sorted;
    trace->thread_count = trace->thread_capacity = kept;
    return VST_OK;
}

/* There are at most 65,536 numbers, each with an opening and a closing
 * entry. */
static vst_status finish_windows(vst_trace *trace)
{
    size_t count = trace->window_count, kept = 0;
    vst__window *sorted, merged = {0};
    place *places;

    if (count == 0)
        return VST_OK;
    sorted = make_room_sorted(sizeof *sorted, &trace->windows->number,
                              sizeof *sorted, count, &places);
    if (sorted == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const vst__window *window = &trace->windows[places[i].index];

        if (window->first != 0 || window->closed)
            merged = *window;
        merged.number = window->number;
        if (is_last_of_key(places, i, count)) {
            sorted[kept++] = merged;
            merged = (vst__window){0};
        }
    }
    free(trace->windows);
    free(places);
    trace->windows = sorted;
    trace->window_count = trace->window_capacity = kept;
    return VST_OK;
}

static int by_key(const void *a, const void *b)
{
    const vst__metadata *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

static int by_order(const void *a, const void *b)
{
    const vst__metadata *x = a, *y = b;

    return (x->order > y->order) - (x->order < y->order);
}

/* Keeps the last value of equal keys, at the place of the first. */
static void finish_metadata(vst_trace *trace)
{
    vst__metadata *facts = trace->metadata;
    size_t kept = 0;

    if (trace->metadata_count == 0)
        return;
    qsort(facts, trace->metadata_count, sizeof *facts, by_key);
    for (size_t i = 1; i < trace->metadata_count; i++) {
        if (strcmp(facts[i].key, facts[kept].key) == 0)
            facts[kept].json = facts[i].json;
        else
            facts[++kept] = facts[i];
    }
    trace->metadata_count = kept + 1;
    qsort(facts, trace->metadata_count, sizeof *facts, by_order);
}

static vst_status add_number(vst_trace *trace, const char *key, uint64_t value)
{
    char json[24];

    snprintf(json, sizeof json, "%llu", (unsigned long long)value);
    return add_metadata(trace, key, strlen(key), json, strlen(json));
}

/* Adds what the header knows to the metadata, for callers that pass all
 * metadata on. */
static vst_status note_left_out(vst_trace *trace)
{
    const vst_file_header *header = &trace->header;
    vst_status status = VST_OK;

    /* a growing trace would keep the text of every number it had */
    if (header->min_duration_ns == 0 || trace->growing)
        return VST_OK;
    status = add_number(trace, "min_duration_ns", header->min_duration_ns);
    return status == VST_OK
               ? add_number(trace, "calls_left_out", header->left_out)
               : status;
}

vst_status vst__entries_finish(vst_trace *trace)
{
    vst_status status = finish_definitions(trace);

    if (status == VST_OK)
        status = note_left_out(trace);
    if (status == VST_OK)
        status = finish_threads(trace);
    if (status == VST_OK)
        status = finish_windows(trace);
    if (status == VST_OK)
        status = vst__trace_devices_finish(trace);
    finish_metadata(trace);
    vst__stacks_finish(trace);
    return status;
}
