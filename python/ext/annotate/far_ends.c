/* Spans that ended on another thread. The thread that began one records its end
 * too, with its next span: otherwise a bounded recording would keep it open for
 * ever. With the GIL; the state lock guards the list. */
#include "annotate/annotate.h"

#include <vestige/operator.h>

enum { FAR_MAX = 1024 };

static struct far_end {
    const void *buffer; /* of the thread that began it */
    vst_id id;
    uint32_t instance, recording;
} far_ends[FAR_MAX];

unsigned vpy_far_ends_waiting;

static void set_waiting(unsigned count)
{
    __atomic_store_n(&vpy_far_ends_waiting, count, __ATOMIC_RELAXED);
}

void vpy_far_end(const void *buffer, vst_id id, uint32_t instance,
                 uint32_t recording)
{
    unsigned count, at;

    vst_record_far_end(id, instance);
    vpy_state_take();
    count = vpy_far_ends_waiting;
    at = count < FAR_MAX ? count : 0;
    far_ends[at] = (struct far_end){buffer, id, instance, recording};
    if (count < FAR_MAX)
        set_waiting(count + 1);
    vpy_state_give();
}

/* With the state lock. */
VST_COLD void vpy_far_ends_settle(uint32_t recording)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < vpy_far_ends_waiting; i++) {
        if (far_ends[i].recording != recording)
            continue;
        if (far_ends[i].buffer == vst_thread_buffer)
            vst_record_end(far_ends[i].id, far_ends[i].instance);
        else
            far_ends[kept++] = far_ends[i];
    }
    set_waiting(kept);
}
