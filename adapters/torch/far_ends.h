/* Records "far" ends: operators that end on another thread than they began on.
 * A recording of bounded size keeps open operators, and would keep these
 * forever, so the thread that began such an operator also records its end,
 * together with its next operator. Any thread enters; one lock guards
 * everything, and nothing else is done while it is held. */
#ifndef VESTIGE_TORCH_FAR_ENDS_H
#define VESTIGE_TORCH_FAR_ENDS_H

#include <atomic>
#include <mutex>
#include <vector>

#include <vestige/api.h>

namespace vestige_torch
{

/* With more ends than this, the oldest are dropped: their threads run no
 * operators any more. */
enum { FAR_MAX = 4096 };

struct far_end {
    const void *owner; /* only compared, because the owner may be gone */
    vst_id id;
    uint32_t instance;
};

inline std::mutex far_lock;
inline std::vector<far_end> far_ends;
inline std::atomic<size_t> far_count{
    0}; /* number of ends, read without the lock */

static inline void far_note(const void *owner, vst_id id, uint32_t instance)
{
    std::lock_guard<std::mutex> guard(far_lock);

    if (far_ends.size() >= FAR_MAX)
        far_ends.clear();
    far_ends.push_back({owner, id, instance});
    far_count.store(far_ends.size(), std::memory_order_relaxed);
}

/* Takes out the ends that this thread must record. */
static inline std::vector<far_end> far_take(const void *owner)
{
    std::lock_guard<std::mutex> guard(far_lock);
    std::vector<far_end> taken, rest;

    for (const far_end &end : far_ends)
        (end.owner == owner ? taken : rest).push_back(end);
    far_ends.swap(rest);
    far_count.store(far_ends.size(), std::memory_order_relaxed);
    return taken;
}

static inline void far_forget()
{
    std::lock_guard<std::mutex> guard(far_lock);

    far_ends.clear();
    far_count.store(0, std::memory_order_relaxed);
}

} // namespace vestige_torch

#endif
