/* Buffers for CUPTI: a limited number, each read when CUPTI returns it. CUPTI
 * calls these functions on its own threads and on those of the program, and may
 * hold its own locks. So no function of CUPTI is called with our lock held. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "collector.h"
#include "library.h"

enum {
    SIZE = 4 << 20,
    SMALL = 64 << 10, /* size if CUPTI cannot be refused a buffer */
    LARGE_MAX = 32,   /* 128 MiB in all */
    OUT_MAX = 1024,
    KEPT_MAX = 4
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by the lock: */
static struct {
    uint8_t *buffer;
    size_t size;
} out[OUT_MAX]; /* buffers that CUPTI has */
static size_t out_count, large_count;
static uint8_t *kept[KEPT_MAX]; /* large buffers, kept for reuse */
static size_t kept_count;

/* The collector for which buffers are read, and how many callbacks are running.
 * Both atomic and seq_cst: a callback adds itself before it looks for the
 * collector, and a thread that takes the collector away looks for callbacks
 * after that. */
static cupti_collector *collector;
static int inside;

/* ---- the pool ------------------------------------------------------------ */

static uint8_t *buffers_take(size_t *size)
{
    uint8_t *buffer = NULL;

    pthread_mutex_lock(&lock);
    *size = large_count < LARGE_MAX ? SIZE : SMALL;
    if (out_count == OUT_MAX ||
        (*size == SMALL && cupti.version >= CUPTI_VERSION_REFUSABLE))
        buffer = NULL;
    else if (*size == SIZE && kept_count != 0)
        buffer = kept[--kept_count];
    else
        buffer = malloc(*size);
    if (buffer != NULL) {
        out[out_count].buffer = buffer;
        out[out_count++].size = *size;
        large_count += *size == SIZE;
    }
    pthread_mutex_unlock(&lock);
    return buffer;
}

/* Returns the size of a buffer that CUPTI returns; 0 if the buffer is not
 * ours. */
static size_t take_back(const uint8_t *buffer)
{
    size_t size = 0;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < out_count && size == 0; i++) {
        if (out[i].buffer != buffer)
            continue;
        size = out[i].size;
        out[i] = out[--out_count];
        large_count -= size == SIZE;
    }
    pthread_mutex_unlock(&lock);
    return size;
}

static void buffers_give_back(uint8_t *buffer, size_t size)
{
    pthread_mutex_lock(&lock);
    if (size == SIZE && kept_count < KEPT_MAX) {
        kept[kept_count++] = buffer;
        buffer = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(buffer);
}

/* ---- callbacks ----------------------------------------------------------- */

static cupti_collector *buffers_enter(void)
{
    __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&collector, __ATOMIC_SEQ_CST);
}

static void buffers_leave(void)
{
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

void cupti_buffer_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    cupti_collector *self = buffers_enter();

    *buffer = buffers_take(size);
    *max_records = 0; /* as many records as there is room for */
    if (*buffer == NULL) {
        *size = 0;
        if (self != NULL)
            cupti_note_once(self, CUPTI_TROUBLE_BUFFERS,
                            "128 MiB of buffers were in use: later "
                            "activities were lost");
    }
    buffers_leave();
}

static void count_dropped(cupti_collector *self, void *context, uint32_t stream)
{
    size_t dropped = 0;
    int result =
        cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped);

    if (result != CUPTI_OK)
        cupti_note_once(self, CUPTI_TROUBLE_DROPPED,
                        "cuptiActivityGetNumDroppedRecords failed: it is not "
                        "known how many records were lost");
    if (result == CUPTI_OK && dropped != 0)
        vst_device_lost(self->recording, cupti_any_device(self), dropped);
}

void cupti_buffer_complete(void *context, uint32_t stream, uint8_t *buffer,
                           size_t claimed, size_t valid)
{
    cupti_collector *self = buffers_enter();
    size_t size = take_back(buffer);

    (void)claimed;
    if (self != NULL && size == 0 && buffer != NULL)
        cupti_note_once(self, CUPTI_TROUBLE_FOREIGN,
                        "another profiler uses CUPTI in this process: its "
                        "records are left out");
    if (self != NULL && size != 0) {
        cupti_read_buffer(self, buffer, valid < size ? valid : size);
        count_dropped(self, context, stream);
    }
    buffers_leave();
    if (size != 0)
        buffers_give_back(buffer, size);
}

void cupti_buffers_set_collector(cupti_collector *next)
{
    __atomic_store_n(&collector, next, __ATOMIC_SEQ_CST);
}

void cupti_buffers_forget(cupti_collector *self)
{
    cupti_collector *expected = self;

    __atomic_compare_exchange_n(&collector, &expected, NULL, false,
                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) != 0)
        sched_yield();
}
