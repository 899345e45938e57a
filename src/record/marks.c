/* Records of one id about the call on top of the stack: an exception was raised
 * in the call, or the call imports a module. Also the questions that the hooks
 * of these records ask first. Any thread, each on its own buffer. */
#include "record/recording.h"
#include "record/scope.h"

void vst__record_exception(vst_id id)
{
    const uint64_t payload = id;

    vst__record_escape(VST_ESCAPE_EXCEPTION, &payload, 1);
}

void vst__record_import(vst_id id)
{
    const uint64_t payload = id;

    vst__record_escape(VST_ESCAPE_IMPORT, &payload, 1);
}

bool vst__record_leaves_out(void)
{
    return ((vst__writer *)vst_thread_buffer)->scope != NULL;
}

bool vst__record_top_is_left_out(void)
{
    const vst__scope *scope = ((vst__writer *)vst_thread_buffer)->scope;

    return scope != NULL && !vst__scope_top_is_recorded(scope);
}
