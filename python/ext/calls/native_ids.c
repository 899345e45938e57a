/* Ids of C functions. The key of a C function is its PyMethodDef and the type
 * of the object that it is bound to. The table keeps no object of the program
 * alive. A definition in a library's image stays where it is. A definition on
 * the heap, or a class, may be freed and its address used again: then names are
 * compared, at every call or when the version of the class has changed. The
 * table is emptied when recording starts.
 *
 * A name contains no address and names the defining class, so it is the same in
 * every run: <built-in method append of list object>. */
#include "calls/ids.h"

#include "base/short_text.h"
#include "calls/budget.h"
#include "calls/engine.h"
#include "program/program.h"
#include "thunks/thunks.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static struct vpy_native_ids_state *const state = &vpy_calls.natives;

enum { FIRST_SLOTS = 64 }; /* enough for most forked children */

/* The names that a freeable function had when it got its id. */
typedef struct vpy_native_names {
    char *method;
    char *owner;
} names;

/* Stores the table and its mask; hooks read them in the other order. No hook
 * runs while the table becomes smaller. */
static void native_ids_publish(vpy_native *table, size_t mask)
{
    if (mask < vpy_calls_hooks.natives_mask)
        __atomic_store_n(&vpy_calls_hooks.natives_mask, mask, __ATOMIC_RELEASE);
    __atomic_store_n(&vpy_calls_hooks.natives, table, __ATOMIC_RELEASE);
    __atomic_store_n(&vpy_calls_hooks.natives_mask, mask, __ATOMIC_RELEASE);
}

static void native_ids_free(vpy_natives *natives)
{
    for (uint32_t i = 1; i <= natives->kept_count; i++) {
        free(natives->kept[i].method);
        free(natives->kept[i].owner);
    }
    free(natives->kept);
    while (natives->retired_count > 0)
        free(natives->retired[--natives->retired_count]);
    free(natives->table);
    *natives = (vpy_natives){.table = NULL};
}

/* Call once the hooks are gone. A hook that still waits for the state lock then
 * finds no tracer. */
static void native_ids_empty(void)
{
    native_ids_publish(state->none, 0);
    native_ids_free(&state->now);
    state->tracer = NULL;
}

/* Freeing copies pages in a forked child, which keeps its parent's table for
 * that reason, and is useless where the process ends. */
void vpy_native_ids_end(void)
{
    vpy_state_take();
    if (vpy_thunks_are_passed_on()) {
        native_ids_publish(state->none, 0);
        state->tracer = NULL;
        if (state->inherited.table == NULL) {
            state->inherited = state->now;
            state->now = (vpy_natives){.table = NULL};
        }
    } else {
        native_ids_empty();
    }
    vpy_state_give();
}

void vpy_native_ids_before_fork(void)
{
    vpy_state_take();
    native_ids_free(&state->inherited);
    vpy_state_give();
}

bool vpy_native_ids_begin(vpy_tracer *for_tracer)
{
    vpy_native *table = calloc(FIRST_SLOTS, sizeof *table);

    vpy_state_take();
    native_ids_empty();
    if (table != NULL) {
        state->now.table = table;
        native_ids_publish(table, FIRST_SLOTS - 1);
        state->used = 0;
        state->tracer = for_tracer;
    }
    vpy_state_give();
    return table != NULL;
}

/* ---- the table --------------------------------------------------------- */

static vpy_native *find_slot(vpy_native *table, size_t mask,
                             PyMethodDef *method, PyTypeObject *owner)
{
    size_t i = vpy_native_hash(method, owner) & mask;

    while (table[i].method != NULL &&
           (table[i].method != method || table[i].owner != owner))
        i = (i + 1) & mask;
    return &table[i];
}

static void native_ids_grow(void)
{
    size_t mask = vpy_calls_hooks.natives_mask * 2 + 1;
    vpy_native *table = state->now.retired_count < VPY_RETIRED_MAX
                            ? calloc(mask + 1, sizeof *table)
                            : NULL;

    if (table == NULL)
        return;
    for (size_t i = 0; i <= vpy_calls_hooks.natives_mask; i++) {
        vpy_native *old = &vpy_calls_hooks.natives[i];
        if (old->method != NULL)
            *find_slot(table, mask, old->method, old->owner) = *old;
    }
    state->now.retired[state->now.retired_count++] = vpy_calls_hooks.natives;
    state->now.table = table;
    native_ids_publish(table, mask);
}

