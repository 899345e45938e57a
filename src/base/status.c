/* The one table of errors, as text. Any thread. */
#include <stddef.h>

#include <vestige/status.h>

const char *vst_status_string(vst_status status)
{
#define VST_STATUS_CASE(name, value, text)                                     \
    case name:                                                                 \
        return text;
    switch (status) {
        VST_STATUS_TABLE(VST_STATUS_CASE)
    }
#undef VST_STATUS_CASE
    return "unknown error";
}

vst_status vst_error_set(vst_error *error, vst_status status, int sys_errno,
                         uint64_t offset)
{
    if (error != NULL) {
        error->status = status;
        error->sys_errno = sys_errno;
        error->offset = offset;
    }
    return status;
}
