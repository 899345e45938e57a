/* Writes the inputs of an operator as facts (<vestige/operator.h>): the facts
 * that torch's profiler shows, as bytes. The thread that runs the operator
 * writes into memory of its own. */
#ifndef VESTIGE_TORCH_INPUTS_H
#define VESTIGE_TORCH_INPUTS_H

#include <array>
#include <cstring>
#include <sstream>
#include <string>

#include <ATen/core/TensorBody.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <torch/csrc/profiler/util.h>

#include <vestige/operator.h>

namespace vestige_torch
{

/* How many items of a list torch shows with their values. */
enum { LIST_MAX = VST_TENSORS_SHOWN_MAX };

class facts
{
  public:
    facts(uint64_t *words, size_t count)
        : at_(reinterpret_cast<unsigned char *>(words)), end_(at_ + count * 8)
    {
    }

    void byte(unsigned value)
    {
        if (at_ < end_)
            *at_++ = static_cast<unsigned char>(value);
        else
            full_ = true;
    }
    void count(uint64_t value)
    {
        while (value >= 0x80) {
            byte(static_cast<unsigned>(value & 0x7f) | 0x80);
            value >>= 7;
        }
        byte(static_cast<unsigned>(value));
    }
    void integer(int64_t value)
    {
        count(static_cast<uint64_t>(value) << 1 ^
              static_cast<uint64_t>(value >> 63));
    }
    void bytes(const void *from, size_t length)
    {
        if (static_cast<size_t>(end_ - at_) < length) {
            full_ = true;
            return;
        }
        std::memcpy(at_, from, length);
        at_ += length;
    }
    /* Returns whether `length` bytes, and a few more, fit. The put_ functions
     * below write without checking. */
    bool has_room(size_t length) const
    {
        return static_cast<size_t>(end_ - at_) > length + 16;
    }
    /* Copies 16 bytes, of which the first `length` are used. */
    void put_short(const void *from, size_t length)
    {
        std::memcpy(at_, from, 16);
        at_ += length;
    }
    void put_integer(int64_t value)
    {
        auto rest = static_cast<uint64_t>(value) << 1 ^
                    static_cast<uint64_t>(value >> 63);

        for (; rest >= 0x80; rest >>= 7)
            *at_++ = static_cast<unsigned char>(rest | 0x80);
        *at_++ = static_cast<unsigned char>(rest);
    }
    void put_integers(c10::IntArrayRef values)
    {
        *at_++ = static_cast<unsigned char>(values.size());
        for (int64_t value : values)
            put_integer(value);
    }
    void text(const char *from, size_t length)
    {
        count(length);
        bytes(from, length);
    }
    void integers(c10::IntArrayRef values)
    {
        count(values.size());
        for (int64_t value : values)
            integer(value);
    }

    unsigned char *mark() const
    {
        return at_;
    }
    void go_back(unsigned char *mark)
    {
        at_ = mark;
        full_ = false;
    }
    bool full() const
    {
        return full_;
    }
    /* Pads with END to a whole word. Returns the number of words. */
    size_t finish(const uint64_t *words)
    {
        while (reinterpret_cast<uintptr_t>(at_) % 8)
            *at_++ = VST_FACT_END;
        return static_cast<size_t>(reinterpret_cast<uint64_t *>(at_) - words);
    }

