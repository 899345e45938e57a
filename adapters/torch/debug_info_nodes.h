/* The nodes by which threads hold our profiler. torch keeps a list of nodes for
 * each thread, and threads of its pools share the nodes of the thread that gave
 * them work. Only a thread itself can take a node out of its list. So a stop
 * changes the kind of every node of ours: no thread finds our profiler from
 * then on, torch's own can start, and what a backend reports is dropped by
 * torch as it is without us. The next start gives the nodes their kind back.
 *
 * Any thread adds its node; start and stop turn them all. */
#ifndef VESTIGE_TORCH_DEBUG_INFO_NODES_H
#define VESTIGE_TORCH_DEBUG_INFO_NODES_H

#include <algorithm>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include <c10/util/ThreadLocalDebugInfo.h>

#include "backend_events.h"

namespace vestige_torch
{

#if VST_TORCH_KNOWN

struct kind_key {
    friend auto member(kind_key);
};
template struct opened_member<kind_key, &c10::ThreadLocalDebugInfo::kind_>;

inline constexpr std::string_view off_name = "vestige is off";

class debug_info_nodes
{
    using node = c10::ThreadLocalDebugInfo;

    std::mutex lock_; /* guards the members below */
    std::vector<std::weak_ptr<node>> nodes_;
    bool on_ = false;

    /* A thread may read it meanwhile, and sees the one or the other. */
    static void give_kind(node &of, bool on)
    {
        c10::DebugInfoKind kind = on ? c10::DebugInfoKind::PROFILER_STATE
                                     : c10::DebugInfoKind(&off_name);
        __atomic_store(&(of.*member(kind_key{})), &kind, __ATOMIC_RELAXED);
    }

  public:
    /* Returns whether the next turn will reach the node. */
    bool add(const std::shared_ptr<node> &added)
    {
        std::lock_guard<std::mutex> guard(lock_);

        if (!on_) /* a stop overtook us */
            give_kind(*added, false);
        nodes_.push_back(added);
        return true;
    }

    void turn(bool on)
    {
        std::lock_guard<std::mutex> guard(lock_);

        turn_all(on);
    }

    /* In a forked child. Returns false if a thread of the parent's was in here
     * at the fork: the lock is never free again. */
    bool forget()
    {
        std::unique_lock<std::mutex> guard(lock_, std::try_to_lock);

        if (guard.owns_lock())
            turn_all(false);
        return guard.owns_lock();
    }

  private:
    void turn_all(bool on)
    {
        on_ = on;
        nodes_.erase(
            std::remove_if(nodes_.begin(), nodes_.end(),
                           [](const auto &each) { return each.expired(); }),
            nodes_.end());
        for (const auto &each : nodes_)
            if (auto held = each.lock())
                give_kind(*held, on);
    }
};

#else

struct debug_info_nodes {
    bool add(const std::shared_ptr<c10::ThreadLocalDebugInfo> &)
    {
        return false;
    }
    void turn(bool)
    {
    }
    bool forget()
    {
        return true;
    }
};

#endif

/* Never freed: threads end at any time. */
inline debug_info_nodes *nodes = new debug_info_nodes;

} // namespace vestige_torch

#endif
