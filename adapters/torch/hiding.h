/* Hides our stand-in for a profiler from torch's library where the library
 * would take it for torch's own type. Backends report events of their own,
 * which torch writes into the profiler of the calling thread. After a stop,
 * threads may still have the stand-in, and torch's own profiler would not start
 * there. So while any thread has it, the library calls us instead of its
 * function that returns the thread's profiler. While we record, we return NULL
 * to the function that reports such events; after a stop, to every caller:
 * torch then behaves as without a profiler. Any thread calls this; start and
 * stop change the function, one thread at a time. */
#ifndef VESTIGE_TORCH_HIDING_H
#define VESTIGE_TORCH_HIDING_H

#include <atomic>
#include <cstdint>
#include <string>

#include <dlfcn.h>
#include <link.h>

#include <ATen/record_function.h>

#include <vestige/api.h>

#define VST_TORCH_GET "_ZN5torch8profiler4impl17ProfilerStateBase3getEb"
#define VST_TORCH_GET_TLS "_ZN5torch8profiler4impl17ProfilerStateBase6getTLSEv"

/* Each torch has one of these two functions: vst_torch_get up to 2.13. */
extern "C" {
void *vst_torch_get(bool global) __asm__(VST_TORCH_GET) __attribute__((weak));
void *vst_torch_get_tls(bool) __asm__(VST_TORCH_GET_TLS) __attribute__((weak));
}

namespace torch::autograd::profiler
{
__attribute__((weak)) void reportBackendEventToActiveKinetoProfiler(
    int64_t start, int64_t end, int64_t handle, at::RecordScope scope,
    const std::string &name, const std::string &backend);
}

namespace vestige_torch
{

class hiding
{
    const void *hidden_ = nullptr; /* the stand-in */
    uintptr_t report_ = 0, size_ = 0;
    void *(*get_)(bool) = nullptr;
    std::atomic<bool> on_{false}; /* whether we record */

    /* Called instead of torch's function. */
    static void *answer(bool global);

    /* Finds torch's functions. */
    void find()
    {
        const ElfW(Sym) *symbol = nullptr;
        Dl_info info;

        report_ = reinterpret_cast<uintptr_t>(
            torch::autograd::profiler::
                reportBackendEventToActiveKinetoProfiler);
        get_ = vst_torch_get ? vst_torch_get : vst_torch_get_tls;
        if (report_ &&
            dladdr1(
                reinterpret_cast<void *>(report_), &info,
                reinterpret_cast<void **>(const_cast<ElfW(Sym) **>(&symbol)),
                RTLD_DL_SYMENT) &&
            symbol)
            size_ = symbol->st_size;
    }

  public:
    void start(const vst_api *api, const void *profiler)
    {
        if (!get_)
            find();
        hidden_ = profiler;
        on_ = true;
        if (get_)
            api->call_instead(vst_torch_get ? VST_TORCH_GET : VST_TORCH_GET_TLS,
                              reinterpret_cast<void *>(get_),
                              reinterpret_cast<void *>(answer));
    }

    /* Call in a forked child, where no lock may be taken. */
    void rest()
    {
        on_ = false;
    }

    /* Call when no thread has the stand-in any more. */
    void stop(const vst_api *api)
    {
        api->call_instead(nullptr, nullptr, nullptr);
    }
};

inline hiding hides;

inline void *hiding::answer(bool global)
{
    auto from = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
    void *found = hides.get_(global);

    if (found != hides.hidden_)
        return found;
    return !hides.on_ || from - hides.report_ < hides.size_ ? nullptr : found;
}

} // namespace vestige_torch

#endif
