/* Sees Python frames for the turbo engine, by sys.monitoring's events of
 * functions: see turbo_frames.h. */
#include "calls/turbo_frames.h"

#include "calls/engine.h"

const bool vpy_frames_see_raises = true;
const char vpy_turbo_test_expected[] = "g(a()b(a()]b[]b{]b{!c(!e(a())_()f())";

bool vpy_frames_start(vpy_tracer *tracer)
{
    return vpy_monitoring_start(tracer, false);
}

void vpy_frames_stop(vpy_tracer *tracer)
{
    vpy_monitoring_stop(tracer);
}

void vpy_frames_give_up(void)
{
    vpy_monitoring_give_up();
}

void vpy_frames_check(void)
{
}

size_t vpy_frames_in_place(void)
{
    return 0; /* the monitoring engine counts its own hooks */
}

size_t vpy_frames_pauses(void)
{
    return 0;
}

bool vpy_turbo_test_mends(const char *seen)
{
    (void)seen;
    return false;
}
