/* Frames of a trace's stacks for display: the language's frames with the names
 * that the trace defines, native frames with names from the files of the
 * libraries that it lists. Each native address is looked up once; the
 * profiler's own frames are not shown. A damaged trace may hold any values. One
 * thread at a time; the lock of native names is held during a lookup. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "memory/summary.h"

enum { NAME_MAX_BYTES = 1 << 16 };

/* ---- adding frames ------------------------------------------------------- */

static vst_status frames_add(vst__memory_frames *f,
                             const vst_memory_frame *frame, uint32_t *index)
{
    vst_memory_frame *made;

    if (f->count >= VST_FRAME_NONE - 1 ||
        !VST_RESERVE(f->items, f->count + 1, f->capacity))
        return VST_E_NOMEM;
    made = &f->items[f->count];
    *made = *frame;
    made->name = vst__arena_copy(&f->strings, frame->name, frame->name_len);
    /* functions of one file often follow each other */
    if (f->count != 0 && made[-1].file_len == frame->file_len &&
        memcmp(made[-1].file, frame->file, frame->file_len) == 0)
        made->file = made[-1].file;
    else
        made->file = vst__arena_copy(&f->strings, frame->file, frame->file_len);
    if (made->name == NULL || made->file == NULL)
        return VST_E_NOMEM;
    *index = (uint32_t)f->count++;
    return VST_OK;
}

vst_status vst__memory_frame_special(vst__memory_frames *f, const char *name,
                                     uint32_t *index)
{
    vst_memory_frame frame = {
        .name = name, .name_len = (uint32_t)strlen(name), .file = ""};

    return frames_add(f, &frame, index);
}

/* ---- frames of the language ---------------------------------------------- */

