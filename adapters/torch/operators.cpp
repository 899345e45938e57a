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
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include <ATen/record_function.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/profiler/util.h>
#include <torch/version.h>

#include <vestige/api.h>

#include "graph.h"
#include "inputs.h"
#include "reports.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace
{

enum {
    WANTS_SHAPES = 1,
    WANTS_FLOPS = 2,
    WANTS_MEMORY = 4,
    WANTS_OVERLOADS = 8,
    WANTS_IDS = 16,
    WANTS_MODULES = 32,
    CACHE_SLOTS = 512, /* a power of two; names a thread uses often */
    NAME_MAX_KEPT = 200,
    MODULES_MAX = 1000, /* bytes */
    /* So that no annotation of Python's has the same. */
    FIRST_INSTANCE = 0x80000000u
};

const vst_api *api;
unsigned wants;
at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;
/* Names the recording, 0: none. Written by start and stop, read relaxed: a hook
 * that sees the old value records into a recording that is still its own, or
 * finds that there is none. */
std::atomic<uint64_t> generation{0};
uint64_t last_generation;
std::atomic<uint32_t> last_instance{FIRST_INSTANCE};

/* ---- a thread's own ------------------------------------------------------ */

/* The id of a name, as this thread found it: with a short name one line of the
 * cache. */
struct alignas(64) known {
    uint64_t generation;
    uint64_t hash;
    vst_id id;
    uint32_t length;
    bool has_schema; /* is no name that somebody made up */
    bool has_flops;
    char name[NAME_MAX_KEPT];
};

struct context;

struct thread_state {
    context *unused;    /* kept for the next operator */
    graph_state *graph; /* NULL: no node was recorded yet */
    bool inside;        /* the observer: what it runs itself is not recorded */
    uint64_t payload[VST_ESCAPE_WORDS_MAX];
    known cache[CACHE_SLOTS];
};

/* Between the start of an operator and its end. */
struct context final : at::ObserverContext {
    thread_state *owner = nullptr;
    context *next = nullptr;
    uint64_t generation = 0;
    vst_id id = 0;
    uint32_t instance = 0;
    unsigned node_of = 0; /* an observer of the execution trace */

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

__attribute__((noinline)) thread_state *make_state()
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
    pthread_setspecific(exit_key, state);
    try {
        watch();
    } catch (...) {
        /* Out of memory: _RecordFunctionFast does nothing on this thread. */
    }
    return here = state;
}

inline thread_state *own_state()
{
    return here ? here : make_state();
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

context *make_context(thread_state *state)
{
    void *memory = state->unused;

    if (memory)
        state->unused = state->unused->next;
    else
        memory = ::operator new(sizeof(context), std::nothrow);
    return memory ? ::new (memory) context : nullptr;
}

/* ---- names --------------------------------------------------------------- */

uint64_t hash_of(const char *name, size_t length, uint64_t hash)
{
    uint64_t word;

    for (; length >= sizeof word; name += sizeof word, length -= sizeof word) {
        std::memcpy(&word, name, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    word = length;
    std::memcpy(&word, name, length);
    hash =
        (hash ^ word ^ (uint64_t)length << 56) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

bool counts_flops(const char *name)
{
    static const char *const names[] = {
        "aten::conv2d",  "aten::mm",  "aten::addmm", "aten::bmm",
        "aten::baddbmm", "aten::mul", "aten::add",
    };

    for (const char *known_name : names)
        if (std::strcmp(name, known_name) == 0)
            return true;
    return false;
}

__attribute__((noinline)) void define(known *slot, const at::RecordFunction &fn,
                                      const char *name, size_t length,
                                      uint64_t hash, bool user, uint64_t now)
{
    vst_definition definition = {};

    definition.kind = user ? VST_DEF_ANNOTATION : VST_DEF_OPERATOR;
    definition.name = name;
    definition.name_len = static_cast<uint32_t>(length);
    definition.file = "";
    slot->id = api->recording_define(&definition);
    slot->hash = hash;
    slot->has_schema = fn.operator_name().has_value();
    slot->has_flops = counts_flops(name);
    /* A name that is too long to compare is looked up each time. */
    slot->generation = length < NAME_MAX_KEPT && slot->id ? now : 0;
    slot->length = static_cast<uint32_t>(length);
    if (length < NAME_MAX_KEPT)
        std::memcpy(slot->name, name, length);
}

const known *find(thread_state *state, const at::RecordFunction &fn,
                  uint64_t now)
{
    const char *name = fn.name();
    size_t length = std::strlen(name);
    bool user = fn.scope() == at::RecordScope::USER_SCOPE;
    uint64_t hash = hash_of(name, length, user ? 7 : 0);
    known *slot = &state->cache[hash & (CACHE_SLOTS - 1)];

    if (slot->generation != now || slot->hash != hash ||
        slot->length != length || std::memcmp(slot->name, name, length) != 0)
        define(slot, fn, name, length, hash, user, now);
    return slot;
}

/* ---- what is told of an operator -------------------------------------------
 */

void put_named(facts &out, const at::RecordFunction &fn)
{
    for (const auto &[name, value] : fn.kwinputs()) {
        unsigned tag = number_tag(value);
        bool texts = value.isList() && is_of_texts(value);

        if (!tag && !value.isString() && !texts)
            continue;
        out.byte(VST_FACT_NAMED);
        out.text(name.data(), name.size());
        if (texts) {
            out.byte(VST_FACT_TEXTS);
            out.count(value.toListRef().size());
            for (const auto &item : value.toListRef())
                out.text(item.toStringRef().data(), item.toStringRef().size());
            continue;
        }
        out.byte(tag ? tag : static_cast<unsigned>(VST_FACT_TEXT));
        if (tag)
            put_number(out, value);
        else
            out.text(value.toStringRef().data(), value.toStringRef().size());
    }
}

void put_inputs(facts &out, const at::RecordFunction &fn, const known *what)
{
    unsigned char *before = out.mark();

    for (const auto &value : fn.inputs())
        put_input(out, value);
    if (!what->has_schema)
        put_named(out, fn);
    if (out.full()) {
        out.go_back(before);
        out.byte(VST_FACT_TOO_LONG);
    }
}

void put_flops(facts &out, const at::RecordFunction &fn, const known *what)
{
    uint64_t flops = torch::profiler::impl::computeFlops(
        std::string(what->name, what->length),
        torch::profiler::impl::saveExtraArgs(fn));

    if (flops) {
        out.byte(VST_FACT_FLOPS);
        out.count(flops);
    }
}

/* Of TorchScript's, which knows the modules that its code is of. */
void put_modules(facts &out)
{
    const auto modules = torch::jit::currentModuleHierarchy();
    std::string text;

    for (const auto &module : modules)
        text += text.empty() ? module : "." + module;
    if (!text.empty() && text.size() < MODULES_MAX) {
        out.byte(VST_FACT_NAMED);
        out.text("Module Hierarchy", 16);
        out.byte(VST_FACT_TEXT);
        out.text(text.data(), text.size());
    }
}

/* How many words there are to say; room is kept for what follows the inputs. */
uint32_t tell(thread_state *state, const at::RecordFunction &fn,
              const known *what)
{
    uint64_t *words = state->payload;
    facts out(words + VST_OPERATOR_HEAD_WORDS,
              VST_ESCAPE_WORDS_MAX - VST_OPERATOR_HEAD_WORDS - 160);
    facts rest(words, VST_ESCAPE_WORDS_MAX);

    if (wants & WANTS_SHAPES)
        put_inputs(out, fn, what);
    rest.go_back(out.mark());
    if (wants & WANTS_FLOPS && what->has_flops)
        put_flops(rest, fn, what);
    if (wants & WANTS_OVERLOADS && what->has_schema) {
        const char *overload = fn.overload_name();
        size_t length = std::strlen(overload);
        if (length && length < 100) {
            rest.byte(VST_FACT_OVERLOAD);
            rest.text(overload, length);
        }
    }
    if (wants & WANTS_MODULES &&
        fn.scope() != at::RecordScope::BACKWARD_FUNCTION)
        put_modules(rest);
    if (wants & WANTS_IDS && fn.handle()) {
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

/* Whether it may end on another thread, or after what it began in. Not what
 * _RecordFunctionFast was given a keyword for: its __exit__ would stand in it.
 */
bool may_wander(const at::RecordFunction &fn)
{
    if (fn.scope() != at::RecordScope::USER_SCOPE)
        return fn.isAsync();
    return !(wants & WANTS_SHAPES) || fn.kwinputs().empty();
}

std::unique_ptr<at::ObserverContext>
enter(thread_state *state, const at::RecordFunction &fn, uint64_t now)
{
    const known *what = find(state, fn, now);
    bool wanders = may_wander(fn);
    uint32_t words = 0;
    context *opened;

    if (!what->id)
        return nullptr;
    if (fn.seqNr() >= 0 || wants & ~static_cast<unsigned>(WANTS_MEMORY) ||
        graph_observer.load(std::memory_order_relaxed)) {
        state->payload[0] = static_cast<uint64_t>(fn.seqNr());
        state->payload[1] =
            vst_operator_word(fn.threadId(), fn.forwardThreadId(),
                              static_cast<uint64_t>(fn.scope()));
        try {
            words = tell(state, fn, what);
        } catch (...) {
            /* A tensor that could not say what it is. */
            words = VST_OPERATOR_HEAD_WORDS;
        }
    }
    opened = make_context(state);
    if (!opened)
        return nullptr;
    opened->owner = state;
    opened->generation = now;
    opened->id = what->id;
    if (wanders)
        opened->instance = FIRST_INSTANCE | last_instance.fetch_add(
                                                1, std::memory_order_relaxed);
    std::unique_ptr<at::ObserverContext> result(opened);
    if (!api->record_operator(opened->id, opened->instance, state->payload,
                              words))
        return nullptr;
    if (graph_observer.load(std::memory_order_relaxed))
        opened->node_of = graph_enter(api, &state->graph, fn, what->id,
                                      what->has_schema, now);
    return result;
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction &fn)
{
    uint64_t now = generation.load(std::memory_order_relaxed);
    thread_state *state = now ? own_state() : nullptr;
    std::unique_ptr<at::ObserverContext> result;

    if (!state || state->inside)
        return nullptr;
    state->inside = true;
    try {
        if (wants & WANTS_MEMORY)
            watch();
        result = enter(state, fn, now);
    } catch (...) {
        /* Out of memory, most likely: the operator is not shown. */
    }
    state->inside = false;
    return result;
}

/* What may end on another thread has an instance, by which its end is found. If
 * something else does, it is cut by what is around it. */
void on_end(const at::RecordFunction &fn, at::ObserverContext *observed)
{
    auto *opened = static_cast<context *>(observed);

    if (!opened ||
        opened->generation != generation.load(std::memory_order_relaxed))
        return;
    if (opened->owner != here) {
        if (opened->instance)
            api->record_far_end(opened->id, opened->instance);
        return;
    }
    if (opened->node_of && !here->inside) {
        here->inside = true;
        graph_exit(api, here->graph, opened->node_of, fn);
        here->inside = false;
    }
    api->record_operator_exit(std::uncaught_exceptions() ? VST_RAISE : VST_EXIT,
                              opened->id, opened->instance);
}

void place_callback()
{
    bool nodes = graph_observer.load(std::memory_order_relaxed) != 0;

    callback = at::addGlobalCallback(
        at::RecordFunctionCallback(on_start, on_end)
            .needsInputs(nodes || (wants & (WANTS_SHAPES | WANTS_FLOPS)) != 0)
            .needsOutputs(nodes)
            .needsIds(nodes || (wants & WANTS_IDS) != 0));
}

} // namespace

/* ---- the interface --------------------------------------------------------
 */

/* The torch that this was built for. */
EXPORTED const char *vst_torch_built_for(void)
{
    return TORCH_VERSION;
}

/* A profiler of torch's own is about to start on the calling thread, and would
 * take ours for one. When it is gone, ours comes back with the next operator.
 */
EXPORTED void vst_torch_make_way(void)
{
    unwatch();
}

EXPORTED void vst_torch_stop(void)
{
    generation.store(0, std::memory_order_relaxed);
    if (callback != at::INVALID_CALLBACK_HANDLE)
        at::removeCallback(callback);
    callback = at::INVALID_CALLBACK_HANDLE;
    unwatch();
    if (reported)
        reported->turn(false, api, false, false);
}

/* Nodes of the execution trace are recorded from now on, for this observer; 0:
 * they are not. Before a recording or in it. ranges: of integral tensors too;
 * names: of operators whose integral tensors go to files in this folder,
 * ",a,b," or NULL. 0: it works. */
EXPORTED int vst_torch_graph(unsigned observer, int ranges, const char *names,
                             const char *folder)
{
    bool placed = callback != at::INVALID_CALLBACK_HANDLE;

    try {
        graph_observer.store(0, std::memory_order_relaxed);
        if (placed)
            at::removeCallback(callback);
        callback = at::INVALID_CALLBACK_HANDLE;
        integral_wish(ranges != 0, names, folder);
        graph_observer.store(observer, std::memory_order_relaxed);
        if (placed)
            place_callback();
    } catch (...) {
        return 1;
    }
    return 0;
}

/* The calling thread, as torch counts. */
EXPORTED uint64_t vst_torch_thread(void)
{
    return at::RecordFunction::currentThreadId();
}

/* Between the start and the stop of a recording; flags as above. 0: it works.
 */
EXPORTED int vst_torch_start(const vst_api *table, unsigned flags)
{
    if (table->size < sizeof(vst_api))
        return 1;
    vst_torch_stop();
    try {
        api = table;
        wants = flags;
        if (!reported)
            reported = std::make_shared<reports>();
        reported->turn(true, table, flags & WANTS_MEMORY, flags & WANTS_SHAPES);
        watch();
        place_callback();
    } catch (...) {
        return 1;
    }
    generation.store(++last_generation, std::memory_order_relaxed);
    return 0;
}
