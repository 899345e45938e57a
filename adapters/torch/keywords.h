/* Writes keyword inputs of an operator, which only _RecordFunctionFast has.
 * Values of simple types are facts with names (VST_FACT_NAMED), as torch shows
 * them in files. The other values together are one text (VST_FACT_KEYWORDS), in
 * Python's syntax. The thread that runs the operator writes into memory of its
 * own. */
#ifndef VESTIGE_TORCH_KEYWORDS_H
#define VESTIGE_TORCH_KEYWORDS_H

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <vestige/operator.h>

#include "inputs.h"

namespace vestige_torch
{

enum { KEYWORDS_MAX = 4000, NESTED_MAX = 20 };

/* ---- values as text ------------------------------------------------------ */

static inline void write_text(std::string &out, const std::string &text)
{
    char code[8];

    out += '"';
    for (unsigned char byte : text) {
        std::snprintf(code, sizeof code, "\\x%02x", byte);
        if (byte == '"' || byte == '\\')
            out += {'\\', static_cast<char>(byte)};
        else if (byte < ' ')
            out += code;
        else
            out += static_cast<char>(byte);
    }
    out += '"';
}

static inline void write_double(std::string &out, double value)
{
    char number[40];

    std::snprintf(number, sizeof number, "%.17g", value);
    if (std::isnan(value))
        out += "None"; /* Python has no literal for nan */
    else if (std::isinf(value))
        out += value > 0 ? "1e999" : "-1e999";
    else
        out += number;
    if (std::isfinite(value) && !std::strpbrk(number, ".e"))
        out += ".0";
}

static inline void write_value(std::string &out, const c10::IValue &value,
                               int depth);

template <typename items>
static inline void write_items(std::string &out, const items &values,
                               const char *ends, int depth)
{
    size_t count = 0;

    out += ends[0];
    for (const c10::IValue &item : values) {
        if (count++)
            out += ", ";
        write_value(out, item, depth + 1);
    }
    if (count == 1 && ends[0] == '(')
        out += ",";
    out += ends[1];
}

/* Writes a value in Python's syntax; a value without such a form becomes
 * None. */
static inline void write_value(std::string &out, const c10::IValue &value,
                               int depth)
{
    if (depth > NESTED_MAX || out.size() > KEYWORDS_MAX)
        out += "None";
    else if (value.isInt())
        out += std::to_string(value.toInt());
    else if (value.isDouble())
        write_double(out, value.toDouble());
    else if (value.isBool())
        out += value.toBool() ? "True" : "False";
    else if (value.isString())
        write_text(out, value.toStringRef());
    else if (value.isList())
        write_items(out, value.toListRef(), "[]", depth);
    else if (value.isTuple())
        write_items(out, value.toTupleRef().elements(), "()", depth);
    else
        out += "None";
}

/* ---- values as facts ----------------------------------------------------- */

static inline bool is_of_texts(const c10::IValue &list)
{
    for (const auto &item : list.toListRef())
        if (!item.isString())
            return false;
    return !list.toListRef().empty();
}

static inline bool is_of_integers(const c10::IValue &list)
{
    for (const auto &item : list.toListRef())
        if (!item.isInt())
            return false;
    return true;
}

/* Returns whether a value becomes a fact with a name. as_torch: follow torch's
 * rules for files. */
static inline bool has_named_form(const std::string &name,
                                  const c10::IValue &value, bool as_torch)
{
    if (as_torch && name == "stream")
        return value.isInt();
    return number_tag(value) || value.isString() ||
           (value.isList() &&
            (is_of_texts(value) || (!as_torch && is_of_integers(value))));
}

static inline void put_named_value(facts &out, const c10::IValue &value)
{
    if (unsigned tag = number_tag(value)) {
        out.byte(tag);
        put_number(out, value);
        return;
    }
    if (value.isString()) {
        out.byte(VST_FACT_TEXT);
        out.text(value.toStringRef().data(), value.toStringRef().size());
        return;
    }
    out.byte(is_of_texts(value) ? VST_FACT_TEXTS : VST_FACT_INTEGERS);
    out.count(value.toListRef().size());
    for (const auto &item : value.toListRef()) {
        if (item.isInt())
            put_number(out, item);
        else
            out.text(item.toStringRef().data(), item.toStringRef().size());
    }
}

/* Returns whether files show another value: torch writes "None" for a text with
 * quotes, and JSON has no infinity. */
static inline bool is_changed(const c10::IValue &value, bool as_torch)
{
    if (value.isDouble())
        return std::isinf(value.toDouble());
    return as_torch && value.isString() &&
           value.toStringRef().find('"') != std::string::npos;
}

static inline void put_named(facts &out, const at::RecordFunction &fn,
                             bool as_torch)
{
    std::string others;

    for (const auto &[name, value] : fn.kwinputs()) {
        bool shown = has_named_form(name, value, as_torch);
        bool changed = is_changed(value, as_torch);

        if (shown) {
            out.byte(VST_FACT_NAMED);
            out.text(name.data(), name.size());
            put_named_value(
                out, changed && value.isString() ? c10::IValue("None") : value);
        }
        if (!shown || changed) {
            others += others.empty() ? "{" : ", ";
            write_text(others, name);
            others += ": ";
            write_value(others, value, 0);
        }
    }
    if (!others.empty() && others.size() < KEYWORDS_MAX) {
        others += "}";
        out.byte(VST_FACT_KEYWORDS);
        out.text(others.data(), others.size());
    }
}

} // namespace vestige_torch

#endif
