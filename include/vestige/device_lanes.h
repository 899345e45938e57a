/* What devices did as lanes of a picture, read once from a trace and kept in
 * memory (some 110 bytes an activity, and each distinct text of attributes).
 * Several threads may ask at once.
 *
 * Lanes have numbers. First come those of threads: the calls that a thread made
 * of runtimes and drivers, and the overhead of the collecting. Behind them each
 * stream of a device has one, by device and stream. A lane has rows, as a
 * thread has: activities that overlap lie in different ones. Activities have
 * numbers, too: by lane, row and time. */
#ifndef VESTIGE_DEVICE_LANES_H
#define VESTIGE_DEVICE_LANES_H

#include "device.h"
#include "trace.h"
#include "view.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /* No more activities are kept. */
    VST_DEVICE_LANES_MAX = 8000000,
    /* In the last row of a lane, activities may overlap. */
    VST_DEVICE_ROWS_MAX = 32
};

typedef struct vst_device_lanes vst_device_lanes;

/* Of a window, as vst_trace_replay takes it. The trace may be closed
 * afterwards. */
VST_API vst_status vst_device_lanes_create(vst_trace *trace, int window,
                                           vst_tracer *tracer,
                                           vst_device_lanes **lanes,
                                           vst_error *error);
VST_API void vst_device_lanes_destroy(vst_device_lanes *lanes);

typedef struct vst_device_lane {
    uint32_t device; /* number, of a stream's; 0: the lane is a thread's */
    uint32_t stream;
    uint32_t thread; /* number; 0: the trace does not have it */
    uint32_t rows;
    uint32_t first, activities; /* numbers of its activities */
    int64_t start_ns, end_ns;
    int64_t busy_ns; /* while there was at least one */
    uint64_t bytes;  /* copied and set */
} vst_device_lane;

VST_API size_t vst_device_lanes_count(const vst_device_lanes *lanes);
VST_API const vst_device_lane *vst_device_lanes_at(const vst_device_lanes *self,
                                                   size_t lane);
/* Activities that were not kept, and texts of attributes: these are left out
 * where there are too many different ones. */
VST_API uint64_t vst_device_lanes_left_out(const vst_device_lanes *lanes);
VST_API uint64_t vst_device_lanes_texts_left_out(const vst_device_lanes *lanes);

/* A window as vst_view_window answers it; a row's thread is its lane. */
VST_API vst_status vst_device_lanes_draw(const vst_device_lanes *lanes,
                                         int64_t from_ns, int64_t to_ns,
                                         uint32_t pixels, const uint32_t *of,
                                         size_t count, void **bytes,
                                         size_t *size);

typedef struct vst_device_activity {
    uint32_t number;
    uint32_t lane, row;
    uint32_t kind; /* vst_activity_kind */
    vst_id id;
    uint32_t context;
    uint32_t device; /* of a call: one of its collector's */
    int64_t start_ns, end_ns;
    uint64_t correlation, external, bytes;
    vst_device_cause op, annotation;
    uint32_t launch;  /* 1 + the number of the call it came from; 0: none */
    const char *args; /* JSON members; good as long as the lanes */
    size_t args_len;
} vst_device_activity;

/* VST_E_ARGUMENT: there is none of this number. */
VST_API vst_status vst_device_lanes_get(const vst_device_lanes *lanes,
                                        uint32_t number,
                                        vst_device_activity *activity);
/* The one that a row shows at a time. VST_E_ARGUMENT: there is none. */
VST_API vst_status vst_device_lanes_find(const vst_device_lanes *lanes,
                                         uint32_t lane, uint32_t row,
                                         int64_t time_ns,
                                         vst_device_activity *activity);
/* All texts, one behind the other: what args point into. */
VST_API const char *vst_device_lanes_texts(const vst_device_lanes *lanes,
                                           size_t *length);
/* What came from a call: the numbers of the first `most`. Returns how many
 * there are. */
VST_API size_t vst_device_lanes_launched(const vst_device_lanes *lanes,
                                         uint32_t call, uint32_t *numbers,
                                         size_t most);

/* Adds to `counts` how many of those ids begin in each pixel. */
VST_API vst_status vst_device_lanes_search(const vst_device_lanes *lanes,
                                           int64_t from_ns, int64_t to_ns,
                                           uint32_t pixels,
                                           const vst_view_ids *ids,
                                           uint32_t *counts);
/* The first of those ids that begins after a time, or the last before it, in
 * this lane or, with UINT32_MAX, in any. VST_E_ARGUMENT: there is none. */
VST_API vst_status vst_device_lanes_next(const vst_device_lanes *lanes,
                                         int64_t time_ns, bool back,
                                         uint32_t lane, const vst_view_ids *ids,
                                         vst_device_activity *activity);

#ifdef __cplusplus
}
#endif
#endif
