/* Keeps the ids of operators' names for each thread. A table belongs to one
 * thread. The name of a registered operator is part of its schema, at one
 * address as long as the operator is registered. So a thread looks up the
 * address and does not read the name, which would not be in the caches. Names
 * that are made for one call, such as those of autograd's engine, are looked up
 * by their text. */
#ifndef VESTIGE_TORCH_OPERATOR_NAMES_H
#define VESTIGE_TORCH_OPERATOR_NAMES_H

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <vestige/api.h>

namespace vestige_torch
{

enum {
    NAMES_MAX = 255,
    NAME_SLOTS = 512,   /* a power of two, at least twice NAMES_MAX */
    TEXTS_BYTES = 8192, /* bytes of all texts together */
    TEXT_BYTES_MAX = 255,
    NAME_IS_TEXT = 1,
    NAME_HAS_SCHEMA = 2, /* the operator is registered */
    NAME_HAS_FLOPS = 4,
    NAME_HAS_COLONS = 8, /* the name contains "::", so torch chose it */
    /* the schema says that the operator writes to an argument */
    NAME_WRITES = 16
};

/* Grows with every recording and whenever an operator is deregistered; a
 * thread's table is valid for one number. Read relaxed: a thread that runs an
 * operator at the address of an earlier one has synchronized with its
 * registration, and so with this number. */
inline std::atomic<uint32_t> names_number{1};

/* Four of these fill a cache line. They lie in the order in which they were
 * first seen, because most programs use them again in that order. */
struct known_name {
    uint64_t key; /* the name's address, or a hash of the text */
    vst_id id;
    uint16_t text; /* where the text begins */
    uint8_t length;
    uint8_t flags;
};

struct known_names {
    uint32_t number; /* the names_number for which the table is valid */
    uint32_t count;
    uint32_t text_count;       /* bytes of texts */
    uint8_t slots[NAME_SLOTS]; /* 1 + index of a name; 0 if empty */
    known_name of[NAMES_MAX];
    char texts[TEXTS_BYTES];
    uint64_t written[NAMES_MAX]; /* for names with NAME_WRITES */
    /* ids of the whole schemas; 0 if not needed yet */
    vst_id schemas[NAMES_MAX];
};

struct name_facts {
    vst_id id; /* 0 if there is none */
    uint8_t flags;
    /* one bit for each argument that the operator writes to */
    uint64_t written;
    vst_id *schema; /* where the id of the schema is kept; may be NULL */
};

class removal_listener final : public c10::OpRegistrationListener
{
    void onOperatorRegistered(const c10::OperatorHandle &) override
    {
    }
    void onOperatorDeregistered(const c10::OperatorHandle &) override
    {
        names_number.fetch_add(1, std::memory_order_relaxed);
    }
};

inline std::optional<c10::RegistrationHandleRAII> removals;

/* Call when a recording starts. May throw. */
static inline void begin_names()
{
    names_number.fetch_add(1, std::memory_order_relaxed);
    removals.emplace(c10::Dispatcher::singleton().addRegistrationListener(
        std::make_unique<removal_listener>()));
}

static inline void end_names()
{
    removals.reset();
}

static inline uint64_t hash_of(const char *name, size_t length, uint64_t hash)
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

static inline bool counts_flops(const char *name)
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

/* Without a schema there is no overload name: torch then returns its one empty
 * text, which is recognised by its address. */
static inline bool has_schema(const at::RecordFunction &fn)
{
    static const char *const none = at::RecordFunction().overload_name();

    return fn.overload_name() != none;
}

static inline uint64_t slot_of(uint64_t key)
{
    return key * UINT64_C(0x9e3779b97f4a7c15) >> 40;
}

static inline bool is_user(const at::RecordFunction &fn)
{
    return fn.scope() == at::RecordScope::USER_SCOPE;
}

/* Returns the operator whose name lies at this address, or NULL. */
static inline const known_name *find_place(const known_names *names,
                                           const char *place)
{
    auto key = reinterpret_cast<uint64_t>(place);

    if (names->number != names_number.load(std::memory_order_relaxed))
        return nullptr;
    for (uint64_t slot = slot_of(key);; slot++) {
        unsigned index = names->slots[slot & (NAME_SLOTS - 1)];
        if (index == 0)
            return nullptr;
        const known_name *name = &names->of[index - 1];
        if (name->key == key && !(name->flags & NAME_IS_TEXT))
            return name;
    }
}

static inline const known_name *find_text(const known_names *names,
                                          const char *text, size_t length,
                                          uint64_t hash)
{
    if (names->number != names_number.load(std::memory_order_relaxed))
        return nullptr;
    for (uint64_t slot = slot_of(hash);; slot++) {
        unsigned index = names->slots[slot & (NAME_SLOTS - 1)];
        if (index == 0)
            return nullptr;
        const known_name *name = &names->of[index - 1];
        if (name->key == hash && name->flags & NAME_IS_TEXT &&
            name->length == length &&
            std::memcmp(names->texts + name->text, text, length) == 0)
            return name;
    }
}

/* Adds a name. A full table is emptied first. */
static inline void keep(known_names *names, uint64_t key,
                        const name_facts &facts, const char *text,
                        size_t length, uint32_t number)
{
    if (length > TEXT_BYTES_MAX)
        return;
    if (names->number != number || names->count == NAMES_MAX ||
        names->text_count + length > TEXTS_BYTES) {
        std::memset(names->slots, 0, sizeof names->slots);
        names->count = names->text_count = 0;
        names->number = number;
    }
    names->written[names->count] = facts.written;
    names->schemas[names->count] = 0;
    names->of[names->count++] = {key, facts.id,
                                 static_cast<uint16_t>(names->text_count),
                                 static_cast<uint8_t>(length), facts.flags};
    std::memcpy(names->texts + names->text_count, text, length);
    names->text_count += static_cast<uint32_t>(length);
    uint64_t slot = slot_of(key);
    while (names->slots[slot & (NAME_SLOTS - 1)])
        slot++;
    names->slots[slot & (NAME_SLOTS - 1)] = static_cast<uint8_t>(names->count);
}

static inline name_facts define(const vst_api *api,
                                const at::RecordFunction &fn, const char *name,
                                size_t length, unsigned flags)
{
    vst_definition definition = {};

    definition.kind = is_user(fn) ? VST_DEF_ANNOTATION : VST_DEF_OPERATOR;
    definition.name = name;
    definition.name_len = static_cast<uint32_t>(length);
    definition.file = "";
    if (counts_flops(name))
        flags |= NAME_HAS_FLOPS;
    if (std::strstr(name, "::"))
        flags |= NAME_HAS_COLONS;
    return {api->recording_define(&definition), static_cast<uint8_t>(flags), 0,
            nullptr};
}

/* Returns the arguments to which an operator writes. torch copies the whole
 * schema for this call. */
static inline uint64_t written_by(const at::RecordFunction &fn)
{
    auto schema = fn.operator_schema();
    uint64_t mask = 0;

    if (!schema)
        return 0;
    for (size_t i = 0; i < schema->arguments().size() && i < 64; i++) {
        auto *alias = schema->arguments()[i].alias_info();
        if (alias && alias->isWrite())
            mask |= UINT64_C(1) << i;
    }
    return mask;
}

static inline __attribute__((noinline)) name_facts
new_name(const vst_api *api, known_names *names, const at::RecordFunction &fn,
         bool wants_written)
{
    uint32_t number = names_number.load(std::memory_order_relaxed);
    const char *name = fn.name();
    name_facts facts =
        define(api, fn, name, std::strlen(name), NAME_HAS_SCHEMA);

    if (wants_written)
        facts.written = written_by(fn);
    if (facts.written)
        facts.flags |= NAME_WRITES;
    if (facts.id) {
        keep(names, reinterpret_cast<uint64_t>(name), facts, "", 0, number);
        facts.schema = &names->schemas[names->count - 1];
    }
    return facts;
}

/* Finds the name of the operator that the thread is about to run. */
static inline name_facts find_name(const vst_api *api, known_names *names,
                                   const at::RecordFunction &fn,
                                   bool wants_written)
{
    uint32_t number = names_number.load(std::memory_order_relaxed);
    const char *name = fn.name();
    const known_name *known = find_place(names, name);

    if (known) {
        auto index = known - names->of;
        return {known->id, known->flags,
                known->flags & NAME_WRITES ? names->written[index] : 0,
                &names->schemas[index]};
    }
    if (has_schema(fn) && !is_user(fn))
        return new_name(api, names, fn, wants_written);
    size_t length = std::strlen(name);
    uint64_t hash = hash_of(name, length, is_user(fn));
    known = find_text(names, name, length, hash);
    if (known)
        return {known->id, known->flags, 0, nullptr};
    name_facts facts = define(api, fn, name, length, NAME_IS_TEXT);
    if (facts.id)
        keep(names, hash, facts, name, length, number);
    return facts;
}

/* Returns the id of an operator that this thread has seen before and that ends
 * in order, that is, on this thread and before the operator around it; else 0.
 * An operator with this name but without a schema has the same id. */
static inline vst_id find_known(const known_names *names,
                                const at::RecordFunction &fn)
{
    const char *name = fn.name();
    const known_name *known = find_place(names, name);

    if (known)
        return known->id;
    size_t length = std::strlen(name);
    known = find_text(names, name, length, hash_of(name, length, is_user(fn)));
    if (!known || fn.isAsync() ||
        (fn.scope() == at::RecordScope::FUNCTION &&
         !(known->flags & NAME_HAS_COLONS)))
        return 0;
    return known->id;
}

} // namespace vestige_torch

#endif
