/* A sink that keeps its spans, prints them as a readable call tree, and checks
 * the rules that hold for every tree. */
#ifndef VST_TESTS_SPAN_TREE_H
#define VST_TESTS_SPAN_TREE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vestige/span.h>

#include "check.h"

typedef struct span_tree {
    vst_span *spans;
    size_t count, capacity;
    size_t limit;      /* number of spans to keep, the others are only counted;
                        * 0: keep all */
    int64_t origin_ns; /* printed times are relative to this time */
    const char *(*name)(vst_id id);
    char *text;
    size_t text_count;
    char points[4096]; /* instants, counters and losses, one per line */
    size_t points_count;
    size_t points_seen;
    int64_t last_end_ns;
    uint32_t last_thread;
    int64_t *waiting_ns; /* by depth: summed time of spans whose parent is still
                          * open */
    size_t depths, top;
} span_tree;

static inline void tree_print(span_tree *tree, const char *format,
                              const char *what, long long a, long long b)
{
    int count;

    if (tree->points_count + 256 > sizeof tree->points)
        return;
    count =
        snprintf(tree->points + tree->points_count, 256, format, what, a, b);
    if (count > 0)
        tree->points_count += (size_t)count;
}

static inline const char *tree_name(const span_tree *tree, vst_id id)
{
    static char letter[16];

    if (tree->name != NULL)
        return tree->name(id);
    snprintf(letter, sizeof letter, id < 27 ? "%c" : "#%u",
             id < 27 ? 'a' + id - 1 : id);
    return letter;
}

/* Removes the waiting times deeper than `depth` and returns their sum. */
static inline int64_t tree_gather(span_tree *tree, size_t depth)
{
    int64_t sum = 0;

    while (tree->top > depth + 1) {
        sum += tree->waiting_ns[--tree->top];
        tree->waiting_ns[tree->top] = 0;
    }
    return sum;
}

/* Checks that a reader who follows spans and the leaving of the stack builds
 * the matcher's tree: each span's children took as much time as the span
 * says. */
static inline void tree_follow(span_tree *tree, const vst_span *span)
{
    size_t depths = tree->depths != 0 ? tree->depths : 64;

    if (span->flags & VST_SPAN_ASYNC)
        return;
    while (depths <= span->depth)
        depths *= 2;
    if (depths != tree->depths) {
        tree->waiting_ns = realloc(tree->waiting_ns, depths * sizeof(int64_t));
        if (tree->waiting_ns == NULL)
            abort();
        memset(tree->waiting_ns + tree->depths, 0,
               (depths - tree->depths) * sizeof(int64_t));
        tree->depths = depths;
    }
    CHECK_INT(tree_gather(tree, span->depth), span->children_ns);
    if (tree->top <= span->depth)
        tree->top = span->depth + 1;
    tree->waiting_ns[span->depth] += span->end_ns - span->start_ns;
}

static inline vst_status tree_leave(void *ctx, uint32_t depth)
{
    span_tree *tree = ctx;

    if (tree->top > (size_t)depth + 1)
        tree->waiting_ns[depth] += tree_gather(tree, depth);
    return VST_OK;
}

static inline vst_status tree_span(void *ctx, const vst_span *span)
{
    span_tree *tree = ctx;

    tree_follow(tree, span);
    CHECK(span->end_ns >= span->start_ns);
    if (tree->count != 0 && tree->last_thread == span->thread)
        CHECK(span->end_ns >= tree->last_end_ns || tree->last_end_ns == 0);
    tree->last_thread = span->thread;
    tree->last_end_ns = span->end_ns;
    if (tree->limit != 0 && tree->count >= tree->limit) {
        tree->count++;
        return VST_OK;
    }
    if (tree->count == tree->capacity) {
        tree->capacity = tree->capacity != 0 ? tree->capacity * 2 : 64;
        tree->spans =
            realloc(tree->spans, tree->capacity * sizeof *tree->spans);
        if (tree->spans == NULL)
            abort();
    }
    tree->spans[tree->count] = *span;
    if (span->args_len != 0) {
        char *copy = malloc(span->args_len + 1);
        if (copy == NULL)
            abort();
        memcpy(copy, span->args, span->args_len);
        copy[span->args_len] = '\0';
        tree->spans[tree->count].args = copy;
    }
    tree->count++;
    return VST_OK;
}

static inline vst_status tree_instant(void *ctx, const vst_instant *instant)
{
    span_tree *tree = ctx;
    char what[128];

    tree->points_seen++;
    snprintf(what, sizeof what, "instant %s {%.*s}",
             tree_name(tree, instant->id), (int)instant->args_len,
             instant->args != NULL ? instant->args : "");
    tree_print(tree, "%s at %lld\n", what, instant->time_ns - tree->origin_ns,
               0);
    return VST_OK;
}

