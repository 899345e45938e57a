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

#include "record/language.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 10000, ENTRY_MAX = 64 };

typedef struct gathering {
    char *bytes; /* NULL: only counts */
    size_t room;
    size_t used;
} gathering;

/* Called with the recorder's lock held, so it must not allocate. */
static void sources_gather(void *ctx, vst_id id, const char *file,
                           uint32_t length)
{
    gathering *self = ctx;
    size_t size = sizeof id + sizeof length + length;

    if (self->bytes != NULL) {
        if (size > self->room - self->used)
            return; /* defined by another thread after the count */
        memcpy(self->bytes + self->used, &id, sizeof id);
        memcpy(self->bytes + self->used + sizeof id, &length, sizeof length);
        memcpy(self->bytes + self->used + sizeof id + sizeof length, file,
               length);
    }
    self->used += size;
}

/* ---- each file once ------------------------------------------------------ */

static bool sources_add(PyObject *files, const char *file, uint32_t length,
                        vst_id id)
{
    PyObject *name = PyBytes_FromStringAndSize(file, length);
    PyObject *number = PyLong_FromUnsignedLong(id);
    bool added = name != NULL && number != NULL &&
                 PyDict_SetDefault(files, name, number) != NULL;

    Py_XDECREF(name);
    Py_XDECREF(number);
    return added;
}

static bool sources_add_all(PyObject *files, const gathering *found)
{
    for (size_t at = 0; at < found->used;) {
        uint32_t length;
        vst_id id;

        memcpy(&id, found->bytes + at, sizeof id);
        memcpy(&length, found->bytes + at + sizeof id, sizeof length);
        at += sizeof id + sizeof length;
        if (!sources_add(files, found->bytes + at, length, id))
            return false;
        at += length;
    }
    return true;
}

/* Returns {file as bytes: id of one of its functions}: a new reference, or
 * NULL. */
static PyObject *find_files(vst_recording *recording)
{
    gathering found = {.bytes = NULL};
    PyObject *files = PyDict_New();

    vst__recording_each_file(recording, sources_gather, &found);
    found.room = found.used;
    found.used = 0;
    found.bytes = malloc(found.room + 1);
    if (files != NULL && found.bytes != NULL) {
        vst__recording_each_file(recording, sources_gather, &found);
        if (!sources_add_all(files, &found))
            Py_CLEAR(files);
    } else {
        Py_CLEAR(files);
    }
    free(found.bytes);
    return files;
}

/* ---- writing the note ---------------------------------------------------- */

/* Writes a file's entry, or nothing for "<string>" or a file that is gone.
 * Returns how many bytes were written. */
static size_t sources_write_entry(char *to, PyObject *file, PyObject *id)
{
    struct stat found;
    bool is_file;

    Py_BEGIN_ALLOW_THREADS;
    is_file =
        stat(PyBytes_AS_STRING(file), &found) == 0 && S_ISREG(found.st_mode);
    Py_END_ALLOW_THREADS;
    if (!is_file)
        return 0;
    return (size_t)snprintf(
        to, ENTRY_MAX, "[%lu,%lld,%lld],", PyLong_AsUnsignedLong(id),
        (long long)found.st_mtim.tv_sec * 1000000000 + found.st_mtim.tv_nsec,
        (long long)found.st_size);
}

void vpy_sources_note(vst_recording *recording)
{
    PyObject *files = find_files(recording), *file, *id;
    size_t count = files != NULL ? (size_t)PyDict_GET_SIZE(files) : 0;
    char *json =
        malloc((count < FILES_MAX ? count : FILES_MAX) * ENTRY_MAX + 3);
    size_t length = 1;
    Py_ssize_t at = 0;

    for (size_t noted = 0; json != NULL && noted < FILES_MAX && files != NULL &&
                           PyDict_Next(files, &at, &file, &id);) {
        size_t written = sources_write_entry(json + length, file, id);
        noted += written != 0;
        length += written;
    }
    if (json != NULL && files != NULL) {
        json[0] = '[';
        strcpy(json + length - (length > 1), "]");
        vst_recording_set_metadata(recording, "vestige.sources", json);
    }
    free(json);
    Py_XDECREF(files);
    PyErr_Clear();
}
