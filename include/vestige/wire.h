/* The layout of a record: what a hook writes, what the file holds, what replay
 * reads. This header is the specification of the record stream.
 *
 * A stream is a sequence of 8-byte words in the machine's byte order.
 *
 *   bits  0-1   kind    ENTER, EXIT, RAISE, ESCAPE
 *   bits  2-31  id      of the definition entered or left; 0 is reserved
 *   bits 32-63  delta   clock ticks since the previous timed word of the stream
 *
 * An all-zero word ends the stream of a chunk: it is ENTER of the reserved id.
 * Where short calls are left out, an ENTER at the end of a chunk that is being
 * written may be taken back, which makes it zero again.
 *
 * An ESCAPE word carries whatever does not fit such a word. Its id field is
 * split:
 *
 *   bits  2-9   type    one of vst_escape
 *   bits 10-31  words   how many payload words follow
 *
 * Its delta counts like any other. Payload words are stored before the escape
 * word that announces them, so a stream cut anywhere is valid up to there.
 *
 * Types from VST_ESCAPE_FIXED on are records of memory, made by the million:
 * the type alone says how many payload words there are, and bits 10-31 are data
 * (22 bits, `head` below).
 *
 * A reader passes over types below VST_ESCAPE_FIXED that it does not know. */
#ifndef VESTIGE_WIRE_H
#define VESTIGE_WIRE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t vst_ticks; /* raw clock ticks, see clock.h */
typedef uint32_t vst_id;    /* 1 .. VST_ID_MAX; 0 means "not recorded" */

#define VST_ID_MAX ((vst_id)0x3fffffff)

typedef enum vst_kind {
    VST_ENTER = 0,
    VST_EXIT = 1,  /* left by returning (or yielding) */
    VST_RAISE = 2, /* left by an exception */
    VST_ESCAPE = 3
} vst_kind;

