/* The names of definitions in tables. A name has one number in all traces of a
 * pass, so a row only needs a look-up by its definition's id. One thread at a
 * time. */
#include <stdlib.h>
#include <string.h>

#include "tables/framework.h"

static vst_status names_add_to(vst__dictionary *dictionary,
                               const char *const *names, size_t count)
{
    vst_status status = VST_OK;
    int32_t number;

    for (size_t i = dictionary->count; i < count && status == VST_OK; i++)
        status = vst__dictionary_add(dictionary, names[i], strlen(names[i]),
                                     &number);
    return status;
}

vst_status vst__names_add(vst__filling *filling, const char *const *names,
                          size_t count)
{
    return names_add_to(&filling->own_names, names, count);
}

vst_status vst__member_number(vst__filling *filling, const vst_span *span,
                              const char *key, uint32_t *number)
{
    vst__json_part value = vst__json_find_member(
        (vst__json_part){span->args, span->args_len}, key);
    int32_t found = -1;
    vst_status status = VST_OK;

    if (value.at != NULL)
        status = vst__dictionary_add(&filling->own_names, value.at, value.count,
                                     &found);
    *number = (uint32_t)(found + 1);
    return status;
}

/* ---- kinds --------------------------------------------------------------- */

/* Kinds of spans, and behind them the kind of devices' activities. */
enum { KIND_ACTIVITY = VST_DEF_KINDS, KINDS };

static vst_status add_kinds(vst__table_pass *pass)
{
    const char *kinds[KINDS];

    for (size_t i = 0; i < VST_DEF_KINDS; i++)
        kinds[i] = vst_definition_kind_name((vst_definition_kind)i);
    kinds[KIND_ACTIVITY] =
        vst_definition_kind_name((vst_definition_kind)VST_DEF_ACTIVITY);
    return names_add_to(&pass->dictionaries[VST_NAMES_KINDS], kinds, KINDS);
}

static int32_t names_number_of(size_t kind)
{
    return kind < VST_DEF_KINDS       ? (int32_t)kind
           : kind == VST_DEF_ACTIVITY ? (int32_t)KIND_ACTIVITY
                                      : 0;
}

/* ---- definitions --------------------------------------------------------- */

static vst_status add_shown(vst__dictionary *to, const vst_definition *d,
                            int32_t *number)
{
    char line[VST_JSON_NUMBER_MAX + 8] = "(";
    char *end = vst__json_i64(line + 1, d->line);
    vst_status status = VST_OK;

    vst__dictionary_begin(to);
    memcpy(end, "): ", 3);
    if (d->kind == VST_DEF_PYTHON) {
        status = vst__dictionary_put(to, d->file + d->file_skip,
                                     d->file_len - d->file_skip);
        if (status == VST_OK)
            status = vst__dictionary_put(to, line, (size_t)(end + 3 - line));
    }
    if (status == VST_OK)
        status = vst__dictionary_put(to, d->name, d->name_len);
    return status == VST_OK ? vst__dictionary_finish(to, number) : status;
}

/* Names ids whose definition a torn file has lost. */
static vst_status add_unknown(vst__table_pass *pass)
{
    static const char name[] = "unknown function";
    vst_status status;

    if (pass->unknown.shown >= 0)
        return VST_OK;
    status = vst__dictionary_add(&pass->dictionaries[VST_NAMES_SHOWN], name,
                                 sizeof name - 1, &pass->unknown.shown);
    return status == VST_OK
               ? vst__dictionary_add(&pass->dictionaries[VST_NAMES_FUNCTIONS],
                                     name, sizeof name - 1,
                                     &pass->unknown.function)
               : status;
}

/* Adds the names of a definition that only some tables show. */
static vst_status add_parts(vst__table_pass *pass, const vst_definition *d,
                            vst__defined *to)
{
    vst__dictionary *dictionaries = pass->dictionaries;
    vst_status status = VST_OK;

    if (d->file_len != 0 && pass->shown_names & 1u << VST_NAMES_FILES)
        status = vst__dictionary_add(&dictionaries[VST_NAMES_FILES], d->file,
                                     d->file_len, &to->file);
    if (status == VST_OK && pass->shown_names & 1u << VST_NAMES_FUNCTIONS)
        status = vst__dictionary_add(&dictionaries[VST_NAMES_FUNCTIONS],
                                     d->name, d->name_len, &to->function);
    return status;
}

vst_status vst__names_define(vst__table_pass *pass)
{
    const vst_trace *trace = pass->trace;
    vst_id max = vst_trace_definition_max(trace);
    vst__defined *defined =
        realloc(pass->defined, ((size_t)max + 1) * sizeof *defined);
    vst_status status = add_kinds(pass);

    if (defined == NULL)
        return VST_E_NOMEM;
    pass->defined = defined;
    pass->defined_max = max;
    if (status == VST_OK)
        status = add_unknown(pass);
    for (size_t i = 0; i <= max; i++)
        defined[i] = pass->unknown;
    for (size_t i = 0; i < trace->definition_count && status == VST_OK; i++) {
        const vst_definition *d = &trace->definitions[i];
        vst__defined *to = &defined[trace->definition_ids[i]];

        to->kind = names_number_of((size_t)d->kind);
        status = add_shown(&pass->dictionaries[VST_NAMES_SHOWN], d, &to->shown);
        if (status == VST_OK)
            status = add_parts(pass, d, to);
    }
    return status;
}
