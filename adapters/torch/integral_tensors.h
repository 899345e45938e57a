/* Records the numbers in an operator's integral tensors, if the user asked for
 * them: the range of each tensor, and all its numbers in a file. This code
 * reads the memory of the tensors itself: torch's operators would be recorded,
 * too, and the program's own hooks would see them. */
#ifndef VESTIGE_TORCH_INTEGRAL_TENSORS_H
#define VESTIGE_TORCH_INTEGRAL_TENSORS_H

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include <ATen/core/TensorBody.h>
#include <ATen/record_function.h>

namespace vestige_torch
{

struct integral_wishes {
    bool ranges;
    std::string names;  /* ",aten::gather,aten::index," */
    std::string folder; /* folder for the files */
};

/* NULL if nothing is wanted. Earlier wishes are never freed, because a thread
 * may still read them. */
inline std::atomic<const integral_wishes *> integral_wanted{nullptr};

static inline void integral_wish(bool ranges, const char *names,
                                 const char *folder)
{
    const integral_wishes *wishes = nullptr;

    if (ranges || names)
        wishes = new integral_wishes{ranges, names ? names : "",
                                     folder ? folder : ""};
    integral_wanted.store(wishes, std::memory_order_release);
}

class integral
{
  public:
    explicit integral(const at::RecordFunction &fn)
        : wishes_(integral_wanted.load(std::memory_order_acquire)),
          record_(fn.handle())
    {
        if (wishes_ && !wishes_->names.empty()) {
            std::string name = std::string(",") + fn.name() + ",";
            keeps_ = wishes_->names.find(name) != std::string::npos;
        }
    }
    bool wanted() const
    {
        return wishes_ && (wishes_->ranges || keeps_);
    }
    const std::string &range() const
    {
        return range_;
    }

    /* Call for every tensor among the inputs, including those in lists, because
     * the index counts them all. */
    void look_at(const at::Tensor &tensor)
    {
        int index = index_++;

        try {
            if (has_integers(tensor))
                read(tensor, index);
        } catch (...) {
            /* the tensor raised when its facts were read */
        }
    }

  private:
    static bool has_integers(const at::Tensor &tensor)
    {
        const auto *impl = tensor.unsafeGetTensorImpl();

        return tensor.defined() && impl->has_storage() &&
               !impl->has_symbolic_sizes_strides() &&
               !impl->is_python_dispatch() && !tensor.is_nested() &&
               tensor.is_cpu() && tensor.layout() == at::kStrided &&
               at::isIntegralType(tensor.scalar_type(), false) &&
               tensor.numel() != 0 && impl->data() != nullptr;
    }

    static int64_t number_at(const char *place, at::ScalarType type)
    {
        int8_t byte;
        int16_t two;
        int32_t four;
        int64_t eight;

        switch (c10::elementSize(type)) {
        case 1:
            std::memcpy(&byte, place, 1);
            return type == at::kByte ? static_cast<uint8_t>(byte) : byte;
        case 2:
            std::memcpy(&two, place, 2);
            return type == at::kUInt16 ? static_cast<uint16_t>(two) : two;
        case 4:
            std::memcpy(&four, place, 4);
            return type == at::kUInt32 ? static_cast<uint32_t>(four) : four;
        default:
            std::memcpy(&eight, place, 8);
            return eight;
        }
    }

    /* Reads all elements in order, whatever the strides. */
    void read(const at::Tensor &tensor, int index)
    {
        const char *data =
            static_cast<const char *>(tensor.unsafeGetTensorImpl()->data());
        const auto sizes = tensor.sizes(), strides = tensor.strides();
        size_t width = c10::elementSize(tensor.scalar_type());
        c10::SmallVector<int64_t, 8> at(sizes.size(), 0);
        int64_t low = INT64_MAX, high = INT64_MIN, offset = 0;
        std::FILE *file = keeps_ ? open(index) : nullptr;

        for (int64_t left = tensor.numel(); left > 0; left--) {
            const char *place = data + offset * static_cast<int64_t>(width);
            int64_t number = number_at(place, tensor.scalar_type());
            low = number < low ? number : low;
            high = number > high ? number : high;
            if (file)
                std::fwrite(place, width, 1, file);
            for (size_t dim = sizes.size(); dim-- > 0;) {
                offset += strides[dim];
                if (++at[dim] < sizes[dim])
                    break;
                offset -= strides[dim] * sizes[dim];
                at[dim] = 0;
            }
        }
        if (file)
            std::fclose(file);
        if (wishes_->ranges)
            range_ += (range_.empty() ? "{\"" : ",\"") + std::to_string(index) +
                      "\":[" + std::to_string(low) + "," +
                      std::to_string(high) + "]";
    }

    /* Opens a file with a temporary name. A reader of the trace gives the node
     * its id, and renames the file then. */
    std::FILE *open(int index) const
    {
        std::string path = wishes_->folder + "/rf_" + std::to_string(record_) +
                           "_tid_" + std::to_string(index) + ".dat";
        return std::fopen(path.c_str(), "wbe");
    }

    const integral_wishes *wishes_;
    uint64_t record_;
    int index_ = 0;
    bool keeps_ = false;
    std::string range_; /* JSON without its last brace */
};

} // namespace vestige_torch

#endif