typedef enum vst_escape {
    /* ticks: the absolute time, from which the next delta counts */
    VST_ESCAPE_TIME = 1,
    /* thread number, absolute ticks: the following words belong to another
     * thread, which was given the rest of this chunk after its owner ended */
    VST_ESCAPE_SEGMENT = 2,
    /* id | instance << 32: a span begins that need not nest, such as an
     * annotation around an await; END names the same pair. In a checkpoint a
     * second word follows: 1 if the span was open before, 3 if it is no longer
     * on any stack. Such a BEGIN may stand between a STACK and its STACK_MORE
     */
    VST_ESCAPE_BEGIN = 3,
    /* a span of BEGIN ends. The pair alone; or the pair, byte length, bytes:
     * JSON members that became known by the end of the span, whether it is
     * still on the stack or not; or the pair and a nonzero word: the span is
     * shown to begin with the outermost of the calls that began after it and
     * are still open */
    VST_ESCAPE_END = 4,
    /* byte length, bytes: JSON members ("k": v, ...) of the innermost open span
     */
    VST_ESCAPE_ARGS = 5,
    /* id | byte length << 32, bytes: a point in time, with JSON members */
    VST_ESCAPE_INSTANT = 6,
    /* id, IEEE double */
    VST_ESCAPE_COUNTER = 7,
    /* ids, outermost first: the calls that are open now. Replay keeps the
     * common part of its own open calls, closes the rest, and opens the new
     * ones */
    VST_ESCAPE_STACK = 8,
    /* ids: the continuation of a STACK that did not fit one escape */
    VST_ESCAPE_STACK_MORE = 9,
    /* count: this many records could not be kept here */
    VST_ESCAPE_LOST = 10,
    /* stack number: the thread continues with another call stack (a greenlet).
     * A thread begins with stack 0. In a checkpoint a second word may follow: 1
     * if the stack that is left had been put away before */
    VST_ESCAPE_SWITCH = 11,
    /* 0 or 1: the hooks were removed from this thread, or are back */
    VST_ESCAPE_GAP = 12,
    /* words, ordinal, records: a checkpoint. The next `words` words are escapes
     * that say what was open when this run of the thread's words began. This is
     * the thread's run number `ordinal` (0, 1, 2 …) in the window, and
     * `records` of its words came before. A reader that has read the previous
     * run skips the checkpoint's words; any other reader begins with them */
    VST_ESCAPE_CHECKPOINT = 13,
    /* records, ticks: this many words between then and now were dropped, to
     * stay within the limit of size or time */
    VST_ESCAPE_DROPPED = 14,
    /* see operator.h: the innermost open span is an operator */
    VST_ESCAPE_OPERATOR = 15,
    /* nothing, or 1. Nothing: the language's function that began an operator's
     * span off the stack has returned, and the span continues on the stack. 1:
     * the function that ends the innermost span was entered, and the span ends
     * here */
    VST_ESCAPE_SETTLE = 16,
    /* see graph.h: the innermost open span is a node of the execution trace */
    VST_ESCAPE_NODE = 17,
    /* id | instance << 32: a span that another thread began (BEGIN) ends now. A
     * trace with such escapes has a definition of VST_DEF_FAR_ENDS */
    VST_ESCAPE_FAR_END = 18,
    /* see storage.h: storages that the innermost span was given, or that the
     * program keeps */
    VST_ESCAPE_STORAGES = 19,

    /* thread number, words: when the system gave the thread a processor and
     * when it took the processor away, oldest first, see vst_switch. Only the
     * stream of VST_THREAD_SWITCHES has these escapes. Number 0, one word:
     * every switch of all threads up to this time has been written; see
     * VST_SWITCHES_TOLD */
    VST_ESCAPE_SWITCHES = 20,
    /* begin ticks, end ticks, reason | thread << 32: the thread waited for
     * another thread. The reason is a vst_wait_reason (below), of which
     * VST_WAIT_GIL, _WORLD and _OBJECT are written; `thread` is the number of
     * the thread that held the lock for most of the time, 0: nobody, or not
     * known. A thread records nothing while it waits, but it may write the
     * escape later than the end of the wait. A trace with the metadata
     * VST_WAITS_METADATA has all such waits of its threads */
    VST_ESCAPE_WAIT = 21,
    /* 22 is unused. */

    /* see below: the innermost open span is a step of a task, or another event
     * of a task */
    VST_ESCAPE_TASK = 23,
    /* see below: the functions that are left out from here on, to stay within a
     * budget */
    VST_ESCAPE_LEFT_OUT = 24,

    /* see device.h: an activity of a device, or a call of its runtime. The
     * payload has its times; the time of the record is that of the delivery */
    VST_ESCAPE_DEVICE = 25,
    /* id: the innermost call, or C code that it ran, raised an exception. The
     * definition is a VST_DEF_INSTANT with the class as its name, and the file
     * and line of the call. Who caught the exception follows from the calls
     * that it leaves, see vst_instant */
    VST_ESCAPE_EXCEPTION = 26,

    /* 27 is unused. */

    /* id: the innermost call belongs to the language's import system and
     * imports the module that this definition names (below), or it calls an
     * import function that is not recorded */
    VST_ESCAPE_IMPORT = 28,

    /* number of a stack of the language (VST_STACK_LANGUAGE in memory.h), or
     * the number | VST_LINES_OF_ENTER if the next record is an ENTER: the open
     * calls of functions of the language, with the line that each has reached.
     * There the function makes the next call of the list or the calls of other
     * code that are open, at last the call that the ENTER begins. The list may
     * have calls that are not recorded, may have the call of the ENTER, and may
     * lack the call of an EXIT that follows. Any call that lasts VST_LINES_NS
     * or more has this escape inside of it or right before its EXIT, unless its
     * stack was too deep */
    VST_ESCAPE_LINES = 29,

    VST_ESCAPE_FIXED = 0x80,
    /* An allocation of less than 32 KiB. head: kind (5 bits, a
     * vst_memory_kind), flags << 5 (2 bits: VST_MEMORY_UNLOCKED, ...), size <<
     * 7 (15 bits); word: address / 8 (44 bits), stack << 44 (20 bits) */
    VST_ESCAPE_ALLOC = 0x80, /* one word: see VST_FIXED_WORDS */
    /* Any other allocation. head: kind (5 bits), flags << 5, for a mapping
     * VST_RANGE_ flags << 7; words: address, size, stack */
    VST_ESCAPE_ALLOC_LARGE = 0x81, /* three words */
    /* A free. head: kind; word: address */
    VST_ESCAPE_FREE = 0x82, /* one word */
    /* A free with a size, of a munmap or of a whole block
     * (VST_MEMORY_FRAMEWORK_FREE). head: kind; words: address, size */
    VST_ESCAPE_FREE_RANGE = 0x83, /* two words */
    /* A free of a recent address. head: kind (5 bits), place << 5: the last
     * address with this place that the thread allocated in this run of its
     * words (since the chunk began, or the SEGMENT in it). See vst_recent_place
     */
    VST_ESCAPE_FREE_RECENT = 0x84 /* no word */
} vst_escape;

