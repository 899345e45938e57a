/* Who caught an exception: scripts of events on one side, what is delivered on
 * the other.
 *
 * In a script, +a enters a, -a returns from it, !a is an exception that leaves
 * it, *x marks the exception x; (s begins a span and )s ends it; ~1 switches to
 * stack 1, | says that nothing is open. "x a>b" was raised in a and caught in
 * b; "x a>" was not caught, of "x a?" that is not known. */
#include <stdio.h>
#include <string.h>

#include <vestige/tracer.h>

#include "check.h"

enum { EVENTS = 64 };

static char got[512];

static char letter(vst_id id)
{
    return (char)(id != 0 ? 'a' + (int)id - 1 : '-');
}

static vst_status take(void *ctx, const vst_instant *mark)
{
    const char *how = mark->end == VST_EXCEPTION_UNKNOWN ? "?" : ">";
    size_t length = strlen(got);

    (void)ctx;
    CHECK(mark->end != VST_NO_EXCEPTION && mark->thread == 7);
    snprintf(got + length, sizeof got - length, "%s%c%d %c%s%.1s",
             length != 0 ? ", " : "", letter(mark->id), (int)mark->time_ns,
             letter(mark->raised_in), how,
             mark->end == VST_EXCEPTION_CAUGHT
                 ? (char[]){letter(mark->caught_in), 0}
                 : "");
    return VST_OK;
}

static int64_t same_ns(void *ctx, vst_ticks ticks)
{
    (void)ctx;
    return (int64_t)ticks;
}

static vst_escape escape_of(char verb)
{
    return verb == '*'   ? VST_ESCAPE_EXCEPTION
           : verb == '(' ? VST_ESCAPE_BEGIN
           : verb == ')' ? VST_ESCAPE_END
           : verb == '~' ? VST_ESCAPE_SWITCH
                         : VST_ESCAPE_STACK;
}

/* Plays a script, one event every ten ns. Returns the delivered marks. */
static const char *play(const char *script)
{
    static uint64_t payloads[EVENTS];
    static vst_compressed_event events[EVENTS];
    const vst_time_converter converter = {same_ns, NULL};
    const vst_sink sink = {.instant = take};
    vst_matcher *matcher;
    size_t count = 0;

    got[0] = 0;
    for (; *script != '\0'; script++) {
        const char *kind = strchr("+-!", *script);
        vst_compressed_event *event = &events[count];
        uint32_t words = *script != '|';
        vst_id id = words ? (vst_id)(script[1] - 'a' + 1) : 0;

        *event =
            (vst_compressed_event){.where = {1, 7}, .ticks = 10 * (count + 1)};
        payloads[count] = *script == '~' ? (uint64_t)(script[1] - '0') : id;
        if (kind != NULL) {
            event->key = vst_trace_key_make((uint32_t)(kind - "+-!"), id);
        } else {
            event->payload = &payloads[count];
            event->payload_words = words;
            event->key = vst_trace_key_make(
                vst_trace_key_kind_of_escape(escape_of(*script)), 0);
        }
        script += words;
        count++;
    }
    CHECK_INT(vst_matcher_create(&matcher), VST_OK);
    CHECK_INT(vst_matcher_feed(matcher, &converter, events, count, 1000, &sink),
              VST_OK);
    vst_matcher_destroy(matcher);
    return got;
}

static void the_call_that_returns_has_caught_it(void)
{
    CHECK_TEXT(play("+a+b+c*x!c!b-a"), "x40 c>a");
    CHECK_TEXT(play("+a*x-a"), "x20 a>a");
    CHECK_TEXT(play("+a+b*x!b+c-c"), "x30 b>a"); /* after the catch, a continues
                                                  * to its end */
}

static void what_leaves_the_outermost_call_is_not_caught(void)
{
    CHECK_TEXT(play("+a+b*x!b!a"), "x30 b>");
    CHECK_TEXT(play("*x+a-a"), ""); /* an exception that code outside the
                                     * program raised */
}

static void calls_on_the_way_change_nothing(void)
{
    /* c is called by a finally of b; it raises and catches y. */
    CHECK_TEXT(play("+a+b*x+c+d*y!d-c!b-a"), "y60 d>c, x30 b>a");
}

static void the_next_one_that_comes_there_shows_that_it_was_caught(void)
{
    CHECK_TEXT(play("+a+b*x!b+b*y!b+b*z!b!a"), "x30 b>a, y60 b>a, z90 b>");
    CHECK_TEXT(play("+a*x*y!a"), "x20 a>a, y30 a>");
}

static void a_span_beside_the_calls_catches_nothing(void)
{
    CHECK_TEXT(play("+a(s*x)s!a"), "x30 a>");
    CHECK_TEXT(play("+a(s+b*x!b)s-a"), "x40 b>a");
    CHECK_TEXT(play("+a(s+b)s*x!b-a"), "x50 b>a");
}

static void each_stack_has_its_own(void)
{
    CHECK_TEXT(play("+a*x~1+b*y!b~0-a"), "x20 a>a, y50 b>");
}

static void where_records_are_missing_it_is_not_known(void)
{
    CHECK_TEXT(play("+a+b*x|+c-c"), "x30 b?");
    CHECK_TEXT(play("+a+b*x-a"), "x30 b?");
}

int main(void)
{
    TEST(the_call_that_returns_has_caught_it);
    TEST(what_leaves_the_outermost_call_is_not_caught);
    TEST(calls_on_the_way_change_nothing);
    TEST(the_next_one_that_comes_there_shows_that_it_was_caught);
    TEST(a_span_beside_the_calls_catches_nothing);
    TEST(each_stack_has_its_own);
    TEST(where_records_are_missing_it_is_not_known);
    return checks_end();
}
