/* What torch takes for a profiler of its own while we record: the place where a
 * thread's allocations are reported, and where _RecordFunctionFast looks before
 * it does anything. Part of operators.cpp, which alone includes it.
 *
 * Any thread reads it; start and stop write it, one thread at a time. */
#ifndef VESTIGE_TORCH_PROFILER_STAND_IN_H
#define VESTIGE_TORCH_PROFILER_STAND_IN_H

#include <atomic>
#include <memory>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <vestige/api.h>

#include "exported.h"

namespace
{

struct reports final : torch::profiler::impl::ProfilerStateBase {
    const vst_api *api = nullptr;
    bool memory = false;

    reports()
        : ProfilerStateBase(torch::profiler::impl::ProfilerConfig(
              torch::profiler::impl::ProfilerState::Disabled))
    {
    }

    /* Threads that keep it after a stop find that it is off. */
    void turn(bool on, const vst_api *table, bool with_memory, bool with_shapes)
    {
        api = table;
        memory = on && with_memory;
        config_.report_input_shapes = on && with_shapes;
        config_.profile_memory = memory;
        config_.state = on ? torch::profiler::impl::ProfilerState::KINETO
                           : torch::profiler::impl::ProfilerState::Disabled;
    }

    bool memoryProfilingEnabled() const override
    {
        return memory;
    }

    void reportMemoryUsage(void *pointer, int64_t size, size_t, size_t,
                           c10::Device device) override
    {
        auto address = reinterpret_cast<uintptr_t>(pointer);

        if (!device.is_cpu() || size == 0 || !memory)
            return;
        if (size > 0)
            api->framework_allocated(address, static_cast<size_t>(size));
        else
            api->framework_freed_size(address, static_cast<size_t>(-size));
    }

    /* It has nothing of what one of torch's own types has. */
    torch::profiler::impl::ActiveProfilerType profilerType() override
    {
        return torch::profiler::impl::ActiveProfilerType::NONE;
    }
};

std::shared_ptr<reports> reported; /* made once, never gone */

std::atomic<long> watched{0}; /* threads that may have it */

/* Whether the calling thread is one of them. */
struct watched_thread {
    bool is_counted = false;

    void count(bool has_it)
    {
        if (has_it != is_counted)
            watched.fetch_add(has_it ? 1 : -1, std::memory_order_relaxed);
        is_counted = has_it;
    }
    ~watched_thread()
    {
        count(false);
    }
};

thread_local watched_thread this_thread;

bool is_watched()
{
    return reported &&
           c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) ==
               reported.get();
}

/* A profiler of torch's own that is there already stays where it is. */
void watch()
{
    const auto place = c10::DebugInfoKind::PROFILER_STATE;

    if (reported && !c10::ThreadLocalDebugInfo::get(place)) {
        c10::ThreadLocalDebugInfo::_push(place, reported);
        this_thread.count(true);
    }
}

/* Of the calling thread; others keep it, and it says that it is off. */
void unwatch()
{
    const auto place = c10::DebugInfoKind::PROFILER_STATE;

    try {
        if (is_watched() &&
            c10::ThreadLocalDebugInfo::_peek(place).get() == reported.get()) {
            c10::ThreadLocalDebugInfo::_pop(place);
            this_thread.count(false);
        }
    } catch (...) {
        /* Something of the program's lies on top of it. */
    }
}

/* What the calling thread has of this kind, ours among it, is out of sight. */
struct hidden {
    std::shared_ptr<c10::ThreadLocalDebugInfo> before =
        c10::ThreadLocalDebugInfo::current();

    hidden()
    {
        c10::ThreadLocalDebugInfo::_forceCurrentDebugInfo(nullptr);
    }
    ~hidden()
    {
        c10::ThreadLocalDebugInfo::_forceCurrentDebugInfo(before);
    }
    hidden(const hidden &) = delete;
    hidden &operator=(const hidden &) = delete;
};

} // namespace

/* A profiler of torch's own is about to start on the calling thread, and would
 * take ours for one. When it is gone, ours comes back with the next operator.
 */
VST_EXPORTED void vst_torch_make_way(void)
{
    unwatch();
}

/* Calls a function with our profiler hidden from the calling thread; does not
 * where another is there, or none. */
VST_EXPORTED void vst_torch_without(void (*function)(void *), void *ctx)
{
    if (!is_watched())
        return;
    hidden ours;
    function(ctx);
}

/* Whether a thread may have our profiler although we do not record. */
VST_EXPORTED int vst_torch_is_watched(void)
{
    return watched.load(std::memory_order_relaxed) > 0;
}

#endif
