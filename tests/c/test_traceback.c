/* Tracebacks as objects: equal stacks share one object, references are held and
 * released when they should be, and unusual stacks are captured unchanged. */
#include <malloc.h>
#include <stdlib.h>

#include "check.h"
#include "fake_unwinder.h"
#include "traceback/language.h"
#include "traceback/traceback.h"

enum { CODES = 200, DEEP = 100000 };

static fake_code codes[CODES];
static fake_code *stack_codes[DEEP];
static uint32_t stack_numbers[DEEP];

/* Sets a stack of `depth` frames; different salts give different stacks. */
static void set_stack(size_t depth, uint32_t salt)
{
    for (size_t i = 0; i < depth; i++) {
        stack_codes[i] = &codes[(i * 7 + salt) % CODES];
        stack_numbers[i] = (uint32_t)i + salt;
    }
    fake_frames = (fake_stack){stack_codes, stack_numbers, depth};
}

static vst_traceback *capture(void)
{
    return vst_traceback_capture(VST_TRACEBACK_LANGUAGE, 0);
}

static long references(void)
{
    long sum = 0;

    for (int i = 0; i < CODES; i++)
        sum += codes[i].references;
    return sum;
}

static void nothing_is_left(void)
{
    vst_traceback_free_dead();
    CHECK_INT(vst__table_count(), 0);
    CHECK_INT(references(), 0);
    CHECK_INT(fake_entered, 0);
}

static void holds(const vst_traceback *traceback, size_t depth, uint32_t salt)
{
    vst_language_frames frames = vst_traceback_language(traceback);

    set_stack(depth, salt);
    if (!CHECK_INT(frames.count, depth))
        return;
    CHECK(depth == 0 ||
          memcmp(frames.codes, stack_codes, depth * sizeof *frames.codes) == 0);
    CHECK(depth == 0 || memcmp(frames.instructions, stack_numbers,
                               depth * sizeof *frames.instructions) == 0);
}

/* ---- one object --------------------------------------------------------- */

static void equal_stacks_are_one_traceback(void)
{
    vst_traceback *a, *b, *c;

    set_stack(10, 1);
    a = capture();
    b = capture();
    CHECK(a == b);
    CHECK(!vst__traceback_is_sole(a));
    CHECK_INT(references(), 10);
    CHECK_INT(vst__table_count(), 1);

    set_stack(10, 2);
    c = capture();
    CHECK(c != a);
    CHECK(vst__traceback_is_sole(c));
    CHECK_INT(references(), 20);
    holds(a, 10, 1);
    holds(c, 10, 2);
    vst_traceback_release(a);
    vst_traceback_release(b);
    vst_traceback_release(c);
    CHECK_INT(references(), 20); /* released, but not freed yet */
    CHECK_INT(vst_traceback_free_dead(), 2);
    CHECK_INT(vst_traceback_free_dead(), 0);
    nothing_is_left();
}

/* The hash reads several frames at a time, so test every length; a difference
 * in one frame is enough. */
static void stacks_that_differ_in_one_frame_are_two_tracebacks(void)
{
    for (size_t depth = 1; depth < 40; depth++) {
        vst_traceback *plain, *again;

        set_stack(depth, 0);
        plain = capture();
        for (size_t i = 0; i < depth; i++) {
            vst_traceback *other, *third;

            set_stack(depth, 0);
            stack_numbers[i] |= VST_FRAME_ENTRY;
            other = capture();
            CHECK(other != plain);
            stack_numbers[i] &= ~VST_FRAME_ENTRY;
            stack_codes[i] = &codes[(i * 7 + 1) % CODES];
            third = capture();
            CHECK(third != plain && third != other);
            vst_traceback_release(other);
            vst_traceback_release(third);
        }
        set_stack(depth, 0);
        again = capture();
        CHECK(again == plain);
        vst_traceback_release(again);
        vst_traceback_release(plain);
    }
    nothing_is_left();
}

