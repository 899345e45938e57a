/* Records of operators. Hooks of a framework make them on threads that no
 * tracer's stop() keeps out, so each function first checks whether anything is
 * recorded. Any thread, each on its own buffer. */
#include <vestige/graph.h>
#include <vestige/operator.h>
#include <vestige/storage.h>

#include "record/recording.h"

vst_id vst_recording_define(const vst_definition *definition)
{
    vst_id id = 0;

    vst__recorder_take();
    if (vst__recording_now != NULL)
        vst__recording_define(vst__recording_now, definition, &id);
    vst__recorder_give();
    return id;
}

bool vst_record_operator(vst_id id, uint32_t instance, const uint64_t *payload,
                         uint32_t words)
{
    if (words > VST_ESCAPE_WORDS_MAX || !vst_thread_enter_free())
        return false;
    if (VST_LIKELY(!instance) &&
        vst_operator_enter(vst_thread_buffer, vst_thread_buffer->free_epoch,
                           vst_clock_ticks(), id, payload, words))
        return true;
    if (instance)
        vst_record_begin(id, instance);
    else
        vst_record(VST_ENTER, id);
    vst__record_behind(VST_ESCAPE_OPERATOR, payload, words);
    return true;
}

void vst_record_operator_exit(vst_kind kind, vst_id id, uint32_t instance)
{
    if (!vst_thread_enter_free())
        return;
    if (instance)
        vst_record_end(id, instance);
    else
        vst_record(kind, id);
}

/* These records are rare, so the function looks up the definition each time. */
void vst_record_far_end(vst_id id, uint32_t instance)
{
    static const char name[] = "spans that end on another thread";
    const vst_definition mark = {
        .kind = (vst_definition_kind)VST_DEF_FAR_ENDS,
        .name = name,
        .name_len = sizeof name - 1,
        .file = "",
    };
    const uint64_t pair = (uint64_t)instance << 32 | id;

    if (vst_recording_define(&mark) && vst_thread_enter_free())
        vst__record_escape(VST_ESCAPE_FAR_END, &pair, 1);
}

void vst_record_node(const uint64_t *payload, uint32_t words)
{
    if (words <= VST_ESCAPE_WORDS_MAX && vst_thread_enter_free())
        vst__record_behind(VST_ESCAPE_NODE, payload, words);
}

void vst_record_storages(const uint64_t *payload, uint32_t words)
{
    if (words <= VST_ESCAPE_WORDS_MAX && vst_thread_enter_free())
        vst__record_behind(VST_ESCAPE_STORAGES, payload, words);
}

void vst__record_settle(bool ends)
{
    const uint64_t payload = ends;

    vst__record_escape(VST_ESCAPE_SETTLE, &payload, ends ? 1 : 0);
}
