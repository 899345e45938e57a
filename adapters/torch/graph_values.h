/* Writes the inputs and outputs of an operator, as values of a node of the
 * execution trace (<vestige/graph.h>). The thread that runs the operator writes
 * into memory of its own. The common path allocates nothing and makes no text:
 * a tensor is its address, the address of its storage, and numbers. */
#ifndef VESTIGE_TORCH_GRAPH_VALUES_H
#define VESTIGE_TORCH_GRAPH_VALUES_H

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include <ATen/NestedTensorImpl.h>
#include <ATen/core/TensorBody.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <vestige/api.h>

#include "integral_tensors.h"

namespace vestige_torch
{

enum {
    GRAPH_LIST_MAX = 4097, /* items of a list, as in torch's observer */
    GRAPH_TEXT_MAX = 1 << 20,
    GRAPH_DEPTH_MAX = 32,
    /* Spare words behind the words of one escape, for values that are written
     * before the check whether the escape is full. */
    GRAPH_SPARE_WORDS = 32
};

/* The observer whose nodes are recorded; 0 if none. Start and stop write it; it
 * is read relaxed. */
inline std::atomic<unsigned> graph_observer{0};

/* State of one thread, made when the thread records its first node. */
struct graph_state {
    uint64_t words[VST_ESCAPE_WORDS_MAX + GRAPH_SPARE_WORDS];
};

/* ---- bytes --------------------------------------------------------------- */

class values
{
  public:
    values(const vst_api *api, uint64_t *words, uint64_t record, unsigned flags,
           unsigned observer)
        : api_(api), words_(words),
          at_(reinterpret_cast<unsigned char *>(words + 1)), record_(record),
          flags_(flags), observer_(observer)
    {
    }

    void tag(unsigned value)
    {
        *at_++ = static_cast<unsigned char>(value);
    }
    void count(uint64_t value)
    {
        while (value >= 0x80) {
            *at_++ = static_cast<unsigned char>(value | 0x80);
            value >>= 7;
        }
        *at_++ = static_cast<unsigned char>(value);
    }
    void integer(int64_t value)
    {
        count(static_cast<uint64_t>(value) << 1 ^
              static_cast<uint64_t>(value >> 63));
    }
    /* Makes sure that the spare words can be written. */
    void make_room()
    {
        if (at_ >= full())
            flush();
    }
    void integers(c10::IntArrayRef numbers)
    {
        count(numbers.size());
        for (int64_t number : numbers) {
            make_room();
            integer(number);
        }
    }
    void bytes(const void *from, size_t length)
    {
        const auto *next = static_cast<const unsigned char *>(from);

        make_room();
        while (length) {
            size_t room = static_cast<size_t>(full() - at_);
            size_t part = length < room ? length : room;
            std::memcpy(at_, next, part);
            at_ += part;
            next += part;
            length -= part;
            make_room();
        }
    }
    void text(const char *from, size_t length)
    {
        if (length > GRAPH_TEXT_MAX) {
            length = GRAPH_TEXT_MAX;
            cut();
        }
        count(length);
        bytes(from, length);
    }
    void cut()
    {
        flags_ |= VST_NODE_CUT;
    }
    void finish()
    {
        make_room();
        while (reinterpret_cast<uintptr_t>(at_) % 8)
            *at_++ = VST_VALUE_END;
        words_[0] = vst_node_word(record_, flags_, observer_);
        api_->record_node(
            words_,
            static_cast<uint32_t>(reinterpret_cast<uint64_t *>(at_) - words_));
    }

  private:
    unsigned char *full() const
    {
        return reinterpret_cast<unsigned char *>(words_ + VST_ESCAPE_WORDS_MAX);
    }
    void flush()
    {
        size_t rest = static_cast<size_t>(at_ - full());

        words_[0] = vst_node_word(record_, flags_ | VST_NODE_MORE, observer_);
        api_->record_node(words_, VST_ESCAPE_WORDS_MAX);
        std::memcpy(words_ + 1, full(), rest);
        at_ = reinterpret_cast<unsigned char *>(words_ + 1) + rest;
    }

