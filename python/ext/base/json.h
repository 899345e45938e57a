/* Writes JSON members into a buffer of bounded size, for the arguments of
 * spans. It runs no Python code and allocates nothing. */
#ifndef VPY_BASE_JSON_H
#define VPY_BASE_JSON_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

typedef struct vpy_json {
    char bytes[8000];
    size_t length;
    size_t key_at; /* where the last key begins */
    bool full;     /* the last key or text did not fit */
} vpy_json;

void vpy_json_key(vpy_json *json, const char *key, size_t length);
/* Opens an object: the members that follow belong to it. */
void vpy_json_begin(vpy_json *json, const char *key);
void vpy_json_end(vpy_json *json);
/* Writes a string as the value of the last key, cut to max bytes. */
void vpy_json_string(vpy_json *json, const char *s, size_t length, size_t max);
/* Writes an escaped string as the value of the last key, or removes the key if
 * the string does not fit. */
void vpy_json_ready(vpy_json *json, const char *escaped, size_t length);
/* Escapes text and writes it without a key. Sets `full` if it does not fit. */
void vpy_json_text(vpy_json *json, const char *s, size_t length);

#pragma GCC visibility pop
#endif
