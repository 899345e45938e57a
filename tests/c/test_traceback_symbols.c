/* Names of many tracebacks: each frame is looked up once, and the names come as
 * objects and as JSON. The language is a fake; native frames are not tested
 * here. */
#include <stdlib.h>

#include "check.h"
#include "fake_unwinder.h"
#include "traceback/language.h"
#include "traceback/traceback.h"

static fake_code a = {.name = "a"}, b = {.name = "b"},
                 odd = {.name = "o\"d\n\\\xff\xc3\xa9"};

static vst_traceback *capture(size_t count, fake_code *const *codes,
                              const uint32_t *numbers)
{
    fake_frames = (fake_stack){codes, numbers, count};
    return vst_traceback_capture(VST_TRACEBACK_LANGUAGE, 0);
}

static vst_symbols *symbols_of(vst_traceback *const *tracebacks, size_t count,
                               unsigned flags)
{
    vst_symbols *symbols = NULL;

    fake_lookups = 0;
    CHECK_INT(vst_traceback_symbolize(tracebacks, count, flags, &symbols, NULL),
              VST_OK);
    CHECK_INT(fake_entered, 0);
    return symbols;
}

static void json_is(vst_symbols *symbols, const char *expected)
{
    char *json = NULL;
    size_t length = 0;

    CHECK_INT(vst_symbols_json(symbols, &json, &length), VST_OK);
    CHECK_TEXT(json, expected);
    CHECK_INT(length, strlen(expected));
    free(json);
    vst_symbols_free(symbols);
}

static void release_all(vst_traceback *const *tracebacks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        vst_traceback_release(tracebacks[i]);
    vst_traceback_free_dead();
    CHECK_INT(vst__table_count(), 0);
}

static void each_distinct_traceback_and_frame_is_looked_up_once(void)
{
    vst_traceback *given[4] = {
        capture(2, (fake_code *[]){&a, &b}, (uint32_t[]){1, 2}),
        capture(2, (fake_code *[]){&b, &a},
                (uint32_t[]){2, 1 | VST_FRAME_ENTRY}),
        capture(3, (fake_code *[]){&a, &a, &b}, (uint32_t[]){1, 3, 2}),
        capture(2, (fake_code *[]){&a, &b}, (uint32_t[]){1, 2})};
    vst_symbols *symbols = symbols_of(given, 4, 0);
    size_t counts[4], places[4];
    const uint32_t *indexes[4];

    CHECK_INT(fake_lookups, 3);
    CHECK_INT(vst_symbols_frame_count(symbols), 3);
    for (size_t i = 0; i < 4; i++)
        indexes[i] = vst_symbols_of(symbols, i, &counts[i], &places[i]);
    CHECK_INT(counts[2], 3);
    CHECK(places[0] == places[3] && indexes[0] == indexes[3]);
    CHECK(places[0] != places[1] && places[1] != places[2]);
    CHECK(indexes[0][0] == indexes[1][1] && indexes[0][1] == indexes[1][0]);
    CHECK_INT(vst_symbols_frame(symbols, indexes[2][1])->line, 3);
    CHECK_INT(vst_symbols_frame(symbols, indexes[2][1])->column, 0);
    vst_symbols_free(symbols);
    symbols = symbols_of(given, 4, VST_SYMBOLS_POSITIONS);
    CHECK_INT(vst_symbols_frame(symbols, 0)->column, 7);
    vst_symbols_free(symbols);
    release_all(given, 4);
}

static void json_is_a_list_of_lists(void)
{
    vst_traceback *given[3] = {
        capture(2, (fake_code *[]){&a, &odd}, (uint32_t[]){1, 20}), NULL,
        capture(1, (fake_code *[]){&b}, (uint32_t[]){4294967})};

    json_is(symbols_of(given, 3, 0),
            "[[{\"name\": \"a\", \"filename\": \"fake.lang\", \"line\": 1},\n"
            "{\"name\": \"o\\\"d\\n\\\\\xef\xbf\xbd\xc3\xa9\", \"filename\": "
            "\"fake.lang\", \"line\": 20}],\n"
            "[],\n"
            "[{\"name\": \"b\", \"filename\": \"fake.lang\", \"line\": "
            "4294967}]]");
    json_is(symbols_of(NULL, 0, 0), "[]");
    release_all(given, 3);
}

/* ---- generated code ----------------------------------------------------- */

static int asked;

static vst_status stands_for(void *ctx, const char *file, size_t file_len,
                             uint32_t line, const vst_named_sink *sink)
{
    const char *prefix = ctx;
    vst_named_frame frame = {.file = "source", .file_len = 6};
    char name[32];

    CHECK_INT(file_len, 9);
    CHECK(memcmp(file, "fake.lang", 9) == 0);
    asked++;
    frame.name = name;
    for (uint32_t i = 0; i < line; i++) {
        frame.name_len = (size_t)snprintf(name, sizeof name, "%s%u", prefix, i);
        if (sink->add(sink->ctx, &frame) != VST_OK)
            return VST_E_NOMEM;
    }
    return line == 9 ? VST_E_CANCELLED : VST_OK;
}