static bool frames_begins_with(const char *text, size_t length,
                               const char *with)
{
    return length >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

static bool frames_ends_with(const char *text, size_t length, const char *with)
{
    size_t count = strlen(with);

    return length >= count && memcmp(text + length - count, with, count) == 0;
}

/* Returns whether the function belongs to vestige, wherever it is installed. */
static bool is_own(const vst_definition *d)
{
    static const char installed[] = "/site-packages/vestige/";
    size_t skip = d->file_skip <= d->file_len ? d->file_skip : 0;

    return frames_begins_with(d->file + skip, d->file_len - skip, "vestige/") ||
           memmem(d->file, d->file_len, installed, sizeof installed - 1) !=
               NULL;
}

bool vst__memory_frame_is_launcher(const vst_memory_frame *frame)
{
    return !frame->is_native &&
           (frames_ends_with(frame->file, frame->file_len, "/bin/vestige") ||
            frames_ends_with(frame->file, frame->file_len, "<frozen runpy>") ||
            frames_ends_with(frame->file, frame->file_len, "/runpy.py"));
}

vst_status vst__memory_frame_language(vst__memory_frames *f,
                                      const vst_stack *stack, uint32_t *index)
{
    uint32_t line = stack->line > 0 ? (uint32_t)stack->line : 0;
    uint64_t *entry =
        vst__map64_put(&f->language, (uint64_t)stack->function << 32 | line);
    const vst_definition *d;
    vst_memory_frame frame;
    vst_status status;

    if (entry == NULL)
        return VST_E_NOMEM;
    if (*entry != 0) {
        *index = (uint32_t)(*entry - 1);
        return VST_OK;
    }
    d = vst_trace_definition(f->trace, stack->function);
    if (d == NULL)
        frame = (vst_memory_frame){.name = "?", .name_len = 1, .file = ""};
    else
        frame = (vst_memory_frame){
            .name = d->name,
            .file = d->file,
            .name_len = d->name_len,
            .file_len = d->file_len,
            .file_skip = d->file_skip <= d->file_len ? d->file_skip : 0};
    frame.line = line;
    if (d != NULL && is_own(d)) {
        *index = VST_FRAME_NONE;
        status = VST_OK;
    } else {
        status = frames_add(f, &frame, index);
    }
    *entry = (uint64_t)*index + 1;
    return status;
}

/* ---- native frames ------------------------------------------------------- */

static const vst_module *find_module(const vst__memory_frames *f,
                                     uint64_t address)
{
    size_t low = 0, high = f->module_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->modules[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address >= f->modules[low - 1].end)
        return NULL;
    return &f->modules[low - 1];
}

static bool is_own_module(const vst_module *module)
{
    const char *name = strrchr(module->path, '/');

    name = name != NULL ? name + 1 : module->path;
    return strstr(module->path, "/vestige/_core.") != NULL ||
           strncmp(name, "libvestige.so", 13) == 0;
}

/* A sink for native frames; equal frames become one. */
static vst_status add_native(void *ctx, const vst_named_frame *named)
{
    vst__memory_frames *f = ctx;
    vst_memory_frame frame = {
        .name = named->name,
        .file = named->file,
        .name_len =
            (uint32_t)(named->name_len < NAME_MAX_BYTES ? named->name_len
                                                        : NAME_MAX_BYTES),
        .file_len =
            (uint32_t)(named->file_len < NAME_MAX_BYTES ? named->file_len
                                                        : NAME_MAX_BYTES),
        .line = named->line,
        .is_native = true};
    size_t size = sizeof named->line + sizeof frame.name_len + frame.name_len +
                  frame.file_len;
    char *key = malloc(size), *at = key;
    vst_status status = VST_OK;
    uint32_t number;

    if (key == NULL ||
        !VST_RESERVE(f->runs, f->runs_count + 1, f->runs_capacity))
        status = VST_E_NOMEM;
    if (status == VST_OK) {
        memcpy(at, &named->line, sizeof named->line);
        at += sizeof named->line;
        memcpy(at, &frame.name_len, sizeof frame.name_len);
        at += sizeof frame.name_len;
        memcpy(at, frame.name, frame.name_len);
        memcpy(at + frame.name_len, frame.file, frame.file_len);
        number = vst__intern_find(f->named, key, size);
        if (number == 0) {
            status = frames_add(f, &frame, &number);
            number++;
            if (status == VST_OK)
                status = vst__intern_add(f->named, key, size, number);
        }
        if (status == VST_OK)
            f->runs[f->runs_count++] = number - 1;
    }
    free(key);
    return status;
}

/* Adds a frame with the library and the place in it, if nothing more is
 * known. */
static vst_status frames_add_place(vst__memory_frames *f,
                                   const vst_module *module, uint64_t address)
{
    const char *name = module != NULL ? strrchr(module->path, '/') : NULL;
    char text[96];
    vst_named_frame frame = {.name = text};

    if (module == NULL)
        snprintf(text, sizeof text, "0x%" PRIx64, address);
    else
        snprintf(text, sizeof text, "%.60s+0x%" PRIx64,
                 name != NULL ? name + 1 : module->path,
                 address - module->bias);
    frame.name_len = strlen(text);
    frame.file = module != NULL ? module->path : "[no library]";
    frame.file_len = strlen(frame.file);
    return add_native(f, &frame);
}

/* Opens the files of the libraries. elfutils is loaded only if there is a frame
 * to name. */
static void open_files(vst__memory_frames *f)
{
    if (f->has_files)
        return;
    f->has_files = true;
    f->files = vst__files_create();
    for (size_t i = 0; i < f->module_count; i++)
        vst__files_add(f->files, &f->modules[i]);
    vst__files_added(f->files);
}

static vst_status frames_look_up(vst__memory_frames *f, uint64_t address)
{
    const vst_named_sink sink = {f, add_native};
    const vst_module *module = find_module(f, address - 1);
    size_t first = f->runs_count;
    vst_status status;

    if (module != NULL && is_own_module(module))
        return VST_OK;
    vst__names_begin();
    open_files(f);
    status = vst__files_find(f->files, address - 1, &sink);
    vst__names_end();
    if (status == VST_OK && f->runs_count == first)
        status = frames_add_place(f, module, address);
    return status;
}

vst_status vst__memory_frame_native(vst__memory_frames *f, uint64_t address,
                                    const uint32_t **found, size_t *count)
{
    uint64_t *entry = vst__map64_put(&f->native, address);
    vst_status status;

    if (entry == NULL)
        return VST_E_NOMEM;
    if (*entry == 0) {
        size_t first = f->runs_count;

        if (first > UINT32_MAX / 2)
            return VST_E_NOMEM;
        status = frames_look_up(f, address);
        if (status != VST_OK)
            return status;
        *entry = (uint64_t)first << 32 | (f->runs_count - first + 1);
    }
    *found = f->runs + (*entry >> 32);
    *count = (uint32_t)*entry - 1;
    return VST_OK;
}

bool vst__memory_frame_is_evaluation(const vst__memory_frames *f,
                                     uint64_t address)
{
    for (size_t i = 0; i < f->evaluation_count; i++)
        if (address > f->evaluation[i].start && address <= f->evaluation[i].end)
            return true;
    return false;
}

/* ---- begin and end ------------------------------------------------------- */

static int frames_by_start(const void *a, const void *b)
{
    const vst_module *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* If one library replaced another at an address, the first one counts, because
 * a stack does not say when it was taken. */
static vst_status read_modules(vst__memory_frames *f)
{
    size_t count = vst_trace_module_count(f->trace), kept = 0;

    f->modules = calloc(count + 1, sizeof *f->modules);
    if (f->modules == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const vst_module *module = vst_trace_module(f->trace, i);
        if (module != NULL && module->path != NULL &&
            module->start < module->end)
            f->modules[f->module_count++] = *module;
    }
    qsort(f->modules, f->module_count, sizeof *f->modules, frames_by_start);
    for (size_t i = 0; i < f->module_count; i++)
        if (kept == 0 || f->modules[i].start >= f->modules[kept - 1].end)
            f->modules[kept++] = f->modules[i];
    f->module_count = kept;
    return VST_OK;
}

/* Reads [[start, end], …], the addresses of the evaluation function. */
static void read_evaluation(vst__memory_frames *f)
{
    const char *at = vst_trace_metadata(f->trace, "vestige.evaluation");
    size_t max = sizeof f->evaluation / sizeof *f->evaluation;
    uint64_t numbers[2];
    size_t count = 0;

    while (at != NULL && *at != '\0' && f->evaluation_count < max) {
        char *end;
        if (*at < '0' || *at > '9') {
            at++;
            continue;
        }
        numbers[count++] = strtoull(at, &end, 10);
        at = end;
        if (count == 2) {
            f->evaluation[f->evaluation_count].start = numbers[0];
            f->evaluation[f->evaluation_count++].end = numbers[1];
            count = 0;
        }
    }
}

vst_status vst__memory_frames_begin(vst__memory_frames *f,
                                    const vst_trace *trace)
{
    *f = (vst__memory_frames){.trace = trace, .named = vst__intern_create()};
    if (f->named == NULL)
        return VST_E_NOMEM;
    read_evaluation(f);
    return read_modules(f);
}

void vst__memory_frames_end(vst__memory_frames *f)
{
    if (f->files != NULL) {
        vst__names_begin();
        vst__files_destroy(f->files);
        vst__names_end();
    }
    f->files = NULL;
    vst__map64_free(&f->language);
    vst__map64_free(&f->native);
    vst__intern_destroy(f->named);
    f->named = NULL;
    free(f->runs);
    free(f->modules);
    f->runs = NULL;
    f->modules = NULL;
    f->module_count = 0;
    f->trace = NULL;
}

void vst__memory_frames_free(vst__memory_frames *f)
{
    vst__memory_frames_end(f);
    free(f->items);
    vst__arena_free(&f->strings);
}
