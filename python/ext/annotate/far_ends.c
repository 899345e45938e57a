/* Records spans that end on another thread than they began on. The thread that
 * began a span also records its end, with its next span: otherwise a bounded
 * recording would keep the span open for ever. Called with the GIL held; the
 * state lock guards the list. */
#include "annotate/annotate.h"

#include <vestige/operator.h>

static struct vpy_far_ends_state *const state = &vpy_annotate.far_ends;

static void set_waiting(unsigned count)
{
    __atomic_store_n(&state->waiting, count, __ATOMIC_RELAXED);
}

void vpy_far_end(const void *buffer, vst_id id, uint32_t instance,
                 uint32_t recording)
{
    unsigned count, at;

    vst_record_far_end(id, instance);
    vpy_state_take();
    count = state->waiting;
    at = count < VPY_FAR_ENDS_MAX ? count : 0;
    state->ends[at] = (struct vpy_far_end){buffer, id, instance, recording};
    if (count < VPY_FAR_ENDS_MAX)
        set_waiting(count + 1);
    vpy_state_give();
}

/* Records the ends of spans that this thread began. Call with the state
 * lock. */
VST_COLD void vpy_far_ends_record(uint32_t recording)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < state->waiting; i++) {
        if (state->ends[i].recording != recording)
            continue;
        if (state->ends[i].buffer == vst_thread_buffer)
            vst_record_end(state->ends[i].id, state->ends[i].instance);
        else
            state->ends[kept++] = state->ends[i];
    }
    set_waiting(kept);
}
