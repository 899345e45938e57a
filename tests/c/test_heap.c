/* The core's own heap: blocks are usable, do not overlap anything, keep their
 * contents when they grow, and are reused. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/heap.h"
#include "check.h"

static unsigned seed = 5;

static size_t any_size(void)
{
    return (size_t)rand_r(&seed) % (rand_r(&seed) % 10 == 0 ? 200000 : 700);
}

static void fill(unsigned char *block, size_t size, unsigned char with)
{
    memset(block, with, size);
}

static int is_filled(const unsigned char *block, size_t size,
                     unsigned char with)
{
    return size == 0 ||
           (block[0] == with && memcmp(block, block + 1, size - 1) == 0);
}

static void blocks_do_not_overlap_and_keep_what_is_in_them(void)
{
    enum { BLOCKS = 500 };
    const size_t steps = 100000 / check_step(1, 10);
    static unsigned char *blocks[BLOCKS];
    static size_t sizes[BLOCKS];
    size_t wrong = 0;

    for (size_t i = 0; i < steps; i++) {
        size_t at = (size_t)rand_r(&seed) % BLOCKS, size = any_size();
        unsigned char with = (unsigned char)at;

        wrong += blocks[at] != NULL && !is_filled(blocks[at], sizes[at], with);
        if (rand_r(&seed) % 2) {
            size_t kept = size < sizes[at] ? size : sizes[at];
            blocks[at] = vst__realloc(blocks[at], size);
            wrong += !is_filled(blocks[at], kept, with);
        } else {
            vst__free(blocks[at]);
            blocks[at] =
                rand_r(&seed) % 2 ? vst__alloc(size) : vst__calloc(size, 1);
        }
        wrong += blocks[at] == NULL || (uintptr_t)blocks[at] % 16 != 0;
        sizes[at] = size;
        fill(blocks[at], size, with);
    }
    CHECK_INT(wrong, 0);
    for (size_t i = 0; i < BLOCKS; i++)
        vst__free(blocks[i]);
}

static void cleared_blocks_are_zero_also_when_used_again(void)
{
    for (size_t size = 1; size < 100000; size = size * 3 / 2 + 1) {
        unsigned char *block = vst__alloc(size);
        fill(block, size, 0xff);
        vst__free(block);
        block = vst__calloc(1, size);
        CHECK(is_filled(block, size, 0));
        vst__free(block);
    }
}

static void what_cannot_be_is_refused(void)
{
    volatile size_t huge = SIZE_MAX; /* hides the size from the compiler */
    void *block = vst__alloc(100000);

    CHECK(vst__alloc(huge - 100) == NULL);
    CHECK(vst__calloc(huge / 2, 3) == NULL);
    CHECK(vst__realloc(block, huge - 100) == NULL);
    vst__free(block);
    vst__free(NULL);
}

static void *churn(void *unused)
{
    void *blocks[64] = {NULL};

    (void)unused;
    for (unsigned i = 0; i < 20000; i++) {
        vst__free(blocks[i % 64]);
        blocks[i % 64] = vst__alloc(i % 500);
    }
    for (unsigned i = 0; i < 64; i++)
        vst__free(blocks[i]);
    return NULL;
}

static void many_threads_use_it(void)
{
    pthread_t threads[8];

    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    CHECK(1);
}

int main(void)
{
    /* Sanitizers abort a program that asks malloc for an impossible size. */
    if (!vst__heap_is_malloc)
        TEST(what_cannot_be_is_refused);
    TEST(blocks_do_not_overlap_and_keep_what_is_in_them);
    TEST(cleared_blocks_are_zero_also_when_used_again);
    TEST(many_threads_use_it);
    return checks_end();
}
