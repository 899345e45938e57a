/* See view_random.h. */
#include "view_random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IDS = 12, STACK_MAX = 60, WORDS_MOST = 40 /* words of one record */ };

typedef struct thread_state {
    unsigned number;
    vst_ticks now;
    vst_id stack[STACK_MAX];
    unsigned depth;
    unsigned instance;
} thread_state;

uint64_t random_number(view_random *random)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return random->state;
}

static unsigned below(view_random *random, unsigned limit)
{
    return (unsigned)(random_number(random) >> 20) % limit;
}

/* Returns a time: mostly short, sometimes long, sometimes 0. */
static uint32_t some_time(view_random *random, thread_state *thread)
{
    unsigned dice = below(random, 1000);
    uint32_t delta = dice < 2     ? 1000000 + below(random, 3000000)
                     : dice < 100 ? below(random, 2)
                                  : 5 + below(random, 400);

    thread->now += delta;
    return delta;
}

static vst_id some_id(view_random *random)
{
    return 1 + below(random, IDS);
}

static uint64_t some_pair(view_random *random, const thread_state *thread)
{
    unsigned back = below(random, 3);
    unsigned instance = thread->instance > back ? thread->instance - back : 0;

    return (uint64_t)instance << 32 | (1 + instance % 3);
}

static void odd_record(builder *b, view_random *random, thread_state *thread)
{
    uint64_t words[8] = {some_id(random), some_id(random), some_id(random)};
    uint32_t delta = some_time(random, thread);
    double value = below(random, 1000);

    switch (below(random, random->more_kinds ? 24 : 22)) {
    case 0:
    case 1:
    case 2:
        thread->instance++;
        words[0] = some_pair(random, thread);
        builder_escape(b, VST_ESCAPE_BEGIN, delta, words, 1);
        break;
    case 3:
    case 4:
    case 5:
        words[0] = some_pair(random, thread);
        builder_escape(b, VST_ESCAPE_END, delta, words, 1);
        break;
    case 6:
        builder_escape(b, VST_ESCAPE_STACK, delta, words, below(random, 4));
        break;
    case 7:
        builder_escape(b, VST_ESCAPE_STACK_MORE, delta, words,
                       below(random, 3));
        break;
    case 8:
        words[0] = below(random, 3);
        builder_escape(b, VST_ESCAPE_SWITCH, delta, words, 1);
        break;
    case 9:
        words[0] = below(random, 2);
        builder_escape(b, VST_ESCAPE_GAP, delta, words, 1);
        break;
    case 10:
        words[0] = below(random, 9);
        builder_escape(b, VST_ESCAPE_LOST, delta, words, 1);
        break;
    case 11:
        words[0] = 5;
        words[1] = thread->now - below(random, 1000);
        builder_escape(b, VST_ESCAPE_DROPPED, delta, words, 2);
        break;
    case 12:
        builder_escape_text(b, VST_ESCAPE_ARGS, delta, 6, "\"a\": 1");
        break;
    case 13:
        words[0] = IDS + 1;
        memcpy(&words[1], &value, sizeof value);
        builder_escape(b, VST_ESCAPE_COUNTER, delta, words, 2);
        break;
    case 14:
        builder_escape(b, VST_ESCAPE_OPERATOR, delta, words, 0);
        break;
    case 15:
        builder_escape(b, VST_ESCAPE_SETTLE, delta, words, below(random, 2));
        break;
    case 16:
        builder_word(b, vst_word_escape(VST_ESCAPE_ALLOC, 64 << 7 | 1, delta));
        builder_word(b, (0x7f0000000010 + 16 * words[0]) >> 3);
        break;
    case 17:
        words[0] = some_pair(random, thread);
        builder_escape(b, VST_ESCAPE_FAR_END, delta, words, 1);
        break;
    case 18:
        words[0] = some_pair(random, thread);
        words[1] = 1 + 2 * below(random, 2);
        builder_escape(b, VST_ESCAPE_BEGIN, delta, words, 2);
        break;
    case 19:
        builder_escape(b, VST_ESCAPE_TIME, 0, (uint64_t[]){thread->now}, 1);
        break;
    case 22:
        words[0] = some_id(random);
        builder_escape(b, VST_ESCAPE_INSTANT, delta, words, 1);
        break;
    case 23:
        words[0] = some_pair(random, thread);
        words[1] = 1;
        builder_escape(b, VST_ESCAPE_END, delta, words, 2);
        break;
    default: /* leaves a function that was not entered, or not entered last */
        builder_word(b, vst_word(VST_RAISE, some_id(random), delta));
        break;
    }
}

static void record(builder *b, view_random *random, thread_state *thread)
{
    unsigned aim = 3 + (unsigned)(thread->now >> 14) % 20;

    if (below(random, 1000) < random->odd) {
        odd_record(b, random, thread);
    } else if (thread->depth < STACK_MAX &&
               (thread->depth == 0 ||
                below(random, 8) < (thread->depth < aim ? 5u : 3u))) {
        vst_id id = some_id(random);
        thread->stack[thread->depth++] = id;
        builder_enter(b, id, some_time(random, thread));
    } else {
        vst_id id = thread->stack[--thread->depth];
        uint32_t delta = some_time(random, thread);
        builder_word(
            b, vst_word(below(random, 50) ? VST_EXIT : VST_RAISE, id, delta));
    }
}

static void chunk(builder *b, view_random *random, thread_state *thread,
                  unsigned window)
{
    size_t room = random->pages * (size_t)VST_CHUNK_ALIGN -
                  sizeof(vst_chunk_header) -
                  (WORDS_MOST + below(random, 200)) * sizeof(uint64_t);

    thread->now += below(random, 3);
    builder_records(b, window, thread->number, thread->now, random->pages);
    while (b->used < room)
        record(b, random, thread);
    if (below(random, 4) != 0)
        builder_seal(b, 1);
}

static void definitions(builder *b, const view_random *random)
{
    builder_definitions(b, 1);
    for (vst_id i = 1; i <= IDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        builder_define(b, i < 4 ? VST_DEF_ANNOTATION : VST_DEF_PYTHON, i, name,
                       "x.py", (int)i);
    }
    builder_define(b, VST_DEF_COUNTER, IDS + 1, "load", "", 0);
    if (random->far_ends)
        builder_define(b, VST_DEF_FAR_ENDS, IDS + 2, "", "", 0);
    builder_entry(b, &(vst_file_entry){.kind = VST_ENTRY_MEMORY}, "", "");
}

void random_trace(builder *b, view_random *random)
{
    vst_ticks now = 2000;

    builder_init(b);
    definitions(b, random);
    for (unsigned window = 0; window < random->windows; window++) {
        thread_state threads[8] = {{.number = 0}};
        vst_ticks last = now;

        for (unsigned i = 0; i < random->threads; i++) {
            threads[i].number = i + 1;
            threads[i].now = now + below(random, 100);
        }
        for (unsigned j = 0; j < random->chunks; j++)
            for (unsigned i = 0; i < random->threads; i++)
                chunk(b, random, &threads[i], window);
        for (unsigned i = 0; i < random->threads; i++)
            if (threads[i].now > last)
                last = threads[i].now;
        now = last + 100000;
    }
    builder_header(b)->keep_ns = random->keep_ns;
    builder_finish(b);
}

void random_file(const builder *b, char *path)
{
    int fd = mkstemp(path);

    if (fd < 0 || write(fd, b->bytes, b->size) != (ssize_t)b->size) {
        fprintf(stderr, "view_random: cannot write %s\n", path);
        exit(2);
    }
    close(fd);
}
