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
 * An ESCAPE word carries what does not fit. Its id field is split:
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
    /* ticks: absolute time; the next delta counts from it */
    VST_ESCAPE_TIME = 1,
    /* thread number, absolute ticks: the words that follow belong to another
     * thread, which was given the rest of a chunk whose owner ended */
    VST_ESCAPE_SEGMENT = 2,
    /* id | instance << 32: a span that need not nest, such as an annotation
     * around an await; END names the same pair. A second word is there in a
     * checkpoint: 1 says that it was open before, 3 that it is on no stack any
     * more. Such a BEGIN may stand between a STACK and its STACK_MORE */
    VST_ESCAPE_BEGIN = 3,
    /* The pair alone; or the pair, byte length, bytes: JSON members that became
     * known by the end of the span, wherever it is by then; or the pair and one
     * word other than 0: where calls that began after the span are still open
     * when it ends, it is shown to begin with the outermost */
    VST_ESCAPE_END = 4,
    /* byte length, bytes: JSON members ("k": v, ...) of the span on top */
    VST_ESCAPE_ARGS = 5,
    /* id | byte length << 32, bytes: a point in time, with JSON members */
    VST_ESCAPE_INSTANT = 6,
    /* id, IEEE double */
    VST_ESCAPE_COUNTER = 7,
    /* ids, outermost first: the calls open right now. Replay keeps the common
     * part of what it had open, closes the rest, opens what is new */
    VST_ESCAPE_STACK = 8,
    /* ids: the continuation of a STACK that did not fit one escape */
    VST_ESCAPE_STACK_MORE = 9,
    /* count: so many records could not be kept here */
    VST_ESCAPE_LOST = 10,
    /* stack number: the thread goes on with another call stack (a greenlet).
     * 0 is the stack a thread begins with. A second word, 1, is there in a
     * checkpoint: the stack that is left was put away before */
    VST_ESCAPE_SWITCH = 11,
    /* 0 or 1: the hooks left this thread, or came back to it */
    VST_ESCAPE_GAP = 12,
    /* words, ordinal, records: a checkpoint. The `words` words that follow it
     * are escapes which tell what was open when this run of the thread's words
     * began; it is the run number `ordinal` (0, 1, 2 …) of the thread in the
     * window, and `records` words of the thread went before it. A reader that
     * has read the run before it skips them; any other begins with them */
    VST_ESCAPE_CHECKPOINT = 13,
    /* records, ticks: so many words between then and now were dropped, to stay
     * within the limit of size or time */
    VST_ESCAPE_DROPPED = 14,
    /* see operator.h: the span on top is an operator */
    VST_ESCAPE_OPERATOR = 15,
    /* nothing, or 1: the language's function that began the operator's span
     * which is beside the stack has returned, and the span goes on from here on
     * the stack; or the one that ends the span on top was entered, and it ends
     * here */
    VST_ESCAPE_SETTLE = 16,
    /* see graph.h: the span on top is a node of the execution trace */
    VST_ESCAPE_NODE = 17,
    /* id | instance << 32: a span that another thread began (BEGIN) ends now.
     * Where there are any, there is a definition of VST_DEF_FAR_ENDS */
    VST_ESCAPE_FAR_END = 18,
    /* see storage.h: what the span on top was given, or the program has */
    VST_ESCAPE_STORAGES = 19,

    /* thread number, words: when the system gave the thread a processor and
     * when it took it away, oldest first, see vst_switch. Only the stream of
     * VST_THREAD_SWITCHES has these. Number 0, one word: every switch of all
     * threads up to this time has been told; see VST_SWITCHES_TOLD */
    VST_ESCAPE_SWITCHES = 20,
    /* ticks when it began, ticks when it ended, reason | thread << 32: the
     * thread waited for what another one held. The reason is a vst_wait_reason
     * (below), of which VST_WAIT_GIL, _WORLD and _OBJECT are written; thread
     * is the number of the one that had it for most of the time, 0: nobody, or
     * not known. The thread records nothing while it waits, but the escape may
     * be written later than the wait ended: its times are its own. A trace with
     * the metadata VST_WAITS_METADATA has all such waits of its threads */
    VST_ESCAPE_WAIT = 21,
    /* 22 is not used. */

    /* see below: the span on top is a step of a task, or something else that
     * happens to a task */
    VST_ESCAPE_TASK = 23,
    /* see below: which functions are left out from here on, to stay within
     * a budget */
    VST_ESCAPE_LEFT_OUT = 24,

    /* see device.h: what a device did, or a call of its runtime. The times are
     * in the payload; the record's own is when it was delivered */
    VST_ESCAPE_DEVICE = 25,
    /* id: an exception was raised in the call on top, or C code that this call
     * ran raised it. The definition is a VST_DEF_INSTANT with the class as its
     * name, and the file and the line of the call. Who caught it follows from
     * the calls that it leaves, see vst_instant */
    VST_ESCAPE_EXCEPTION = 26,

    /* 27 is not used. */

    /* id: the call on top is one of the language's import system, and imports
     * the module that this definition names (below); or it calls such a
     * function, which is not recorded */
    VST_ESCAPE_IMPORT = 28,

    VST_ESCAPE_FIXED = 0x80,
    /* An allocation (vst_memory_kind, see memory.h) of less than 32 KiB.
     * head: kind (5 bits), flags << 5 (2 bits: VST_MEMORY_UNLOCKED, ...), size
     * << 7 (15 bits); word: address / 8 (44 bits), stack << 44 (20 bits) */
    VST_ESCAPE_ALLOC = 0x80, /* one word: see VST_FIXED_WORDS */
    /* Any other: head: kind (5 bits), flags << 5, of a mapping VST_RANGE_ flags
     * << 7; words: address, size, stack */
    VST_ESCAPE_ALLOC_LARGE = 0x81, /* three words */
    /* head: kind; word: address */
    VST_ESCAPE_FREE = 0x82, /* one word */
    /* head: kind; words: address, size: of a munmap; of the kind
     * VST_MEMORY_FRAMEWORK_FREE: of a whole block */
    VST_ESCAPE_FREE_RANGE = 0x83, /* two words */
    /* head: kind (5 bits), place << 5: the address that this thread allocated
     * last of those with this place, in the same run of its words (since the
     * chunk began, or the SEGMENT in it). See vst_recent_place */
    VST_ESCAPE_FREE_RECENT = 0x84 /* no word */
} vst_escape;

