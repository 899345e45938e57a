/* Tracebacks when memory runs out: at the first allocation, at the second, and
 * so on until all succeed; only this allocation fails, or all later ones, too.
 * Each failure is reported, no memory leaks, and the next call works. */
#include "faults.h"

#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "fake_unwinder.h"
#include "traceback/language.h"
#include "traceback/traceback.h"

enum { DEPTH = 200, TRACEBACKS = 60, SLOTS_FULL = 192, FAULTS_MAX = 2000 };

static fake_code code = {.name = "code"};
static fake_code *stack[DEPTH];
static uint32_t numbers[DEPTH];
static bool has_failed; /* a failure was reported */

static void capture_many(vst_traceback **kept, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t depth = i == 0 ? DEPTH : 2 + i % 5;
        size_t got;

        numbers[0] = (uint32_t)i % 16;
        numbers[1] = (uint32_t)i / 16;
        fake_frames = (fake_stack){stack, numbers, depth};
        kept[i] = vst_traceback_capture(
            VST_TRACEBACK_LANGUAGE | VST_TRACEBACK_NATIVE, 0);
        has_failed |= kept[i] == NULL;
        if (kept[i] == NULL)
            continue;
        got = vst_traceback_language(kept[i]).count;
        has_failed |= got < depth; /* there was no memory for all frames */
        CHECK(got <= depth);
    }
}

static vst_status add_extra(void *ctx, const char *file, size_t file_len,
                            uint32_t line, const vst_named_sink *sink)
{
    vst_named_frame frame = {
        .name = "extra", .name_len = 5, .file = file, .file_len = file_len};

    (void)ctx;
    return line % 3 == 0 ? sink->add(sink->ctx, &frame) : VST_OK;
}

static void name_all(vst_traceback **kept, size_t count)
{
    vst_symbols *symbols;
    vst_status status = vst_traceback_symbolize(kept, count, 0, &symbols, NULL);
    char *json;
    size_t length;

    if (status != VST_OK) {
        CHECK_INT(status, VST_E_NOMEM);
        CHECK(symbols == NULL);
        has_failed = true;
        return;
    }
    status = vst_symbols_json(symbols, &json, &length);
    if (status != VST_OK) {
        CHECK_INT(status, VST_E_NOMEM);
        CHECK(json == NULL);
        has_failed = true;
    } else {
        CHECK_INT(strlen(json), length);
    }
    free(json);
    vst_symbols_free(symbols);
}

/* Runs in a new thread, which has no buffer for frames yet. */
static void *use(void *arg)
{
    vst_traceback *kept[TRACEBACKS];

    (void)arg;
    capture_many(kept, TRACEBACKS);
    name_all(kept, TRACEBACKS);
    for (size_t i = 0; i < TRACEBACKS; i++)
        vst_traceback_release(kept[i]);
    vst_traceback_free_dead();
    return NULL;
}

static bool fails_at(unsigned n, bool lasting)
{
    pthread_t thread;
    bool was_fault;

    has_failed = false;
    faults_begin(FAULT_MEMORY, n, lasting, ENOMEM);
    if (!CHECK_INT(faults_thread(&thread, use, NULL), 0))
        exit(1);
    pthread_join(thread, NULL);
    was_fault = faults_end();
    CHECK_INT(code.references, 0);
    CHECK_INT(vst__table_count(), 0);
    return was_fault;
}

/* The table never shrinks, so this test comes first: its two allocations create
 * a traceback that does not fit into the table. */
static void a_table_that_cannot_grow_stays_as_it_is(void)
{
    vst_traceback *kept[SLOTS_FULL + 1];

    for (uintptr_t i = 0; i <= SLOTS_FULL; i++) {
        if (i == 0 || i == SLOTS_FULL) {
            faults_begin(FAULT_MEMORY, 2, false, ENOMEM);
            CHECK(vst_traceback_of(&i, 1) == NULL);
            CHECK(faults_end());
            CHECK_INT(vst__table_count(), i);
        }
        kept[i] = vst_traceback_of(&i, 1);
        CHECK(kept[i] != NULL);
    }
    for (uintptr_t i = 0; i <= SLOTS_FULL; i++) {
        CHECK(vst_traceback_of(&i, 1) == kept[i]);
        vst_traceback_release(kept[i]);
        vst_traceback_release(kept[i]);
    }
    vst_traceback_free_dead();
    CHECK_INT(vst__table_count(), 0);
}

static void without_memory_there_is_a_shorter_traceback_or_none(void)
{
    unsigned n = 1, told = 0;

    vst_unwinder_install(&fake_unwinder);
    vst__traceback_set_extra_frames(add_extra, NULL);
    while (n < FAULTS_MAX && fails_at(n, false)) {
        told += has_failed;
        n++;
    }
    CHECK(n > 50 && n < FAULTS_MAX);
    CHECK(told > n / 2);
    for (unsigned i = 1; i < n; i++) {
        CHECK(fails_at(i, true));
        CHECK(has_failed);
    }
    CHECK(!fails_at(FAULTS_MAX, false));
    CHECK(!has_failed);
}

int main(void)
{
    for (size_t i = 0; i < DEPTH; i++) {
        stack[i] = &code;
        numbers[i] = (uint32_t)i % 16;
    }
    TEST(a_table_that_cannot_grow_stays_as_it_is);
    TEST(without_memory_there_is_a_shorter_traceback_or_none);
    return checks_end();
}
