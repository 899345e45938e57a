/* Scopes decide which calls are recorded: by depth, inside given functions,
 * also with exits that name an outer call, lists of calls and switched
 * stacks. */
#include "check.h"
#include "record/scope.h"

enum { MAIN = 1, WANTED, OTHER, LEAF, GC, TOO_LARGE = 1 << 25 };

static vst__scope *scope;

static void begin(uint32_t max_depth, bool only)
{
    const vst__scope_options options = {max_depth, only};

    vst__scope_ids_clear();
    vst__scope_id_define(GC, VST_DEF_GC);
    vst__scope_id_want(WANTED);
    CHECK(vst__scope_begin(&scope, &options));
}

static bool enter(vst_id id)
{
    return vst__scope_takes(scope, VST_ENTER, id);
}

static bool leave(vst_id id)
{
    return vst__scope_takes(scope, VST_EXIT, id);
}

static bool describes(void)
{
    const uint64_t none = 0;

    return vst__scope_takes_escape(scope, VST_ESCAPE_ARGS, &none);
}

static void switch_to(uint64_t stack)
{
    CHECK(vst__scope_takes_escape(scope, VST_ESCAPE_SWITCH, &stack));
}

static void calls_deeper_than_the_limit_are_left_out(void)
{
    begin(2, false);
    CHECK(enter(MAIN) && enter(OTHER) && describes());
    CHECK(!enter(LEAF) && !describes());
    CHECK(enter(GC) && describes()); /* not a call, so recorded at any depth */
    CHECK(leave(GC) && !describes());
    CHECK(!leave(LEAF) && describes());
    CHECK(!enter(TOO_LARGE) && !leave(TOO_LARGE));
    CHECK(leave(OTHER) && enter(OTHER) && leave(OTHER) && leave(MAIN));
}

static bool names_import(void)
{
    const uint64_t name = LEAF;

    return vst__scope_takes_escape(scope, VST_ESCAPE_IMPORT, &name);
}

static void the_name_of_an_import_is_taken_of_the_first_call_left_out(void)
{
    begin(2, false);
    CHECK(enter(MAIN) && names_import());
    CHECK(enter(OTHER) && names_import());
    CHECK(!enter(LEAF) && names_import() && !describes());
    CHECK(!enter(LEAF) && !names_import()); /* belongs to another import,
                                             * further in */
    CHECK(!leave(LEAF) && names_import());
    CHECK(!leave(LEAF) && leave(OTHER) && leave(MAIN));
}

static void an_exit_may_name_a_call_further_out(void)
{
    begin(2, false);
    CHECK(enter(MAIN) && enter(OTHER) && !enter(LEAF) && !enter(LEAF));
    CHECK(!leave(WANTED)); /* no open call has this function */
    CHECK(leave(MAIN));
    CHECK(enter(MAIN) && enter(OTHER) && !enter(OTHER));
}

static void only_what_is_inside_of_a_function_is_taken(void)
{
    begin(0, true);
    CHECK(!enter(MAIN) && enter(WANTED) && enter(LEAF) && enter(WANTED));
    CHECK(leave(WANTED) && leave(LEAF) && leave(WANTED));
    CHECK(!enter(LEAF) && !leave(LEAF) && !leave(MAIN));
    begin(1, true);
    CHECK(!enter(MAIN) && enter(WANTED) && !enter(LEAF) && !leave(LEAF));
}

static void calls_that_are_open_at_the_start_have_no_depth(void)
{
    vst_id ids[] = {MAIN, OTHER, LEAF};

    begin(1, false);
    CHECK_INT(vst__scope_list(scope, ids, 3, true), 3);
    CHECK(enter(OTHER) && !enter(LEAF) && !leave(LEAF) && leave(OTHER));
    CHECK(leave(LEAF) && enter(LEAF) && leave(LEAF)); /* LEAF is now called by
                                                       * OTHER */
    begin(0, true);
    ids[1] = WANTED;
    CHECK_INT(vst__scope_list(scope, ids, 3, true), 2);
    CHECK_INT(ids[0], WANTED);
    CHECK_INT(ids[1], LEAF);
    CHECK(leave(LEAF) && enter(OTHER) && leave(OTHER) && leave(WANTED));
    CHECK(!leave(MAIN));
}

static void a_list_keeps_what_it_confirms(void)
{
    vst_id ids[] = {MAIN, OTHER, LEAF};

    begin(2, false);
    CHECK(enter(MAIN) && enter(WANTED) && !enter(LEAF));
    CHECK_INT(vst__scope_list(scope, ids, 3, false), 2);
    CHECK(!leave(LEAF) && leave(OTHER) && leave(MAIN));
    CHECK_INT(vst__scope_list(scope, NULL, 0, false), 0);
    CHECK(enter(LEAF) && describes());
}

static void each_stack_has_its_own_depth(void)
{
    begin(2, false);
    CHECK(enter(MAIN) && enter(OTHER) && !enter(LEAF));
    switch_to(7);
    CHECK(describes() && enter(OTHER) && enter(LEAF) && !enter(LEAF));
    switch_to(0);
    CHECK(!describes() && !leave(LEAF) && leave(OTHER));
    switch_to(7);
    CHECK(!leave(LEAF) && leave(LEAF) && leave(OTHER));
    switch_to(8); /* stack 7 is empty, so its state is freed */
    CHECK(enter(OTHER));
    switch_to(0);
    CHECK(leave(MAIN));
    begin(2, false); /* frees the state of stack 8 */
    switch_to(8);
    CHECK(!leave(OTHER));
}

static void a_scope_of_every_call_is_none(void)
{
    const vst__scope_options all = {0, false};

    CHECK(vst__scope_begin(&scope, &all));
    CHECK(scope == NULL);
}

int main(void)
{
    TEST(calls_deeper_than_the_limit_are_left_out);
    TEST(the_name_of_an_import_is_taken_of_the_first_call_left_out);
    TEST(an_exit_may_name_a_call_further_out);
    TEST(only_what_is_inside_of_a_function_is_taken);
    TEST(calls_that_are_open_at_the_start_have_no_depth);
    TEST(a_list_keeps_what_it_confirms);
    TEST(each_stack_has_its_own_depth);
    TEST(a_scope_of_every_call_is_none);
    return checks_end();
}
