/* Writes the trace file that format.h specifies: its header, definitions and
 * windows, and the functions that the recorder calls as its chunk provider.
 * writer_chunks.c finds room for chunks. */
#include "store/writer_chunks.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"

enum {
    DEFINITIONS_FIRST = 16 * 1024,
    DEFINITIONS_LAST = 1024 * 1024,
};

/* ---- chunks -------------------------------------------------------------- */

/* Also called between windows, by a thread whose window has ended. */
static size_t seal_chunk(void *ctx, vst_chunk *chunk, size_t used,
                         uint32_t segments)
{
    size_t lost;

    vst__os_storage_begin();
    lost = vst__file_seal_chunk(ctx, chunk, used, segments);
    vst__os_storage_end();
    return lost;
}

static bool is_gone(void *ctx)
{
    return vst__file_was_cut(ctx);
}

static vst_status acquire_chunk(void *ctx, uint32_t thread, size_t words,
                                size_t least, vst_chunk *chunk)
{
    return vst__file_new_chunk(ctx, VST_CHUNK_RECORDS, thread, words, least,
                               chunk);
}

static bool is_kept(void *ctx, uint64_t place, uint32_t sequence)
{
    const vst__file *file = ctx;

    return file->slots.size == 0 ||
           vst__slots_has(&file->slots, place, sequence);
}

static void set_lost(void *ctx, uint64_t total)
{
    vst__file *file = ctx;

    file->header->lost = total;
}

/* Any thread. */
static void add_left_out(void *ctx, uint64_t more)
{
    vst__file *file = ctx;

    __atomic_fetch_add(&file->header->left_out, more, __ATOMIC_RELAXED);
}

/* ---- definitions --------------------------------------------------------- */

static vst_status new_definitions(vst__file *file, size_t entry_size)
{
    size_t size = file->definitions_next;
    size_t most = file->slots.size ? file->slots.size : DEFINITIONS_LAST;
    vst_chunk chunk;
    vst_status status;

    if (size < entry_size + sizeof(vst_chunk_header))
        size = entry_size + sizeof(vst_chunk_header);
    status = vst__file_new_chunk(file, VST_CHUNK_DEFINITIONS, 0,
                                 (size - sizeof(vst_chunk_header)) / 8,
                                 entry_size / 8, &chunk);
    if (status != VST_OK)
        return status;
    if (file->definitions.words != NULL)
        vst__file_seal_chunk(file, &file->definitions, file->definitions_used,
                             1);
    file->definitions = chunk;
    file->definitions_used = 0;
    if (file->definitions_next < most)
        file->definitions_next *= 2;
    return VST_OK;
}

/* Makes room for an entry in the open chunk, or in a new chunk. */
static vst_status writer_make_room(vst__file *file, size_t words, uint64_t **at)
{
    if (file->definitions.words == NULL ||
        file->definitions.capacity - file->definitions_used < words) {
        vst_status status = new_definitions(file, words * 8);
        if (status != VST_OK)
            return status;
    }
    *at = file->definitions.words + file->definitions_used;
    return VST_OK;
}

/* Stores the entry's size, which commits the entry. Pairs with a reader that
 * stops at a size of 0, and that reads the entry after its size (the fence in
 * source.c). */
static void writer_commit(vst__file *file, uint64_t *at, size_t words)
{
    __atomic_store_n((uint32_t *)(void *)at, (uint32_t)(words * 8),
                     __ATOMIC_RELEASE);
    file->definitions_used += words;
}

static vst_status define_stack(vst__file *file, const vst_entry *entry)
{
    const vst_file_stack stack = {
        .size = 0,
        .kind = VST_ENTRY_STACK,
        .what = (uint16_t)entry->z,
        .id = entry->id,
        .parent = (uint32_t)entry->x,
        .value = entry->y,
    };
    uint64_t *at;
    vst_status status = writer_make_room(file, sizeof stack / 8, &at);

    if (status != VST_OK)
        return status;
    memcpy(at, &stack, sizeof stack);
    writer_commit(file, at, sizeof stack / 8);
    return VST_OK;
}

static vst_status write_entry(vst__file *file, const vst_entry *entry)
{
    size_t size = sizeof(vst_file_entry) + entry->a_len + entry->b_len;
    size_t words = (size + 7) / 8;
    uint64_t *at;
    vst_status status;
    vst_file_entry head;
    char *bytes;

    if (entry->kind == VST_ENTRY_STACK)
        return define_stack(file, entry);
    if (size > VST_CHUNK_SIZE_MAX / 2)
        return VST_E_ARGUMENT;
    status = writer_make_room(file, words, &at);
    if (status != VST_OK)
        return status;
    head = (vst_file_entry){
        .size = 0,
        .kind = entry->kind,
        .id = entry->id,
        .line = entry->line,
        .a_len = (uint32_t)entry->a_len,
        .b_len = (uint32_t)entry->b_len,
        .x = entry->x,
        .y = entry->y,
        .z = entry->z,
    };
    bytes = (char *)at + sizeof head;
    memcpy(at, &head, sizeof head);
    if (entry->a_len)
        memcpy(bytes, entry->a, entry->a_len);
    if (entry->b_len)
        memcpy(bytes + entry->a_len, entry->b, entry->b_len);
    writer_commit(file, at, words);
    return VST_OK;
}

