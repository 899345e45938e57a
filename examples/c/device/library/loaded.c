/* The device of worker_device.h as a library that a Python program records:
 *
 *   cc -shared -fPIC -pthread -I include \
 *      library/loaded.c worker_device.c -o device.so
 *   vestige run --collector ./device.so program.py
 *
 * The copy of vestige in a Python process exports no names to the linker. So
 * this file defines the functions of vestige that the device calls, and passes
 * each call on to the table that vestige gives the library. */
#include <vestige/api.h>

#include "../worker_device.h"

enum { STREAMS = 4 };

static const vst_api *vestige;
vst_clock_kind vst_clock_in_use;

vst_ticks vst_clock_ticks_portable(void)
{
    return vestige->clock_ticks();
}

double vst_clock_ticks_per_second(void)
{
    return vestige->clock_ticks_per_second();
}

vst_status vst_recording_define_id(vst_recording *recording,
                                   const vst_definition *definition, vst_id *id)
{
    return vestige->recording_define_id(recording, definition, id);
}

vst_status vst_collector_register(const char *name, vst_collector_make_fn make)
{
    return vestige->collector_register(name, make);
}

void vst_collector_unregister(const char *name)
{
    vestige->collector_unregister(name);
}

vst_status vst_device_declare(vst_recording *recording,
                              const vst_device *device, uint32_t *number)
{
    return vestige->device_declare(recording, device, number);
}

vst_status vst_device_declare_stream(vst_recording *recording, uint32_t device,
                                     const vst_device_stream *stream)
{
    return vestige->device_declare_stream(recording, device, stream);
}

bool vst_device_deliver(vst_recording *recording, const vst_activity *activity)
{
    return vestige->device_deliver(recording, activity);
}

/* A table of an older vestige ends before what we need. */
VST_API vst_status vestige_collector_load(const vst_api *table)
{
    if (table->size < sizeof *table)
        return VST_E_UNSUPPORTED;
    vestige = table;
    vst_clock_in_use = *table->clock_in_use;
    return worker_device_open(STREAMS) == 0 ? VST_OK : VST_E_NOMEM;
}
