/* Types of objects that have thunks of their own. Most such objects allow no
 * weak reference, so their type's deallocator is replaced: it forgets the thunk
 * first. And types of descriptors that make a function whenever they are asked
 * for one, from definitions that no table holds (sip's): the functions get
 * thunks when they are made. With the GIL; a deallocator is also called with
 * the GIL of another interpreter. */
#include "thunks/thunks.h"

#include "calls/ids.h"

static struct vpy_callables_state *const state = &vpy_thunks.callables;

static struct vpy_watched_type *watched_find(const PyTypeObject *type)
{
    for (size_t i = 0; i < state->watched_count; i++)
        if (state->watched[i].type == type)
            return &state->watched[i];
    return NULL;
}

/* The entry of a type or of the nearest base. */
static const struct vpy_watched_type *watched_base(const PyTypeObject *type)
{
    const struct vpy_watched_type *found = NULL;

    while (found == NULL && type != NULL) {
        found = watched_find(type);
        type = type->tp_base;
    }
    return found;
}

/* A type that was freed has left its entry to the type at its address. */
static struct vpy_watched_type *watched_add(PyTypeObject *type)
{
    struct vpy_watched_type *w = watched_find(type);
    PyObject *alive;

    if (w != NULL && w->alive != NULL && !vpy_weakref_is_dead(w->alive))
        return w;
    if (w == NULL && state->watched_count == VPY_WATCHED_TYPES)
        return NULL;
    alive = vpy_weakref_new((PyObject *)type);
    PyErr_Clear();
    if (alive == NULL)
        return NULL;
    if (w == NULL)
        w = &state->watched[state->watched_count++];
    Py_XDECREF(w->alive);
    *w = (struct vpy_watched_type){.type = type, .alive = alive};
    return w;
}

/* ---- objects ------------------------------------------------------------- */

static vpy_place *place_in(PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);

    if (!PyType_HasFeature((PyTypeObject *)type, Py_TPFLAGS_HAVE_VECTORCALL) ||
        type->tp_vectorcall_offset <= 0)
        return NULL;
    return (vpy_place *)(void *)((char *)object + type->tp_vectorcall_offset);
}

bool vpy_object_has_thunk(PyObject *object)
{
    const vpy_place *place = place_in(object);

    return place != NULL && vpy_thunk_number(*place) < VPY_THUNKS;
}

static void object_dealloc(PyObject *object)
{
    vpy_place *place = place_in(object);

    if (place != NULL && vpy_thunks_are_mine())
        vpy_thunks_forget(place);
    watched_base(Py_TYPE(object))->dealloc(object);
}

/* The interpreter's deallocator of classes looks for that of a base which is
 * another one: it would find ours again. */
bool vpy_object_watch(PyTypeObject *type)
{
    struct vpy_watched_type *w;

    if (type->tp_dealloc == object_dealloc)
        return true;
    w = type->tp_dealloc != vpy_calls.callables.python_dealloc
            ? watched_add(type)
            : NULL;
    if (w == NULL)
        return false;
    w->dealloc = type->tp_dealloc;
    __atomic_store_n(&type->tp_dealloc, object_dealloc, __ATOMIC_RELEASE);
    return true;
}

/* ---- descriptors --------------------------------------------------------- */

static PyObject *descriptor_get(PyObject *self, PyObject *object,
                                PyObject *class)
{
    PyObject *made = watched_base(Py_TYPE(self))->get(self, object, class);

    if (made != NULL)
        vpy_thunks_cover(made);
    return made;
}

void vpy_descriptors_watch(PyTypeObject *type)
{
    struct vpy_watched_type *w;

    if (type->tp_descr_get == NULL || type->tp_descr_get == descriptor_get ||
        !vpy_thunks_cover_functions())
        return;
    w = watched_add(type);
    if (w == NULL)
        return;
    w->get = type->tp_descr_get;
    __atomic_store_n(&type->tp_descr_get, descriptor_get, __ATOMIC_RELEASE);
}

PyObject *vpy_described_function(PyObject *descriptor, PyTypeObject *class)
{
    PyObject *made;

    if (Py_TYPE(descriptor)->tp_descr_get != descriptor_get)
        return NULL;
    made = watched_base(Py_TYPE(descriptor))
               ->get(descriptor, NULL, (PyObject *)class);
    if (made == NULL)
        PyErr_Clear();
    return made;
}

/* ---- the end ------------------------------------------------------------- */

void vpy_objects_unwatch(void)
{
    for (size_t i = 0; i < state->watched_count; i++) {
        struct vpy_watched_type *w = &state->watched[i];
        bool is_there = w->alive != NULL && !vpy_weakref_is_dead(w->alive);
        if (is_there && w->type->tp_dealloc == object_dealloc)
            w->type->tp_dealloc = w->dealloc;
        if (is_there && w->type->tp_descr_get == descriptor_get)
            w->type->tp_descr_get = w->get;
        Py_CLEAR(w->alive);
    }
}
