/* Ids of the names of operators, as each thread has found them. Part of
 * operators.cpp, which alone includes it; a table belongs to one thread.
 *
 * The name of a registered operator lies in its schema, at one place for as
 * long as it is registered. So the place is what is looked up, and the name
 * itself is not touched: it is in nobody's cache. Names that are made up for
 * the occasion, as autograd's engine does, are looked up by what they say. */
#ifndef VESTIGE_TORCH_NAMES_H
#define VESTIGE_TORCH_NAMES_H

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <vestige/api.h>

namespace
{

enum {
    PLACE_SETS = 128, /* powers of two */
    TEXT_SETS = 64,
    SET_PLACES = 4,
    SET_TEXTS = 2,
    TEXT_MAX_KEPT = 104 /* with the zero behind it */
};

/* Counts recordings, and operators that were taken out: what a thread knows of
 * places is good for one number. Read relaxed: who runs an operator that lies
 * where another one did has heard of its registration, and so of this. */
std::atomic<uint32_t> places_number{1};

struct name_facts {
    vst_id id;       /* 0: there is none */
    bool has_schema; /* is no name that somebody made up */
    bool has_flops;
};

struct known_place {
    const char *place;
    uint32_t number; /* of places */
    uint32_t id;     /* and the top bit: has_flops */
};

/* Four of them are one line of the cache. */
struct alignas(64) place_set {
    known_place of[SET_PLACES];
};

struct alignas(64) known_text {
    uint64_t hash;
    uint64_t generation;
    name_facts facts;
    char text[TEXT_MAX_KEPT];
};

struct known_names {
    place_set places[PLACE_SETS];
    known_text texts[TEXT_SETS][SET_TEXTS];
};

class removal_listener final : public c10::OpRegistrationListener
{
    void onOperatorRegistered(const c10::OperatorHandle &) override
    {
    }
    void onOperatorDeregistered(const c10::OperatorHandle &) override
    {
        places_number.fetch_add(1, std::memory_order_relaxed);
    }
};

std::optional<c10::RegistrationHandleRAII> removals;

/* With a recording. May throw. */
void begin_names()
{
    places_number.fetch_add(1, std::memory_order_relaxed);
    removals.emplace(c10::Dispatcher::singleton().addRegistrationListener(
        std::make_unique<removal_listener>()));
}

void end_names()
{
    removals.reset();
}

inline uint64_t hash_of(const char *name, size_t length, uint64_t hash)
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

/* What has no schema has no overload either: for each of those torch gives the
 * same empty text. */
bool has_schema(const at::RecordFunction &fn)
{
    static const char *const none = at::RecordFunction().overload_name();

    return fn.overload_name() != none;
}

name_facts define(const vst_api *api, const at::RecordFunction &fn,
                  const char *name, size_t length)
{
    bool is_user = fn.scope() == at::RecordScope::USER_SCOPE;
    vst_definition definition = {};

    definition.kind = is_user ? VST_DEF_ANNOTATION : VST_DEF_OPERATOR;
    definition.name = name;
    definition.name_len = static_cast<uint32_t>(length);
    definition.file = "";
    return {api->recording_define(&definition), has_schema(fn),
            counts_flops(name)};
}

inline const place_set *set_of(const known_names *names, const char *place)
{
    auto bits = reinterpret_cast<uint64_t>(place);

    return &names->places[bits * UINT64_C(0x9e3779b97f4a7c15) >> 48 &
                          (PLACE_SETS - 1)];
}

/* The one that was added first goes. */
void keep_place(known_names *names, const char *place, const name_facts &facts,
                uint32_t number)
{
    auto *set = const_cast<place_set *>(set_of(names, place));

    std::memmove(&set->of[1], &set->of[0],
                 (SET_PLACES - 1) * sizeof(known_place));
    set->of[0] = {place, number,
                  facts.id | (facts.has_flops ? 0x80000000u : 0)};
}

name_facts find_text(const vst_api *api, known_names *names,
                     const at::RecordFunction &fn, const char *name,
                     uint64_t generation)
{
    size_t length = std::strlen(name);
    uint64_t hash = hash_of(name, length, static_cast<uint64_t>(fn.scope()));
    known_text *set = names->texts[hash & (TEXT_SETS - 1)];

    for (known_text *text = set; text < set + SET_TEXTS; text++)
        if (text->hash == hash && text->generation == generation &&
            std::strcmp(text->text, name) == 0)
            return text->facts;
    name_facts facts = define(api, fn, name, length);
    if (length < TEXT_MAX_KEPT && facts.id) {
        set[1] = set[0];
        set[0].hash = hash;
        set[0].generation = generation;
        set[0].facts = facts;
        std::memcpy(set[0].text, name, length + 1);
    }
    return facts;
}

/* Of a registered operator whose name lies there, if it is known: its id, and
 * the top bit if it has_flops. 0: it is not. */
inline uint32_t find_place(const known_names *names, const char *place)
{
    uint32_t number = places_number.load(std::memory_order_relaxed);

    for (const known_place &known : set_of(names, place)->of)
        if (known.place == place && known.number == number)
            return known.id;
    return 0;
}

/* Of the operator that a thread is about to run, in a recording that has this
 * generation. */
name_facts find_name(const vst_api *api, known_names *names,
                     const at::RecordFunction &fn, uint64_t generation)
{
    const char *name = fn.name();
    uint32_t number = places_number.load(std::memory_order_relaxed);

    if (uint32_t found = find_place(names, name))
        return {found & VST_ID_MAX, true, found >> 31 != 0};
    if (!has_schema(fn) || fn.scope() == at::RecordScope::USER_SCOPE)
        return find_text(api, names, fn, name, generation);
    name_facts facts = define(api, fn, name, std::strlen(name));
    if (facts.id)
        keep_place(names, name, facts, number);
    return facts;
}

} // namespace

#endif
