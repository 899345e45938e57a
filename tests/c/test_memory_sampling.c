/* Sampling: the recorded allocations give unbiased estimates of all
 * allocations, and the free of each recorded allocation is recorded, too. Seeds
 * are constant. Estimates may be off by six times their theoretical error. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "memory/funnel.h"
#include "memory_session.h"

enum { SEEDS = 100, ALLOCATIONS = 20000, EVERY = 4096 };

static size_t size_of(size_t i)
{
    static const size_t sizes[] = {1,   16,   24,   48,    100,    333,
                                   512, 4096, 5000, 65536, 1 << 20};

    return sizes[i * 7919 % (i % 10 == 0 ? 11 : 7)];
}

static double chance_of(size_t size)
{
    return -expm1(-(double)size / EVERY);
}

/* A recorded allocation counts as size / chance: the variance of its
 * contribution is size² (1 - chance) / chance. */
static void estimates_of_bytes_and_counts_have_no_bias(void)
{
    double bytes = 0, count = 0, byte_variance = 0, count_variance = 0;
    double byte_sum = 0, count_sum = 0;

    for (size_t i = 0; i < ALLOCATIONS; i++) {
        double size = (double)size_of(i), chance = chance_of(size_of(i));
        bytes += size;
        count += 1;
        byte_variance += size * size * (1 - chance) / chance;
        count_variance += (1 - chance) / chance;
    }
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        vst__sampler sampler = {.sampling = 0};
        vst__sample_begin(EVERY, seed);
        for (size_t i = 0; i < ALLOCATIONS; i++)
            if (vst__sample_takes(&sampler, size_of(i))) {
                byte_sum += (double)size_of(i) / chance_of(size_of(i));
                count_sum += 1 / chance_of(size_of(i));
            }
    }
    CHECK(fabs(byte_sum / SEEDS - bytes) < 6 * sqrt(byte_variance / SEEDS));
    CHECK(fabs(count_sum / SEEDS - count) < 6 * sqrt(count_variance / SEEDS));
}

static void each_size_is_taken_as_often_as_it_should_be(void)
{
    static const size_t sizes[] = {1, 100, 4096, 10000, 40000};
    enum { TRIES = 300000 };

    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        vst__sampler sampler = {.sampling = 0};
        double chance = chance_of(sizes[k]), taken = 0;
        vst__sample_begin(EVERY, 77 + k);
        for (int i = 0; i < TRIES; i++)
            taken += vst__sample_takes(&sampler, sizes[k]);
        CHECK(fabs(taken - TRIES * chance) <
              6 * sqrt(TRIES * chance * (1 - chance)));
    }
}

static void nothing_is_taken_of_nothing(void)
{
    vst__sampler sampler = {.sampling = 0};
    int taken = 0;

    vst__sample_begin(1, 5);
    for (int i = 0; i < 100000; i++)
        taken += vst__sample_takes(&sampler, 0);
    CHECK_INT(taken, 0);
}

/* ---- the set ------------------------------------------------------------ */

static void addresses_are_found_once_for_each_time_they_were_added(void)
{
    enum { COUNT = 30000 };
    size_t wrong = 0;

    vst__sample_begin(1, 1);
    for (uintptr_t i = 1; i <= COUNT; i++)
        wrong += !vst__sample_add(i * 16);
    for (uintptr_t i = 1; i <= COUNT; i += 3)
        wrong += !vst__sample_add(i * 16); /* adds these a second time */
    for (uintptr_t i = 1; i <= COUNT; i++)
        wrong += vst__sample_remove(i * 16 + 8);
    for (uintptr_t i = 1; i <= COUNT; i++)
        wrong += !vst__sample_remove(i * 16);
    for (uintptr_t i = 1; i <= COUNT; i++)
        wrong += vst__sample_remove(i * 16) != (i % 3 == 1);
    for (uintptr_t i = 1; i <= COUNT; i++)
        wrong += vst__sample_remove(i * 16);
    CHECK_INT(wrong, 0);
    vst__sample_add(16);
    vst__sample_begin(1, 1);
    CHECK(!vst__sample_remove(16));
}

