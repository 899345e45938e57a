/* Lines that collectors write for the user, a few in each recording. A line
 * goes into the trace's metadata immediately, and to the thread that controls
 * the recording when that thread asks. Any thread; the recorder's lock guards
 * the lines. */
#include <stdio.h>
#include <string.h>

#include <vestige/session.h>

#include "base/heap.h"
#include "record/devices.h"
#include "record/recording.h"

enum { LINE = 256, LINES_MAX = 16, NAME = 32 };

typedef struct line {
    char name[NAME]; /* the collector's name */
    char text[LINE];
} line;

struct vst__notes {
    line lines[LINES_MAX];
    size_t count;
    size_t taken; /* how many of the lines were handed over */
};

/* Replaces characters that need an escape in JSON or that a terminal obeys. */
static char collector_plain(char c)
{
    if (c == '"')
        return '\'';
    if (c == '\\')
        return '/';
    return c < ' ' || c > '~' ? '?' : c;
}

static void copy_plain(char *to, size_t size, const char *from)
{
    size_t length = 0;

    for (; *from != 0 && length + 1 < size; from++)
        to[length++] = collector_plain(*from);
    to[length] = 0;
}

/* Writes all lines of a collector to the metadata, as one JSON text. */
static void write_lines(vst_recording *recording, const char *name)
{
    const vst__notes *notes = recording->devices.notes;
    char key[sizeof "vestige.collector." + NAME];
    char json[LINES_MAX * (LINE + 2) + 2] = "\"";
    size_t length = 1;
    vst_entry entry = {.kind = VST_ENTRY_METADATA, .a = key, .b = json};

    for (size_t i = 0; i < notes->count; i++) {
        if (strcmp(notes->lines[i].name, name) != 0)
            continue;
        length +=
            (size_t)snprintf(json + length, sizeof json - length, "%s%s",
                             length > 1 ? "; " : "", notes->lines[i].text);
    }
    json[length++] = '"';
    entry.a_len =
        (size_t)snprintf(key, sizeof key, "vestige.collector.%s", name);
    entry.b_len = length;
    recording->provider->define(recording->provider->ctx, &entry);
}

void vst_collector_tell(vst_recording *recording, const char *name,
                        const char *text)
{
    vst__notes *notes;
    line *added;

    vst__recorder_take();
    notes = recording->devices.notes;
    if (notes == NULL) {
        notes = recording->devices.notes = vst__alloc(sizeof *notes);
        if (notes != NULL)
            notes->count = notes->taken = 0;
    }
    if (notes != NULL && notes->count < LINES_MAX &&
        vst__recording_is_ours(recording)) {
        added = &notes->lines[notes->count++];
        copy_plain(added->name, sizeof added->name, name);
        copy_plain(added->text, sizeof added->text, text);
        write_lines(recording, added->name);
    }
    vst__recorder_give();
}

size_t vst__notes_count(vst_recording *recording)
{
    const vst__notes *notes;
    size_t count;

    vst__recorder_take();
    notes = recording->devices.notes;
    count = notes != NULL ? notes->count : 0;
    vst__recorder_give();
    return count;
}

bool vst__notes_next(vst_recording *recording, char *text, size_t size)
{
    vst__notes *notes;
    bool is_there;

    vst__recorder_take();
    notes = recording->devices.notes;
    is_there = notes != NULL && notes->taken < notes->count;
    if (is_there) {
        const line *next = &notes->lines[notes->taken++];
        snprintf(text, size, "%s: %s", next->name, next->text);
    }
    vst__recorder_give();
    return is_there;
}
