/* What the files of the collector share. A recording has one collector; CUPTI
 * calls back without saying for whom, so buffers.c knows which one collects. */
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
    CUPTI_CALLBACKS = 2048,  /* callback ids of a domain that have a place */
    CUPTI_DEVICES_MAX = 256, /* of those that CUDA numbers */
    CUPTI_CONTEXTS = 256,
    CUPTI_EVENTS = 4096, /* these two: powers of two */
    CUPTI_EXTERNALS = 1 << 16
};

/* Of a device; 0: not known. */
typedef struct cupti_properties {
    bool are_known; /* atomic: stored behind the rest, which stays */
    char name[128];
    uint64_t memory;
    uint32_t major, minor, multiprocessors, warp_size;
    uint32_t threads_a_block, threads_a_multiprocessor, max_blocks;
    uint32_t registers_a_block, registers_a_multiprocessor;
    uint32_t shared_a_block, shared_a_multiprocessor, shared_optin;
    uint32_t shared_reserved; /* of each block */
} cupti_properties;

/* Where an event was recorded last. */
typedef struct cupti_recorded {
    uint32_t context, event, stream, correlation;
} cupti_recorded;

/* The id that somebody gave a call. */
typedef struct cupti_given {
    uint32_t correlation;
    uint64_t external;
} cupti_given;

/* A table of texts that have an id in the recording. */
typedef struct cupti_names {
    struct cupti_name **slots; /* `capacity` of them, a power of two */
    size_t count, capacity;
} cupti_names;

typedef struct cupti_collector {
    vst_collector base;
    vst_recording *recording;
    vst_ticks began; /* the window; atomic */
    /* Guards what follows. Nothing of CUPTI is called while it is held: CUPTI
     * may hold locks of its own when it calls us. */
    pthread_mutex_t lock;
    cupti_names names;
    vst_id calls[2][CUPTI_CALLBACKS]; /* of the driver, the runtime; 0: none */
    uint32_t numbers[CUPTI_DEVICES_MAX];    /* in the trace; 0: not declared */
    bool has_streamless[CUPTI_DEVICES_MAX]; /* that one was declared */
    cupti_properties properties[CUPTI_DEVICES_MAX];
    uint32_t contexts[CUPTI_CONTEXTS][2]; /* context, device */
    size_t context_count;
    cupti_recorded events[CUPTI_EVENTS];
    cupti_given *externals; /* CUPTI_EXTERNALS of them; NULL: none was given */
    uint32_t told;          /* bits of cupti_trouble */
    /* Atomic: */
    uint64_t before;  /* activities of before the recording */
    uint64_t untimed; /* without times */
} cupti_collector;

/* ---- collector.c --------------------------------------------------------- */

/* What is told once a recording at most. */
typedef enum cupti_trouble {
    CUPTI_TROUBLE_WALK,
    CUPTI_TROUBLE_DROPPED,
    CUPTI_TROUBLE_NAMES,
    CUPTI_TROUBLE_BUFFERS,
    CUPTI_TROUBLE_FOREIGN,
    CUPTI_TROUBLE_FLUSH
} cupti_trouble;

/* Tells the user that a function of libcupti failed, and what that means. */
void cupti_tell_failed(cupti_collector *self, const char *function, int result,
                       const char *meaning);
/* The same once a recording; any thread. */
void cupti_tell_once(cupti_collector *self, cupti_trouble trouble,
                     const char *line);

/* ---- buffers.c ----------------------------------------------------------- */

/* For CUPTI, on any thread of its own or the program's. */
void cupti_buffer_request(uint8_t **buffer, size_t *size, size_t *max_records);
void cupti_buffer_complete(void *context, uint32_t stream, uint8_t *buffer,
                           size_t size, size_t valid);
/* Who gets what is in buffers from now on. */
void cupti_buffers_set_collector(cupti_collector *collector);
/* This one no longer does; when this returns, nothing is under way. Not from a
 * callback. */
void cupti_buffers_forget(cupti_collector *collector);

/* ---- reading.c: from any thread ------------------------------------------ */

void cupti_read_buffer(cupti_collector *self, uint8_t *buffer, size_t valid);

/* ---- names.c: from any thread -------------------------------------------- */

/* The id of a text; 0 if there is no memory. */
vst_id cupti_name(cupti_collector *self, const char *text);
/* Of a kernel, whose name is mangled. */
vst_id cupti_kernel_name(cupti_collector *self, const char *mangled);
/* Of a call, by its callback id. 0: it is one of those that nobody wants. */
vst_id cupti_call_name(cupti_collector *self, int kind, uint32_t callback);
void cupti_names_free(cupti_names *names);
/* Has libcupti leave out the calls that nobody wants, where it can. Returns its
 * first error. */
int cupti_silence_calls(void);

/* ---- devices.c: from any thread ------------------------------------------ */

/* The device's number in the trace; it is declared, if it was not. */
uint32_t cupti_device_number(cupti_collector *self, uint32_t device);
/* The same, for what is on no stream of it. */
uint32_t cupti_streamless(cupti_collector *self, uint32_t device);
const cupti_properties *cupti_device_properties(const cupti_collector *self,
                                                uint32_t device);
/* Of any device, for calls. */
uint32_t cupti_any_device(cupti_collector *self);
/* Takes what a record says of a device. */
void cupti_device_note(cupti_collector *self, const cupti_device *record);
/* Asks the driver of devices that are not known, unless it is not in use yet.
 * Not from a callback of CUPTI. */
void cupti_devices_ask(cupti_collector *self);
void cupti_context_note(cupti_collector *self, uint32_t context,
                        uint32_t device);
uint32_t cupti_context_device(cupti_collector *self, uint32_t context);

/* ---- describe.c ---------------------------------------------------------- */

enum { CUPTI_TEXT = 640 };

/* JSON members, into `text` of CUPTI_TEXT bytes. Returns their length. */
size_t cupti_describe_kernel(const cupti_kernel *record,
                             const cupti_properties *properties, char *text);
size_t cupti_describe_device(const cupti_properties *properties, char *text);
void cupti_copy_name(int copy_kind, int from_kind, int to_kind, char *text,
                     size_t size);
const char *cupti_memory_name(int kind);
const char *cupti_sync_name(int type);
const char *cupti_overhead_name(int kind);
/* Blocks that a multiprocessor holds at once, by what they need of it; 0: not
 * known. */
uint32_t cupti_blocks_at_once(const cupti_kernel *record,
                              const cupti_properties *properties);

#pragma GCC visibility pop
#endif
