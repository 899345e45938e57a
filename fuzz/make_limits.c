/* Traces that would take far more memory than their size if readers believed
 * their claims; every way of reading is tried. */
#include <string.h>

#include <vestige/memory.h>

#include "make_corpus.h"
#include "target.h"
#include "trace_input.h"

enum { DEEP = 3000, SWITCHES = 1000, NAME_MAX = 3000, MANY = 900 };

#define HUGE_ID (VST_ID_MAX - 5)
#define HUGE_STACK 0xfffffff0u

static void begin(builder *b, unsigned pages)
{
    builder_init(b);
    builder_definitions(b, pages);
    builder_window(b, 0, 1000, 0);
    builder_thread(b, 1, 42, "MainThread");
}

static void begin_records(builder *b, unsigned pages)
{
    builder_records(b, 0, 1, 1000, pages);
}

static void end(builder *b, const char *name)
{
    uint8_t all[INPUT_CHOICES] = {0, 0, 1};

    save_input_as("limit", b, b->size, name, all);
    builder_free(b);
}

static void call(builder *b, vst_id id)
{
    builder_enter(b, id, 10);
    builder_exit(b, id, 10);
}

static void make_id(const char *name, vst_definition_kind kind)
{
    builder b;

    begin(&b, 1);
    builder_define(&b, VST_DEF_PYTHON, 1, "f", "a.py", 1);
    builder_define(&b, (unsigned)kind, HUGE_ID, "g", "", 1);
    begin_records(&b, 1);
    for (int i = 0; i < 100; i++)
        call(&b, HUGE_ID);
    end(&b, name);
}

/* Adds a call of function 1 on top of the parent. */
static void put_stack(builder *b, vst_stack_id id, vst_stack_id parent)
{
    builder_stack(b, id, parent, VST_STACK_LANGUAGE, UINT64_C(1) << 32 | 7);
}

static void allocate(builder *b, uint64_t address, vst_stack_id stack)
{
    builder_word(b, (uint64_t)10 << 32 | (uint64_t)VST_MEMORY_MALLOC << 10 |
                        (uint64_t)VST_ESCAPE_ALLOC_LARGE << 2 | VST_ESCAPE);
    builder_word(b, address);
    builder_word(b, 100);
    builder_word(b, stack);
}

/* The stacks of a recursion, with one allocation each; if wanted, one stack has
 * a number that is far too large. */
static void make_stacks(const char *name, vst_stack_id count, bool huge)
{
    builder b;

    begin(&b, 20);
    builder_entry(&b, &(vst_file_entry){.kind = VST_ENTRY_MEMORY}, "", "");
    builder_define(&b, VST_DEF_PYTHON, 1, "recurse", "a.py", 1);
    for (vst_stack_id id = 1; id <= count; id++)
        put_stack(&b, id, id - 1);
    if (huge)
        put_stack(&b, HUGE_STACK, 1);
    begin_records(&b, 20);
    for (vst_stack_id id = 1; id <= count; id++)
        allocate(&b, UINT64_C(4096) * id, id);
    if (huge)
        allocate(&b, 4096, HUGE_STACK);
    end(&b, name);
}

static void make_recursion(const char *name, const char *function)
{
    builder b;

    begin(&b, 2);
    builder_define(&b, VST_DEF_PYTHON, 1, function, "a.py", 1);
    begin_records(&b, 20);
    for (int i = 0; i < DEEP; i++)
        builder_enter(&b, 1, 3000);
    end(&b, name);
}

/* The deepest possible input: its payload is one call, repeated. */
static void make_deepest(void)
{
    builder b;

    begin(&b, 1);
    builder_define(&b, VST_DEF_PYTHON, 1, "f", "a.py", 1);
    begin_records(&b, 240);
    builder_enter(&b, 1, 10);
    builder_chunk(&b)->magic = 120000;
    end(&b, "deepest");
}

/* Two stacks that alternate: each switch puts all calls of a stack away. */
static void make_switches(void)
{
    builder b;

    begin(&b, 1);
    builder_define(&b, VST_DEF_PYTHON, 1, "f", "a.py", 1);
    begin_records(&b, 20);
    for (uint64_t i = 0; i < 2; i++) {
        builder_escape(&b, VST_ESCAPE_SWITCH, 10, &i, 1);
        for (int k = 0; k < DEEP / 4; k++)
            builder_enter(&b, 1, 10);
    }
    for (uint64_t i = 0; i < SWITCHES; i++)
        builder_escape(&b, VST_ESCAPE_SWITCH, 10, &(uint64_t){i & 1}, 1);
    end(&b, "switches");
}

static void make_functions(void)
{
    builder b;

    begin(&b, 16);
    for (vst_id id = 1; id <= MANY; id++)
        builder_define(&b, VST_DEF_NATIVE, id, "", "", 0);
    begin_records(&b, 4);
    for (vst_id id = 1; id <= MANY / 4; id++)
        call(&b, id * 4);
    end(&b, "functions");
}

static void make_threads(void)
{
    builder b;

    begin(&b, 10);
    builder_define(&b, VST_DEF_PYTHON, 1, "f", "a.py", 1);
    for (unsigned i = 0; i < 500; i++)
        builder_thread(&b, UINT32_MAX - i, i, "t");
    begin_records(&b, 1);
    call(&b, 1);
    end(&b, "threads");
}

void make_limits(void)
{
    char name[NAME_MAX + 1];

    memset(name, 'x', NAME_MAX);
    name[NAME_MAX] = '\0';
    make_id("id", VST_DEF_PYTHON);
    make_id("id_of_operator", VST_DEF_OPERATOR);
    make_stacks("stack", 1, true);
    make_stacks("stacks", DEEP / 4, false);
    make_recursion("recursion", "recurse");
    make_recursion("long_name", name);
    make_deepest();
    make_switches();
    make_functions();
    make_threads();
}
