/* Spans that ended on another thread. The thread that began one records its end
 * too, with its next span: otherwise a bounded recording would keep it open for
 * ever. Guarded by the GIL. */
#include "annotate/annotate.h"

enum { FAR_MAX = 1024 };

static struct far_end {
    const void *buffer; /* of the thread that began it */
    vst_id id;
    uint32_t instance, recording;
} far_ends[FAR_MAX];

unsigned vpy_far_ends_waiting;

void vpy_far_end(const void *buffer, vst_id id, uint32_t instance,
                 uint32_t recording)
{
    unsigned at = vpy_far_ends_waiting < FAR_MAX ? vpy_far_ends_waiting++ : 0;

    vst_record_far_end(id, instance);
    far_ends[at] = (struct far_end){buffer, id, instance, recording};
}

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
    vpy_far_ends_waiting = kept;
}
