/* See buffers.h: for each kind a list of unused buffers, linked through the
 * buffers. */
#include "tables/buffers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "tables/batch.h"

/* buffers kept of each kind: enough for a few batches */
enum { KEPT_MAX = 64 };

typedef struct unused {
    struct unused *next;
} unused;

struct vst__buffers {
    pthread_mutex_t lock; /* guards all fields below */
    size_t holders;
    bool closed;
    unused *free[VST_BUFFER_KINDS];
    size_t counts[VST_BUFFER_KINDS];
};

static size_t buffers_size_of(vst__buffer_kind kind)
{
    size_t rows = VST_BATCH_ROWS;

    return kind == VST_BUFFER_WIDE     ? rows * sizeof(int64_t)
           : kind == VST_BUFFER_NARROW ? (rows + 1) * sizeof(int32_t)
                                       : rows / 8;
}

vst__buffers *vst__buffers_create(void)
{
    vst__buffers *self = calloc(1, sizeof *self);

    if (self == NULL)
        return NULL;
    pthread_mutex_init(&self->lock, NULL);
    self->holders = 1;
    return self;
}

vst__buffers *vst__buffers_hold(vst__buffers *self)
{
    pthread_mutex_lock(&self->lock);
    self->holders++;
    pthread_mutex_unlock(&self->lock);
    return self;
}

static void free_all(vst__buffers *self)
{
    for (size_t i = 0; i < VST_BUFFER_KINDS; i++)
        while (self->free[i] != NULL) {
            unused *first = self->free[i];

            self->free[i] = first->next;
            free(first);
        }
}

void vst__buffers_let_go(vst__buffers *self)
{
    bool last;

    if (self == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    last = --self->holders == 0;
    pthread_mutex_unlock(&self->lock);
    if (!last)
        return;
    free_all(self);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

void vst__buffers_close(vst__buffers *self)
{
    pthread_mutex_lock(&self->lock);
    self->closed = true;
    free_all(self);
    pthread_mutex_unlock(&self->lock);
}

void *vst__buffers_take(vst__buffers *self, vst__buffer_kind kind)
{
    unused *first;

    pthread_mutex_lock(&self->lock);
    first = self->free[kind];
    if (first != NULL) {
        self->free[kind] = first->next;
        self->counts[kind]--;
    }
    pthread_mutex_unlock(&self->lock);
    return first != NULL ? first : malloc(buffers_size_of(kind));
}

void vst__buffers_give(vst__buffers *self, vst__buffer_kind kind, void *memory)
{
    unused *returned = memory;

    if (memory == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    if (!self->closed && self->counts[kind] < KEPT_MAX) {
        returned->next = self->free[kind];
        self->free[kind] = returned;
        self->counts[kind]++;
        returned = NULL;
    }
    pthread_mutex_unlock(&self->lock);
    free(returned);
}
