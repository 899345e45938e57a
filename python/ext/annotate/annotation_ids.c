/* The recording to which annotations go, and the ids of their names. Called
 * with the GIL held; the state lock guards everything here. */
#include "annotate/annotate.h"

static struct vpy_annotation_ids_state *const state = &vpy_annotate.ids;

void vpy_recording_set(vst_recording *recording)
{
    vpy_state_take();
    __atomic_store_n(&state->recording, recording, __ATOMIC_RELAXED);
    vpy_state_give();
}

/* Call with the state lock. */
static uint32_t current_recording(void)
{
    if (state->numbered_recording != state->recording) {
        state->numbered_recording = state->recording;
        state->recording_number++;
    }
    return state->recording_number;
}

/* The next recording may lie at the same address. */
void vpy_annotation_forget(vst_recording *recording)
{
    vpy_state_take();
    if (state->numbered_recording == recording)
        state->numbered_recording = NULL;
    vpy_state_give();
}

vst_id vpy_define_name(vst_definition_kind kind, PyObject *name)
{
    vst_definition definition = {.kind = kind};
    vst_id id = 0;
    PyObject *text = vpy_text(name, &definition.name, &definition.name_len);

    vpy_state_take();
    if (text != NULL && state->recording != NULL &&
        vst_recording_define_id(state->recording, &definition, &id) != VST_OK)
        id = 0;
    vpy_state_give();
    Py_XDECREF(text);
    return id;
}

/* Call with the state lock. */
static vst_id annotation_id_of(PyObject *name, uint32_t recording)
{
    size_t at = ((uintptr_t)name >> 4 ^ (uintptr_t)name >> 10) % VPY_NAMES_KEPT;
    vst_id id;

    if (VST_LIKELY(state->cache[at].name == name &&
                   state->cache[at].recording == recording))
        return state->cache[at].id;
    id = vpy_define_name(VST_DEF_ANNOTATION, name);
    if (id) {
        Py_INCREF(name);
        state->cache[at].id = id;
        state->cache[at].recording = recording;
        Py_XSETREF(state->cache[at].name, name);
    }
    return id;
}

vst_id vpy_annotation_id(PyObject *name, uint32_t *recording)
{
    vst_id id;

    vpy_state_take();
    *recording = current_recording();
    if (__atomic_load_n(&vpy_annotate.far_ends.waiting, __ATOMIC_RELAXED))
        vpy_far_ends_record(*recording);
    id = state->recording != NULL ? annotation_id_of(name, *recording) : 0;
    vpy_state_give();
    return id;
}

bool vpy_annotation_is_of_now(uint32_t recording)
{
    bool is_current = false;

    if (!vpy_is_recording())
        return false;
    vpy_state_take();
    is_current = state->recording != NULL && recording == current_recording();
    vpy_state_give();
    return is_current;
}
