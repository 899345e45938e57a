/* The collector "cuda": starts and stops CUPTI. Called by the thread that
 * controls the recording, except where buffers.c and collector.h say
 * otherwise. */
#include "collector.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cupti.h"
#include "library.h"

static const char collector_name[] = "cuda";

enum { FLUSH_MS = 1000 };

/* The kinds of records to enable, in this order. */
static const struct {
    int kind;
    const char *name;
} kinds[] = {
    {CUPTI_DEVICE, "properties of devices"},
    {CUPTI_CONTEXT, "contexts"},
    {CUPTI_MEMCPY, "copies"},
    {CUPTI_MEMCPY_PEER, "copies between devices"},
    {CUPTI_MEMSET, "sets"},
    {CUPTI_KERNEL, "kernels"},
    {CUPTI_EXTERNAL, "ids that others give"},
    {CUPTI_EVENT, "events"},
    {CUPTI_SYNC, "synchronisations"},
    {CUPTI_RUNTIME, "calls of the runtime"},
    {CUPTI_DRIVER, "calls of the driver"},
    {CUPTI_OVERHEAD, "overhead"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The process in which CUPTI was started; CUPTI does not work in processes
 * forked from it. */
static pid_t used_in;

/* ---- lines for the user -------------------------------------------------- */

static void collector_note(cupti_collector *self, const char *line)
{
    vst_collector_tell(self->recording, collector_name, line);
}

void cupti_note_failed(cupti_collector *self, const char *function, int result,
                       const char *meaning)
{
    char line[200];

    snprintf(line, sizeof line, "%s failed (%s): %s", function,
             cupti_result_name(result), meaning);
    collector_note(self, line);
}

void cupti_note_once(cupti_collector *self, cupti_trouble trouble,
                     const char *line)
{
    uint32_t bit = UINT32_C(1) << trouble;

    if (!(__atomic_fetch_or(&self->noted, bit, __ATOMIC_RELAXED) & bit))
        collector_note(self, line);
}

/* ---- starting ------------------------------------------------------------ */

/* CUPTI converts the device's times to this clock. */
static uint64_t read_clock(void)
{
    return vst_clock_ticks();
}

/* Gives each thread a buffer of its own, if CUPTI can, so that threads do not
 * contend. */
static void set_attributes(cupti_collector *self)
{
    uint8_t value = 1;
    size_t size = sizeof value;
    int result = CUPTI_OK;

    if (cupti.version >= CUPTI_VERSION_PER_THREAD)
        result = cupti.cuptiActivitySetAttribute(
            CUPTI_ATTRIBUTE_PER_THREAD_BUFFER, &size, &value);
    if (result != CUPTI_OK)
        cupti_note_failed(self, "cuptiActivitySetAttribute", result,
                          "threads share buffers");
    result = cupti.cuptiSetThreadIdType(CUPTI_THREAD_ID_SYSTEM);
    if (result != CUPTI_OK)
        cupti_note_failed(self, "cuptiSetThreadIdType", result,
                          "calls have no thread");
}

/* Enables the kinds; returns whether at least one is collected. */
static bool enable_kinds(cupti_collector *self)
{
    bool any = false;

    for (size_t i = 0; i < KINDS; i++) {
        int result = cupti.cuptiActivityEnable(kinds[i].kind);
        char meaning[64];

        any |= result == CUPTI_OK;
        if (result == CUPTI_OK)
            continue;
        snprintf(meaning, sizeof meaning, "no %s", kinds[i].name);
        cupti_note_failed(self, "cuptiActivityEnable", result, meaning);
    }
    return any;
}

/* Sets options that are useful but not necessary. */
static void collector_refine(cupti_collector *self)
{
    int result = cupti_silence_calls();

    if (result != CUPTI_OK)
        cupti_note_failed(self, "cuptiActivityEnableRuntimeApi", result,
                          "calls that are left out cost time");
    result = cupti.cuptiActivityFlushPeriod(FLUSH_MS);
    if (result != CUPTI_OK)
        cupti_note_failed(self, "cuptiActivityFlushPeriod", result,
                          "buffers are read only when they are full");
}

/* Sets the clock first: records that were enabled before would have other
 * times. */
static vst_status collector_start(vst_collector *collector)
{
    cupti_collector *self = (cupti_collector *)collector;
    int result;

    if (used_in != 0 && used_in != getpid()) {
        collector_note(
            self, "CUDA does not work in a process that was forked from one "
                  "which uses it");
        return VST_E_UNSUPPORTED;
    }
    used_in = getpid();
    result = cupti.cuptiActivityRegisterTimestampCallback(read_clock);
    if (result != CUPTI_OK) {
        cupti_note_failed(self, "cuptiActivityRegisterTimestampCallback",
                          result, "no CUDA activity is collected");
        return VST_E_UNSUPPORTED;
    }
    set_attributes(self);
    __atomic_store_n(&self->began, vst_clock_ticks(), __ATOMIC_RELAXED);
    cupti_buffers_set_collector(self);
    result = cupti.cuptiActivityRegisterCallbacks(cupti_buffer_request,
                                                  cupti_buffer_complete);
    if (result != CUPTI_OK) {
        cupti_note_failed(self, "cuptiActivityRegisterCallbacks", result,
                          "no CUDA activity is collected");
        return VST_E_UNSUPPORTED;
    }
    if (!enable_kinds(self))
        return VST_E_UNSUPPORTED;
    collector_refine(self);
    cupti_devices_ask(self);
    return VST_OK;
}

/* ---- stopping ------------------------------------------------------------ */

static void flush_with(cupti_collector *self, uint32_t flag)
{
    int result = cupti.cuptiActivityFlushAll(flag);

    if (result != CUPTI_OK)
        cupti_note_once(self, CUPTI_TROUBLE_FLUSH,
                        "cuptiActivityFlushAll failed: records in buffers are "
                        "lost");
}

static void collector_flush(vst_collector *collector)
{
    cupti_collector *self = (cupti_collector *)collector;

    flush_with(self, 0);
    cupti_devices_ask(self);
}

/* Writes how many activities of this window were lost or had no times. */
static void collector_note_counts(cupti_collector *self)
{
    uint64_t untimed = __atomic_exchange_n(&self->untimed, 0, __ATOMIC_RELAXED);
    uint64_t before = __atomic_exchange_n(&self->before, 0, __ATOMIC_RELAXED);
    char line[128];

    if (untimed != 0) {
        snprintf(line, sizeof line,
                 "%llu activities have no times and are lost",
                 (unsigned long long)untimed);
        collector_note(self, line);
    }
    if (before != 0) {
        snprintf(line, sizeof line,
                 "%llu activities ended before the recording began and are "
                 "left out",
                 (unsigned long long)before);
        collector_note(self, line);
    }
}

static void collector_stop(vst_collector *collector)
{
    cupti_collector *self = (cupti_collector *)collector;
    int result;

    for (size_t i = KINDS; i-- > 0;) {
        result = cupti.cuptiActivityDisable(kinds[i].kind);
        if (result != CUPTI_OK)
            cupti_note_failed(self, "cuptiActivityDisable", result,
                              kinds[i].name);
    }
    flush_with(self, CUPTI_FLUSH_FORCED);
    /* restores the old setting; a failure was reported when it was set */
    cupti.cuptiSetThreadIdType(CUPTI_THREAD_ID_DEFAULT);
    cupti.cuptiActivityFlushPeriod(0);
    cupti_devices_ask(self);
    collector_note_counts(self);
}

static void collector_destroy(vst_collector *collector)
{
    cupti_collector *self = (cupti_collector *)collector;

    cupti_buffers_forget(self);
    cupti_names_free(&self->names);
    free(self->externals);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

/* ---- creating ------------------------------------------------------------ */

static const vst_collector_ops ops = {collector_start, collector_flush,
                                      collector_stop, collector_destroy};

static vst_status collector_make(vst_recording *recording,
                                 vst_collector **collector)
{
    cupti_collector *self = calloc(1, sizeof *self);

    if (self == NULL)
        return VST_E_NOMEM;
    self->base.ops = &ops;
    self->recording = recording;
    pthread_mutex_init(&self->lock, NULL);
    *collector = &self->base;
    return VST_OK;
}

const char *vst_cupti_register(const char *named, const char *const *paths)
{
    const char *trouble = cupti_load(named, paths);

    if (trouble == NULL)
        trouble = cupti_measure_records();
    if (trouble == NULL &&
        vst_collector_register(collector_name, collector_make) != VST_OK)
        trouble = "too many collectors are registered";
    return trouble;
}
