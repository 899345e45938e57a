/* The interface as a table of functions, for code that cannot link against the
 * copy of vestige in its process: a framework's adapter gets the table from the
 * capsule "vestige._core.api" of the Python extension. Later versions only add
 * members at the end; `size` says how many bytes this version has. */
#ifndef VESTIGE_API_H
#define VESTIGE_API_H

#include "device.h"
#include "graph.h"
#include "memory.h"
#include "operator.h"
#include "record.h"
#include "storage.h"
#include "traceback.h"
#include "tracer.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VST_API_CAPSULE "vestige._core.api"

typedef struct vst_api {
    size_t size;
    /* See tracer.h. */
    void (*tracer_register_with_context)(vst_tracer_make_with_context_fn make);
    vst_tracer_make_with_context_fn (*tracer_registered)(void);
    /* See record.h. */
    vst_status (*recording_define_id)(vst_recording *recording,
                                      const vst_definition *definition,
                                      vst_id *id);
    bool (*thread_enter_free)(void);
    void (*record)(vst_kind kind, vst_id id);
    vst_status (*matcher_create)(vst_matcher **matcher);
    void (*matcher_destroy)(vst_matcher *matcher);
    vst_status (*matcher_feed)(vst_matcher *matcher,
                               const vst_time_converter *converter,
                               const vst_compressed_event *events, size_t count,
                               int64_t end_time_ns, const vst_sink *sink);
    /* See traceback.h. */
    vst_traceback *(*traceback_capture)(unsigned parts, size_t skip);
    size_t (*traceback_addresses)(uintptr_t *addresses, size_t max,
                                  size_t skip);
    vst_traceback *(*traceback_of)(const uintptr_t *addresses, size_t count);
    vst_traceback *(*traceback_retain)(vst_traceback *traceback);
    void (*traceback_release)(vst_traceback *traceback);
    size_t (*traceback_free_dead)(void);
    /* Makes the Python object of a traceback and takes over the caller's
     * reference to the traceback. Call with the GIL held. Returns a new
     * reference, or NULL with an exception set. */
    void *(*traceback_object)(vst_traceback *traceback);
    /* See operator.h. */
    vst_id (*recording_define)(const vst_definition *definition);
    bool (*record_operator)(vst_id id, uint32_t instance,
                            const uint64_t *payload, uint32_t words);
    void (*record_operator_exit)(vst_kind kind, vst_id id, uint32_t instance);
    /* A framework's allocator reports its blocks here (VST_MEMORY_FRAMEWORK).
     * Any thread. */
    void (*framework_allocated)(uintptr_t address, size_t size);
    void (*framework_freed)(uintptr_t address);
    /* See graph.h. */
    void (*record_node)(const uint64_t *payload, uint32_t words);
    /* See operator.h. */
    void (*record_far_end)(vst_id id, uint32_t instance);
    /* Like framework_freed, but with the block's size, which is subtracted from
     * the bytes of the span that is open. */
    void (*framework_freed_size)(uintptr_t address, size_t size);
    /* For adapters that store records of operators themselves: the calling
     * thread's pointer to its buffer (valid as long as the thread lives), the
     * number of the recording in progress, and the clock. */
    vst_buffer **(*thread_buffer)(void);
    const uint64_t *recording_epoch;
    const vst_clock_kind *clock_in_use;
    vst_ticks (*clock_ticks)(void);
    /* See storage.h. */
    void (*record_storages)(const uint64_t *payload, uint32_t words);
    /* See operator.h. */
    bool (*call_instead)(const char *name, void *original, void *instead);
    /* See device.h; names get their ids from recording_define_id. */
    vst_status (*collector_register)(const char *name,
                                     vst_collector_make_fn make);
    void (*collector_unregister)(const char *name);
    void (*collector_tell)(vst_recording *recording, const char *name,
                           const char *line);
    vst_status (*device_declare)(vst_recording *recording,
                                 const vst_device *device, uint32_t *number);
    vst_status (*device_declare_stream)(vst_recording *recording,
                                        uint32_t device,
                                        const vst_device_stream *stream);
    void (*device_sync)(vst_recording *recording, uint32_t device);
    bool (*device_deliver)(vst_recording *recording,
                           const vst_activity *activity);
    void (*device_lost)(vst_recording *recording, uint32_t device,
                        uint64_t count);
    double (*clock_ticks_per_second)(void);
} vst_api;

/* The name under which a library with a collector exports its load function.
 * The function registers the collector through the table, which stays valid. If
 * the function returns anything but VST_OK, the library is not used. vestige
 * calls the function when the user names the library (`vestige run
 * --collector`, profile(devices=[…])). */
#define VST_COLLECTOR_LOAD "vestige_collector_load"
typedef vst_status (*vst_collector_load_fn)(const vst_api *api);

#ifdef __cplusplus
}
#endif
#endif