    const vst_api *api_;
    uint64_t *words_;
    unsigned char *at_;
    uint64_t record_;
    unsigned flags_, observer_;
};

/* ---- tensors ------------------------------------------------------------- */

static inline void put_device(values &out, c10::Device device)
{
    if (device.is_cpu() && !device.has_index()) {
        out.text("cpu", 3);
    } else {
        std::string name = device.str();
        out.text(name.data(), name.size());
    }
}

/* Returns the address of the storage's data, or of the storage itself if it has
 * no data (a fake one). Asking such a storage for its data would raise. */
static inline uint64_t storage_identity(const c10::Storage &storage)
{
    auto *impl = storage.unsafeGetStorageImpl();
    const void *data =
        impl ? impl->_mutable_data_ptr_no_checks().get() : nullptr;

    return reinterpret_cast<uintptr_t>(data ? data : impl);
}

static inline void put_tensor_head(values &out, unsigned tag,
                                   const at::Tensor &tensor, uint64_t storage,
                                   int64_t offset, int64_t elements)
{
    auto type = tensor.dtype().name();

    out.make_room();
    out.tag(tag);
    out.count(reinterpret_cast<uintptr_t>(tensor.unsafeGetTensorImpl()));
    out.count(storage);
    out.integer(offset);
    out.integer(elements);
    out.count(tensor.dtype().itemsize());
    put_device(out, tensor.unsafeGetTensorImpl()->device());
    out.text(type.data(), type.size());
}

/* Writes a nested tensor: one row for each tensor in it. */
static inline void put_nested(values &out, const at::Tensor &tensor)
{
    auto *impl = static_cast<at::native::NestedTensorImpl *>(
        tensor.unsafeGetTensorImpl());
    const at::Tensor sizes = impl->get_nested_sizes();
    const at::Tensor strides = impl->get_nested_strides();
    int64_t rows = sizes.dim() == 2 ? sizes.size(0) : 0;
    int64_t dims = rows ? sizes.size(1) : 0;
    const auto *size = rows * dims ? sizes.const_data_ptr<int64_t>() : nullptr;
    const auto *stride =
        rows * dims ? strides.const_data_ptr<int64_t>() : nullptr;
    int64_t elements = impl->numel();

    put_tensor_head(out, VST_VALUE_TENSOR_NESTED, tensor,
                    storage_identity(impl->unsafe_storage()), 0, elements);
    out.count(static_cast<uint64_t>(rows));
    for (int64_t row = 0; row < rows; row++) {
        auto length = static_cast<size_t>(dims);
        out.make_room();
        out.integers(c10::IntArrayRef(size + row * dims, length));
        out.make_room();
        out.integers(c10::IntArrayRef(stride + row * dims, length));
    }
}

static inline bool is_plain_nested(const at::Tensor &tensor)
{
    return tensor.is_nested() && tensor.layout() == at::kStrided &&
           !tensor.unsafeGetTensorImpl()->is_python_dispatch();
}

/* Writes a tensor. Calls everything that may raise before it writes the first
 * byte. */
static inline void put_graph_tensor(values &out, const at::Tensor &tensor)
{
    auto *impl = tensor.unsafeGetTensorImpl();

    if (!tensor.defined()) {
        out.tag(VST_VALUE_TENSOR_UNDEFINED);
        return;
    }
    if (is_plain_nested(tensor)) {
        put_nested(out, tensor);
        return;
    }
    if (tensor.is_nested() || impl->has_symbolic_sizes_strides()) {
        put_tensor_head(out, VST_VALUE_TENSOR, tensor, 0, 0, 0);
        out.count(0);
        out.count(0);
        return;
    }
    uint64_t storage = 0;
    int64_t offset = 0;
    if (impl->has_storage()) {
        storage = storage_identity(impl->unsafe_storage());
        offset = impl->storage_offset();
    }
    c10::IntArrayRef sizes = impl->sizes(), strides;
    if (impl->layout() == at::kStrided)
        strides = impl->strides();
    put_tensor_head(out, VST_VALUE_TENSOR, tensor, storage, offset,
                    impl->numel());
    out.integers(sizes);
    out.make_room();
    out.integers(strides);
}

/* Writes a tensor; if it raises when its facts are read, writes only its
 * head. */
static inline void put_tensor_or_head(values &out, const at::Tensor &tensor)
{
    try {
        put_graph_tensor(out, tensor);
    } catch (...) {
        put_tensor_head(out, VST_VALUE_TENSOR, tensor, 0, 0, 0);
        out.count(0);
        out.count(0);
    }
}

/* ---- values -------------------------------------------------------------- */

static inline void put_value(values &out, const c10::IValue &value,
                             integral *numbers, int depth);

static inline void put_items(values &out, unsigned tag,
                             c10::ArrayRef<c10::IValue> items,
                             integral *numbers, int depth)
{
    size_t size = items.size();

    if (depth >= GRAPH_DEPTH_MAX)
        size = 0;
    else if (size > GRAPH_LIST_MAX)
        size = GRAPH_LIST_MAX;
    if (size != items.size())
        out.cut();
    out.tag(tag);
    out.count(size);
    for (size_t i = 0; i < size; i++)
        put_value(out, items[i], numbers, depth + 1);
}

static inline void put_value(values &out, const c10::IValue &value,
                             integral *numbers, int depth)
{
    out.make_room();
    if (value.isTensor()) {
        put_tensor_or_head(out, value.toTensor());
        if (numbers)
            numbers->look_at(value.toTensor());
    } else if (value.isNone()) {
        out.tag(VST_VALUE_NONE);
    } else if (value.isInt()) {
        out.tag(VST_VALUE_INTEGER);
        out.integer(value.toInt());
    } else if (value.isBool()) {
        out.tag(VST_VALUE_BOOL);
        out.tag(value.toBool());
    } else if (value.isDouble()) {
        double number = value.toDouble();
        out.tag(VST_VALUE_DOUBLE);
        out.bytes(&number, sizeof number);
    } else if (value.isList()) {
        put_items(out, VST_VALUE_LIST, value.toListRef(), numbers, depth);
    } else if (value.isTuple()) {
        put_items(out, VST_VALUE_TUPLE, value.toTupleRef().elements(), numbers,
                  depth);
    } else if (value.isString()) {
        const std::string &text = value.toStringRef();
        out.tag(VST_VALUE_STRING);
        out.text(text.data(), text.size());
    } else if (value.isDevice()) {
        out.tag(VST_VALUE_DEVICE);
        put_device(out, value.toDevice());
    } else {
        std::string kind = value.tagKind();
        out.tag(VST_VALUE_OTHER);
        out.text(kind.data(), kind.size());
    }
}

/* ---- nodes --------------------------------------------------------------- */

/* Returns the id of the operator's schema, which distinguishes overloads with
 * one name. `kept`: where the thread keeps the id, or NULL. */
static inline vst_id schema_id(const vst_api *api, const at::RecordFunction &fn,
                               vst_id *kept)
{
    vst_id id;

    if (kept && *kept)
        return *kept;
    const auto schema = fn.operator_schema();
    if (!schema.has_value())
        return 0;
    const std::string text = c10::toString(schema.value());
    vst_definition definition = {};
    definition.kind = VST_DEF_OPERATOR;
    definition.name = text.data();
    definition.name_len = static_cast<uint32_t>(text.size());
    definition.file = "";
    id = api->recording_define(&definition);
    if (kept)
        *kept = id;
    return id;
}

/* Writes the facts that the launcher of a generated kernel gives. */
static inline void put_kernel(values &out, const at::RecordFunction &fn)
{
    const auto named = fn.kwinputs();
    const auto backend = named.find("kernel_backend");

    if (backend == named.end() || !backend->second.isString())
        return;
    const std::string &name = backend->second.toStringRef();
    out.make_room();
    out.tag(VST_VALUE_BACKEND);
    out.text(name.data(), name.size());
    if (name != "triton")
        return;
    const auto file = named.find("kernel_file");
    if (file != named.end() && file->second.isString()) {
        const std::string &path = file->second.toStringRef();
        size_t slash = path.rfind('/');
        size_t begin = slash == std::string::npos ? 0 : slash + 1;
        out.make_room();
        out.tag(VST_VALUE_FILE);
        out.text(path.data() + begin, path.size() - begin);
    }
    const auto stream = named.find("stream");
    if (stream != named.end() && stream->second.isInt())
        put_value(out, stream->second, nullptr, 0);
}

static inline graph_state *make_graph_state()
{
    auto *state = static_cast<graph_state *>(std::malloc(sizeof(graph_state)));

    if (state)
        std::memset(static_cast<void *>(state), 0, sizeof *state);
    return state;
}

static inline void put_node(values &out, const vst_api *api,
                            const at::RecordFunction &fn, bool has_schema,
                            vst_id *schema)
{
    const auto inputs = fn.inputs();
    size_t count = fn.num_inputs();
    integral numbers(fn);

    if (has_schema) {
        vst_id id = schema_id(api, fn, schema);
        if (id) {
            out.tag(VST_VALUE_SCHEMA);
            out.count(id);
        }
    }
    /* torch gives the whole stack: the inputs are its last values. */
    if (count <= inputs.size())
        for (const auto &value : inputs.slice(inputs.size() - count))
            put_value(out, value, numbers.wanted() ? &numbers : nullptr, 0);
    if (!has_schema)
        put_kernel(out, fn);
    if (!numbers.range().empty()) {
        const std::string range = numbers.range() + "}";
        out.make_room();
        out.tag(VST_VALUE_RANGE);
        out.text(range.data(), range.size());
    }
}

/* Records the inputs, after the operator was entered. Returns the observer that
 * the node belongs to, 0 if there is none. */
static inline unsigned graph_enter(const vst_api *api, graph_state **state,
                                   const at::RecordFunction &fn,
                                   bool has_schema, vst_id *schema)
{
    unsigned observer = graph_observer.load(std::memory_order_relaxed);

    if (!observer || !fn.handle() ||
        (!*state && !(*state = make_graph_state())))
        return 0;
    values out(api, (*state)->words, fn.handle(), 0, observer);
    try {
        put_node(out, api, fn, has_schema, schema);
    } catch (...) {
        out.cut(); /* most likely out of memory */
    }
    out.finish();
    return observer;
}

/* Records the outputs, if the operator has any, before the operator is left. */
static inline void graph_exit(const vst_api *api, graph_state *state,
                              unsigned observer, const at::RecordFunction &fn)
{
    const auto &outputs = fn.outputs();
    size_t count = fn.num_outputs();

    if (count == 0 || count > outputs.size())
        return;
    values out(api, state->words, fn.handle(), VST_NODE_OUTPUTS, observer);
    try {
        for (size_t i = outputs.size() - count; i < outputs.size(); i++)
            put_value(out, outputs[i], nullptr, 0);
    } catch (...) {
        out.cut();
    }
    out.finish();
}

} // namespace vestige_torch

#endif
