/* The registry of collectors, and the collectors that a session makes from it.
 * Any thread may register; everything else is called by the thread that
 * controls the recording, without a lock except while it reads the registry. */
#include <stdio.h>
#include <string.h>

#include "record/devices.h"
#include "record/recording.h"

typedef struct registered {
    const char *name;
    vst_collector_make_fn make; /* NULL if the place is free */
} registered;

/* Guarded by the recorder's lock. */
static registered places[VST_COLLECTORS_MAX];

/* ---- the registry -------------------------------------------------------- */

/* Returns the place with this name, else a free place, else NULL. */
static registered *collectors_find(const char *name)
{
    registered *free_place = NULL;

    for (size_t i = VST_COLLECTORS_MAX; i-- > 0;) {
        registered *place = &places[i];

        if (place->make != NULL && strcmp(place->name, name) == 0)
            return place;
        if (place->make == NULL)
            free_place = place;
    }
    return free_place;
}

vst_status vst_collector_register(const char *name, vst_collector_make_fn make)
{
    registered *place;

    vst__recorder_take();
    place = collectors_find(name);
    if (place != NULL)
        *place = (registered){name, make};
    vst__recorder_give();
    return place != NULL ? VST_OK : VST_E_NOMEM;
}

void vst_collector_unregister(const char *name)
{
    registered *place;

    vst__recorder_take();
    place = collectors_find(name);
    if (place != NULL)
        *place = (registered){NULL, NULL};
    vst__recorder_give();
}

bool vst__collectors_any(void)
{
    bool any = false;

    vst__recorder_take();
    for (size_t i = 0; i < VST_COLLECTORS_MAX; i++)
        any |= places[i].make != NULL;
    vst__recorder_give();
    return any;
}

/* ---- collectors of a session --------------------------------------------- */

/* Adds a note that the collector failed, unless the collector wrote a line
 * itself (there were `lines` lines before). */
static void collectors_note_failure(vst_recording *recording, const char *name,
                                    vst_status status, size_t lines)
{
    char line[128];

    if (vst__notes_count(recording) != lines)
        return;
    snprintf(line, sizeof line, "not started: %s", vst_status_string(status));
    vst_collector_tell(recording, name, line);
}

static void make_all(vst__collectors *self, vst_recording *recording)
{
    registered all[VST_COLLECTORS_MAX];

    vst__recorder_take();
    memcpy(all, places, sizeof all);
    vst__recorder_give();
    for (size_t i = 0; i < VST_COLLECTORS_MAX; i++) {
        size_t lines = vst__notes_count(recording);
        vst_collector *made = NULL;
        vst_status status;

        if (all[i].make == NULL)
            continue;
        vst__devices_set_collector(recording, (uint32_t)self->count + 1);
        status = all[i].make(recording, &made);
        if (status != VST_OK) {
            collectors_note_failure(recording, all[i].name, status, lines);
            continue;
        }
        self->names[self->count] = all[i].name;
        self->made[self->count++] = made;
    }
}

void vst__collectors_start(vst__collectors *self, vst_recording *recording)
{
    vst__devices_open(recording, true);
    if (!self->are_made)
        make_all(self, recording);
    self->are_made = true;
    for (size_t i = 0; i < self->count; i++) {
        size_t lines = vst__notes_count(recording);
        vst_status status;

        vst__devices_set_collector(recording, (uint32_t)i + 1);
        status = self->made[i]->ops->start(self->made[i]);
        self->runs[i] = status == VST_OK;
        if (status != VST_OK)
            collectors_note_failure(recording, self->names[i], status, lines);
    }
    vst__devices_sync(recording);
}

void vst__collectors_flush(const vst__collectors *self,
                           vst_recording *recording)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->runs[i] && self->made[i]->ops->flush != NULL)
            self->made[i]->ops->flush(self->made[i]);
    vst__devices_sync(recording);
}

/* Compares clocks last, so that every delivered activity lies between two
 * comparisons. */
void vst__collectors_stop(vst__collectors *self, vst_recording *recording)
{
    for (size_t i = self->count; i-- > 0;)
        if (self->runs[i])
            self->made[i]->ops->stop(self->made[i]);
    vst__devices_sync(recording);
    vst__devices_open(recording, false);
    vst__devices_write_quality(recording);
}

void vst__collectors_destroy(vst__collectors *self)
{
    while (self->count != 0) {
        vst_collector *made = self->made[--self->count];
        made->ops->destroy(made);
    }
}