/* Also called between windows, when the writer stores nothing but definitions.
 */
static vst_status writer_define(void *ctx, const vst_entry *entry)
{
    vst_status status;

    vst__os_storage_begin();
    status = write_entry(ctx, entry);
    vst__os_storage_end();
    return status;
}

/* ---- the file ------------------------------------------------------------ */

static vst_status write_header(vst__file *file)
{
    void *memory;
    vst_status status;
    vst_file_header *header;

    vst__os_file_identify(file->fd, &file->identity);
    status = vst__file_map(file, 0, VST_FILE_HEADER_SIZE, &memory,
                           &file->header_storage);

    if (status != VST_OK)
        return status;
    header = file->header = memory;
    memcpy(header->magic, VST_FILE_MAGIC, sizeof header->magic);
    header->version = VST_FILE_VERSION;
    header->byte_order = VST_FILE_BYTE_ORDER;
    header->header_size = VST_FILE_HEADER_SIZE;
    header->clock_kind = (uint32_t)vst_clock_in_use;
    header->ticks_per_second = vst_clock_ticks_per_second();
    vst_clock_sample_now(&header->start);
    vst__os_random(header->trace_id, sizeof header->trace_id);
    header->pid = vst__os_process_id();
    header->checksum =
        vst__file_checksum(header, offsetof(vst_file_header, checksum));
    header->slot_size = file->slots.size != 0 ? VST_SLOT_PART_LEAST : 0;
    header->keep_ns = file->keep_ns;
    header->min_duration_ns = file->min_duration_ns;
    file->end = VST_FILE_HEADER_SIZE;
    return VST_OK;
}

static vst_status open_copied(vst__file *file, const char *path, bool overwrite,
                              const char *copier, vst_error *error)
{
    vst_status status = vst__file_begin_copy(file, path, copier, error);

    if (status == VST_OK) {
        status = write_header(file);
        if (status != VST_OK)
            vst_error_set(error, status, file->sys_errno, 0);
    }
    if (status == VST_OK)
        status = vst__file_start_copy(file, overwrite, error);
    if (status != VST_OK)
        vst__copying_end(&file->copying, true);
    return status;
}

static vst_status writer_open_file(vst__file *file, const char *path,
                                   bool overwrite, const char *copier,
                                   vst_error *error)
{
    vst_status status;
    int failed;

    if (file->is_copied)
        return open_copied(file, path, overwrite, copier, error);
    if (path != NULL) {
        failed = vst__os_file_create(path, overwrite, &file->fd);
        if (failed) {
            file->fd = -1;
            return vst_error_set(
                error, failed == EEXIST ? VST_E_EXISTS : VST_E_IO, failed, 0);
        }
    } else if (vst__os_file_create_temporary(&file->fd) != 0) {
        file->fd = -1;
    }
    status = file->fd < 0 ? VST_E_NOSPACE : write_header(file);
    if (status == VST_OK)
        return VST_OK;
    if (path != NULL) {
        vst__os_file_remove(path);
        return vst_error_set(error, status, file->sys_errno, 0);
    }
    /* No disk to record to, or a full disk: use memory. */
    if (file->fd >= 0)
        vst__os_file_close(file->fd);
    file->allocated = 0;
    failed = vst__os_file_create_in_memory(&file->fd);
    if (failed) {
        file->fd = -1;
        return vst_error_set(error, VST_E_IO, failed, 0);
    }
    status = write_header(file);
    return status == VST_OK ? status
                            : vst_error_set(error, status, file->sys_errno, 0);
}

