/* See dictionary.h. */
#include "tables/dictionary.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/grow.h"

/* Arrow's offsets cannot be larger. */
#define BYTES_MAX INT32_MAX

/* ---- texts --------------------------------------------------------------- */

static vst_status dictionary_append(vst__dictionary *self, const char *bytes,
                                    size_t count)
{
    if (!VST_RESERVE(self->line, self->line_count + count + 1,
                     self->line_capacity))
        return VST_E_NOMEM;
    memcpy(self->line + self->line_count, bytes, count);
    self->line_count += count;
    return VST_OK;
}

void vst__dictionary_begin(vst__dictionary *self)
{
    self->line_count = 0;
}

vst_status vst__dictionary_put(vst__dictionary *self, const char *bytes,
                               size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes, *from = at;
    const unsigned char *end = at + count;
    vst_status status = VST_OK;

    while (at != end && status == VST_OK) {
        size_t length = vst__json_utf8(at, end);

        if (length != 0) {
            at += length;
            continue;
        }
        status =
            dictionary_append(self, (const char *)from, (size_t)(at - from));
        if (status == VST_OK)
            status = dictionary_append(self, "\xef\xbf\xbd", 3);
        from = ++at;
    }
    return status == VST_OK ? dictionary_append(self, (const char *)from,
                                                (size_t)(at - from))
                            : status;
}

static vst_status add_new(vst__dictionary *self)
{
    if (!VST_RESERVE(self->ends, self->count + 1, self->end_capacity))
        return VST_E_NOMEM;
    if (self->line_count > BYTES_MAX - self->byte_count)
        return VST_E_NOMEM;
    if (!VST_RESERVE(self->bytes, self->byte_count + self->line_count + 1,
                     self->byte_capacity))
        return VST_E_NOMEM;
    if (vst__intern_add(self->known, self->line, self->line_count,
                        (uint32_t)self->count + 1) != VST_OK)
        return VST_E_NOMEM;
    memcpy(self->bytes + self->byte_count, self->line, self->line_count);
    self->byte_count += self->line_count;
    self->ends[self->count++] = (int32_t)self->byte_count;
    return VST_OK;
}

vst_status vst__dictionary_finish(vst__dictionary *self, int32_t *number)
{
    vst_status status =
        dictionary_append(self, "", 0); /* there may be no parts */
    uint32_t found;

    if (self->known == NULL)
        self->known = vst__intern_create();
    if (self->known == NULL || status != VST_OK)
        return VST_E_NOMEM;
    found = vst__intern_find(self->known, self->line, self->line_count);
    if (found == 0) {
        status = add_new(self);
        found = (uint32_t)self->count;
    }
    *number = (int32_t)found - 1;
    return status;
}

vst_status vst__dictionary_add(vst__dictionary *self, const char *bytes,
                               size_t count, int32_t *number)
{
    vst_status status;

    vst__dictionary_begin(self);
    status = vst__dictionary_put(self, bytes, count);
    return status == VST_OK ? vst__dictionary_finish(self, number) : status;
}

/* ---- snapshots ----------------------------------------------------------- */

/* One allocation holds this struct, the offsets and the bytes. */
typedef struct vst__snapshot {
    atomic_uint holders; /* the dictionary, and arrays */
    size_t count;
    const void *buffers[3];
} vst__snapshot;

static void dictionary_release_snapshot(vst__snapshot *snapshot)
{
    /* Pairs with the decrements of other holders: the thread that frees sees
     * everything that they did. */
    if (snapshot != NULL && atomic_fetch_sub(&snapshot->holders, 1) == 1)
        free(snapshot);
}

static vst__snapshot *take_snapshot(const vst__dictionary *self)
{
    size_t offsets = (self->count + 1) * sizeof(int32_t);
    vst__snapshot *snapshot =
        malloc(sizeof *snapshot + offsets + self->byte_count + 1);
    int32_t *at;

    if (snapshot == NULL)
        return NULL;
    at = (int32_t *)(snapshot + 1);
    atomic_init(&snapshot->holders, 1);
    snapshot->count = self->count;
    snapshot->buffers[0] = NULL;
    snapshot->buffers[1] = at;
    snapshot->buffers[2] = (char *)at + offsets;
    at[0] = 0;
    if (self->count != 0)
        memcpy(at + 1, self->ends, self->count * sizeof *at);
    if (self->byte_count != 0)
        memcpy((char *)at + offsets, self->bytes, self->byte_count);
    return snapshot;
}

static void dictionary_release(vst_arrow_array *array)
{
    dictionary_release_snapshot(array->private_data);
    array->release = NULL;
}

vst_status vst__dictionary_array(vst__dictionary *self, vst_arrow_array *array)
{
    if (self->snapshot == NULL || self->snapshot->count != self->count) {
        vst__snapshot *snapshot = take_snapshot(self);

        if (snapshot == NULL)
            return VST_E_NOMEM;
        dictionary_release_snapshot(self->snapshot);
        self->snapshot = snapshot;
    }
    atomic_fetch_add(&self->snapshot->holders, 1);
    *array = (vst_arrow_array){
        .length = (int64_t)self->snapshot->count,
        .n_buffers = 3,
        .buffers = self->snapshot->buffers,
        .release = dictionary_release,
        .private_data = self->snapshot,
    };
    return VST_OK;
}

void vst__dictionary_free(vst__dictionary *self)
{
    dictionary_release_snapshot(self->snapshot);
    vst__intern_destroy(self->known);
    free(self->ends);
    free(self->bytes);
    free(self->line);
    *self = (vst__dictionary){0};
}