static void many_tracebacks_are_found_again(void)
{
    enum { MANY = 20000 };
    static vst_traceback *kept[MANY];

    for (uint32_t i = 0; i < MANY; i++) {
        set_stack(5 + i % 3, i);
        kept[i] = capture();
    }
    CHECK_INT(vst__table_count(), MANY);
    for (uint32_t i = 0; i < MANY; i += 2) /* holes in the table */
        vst_traceback_release(kept[i]);
    CHECK_INT(vst_traceback_free_dead(), MANY / 2);
    for (uint32_t i = 1; i < MANY; i += 2) {
        vst_traceback *again;

        set_stack(5 + i % 3, i);
        again = capture();
        CHECK(again == kept[i]);
        vst_traceback_release(again);
        vst_traceback_release(kept[i]);
    }
    nothing_is_left();
}

static void a_new_stack_costs_at_most_16_bytes_a_frame(void)
{
    for (size_t depth = 10; depth < 300; depth++) {
        vst_traceback *traceback;

        set_stack(depth, 1);
        traceback = capture();
        CHECK(malloc_usable_size(traceback) + sizeof(size_t) <= depth * 16);
        vst_traceback_release(traceback);
    }
    nothing_is_left();
}

/* ---- life and death ----------------------------------------------------- */

static void a_capture_frees_the_dead(void)
{
    vst_traceback *other;

    set_stack(3, 1);
    vst_traceback_release(capture());
    CHECK_INT(references(), 3);
    set_stack(2, 9);
    other = capture();
    CHECK_INT(references(), 2);
    CHECK_INT(vst__table_count(), 1);
    vst_traceback_release(other);
    nothing_is_left();
}

static void an_equal_capture_brings_the_dead_back(void)
{
    vst_traceback *first;

    set_stack(3, 1);
    first = capture();
    for (int i = 0; i < 5; i++) {
        vst_traceback *again;

        vst_traceback_release(first);
        again = capture();
        CHECK(again == first);
        CHECK(vst__traceback_is_sole(again));
        CHECK_INT(references(), 3);
    }
    CHECK_INT(vst_traceback_free_dead(), 0);
    holds(first, 3, 1);
    vst_traceback_release(first);
    CHECK_INT(vst_traceback_free_dead(), 1);
    nothing_is_left();
}

static void a_retained_traceback_lives_on(void)
{
    vst_traceback *first;

    set_stack(4, 1);
    first = capture();
    CHECK(vst_traceback_retain(first) == first);
    vst_traceback_release(first);
    CHECK_INT(vst_traceback_free_dead(), 0);
    holds(first, 4, 1);
    vst_traceback_release(first);
    vst_traceback_release(NULL);
    nothing_is_left();
}

static vst_traceback *from_drop;
static int drops;

static void capture_and_release(fake_code *code)
{
    fake_stack outer = fake_frames;
    vst_traceback *taken;

    (void)code;
    if (drops == 5)
        return;
    drops++;
    vst_traceback_release(from_drop);
    from_drop = NULL;
    set_stack(2, 100 + (uint32_t)drops);
    taken = capture();                /* the capture frees the tracebacks
                                       * released before */
    vst_traceback_release(from_drop); /* released inside a release */
    from_drop = taken;
    fake_frames = outer;
}

static void dropping_a_reference_may_capture_and_release(void)
{
    for (int i = 0; i < CODES; i++)
        codes[i].dropped = capture_and_release;
    for (uint32_t i = 0; i < 50; i++) {
        set_stack(6, i);
        vst_traceback_release(capture());
    }
    vst_traceback_free_dead();
    CHECK_INT(drops, 5);
    for (int i = 0; i < CODES; i++)
        codes[i].dropped = NULL;
    vst_traceback_release(from_drop);
    nothing_is_left();
}

static void capture_inside(void)
{
    static bool is_inside;
    fake_stack outer = fake_frames;
    uint32_t numbers[] = {5, 6};
    fake_code *const inner[] = {&codes[3], &codes[4]};
    vst_traceback *traceback;

    if (is_inside)
        return;
    is_inside = true;
    fake_frames = (fake_stack){inner, numbers, 2};
    traceback = capture();
    CHECK_INT(vst_traceback_language(traceback).count, 2);
    CHECK(vst_traceback_language(traceback).codes[1] == &codes[4]);
    vst_traceback_release(traceback);
    fake_frames = outer;
    is_inside = false;
}

