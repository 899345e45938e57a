/* See spans.h. */
#include "read/spans.h"

#include <stdlib.h>
#include <string.h>

/* ---- members of JSON --------------------------------------------------- */

/* The end of the string that begins at `at`. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\' && at + 1 < end)
            at++;
    return at < end ? at + 1 : end;
}

/* The end of the value that begins at `at`: a comma, or the end of the text. */
static const char *skip_value(const char *at, const char *end)
{
    int depth = 0;

    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        if (*at == '[' || *at == '{')
            depth++;
        else if (*at == ']' || *at == '}')
            depth--;
        else if (*at == ',' && depth == 0)
            break;
        at++;
    }
    return at;
}

static const char *skip_spaces(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == ':' || *at == ','))
        at++;
    return at;
}

vpy_part vpy_member(const char *members, size_t length, const char *key)
{
    const char *at = members, *end = members != NULL ? members + length : NULL;
    size_t key_length = strlen(key);

    while (at != NULL && (at = skip_spaces(at, end)) < end && *at == '"') {
        const char *name = at + 1;
        bool found;
        const char *value;
        at = skip_string(at, end);
        found = (size_t)(at - name) == key_length + 1 &&
                memcmp(name, key, key_length) == 0;
        value = skip_spaces(at, end);
        at = skip_value(value, end);
        if (found)
            return (vpy_part){value, (size_t)(at - value)};
    }
    return (vpy_part){NULL, 0};
}

/* ---- texts ------------------------------------------------------------- */

static size_t hash_text(vpy_part text)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < text.length; i++)
        hash = (hash ^ (unsigned char)text.at[i]) * 0x100000001b3u;
    return (size_t)(hash ^ hash >> 32);
}

static void put_number(vpy_texts *texts, uint32_t number)
{
    size_t slot = hash_text(texts->of[number - 1]) & texts->mask;

    while (texts->slots[slot])
        slot = (slot + 1) & texts->mask;
    texts->slots[slot] = number;
}

static bool grow_texts(vpy_texts *texts)
{
    uint32_t capacity = texts->capacity ? texts->capacity * 2 : 32;
    vpy_part *of = realloc(texts->of, capacity * sizeof *of);
    uint32_t *slots;

    if (of == NULL)
        return false;
    texts->of = of;
    slots = calloc((size_t)capacity * 2, sizeof *slots);
    if (slots == NULL)
        return false;
    free(texts->slots);
    texts->slots = slots;
    texts->capacity = capacity;
    texts->mask = (size_t)capacity * 2 - 1;
    for (uint32_t number = 1; number <= texts->count; number++)
        put_number(texts, number);
    return true;
}

bool vpy_texts_number(vpy_texts *texts, vpy_part text, uint32_t *number)
{
    char *copy;

    *number = 0;
    if (text.at == NULL)
        return true;
    if (texts->count == texts->capacity && !grow_texts(texts))
        return false;
    for (size_t slot = hash_text(text) & texts->mask; texts->slots[slot];
         slot = (slot + 1) & texts->mask) {
        vpy_part known = texts->of[texts->slots[slot] - 1];
        if (known.length == text.length &&
            memcmp(known.at, text.at, text.length) == 0) {
            *number = texts->slots[slot];
            return true;
        }
    }
    copy = malloc(text.length + 1);
    if (copy == NULL)
        return false;
    memcpy(copy, text.at, text.length);
    texts->of[texts->count] = (vpy_part){copy, text.length};
    *number = ++texts->count;
    put_number(texts, *number);
    return true;
}

void vpy_texts_free(vpy_texts *texts)
{
    for (uint32_t i = 0; i < texts->count; i++)
        free((char *)(uintptr_t)texts->of[i].at);
    free(texts->of);
    free(texts->slots);
}

PyObject *vpy_texts_list(const vpy_texts *texts)
{
    PyObject *list = PyList_New((Py_ssize_t)texts->count);

    for (uint32_t i = 0; list != NULL && i < texts->count; i++) {
        PyObject *text = vpy_trace_text(texts->of[i].at, texts->of[i].length);
        if (text == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, text);
    }
    return list;
}

/* ---- time -------------------------------------------------------------- */

static int64_t now_ns(void)
{
    vst_clock_sample now;

    vst_clock_sample_now(&now);
    return now.monotonic_ns;
}

bool vpy_deadline_set(vpy_deadline *deadline, PyObject *seconds)
{
    double value;

    if (seconds == NULL || seconds == Py_None)
        return true;
    value = PyFloat_AsDouble(seconds);
    if (value == -1.0 && PyErr_Occurred() != NULL)
        return false;
    if (value < 1e9)
        deadline->at_ns = now_ns() + (int64_t)(value * 1e9);
    return true;
}

bool vpy_deadline_look(vpy_deadline *deadline)
{
    deadline->passed = now_ns() >= deadline->at_ns;
    return deadline->passed;
}

bool vpy_reading_parse(vpy_reading *reading, vpy_trace *trace, PyObject *args,
                       PyObject *kw, const char *format)
{
    static char *names[] = {"all_windows",  "since",     "calls",   "shapes",
                            "overloads",    "framework", "timeout", "tree",
                            "fold_imports", NULL};
    PyObject *timeout = NULL;

    *reading = (vpy_reading){.since = -1, .calls = 1};
    return PyArg_ParseTupleAndKeywords(args, kw, format, names, &reading->all,
                                       &reading->since, &reading->calls,
                                       &reading->shapes, &reading->overloads,
                                       &reading->framework, &timeout,
                                       &reading->tree, &reading->folds) &&
           vpy_trace_is_usable(trace) &&
           vpy_deadline_set(&reading->deadline, timeout);
}
