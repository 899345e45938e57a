/* Records the storages of an operator's inputs, which of them the operator
 * writes to according to its schema, and the storages of tensors that the
 * program names (<vestige/storage.h>). A thread writes into memory of its own,
 * and no tensor is kept. */
#ifndef VESTIGE_TORCH_STORAGES_H
#define VESTIGE_TORCH_STORAGES_H

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/TensorBody.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <vestige/storage.h>

namespace vestige_torch
{

/* Gathers pairs of (address and role, size). When it is full it records them;
 * without a record function it leaves out the rest. */
class storages
{
  public:
    using record_fn = void (*)(const uint64_t *, uint32_t);

    explicit storages(uint64_t *words, record_fn record = nullptr)
        : words_(words), record_(record)
    {
    }

    /* Adds CPU storages only. Reads the address without allocating the data of
     * a lazy storage. */
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
    /* Returns false if there is no record function. */
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
                return; /* this is a list of other values */
    }

    uint64_t *words_;
    record_fn record_;
    uint32_t count_ = 0;
    bool lacks_some_ = false;
};

/* The role of each input of an operator. */
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
    uint64_t written_; /* one bit for each of the first inputs */
};

/* Records all inputs of an operator, after its own record, in as many pieces as
 * needed. A tensor that raises is left out. */
static inline __attribute__((noinline)) void
record_inputs(storages out, const at::RecordFunction &fn,
              const input_roles &roles)
{
    size_t i = 0;

    try {
        for (const c10::IValue &value : fn.inputs())
            out.add(value, roles.of(i++));
    } catch (...) {
        /* a tensor raised when its facts were read */
    }
    if (roles.has_schema() || out.words())
        out.flush();
}

/* Records tensors, given by the addresses of their impl, each with its role.
 * Also records the gradient of a parameter. */
static inline void record_tensors(storages out, const uintptr_t *tensors,
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

} // namespace vestige_torch

#endif