#define VST_ESCAPE_WORDS_MAX 1024u /* payload words of one escape */

/* ---- switches ------------------------------------------------------------ */

/* The stream with this number belongs to no thread of the program: it has the
 * switches of all of them. */
#define VST_THREAD_SWITCHES UINT32_MAX

/* A word of a SWITCHES escape: the lowest two bits are one of these, the others
 * a time in nanoseconds of CLOCK_MONOTONIC. The first word of a thread says
 * what it did then; one that says the same as the word before, of the same
 * time, says nothing new. What a thread did before its first word, or after the
 * last time that SWITCHES_TOLD names, is not known. A thread that ends has OUT
 * as its last time, and LOST of no switch behind it. */
typedef enum vst_switch {
    VST_SWITCH_OUT = 0,       /* off the processor: it waits */
    VST_SWITCH_IN = 1,        /* it runs */
    VST_SWITCH_PREEMPTED = 2, /* off the processor, though it could run */
    /* In place of a time, how many switches were lost here at least: what the
     * thread did between the word before and the word after is not known */
    VST_SWITCH_LOST = 3
} vst_switch;

/* The same bits of a word behind thread number 0. */
enum {
    VST_SWITCHES_TOLD = 0,
    /* And nothing more is told of this window: each thread went on as it was */
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

/* The data of a word whose type is VST_ESCAPE_FIXED or more. */
static inline uint32_t vst_word_escape_head(uint64_t word)
{
    return (uint32_t)(word >> 10 & 0x3fffffu);
}

/* Payload words of the types from VST_ESCAPE_FIXED on: four bits a type, the
 * first type's are the lowest. */
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
    /* A type that is not known has more words than any: the stream ends. */
    if (type > VST_ESCAPE_FREE_RECENT)
        return VST_ESCAPE_WORDS_MAX + 1u;
    place = type - VST_ESCAPE_FIXED;
    return (uint32_t)VST_FIXED_WORDS >> place * VST_FIXED_WORDS_BITS &
           (uint32_t)VST_FIXED_WORDS_MASK;
}

/* ---- memory ------------------------------------------------------------- */

/* What an ALLOC_LARGE of the kind VST_MEMORY_MMAP says of its pages. Readers
 * that do not know these bits see a mapping like any other. */