vst_status vst__file_create(const char *path, bool overwrite,
                            const vst__file_bounds *bounds,
                            const vst__file_storage *storage, vst__file **out,
                            vst_error *error)
{
    vst__file *file;
    vst_status status;

    if (bounds->max_size != 0 && bounds->max_size < VST_MAX_SIZE_LEAST)
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    file = calloc(1, sizeof *file);

    if (file == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    file->provider = (vst_chunk_provider){
        .ctx = file,
        .acquire = acquire_chunk,
        .seal = seal_chunk,
        .define = writer_define,
        .lost = set_lost,
        .left_out = add_left_out,
        .is_kept = is_kept,
        .is_gone = is_gone,
    };
    vst__slots_init(&file->slots, bounds->max_size, bounds->keep_ns,
                    vst_clock_ticks_per_second());
    file->keep_ns = bounds->keep_ns;
    file->min_duration_ns = bounds->min_duration_ns;
    file->definitions_next = DEFINITIONS_FIRST;
    vst__os_storage_begin();
    vst__file_choose_storage(file, path, storage->mode);
    status = writer_open_file(file, path, overwrite, storage->copier, error);
    vst__os_storage_end();
    if (status != VST_OK) {
        vst__file_destroy(file);
        return status;
    }
    *out = file;
    return VST_OK;
}

const vst_chunk_provider *vst__file_provider(vst__file *file)
{
    return &file->provider;
}

void vst__file_discard(vst__file *file, const char *path)
{
    if (file->is_copied)
        vst__copying_end(&file->copying, true);
    else if (path != NULL)
        vst__os_file_remove(path);
}

/* ---- windows, and the end ------------------------------------------------ */

static vst_status define_window(vst__file *file, vst_ticks last)
{
    vst_entry entry = {
        .kind = VST_ENTRY_WINDOW,
        .id = file->window,
        .x = file->window_start,
        .y = last,
        .z = file->header->lost - file->lost,
    };

    return writer_define(file, &entry);
}

/* Closes the window, which is open until it is closed or the file is released.
 * In a child that was forked meanwhile there is no open window. */
static void close_window(vst__file *file)
{
    if (file->window_pid == vst__os_process_id())
        vst__os_storage_end();
    file->window_pid = 0;
}

static vst_status writer_begin_window(vst__file *file, vst_error *error)
{
    vst_status status;

    file->window = (uint16_t)file->header->windows;
    if (file->header->windows == UINT16_MAX)
        return vst_error_set(error, VST_E_NO_IDS, 0, 0);
    file->lost = file->header->lost;
    file->window_start = vst_clock_ticks();
    status = define_window(file, 0);
    if (status != VST_OK)
        return vst_error_set(error, status, file->sys_errno, file->end);
    file->header->windows++;
    file->header->state = VST_FILE_RECORDING;
    return VST_OK;
}

vst_status vst__file_begin_window(vst__file *file, vst_error *error)
{
    vst_status status;

    vst__os_storage_begin();
    status = writer_begin_window(file, error);
    if (status == VST_OK && file->window_pid == 0)
        file->window_pid = vst__os_process_id();
    else
        vst__os_storage_end();
    return status;
}

void vst__file_end_window(vst__file *file)
{
    vst_clock_sample now;
    vst_entry entry = {.kind = VST_ENTRY_CLOCK};

    vst_clock_sample_now(&now);
    entry.x = now.ticks;
    entry.y = (uint64_t)now.monotonic_ns;
    entry.z = (uint64_t)now.realtime_ns;
    /* If there is no room for these entries, the reader uses the time of the
     * last record. */
    writer_define(file, &entry);
    define_window(file, now.ticks);
    file->header->state = VST_FILE_STOPPED;
    close_window(file);
}

static vst_status writer_finish(vst__file *file, vst_error *error)
{
    uint64_t size;
    int failed;

    if (file->header->state == VST_FILE_FINISHED)
        return VST_OK;
    if (file->definitions.words != NULL)
        vst__file_seal_chunk(file, &file->definitions, file->definitions_used,
                             1);
    size = vst__file_used_end(file);
    file->header->size = size;
    file->header->state = VST_FILE_FINISHED;
    if (!vst__os_file_is(file->fd, &file->identity, NULL))
        return vst_error_set(error, VST_E_IO, EBADF, size);
    /* The file is shorter than its header says, so a reader reports the loss.
     * If we made the file longer, no reader would notice. */
    if (vst__file_is_cut(file))
        return VST_OK;
    file->allocated = size;
    failed = vst__os_file_truncate(file->fd, size);
    if (file->is_copied)
        vst__copying_hurry(&file->copying);
    return failed ? vst_error_set(error, VST_E_IO, failed, size) : VST_OK;
}

vst_status vst__file_finish(vst__file *file, vst_error *error)
{
    vst_status status;

    vst__os_storage_begin();
    status = writer_finish(file, error);
    vst__os_storage_end();
    return status;
}

void vst__file_destroy(vst__file *file)
{
    if (file == NULL)
        return;
    close_window(file);
    if (file->definitions.words != NULL)
        file->definitions.release(&file->definitions);
    if (file->header != NULL)
        vst__os_storage_unmap(file->header_storage);
    vst__os_storage_disown(&file->is_cut);
    if (file->fd >= 0 && vst__os_file_is(file->fd, &file->identity, NULL))
        vst__os_file_close(file->fd);
    if (file->is_copied)
        vst__copying_end(&file->copying, false);
    vst__slots_free(&file->slots);
    free(file);
}
