/* A chunk provider for tests: chunks on the heap, all kept until the end of the
 * test, and failures on request. One test at a time. */
#ifndef VST_TESTS_MEMORY_PROVIDER_H
#define VST_TESTS_MEMORY_PROVIDER_H

#include <stdlib.h>
#include <string.h>

#include <vestige/clock.h>

#include "base/provider.h"

enum { CHUNKS_MAX = 4096, ENTRIES_MAX = 4096 };

typedef struct kept_chunk {
    uint64_t *words;
    size_t capacity, used; /* words that are used; 0 until the chunk is
                            * sealed */
    uint32_t thread, segments;
    int released;
} kept_chunk;

typedef struct memory_provider {
    vst_chunk_provider table;
    kept_chunk chunks[CHUNKS_MAX];
    size_t chunk_count;
    vst_entry entries[ENTRIES_MAX];
    size_t entry_count;
    size_t acquire_fails_after; /* the number of acquires that succeed */
    size_t define_fails_after;
    uint64_t lost;
} memory_provider;

static memory_provider provider;

static void provider_release(vst_chunk *chunk)
{
    kept_chunk *kept = chunk->memory;

    kept->released = 1;
    chunk->words = NULL;
}

static vst_status provider_acquire(void *ctx, uint32_t thread, size_t words,
                                   size_t least, vst_chunk *chunk)
{
    memory_provider *p = ctx;
    kept_chunk *kept;

    (void)least;
    if (p->chunk_count >= p->acquire_fails_after ||
        p->chunk_count == CHUNKS_MAX)
        return VST_E_NOSPACE;
    kept = &p->chunks[p->chunk_count++];
    *kept = (kept_chunk){calloc(words, 8), words, 0, thread, 1, 0};
    *chunk = (vst_chunk){
        .words = kept->words,
        .capacity = words,
        .start = vst_clock_ticks(),
        .release = provider_release,
        .memory = kept,
    };
    return VST_OK;
}

static size_t provider_seal(void *ctx, vst_chunk *chunk, size_t used,
                            uint32_t segments)
{
    kept_chunk *kept = chunk->memory;

    (void)ctx;
    kept->used = used;
    kept->segments = segments;
    provider_release(chunk);
    return 0;
}

static vst_status provider_define(void *ctx, const vst_entry *entry)
{
    memory_provider *p = ctx;

    if (p->entry_count >= p->define_fails_after ||
        p->entry_count == ENTRIES_MAX)
        return VST_E_NOSPACE;
    p->entries[p->entry_count++] = *entry;
    return VST_OK;
}

static void provider_lost(void *ctx, uint64_t total)
{
    ((memory_provider *)ctx)->lost = total;
}

static const vst_chunk_provider *provider_begin(void)
{
    memset(&provider, 0, sizeof provider);
    provider.acquire_fails_after = SIZE_MAX;
    provider.define_fails_after = SIZE_MAX;
    provider.table = (vst_chunk_provider){
        .ctx = &provider,
        .acquire = provider_acquire,
        .seal = provider_seal,
        .define = provider_define,
        .lost = provider_lost,
    };
    return &provider.table;
}

static void provider_end(void)
{
    for (size_t i = 0; i < provider.chunk_count; i++)
        free(provider.chunks[i].words);
}

#endif
