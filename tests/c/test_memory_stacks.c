/* Native stacks of allocations: the addresses of the callers in their modules,
 * alone or together with the language's stack. The argument is the library that
 * makes all calls, see memory_oracle.h. */
#include <pthread.h>

#include "oracle_session.h"

static const oracle *o;
static volatile int twice = 2; /* two allocations by one call, in a loop */
static const void *in_outer;   /* the return address of inner() */

__attribute__((noinline)) static void *inner(size_t size)
{
    void *block = o->malloc(size);

    in_outer = __builtin_return_address(0);
    __asm__ volatile(""
                     : "+r"(block)); /* gives the function a frame of its
                                      * own */
    return block;
}

__attribute__((noinline)) static void outer(size_t size)
{
    void *block = inner(size);

    __asm__ volatile("" : "+r"(block));
    o->free(block);
}

__attribute__((noinline)) static void other(size_t size)
{
    void *block = inner(size);

    __asm__ volatile("" : "+r"(block));
    o->free(block);
}

static size_t modules_with(uint64_t address)
{
    size_t count = 0;

    for (size_t i = 0; i < vst_trace_module_count(memory_trace); i++) {
        const vst_module *m = vst_trace_module(memory_trace, i);
        count += address >= m->start && address < m->end;
    }
    return count;
}

/* Returns the stack of the i-th event, innermost frame first. */
static size_t walk(vst_stack_id id, uint64_t *addresses, size_t max)
{
    size_t count = 0;

    for (const vst_stack *s; id && count < max; id = s->parent) {
        s = vst_trace_stack(memory_trace, id);
        if (s == NULL || s->kind != VST_STACK_NATIVE)
            return 0;
        addresses[count++] = s->address;
    }
    return count;
}

static void an_allocation_has_the_stack_it_was_made_with(void)
{
    const vst_memory_options options = {.native_allocators = true,
                                        .native_stacks = true};
    uint64_t addresses[300];
    size_t count, at = 0;
    const void *after_inner;

    memory_begin(&options);
    for (int i = 0; i < twice; i++)
        outer(100);
    after_inner = in_outer;
    other(100);
    memory_end();
    if (!CHECK_INT(memory_count, 6))
        return;
    CHECK_INT(memory_events[0].stack, memory_events[2].stack);
    CHECK(memory_events[0].stack != memory_events[4].stack);
    count = walk(memory_events[0].stack, addresses, 300);
    CHECK(count >= 4);
    while (at < count && addresses[at] != (uintptr_t)after_inner)
        at++;
    CHECK(at == 1 || at == 2); /* above inner(), and above the library's frame,
                                * if any */
    for (size_t i = 0; i < count; i++)
        CHECK_INT(modules_with(addresses[i]), 1);
}

static vst_stack_id language;

static vst_stack_id tell(unsigned *flags)
{
    *flags = 0;
    return language;
}

static void a_native_stack_and_a_languages_are_joined(void)
{
    const vst_memory_options options = {
        .native_allocators = true, .native_stacks = true, .stack = tell};
    const vst_stack frame = {
        .kind = VST_STACK_LANGUAGE, .function = 1, .line = 7};
    uint64_t addresses[300];
    const vst_stack *both;

    memory_begin(&options);
    CHECK_INT(vst_recording_define_stack(vst_session_recording(memory_session),
                                         &frame, &language),
              VST_OK);
    outer(100);
    outer(200);
    memory_end();
    if (!CHECK_INT(memory_count, 4))
        return;
    both = vst_trace_stack(memory_trace, memory_events[0].stack);
    if (!CHECK(both != NULL && both->kind == VST_STACK_BOTH))
        return;
    CHECK_INT(both->parent, language);
    CHECK(walk((vst_stack_id)both->address, addresses, 300) >= 4);
}

enum { DEEP = 1000 };

__attribute__((noinline)) static int descend(int depth)
{
    int result;

    if (depth == 0) {
        outer(100);
        return 0;
    }
    result = descend(depth - 1);
    __asm__ volatile("" : "+r"(result));
    return result + 1;
}

static void what_is_too_deep_is_cut_and_says_so(void)
{
    const vst_memory_options options = {.native_allocators = true,
                                        .native_stacks = true};
    const vst_stack *outermost = NULL;
    size_t count = 0;

    memory_begin(&options);
    CHECK_INT(descend(DEEP), DEEP);
    memory_end();
    for (vst_stack_id id = memory_events[0].stack; id; id = outermost->parent) {
        outermost = vst_trace_stack(memory_trace, id);
        count++;
    }
    CHECK(count >= 250 && count < DEEP);
    CHECK(outermost != NULL && outermost->flags == VST_STACK_IS_CUT);
}

static void *run_some(void *argument)
{
    for (int i = 0; i < 2000; i++) {
        outer(100);
        other((size_t)i);
        descend(i % 50);
    }
    return argument;
}

static void threads_give_equal_stacks_equal_numbers(void)
{
    const vst_memory_options options = {.native_allocators = true,
                                        .native_stacks = true};
    pthread_t threads[4];
    vst_stack_id most = 0;

    memory_begin(&options);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, run_some, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    memory_end();
    CHECK_INT(memory_count, 4 * 2000 * 6);
    most = vst_trace_stack_max(memory_trace);
    CHECK(most > 50 && most < 400);
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

    if (library == NULL)
        return 2;
    o = oracle_in(library);
    if (vst_traceback_has_native()) {
        TEST(an_allocation_has_the_stack_it_was_made_with);
        TEST(a_native_stack_and_a_languages_are_joined);
        TEST(what_is_too_deep_is_cut_and_says_so);
        TEST(threads_give_equal_stacks_equal_numbers);
    } else {
        printf("skipped: no native stacks in this build\n");
    }
    memory_forget();
    return checks_end();
}
