/* The observer of torch's operators: the code that runs when an operator begins
 * and ends, and the records that it makes. operators.cpp installs it. Any
 * thread of the program enters, with or without the GIL. on_start and on_end
 * are the hot path. */
#ifndef VESTIGE_TORCH_OBSERVER_H
#define VESTIGE_TORCH_OBSERVER_H

#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include <ATen/record_function.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <vestige/api.h>

#include "far_ends.h"
#include "graph_values.h"
#include "inputs.h"
#include "keywords.h"
#include "operator_names.h"
#include "profiler_stand_in.h"
#include "storages.h"
#include "tensors.h"
#include "thread_state.h"

namespace vestige_torch
{

enum {
    WANTS_SHAPES = 1,
    WANTS_FLOPS = 2,
    WANTS_MEMORY = 4,
    WANTS_OVERLOADS = 8,
    WANTS_IDS = 16,
    WANTS_MODULES = 32,
    WANTS_STORAGES = 64, /* only together with WANTS_SHAPES */
    /* The addresses of tensors, after vestige has replaced torch.profiler; only
     * together with WANTS_SHAPES. */
    WANTS_TENSORS = 128,
    MODULES_MAX = 1000, /* bytes */
    /* Distinguishes our instances from those of Python's annotations. */
    FIRST_INSTANCE = 0x80000000u
};

/* The fields that every operator reads, in one cache line. Start and stop write
 * them, the generation last (release); the observer reads the generation first
 * (acquire). An operator that reads old values records into a recording that
 * still accepts its records, or finds that there is none. */
struct alignas(64) settings {
    /* names the recording; 0 if there is none */
    std::atomic<uint64_t> generation{0};
    std::atomic<bool> plain{false}; /* only times are wanted */
    bool reads_counter = false;
    unsigned wants = 0;
    const uint64_t *epoch = nullptr;
    const vst_api *api = nullptr;
};

inline settings now_set;

inline std::atomic<uint32_t> last_instance{FIRST_INSTANCE};

/* ---- facts of an operator ------------------------------------------------ */

/* The storages of the inputs, if they are wanted. */
struct wanted_storages {
    storages found;
    input_roles roles;
};

/* Writes the inputs. Returns whether lists of tensors are complete. */
static inline bool put_inputs(facts &out, const at::RecordFunction &fn,
                              const name_facts &what, wanted_storages *also)
{
    unsigned char *before = out.mark();
    bool long_lists = now_set.wants & WANTS_TENSORS;
    size_t i = 0;

    for (const auto &value : fn.inputs()) {
        if (also)
            also->found.add(value, also->roles.of(i++));
        put_input(out, value, long_lists);
    }
    if (out.full() && long_lists) {
        long_lists = false;
        out.go_back(before);
        for (const auto &value : fn.inputs())
            put_input(out, value, false);
    }
    /* reading named inputs makes torch copy them; autograd's operators have
     * none */
    if (!(what.flags & NAME_HAS_SCHEMA) && fn.seqNr() < 0)
        put_named(out, fn, now_set.wants & WANTS_TENSORS);
    if (out.full()) {
        out.go_back(before);
        out.byte(VST_FACT_TOO_LONG);
    }
    return long_lists;
}

/* Writes the modules to which TorchScript code belongs. */
static inline void put_modules(facts &out)
{
    const auto modules = torch::jit::currentModuleHierarchy();
    std::string text;

    for (const auto &module : modules)
        text += module + "."; /* torch joins modules like this, too */
    if (!text.empty() && text.size() < MODULES_MAX) {
        out.byte(VST_FACT_NAMED);
        out.text("Module Hierarchy", 16);
        out.byte(VST_FACT_TEXT);
        out.text(text.data(), text.size());
    }
}

/* Writes the facts of an operator and returns how many words they take. Keeps
 * room for the facts behind the inputs. */
static inline uint32_t put_facts(thread_state *state,
                                 const at::RecordFunction &fn,
                                 const name_facts &what, wanted_storages *also)
{
    uint64_t *words = state->payload;
    facts out(words + VST_OPERATOR_HEAD_WORDS,
              VST_ESCAPE_WORDS_MAX - VST_OPERATOR_HEAD_WORDS - 160);
    facts rest(words, VST_ESCAPE_WORDS_MAX);

    bool long_lists = false;

    if (now_set.wants & WANTS_SHAPES)
        long_lists = put_inputs(out, fn, what, also);
    rest.go_back(out.mark());
    if (now_set.wants & WANTS_FLOPS && what.flags & NAME_HAS_FLOPS)
        put_flops(rest, fn);
    if (now_set.wants & WANTS_OVERLOADS && what.flags & NAME_HAS_SCHEMA) {
        const char *overload = fn.overload_name();
        size_t length = std::strlen(overload);
        if (length && length < 100) {
            rest.byte(VST_FACT_OVERLOAD);
            rest.text(overload, length);
        }
    }
    if (now_set.wants & WANTS_MODULES &&
        fn.scope() != at::RecordScope::BACKWARD_FUNCTION)
        put_modules(rest);
    if (now_set.wants & WANTS_IDS && fn.handle()) {
        rest.byte(VST_FACT_RECORD);
        rest.count(fn.handle());
    }
    if (now_set.wants & WANTS_TENSORS)
        put_tensors_at(rest,
                       now_set.wants & WANTS_MEMORY ? &state->tensors : nullptr,
                       fn, long_lists);
    size_t count = rest.finish(words);
    if (count == VST_OPERATOR_HEAD_WORDS && fn.seqNr() < 0 &&
        !graph_observer.load(std::memory_order_relaxed))
        return 0;
    return static_cast<uint32_t>(count);
}

/* ---- the observer -------------------------------------------------------- */

static inline vst_ticks ticks()
{
#ifdef VST_CLOCK_AT_HAND
    if (now_set.reads_counter)
        return vst_clock_read_counter();
#endif
    return now_set.api->clock_ticks();
}

static inline uint64_t epoch()
{
    return __atomic_load_n(now_set.epoch, __ATOMIC_RELAXED);
}

/* Returns whether an operator may end on another thread, or later than the
 * operator around it: an annotation, or a span of _RecordFunctionFast. */
static inline bool may_wander(const at::RecordFunction &fn,
                              const name_facts &what)
{
    return fn.scope() == at::RecordScope::USER_SCOPE || fn.isAsync() ||
           (fn.scope() == at::RecordScope::FUNCTION &&
            !(what.flags & NAME_HAS_COLONS));
}

/* Writes the numbers of an operator and its other facts. Returns the number of
 * words. */
static inline uint32_t put_numbers(thread_state *state,
                                   const at::RecordFunction &fn,
                                   const name_facts &what, bool has_facts,
                                   wanted_storages *also)
{
    uint32_t words = VST_OPERATOR_HEAD_WORDS;

    state->payload[0] = static_cast<uint64_t>(fn.seqNr());
    state->payload[1] = vst_operator_word(fn.threadId(), fn.forwardThreadId(),
                                          static_cast<uint64_t>(fn.scope()));
    try {
        if (has_facts)
            words = put_facts(state, fn, what, also);
    } catch (...) {
        /* a tensor raised when its facts were read */
        if (also)
            also->found.leave_out();
    }
    return words;
}

/* Records the storages of an operator's inputs. Call after the operator's own
 * record. */
static inline void put_storages(thread_state *state,
                                const at::RecordFunction &fn,
                                const wanted_storages &wanted)
{
    uint32_t words = wanted.found.words();

    if (wanted.found.lacks_some())
        record_inputs(storages(state->storages, now_set.api->record_storages),
                      fn, wanted.roles);
    else if ((words || wanted.roles.has_schema()) &&
             !vst_storages_add(*state->buffer, epoch(), state->storages, words))
        now_set.api->record_storages(state->storages, words);
}

/* Returns whether the operator's guard lies on the stack of the thread that
 * runs it. */
static inline bool is_nested(const thread_state *state,
                             const at::RecordFunction &fn)
{
    return (fn.scope() == at::RecordScope::FUNCTION ||
            fn.scope() == at::RecordScope::BACKWARD_FUNCTION) &&
           state->depth < OPEN_MAX;
}

static inline std::unique_ptr<at::ObserverContext>
enter(thread_state *state, const at::RecordFunction &fn, uint64_t now)
{
    const vst_api *api = now_set.api;
    const name_facts what =
        find_name(api, &state->names, fn, now_set.wants & WANTS_STORAGES);
    unsigned observer = graph_observer.load(std::memory_order_relaxed);
    bool has_facts =
        now_set.wants & ~static_cast<unsigned>(WANTS_MEMORY) || observer;
    opened begun = {what.id, 0, 0};
    uint32_t words = 0;
    wanted_storages wanted = {
        storages(state->storages),
        input_roles(what.flags & NAME_HAS_SCHEMA, what.written)};
    bool wants = now_set.wants & WANTS_STORAGES && !is_user(fn);

    if (!what.id)
        return nullptr;
    if (!(what.flags & NAME_HAS_SCHEMA) && may_wander(fn, what))
        begun.instance = FIRST_INSTANCE |
                         last_instance.fetch_add(1, std::memory_order_relaxed);
    if (fn.seqNr() >= 0 || has_facts)
        words =
            put_numbers(state, fn, what, has_facts, wants ? &wanted : nullptr);
    if ((begun.instance ||
         !vst_operator_enter(*state->buffer, epoch(), ticks(), begun.id,
                             state->payload, words)) &&
        !api->record_operator(begun.id, begun.instance, state->payload, words))
        return nullptr;
    if (observer)
        begun.node_of = graph_enter(api, &state->graph, fn,
                                    what.flags & NAME_HAS_SCHEMA, what.schema);
    if (wants)
        put_storages(state, fn, wanted);
    if (begun.instance || !is_nested(state, fn))
        return std::unique_ptr<at::ObserverContext>(
            make_context(state, begun, now));
    state->open[state->depth++] = {&fn, begun};
    return nullptr;
}

static inline __attribute__((noinline)) std::unique_ptr<at::ObserverContext>
start_any(const at::RecordFunction &fn)
{
    uint64_t now = now_set.generation.load(std::memory_order_acquire);
    thread_state *state = here;
    std::unique_ptr<at::ObserverContext> result;

    if (!now || (state && state->inside))
        return nullptr;
    try {
        if (!state)
            state = make_state(now_set.api);
        if (!state)
            return nullptr;
        state->inside = true;
        if (state->generation != now)
            state->depth = 0;
        state->generation = now;
        if (now_set.wants & WANTS_MEMORY)
            watch();
        if (far_count.load(std::memory_order_relaxed))
            for (const far_end &end : far_take(state))
                now_set.api->record_operator_exit(VST_EXIT, end.id,
                                                  end.instance);
        result = enter(state, fn, now);
    } catch (...) {
        /* most likely out of memory: the operator is not shown */
    }
    if (state)
        state->inside = false;
    return result;
}

/* The common case: the thread has run the operator before, and only times are
 * wanted. It touches little memory, because between two operators the program
 * evicts our memory from the caches. */
static inline std::unique_ptr<at::ObserverContext>
on_start(const at::RecordFunction &fn)
{
    uint64_t now = now_set.generation.load(std::memory_order_acquire);
    thread_state *state = here;

    if (!state || state->generation != now || state->inside ||
        !now_set.plain.load(std::memory_order_relaxed) || !is_nested(state, fn))
        return start_any(fn);
    vst_id id = find_known(&state->names, fn);
    const uint64_t head[] = {
        static_cast<uint64_t>(fn.seqNr()),
        vst_operator_word(fn.threadId(), fn.forwardThreadId(),
                          static_cast<uint64_t>(fn.scope())),
    };
    if (!id || !vst_operator_enter(*state->buffer, epoch(), ticks(), id, head,
                                   fn.seqNr() >= 0 ? 2 : 0))
        return start_any(fn);
    state->open[state->depth++] = {&fn, {id, 0, 0}};
    return nullptr;
}

/* An operator that may end on another thread has an instance, by which its end
 * is found. Any other operator that ends elsewhere ends together with the
 * operator around it. */
static inline __attribute__((noinline)) void
end_any(thread_state *state, const opened &what, const at::RecordFunction &fn)
{
    const vst_api *api = now_set.api;

    if (what.node_of && !state->inside) {
        state->inside = true;
        graph_exit(api, state->graph, what.node_of, fn);
        state->inside = false;
    }
    api->record_operator_exit(state->exceptions->under_way ? VST_RAISE
                                                           : VST_EXIT,
                              what.id, what.instance);
}

static inline void end_far(const context *handed)
{
    now_set.api->record_far_end(handed->what.id, handed->what.instance);
    try {
        far_note(handed->owner, handed->what.id, handed->what.instance);
    } catch (...) {
        /* out of memory: the operator stays open longer than needed */
    }
}

static inline void end_handed_on(const context *handed,
                                 const at::RecordFunction &fn, uint64_t now)
{
    if (handed->generation != now)
        return;
    if (handed->owner == here)
        end_any(here, handed->what, fn);
    else if (handed->what.instance)
        end_far(handed);
}

static inline void on_end(const at::RecordFunction &fn,
                          at::ObserverContext *observed)
{
    uint64_t now = now_set.generation.load(std::memory_order_acquire);
    thread_state *state = here;

    if (observed) {
        end_handed_on(static_cast<const context *>(observed), fn, now);
        return;
    }
    if (!state || state->generation != now)
        return;
    unsigned depth = state->depth;
    /* operators above this one ended elsewhere */
    while (depth > 0 && state->open[depth - 1].guard != &fn)
        depth--;
    if (depth == 0)
        return;
    const opened &what = state->open[depth - 1].what;
    state->depth = depth - 1;
    if (what.node_of ||
        !vst_operator_exit(*state->buffer, epoch(), ticks(),
                           state->exceptions->under_way ? VST_RAISE : VST_EXIT,
                           what.id))
        end_any(state, what, fn);
}

} // namespace vestige_torch

#endif
