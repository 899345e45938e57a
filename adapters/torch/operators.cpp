/* Operators of torch on the timeline: an observer of ATen's RecordFunction that
 * records into the vestige of this process, and its CPU allocator's reports.
 *
 * It is a library of its own, with a C interface, because it depends on torch's
 * version: built where torch is installed, loaded when torch is. It cannot link
 * the copy of vestige that is inside the Python extension, so it is given its
 * functions as a table. It knows no Python.
 *
 * Any thread of the program enters the observer, with or without the GIL; start
 * and stop come from one thread at a time. It is never unloaded: an operator
 * that began before a stop may end after it. */
#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include <ATen/record_function.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/version.h>

#include <vestige/api.h>

#include "exported.h"
#include "far_ends.h"
#include "graph_values.h"
#include "inputs.h"
#include "operator_names.h"
#include "profiler_stand_in.h"
#include "storages.h"
#include "thread_state.h"

namespace
{

enum {
    WANTS_SHAPES = 1,
    WANTS_FLOPS = 2,
    WANTS_MEMORY = 4,
    WANTS_OVERLOADS = 8,
    WANTS_IDS = 16,
    WANTS_MODULES = 32,
    WANTS_STORAGES = 64, /* with WANTS_SHAPES */
    MODULES_MAX = 1000,  /* bytes */
    /* So that no annotation of Python's has the same. */
    FIRST_INSTANCE = 0x80000000u
};

/* What every operator asks, in one line of the cache. Written by start and
 * stop, read relaxed: a hook that sees the old value records into a recording
 * that is still its own, or finds that there is none. */
struct alignas(64) settings {
    std::atomic<uint64_t> generation{0}; /* names the recording, 0: none */
    std::atomic<bool> plain{false}; /* no more is wanted than when it ran */
    bool reads_tsc = false;
    unsigned wants = 0;
    const uint64_t *epoch = nullptr;
    const vst_api *api = nullptr;
} now_set;

at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;
uint64_t last_generation;
std::atomic<uint32_t> last_instance{FIRST_INSTANCE};

/* ---- what is told of an operator -------------------------------------------
 */

/* What is wanted of its inputs' storages, if anything. */
struct wanted_storages {
    storages found;
    input_roles roles;
};

void put_inputs(facts &out, const at::RecordFunction &fn,
                const name_facts &what, wanted_storages *also)
{
    unsigned char *before = out.mark();
    size_t i = 0;

    for (const auto &value : fn.inputs()) {
        if (also)
            also->found.add(value, also->roles.of(i++));
        put_input(out, value);
    }
    /* They are copied to be looked at; what autograd runs has none. */
    if (!(what.flags & NAME_HAS_SCHEMA) && fn.seqNr() < 0)
        put_named(out, fn);
    if (out.full()) {
        out.go_back(before);
        out.byte(VST_FACT_TOO_LONG);
    }
}

/* Of TorchScript's, which knows the modules that its code is of. */
void put_modules(facts &out)
{
    const auto modules = torch::jit::currentModuleHierarchy();
    std::string text;

    for (const auto &module : modules)
        text += module + "."; /* as torch joins them */
    if (!text.empty() && text.size() < MODULES_MAX) {
        out.byte(VST_FACT_NAMED);
        out.text("Module Hierarchy", 16);
        out.byte(VST_FACT_TEXT);
        out.text(text.data(), text.size());
    }
}

/* How many words there are to say; room is kept for what follows the inputs. */
uint32_t tell(thread_state *state, const at::RecordFunction &fn,
              const name_facts &what, wanted_storages *also)
{
    uint64_t *words = state->payload;
    facts out(words + VST_OPERATOR_HEAD_WORDS,
              VST_ESCAPE_WORDS_MAX - VST_OPERATOR_HEAD_WORDS - 160);
    facts rest(words, VST_ESCAPE_WORDS_MAX);

    if (now_set.wants & WANTS_SHAPES)
        put_inputs(out, fn, what, also);
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
    size_t count = rest.finish(words);
    if (count == VST_OPERATOR_HEAD_WORDS && fn.seqNr() < 0 &&
        !graph_observer.load(std::memory_order_relaxed))
        return 0;
    return static_cast<uint32_t>(count);
}

/* ---- the observer ---------------------------------------------------------
 */

inline vst_ticks ticks()
{
#if defined(__x86_64__)
    if (now_set.reads_tsc)
        return __builtin_ia32_rdtsc();
#endif
    return now_set.api->clock_ticks();
}

inline uint64_t epoch()
{
    return __atomic_load_n(now_set.epoch, __ATOMIC_RELAXED);
}

/* Whether it may end on another thread, or after what it began in: an
 * annotation, or what _RecordFunctionFast names. */
bool may_wander(const at::RecordFunction &fn, const name_facts &what)
{
    return fn.scope() == at::RecordScope::USER_SCOPE || fn.isAsync() ||
           (fn.scope() == at::RecordScope::FUNCTION &&
            !(what.flags & NAME_HAS_COLONS));
}

/* The numbers of an operator and what else is to be told of it: how many words.
 */
uint32_t put_numbers(thread_state *state, const at::RecordFunction &fn,
                     const name_facts &what, bool tells, wanted_storages *also)
{
    uint32_t words = VST_OPERATOR_HEAD_WORDS;

    state->payload[0] = static_cast<uint64_t>(fn.seqNr());
    state->payload[1] = vst_operator_word(fn.threadId(), fn.forwardThreadId(),
                                          static_cast<uint64_t>(fn.scope()));
    try {
        if (tells)
            words = tell(state, fn, what, also);
    } catch (...) {
        /* A tensor that could not say what it is. */
        if (also)
            also->found.leave_out();
    }
    return words;
}

/* Behind the record of an operator. */
inline void put_storages(thread_state *state, const at::RecordFunction &fn,
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

/* Whether its guard lies on the stack of the thread that runs it. */
inline bool is_nested(const thread_state *state, const at::RecordFunction &fn)
{
    return (fn.scope() == at::RecordScope::FUNCTION ||
            fn.scope() == at::RecordScope::BACKWARD_FUNCTION) &&
           state->depth < OPEN_MAX;
}

std::unique_ptr<at::ObserverContext>
enter(thread_state *state, const at::RecordFunction &fn, uint64_t now)
{
    const vst_api *api = now_set.api;
    const name_facts what =
        find_name(api, &state->names, fn, now_set.wants & WANTS_STORAGES);
    unsigned observer = graph_observer.load(std::memory_order_relaxed);
    bool tells =
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
    if (fn.seqNr() >= 0 || tells)
        words = put_numbers(state, fn, what, tells, wants ? &wanted : nullptr);
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

__attribute__((noinline)) std::unique_ptr<at::ObserverContext>
start_any(const at::RecordFunction &fn)
{
    uint64_t now = now_set.generation.load(std::memory_order_relaxed);
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
        /* Out of memory, most likely: the operator is not shown. */
    }
    if (state)
        state->inside = false;
    return result;
}

/* Most are operators that a thread has run before, of which nothing is wanted
 * but when they ran. What they need is here, and little of it: between two of
 * them the program makes the caches its own. */
std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction &fn)
{
    uint64_t now = now_set.generation.load(std::memory_order_relaxed);
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

/* What may end on another thread has an instance, by which its end is found. If
 * something else does, it is cut by what is around it. */
__attribute__((noinline)) void end_any(thread_state *state, const opened &what,
                                       const at::RecordFunction &fn)
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

void end_far(const context *handed)
{
    now_set.api->record_far_end(handed->what.id, handed->what.instance);
    try {
        far_note(handed->owner, handed->what.id, handed->what.instance);
    } catch (...) {
        /* Out of memory; it is only kept longer than need be. */
    }
}

void end_handed_on(const context *handed, const at::RecordFunction &fn,
                   uint64_t now)
{
    if (handed->generation != now)
        return;
    if (handed->owner == here)
        end_any(here, handed->what, fn);
    else if (handed->what.instance)
        end_far(handed);
}

void on_end(const at::RecordFunction &fn, at::ObserverContext *observed)
{
    uint64_t now = now_set.generation.load(std::memory_order_relaxed);
    thread_state *state = here;

    if (observed) {
        end_handed_on(static_cast<const context *>(observed), fn, now);
        return;
    }
    if (!state || state->generation != now)
        return;
    unsigned depth = state->depth;
    /* Above it is what ended elsewhere, if anything. */
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

/* What torch is told of us; with nodes _RecordFunctionFast tells its inputs. */
void report()
{
    bool inputs = now_set.wants & WANTS_SHAPES ||
                  graph_observer.load(std::memory_order_relaxed) != 0;

    reported->turn(true, now_set.api, now_set.wants & WANTS_MEMORY, inputs);
}

/* Without the scopes of which a build of torch for servers has none: with every
 * task autograd's engine goes over the callbacks of each scope. */
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

/* ---- the interface --------------------------------------------------------
 */

/* The torch that this was built for. */
VST_EXPORTED const char *vst_torch_built_for(void)
{
    return TORCH_VERSION;
}

/* _RecordFunctionFast is about to look for a profiler on the calling thread:
 * ours is there while we record. */
VST_EXPORTED void vst_torch_attend(void)
{
    try {
        if (now_set.generation.load(std::memory_order_relaxed))
            watch();
    } catch (...) {
        /* Out of memory: it is not shown. */
    }
}

/* In a forked child: nothing is recorded any more, and no lock is taken. */
VST_EXPORTED void vst_torch_forget(void)
{
    now_set.generation.store(0, std::memory_order_relaxed);
    unwatch();
    watched = this_thread.is_counted; /* the other threads are the parent's */
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
        reported->turn(false, now_set.api, false, false);
}

/* Nodes of the execution trace are recorded from now on, for this observer; 0:
 * they are not. Before a recording or in it. ranges: of integral tensors too;
 * names: of operators whose integral tensors go to files in this folder,
 * ",a,b," or NULL. 0: it works. */
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

/* Between the start and the stop of a recording; flags as above. 0: it works.
 */
VST_EXPORTED int vst_torch_start(const vst_api *table, unsigned flags)
{
    if (table->size < sizeof(vst_api))
        return 1;
    vst_torch_stop();
    try {
        now_set.api = table;
        now_set.wants = flags;
        now_set.epoch = table->recording_epoch;
        now_set.reads_tsc = *table->clock_in_use == VST_CLOCK_TSC;
        if (!reported)
            reported = std::make_shared<reports>();
        far_forget();
        report();
        watch();
        begin_names();
        place_callback();
    } catch (...) {
        return 1;
    }
    now_set.generation.store(++last_generation, std::memory_order_relaxed);
    return 0;
}