/* A thread writes LINES with the first record that is this much later than the
 * one before. */
#define VST_LINES_NS 250000
#define VST_LINES_OF_ENTER (UINT64_C(1) << 32)

#define VST_ESCAPE_WORDS_MAX 1024u /* payload words of one escape */

/* ---- switches ------------------------------------------------------------ */

/* The stream with this number belongs to no thread of the program; it has the
 * switches of all threads. */
#define VST_THREAD_SWITCHES UINT32_MAX

/* A word of a SWITCHES escape: the lowest two bits are one of these constants,
 * the others a time in nanoseconds of CLOCK_MONOTONIC. A thread's first word
 * says its state at that time; a word equal to the word before adds nothing.
 * The state is unknown before a thread's first word and after the last time
 * that SWITCHES_TOLD names. A thread that ends has OUT at its last time,
 * followed by LOST with the value 0. */
typedef enum vst_switch {
    VST_SWITCH_OUT = 0,       /* off the processor, waiting */
    VST_SWITCH_IN = 1,        /* running */
    VST_SWITCH_PREEMPTED = 2, /* off the processor, though able to run */
    /* the value is not a time but the number of lost switches, at least: the
     * thread's state between the word before and the word after is unknown */
    VST_SWITCH_LOST = 3
} vst_switch;

/* The lowest two bits of the word after thread number 0. */
enum {
    VST_SWITCHES_TOLD = 0,
    /* No more switches follow in this window: each thread stayed in its last
     * state */
    VST_SWITCHES_END = 1
};

enum { VST_SWITCH_BITS = 2 };

static inline uint64_t vst_switch_word(uint32_t what, uint64_t value)
{
    return value << VST_SWITCH_BITS | what;
}

static inline uint32_t vst_switch_what(uint64_t word)
{
    return (uint32_t)(word & ((1u << VST_SWITCH_BITS) - 1));
}

static inline uint64_t vst_switch_value(uint64_t word)
{
    return word >> VST_SWITCH_BITS;
}

/* ---- words --------------------------------------------------------------- */

static inline uint64_t vst_word(vst_kind kind, vst_id id, uint32_t delta)
{
    return (uint64_t)delta << 32 | (uint64_t)id << 2 | (uint64_t)kind;
}

static inline uint64_t vst_word_escape(vst_escape type, uint32_t words,
                                       uint32_t delta)
{
    return (uint64_t)delta << 32 | (uint64_t)words << 10 | (uint64_t)type << 2 |
           (uint64_t)VST_ESCAPE;
}

static inline vst_kind vst_word_kind(uint64_t word)
{
    return (vst_kind)(word & 3u);
}

static inline vst_id vst_word_id(uint64_t word)
{
    return (vst_id)(word >> 2 & VST_ID_MAX);
}