static void extra_frames_follow_the_frame_they_stand_behind(void)
{
    vst_traceback *given[1] = {
        capture(4, (fake_code *[]){&a, &b, &a, &b}, (uint32_t[]){2, 2, 0, 1})};
    static const char *const names[] = {"a",  "x0", "x1", "b", "x0",
                                        "x1", "a",  "b",  "x0"};
    size_t count;
    vst_symbols *symbols;
    const uint32_t *indexes;

    asked = 0;
    vst__traceback_set_extra_frames(stands_for, "x");
    symbols = symbols_of(given, 1, 0);
    indexes = vst_symbols_of(symbols, 0, &count, NULL);
    CHECK_INT(asked, 3); /* lines 2, 0, 1 */
    CHECK_INT(count, 9);
    for (size_t i = 0; i < 9 && i < count; i++)
        CHECK_TEXT(vst_symbols_frame(symbols, indexes[i])->name, names[i]);
    vst_symbols_free(symbols);
    vst__traceback_set_extra_frames(NULL, NULL);
    symbols = symbols_of(given, 1, 0);
    CHECK_INT(vst_symbols_frame_count(symbols), 4);
    vst_symbols_free(symbols);
    release_all(given, 1);
}

static void what_fails_is_told_and_leaves_nothing(void)
{
    vst_traceback *given[1] = {
        capture(2, (fake_code *[]){&a, &b}, (uint32_t[]){1, 9})};
    vst_symbols *symbols = (vst_symbols *)given;
    vst_error error;

    vst__traceback_set_extra_frames(stands_for, "x");
    CHECK_INT(vst_traceback_symbolize(given, 1, 0, &symbols, &error),
              VST_E_CANCELLED);
    CHECK_INT(error.status, VST_E_CANCELLED);
    CHECK(symbols == NULL);
    CHECK_INT(fake_entered, 0);
    vst__traceback_set_extra_frames(NULL, NULL);
    vst_symbols_free(NULL);
    release_all(given, 1);
}

static void without_an_interpreter_its_frames_are_left_out(void)
{
    vst_traceback *given[1] = {
        capture(2, (fake_code *[]){&a, &b}, (uint32_t[]){1, 9})};

    fake_is_absent = true;
    json_is(symbols_of(given, 1, 0), "[[]]");
    fake_is_absent = false;
    vst_unwinder_install(NULL);
    json_is(symbols_of(given, 1, 0), "[[]]");
    vst_unwinder_install(&fake_unwinder);
    release_all(given, 1);
}

static void addresses_of_nothing_are_shown_as_they_are(void)
{
    vst_traceback *given[1] = {
        vst_traceback_of((uintptr_t[]){0, 1, 0x1234, UINTPTR_MAX}, 4)};

    json_is(symbols_of(given, 1, 0),
            "[[{\"name\": \"0x0\", \"filename\": \"[no library]\", "
            "\"line\": 0},\n"
            "{\"name\": \"0x1\", \"filename\": \"[no library]\", "
            "\"line\": 0},\n"
            "{\"name\": \"0x1234\", \"filename\": \"[no library]\", "
            "\"line\": 0},\n"
            "{\"name\": \"0xffffffffffffffff\", \"filename\": "
            "\"[no library]\", \"line\": 0}]]");
    release_all(given, 1);
}

static void many_addresses_do_not_pile_up(void)
{
    enum { MANY = 150000 };
    uintptr_t *addresses = calloc(MANY, sizeof *addresses);
    vst_traceback *given[1];
    size_t count;

    for (size_t i = 0; i < MANY; i++)
        addresses[i] = 0x1000 + i;
    given[0] = vst_traceback_of(addresses, MANY);
    for (int i = 0; i < 2; i++) {
        vst_symbols *symbols = symbols_of(given, 1, 0);
        const uint32_t *indexes = vst_symbols_of(symbols, 0, &count, NULL);
        CHECK_INT(count, MANY);
        CHECK_TEXT(vst_symbols_frame(symbols, indexes[0x234])->name, "0x1234");
        vst_symbols_free(symbols);
    }
    release_all(given, 1);
    free(addresses);
}

int main(void)
{
    vst_unwinder_install(&fake_unwinder);
    TEST(each_distinct_traceback_and_frame_is_looked_up_once);
    TEST(json_is_a_list_of_lists);
    TEST(extra_frames_follow_the_frame_they_stand_behind);
    TEST(what_fails_is_told_and_leaves_nothing);
    TEST(without_an_interpreter_its_frames_are_left_out);
    TEST(addresses_of_nothing_are_shown_as_they_are);
    TEST(many_addresses_do_not_pile_up);
    return checks_end();
}
