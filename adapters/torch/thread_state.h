/* What each thread has of the observer: names that it knows, operators that it
 * is inside of, room to write in. Part of operators.cpp, which alone includes
 * it. It comes with the first operator of the thread and goes with the thread;
 * nobody else looks at it. */
#ifndef VESTIGE_TORCH_THREAD_STATE_H
#define VESTIGE_TORCH_THREAD_STATE_H

#include <cxxabi.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include <ATen/record_function.h>

#include "exported.h"
#include "graph_values.h"
#include "operator_names.h"

namespace
{

enum {
    OPEN_MAX = 256 /* operators inside each other that a thread keeps itself */
};

/* What is known of an operator until it ends. */
struct opened {
    vst_id id;
    uint32_t instance;
    unsigned node_of; /* an observer of the execution trace, 0: no node */
};

/* Most operators end in the order in which they began, on their own thread: so
 * a thread keeps what it has open, and torch nothing. An operator is known by
 * the place of its guard. */
struct open_operator {
    const at::RecordFunction *guard;
    opened what;
};

/* What the C++ runtime keeps for a thread, as its ABI has it. */
struct exception_state {
    void *caught;
    unsigned under_way;
};

struct context;

struct thread_state {
    uint64_t generation; /* of what is open */
    unsigned depth;      /* of what is open */
    bool inside;         /* the observer: what it runs itself is not recorded */
    vst_buffer **buffer; /* as vst_api has it */
    const exception_state *exceptions;
    context *unused;    /* kept for the next operator */
    graph_state *graph; /* NULL: no node was recorded yet */
    open_operator open[OPEN_MAX];
    uint64_t payload[VST_ESCAPE_WORDS_MAX];
    uint64_t storages[VST_ESCAPE_WORDS_MAX];
    known_names names;
};

/* The same for what may end in another order or on another thread. */
struct context final : at::ObserverContext {
    thread_state *owner = nullptr;
    context *next = nullptr;
    uint64_t generation = 0;
    opened what = {};

    static void operator delete(void *memory) noexcept;
};

__attribute__((tls_model("initial-exec"))) thread_local thread_state *here;
pthread_key_t exit_key;

void thread_ends(void *pointer)
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

__attribute__((noinline)) thread_state *make_state(const vst_api *api)
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

/* The destructor ran: it is only memory now, for whichever thread ends it. */
void context::operator delete(void *memory) noexcept
{
    auto *unused = static_cast<context *>(memory);

    if (!here) {
        ::operator delete(memory);
        return;
    }
    unused->next = here->unused;
    here->unused = unused;
}

/* NULL without memory: its end is that of what is around it. */
context *make_context(thread_state *state, const opened &what, uint64_t now)
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

} // namespace

/* The calling thread, as torch counts. */
VST_EXPORTED uint64_t vst_torch_thread(void)
{
    return at::RecordFunction::currentThreadId();
}

#endif
