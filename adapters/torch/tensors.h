/* Records the address of each tensor, and the facts that torch's event tree
 * shows. If memory is recorded, a tensor's address identifies it until the
 * recording ends, because a weak reference keeps the memory of its impl (not
 * its data) from being reused. torch's own profiler does the same. Any thread
 * enters. */
#ifndef VESTIGE_TORCH_TENSORS_H
#define VESTIGE_TORCH_TENSORS_H

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/core/TensorBody.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/core/UndefinedTensorImpl.h>

#include <vestige/operator.h>

#include "inputs.h"

namespace vestige_torch
{

using weak_tensor =
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

enum {
    /* tensors that a thread knows to be held; a power of two */
    RECENT_TENSORS = 256,
    HELD_TENSORS_FEW = 4096,
    HELD_TENSORS_MAX = 1 << 21 /* about 500 MB; later tensors are not held */
};

/* The tensors that are held. Guarded by `lock`. A table could show whether a
 * tensor is held already, but would cost more than holding it twice. */
struct held_tensors {
    std::mutex lock;
    std::vector<weak_tensor> held;
    size_t room = HELD_TENSORS_FEW; /* when this is full, doubles are removed */
};

inline held_tensors *tensors_held; /* made once, never freed */
/* changes when all tensors are released */
inline std::atomic<uint64_t> tensors_round{1};

/* The tensors that a thread saw last; no other thread reads this. */
struct recent_tensors {
    uint64_t round;
    const c10::TensorImpl *seen[RECENT_TENSORS];
};

/* Returns whether the thread knows that this tensor is held, and notes that it
 * is. */
static inline bool is_held(recent_tensors *recent, const c10::TensorImpl *impl)
{
    uint64_t round = tensors_round.load(std::memory_order_relaxed);
    auto place = reinterpret_cast<uintptr_t>(impl) / 64 % RECENT_TENSORS;

    if (recent->round != round) {
        std::memset(static_cast<void *>(recent), 0, sizeof *recent);
        recent->round = round;
    }
    if (recent->seen[place] == impl)
        return true;
    recent->seen[place] = impl;
    return false;
}

/* Keeps one reference to each tensor. */
static inline __attribute__((noinline)) void drop_doubles(held_tensors *all)
{
    auto &held = all->held;
    auto before = [](const weak_tensor &a, const weak_tensor &b) {
        return a._unsafe_get_target() < b._unsafe_get_target();
    };
    auto same = [](const weak_tensor &a, const weak_tensor &b) {
        return a._unsafe_get_target() == b._unsafe_get_target();
    };

    std::sort(held.begin(), held.end(), before);
    held.erase(std::unique(held.begin(), held.end(), same), held.end());
    all->room = std::max(size_t{HELD_TENSORS_FEW}, 2 * held.size());
}

/* Makes sure that no other tensor gets this tensor's address before the
 * recording ends. */
static inline void hold(const at::Tensor &tensor)
{
    std::lock_guard<std::mutex> guard(tensors_held->lock);

    if (tensors_held->held.size() >= tensors_held->room)
        drop_doubles(tensors_held);
    if (tensors_held->held.size() < HELD_TENSORS_MAX)
        tensors_held->held.emplace_back(tensor.getIntrusivePtr());
}

static inline void begin_tensors()
{
    if (!tensors_held)
        tensors_held = new held_tensors;
}

/* Call when the recording is over. */
static inline void end_tensors()
{
    decltype(tensors_held->held) ended; /* released when the lock is not held */

    if (!tensors_held)
        return;
    tensors_round.fetch_add(1, std::memory_order_relaxed);
    std::lock_guard<std::mutex> guard(tensors_held->lock);
    ended.swap(tensors_held->held);
    tensors_held->room = HELD_TENSORS_FEW;
}

/* Call in a forked child: another thread of the parent may have held the
 * lock. */
static inline void forget_tensors()
{
    tensors_held = nullptr;
    tensors_round.fetch_add(1, std::memory_order_relaxed);
}

/* Returns whether torch shows facts of a tensor, see put_tensor(). */
static inline bool has_facts(const at::Tensor &tensor)
{
    return tensor.defined() && !tensor.is_nested() &&
           !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

/* Returns the address of the storage's data, without allocating the data of a
 * lazy storage; NULL if there is none. */
static inline const void *data_of(const at::Tensor &tensor)
{
    const c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
    c10::StorageImpl *storage =
        impl->has_storage() ? impl->unsafe_storage().unsafeGetStorageImpl()
                            : nullptr;

    return storage ? storage->_mutable_data_ptr_no_checks().get() : nullptr;
}

static inline unsigned tensor_flags(const at::Tensor &tensor)
{
    return tensor.requires_grad() ? VST_TENSOR_REQUIRES_GRAD : 0;
}

/* ---- inputs of an operator ----------------------------------------------- */

static inline void put_tensor_at(facts &out, recent_tensors *recent,
                                 const at::Tensor &tensor)
{
    const c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
    const void *data = data_of(tensor);

    if (recent && !is_held(recent, impl))
        hold(tensor);
    out.bytes(&impl, sizeof impl);
    out.bytes(&data, sizeof data);
    out.byte(static_cast<unsigned char>(tensor.layout()));
    out.byte(static_cast<unsigned char>(tensor.device().type()));
    out.byte(tensor_flags(tensor));
    out.byte(static_cast<unsigned char>(tensor.scalar_type()));
    out.integer(tensor.device().index());
}

/* Calls a function with each tensor whose facts put_inputs() wrote. */
template <typename function>
static inline void each_tensor(const at::RecordFunction &fn, bool long_lists,
                               function call)
{
    for (const auto &value : fn.inputs()) {
        if (value.isTensor()) {
            if (has_facts(value.toTensor()))
                call(value.toTensor());
        } else if (is_tensor_list(value) &&
                   (long_lists || value.toListRef().size() <= LIST_MAX)) {
            for (const auto &item : value.toListRef())
                if (has_facts(item.toTensor()))
                    call(item.toTensor());
        }
    }
}

/* Call after all other facts of an operator. Leaves the addresses out if there
 * is no room. recent: NULL if no tensors are held. */
static inline void put_tensors_at(facts &out, recent_tensors *recent,
                                  const at::RecordFunction &fn, bool long_lists)
{
    unsigned char *before = out.mark();
    size_t count = 0;

    each_tensor(fn, long_lists, [&](const at::Tensor &) { count++; });
    if (!count)
        return;
    out.byte(VST_FACT_TENSORS_AT);
    out.count(count);
    each_tensor(fn, long_lists, [&](const at::Tensor &tensor) {
        put_tensor_at(out, recent, tensor);
    });
    if (out.full())
        out.go_back(before);
}

/* ---- a tensor that the program names ------------------------------------- */

static inline void append(std::string &text, c10::IntArrayRef values)
{
    const char *between = "";

    text += ", [";
    for (int64_t value : values) {
        text += between + std::to_string(value);
        between = ", ";
    }
    text += "]";
}

/* Returns a JSON list: the tensor's address as in "Tensors" of an operator, its
 * sizes and its strides. */
static inline std::string describe(const at::Tensor &tensor)
{
    std::string text;

    if (!has_facts(tensor))
        return text;
    hold(tensor);
    for (const void *address :
         {static_cast<const void *>(tensor.unsafeGetTensorImpl()),
          data_of(tensor)}) {
        text += text.empty() ? "[" : ", ";
        text += std::to_string(reinterpret_cast<uintptr_t>(address));
    }
    for (int number : {static_cast<int>(tensor.layout()),
                       static_cast<int>(tensor.device().type()),
                       static_cast<int>(tensor_flags(tensor)),
                       static_cast<int>(tensor.scalar_type()),
                       static_cast<int>(tensor.device().index())})
        text += ", " + std::to_string(number);
    append(text, tensor.sizes());
    append(text, tensor.layout() == at::kStrided ? tensor.strides()
                                                 : c10::IntArrayRef());
    return text + "]";
}

} // namespace vestige_torch

#endif