static const char *name_of_owner(PyTypeObject *owner)
{
    return owner != NULL ? owner->tp_name : "";
}

static bool is_current(const vpy_native *slot)
{
    const names *n = &state->now.kept[slot->names];

    return slot->names == 0 ||
           (strcmp(n->method, slot->method->ml_name) == 0 &&
            strcmp(n->owner, name_of_owner(slot->owner)) == 0);
}

/* Notes the version of the class. A class that changed, or a new class at the
 * same address, has another version. */
static void note_version(vpy_native *slot)
{
    uint32_t version = slot->in_image && slot->owner != NULL
                           ? vpy_type_version(slot->owner)
                           : 0;

    __atomic_store_n(&slot->version, version, __ATOMIC_RELEASE);
}

/* Fills a slot that hooks may be reading. If the slot belonged to another
 * function, a hook sees that function's version, which no class has any
 * more. */
static void native_ids_fill(vpy_native *slot, const vpy_native *content)
{
    __atomic_store_n(&slot->owner, content->owner, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->id, content->id, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->names, content->names, __ATOMIC_RELAXED);
    slot->in_image = content->in_image;
    note_version(slot);
    __atomic_store_n(&slot->method, content->method, __ATOMIC_RELEASE);
}

/* Copies the names and returns their index. Returns 0 if memory ran out; then
 * the slot must not be used again. */
static uint32_t keep_names(uint32_t index, const char *method,
                           const char *owner)
{
    if (index == 0) {
        if (state->now.kept_count + 1 >= state->now.kept_capacity) {
            uint32_t capacity =
                state->now.kept_capacity ? state->now.kept_capacity * 2 : 64;
            names *bigger =
                realloc(state->now.kept, capacity * sizeof *state->now.kept);
            if (bigger == NULL)
                return 0;
            state->now.kept = bigger;
            state->now.kept_capacity = capacity;
        }
        index = ++state->now.kept_count;
    } else {
        free(state->now.kept[index].method);
        free(state->now.kept[index].owner);
    }
    state->now.kept[index] = (names){strdup(method), strdup(owner)};
    if (state->now.kept[index].method == NULL ||
        state->now.kept[index].owner == NULL) {
        state->now.kept[index] = (names){strdup(""), strdup("")};
        return 0;
    }
    return index;
}

/* ---- names ------------------------------------------------------------- */

/* Returns the class whose method table holds the definition. */
static PyTypeObject *defining_class(PyTypeObject *type, PyMethodDef *method)
{
    PyObject *mro = type->tp_mro;

    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        PyMethodDef *m = base->tp_methods;
        if (m != NULL && m <= method) {
            while (m->ml_name != NULL && m != method)
                m++;
            if (m == method)
                return base;
        }
    }
    return type;
}

typedef struct description {
    PyMethodDef *method;
    PyTypeObject *owner; /* the owner in the key */
    PyObject *self;      /* the object that the function is bound to, or NULL */
    PyObject *module;    /* name of the module, borrowed, or NULL */
} description;

static bool native_ids_describe(PyObject *callable, description *d)
{
    if (PyCFunction_Check(callable)) {
        PyCFunctionObject *function = (PyCFunctionObject *)callable;
        *d = (description){function->m_ml, NULL, function->m_self,
                           function->m_module};
        if (d->self != NULL)
            d->owner = Py_TYPE(d->self);
        return true;
    }
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
        PyMethodDescrObject *method = (PyMethodDescrObject *)callable;
        *d = (description){method->d_method, method->d_common.d_type, NULL,
                           NULL};
        return true;
    }
    return false;
}

/* Returns the class that a method belongs to; NULL for a function of a module,
 * and for a function that is bound to nothing. */