enum {
    VST_RANGE_SHIFT = 7,
    /* Address space alone: nothing can be resident there before it is made
     * accessible (PROT_NONE), or nothing was when it was mapped
     * (MAP_NORESERVE) or given back (madvise). */
    VST_RANGE_RESERVED = 1,
    /* It maps nothing: what is mapped of this range is reserved from here on,
     * or without VST_RANGE_RESERVED is not any more. */
    VST_RANGE_CHANGES = 2,
    /* With VST_RANGE_CHANGES: no call made the range usable, its pages were
     * found to be resident. The stack is 0: it stays that of the mapping. */
    VST_RANGE_TOUCHED = 4
};

/* The head of a record of memory: which vst_memory_kind it is of, and of an
 * ALLOC its size. */
enum { VST_HEAD_KIND_MASK = 31, VST_HEAD_SIZE_SHIFT = 7 };

static inline uint32_t vst_head_kind(uint32_t head)
{
    return head & (uint32_t)VST_HEAD_KIND_MASK;
}

/* Of the word of a VST_ESCAPE_ALLOC. */
static inline uint64_t vst_alloc_address(uint64_t word)
{
    return (word & UINT64_C(0xfffffffffff)) << 3;
}

static inline uint32_t vst_head_size(uint32_t head)
{
    return head >> VST_HEAD_SIZE_SHIFT;
}

/* The VST_RANGE_ flags in the head of an ALLOC_LARGE; 9 is VST_MEMORY_MMAP. */
static inline uint32_t vst_range_of_head(uint32_t head)
{
    return vst_head_kind(head) == 9 ? head >> VST_RANGE_SHIFT & 7u : 0;
}

#define VST_ALLOC_SIZE_MAX 0x7fffu   /* of an ALLOC; what is more is _LARGE */
#define VST_ALLOC_STACK_MAX 0xfffffu /* the same */

enum { VST_RECENT_BITS = 9, VST_RECENT_PLACES = 1 << VST_RECENT_BITS };

/* Where FREE_RECENT looks for an address: writers and readers keep the same
 * table of VST_RECENT_PLACES addresses a thread. */
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

/* What a thread waited for. */
typedef enum vst_wait_reason {
    VST_WAIT_NONE = 0,
    VST_WAIT_GIL = 1,   /* the language's own lock */
    VST_WAIT_LOCK = 2,  /* another lock, or the end of a thread */
    VST_WAIT_IO = 3,    /* input and output */
    VST_WAIT_SLEEP = 4, /* time */
    VST_WAIT_CHILD = 5, /* a child process */
    VST_WAIT_WORLD = 6, /* all threads stand still, or are to */
    VST_WAIT_OBJECT = 7 /* a lock of the language's objects */
} vst_wait_reason;

enum { VST_WAIT_REASONS = VST_WAIT_OBJECT + 1 };

/* The metadata that says whether waits for the language's lock were recorded:
 * true, or a string that says why not. */
#define VST_WAITS_METADATA "vestige.gil"
/* The same of waits for locks of objects, and for a world that stands still. */
#define VST_OBJECT_WAITS_METADATA "vestige.object_waits"

/* ---- imports ------------------------------------------------------------- */

/* The definition of a VST_ESCAPE_IMPORT is that of a native function whose name
 * is this and the module's. Older traces have a call of such a function in the
 * place of the escape. */
#define VST_MODULE_NAMED "<module> "
enum { VST_IMPORT_NAME_MAX = 512 }; /* longer names are cut */

/* ---- tasks --------------------------------------------------------------- */

/* Tasks take turns on one thread, run by an event loop or as greenlets.
 *
 * A task runs in steps. A step is a call of the task's coroutine: the ENTER of
 * that call is followed by a TASK escape, and the step lasts as long as the
 * call. Right before the call's end there may be another one, that says what
 * the task waits for now, or that it has ended. If an exception is thrown into
 * a task that waits inside several coroutines, these are called one after the
 * other instead of one inside the other; then the step has several calls, and
 * only the last of them is followed by a wait or an end.
 *
 * A greenlet is a task with a stack of its own (VST_ESCAPE_SWITCH). Behind the
 * first SWITCH to it in each chunk a TASK escape says whose stack that is. The
 * rest follows from the switches: what is called on the stack while it is the
 * current one is a step, and between two steps it is switched out. */

/* The payload's first word: what (8 bits), number of the task << 8 (32 bits).
 * Numbers are given out one after the other from 1, in one file. The words
 * behind it: */
