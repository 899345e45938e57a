/* The only recording of a test, and the functions that the test calls. */
#ifndef VST_TESTS_ONE_SESSION_H
#define VST_TESTS_ONE_SESSION_H

#include <string.h>

#include <vestige/vestige.h>

#include "check.h"

static vst_session *session;

/* Returns the id of a C function. */
static inline vst_id define(const char *name)
{
    vst_definition definition = {.kind = VST_DEF_NATIVE,
                                 .name = name,
                                 .name_len = (uint32_t)strlen(name)};
    vst_id id = 0;

    CHECK_INT(vst_recording_define_id(vst_session_recording(session),
                                      &definition, &id),
              VST_OK);
    return id;
}

#endif
