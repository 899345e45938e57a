/* Declarations for the files of the collector. A recording has one collector;
 * CUPTI's callbacks have no pointer to it, so buffers.c keeps the active
 * collector. */
#ifndef VST_CUPTI_COLLECTOR_H
#define VST_CUPTI_COLLECTOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/device.h>

#include "records.h"

#pragma GCC visibility push(hidden)

enum {
    /* callback ids of a domain that have an entry in `calls` */
    CUPTI_CALLBACKS = 2048,
    CUPTI_DEVICES_MAX = 256, /* devices, by CUDA's numbers */
    CUPTI_CONTEXTS = 256,
    /* CUPTI_EVENTS and CUPTI_EXTERNALS must be powers of two */
    CUPTI_EVENTS = 4096,
    CUPTI_EXTERNALS = 1 << 16
};

/* Properties of a device; 0 if unknown. */
typedef struct cupti_properties {
    /* atomic: stored after the other fields, which do not change then */
    bool are_known;
    char name[128];
    uint64_t memory;
    uint32_t major, minor, multiprocessors, warp_size;
    uint32_t threads_a_block, threads_a_multiprocessor, max_blocks;
    uint32_t registers_a_block, registers_a_multiprocessor;
    uint32_t shared_a_block, shared_a_multiprocessor, shared_optin;
    uint32_t shared_reserved; /* bytes reserved in each block */
} cupti_properties;

/* Where an event was last recorded. */
typedef struct cupti_recorded {
    uint32_t context, event, stream, correlation;
} cupti_recorded;

/* The id that another library gave to a call. */
typedef struct cupti_given {
    uint32_t correlation;
    uint64_t external;
} cupti_given;

/* A table of texts and their ids in the recording. */
typedef struct cupti_names {
    struct cupti_name **slots; /* `capacity` slots, a power of two */
    size_t count, capacity;
} cupti_names;

typedef struct cupti_collector {
    vst_collector base;
    vst_recording *recording;
    vst_ticks began; /* start of the window; atomic */
    /* Guards the fields below. No function of CUPTI is called while it is held,
     * because CUPTI may hold locks of its own when it calls us. */
    pthread_mutex_t lock;
    cupti_names names;
    /* ids of calls of the driver and of the runtime; 0 if none yet */
    vst_id calls[2][CUPTI_CALLBACKS];
    /* numbers of devices in the trace; 0 if not declared */
    uint32_t numbers[CUPTI_DEVICES_MAX];
    /* whether the device's stand-in for activities without a stream was
     * declared */
    bool has_streamless[CUPTI_DEVICES_MAX];
    cupti_properties properties[CUPTI_DEVICES_MAX];
    uint32_t contexts[CUPTI_CONTEXTS][2]; /* pairs of context and device */
    size_t context_count;
    cupti_recorded events[CUPTI_EVENTS];
    /* CUPTI_EXTERNALS entries; NULL until an id was given */
    cupti_given *externals;
    uint32_t noted; /* bits of cupti_trouble that were reported */
    /* Atomic: */
    uint64_t before;  /* activities from before the recording */
    uint64_t untimed; /* activities without times */
} cupti_collector;

/* ---- collector.c --------------------------------------------------------- */

/* Problems that are reported at most once in a recording. */
typedef enum cupti_trouble {
    CUPTI_TROUBLE_WALK,
    CUPTI_TROUBLE_DROPPED,
    CUPTI_TROUBLE_NAMES,
    CUPTI_TROUBLE_BUFFERS,
    CUPTI_TROUBLE_FOREIGN,
    CUPTI_TROUBLE_FLUSH
} cupti_trouble;

/* Writes a line for the user: a function of libcupti failed, and the
 * consequence (`meaning`). */
void cupti_note_failed(cupti_collector *self, const char *function, int result,
                       const char *meaning);
/* Writes a line about a trouble for the user, at most once in a recording. Any
 * thread. */
void cupti_note_once(cupti_collector *self, cupti_trouble trouble,
                     const char *line);

/* ---- buffers.c ----------------------------------------------------------- */

/* Called by CUPTI, on any thread of its own or of the program. */
void cupti_buffer_request(uint8_t **buffer, size_t *size, size_t *max_records);
void cupti_buffer_complete(void *context, uint32_t stream, uint8_t *buffer,
                           size_t size, size_t valid);
/* Sets the collector that gets the records of buffers from now on. */
void cupti_buffers_set_collector(cupti_collector *collector);
/* Removes this collector. When the call returns, no callback uses it any more.
 * Not to be called from a callback. */
void cupti_buffers_forget(cupti_collector *collector);

/* ---- reading.c: from any thread ------------------------------------------ */

void cupti_read_buffer(cupti_collector *self, uint8_t *buffer, size_t valid);

/* ---- names.c: from any thread -------------------------------------------- */

/* Returns the id of a text; 0 if memory ran out. */
vst_id cupti_name(cupti_collector *self, const char *text);
/* Returns the id of a kernel, whose name is mangled. */
vst_id cupti_kernel_name(cupti_collector *self, const char *mangled);
/* Returns the id of a call, by its callback id; 0 for a call that is left out
 * as noise. */
vst_id cupti_call_name(cupti_collector *self, int kind, uint32_t callback);
void cupti_names_free(cupti_names *names);
/* Makes libcupti leave out the calls that are noise, if it can. Returns its
 * first error. */
int cupti_silence_calls(void);

/* ---- devices.c: from any thread ------------------------------------------ */

/* Returns the device's number in the trace; declares the device if needed. */
uint32_t cupti_device_number(cupti_collector *self, uint32_t device);
/* Returns the number for activities of the device that have no stream. */
uint32_t cupti_streamless(cupti_collector *self, uint32_t device);
const cupti_properties *cupti_device_properties(const cupti_collector *self,
                                                uint32_t device);
/* Returns the number of any device, for calls. */
uint32_t cupti_any_device(cupti_collector *self);
/* Takes the properties of a device from a record. */
void cupti_device_note(cupti_collector *self, const cupti_device *record);
/* Asks the driver about devices that are not known yet, unless the driver is
 * not in use. Not to be called from a callback of CUPTI. */
void cupti_devices_ask(cupti_collector *self);
void cupti_context_note(cupti_collector *self, uint32_t context,
                        uint32_t device);
uint32_t cupti_context_device(cupti_collector *self, uint32_t context);

/* ---- describe.c ---------------------------------------------------------- */

enum { CUPTI_TEXT = 640 };

/* Writes JSON members into `text`, which has CUPTI_TEXT bytes. Returns their
 * length. */
size_t cupti_describe_kernel(const cupti_kernel *record,
                             const cupti_properties *properties, char *text);
size_t cupti_describe_device(const cupti_properties *properties, char *text);
void cupti_copy_name(int copy_kind, int from_kind, int to_kind, char *text,
                     size_t size);
const char *cupti_memory_name(int kind);
const char *cupti_sync_name(int type);
const char *cupti_overhead_name(int kind);
/* Returns how many blocks a multiprocessor can hold at the same time, by the
 * resources that they need; 0 if unknown. */
uint32_t cupti_blocks_at_once(const cupti_kernel *record,
                              const cupti_properties *properties);

#pragma GCC visibility pop
#endif