static PyTypeObject *native_ids_class_of(const description *d)
{
    if (d->owner == NULL || (d->self != NULL && (PyModule_Check(d->self) ||
                                                 vpy_is_pybind11(d->self))))
        return NULL;
    if (d->self != NULL && PyType_Check(d->self))
        return defining_class((PyTypeObject *)d->self, d->method);
    return defining_class(d->owner, d->method);
}

/* Returns whether the function is vestige's own, or one of the methods by which
 * torch begins and ends a span: these would show inside the span. */
static bool is_our_own(const description *d, PyTypeObject *class)
{
    if (class != NULL)
        return strncmp(class->tp_name, "vestige.", 8) == 0 ||
               strcmp(class->tp_name,
                      "torch._C._profiler.RecordFunctionFast") == 0;
    return d->module != NULL && PyUnicode_Check(d->module) &&
           PyUnicode_CompareWithASCIIString(d->module, "vestige._core") == 0;
}

static bool is_in_image(const PyMethodDef *method)
{
    Dl_info info;

    return dladdr(method, &info) != 0;
}

/* Defines a function or class. A method is named by its class, or by "type" if
 * it is called on the class itself; anything else by its module. */
static vst_id define_named(vpy_native_kind kind, const char *name,
                           const char *where, uint32_t where_length)
{
    char label[512];
    vst_definition definition = {.kind = VST_DEF_NATIVE,
                                 .name = label,
                                 .file = where,
                                 .file_len = where_length};
    bool is_method =
        kind == VPY_METHOD_OF_OBJECT || kind == VPY_METHOD_OF_CLASS;
    vst__short_text text = vst__short_text_in(label, sizeof label);
    vst_id id = 0;

    vst__put_word(&text, is_method           ? "<built-in method "
                         : kind == VPY_CLASS ? "<built-in type "
                                             : "<built-in function ");
    vst__put_word(&text, name);
    if (is_method)
        vst__put_word(&text, " of ");
    if (kind == VPY_METHOD_OF_CLASS)
        vst__put_word(&text, "type");
    else if (is_method)
        vst__put_bytes(&text, where, where_length);
    vst__put_word(&text, is_method ? " object>" : ">");
    definition.name_len = (uint32_t)(text.at - label);
    if (vpy_is_left_out_spin(&definition) ||
        vst_recording_define_id(state->tracer->recording, &definition, &id) !=
            VST_OK)
        id = 0;
    vpy_budget_define(id, true);
    return id;
}

/* pybind11 3 binds every function to an object of its own, which says nothing
 * of the class that has the function. */
bool vpy_is_pybind11(PyObject *self)
{
    return strstr(Py_TYPE(self)->tp_name, "pybind11_detail_function_record") !=
           NULL;
}

/* The documentation that pybind11 writes begins with the signature:
 * `get(self: module.Box, key: str) -> int`. */
vst_id vpy_native_define_pybind11(const PyMethodDef *method, const char *module)
{
    static const char start[] = "(self: ";
    const char *class =
        method->ml_doc != NULL ? strstr(method->ml_doc, start) : NULL;
    size_t length;

    if (class == NULL)
        return define_named(VPY_FUNCTION_OF_MODULE, method->ml_name, module,
                            (uint32_t)strlen(module));
    class += sizeof start - 1;
    length = strcspn(class, ",)");
    return define_named(VPY_METHOD_OF_OBJECT, method->ml_name, class,
                        (uint32_t)length);
}

static vst_id native_ids_define(const description *d, PyTypeObject *class)
{
    const char *module = NULL;
    uint32_t length = 0;
    PyObject *text;
    vst_id id;

    if (class != NULL)
        return define_named(d->self != NULL && PyType_Check(d->self)
                                ? VPY_METHOD_OF_CLASS
                                : VPY_METHOD_OF_OBJECT,
                            d->method->ml_name, class->tp_name,
                            (uint32_t)strlen(class->tp_name));
    text = vpy_text(d->module, &module, &length);
    if (d->self != NULL && vpy_is_pybind11(d->self))
        id =
            vpy_native_define_pybind11(d->method, module != NULL ? module : "");
    else
        id = define_named(VPY_FUNCTION_OF_MODULE, d->method->ml_name, module,
                          length);
    Py_XDECREF(text);
    return id;
}

