/* Programs written for 0.1 compile and run: the names that were changed since
 * then still mean what they meant. New code uses the new ones. */
#include <vestige/vestige.h>

#include "check.h"

static void a_recording_is_a_queue_too(void)
{
    const vst_definition definition = {
        .kind = VST_DEF_PYTHON, .name_len = 1, .name = "f"};
    const vst_session_options options = {0};
    vst_session *session;
    vst_queue *queue;
    vst_id id = 0, again = 0;

    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    queue = vst_session_queue(session);
    CHECK_INT(vst_queue_define(queue, &definition, &id), VST_OK);
    CHECK_INT(vst_recording_define_id(vst_session_recording(session),
                                      &definition, &again),
              VST_OK);
    CHECK(id != 0);
    CHECK_INT(id, again);
    CHECK_INT(vst_queue_set_metadata(queue, "k", "1"), VST_OK);
    CHECK(&vst_queue_define_stack == &vst_recording_define_stack);
    CHECK(&vst_queue_define_module == &vst_recording_define_module);
    CHECK(&vst_queue_each_file == &vst_recording_each_file);
    CHECK(&vst_queue_name_thread == &vst_recording_name_thread);
    CHECK(&vst_queue_open_stack == &vst_recording_open_stack);
    CHECK(&vst_queue_request_attention == &vst_recording_request_attention);
    CHECK(&vst_queue_set_attention == &vst_recording_set_attention);
    vst_session_destroy(session);
}

static void an_event_has_the_time_it_is_entered(void)
{
    const vst_compressed_event event = {.enter_t = 7};

    CHECK_INT(event.ticks, 7);
    CHECK_INT(event.enter_t, 7);
}

int main(void)
{
    TEST(a_recording_is_a_queue_too);
    TEST(an_event_has_the_time_it_is_entered);
    return checks_end();
}
