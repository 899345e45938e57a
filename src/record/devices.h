/* Devices of a recording: collectors.c has the registry and drives what it
 * makes, devices.c writes what collectors tell. */
#ifndef VST_RECORD_DEVICES_H
#define VST_RECORD_DEVICES_H

#include <stdbool.h>

#include <vestige/device.h>

#include "base/device_clock.h"

/* A device that was declared. Guarded by the recorder's lock. */
typedef struct vst__device {
    char platform[8];
    uint32_t ordinal;
    uint32_t collector; /* which one declared it */
    vst_device_clock clock;
    vst__clock_fit fit;
} vst__device;

typedef struct vst__notes vst__notes; /* lines of collectors */

/* Of a recording. */
typedef struct vst__devices {
    /* Whether activities are taken: from the start of the collectors to their
     * stop. Atomic; a hint, a record that comes too late is lost anyway. */
    bool is_open;
    /* Guarded by the recorder's lock: */
    vst__device *items; /* a device's number is 1 + its index */
    size_t count, capacity;
    uint32_t collector; /* the one that is being made or started, from 1 */
    uint64_t late;      /* activities that came after the stop */
    uint64_t late_told; /* of those, how many the trace knows */
    vst__notes *notes;  /* NULL: there are none */
} vst__devices;

/* What a session has made. */
typedef struct vst__collectors {
    vst_collector *made[VST_COLLECTORS_MAX];
    const char *names[VST_COLLECTORS_MAX];
    bool runs[VST_COLLECTORS_MAX];
    size_t count;
    bool are_made;
} vst__collectors;

/* ---- collectors.c; by the thread that controls the recording ------------- */

bool vst__collectors_any(void); /* registered */
/* Makes what is registered, the first time, and starts it. One that fails is
 * left out; the trace says why. */
void vst__collectors_start(vst__collectors *self, vst_recording *recording);
void vst__collectors_stop(vst__collectors *self, vst_recording *recording);
/* Any thread. */
void vst__collectors_flush(const vst__collectors *self,
                           vst_recording *recording);
void vst__collectors_destroy(vst__collectors *self);

/* ---- collector_notes.c; any thread --------------------------------------- */

size_t vst__notes_count(vst_recording *recording);
/* The oldest line that was not taken yet, with its collector's name. False:
 * there is none. */
bool vst__notes_next(vst_recording *recording, char *text, size_t size);

/* ---- devices.c ----------------------------------------------------------- */

/* Compares all clocks. */
void vst__devices_sync(vst_recording *recording);
/* Whose devices are declared next. */
void vst__devices_set_collector(vst_recording *recording, uint32_t collector);
void vst__devices_open(vst_recording *recording, bool open);
/* Writes how good the clocks are, and what came too late. */
void vst__devices_tell(vst_recording *recording);
/* The same, if anything came too late since then. */
void vst__devices_tell_late(vst_recording *recording);
void vst__devices_free(vst__devices *devices);

#endif