  private:
    unsigned char *at_, *end_; /* end_ lies at the end of a word */
    bool full_ = false;
};

/* The name of a type, preceded by its length; length 0 if the name is too
 * long. */
struct type_text {
    unsigned char length;
    char bytes[31];
};

static inline const type_text &text_of(caffe2::TypeMeta type)
{
    enum { KNOWN = static_cast<int>(at::ScalarType::NumOptions) };
    static const type_text none = {};
    static const auto texts = [] {
        std::array<type_text, KNOWN> made = {};
        for (int i = 0; i < KNOWN; i++) {
            auto scalar = static_cast<at::ScalarType>(i);
            if (scalar == at::ScalarType::Undefined)
                continue;
            auto name = c10::scalarTypeToTypeMeta(scalar).name();
            if (name.size() >= sizeof made[0].bytes)
                continue;
            made[i].bytes[0] = static_cast<char>(name.size());
            std::memcpy(made[i].bytes + 1, name.data(), name.size());
            made[i].length = static_cast<unsigned char>(name.size() + 1);
        }
        return made;
    }();
    auto scalar = c10::optTypeMetaToScalarType(type);

    return scalar ? texts[static_cast<size_t>(*scalar)] : none;
}

/* As torch does, a tensor without sizes of its own does not count as a
 * tensor. */
static inline void put_tensor(facts &out, const at::Tensor &tensor)
{
    if (!tensor.defined() || tensor.is_nested() ||
        tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {
        out.byte(VST_FACT_OTHER);
        return;
    }
    const type_text &type = text_of(tensor.dtype());
    auto sizes = tensor.sizes();
    out.byte(VST_FACT_TENSOR);
    if (type.length && sizes.size() < 0x80 && tensor.layout() == at::kStrided &&
        out.has_room(sizeof type.bytes + sizes.size() * 20)) {
        if (type.length <= 16)
            out.put_short(type.bytes, type.length);
        else
            out.bytes(type.bytes, type.length);
        out.put_integers(sizes);
        out.put_integers(tensor.strides());
        return;
    }
    auto name = tensor.dtype().name();
    out.text(name.data(), name.size());
    out.integers(sizes);
    if (tensor.layout() == at::kStrided)
        out.integers(tensor.strides());
    else
        out.count(0);
}

static inline void put_as_text(facts &out, unsigned tag,
                               const c10::IValue &value)
{
    std::ostringstream stream;

    stream << value;
    std::string text = stream.str();
    out.byte(tag);
    out.text(text.data(), text.size());
}

/* Writes a number without its tag. */
static inline void put_number(facts &out, const c10::IValue &value)
{
    if (value.isInt()) {
        out.integer(value.toInt());
    } else if (value.isDouble()) {
        double number = value.toDouble();
        out.bytes(&number, sizeof number);
    } else {
        out.byte(value.toBool());
    }
}

/* Returns the tag of a number; 0 if the value has none of these types. */
static inline unsigned number_tag(const c10::IValue &value)
{
    return value.isInt()      ? VST_FACT_INTEGER
           : value.isDouble() ? VST_FACT_DOUBLE
           : value.isBool()   ? VST_FACT_BOOL
                              : VST_FACT_END;
}

static inline void put_list(facts &out, const c10::IValue &value)
{
    auto items = value.toListRef();
    unsigned tag = items.empty() ? VST_FACT_INTEGER : number_tag(items[0]);

    if (!items.empty() && (!items[0].isScalar() || items.size() > LIST_MAX)) {
        out.byte(VST_FACT_OTHER);
        return;
    }
    for (const auto &item : items)
        if (number_tag(item) != tag)
            tag = 0;
    if (!tag) {
        put_as_text(out, VST_FACT_LIST_TEXT, value);
        return;
    }
    out.byte(tag - VST_FACT_INTEGER + VST_FACT_INTEGERS);
    out.count(items.size());
    for (const auto &item : items)
        put_number(out, item);
}

static inline void put_tensors(facts &out, const c10::IValue &value,
                               bool long_lists)
{
    auto items = value.toListRef();

    if (items.size() > LIST_MAX && !long_lists) {
        out.byte(VST_FACT_TENSORS_LONG);
        return;
    }
    out.byte(VST_FACT_TENSORS);
    out.count(items.size());
    for (const auto &item : items)
        put_tensor(out, item.toTensor());
}

/* Looks at the first item, because asking a list for its type takes long. */
static inline bool is_tensor_list(const c10::IValue &value)
{
    if (!value.isList())
        return false;
    auto items = value.toListRef();
    return (items.empty() || !number_tag(items[0])) && value.isTensorList();
}

/* Writes an input that is not a tensor. long_lists: lists of tensors are
 * written completely. */
static inline void put_other(facts &out, const c10::IValue &value,
                             bool long_lists)
{
    if (value.isNone()) {
        out.byte(VST_FACT_OTHER);
    } else if (unsigned tag = number_tag(value)) {
        out.byte(tag);
        put_number(out, value);
    } else if (value.isScalar()) {
        put_as_text(out, VST_FACT_TEXT, value);
    } else if (!value.isList()) {
        out.byte(VST_FACT_OTHER);
    } else if (is_tensor_list(value)) {
        put_tensors(out, value, long_lists);
    } else {
        put_list(out, value);
    }
}

static inline void put_input(facts &out, const c10::IValue &value,
                             bool long_lists)
{
    if (value.isTensor())
        put_tensor(out, value.toTensor());
    else
        put_other(out, value, long_lists);
}

/* Writes the number of floating-point operations, which torch computes from the
 * inputs. */
static inline void put_flops(facts &out, const at::RecordFunction &fn)
{
    uint64_t flops = torch::profiler::impl::computeFlops(
        fn.name(), torch::profiler::impl::saveExtraArgs(fn));

    if (flops) {
        out.byte(VST_FACT_FLOPS);
        out.count(flops);
    }
}

} // namespace vestige_torch

#endif
