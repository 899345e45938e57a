/* Records torch's operators: starts and stops the observer (observer.h) and has
 * the C interface by which Python drives it.
 *
 * It is a library of its own because it depends on torch's version: it is built
 * where torch is installed, and is loaded together with torch. All of it is one
 * translation unit, since torch's headers take most of the time to compile; the
 * headers in this folder are its parts, and each includes what it needs. It
 * cannot link the copy of vestige that is inside the Python extension, so
 * Python gives it a table of functions (<vestige/api.h>). It knows no Python.
 *
 * Start and stop come from one thread at a time. The library is never unloaded:
 * an operator that began before a stop may end after it. */
#include <atomic>
#include <memory>

#include <ATen/record_function.h>
#include <torch/version.h>

#include <vestige/api.h>

#include "observer.h"

/* Makes a function visible to other libraries. */
#define VST_EXPORTED extern "C" __attribute__((visibility("default")))

using namespace vestige_torch;

namespace
{

at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;
uint64_t last_generation;

/* Tells torch which data to report. For nodes, _RecordFunctionFast must report
 * its inputs. (words: kept) */
void report()
{
    bool inputs = now_set.wants & WANTS_SHAPES ||
                  graph_observer.load(std::memory_order_relaxed) != 0;

    reported->set(true, now_set.api, now_set.wants & WANTS_MEMORY, inputs);
}

/* Leaves out scopes that torch uses only on mobile devices, because autograd's
 * engine goes over the callbacks of each scope for every task. */
void place_callback()
{
    bool nodes = graph_observer.load(std::memory_order_relaxed) != 0;

    now_set.plain.store(!nodes && now_set.wants == 0,
                        std::memory_order_relaxed);
    callback = at::addGlobalCallback(
        at::RecordFunctionCallback(on_start, on_end)
            .scopes(
                {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                 at::RecordScope::TORCHSCRIPT_FUNCTION,
                 at::RecordScope::LITE_INTERPRETER, at::RecordScope::USER_SCOPE,
                 at::RecordScope::STATIC_RUNTIME_OP,
                 at::RecordScope::STATIC_RUNTIME_MODEL})
            .needsInputs(nodes ||
                         (now_set.wants & (WANTS_SHAPES | WANTS_FLOPS)) != 0)
            .needsOutputs(nodes)
            .needsIds(nodes || (now_set.wants & WANTS_IDS) != 0));
}

} // namespace

/* ---- the interface ------------------------------------------------------- */

/* Returns the version of torch for which this library was built. */
VST_EXPORTED const char *vst_torch_built_for(void)
{
    return TORCH_VERSION;
}

/* Call when _RecordFunctionFast is about to look for a profiler on the calling
 * thread: puts our profiler there while we record. */
VST_EXPORTED void vst_torch_attend(void)
{
    try {
        if (now_set.generation.load(std::memory_order_relaxed))
            watch();
    } catch (...) {
        /* out of memory: the span is not shown */
    }
}

/* Stops recording without taking a lock. Call in a forked child. */
VST_EXPORTED void vst_torch_forget(void)
{
    now_set.generation.store(0, std::memory_order_relaxed);
    hides.rest();
    forget_tensors();
    unwatch();
}

VST_EXPORTED void vst_torch_stop(void)
{
    now_set.generation.store(0, std::memory_order_relaxed);
    end_names();
    if (callback != at::INVALID_CALLBACK_HANDLE)
        at::removeCallback(callback);
    callback = at::INVALID_CALLBACK_HANDLE;
    unwatch();
    if (reported)
        reported->set(false, now_set.api, false, false);
    hides.rest();
    if (reported && !is_held())
        hides.stop(now_set.api);
    try {
        end_tensors();
    } catch (...) {
        /* a lock cannot be taken: the tensors are held until the next stop */
    }
}

/* Records nodes of the execution trace from now on, for this observer; 0 stops
 * that. May be called before a recording or during one. ranges: also record the
 * ranges of integral tensors. names: operators whose integral tensors are
 * written to files in this folder, as ",a,b,", or NULL. Returns 0 if it worked.
 */
