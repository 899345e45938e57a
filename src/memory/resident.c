/* Samples of resident.h: two counters, and the pages of reservations that came
 * into use since the last sample. A program uses reserved pages without any
 * call, so only a sample can find them.
 *
 * One thread at a time takes a sample: it takes the due time away and stores a
 * new one afterwards. A sample that took long is followed by a long pause, so
 * all samples together take at most a fiftieth of the time. */
#include "memory/resident.h"

#include <stdio.h>
#include <string.h>

#include "memory/reserved.h"
#include "os/os.h"
#include "record/memory.h"

enum { SAMPLES_A_SECOND = 50, PAUSES = 50 };
#define NEVER UINT64_MAX

_Atomic vst_ticks vst__resident_due = NEVER;

/* Constant while memory is traced, or a thread is in the funnel. */
static vst_id resident_id, files_id;
static vst_ticks least_pause;
static uint64_t peak_before;
/* Set by the thread that samples. */
static _Atomic uint64_t peak_seen;

static vst_id resident_define(vst_recording *recording, const char *name)
{
    const vst_definition counter = {.kind = VST_DEF_COUNTER,
                                    .name = name,
                                    .name_len = (uint32_t)strlen(name),
                                    .file = ""};
    vst_id id = 0;

    return vst_recording_define_id(recording, &counter, &id) == VST_OK ? id : 0;
}

void vst__resident_begin(vst_recording *recording)
{
    vst__reserved_forget();
    files_id = resident_define(recording, VST_COUNTER_RESIDENT_FILES);
    resident_id = resident_define(recording, VST_COUNTER_RESIDENT);
    least_pause = (vst_ticks)(vst_clock_ticks_per_second() / SAMPLES_A_SECOND);
    peak_before = vst__os_resident_peak();
    atomic_store(&peak_seen, 0);
    atomic_store(&vst__resident_due, 0);
}

/* Writes the peak. If the maximum that the system keeps rose while memory was
 * traced, that maximum is the peak. */
void vst__resident_end(vst_recording *recording)
{
    uint64_t peak = vst__os_resident_peak(), seen = atomic_load(&peak_seen);
    char json[64];

    atomic_store(&vst__resident_due, NEVER);
    vst__reserved_forget();
    if (peak <= peak_before || peak < seen)
        peak = seen;
    if (recording == NULL || !peak)
        return;
    snprintf(json, sizeof json, "{\"peak\": %llu}", (unsigned long long)peak);
    vst_recording_set_metadata(recording, "vestige.memory.resident", json);
}

void vst__resident_after_fork(void)
{
    atomic_store(&vst__resident_due, NEVER);
    vst__reserved_after_fork();
}

static void resident_touched(uintptr_t start, size_t size)
{
    vst__record_range(start, size, 0, 0, VST_RANGE_CHANGES | VST_RANGE_TOUCHED,
                      vst_clock_ticks());
}

void vst__resident_look(uintptr_t start, size_t size)
{
    if (vst__reserved_any())
        vst__reserved_look(start, vst__reserved_end(start, size),
                           resident_touched);
}

void vst__resident_sample(void)
{
    vst_ticks began = vst_clock_ticks(), ended, pause;
    vst_ticks due = atomic_load(&vst__resident_due);
    vst__os_resident now;

    if (began < due ||
        !atomic_compare_exchange_strong(&vst__resident_due, &due, NEVER))
        return;
    vst__resident_look(0, SIZE_MAX);
    now = vst__os_resident_now();
    if (now.bytes > atomic_load(&peak_seen))
        atomic_store(&peak_seen, now.bytes);
    if (now.bytes && resident_id && files_id) {
        vst__record_memory_counter(files_id, (double)now.file_bytes);
        vst__record_memory_counter(resident_id, (double)now.bytes);
    }
    ended = vst_clock_ticks();
    pause = (ended - began) * PAUSES;
    if (pause < least_pause)
        pause = least_pause;
    /* If stop() was called meanwhile, it set the due time to never, and waits
     * for this thread. */
    atomic_store(&vst__resident_due, ended + pause);
}