static void gathering_may_capture(void)
{
    vst_traceback *traceback;

    fake_gathering = capture_inside;
    set_stack(9, 1);
    traceback = capture();
    fake_gathering = NULL;
    holds(traceback, 9, 1);
    vst_traceback_release(traceback);
    nothing_is_left();
}

/* ---- garbage collection ------------------------------------------------- */

static int visit(void *object, void *arg)
{
    CHECK(object == &codes[(*(int *)arg * 7 + 1) % CODES]);
    return ++*(int *)arg == 5 ? 42 : 0;
}

static void only_a_sole_holder_visits_what_it_refers_to(void)
{
    int visited = 0;
    vst_traceback *a, *b, *c;

    set_stack(4, 1);
    a = capture();
    CHECK_INT(vst__traceback_traverse(a, visit, &visited), 0);
    CHECK_INT(visited, 4);
    b = capture();
    CHECK_INT(vst__traceback_traverse(a, visit, &visited), 0);
    CHECK_INT(visited, 4);
    vst__traceback_clear(a); /* another reference exists: nothing happens */
    holds(b, 4, 1);
    vst_traceback_release(b);
    visited = 3;
    set_stack(4, 3 * 7 + 1); /* visit() expects the stack to start with this
                              * number */
    c = capture();
    CHECK_INT(vst__traceback_traverse(c, visit, &visited), 42);
    CHECK_INT(visited, 5);
    vst_traceback_release(c);
    vst_traceback_release(a);
    nothing_is_left();
}

static void a_cleared_traceback_is_empty_and_no_longer_shared(void)
{
    vst_traceback *a, *b;

    set_stack(4, 1);
    a = capture();
    vst__traceback_clear(a);
    CHECK_INT(references(), 0);
    CHECK_INT(vst_traceback_language(a).count, 0);
    vst__traceback_clear(a);
    b = capture();
    CHECK(a != b);
    vst_traceback_release(b);
    vst_traceback_release(a);
    CHECK_INT(vst_traceback_free_dead(), 2);
    nothing_is_left();
}

static void a_word_of_the_users_stays_with_it(void)
{
    int word;
    vst_traceback *a, *b;

    set_stack(4, 1);
    a = capture();
    CHECK(vst__traceback_get_user(a) == NULL);
    vst__traceback_set_user(a, &word);
    b = capture();
    CHECK(vst__traceback_get_user(b) == &word);
    vst_traceback_release(a);
    vst_traceback_release(b);
    nothing_is_left();
}

/* ---- unusual stacks ----------------------------------------------------- */

static void a_stack_of_100000_frames_is_taken_whole(void)
{
    vst_traceback *a;

    set_stack(DEEP, 1);
    a = capture();
    holds(a, DEEP, 1);
    CHECK(capture() == a);
    vst_traceback_release(a);
    vst_traceback_release(a);
    nothing_is_left();
}

static void skipped_frames_are_the_innermost(void)
{
    vst_traceback *a, *b;

    set_stack(5, 0);
    a = vst_traceback_capture(VST_TRACEBACK_LANGUAGE, 2);
    CHECK_INT(vst_traceback_language(a).count, 3);
    CHECK_INT(vst_traceback_language(a).instructions[0], 2);
    b = vst_traceback_capture(VST_TRACEBACK_LANGUAGE, 9);
    CHECK_INT(vst_traceback_language(b).count, 0);
    vst_traceback_release(a);
    vst_traceback_release(b);
    nothing_is_left();
}

static uintptr_t evaluates;

static bool is_evaluates(uintptr_t address)
{
    return address == evaluates;
}