static inline uint32_t vst_word_delta(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static inline uint32_t vst_word_escape_type(uint64_t word)
{
    return (uint32_t)(word >> 2 & 0xffu);
}

/* Returns the data of a word whose type is VST_ESCAPE_FIXED or more. */
static inline uint32_t vst_word_escape_head(uint64_t word)
{
    return (uint32_t)(word >> 10 & 0x3fffffu);
}

/* Payload words of the types from VST_ESCAPE_FIXED on: four bits per type, the
 * first type's in the lowest bits. */
enum {
    VST_FIXED_WORDS_BITS = 4,
    VST_FIXED_WORDS_MASK = (1 << VST_FIXED_WORDS_BITS) - 1,
    VST_ALLOC_WORDS = 1,
    VST_ALLOC_LARGE_WORDS = 3,
    VST_FREE_WORDS = 1,
    VST_FREE_RANGE_WORDS = 2,
    VST_FREE_RECENT_WORDS = 0,
    VST_FIXED_WORDS = VST_ALLOC_WORDS |
        VST_ALLOC_LARGE_WORDS << 1 * VST_FIXED_WORDS_BITS |
        VST_FREE_WORDS << 2 * VST_FIXED_WORDS_BITS |
        VST_FREE_RANGE_WORDS << 3 * VST_FIXED_WORDS_BITS |
        VST_FREE_RECENT_WORDS << 4 * VST_FIXED_WORDS_BITS
};

static inline uint32_t vst_word_escape_words(uint64_t word)
{
    uint32_t type = vst_word_escape_type(word);
    uint32_t place;

    if (type < VST_ESCAPE_FIXED)
        return vst_word_escape_head(word);
    /* An unknown type is given more words than possible, which ends the stream.
     */
    if (type > VST_ESCAPE_FREE_RECENT)
        return VST_ESCAPE_WORDS_MAX + 1u;
    place = type - VST_ESCAPE_FIXED;
    return (uint32_t)VST_FIXED_WORDS >> place * VST_FIXED_WORDS_BITS &
           (uint32_t)VST_FIXED_WORDS_MASK;
}

/* ---- memory -------------------------------------------------------------- */

/* Facts that an ALLOC_LARGE of the kind VST_MEMORY_MMAP gives about its pages.
 * Readers that do not know these bits see an ordinary mapping. */
enum {
    VST_RANGE_SHIFT = 7,
    /* Only address space: nothing can be resident before the range is made
     * accessible (PROT_NONE), or nothing was resident when it was mapped
     * (MAP_NORESERVE) or given back (madvise). */
    VST_RANGE_RESERVED = 1,
    /* Not a new mapping: the mapped part of this range becomes reserved, or
     * without VST_RANGE_RESERVED becomes usable. */
    VST_RANGE_CHANGES = 2,
    /* With VST_RANGE_CHANGES: the range's pages were found to be resident,
     * although no call made them usable. The stack is 0, and the mapping keeps
     * its own. */
    VST_RANGE_TOUCHED = 4
};

/* The head of a record of memory: the vst_memory_kind, and for an ALLOC the
 * size. */
enum { VST_HEAD_KIND_MASK = 31, VST_HEAD_SIZE_SHIFT = 7 };

static inline uint32_t vst_head_kind(uint32_t head)
{
    return head & (uint32_t)VST_HEAD_KIND_MASK;
}

/* Returns the address in the word of a VST_ESCAPE_ALLOC. */
static inline uint64_t vst_alloc_address(uint64_t word)
{
    return (word & UINT64_C(0xfffffffffff)) << 3;
}

static inline uint32_t vst_head_size(uint32_t head)
{
    return head >> VST_HEAD_SIZE_SHIFT;
}

/* Returns the VST_RANGE_ flags in the head of an ALLOC_LARGE; 9 is
 * VST_MEMORY_MMAP. */
static inline uint32_t vst_range_of_head(uint32_t head)
{
    return vst_head_kind(head) == 9 ? head >> VST_RANGE_SHIFT & 7u : 0;
}

#define VST_ALLOC_SIZE_MAX 0x7fffu   /* a larger size needs an ALLOC_LARGE */
#define VST_ALLOC_STACK_MAX 0xfffffu /* a larger stack number, too */

enum { VST_RECENT_BITS = 9, VST_RECENT_PLACES = 1 << VST_RECENT_BITS };

/* The place where FREE_RECENT looks for an address: writers and readers keep
 * equal tables of VST_RECENT_PLACES addresses per thread. */
static inline uint32_t vst_recent_place(uint64_t address)
{
    return (uint32_t)(address * 0x9e3779b97f4a7c15u >> (64 - VST_RECENT_BITS));
}

static inline uint64_t vst_word_fixed(vst_escape type, uint32_t head,
                                      uint32_t delta)
{
    return vst_word_escape(type, head, delta);
}

/* ---- waits --------------------------------------------------------------- */

/* The reason of a wait. */
typedef enum vst_wait_reason {
    VST_WAIT_NONE = 0,
    VST_WAIT_GIL = 1,    /* the language's own lock */
    VST_WAIT_LOCK = 2,   /* another lock, or the end of a thread */
    VST_WAIT_IO = 3,     /* input and output */
    VST_WAIT_SLEEP = 4,  /* time */
    VST_WAIT_CHILD = 5,  /* a child process */
    VST_WAIT_WORLD = 6,  /* all threads are stopped, or are about to be */
    VST_WAIT_OBJECT = 7, /* a lock of the language's objects */
    VST_WAIT_SPIN =
        8 /* spins: looks again and again; never recorded as a wait */
} vst_wait_reason;

enum { VST_WAIT_REASONS = VST_WAIT_SPIN + 1 };

/* The metadata that says whether waits for the language's lock were recorded:
 * true, or a string with the reason why not. */
#define VST_WAITS_METADATA "vestige.gil"
/* The metadata that says whether waits for locks of objects, and for a stopped
 * world, were recorded. */
#define VST_OBJECT_WAITS_METADATA "vestige.object_waits"
/* The metadata that names further functions that wait, as a JSON string of
 * entries with ';' between them. An entry is a reason (lock, io, sleep, child,
 * spin), then the type of a method in C or the end of a Python file's path, or
 * nothing for a function in C, then the name: "io zmq.Socket recv". */
#define VST_MORE_WAITS_METADATA "vestige.waits"

/* ---- imports ------------------------------------------------------------- */

/* The prefix of a module's name in the definition of a VST_ESCAPE_IMPORT, a
 * native function. Older traces have a call of such a function instead of the
 * escape. */
#define VST_MODULE_NAMED "<module> "
enum { VST_IMPORT_NAME_MAX = 512 }; /* longer names are cut */

/* ---- tasks --------------------------------------------------------------- */

/* Several tasks run on one thread, one at a time, by an event loop or as
 * greenlets.
 *
 * A task runs in steps. A step is a call of the task's coroutine: a TASK escape
 * follows the ENTER of that call, and the step lasts as long as the call. Right
 * before the call's end there may be another TASK escape, which says what the
 * task waits for now, or that the task has ended. If an exception is thrown
 * into a task that waits inside several coroutines, these are called one after
 * the other instead of nested; then the step has several calls, and only the
 * last one is followed by a wait or an end.
 *
 * A greenlet is a task with a stack of its own (VST_ESCAPE_SWITCH). After the
 * first SWITCH to it in each chunk, a TASK escape says whose stack this is. The
 * rest follows from the switches: calls on the stack while it is current are a
 * step, and between two steps the greenlet is switched out. */

/* The payload's first word: a vst_task_what (8 bits), number of the task << 8
 * (32 bits). Tasks are numbered from 1 within one file. The words that follow:
 */
typedef enum vst_task_what {
    /* The innermost call is a step of the task. Nothing; or, where the task
     * first appears, the byte length of its name and the bytes */
    VST_TASK_STEP = 1,
    /* The task has this name from now on: byte length, bytes */
    VST_TASK_NAMED = 2,
    /* The step ends here, and the task waits: vst_task_awaits | id of the
     * innermost waiting function << 32; then, unless the task awaits nothing,
     * the address of the awaited object; then, if that is a task, its number
     * (0: not known) */
    VST_TASK_AWAITS = 3,
    /* The task ends here: 0, or 1 if an exception ended it */
    VST_TASK_ENDS = 4,
    /* The tasks that wait for the object with this address may continue:
     * address. The task's number is 0 */
    VST_TASK_WAKES = 5,
    /* Work is handed to another thread (SUBMITS), or begins there (RUNS):
     * address of the object that stands for the work. The task's number is 0 */
    VST_TASK_SUBMITS = 6,
    VST_TASK_RUNS = 7,
    /* The current stack is this task's: byte length of its name | VST_STACK_
     * flags << 32, the name's bytes */
    VST_TASK_STACK = 8,
    /* A garbage collection calls these functions of the program on whatever
     * thread it runs: their ids. The task's number is 0 */
    VST_TASK_COLLECTORS = 9
} vst_task_what;

enum {
    VST_STACK_BEGINS = 1, /* no call was made on it yet */
    VST_STACK_HUB = 2     /* the stack runs an event loop */
};

/* The kind of object that a task waits for. */
typedef enum vst_task_awaits {
    VST_AWAITS_NOTHING = 0, /* asleep for one round, to let other tasks run */
    VST_AWAITS_FUTURE = 1,
    VST_AWAITS_TASK = 2,
    VST_AWAITS_GATHER = 3, /* several futures */
    VST_AWAITS_OTHER = 4,
    VST_AWAITS_SWITCH = 5 /* to be switched to; never in a file */
} vst_task_awaits;

enum { VST_TASK_NAME_MAX = 200 }; /* bytes; longer names are cut */

static inline uint64_t vst_task_word(vst_task_what what, uint32_t task)
{
    return (uint64_t)task << 8 | (uint64_t)what;
}

/* ---- what is left out ---------------------------------------------------- */

/* A budget: recording takes at most a share of the process's CPU time. Where
 * recording every call would take more, some functions are left out for a time.
 * Meanwhile their time counts as their caller's own. From time to time there is
 * a window in which every function is recorded again.
 *
 * VST_ESCAPE_LEFT_OUT says which functions are left out from its time on, in
 * all threads of the process, until the next such escape. Any thread may write
 * it. Its words:
 *
 *   0   VST_LEFT_OUT_ flags; from bit VST_LEFT_OUT_PASSING on (24 bits) the
 * cost that remains for calls that are left out, in millionths of the time of
 *       Python code; from bit VST_LEFT_OUT_TAKEN on (32 bits) how long the
 *       thread took to change the set of functions, in nanoseconds, 0 if
 * another thread did 1   CPU time of the process so far without the cost of
 * recording, in nanoseconds 2   the cost of recording so far, by the cost of a
 * call of each kind (src/replay/costs.h), in nanoseconds of CPU time 3   ticks
 * at which the count of calls began that led to this decision 4   word 1 at
 * that time 5…  ids of the functions; a list that does not fit goes on in a
 * further escape with VST_LEFT_OUT_MORE
 *
 * If the file drops old records, the current list is written again.
 *
 * A call that begins while its function is recorded is recorded to its end, and
 * a call that begins while its function is left out is not recorded at all.
 *
 * A reader estimates what is missing: each call that began in a period in which
 * its function was recorded stands for the missing calls in the neighbouring
 * periods, in proportion to CPU time, as many as fit. A call that was open
 * throughout such a period stands only for itself. The value of
 * VST_BUDGET_METADATA is JSON, the share: 0.05. */
#define VST_BUDGET_METADATA "vestige.budget"

enum {
    VST_LEFT_OUT_PYTHON =
        1, /* all definitions of VST_DEF_PYTHON and VST_DEF_NATIVE */
    VST_LEFT_OUT_WINDOW = 2, /* nothing is left out: a window begins */
    VST_LEFT_OUT_MORE = 4,   /* continues the list of the previous escape */
    VST_LEFT_OUT_STILL = 8 /* functions were left out before this escape, too */
};

enum {
    VST_LEFT_OUT_PASSING = 8, /* bits of the first word */
    VST_LEFT_OUT_TAKEN = 32
};

enum { VST_LEFT_OUT_HEAD = 5 }; /* words before the ids */

#ifdef __cplusplus
}
#endif
#endif
