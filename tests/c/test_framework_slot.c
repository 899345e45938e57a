/* Replacing a function that a library calls within itself, and restoring the
 * function. */
#include <vestige/operator.h>

#include "check.h"
#include "slot_library.h"

static int instead(int of)
{
    return -of;
}

static void what_a_library_calls_within_itself_is_exchanged_and_put_back(void)
{
    for (int i = 0; i < 3; i++) {
        CHECK_INT(slot_ask(4), 50);
        CHECK(vst_call_instead("slot_value", (void *)slot_value,
                               (void *)instead));
        CHECK_INT(slot_ask(4), -40);
        CHECK_INT(slot_value(4), 5); /* other slots still call the original */
        CHECK(vst_call_instead(NULL, NULL, NULL));
        CHECK_INT(slot_ask(4), 50);
    }
}

static void a_function_without_a_slot_is_left_alone(void)
{
    CHECK(!vst_call_instead("slot_none", (void *)slot_value, (void *)instead));
    CHECK_INT(slot_ask(4), 50);
    CHECK(vst_call_instead(NULL, NULL, NULL));
}

int main(void)
{
    TEST(what_a_library_calls_within_itself_is_exchanged_and_put_back);
    TEST(a_function_without_a_slot_is_left_alone);
    return checks_end();
}