typedef enum vst_task_what {
    /* The call on top is a step of the task. Nothing, or where the task is
     * introduced the byte length of its name and its bytes */
    VST_TASK_STEP = 1,
    /* The task has this name from now on: the same */
    VST_TASK_NAMED = 2,
    /* The step ends here, and the task waits: vst_task_awaits | id of the
     * innermost function that waits << 32, address of the object that it waits
     * for, unless that is nothing, number of the task if that is one (0: not
     * known) */
    VST_TASK_AWAITS = 3,
    /* The task ends here: 0, or 1 if an exception ends it */
    VST_TASK_ENDS = 4,
    /* Whoever waits for the object with this address may go on: address. The
     * task's number is 0 */
    VST_TASK_WAKES = 5,
    /* Work is handed to another thread, or begins there: address of the object
     * that stands for it. The task's number is 0 */
    VST_TASK_SUBMITS = 6,
    VST_TASK_RUNS = 7,
    /* The current stack is this task's: byte length of its name | VST_STACK_
     * flags << 32, the name's bytes */
    VST_TASK_STACK = 8,
    /* A garbage collection calls these functions of the program, wherever the
     * thread is: an id each. The task's number is 0 */
    VST_TASK_COLLECTORS = 9
} vst_task_what;

enum {
    VST_STACK_BEGINS = 1, /* nothing was called on it yet */
    VST_STACK_HUB = 2     /* it runs an event loop */
};

/* What kind of object a task waits for. */
typedef enum vst_task_awaits {
    VST_AWAITS_NOTHING = 0, /* the other tasks shall have their turn */
    VST_AWAITS_FUTURE = 1,
    VST_AWAITS_TASK = 2,
    VST_AWAITS_GATHER = 3, /* several futures */
    VST_AWAITS_OTHER = 4,
    VST_AWAITS_SWITCH = 5 /* to be switched to; not in a file */
} vst_task_awaits;

enum { VST_TASK_NAME_MAX = 200 }; /* bytes; what is longer is cut */

static inline uint64_t vst_task_word(vst_task_what what, uint32_t task)
{
    return (uint64_t)task << 8 | (uint64_t)what;
}

/* ---- what is left out ---------------------------------------------------- */

/* A budget: recording takes at most a share of the process's CPU time. Where
 * recording every call would take more, some functions are left out for a time.
 * Their time is their caller's own meanwhile. From time to time there is a
 * window in which every function is recorded again.
 *
 * VST_ESCAPE_LEFT_OUT says which functions are left out from its time on, in
 * all threads of the process, until the next one. Any thread may have it. Its
 * words:
 *
 *   0   VST_LEFT_OUT_ flags; from VST_LEFT_OUT_PASSING on (24 bits) what calls
 *       that are left out cost all the same, in millionths of the time of
 *       Python code; from VST_LEFT_OUT_TAKEN on (32 bits) how long the thread
 *       took to change what is left out, in nanoseconds, 0 if another one did
 *   1   CPU time of the process so far without what recording cost, in
 *       nanoseconds
 *   2   what recording cost so far, by the cost of a call of each kind
 *       (src/replay/costs.h), in nanoseconds of CPU time
 *   3   ticks since which calls were counted to decide this
 *   4   word 1 as it was then
 *   5…  ids of the functions; a list that does not fit goes on in a further
 *       escape with VST_LEFT_OUT_MORE
 *
 * Where the file drops what is old, what is left out is told again.
 *
 * A call that begins while its function is recorded is recorded to its end, and
 * one that begins while it is left out is not recorded at all.
 *
 * A reader estimates what is missing: each call that began in a stretch with
 * its function recorded stands for those in the stretches beside it, by CPU
 * time, as far as they fit in there. One that was open through such a stretch
 * stands for itself alone. The value of VST_BUDGET_METADATA is JSON, the share:
 * 0.05. */
#define VST_BUDGET_METADATA "vestige.budget"

enum {
    VST_LEFT_OUT_PYTHON = 1, /* every VST_DEF_PYTHON and VST_DEF_NATIVE */
    VST_LEFT_OUT_WINDOW = 2, /* nothing is left out; a window begins */
    VST_LEFT_OUT_MORE = 4,   /* goes on with the list of the escape before */
    VST_LEFT_OUT_STILL = 8   /* before it functions were left out, too */
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