static vst_id define_slot(vpy_native *slot, const description *d)
{
    PyObject *type, *value, *traceback;
    PyTypeObject *class = native_ids_class_of(d);
    vst_id id;
    bool in_image, freeable;
    uint32_t index;

    PyErr_Fetch(&type, &value, &traceback);
    id = is_our_own(d, class) ? 0 : native_ids_define(d, class);
    /* Definitions in libraries are never freed, nor are static classes. */
    in_image = is_in_image(d->method);
    freeable = slot->names || !in_image ||
               (class != NULL && PyType_HasFeature(class, Py_TPFLAGS_HEAPTYPE));
    index = freeable ? keep_names(slot->names, d->method->ml_name,
                                  name_of_owner(d->owner))
                     : 0;
    if (!freeable || index) {
        state->used += slot->method == NULL;
        native_ids_fill(slot, &(vpy_native){.method = d->method,
                                            .owner = d->owner,
                                            .id = id,
                                            .names = index,
                                            .in_image = in_image});
        if (state->used * 2 > vpy_calls_hooks.natives_mask)
            native_ids_grow();
    }
    vpy_engine_native_defined(d->owner);
    vpy_greenlets_look();
    PyErr_Restore(type, value, traceback);
    return id;
}

/* Hooks look only into the first slot of a hash, and two functions may have the
 * same hash: the function that is called now gets the first slot. The other
 * function is still found, because no slot between the two is empty. Without
 * the GIL hooks may be reading both slots: then each function stays where it
 * is, and the second is found under the lock. */
static const vpy_native *bring_forward(vpy_native *slot)
{
    vpy_native *first =
        &vpy_calls_hooks.natives[vpy_native_hash(slot->method, slot->owner) &
                                 vpy_calls_hooks.natives_mask];
    vpy_native other = *first;

    if (VPY_FREE_THREADED)
        return slot;
    *first = *slot;
    *slot = other;
    return first;
}

/* Call with the state lock, which keeps the tracer. */
static vst_id id_in_table(const description *d)
{
    vpy_native *slot =
        find_slot(vpy_calls_hooks.natives, vpy_calls_hooks.natives_mask,
                  d->method, d->owner);

    if (slot->method != NULL && is_current(slot)) {
        note_version(slot);
        return bring_forward(slot)->id;
    }
    return define_slot(slot, d);
}

/* Returns the id. As in vpy_code_define, the id belongs to the recording
 * until the next record, and no function gets an id while the interpreter
 * shuts down. */
static vst_id native_ids_id_of(const description *d)
{
    vst_id id;

    vpy_state_take();
    id = state->tracer != NULL && !vpy_is_finalizing() ? id_in_table(d) : 0;
    vpy_state_give();
    return id;
}

vst_id vpy_native_id_slow(PyObject *callable)
{
    description d;

    if (PyMethod_Check(callable))
        callable = PyMethod_GET_FUNCTION(callable);
    if (native_ids_describe(callable, &d))
        return native_ids_id_of(&d);
    return Py_IS_TYPE(callable, &PyFunction_Type) ? 0
                                                  : vpy_callable_id(callable);
}

vst_id vpy_native_id_of(PyMethodDef *method, PyObject *self, bool *by_class)
{
    description d = {.method = method, .owner = Py_TYPE(self), .self = self};
    PyTypeObject *class = native_ids_class_of(&d);

    *by_class = class != NULL && PyType_HasFeature(class, Py_TPFLAGS_HEAPTYPE);
    return native_ids_id_of(&d);
}

vst_id vpy_native_define(const char *name, const char *where,
                         vpy_native_kind kind)
{
    if (state->tracer == NULL || vpy_is_finalizing())
        return 0;
    return define_named(kind, name, where, (uint32_t)strlen(where));
}

void vpy_native_ids_rest(bool (*is_out)(vst_id id))
{
    for (size_t i = 0; i <= vpy_calls_hooks.natives_mask; i++) {
        vpy_native *slot = &vpy_calls_hooks.natives[i];
        vst_id id = VPY_ID(slot->id);
        if (slot->method != NULL && id != 0)
            slot->id = is_out(id) ? id | VPY_LEFT_OUT : id;
    }
}
