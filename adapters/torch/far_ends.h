/* Operators that ended on another thread than they began on, until the thread
 * that began them says so too: a recording of bounded size keeps what is open,
 * and would keep these for ever. Part of operators.cpp, which alone includes
 * it.
 *
 * Any thread enters, under one lock that nothing else is done under. */
#ifndef VESTIGE_TORCH_FAR_ENDS_H
#define VESTIGE_TORCH_FAR_ENDS_H

#include <atomic>
#include <mutex>
#include <vector>

#include <vestige/api.h>

namespace
{

enum { FAR_MAX = 4096 }; /* of threads that run no operator any more */

struct far_end {
    const void *owner; /* only compared: it may be gone */
    vst_id id;
    uint32_t instance;
};

std::mutex far_lock;
std::vector<far_end> far_ends;
std::atomic<size_t> far_count{0}; /* of far_ends, to look at without the lock */

void far_note(const void *owner, vst_id id, uint32_t instance)
{
    std::lock_guard<std::mutex> guard(far_lock);

    if (far_ends.size() >= FAR_MAX)
        far_ends.clear();
    far_ends.push_back({owner, id, instance});
    far_count.store(far_ends.size(), std::memory_order_relaxed);
}

/* Takes those of a thread. */
std::vector<far_end> far_take(const void *owner)
{
    std::lock_guard<std::mutex> guard(far_lock);
    std::vector<far_end> taken, rest;

    for (const far_end &end : far_ends)
        (end.owner == owner ? taken : rest).push_back(end);
    far_ends.swap(rest);
    far_count.store(far_ends.size(), std::memory_order_relaxed);
    return taken;
}

void far_forget()
{
    std::lock_guard<std::mutex> guard(far_lock);

    far_ends.clear();
    far_count.store(0, std::memory_order_relaxed);
}

} // namespace

#endif