static inline vst_status tree_counter(void *ctx, const vst_counter *counter)
{
    span_tree *tree = ctx;
    char what[64];

    tree->points_seen++;
    snprintf(what, sizeof what, "counter %s = %g", tree_name(tree, counter->id),
             counter->value);
    tree_print(tree, "%s at %lld\n", what, counter->time_ns - tree->origin_ns,
               0);
    return VST_OK;
}

static inline vst_status tree_loss(void *ctx, const vst_loss *loss)
{
    span_tree *tree = ctx;
    char what[64] = "gap";

    CHECK(loss->end_ns >= loss->start_ns);
    tree->points_seen++;
    if (loss->records != 0)
        snprintf(what, sizeof what, "%s %llu",
                 loss->kind == VST_LOSS_DROPPED ? "dropped" : "lost",
                 (unsigned long long)loss->records);
    tree_print(tree, "%s %lld..%lld\n", what, loss->start_ns - tree->origin_ns,
               loss->end_ns - tree->origin_ns);
    return VST_OK;
}

static inline vst_sink tree_sink(span_tree *tree)
{
    vst_sink sink = {
        .ctx = tree,
        .span = tree_span,
        .leave = tree_leave,
        .instant = tree_instant,
        .counter = tree_counter,
        .loss = tree_loss,
    };

    return sink;
}

static inline int tree_by_serial(const void *a, const void *b)
{
    const vst_span *x = a, *y = b;

    return (x->serial > y->serial) - (x->serial < y->serial);
}

/* Call when the spans are sorted by serial. */
static inline const vst_span *tree_find(const span_tree *tree, uint64_t serial)
{
    vst_span key = {.serial = serial};

    return bsearch(&key, tree->spans, tree->count, sizeof key, tree_by_serial);
}

/* Checks that serials are unique, that spans lie in their parents and take no
 * more than their parents have, and that a thread's spans nest. Leaves the
 * spans sorted by serial. */
static inline void tree_check(span_tree *tree)
{
    int64_t *open_until = calloc(tree->count + 1, sizeof *open_until);
    uint32_t thread = 0;
    size_t depth = 0;

    if (tree->count == 0 || open_until == NULL) {
        free(open_until);
        return;
    }
    qsort(tree->spans, tree->count, sizeof *tree->spans, tree_by_serial);
    for (size_t i = 0; i < tree->count; i++) {
        const vst_span *span = &tree->spans[i];
        const vst_span *parent = NULL;

        CHECK(i == 0 || span->serial != span[-1].serial);
        CHECK(span->children_ns >= 0);
        CHECK(span->flags & VST_SPAN_ASYNC ||
              span->children_ns <= span->end_ns - span->start_ns);
        if (span->flags & VST_SPAN_ASYNC)
            continue;
        if (span->parent != 0) {
            parent = tree_find(tree, span->parent);
            CHECK(parent != NULL);
        }
        if (parent != NULL) {
            CHECK(parent->serial < span->serial);
            if (!(parent->flags & VST_SPAN_ASYNC)) {
                CHECK(span->start_ns > parent->start_ns);
                CHECK(span->end_ns <= parent->end_ns);
            }
        }
        /* Compare by start, as a viewer reads the spans. */
        if (span->thread != thread)
            depth = 0;
        thread = span->thread;
        while (depth != 0 && open_until[depth - 1] <= span->start_ns)
            depth--;
        if (depth != 0)
            CHECK(span->end_ns <= open_until[depth - 1]);
        open_until[depth++] = span->end_ns;
    }
    free(open_until);
}

/* Prints "name start..end [flags] {args}" for each span, in the order of
 * entering, indented by two spaces per level. */
static inline const char *tree_text(span_tree *tree)
{
    static const char *const flags[] = {
        "open-at-start", "open-at-end", "raised", "cut",
        "resumed",       "suspended",   "async"};
    size_t room = 64;
    char *at;

    tree_check(tree);
    for (size_t i = 0; i < tree->count; i++)
        room += 256 + tree->spans[i].args_len + 2 * tree->spans[i].depth;
    free(tree->text);
    at = tree->text = malloc(room);
    if (at == NULL)
        abort();
    *at = '\0';
    for (size_t i = 0; i < tree->count; i++) {
        const vst_span *span = &tree->spans[i];

        at += sprintf(at, "%*s%s %lld..%lld", (int)(2 * span->depth), "",
                      tree_name(tree, span->id),
                      (long long)(span->start_ns - tree->origin_ns),
                      (long long)(span->end_ns - tree->origin_ns));
        for (unsigned f = 0; f < sizeof flags / sizeof flags[0]; f++)
            if (span->flags & 1u << f)
                at += sprintf(at, " %s", flags[f]);
        if (span->args_len != 0)
            at += sprintf(at, " {%s}", span->args);
        at += sprintf(at, "\n");
    }
    return tree->text;
}

static inline void tree_free(span_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->limit == 0 || i < tree->limit)
            if (tree->spans[i].args_len != 0)
                free((char *)(uintptr_t)tree->spans[i].args);
    free(tree->spans);
    free(tree->text);
    free(tree->waiting_ns);
}

#endif
