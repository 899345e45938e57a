/* The object that torch takes for its own profiler while we record. torch
 * reports a thread's allocations to it, backends report their events, and
 * _RecordFunctionFast does nothing without it. Any thread reads it; start and
 * stop write it, one thread at a time. */
#ifndef VESTIGE_TORCH_PROFILER_STAND_IN_H
#define VESTIGE_TORCH_PROFILER_STAND_IN_H

#include <atomic>
#include <memory>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <vestige/api.h>

#include "hiding.h"

namespace vestige_torch
{

struct reports final : torch::profiler::impl::ProfilerStateBase {
    const vst_api *api = nullptr;
    bool memory = false;
    /* bytes allocated before the first report; -1: no report yet */
    std::atomic<int64_t> before{-1};

    reports()
        : ProfilerStateBase(torch::profiler::impl::ProfilerConfig(
              torch::profiler::impl::ProfilerState::Disabled))
    {
    }

    /* Switches the stand-in on or off. Threads that still have it after a stop
     * see that it is off. */
    void set(bool on, const vst_api *table, bool with_memory, bool with_shapes)
    {
        api = table;
        memory = on && with_memory;
        if (on)
            before = -1;
        config_.report_input_shapes = on && with_shapes;
        config_.profile_memory = memory;
        config_.state = on ? torch::profiler::impl::ProfilerState::KINETO
                           : torch::profiler::impl::ProfilerState::Disabled;
    }

    bool memoryProfilingEnabled() const override
    {
        return memory;
    }

    void reportMemoryUsage(void *pointer, int64_t size, size_t total, size_t,
                           c10::Device device) override
    {
        auto address = reinterpret_cast<uintptr_t>(pointer);

        if (!device.is_cpu() || size == 0 || !memory)
            return;
        if (before.load(std::memory_order_relaxed) < 0)
            before = static_cast<int64_t>(total) - size;
        if (size > 0)
            api->framework_allocated(address, static_cast<size_t>(size));
        else
            api->framework_freed_size(address, static_cast<size_t>(-size));
    }

    /* NONE, because for other types torch would use members that this object
     * lacks. */
    torch::profiler::impl::ActiveProfilerType profilerType() override
    {
        return torch::profiler::impl::ActiveProfilerType::NONE;
    }
};

inline std::shared_ptr<reports> reported; /* made once, never freed */

/* Returns whether any thread has the stand-in. */
static inline bool is_held()
{
    return reported && reported.use_count() > 1;
}

static inline bool is_watched()
{
    return reported &&
           c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) ==
               reported.get();
}

/* Gives the calling thread our stand-in, unless it has a profiler already. */
static inline void watch()
{
    const auto place = c10::DebugInfoKind::PROFILER_STATE;

    if (reported && !c10::ThreadLocalDebugInfo::get(place))
        c10::ThreadLocalDebugInfo::_push(place, reported);
}

/* Takes the stand-in from the calling thread. */
static inline void unwatch()
{
    const auto place = c10::DebugInfoKind::PROFILER_STATE;

    try {
        if (is_watched() &&
            c10::ThreadLocalDebugInfo::_peek(place).get() == reported.get())
            c10::ThreadLocalDebugInfo::_pop(place);
    } catch (...) {
        /* the program has pushed something on top of it */
    }
}

/* Hides the debug info of the calling thread, including ours, while this object
 * lives. */
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

} // namespace vestige_torch

#endif
