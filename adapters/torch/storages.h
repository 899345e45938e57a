/* Which storages an operator is given, and which of them its schema says it
 * writes to; what tensors of the program's hold, if somebody tells which these
 * are (<vestige/storage.h>). Part of operators.cpp, which alone includes it; a
 * thread writes into memory of its own, and no tensor is kept. */
#ifndef VESTIGE_TORCH_STORAGES_H
#define VESTIGE_TORCH_STORAGES_H

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/TensorBody.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <vestige/storage.h>

#include "exported.h"

namespace
{

/* Gathers pairs. Where there is no room left, they are recorded, or the rest is
 * left out. */
class storages
{
  public:
    using record_fn = void (*)(const uint64_t *, uint32_t);

    explicit storages(uint64_t *words, record_fn record = nullptr)
        : words_(words), record_(record)
    {
    }

    /* Only memory of the processor's, and only its address: it is not made to
     * be there if it is not. */
    void add(const c10::TensorImpl *impl, vst_storage_role role)
    {
        c10::StorageImpl *storage =
            impl->unsafe_storage().unsafeGetStorageImpl();

        if (!storage || !impl->device().is_cpu())
            return;
        auto address = reinterpret_cast<uintptr_t>(
            storage->_mutable_data_ptr_no_checks().get());
        if (!address)
            return;
        if (count_ == 2 * VST_STORAGES_MAX && !flush()) {
            lacks_some_ = true;
            return;
        }
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
        if (value.isTensor())
            add(value.toTensor(), role);
        else if (value.isList())
            add_all(value, role);
    }
    /* False: nobody takes them. */
    bool flush()
    {
        if (!record_)
            return false;
        record_(words_, count_);
        count_ = 0;
        return true;
    }
    uint32_t words() const
    {
        return count_;
    }
    void leave_out()
    {
        lacks_some_ = true;
    }
    bool lacks_some() const
    {
        return lacks_some_;
    }

  private:
    __attribute__((noinline)) void add_all(const c10::IValue &value,
                                           vst_storage_role role)
    {
        for (const c10::IValue &item : value.toListRef())
            if (item.isTensor())
                add(item.toTensor(), role);
            else if (!item.isNone())
                return; /* a list of others */
    }

    uint64_t *words_;
    record_fn record_;
    uint32_t count_ = 0;
    bool lacks_some_ = false;
};

/* What an operator does with its inputs. */
class input_roles
{
  public:
    input_roles(bool has_schema, uint64_t written)
        : has_schema_(has_schema), written_(written)
    {
    }
    bool has_schema() const
    {
        return has_schema_;
    }
    vst_storage_role of(size_t index) const
    {
        if (!has_schema_)
            return VST_STORAGE_GIVEN;
        return index < 64 && written_ >> index & 1 ? VST_STORAGE_WRITTEN
                                                   : VST_STORAGE_READ;
    }

  private:
    bool has_schema_;
    uint64_t written_; /* a bit for each of the first */
};

/* Behind the record of an operator, in as many pieces as it takes; what cannot
 * be asked is left out. */
__attribute__((noinline)) void record_inputs(storages out,
                                             const at::RecordFunction &fn,
                                             const input_roles &roles)
{
    size_t i = 0;

    try {
        for (const c10::IValue &value : fn.inputs())
            out.add(value, roles.of(i++));
    } catch (...) {
        /* A tensor that could not say what it is. */
    }
    if (roles.has_schema() || out.words())
        out.flush();
}

/* Tensors by where torch has them, each with its role; those of a parameter's
 * gradient are found here. */
void record_tensors(storages out, const uintptr_t *tensors,
                    const unsigned char *roles, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        auto *impl = reinterpret_cast<const c10::TensorImpl *>(tensors[i]);
        if (impl)
            out.add(impl, static_cast<vst_storage_role>(roles[i]));
        if (impl && roles[i] == VST_STORAGE_PARAMETER)
            out.add(impl->grad(), VST_STORAGE_GRADIENT);
    }
    if (out.words())
        out.flush();
}

} // namespace

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