VST_EXPORTED int vst_torch_graph(unsigned observer, int ranges,
                                 const char *names, const char *folder)
{
    bool placed = callback != at::INVALID_CALLBACK_HANDLE;

    try {
        graph_observer.store(0, std::memory_order_relaxed);
        if (placed)
            at::removeCallback(callback);
        callback = at::INVALID_CALLBACK_HANDLE;
        integral_wish(ranges != 0, names, folder);
        graph_observer.store(observer, std::memory_order_relaxed);
        if (placed) {
            report();
            place_callback();
        }
    } catch (...) {
        return 1;
    }
    return 0;
}

/* Starts to observe, between the start and the stop of a recording. flags: the
 * WANTS_ bits. Returns 0 if it worked. */
VST_EXPORTED int vst_torch_start(const vst_api *table, unsigned flags)
{
    if (table->size < sizeof(vst_api))
        return 1;
    vst_torch_stop();
    try {
        now_set.api = table;
        now_set.wants = flags;
        now_set.epoch = table->recording_epoch;
#ifdef VST_CLOCK_AT_HAND
        now_set.reads_counter = *table->clock_in_use == VST_CLOCK_AT_HAND;
#endif
        if (!reported)
            reported = std::make_shared<reports>();
        hides.start(table, reported.get());
        far_forget();
        begin_tensors();
        report();
        watch();
        begin_names();
        place_callback();
    } catch (...) {
        return 1;
    }
    now_set.generation.store(++last_generation, std::memory_order_release);
    return 0;
}

/* ---- for the calling thread ---------------------------------------------- */

/* Removes our profiler from the calling thread. Call when one of torch's own
 * profilers is about to start there, which would find ours. Our profiler comes
 * back with the next operator after the other one is gone. */
VST_EXPORTED void vst_torch_make_way(void)
{
    unwatch();
}

/* Calls a function with our profiler hidden from the calling thread. Does not
 * call it if the thread has another profiler or none. */
VST_EXPORTED void vst_torch_without(void (*function)(void *), void *ctx)
{
    if (!is_watched())
        return;
    hidden ours;
    function(ctx);
}

/* Returns whether any thread may find our profiler after a stop. */
VST_EXPORTED int vst_torch_is_watched(void)
{
    return is_held();
}

/* Sets whether __torch_function__ of tensor subclasses runs on the calling
 * thread; 2 turns it off. Returns the state before. */
VST_EXPORTED int vst_torch_hush(int state)
{
    auto before = at::impl::PythonTorchFunctionTLS::get_disabled_state();

    at::impl::PythonTorchFunctionTLS::set_disabled_state(
        static_cast<at::impl::TorchFunctionDisabledState>(state));
    return static_cast<int>(before);
}

/* Records the storages of tensors, which are given by the addresses of their
 * impl, through record(). The program must not change the tensors meanwhile. */
VST_EXPORTED void vst_torch_note(const uintptr_t *tensors,
                                 const unsigned char *roles, size_t count,
                                 storages::record_fn record)
{
    uint64_t words[2 * VST_STORAGES_MAX];

    try {
        record_tensors(storages(words, record), tensors, roles, count);
    } catch (...) {
        /* a tensor raised when its facts were read */
    }
}

/* Describes a tensor, which is given by the address of its impl, or with
 * `gradient` its gradient: see describe(). Returns the length of the text, 0 if
 * there is none or it does not fit. The program must not change the tensor
 * meanwhile. */
VST_EXPORTED size_t vst_torch_describe(uintptr_t tensor, int gradient,
                                       char *text, size_t room)
{
    try {
        using owner =
            c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
        auto *impl = reinterpret_cast<c10::TensorImpl *>(tensor);
        std::string made =
            gradient ? describe(impl->grad())
                     : describe(at::Tensor(owner::reclaim_copy(impl)));

        if (made.size() >= room)
            return 0;
        std::memcpy(text, made.data(), made.size());
        return made.size();
    } catch (...) {
        return 0; /* the tensor raised when its facts were read */
    }
}

/* Returns how many bytes torch's CPU allocator had given out before the first
 * block of this recording, or of the last one; -1 if no block was reported. */
VST_EXPORTED int64_t vst_torch_allocated_before(void)
{
    return reported ? reported->before.load(std::memory_order_relaxed) : -1;
}

/* Returns torch's number of the calling thread. */
VST_EXPORTED uint64_t vst_torch_thread(void)
{
    return at::RecordFunction::currentThreadId();
}
