/* What stands where Kineto will be, until torch needs Kineto. torch makes a
 * queue for each thread that reports an event to its profiler, or to ours, and
 * tells Kineto of that thread. Kineto is made when the first profiler of torch
 * starts; before, torch follows a null pointer there. So our profiler puts this
 * object there, which takes note of nothing. When torch's first profiler
 * prepares its trace, this object makes Kineto as torch does, leaves its place
 * to it and hands the call on.
 *
 * A start of ours puts it there, one thread at a time. Any thread may call it.
 */
#ifndef VESTIGE_TORCH_KINETO_STAND_IN_H
#define VESTIGE_TORCH_KINETO_STAND_IN_H

#include "backend_events.h"

#if VST_TORCH_KNOWN
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include <ATen/Context.h>
#include <c10/core/DeviceType.h>
#include <kineto/libkineto.h>

/* A torch that was built without Kineto has none of them, and calls none. */
#pragma weak libkineto_init
#pragma weak suppressLibkinetoLogMessages
#pragma weak _ZN9libkineto3apiEv
#endif

namespace vestige_torch
{

#if VST_TORCH_KNOWN

using kineto_interface = libkineto::ActivityProfilerInterface;

struct kineto_key {
    friend auto member(kineto_key);
};
struct children_key {
    friend auto member(children_key);
};
template struct opened_member<kineto_key,
                              &libkineto::LibkinetoApi::activityProfiler_>;
template struct opened_member<
    children_key, &libkineto::LibkinetoApi::initChildActivityProfilers>;

struct kineto_stand_in final : kineto_interface {
    std::mutex &lock; /* held by threads that are about to call this */
    std::unique_ptr<kineto_interface> registered; /* that is not ready yet */

    explicit kineto_stand_in(std::mutex &threads) : lock(threads)
    {
    }

    /* The first call of a profiler of torch's own that starts. init() comes
     * before it, and also from others. It comes from
     * initProfilerIfRegistered(), which libkineto_init() may call too, and
     * which waits for itself then: so nothing is done there. Afterwards `this`
     * is destroyed. */
    void prepareTrace(const std::set<libkineto::ActivityType> &activities,
                      const std::string &config) override
    {
        auto &kineto = libkineto::api();
        auto &place = kineto.*member(kineto_key{});

        {
            std::lock_guard<std::mutex> guard(lock);
            if (registered) {
                place = std::move(registered);
            } else {
                libkineto_init(/*cpuOnly=*/!has_devices(), /*logOnError=*/true);
                suppressLibkinetoLogMessages();
            }
            if (place && !place->isInitialized()) {
                place->init();
                (kineto.*member(children_key{}))();
            }
        }
        if (place && place.get() != this)
            place->prepareTrace(activities, config);
    }

    void addMetadata(const std::string &, const std::string &) override
    {
    }

    /* Its memory stays: it is destroyed while it runs. */
    static void operator delete(void *)
    {
    }

  private:
    static bool has_devices()
    {
        return at::hasCUDA() || at::hasXPU() || at::hasMTIA() ||
               c10::get_privateuse1_backend() != "privateuseone";
    }
};

/* Puts it in place where Kineto is not ready. */
static inline void stand_in_for_kineto(with_queue &profiler)
{
    if (!libkineto::api || !libkineto_init || !suppressLibkinetoLogMessages)
        return;
    auto &place = libkineto::api().*member(kineto_key{});
    if (dynamic_cast<kineto_stand_in *>(place.get()) ||
        libkineto::api().isProfilerInitialized())
        return;
    std::unique_ptr<kineto_stand_in> made(new kineto_stand_in(profiler.lock()));
    made->registered = std::move(place);
    place = std::move(made);
}

#else

static inline void stand_in_for_kineto(with_queue &)
{
}

#endif

} // namespace vestige_torch

#endif
