/* Leaves functions out for a time, see VST_ESCAPE_LEFT_OUT (<vestige/wire.h>).
 */
#ifndef VST_RECORD_BUDGET_H
#define VST_RECORD_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include <vestige/record.h>

typedef struct vst_left_out {
    uint32_t flags;
    uint32_t passing;  /* cost of left-out calls, in millionths */
    uint32_t taken_ns; /* time that the calling thread took for the change */
    uint64_t cpu_ns, cost_ns;
    vst_ticks since;
    uint64_t since_cpu_ns;
} vst_left_out;

/* Records which functions are left out, among one thread's records. Call while
 * no hook records in any thread, or inside a hook. Returns false if there was
 * no room. */
bool vst__recording_leave_out(vst_recording *recording,
                              const vst_left_out *left_out, const vst_id *ids,
                              size_t count);

#endif
