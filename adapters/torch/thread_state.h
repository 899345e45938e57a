/* State that the observer keeps for each thread: the names that it knows, open
 * operators, buffers to write in. It is made with the first operator of the
 * thread and freed with the thread. No other thread reads it. */
#ifndef VESTIGE_TORCH_THREAD_STATE_H
#define VESTIGE_TORCH_THREAD_STATE_H

#include <cxxabi.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include <ATen/record_function.h>

#include "graph_values.h"
#include "operator_names.h"
#include "tensors.h"

namespace vestige_torch
{

enum {
    OPEN_MAX = 256 /* nested operators that a thread keeps itself */
};

/* An operator that has not ended. */
struct opened {
    vst_id id;
    uint32_t instance;
    /* observer of the execution trace whose node this is; 0 if none */
    unsigned node_of;
};

/* Most operators end in order, on their own thread. So the thread keeps the
 * open operators, and gives torch no context to keep. An operator is identified
 * by the address of its guard. */
struct open_operator {
    const at::RecordFunction *guard;
    opened what;
};

/* The C++ runtime's data for a thread (__cxa_eh_globals of the ABI). */
struct exception_state {
    void *caught;
    unsigned under_way;
};

struct context;

struct thread_state {
    uint64_t generation; /* generation of the open operators */
    unsigned depth;      /* number of open operators */
    bool inside;         /* our own code runs; its operators are not recorded */
    vst_buffer **buffer; /* see vst_api */
    const exception_state *exceptions;
    context *unused;    /* contexts to reuse */
    graph_state *graph; /* NULL until a node was recorded */
    open_operator open[OPEN_MAX];
    uint64_t payload[VST_ESCAPE_WORDS_MAX];
    uint64_t storages[VST_ESCAPE_WORDS_MAX];
    known_names names;
    recent_tensors tensors;
};

/* The context of an operator that may end out of order or on another thread. */
struct context final : at::ObserverContext {
    thread_state *owner = nullptr;
    context *next = nullptr;
    uint64_t generation = 0;
    opened what = {};

    static void operator delete(void *memory) noexcept;
};

__attribute__((
    tls_model("initial-exec"))) inline thread_local thread_state *here;
inline pthread_key_t exit_key;

static inline void thread_ends(void *pointer)
{
    auto *state = static_cast<thread_state *>(pointer);

    here = nullptr;
    while (state->unused) {
        context *next = state->unused->next;
        ::operator delete(state->unused);
        state->unused = next;
    }
    std::free(state->graph);
    std::free(state);
}

static inline __attribute__((noinline)) thread_state *
make_state(const vst_api *api)
{
    static const int made = pthread_key_create(&exit_key, thread_ends);
    auto *state = static_cast<thread_state *>(
        std::aligned_alloc(alignof(thread_state), sizeof(thread_state)));

    if (!state)
        return nullptr;
    std::memset(static_cast<void *>(state), 0, sizeof *state);
    if (made != 0) {
        std::free(state);
        return nullptr;
    }
    state->buffer = api->thread_buffer();
    state->exceptions =
        reinterpret_cast<const exception_state *>(abi::__cxa_get_globals());
    pthread_setspecific(exit_key, state);
    return here = state;
}

/* The destructor ran. The thread that ends the operator keeps the memory. */
inline void context::operator delete(void *memory) noexcept
{
    auto *unused = static_cast<context *>(memory);

    if (!here) {
        ::operator delete(memory);
        return;
    }
    unused->next = here->unused;
    here->unused = unused;
}

/* Returns NULL if memory ran out; then the operator ends together with the
 * operator around it. */
static inline context *make_context(thread_state *state, const opened &what,
                                    uint64_t now)
{
    void *memory = state->unused;
    context *made;

    if (memory)
        state->unused = state->unused->next;
    else
        memory = ::operator new(sizeof(context), std::nothrow);
    if (!memory)
        return nullptr;
    made = ::new (memory) context;
    made->owner = state;
    made->generation = now;
    made->what = what;
    return made;
}

} // namespace vestige_torch

#endif
