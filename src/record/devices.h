/* Devices of a recording. collectors.c has the registry and drives the
 * collectors; devices.c writes what collectors deliver. */
#ifndef VST_RECORD_DEVICES_H
#define VST_RECORD_DEVICES_H

#include <stdbool.h>

#include <vestige/device.h>

#include "base/device_clock.h"

/* A device that was declared. Guarded by the recorder's lock. */
typedef struct vst__device {
    char platform[8];
    uint32_t ordinal;
    uint32_t collector; /* number of the collector that declared it */
    vst_device_clock clock;
    vst__clock_fit fit;
} vst__device;

typedef struct vst__notes vst__notes; /* lines that collectors wrote for the
                                       * user */

/* The devices of one recording. */
typedef struct vst__devices {
    /* Whether activities are accepted: true from the start of the collectors to
     * their stop. Atomic, and only a hint: an activity that comes too late is
     * lost anyway. */
    bool is_open;
    /* Guarded by the recorder's lock: */
    vst__device *items; /* a device's number is 1 + its index */
    size_t count, capacity;
    uint32_t collector; /* number of the collector that is being made or
                         * started, from 1 */
    uint64_t late;      /* activities that came after the stop */
    uint64_t
        late_written;  /* how many of the late activities the trace mentions */
    vst__notes *notes; /* NULL if no collector wrote a line */
} vst__devices;

/* The collectors that a session has made. */
typedef struct vst__collectors {
    vst_collector *made[VST_COLLECTORS_MAX];
    const char *names[VST_COLLECTORS_MAX];
    bool runs[VST_COLLECTORS_MAX];
    size_t count;
    bool are_made;
} vst__collectors;

/* ---- collectors.c; called by the thread that controls the recording ------ */

bool vst__collectors_any(void); /* Returns whether a collector is registered. */
/* Starts the registered collectors; the first call also makes them. A collector
 * that fails is left out, and the trace says why. */
void vst__collectors_start(vst__collectors *self, vst_recording *recording);
void vst__collectors_stop(vst__collectors *self, vst_recording *recording);
/* Any thread may call this. */
void vst__collectors_flush(const vst__collectors *self,
                           vst_recording *recording);
void vst__collectors_destroy(vst__collectors *self);

/* ---- collector_notes.c; any thread --------------------------------------- */

size_t vst__notes_count(vst_recording *recording);
/* Copies the oldest line that nobody has taken yet, after its collector's name.
 * Returns false if there is none. */
bool vst__notes_next(vst_recording *recording, char *text, size_t size);

/* ---- devices.c ----------------------------------------------------------- */

/* Compares the clocks of all devices with ours. */
void vst__devices_sync(vst_recording *recording);
/* Sets the collector that declares the next devices. */
void vst__devices_set_collector(vst_recording *recording, uint32_t collector);
void vst__devices_open(vst_recording *recording, bool open);
/* Writes to the trace how exact the clocks are, and how many activities came
 * too late. */
void vst__devices_write_quality(vst_recording *recording);
/* Writes the number of late activities again, if more came since. */
void vst__devices_write_late(vst_recording *recording);
void vst__devices_free(vst__devices *devices);

#endif
