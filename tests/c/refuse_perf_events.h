/* A system that does not report context switches. meson.build makes the linker
 * send calls of syscall() here, for the one test that includes this file. */
#ifndef VST_TEST_REFUSE_PERF_EVENTS_H
#define VST_TEST_REFUSE_PERF_EVENTS_H

#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

static int refuse_with;       /* errno of perf_event_open; 0: the real call is
                               * made */
static unsigned refuse_after; /* the number of calls that succeed before */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
    va_list list;
    long a[6];

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_perf_event_open && refuse_with != 0) {
        if (refuse_after == 0) {
            errno = refuse_with;
            return -1;
        }
        refuse_after--;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif
