/* The files of the Python functions that got an id in a recording. Python notes
 * them in the trace when it ends. Nothing is kept for this meanwhile: the
 * recorder knows the files. With the GIL. */
#include "session/session.h"

#include "record/language.h"

#include <string.h>

typedef struct gathering {
    char *bytes; /* NULL: only counts */
    size_t room;
    size_t used;
} gathering;

/* With the recorder's lock held, under which nothing is allocated. */
static void gather(void *ctx, vst_id id, const char *file, uint32_t length)
{
    gathering *self = ctx;
    size_t size = sizeof id + sizeof length + length;

    if (self->bytes != NULL) {
        if (size > self->room - self->used)
            return; /* another thread defined it after we counted */
        memcpy(self->bytes + self->used, &id, sizeof id);
        memcpy(self->bytes + self->used + sizeof id, &length, sizeof length);
        memcpy(self->bytes + self->used + sizeof id + sizeof length, file,
               length);
    }
    self->used += size;
}

static bool add(PyObject *files, const char *file, uint32_t length, vst_id id)
{
    PyObject *name = PyUnicode_DecodeFSDefaultAndSize(file, length);
    PyObject *number = PyLong_FromUnsignedLong(id);
    bool added = name != NULL && number != NULL &&
                 PyDict_SetDefault(files, name, number) != NULL;

    Py_XDECREF(name);
    Py_XDECREF(number);
    return added;
}

static bool add_all(PyObject *files, const gathering *found)
{
    for (size_t at = 0; at < found->used;) {
        uint32_t length;
        vst_id id;

        memcpy(&id, found->bytes + at, sizeof id);
        memcpy(&length, found->bytes + at + sizeof id, sizeof length);
        at += sizeof id + sizeof length;
        if (!add(files, found->bytes + at, length, id))
            return false;
        at += length;
    }
    return true;
}

PyObject *vpy_source_files(vst_recording *recording)
{
    gathering found = {.bytes = NULL};
    PyObject *files = PyDict_New();

    if (files == NULL)
        return NULL;
    vst__recording_each_file(recording, gather, &found);
    found.room = found.used;
    found.used = 0;
    found.bytes = PyMem_RawMalloc(found.room + 1);
    if (found.bytes == NULL) {
        Py_DECREF(files);
        return PyErr_NoMemory();
    }
    vst__recording_each_file(recording, gather, &found);
    if (!add_all(files, &found))
        Py_CLEAR(files);
    PyMem_RawFree(found.bytes);
    return files;
}
