/* What backends of torch report of their own work: delegates that run parts of
 * a model call reportBackendEventToActiveKinetoProfiler(). That function takes
 * the profiler of the calling thread for torch's own and appends to the queue
 * in it. So our stand-in has such a queue in the same place. torch fills it,
 * and we read it when the recording stops. It costs nothing where nobody
 * reports.
 *
 * Any thread that holds the stand-in may report. As with torch's own profiler,
 * a thread that reports while the stop reads may lose what it reports. */
#ifndef VESTIGE_TORCH_BACKEND_EVENTS_H
#define VESTIGE_TORCH_BACKEND_EVENTS_H

#include <memory>
#include <mutex>
#include <new>

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/orchestration/observer.h>
#include <torch/version.h>

#include <vestige/api.h>

#include "inputs.h"

/* The versions whose profiler was found to look as below. With others such a
 * report is an error of the program, as it was without us. */
#define VST_TORCH_KNOWN                                                        \
    (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 13 &&                  \
     TORCH_VERSION_MINOR <= 15)
#if VST_TORCH_KNOWN
namespace torch::profiler::impl
{
class ThreadLocalSubqueue;
}
/* What destroys a thread's queue is not exported by torch, and the queue of all
 * threads is never destroyed. */
template <>
struct std::default_delete<torch::profiler::impl::ThreadLocalSubqueue> {
    void operator()(torch::profiler::impl::ThreadLocalSubqueue *) const noexcept
    {
    }
};
#include <torch/csrc/profiler/collection.h>
#endif

namespace vestige_torch
{

namespace impl = torch::profiler::impl;

#if VST_TORCH_KNOWN

/* Gives access to private members: an explicit instantiation may name them. */
template <typename Key, auto Member> struct opened_member {
    friend auto member(Key)
    {
        return Member;
    }
};
struct queues_key {
    friend auto member(queues_key);
};
struct lock_key {
    friend auto member(lock_key);
};
struct events_key {
    friend auto member(events_key);
};
using thread_queue = impl::ThreadLocalSubqueue;
template struct opened_member<queues_key, &impl::RecordQueue::sub_queues_>;
template struct opened_member<lock_key, &impl::RecordQueue::sub_queue_mutex_>;
template struct opened_member<events_key, &thread_queue::backend_events_>;

/* Begins like torch's own profiler, KinetoThreadLocalState, which is in no
 * header: test_torch_backends.py shows whether it still does. Its queue is made
 * once and never destroyed, since threads keep the stand-in after a stop. torch
 * makes a queue for each thread that reports, for which kineto_stand_in.h must
 * be in place. */
struct with_queue : impl::ProfilerStateBase {
    explicit with_queue(const impl::ProfilerConfig &config)
        : ProfilerStateBase(config)
    {
        new (queue_) impl::RecordQueue(config, {});
    }

    /* The calling thread ends: frees its queue. Events that it has reported
     * stay, in the queue, until they are read. */
    void drop_thread_queue()
    {
        std::unique_lock<std::mutex> guard(lock(), std::try_to_lock);
        auto &all = queue().*member(queues_key{});

        if (!guard.owns_lock())
            return;
        auto found = all.find(at::RecordFunction::currentThreadId());
        if (found == all.end())
            return;
        auto &events = found->second.get()->*member(events_key{});
        if (events.size() != 0)
            return;
        std::destroy_at(&events); /* nothing else of it has memory of its own */
        ::operator delete(static_cast<void *>(found->second.release()));
        all.erase(found);
    }

    /* torch holds it while it makes a thread's queue. */
    std::mutex &lock()
    {
        return queue().*member(lock_key{});
    }

    /* Hands each event that was reported to take(tid, event) and drops it. */
    template <typename Take> void read_events(Take take)
    {
        std::unique_lock<std::mutex> guard(lock(), std::try_to_lock);

        if (!guard.owns_lock())
            return;
        for (auto &each : queue().*member(queues_key{})) {
            auto &events = each.second.get()->*member(events_key{});
            if (events.size() == 0)
                continue;
            for (auto &event : events)
                take(each.second->kineto_info().resource, event);
            events.clear();
        }
    }

  private:
    [[maybe_unused]] uint64_t start_time_ = 0;
    alignas(c10::ApproximateClockToUnixTimeConverter) unsigned char clock_
        [sizeof(c10::ApproximateClockToUnixTimeConverter)];
    alignas(impl::RecordQueue) unsigned char queue_[sizeof(impl::RecordQueue)];

    impl::RecordQueue &queue()
    {
        return *std::launder(reinterpret_cast<impl::RecordQueue *>(queue_));
    }
};

#else

struct with_queue : impl::ProfilerStateBase {
    using ProfilerStateBase::ProfilerStateBase;

    void drop_thread_queue()
    {
    }
    template <typename Take> void read_events(Take)
    {
    }
};

#endif

/* Records an event as a span that torch measured. */
template <typename Event>
static inline void record_event(const vst_api *api, uint64_t tid,
                                const Event &event)
{
    enum { WORDS = 64, HEAD = VST_REPORTED_HEAD_WORDS, BACKEND_MAX = 300 };
    uint64_t words[WORDS] = {};
    const bool by_user = event.scope_ == at::RecordScope::USER_SCOPE;
    const vst_definition what = {by_user ? VST_DEF_ANNOTATION
                                         : VST_DEF_OPERATOR,
                                 0,
                                 0,
                                 static_cast<uint32_t>(event.name_.size()),
                                 0,
                                 event.name_.data(),
                                 ""};
    facts out(words + HEAD + VST_OPERATOR_HEAD_WORDS,
              WORDS - HEAD - VST_OPERATOR_HEAD_WORDS);

    words[0] = api->recording_define(&what);
    words[1] = tid;
    words[2] = static_cast<uint64_t>(event.start_time_us_) * 1000;
    words[3] = static_cast<uint64_t>(event.end_time_us_) * 1000;
    words[HEAD] = ~UINT64_C(0); /* no sequence number */
    if (!event.backend_.empty() && event.backend_.size() <= BACKEND_MAX) {
        out.byte(VST_FACT_NAMED);
        out.text("Backend", 7);
        out.byte(VST_FACT_TEXT);
        out.text(event.backend_.data(), event.backend_.size());
    }
    if (words[0] != 0)
        api->record_reported(words, static_cast<uint32_t>(out.finish(words)));
}

} // namespace vestige_torch

#endif