enum { THREADS = 4, ROUNDS = 10000 };
static uintptr_t handed[THREADS][ROUNDS];

static void *add_some(void *argument)
{
    size_t which = (size_t)(uintptr_t)argument, wrong = 0;

    for (uintptr_t i = 0; i < ROUNDS; i++) {
        handed[which][i] = (i * THREADS + which + 1) * 16;
        wrong += !vst__sample_add(handed[which][i]);
    }
    return (void *)wrong;
}

static void *remove_some(void *argument)
{
    size_t which = (size_t)(uintptr_t)argument, wrong = 0;

    for (uintptr_t i = 0; i < ROUNDS; i++)
        wrong += !vst__sample_remove(handed[which][i]);
    return (void *)wrong;
}

static void threads_share_the_set(void)
{
    pthread_t threads[2 * THREADS];
    size_t wrong = 0;
    void *result;

    vst__sample_begin(1, 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, add_some, (void *)i);
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        wrong += (size_t)result;
    }
    for (uintptr_t i = 0; i < THREADS; i++) { /* another thread, and new
                                               * threads */
        pthread_create(&threads[i], NULL, remove_some,
                       (void *)((i + 1) % THREADS));
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        wrong += (size_t)result;
    }
    CHECK_INT(wrong, 0);
}

/* ---- a recording -------------------------------------------------------- */

static void sampled(vst_memory_kind kind, uintptr_t address, size_t size)
{
    vst_memory_enter();
    if (size)
        vst_memory_allocated(kind, address, size);
    else
        vst_memory_freed(kind, address, 0);
    vst_memory_leave();
}

/* Every recorded allocation has its free, and every free has its allocation. */
static void frees_are_recorded_of_what_was_sampled(void)
{
    const vst_memory_options options = {.sample_bytes = EVERY};
    enum { COUNT = 50000 };
    double bytes = 0, variance = 0, sum = 0;
    size_t allocated = 0, unknown = 0;

    memory_begin(&options);
    for (uintptr_t i = 1; i <= COUNT; i++)
        sampled(VST_MEMORY_MALLOC, i * 0x10000, size_of(i));
    for (uintptr_t i = 1; i <= COUNT; i++)
        sampled(VST_MEMORY_FREE, i * 0x10000, 0);
    memory_end();
    for (uintptr_t i = 1; i <= COUNT; i++) {
        double size = (double)size_of(i), chance = chance_of(size_of(i));
        bytes += size;
        variance += size * size * (1 - chance) / chance;
    }
    for (size_t i = 0; i < memory_count; i++) {
        unknown += (memory_events[i].flags & VST_MEMORY_UNKNOWN) != 0;
        if (memory_events[i].flags & VST_MEMORY_FREES)
            continue;
        allocated++;
        sum += memory_events[i].weight * (double)memory_events[i].size;
    }
    CHECK(allocated > COUNT / 100 && allocated < COUNT);
    CHECK_INT(memory_count, 2 * allocated);
    CHECK_INT(unknown, 0);
    CHECK_INT(memory_events[memory_count - 1].live_count, 0);
    /* The seed is not constant here; a deviation of ten times the error is
     * practically impossible. */
    CHECK(fabs(sum - bytes) < 10 * sqrt(variance));
}

int main(void)
{
    TEST(estimates_of_bytes_and_counts_have_no_bias);
    TEST(each_size_is_taken_as_often_as_it_should_be);
    TEST(nothing_is_taken_of_nothing);
    TEST(addresses_are_found_once_for_each_time_they_were_added);
    TEST(threads_share_the_set);
    TEST(frees_are_recorded_of_what_was_sampled);
    memory_forget();
    return checks_end();
}
