/* The recording that annotations go to, and the ids of their names. With the
 * GIL; the state lock guards everything here. */
#include "annotate/annotate.h"

vst_recording *vpy_recording;

/* Counts recordings, so that ids are not carried from one to the next. */
static uint32_t recording_number;
static vst_recording *numbered_recording;

void vpy_recording_set(vst_recording *recording)
{
    vpy_state_take();
    __atomic_store_n(&vpy_recording, recording, __ATOMIC_RELAXED);
    vpy_state_give();
}

/* With the state lock. */
static uint32_t current_recording(void)
{
    if (numbered_recording != vpy_recording) {
        numbered_recording = vpy_recording;
        recording_number++;
    }
    return recording_number;
}

/* The next recording may lie at the same address. */
void vpy_annotation_forget(vst_recording *recording)
{
    vpy_state_take();
    if (numbered_recording == recording)
        numbered_recording = NULL;
    vpy_state_give();
}

/* The ids of names that were used last, found by the address of the str: most
 * names are constants of the program. A reference keeps each str alive, so that
 * no other gets its address. */
enum { CACHE_SIZE = 64 };

static struct {
    PyObject *name;
    vst_id id;
    uint32_t recording;
} cache[CACHE_SIZE];

vst_id vpy_define_name(vst_definition_kind kind, PyObject *name)
{
    vst_definition definition = {.kind = kind};
    vst_id id = 0;
    PyObject *text = vpy_text(name, &definition.name, &definition.name_len);

    vpy_state_take();
    if (text != NULL && vpy_recording != NULL &&
        vst_recording_define_id(vpy_recording, &definition, &id) != VST_OK)
        id = 0;
    vpy_state_give();
    Py_XDECREF(text);
    return id;
}

/* With the state lock. */
static vst_id id_of(PyObject *name, uint32_t recording)
{
    size_t at = ((uintptr_t)name >> 4 ^ (uintptr_t)name >> 10) % CACHE_SIZE;
    vst_id id;

    if (VST_LIKELY(cache[at].name == name && cache[at].recording == recording))
        return cache[at].id;
    id = vpy_define_name(VST_DEF_ANNOTATION, name);
    if (id) {
        Py_INCREF(name);
        cache[at].id = id;
        cache[at].recording = recording;
        Py_XSETREF(cache[at].name, name);
    }
    return id;
}

vst_id vpy_annotation_id(PyObject *name, uint32_t *recording)
{
    vst_id id;

    vpy_state_take();
    *recording = current_recording();
    if (__atomic_load_n(&vpy_far_ends_waiting, __ATOMIC_RELAXED))
        vpy_far_ends_settle(*recording);
    id = vpy_recording != NULL ? id_of(name, *recording) : 0;
    vpy_state_give();
    return id;
}

bool vpy_annotation_is_of_now(uint32_t recording)
{
    bool is = false;

    if (!vpy_is_recording())
        return false;
    vpy_state_take();
    is = vpy_recording != NULL && recording == current_recording();
    vpy_state_give();
    return is;
}
