/* Sums of a trace's tasks: who woke each task, and very many tasks that wait
 * for the same object. */
#include <time.h>

#include "check.h"
#include "replay/tasks.h"

enum { TASKS = 200000, OBJECT = 0xabc0, FUNCTION = 7, SETTER = 8 };

/* If each wake-up walked along all waiting tasks, this would take many minutes
 * of CPU time. The right way takes a fifth of a second. */
enum { SECONDS_MAX = 20 };

static void tell(vst__tasks *tasks, vst_task_what what, uint32_t task,
                 int64_t time_ns)
{
    vst_task_event event = {.what = what,
                            .task = task,
                            .thread = 1,
                            .time_ns = time_ns,
                            .id = task != 0 ? FUNCTION : SETTER,
                            .awaits = VST_AWAITS_FUTURE,
                            .address = OBJECT};

    CHECK_INT(vst__tasks_event(tasks, &event), VST_OK);
}

static void run(vst__tasks *tasks, uint32_t task, int64_t from_ns,
                int64_t to_ns, vst_task_what end)
{
    vst_span span = {.id = FUNCTION,
                     .thread = 1,
                     .task = task,
                     .flags = VST_SPAN_STEP,
                     .start_ns = from_ns,
                     .end_ns = to_ns};

    tell(tasks, VST_TASK_STEP, task, from_ns);
    tell(tasks, end, task, to_ns);
    CHECK_INT(vst__tasks_span(tasks, &span), VST_OK);
}

/* Tasks continue in the order in which they began to wait, as in asyncio. */
static vst__tasks *many_wait_for_one_thing(unsigned wakes)
{
    clock_t start = clock();
    vst__tasks *tasks;

    CHECK_INT(vst__tasks_create(&tasks), VST_OK);
    for (uint32_t task = 1; task <= TASKS; task++)
        run(tasks, task, 10 * (int64_t)task, 10 * (int64_t)task + 5,
            VST_TASK_AWAITS);
    for (unsigned i = 0; i < wakes; i++)
        tell(tasks, VST_TASK_WAKES, 0, 10 * (int64_t)TASKS + 10 + i);
    for (uint32_t task = 1; task <= TASKS; task++) {
        int64_t from_ns = 20 * (int64_t)(TASKS + task);
        vst_task_waker waker;

        run(tasks, task, from_ns, from_ns + 5, VST_TASK_ENDS);
        waker = vst__tasks_waker(tasks);
        CHECK_INT(waker.is_known, wakes != 0);
        CHECK_INT(waker.id, wakes != 0 ? SETTER : 0);
        CHECK_INT(waker.time_ns, wakes != 0 ? 10 * (int64_t)TASKS + 10 : 0);
        CHECK_INT(vst__tasks_wait(tasks).ns, from_ns - 10 * (int64_t)task - 5);
    }
    CHECK((clock() - start) / CLOCKS_PER_SEC < SECONDS_MAX);
    return tasks;
}

static void one_thing_may_have_very_many_waiters(void)
{
    vst__tasks *tasks = many_wait_for_one_thing(1);

    CHECK_INT(vst__tasks_count(tasks), TASKS);
    CHECK_INT(vst__tasks_at(tasks, TASKS - 1)->steps, 2);
    CHECK_INT(vst__tasks_await_at(tasks, 0)->count, TASKS);
    vst__tasks_destroy(tasks);
}

/* Tasks wake in another order if each is cancelled. */
static void the_first_to_wake_them_counts(void)
{
    vst__tasks_destroy(many_wait_for_one_thing(TASKS));
}

static void what_nobody_woke_goes_on_by_itself(void)
{
    vst__tasks_destroy(many_wait_for_one_thing(0));
}

int main(void)
{
    TEST(one_thing_may_have_very_many_waiters);
    TEST(the_first_to_wake_them_counts);
    TEST(what_nobody_woke_goes_on_by_itself);
    return checks_end();
}