static void what_a_frame_called_can_be_left_out(void)
{
    enum {
        FLAGS = VST_TRACEBACK_LANGUAGE | VST_TRACEBACK_NATIVE |
        VST_TRACEBACK_FROM_LANGUAGE
    };
    fake_code inner = {.name = "inner"}, outer = {.name = "outer"};
    fake_code *own[] = {&inner, &outer};
    uint32_t numbers[] = {1, 2 | VST_FRAME_ENTRY};
    size_t all, left;
    vst_traceback *whole = vst_traceback_capture(VST_TRACEBACK_NATIVE, 0);
    const uintptr_t *native = vst_traceback_native(whole, &all);
    vst_traceback *both;

    if (all < 2) { /* this build captures no native frames */
        vst_traceback_release(whole);
        return;
    }
    evaluates = native[1];
    fake_evaluation = is_evaluates;
    fake_frames = (fake_stack){own, numbers, 2};
    for (size_t skip = 0; skip < 2; skip++) {
        both = vst_traceback_capture(FLAGS, skip);
        native = vst_traceback_native(both, &left);
        CHECK(left == all - 1);
        CHECK(native[0] == evaluates);
        CHECK(vst_traceback_language(both).count == 2 - skip);
        vst_traceback_release(both);
    }
    evaluates = 1; /* at no known address, so no native frame is removed */
    both = vst_traceback_capture(FLAGS, 1);
    vst_traceback_native(both, &left);
    CHECK(left == all);
    vst_traceback_release(both);
    vst_traceback_release(whole);
    fake_evaluation = NULL;
    fake_frames = (fake_stack){NULL, NULL, 0};
    vst_traceback_free_dead();
}

static void without_an_interpreter_a_traceback_is_empty(void)
{
    vst_traceback *full, *a;

    set_stack(5, 0);
    full = capture();
    vst_traceback_release(full);
    fake_is_absent = true;
    a = capture();
    CHECK_INT(vst_traceback_language(a).count, 0);
    CHECK_INT(references(), 5); /* not freed: the interpreter's lock is not
                                 * available */
    fake_is_absent = false;
    vst_unwinder_install(NULL);
    CHECK(capture() == a);
    CHECK_INT(vst_traceback_free_dead(), 0);
    vst_unwinder_install(&fake_unwinder);
    CHECK(vst__unwinder_installed() == &fake_unwinder);
    vst_traceback_release(a);
    vst_traceback_release(a);
    nothing_is_left();
}

static void addresses_make_a_traceback(void)
{
    uintptr_t addresses[] = {0x1000, 0x2000, 0x3000, 0x4000, 0x5000};
    size_t count;
    vst_traceback *a = vst_traceback_of(addresses, 5);
    const uintptr_t *native = vst_traceback_native(a, &count);
    vst_traceback *b, *none;
    CHECK_INT(count, 5);
    CHECK(memcmp(native, addresses, sizeof addresses) == 0);
    CHECK(vst_traceback_of(addresses, 5) == a);
    b = vst_traceback_of(addresses, 4);
    CHECK(b != a);
    none = vst_traceback_of(NULL, 0);
    CHECK(none != NULL && none != b);
    vst_traceback_release(a);
    vst_traceback_release(a);
    vst_traceback_release(b);
    vst_traceback_release(none);
    nothing_is_left();
}

int main(void)
{
    vst_unwinder_install(&fake_unwinder);
    TEST(equal_stacks_are_one_traceback);
    TEST(stacks_that_differ_in_one_frame_are_two_tracebacks);
    TEST(many_tracebacks_are_found_again);
    TEST(a_new_stack_costs_at_most_16_bytes_a_frame);
    TEST(a_capture_frees_the_dead);
    TEST(an_equal_capture_brings_the_dead_back);
    TEST(a_retained_traceback_lives_on);
    TEST(dropping_a_reference_may_capture_and_release);
    TEST(gathering_may_capture);
    TEST(only_a_sole_holder_visits_what_it_refers_to);
    TEST(a_cleared_traceback_is_empty_and_no_longer_shared);
    TEST(a_word_of_the_users_stays_with_it);
    TEST(a_stack_of_100000_frames_is_taken_whole);
    TEST(skipped_frames_are_the_innermost);
    TEST(what_a_frame_called_can_be_left_out);
    TEST(without_an_interpreter_a_traceback_is_empty);
    TEST(addresses_make_a_traceback);
    return checks_end();
}
