/* Which storages an operator is given, and which of them its schema says it
 * writes to; what tensors of the program's hold, if somebody tells which these
 * are (<vestige/storage.h>). Part of operators.cpp, which alone includes it; a
 * thread writes into memory of its own, and no tensor is kept. */
#ifndef VESTIGE_TORCH_STORAGES_H
#define VESTIGE_TORCH_STORAGES_H

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/TensorBody.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <vestige/storage.h>

namespace
{

/* Which arguments an operator writes to, as this thread found it. An operator
 * is known by where its schema has its name. */
class written_arguments
{
  public:
    uint64_t of(const at::RecordFunction &fn, uint64_t generation)
    {
        const char *name = fn.name();
        entry &slot = slots_[reinterpret_cast<uintptr_t>(name) / 16 % SLOTS];

        if (slot.name != name || slot.generation != generation)
            slot = {name, generation, look_up(fn)};
        return slot.mask;
    }

  private:
    enum { SLOTS = 256 };
    struct entry {
        const char *name;
        uint64_t generation;
        uint64_t mask;
    };

    static __attribute__((noinline)) uint64_t
    look_up(const at::RecordFunction &fn)
    {
        auto schema = fn.operator_schema();
        uint64_t mask = 0;

        if (!schema)
            return 0;
        for (size_t i = 0; i < schema->arguments().size() && i < 64; i++) {
            auto *alias = schema->arguments()[i].alias_info();
            if (alias && alias->isWrite())
                mask |= UINT64_C(1) << i;
        }
        return mask;
    }

    entry slots_[SLOTS];
};

/* Gathers pairs and records them as often as there is no room left. */
class storages
{
  public:
    using record_fn = void (*)(const uint64_t *, uint32_t);

    storages(uint64_t *words, record_fn record) : words_(words), record_(record)
    {
    }

    /* Only memory of the processor's, and only its address: it is not made to
     * be there if it is not. */
    void add(const c10::TensorImpl *impl, vst_storage_role role)
    {
        if (!impl || !impl->has_storage() || !impl->device().is_cpu())
            return;
        c10::StorageImpl *storage =
            impl->unsafe_storage().unsafeGetStorageImpl();
        if (!storage)
            return;
        auto address = reinterpret_cast<uintptr_t>(
            storage->_mutable_data_ptr_no_checks().get());
        if (!address)
            return;
        if (count_ == 2 * VST_STORAGES_MAX)
            flush();
        words_[count_++] = vst_storage_word(address, role);
        words_[count_++] = static_cast<uint64_t>(
            storage->sym_nbytes().maybe_as_int().value_or(0));
    }
    void add(const at::Tensor &tensor, vst_storage_role role)
    {
        if (tensor.defined())
            add(tensor.unsafeGetTensorImpl(), role);
    }
    void add(const c10::IValue &value, vst_storage_role role)
    {
        if (value.isTensor()) {
            add(value.toTensor(), role);
        } else if (value.isTensorList() || value.isOptionalTensorList()) {
            for (const c10::IValue &item : value.toListRef())
                if (item.isTensor())
                    add(item.toTensor(), role);
        }
    }
    bool empty() const
    {
        return count_ == 0;
    }
    void flush()
    {
        record_(words_, count_);
        count_ = 0;
    }

  private:
    uint64_t *words_;
    record_fn record_;
    uint32_t count_ = 0;
};

/* Behind the record of an operator; what cannot be asked is left out. */
void record_inputs(storages out, const at::RecordFunction &fn, bool has_schema,
                   written_arguments &known, uint64_t generation)
{
    size_t i = 0;

    try {
        uint64_t written = has_schema ? known.of(fn, generation) : 0;
        for (const c10::IValue &value : fn.inputs()) {
            vst_storage_role role = VST_STORAGE_GIVEN;
            if (has_schema)
                role = i < 64 && written >> i & 1 ? VST_STORAGE_WRITTEN
                                                  : VST_STORAGE_READ;
            out.add(value, role);
            i++;
        }
    } catch (...) {
        /* A tensor that could not say what it is. */
    }
    if (has_schema || !out.empty())
        out.flush();
}

/* Tensors by where torch has them, each with its role; those of a parameter's
 * gradient are found here. */
void record_tensors(storages out, const uintptr_t *tensors,
                    const unsigned char *roles, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        auto *impl = reinterpret_cast<const c10::TensorImpl *>(tensors[i]);
        out.add(impl, static_cast<vst_storage_role>(roles[i]));
        if (roles[i] == VST_STORAGE_PARAMETER)
            out.add(impl->grad(), VST_STORAGE_GRADIENT);
    }
    if (!out.empty())
        out.flush();
}

} // namespace

#define VST_EXPORTED extern "C" __attribute__((visibility("default")))

/* What tensor subclasses do instead of what is asked of them: 2 turns it off,
 * on the calling thread. Gives what it was. */
VST_EXPORTED int vst_torch_hush(int state)
{
    auto before = at::impl::PythonTorchFunctionTLS::get_disabled_state();

    at::impl::PythonTorchFunctionTLS::set_disabled_state(
        static_cast<at::impl::TorchFunctionDisabledState>(state));
    return static_cast<int>(before);
}

/* Gives record() the storages of tensors, which are told by where they are;
 * nobody may change them meanwhile. */
VST_EXPORTED void vst_torch_note(const uintptr_t *tensors,
                                 const unsigned char *roles, size_t count,
                                 storages::record_fn record)
{
    uint64_t words[2 * VST_STORAGES_MAX];

    try {
        record_tensors(storages(words, record), tensors, roles, count);
    } catch (...) {
        /* One of them could not say what it is. */
    }
}

#endif
