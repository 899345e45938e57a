/* Shared by the tests of execution traces: recording and exporting a trace, and
 * checks that every document must pass. */
#ifndef VST_TESTS_EXECUTION_TRACES_H
#define VST_TESTS_EXECUTION_TRACES_H

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "export/output/json.h"
#include "exported.h"
#include "node_bytes.h"

static inline vst_session *started(uint64_t max_size)
{
    vst_session_options options = {.path = NULL, .max_size = max_size};
    vst_session *session = NULL;

    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    return session;
}

/* The head of a node of a document. */
typedef struct node_head {
    unsigned long long id, parent, record, forward;
} node_head;

static inline const char *end_of_line(const char *at)
{
    while (*at != '\0' && *at != '\n')
        at++;
    return at;
}

/* Searches only the line that begins at `line`, with memmem: under a sanitizer,
 * strstr reads the whole text at each call. */
static inline const char *find_in_line(const char *at, const char *key)
{
    return memmem(at, (size_t)(end_of_line(at) - at), key, strlen(key));
}

static inline unsigned long long number_behind(const char *line,
                                               const char *key)
{
    const char *at = find_in_line(line, key);

    return at != NULL ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static inline bool begins_with(const char *line, const char *text)
{
    return strncmp(line, text, strlen(text)) == 0;
}

static inline const char *next_line(const char *line)
{
    const char *end = end_of_line(line);

    return *end != '\0' && end[1] != '\0' ? end + 1 : NULL;
}

#define ATTRIBUTE_KEY(name) "\"" name "\", \"type\": \"uint64\", \"value\": "

/* Returns the nodes of a document, in the document's order; the caller frees
 * the array. */
static inline node_head *heads_of(const char *text, size_t *count)
{
    node_head *heads = calloc(strlen(text) / 100 + 1, sizeof *heads);
    node_head *last = heads;

    *count = 0;
    for (const char *line = text; line != NULL; line = next_line(line)) {
        if (begins_with(line, "        \"id\": ")) {
            last = &heads[(*count)++];
            last->id = number_behind(line, "\"id\": ");
            last->parent = number_behind(line, "\"ctrl_deps\": ");
        } else if (begins_with(line, "        \"attrs\": ")) {
            last->record = number_behind(line, ATTRIBUTE_KEY("rf_id"));
            last->forward = number_behind(line, ATTRIBUTE_KEY("fw_parent"));
        }
    }
    return heads;
}

static inline int by_id(const void *a, const void *b)
{
    const node_head *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static inline bool has_id(const node_head *heads, size_t count,
                          unsigned long long id)
{
    node_head wanted = {.id = id};

    return bsearch(&wanted, heads, count, sizeof wanted, by_id) != NULL;
}

/* Checks that the document is JSON, that no id occurs twice, that the root is 1
 * and its own parent, and that every other node has a parent in the document
 * that began earlier. Returns the number of nodes, roots included. */
static inline size_t check_document(const char *text)
{
    size_t count = 0, bad = 0;
    node_head *heads = text != NULL ? heads_of(text, &count) : NULL;

    CHECK(text != NULL && vst__json_is_value(text, strlen(text)));
    CHECK(count != 0);
    if (count == 0)
        return 0;
    CHECK_INT(heads[count - 1].id, 1);
    qsort(heads, count, sizeof *heads, by_id);
    CHECK_INT(heads[0].parent, 1);
    for (size_t i = 1; i < count; i++)
        bad +=
            heads[i].id == heads[i - 1].id || heads[i].parent >= heads[i].id ||
            !has_id(heads, count, heads[i].parent) ||
            (heads[i].forward != 0 && !has_id(heads, count, heads[i].forward));
    CHECK_INT(bad, 0);
    free(heads);
    return count;
}

static inline char *export_all(vst_trace *const *traces, size_t count,
                               unsigned observer, vst_status wanted)
{
    vst_export_options options = {.window = VST_WINDOW_ALL,
                                  .format = "execution-trace",
                                  .observer = observer};
    char *text;

    CHECK_INT(
        vst_traces_export(traces, count, in_folder("et.json"), &options, NULL),
        wanted);
    if (wanted != VST_OK)
        return NULL;
    text = contents(in_folder("et.json"));
    remove(in_folder("et.json"));
    return text;
}

/* Stops and exports the session, checks the document and returns it; the caller
 * frees it. */
static inline char *finished(vst_session *session)
{
    vst_trace *trace = NULL;
    char *text;

    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    text = export_all(&trace, 1, 0, VST_OK);
    vst_trace_close(trace);
    vst_session_destroy(session);
    check_document(text);
    return text;
}

/* Returns the part of a document that describes the node with this number; ""
 * if there is no such node. The part begins with the node's id. */
static inline const char *node_of(const char *text, unsigned long long record)
{
    const char *begin = "";

    for (const char *line = text; line != NULL; line = next_line(line)) {
        if (begins_with(line, "        \"id\": "))
            begin = line;
        else if (begins_with(line, "        \"attrs\": ") &&
                 number_behind(line, ATTRIBUTE_KEY("rf_id")) == record)
            return begin;
    }
    return "";
}

/* Returns the line of attributes of that node. */
static inline const char *attributes_of(const char *text,
                                        unsigned long long record)
{
    const char *line = node_of(text, record);

    while (line != NULL && *line != '\0' &&
           !begins_with(line, "        \"attrs\": "))
        line = next_line(line);
    return line != NULL ? line : "";
}

#endif
