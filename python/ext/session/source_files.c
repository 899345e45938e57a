/* Notes the state of source files when a recording ends: for each file of a
 * recorded function, its modification time and size. The self-contained page,
 * which is made to be sent, shows lines of these files only, and only while
 * they are unchanged. A trace that somebody else made may name any file of the
 * reader's, but cannot know its time and size. A killed program notes nothing.
 *
 * No list is kept for this while recording: the recorder knows the files. No
 * file is opened, and if anything fails, the recording is complete without this
 * note. Called with the GIL held. */
#include "session/session.h"

#include "base/heap.h"
#include "base/intern.h"
#include "base/short_text.h"
#include "record/language.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 10000, ENTRY_MAX = 64 };

typedef struct sources {
    vst__intern
        *files; /* each file's number is the id of one of its functions */
    size_t count;
    char *json; /* NULL: memory ran out */
    vst__short_text text;
} sources;

/* Called with the recorder's lock held. */
static void sources_add(void *ctx, vst_id id, const char *file, uint32_t length)
{
    sources *self = ctx;

    if (self->count < FILES_MAX &&
        vst__intern_find(self->files, file, length) == 0 &&
        vst__intern_add(self->files, file, length, id) == VST_OK)
        self->count++;
}

/* Writes a file's entry, or nothing for "<string>" or a file that is gone. */
static void sources_write(void *ctx, const void *file, size_t length,
                          uint32_t id)
{
    sources *self = ctx;
    struct stat found;
    char path[PATH_MAX];

    if (length >= sizeof path)
        return;
    memcpy(path, file, length);
    path[length] = 0;
    if (stat(path, &found) != 0 || !S_ISREG(found.st_mode))
        return;
    vst__put_word(&self->text, self->text.at == self->json + 1 ? "[" : ",[");
    vst__put_number(&self->text, id);
    vst__put_word(&self->text, ",");
    vst__put_number(&self->text, (int64_t)found.st_mtim.tv_sec * 1000000000 +
                                     found.st_mtim.tv_nsec);
    vst__put_word(&self->text, ",");
    vst__put_number(&self->text, found.st_size);
    vst__put_word(&self->text, "]");
}

/* Takes no memory from malloc and makes no objects: in a forked child each
 * would copy a page. */
void vpy_sources_note(vst_recording *recording)
{
    sources self = {.files = vst__intern_create()};
    size_t size;

    if (self.files == NULL)
        return;
    vst__recording_each_file(recording, sources_add, &self);
    size = self.count * ENTRY_MAX + 3;
    self.json = vst__alloc(size);
    if (self.json != NULL) {
        self.text = vst__short_text_in(self.json, size);
        vst__put_word(&self.text, "[");
        Py_BEGIN_ALLOW_THREADS;
        vst__intern_each(self.files, sources_write, &self);
        Py_END_ALLOW_THREADS;
        vst__put_word(&self.text, "]");
        vst_recording_set_metadata(recording, "vestige.sources", self.json);
    }
    vst__free(self.json);
    vst__intern_destroy(self.files);
}
