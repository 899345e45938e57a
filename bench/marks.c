/* instructions.py loads this into the process that callgrind counts: marks
 * around the counted code, and the processor that valgrind shows to the
 * process, by which libraries choose their functions. */
#include <stdio.h>
#include <valgrind/callgrind.h>

void mark_begin(void);
void mark_end(const char *name);
void mark_processor(char *text, size_t size);

void mark_begin(void)
{
    CALLGRIND_ZERO_STATS;
}

void mark_end(const char *name)
{
    CALLGRIND_DUMP_STATS_AT(name);
}

#ifdef __x86_64__
#include <cpuid.h>

/* The CPUID leaves with the instruction sets and the sizes of caches. */
void mark_processor(char *text, size_t size)
{
    static const unsigned leaves[][2] = {
        {1, 0}, {7, 0}, {4, 0}, {4, 1}, {4, 2}, {4, 3}, {0x80000001, 0},
    };
    size_t used = 0;

    text[0] = 0;
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
        unsigned a = 0;
        unsigned b = 0;
        unsigned c = 0;
        unsigned d = 0;

        __get_cpuid_count(leaves[i][0], leaves[i][1], &a, &b, &c, &d);
        if (leaves[i][0] == 1) {
            b = 0; /* contains the number of the current processor */
        }
        used += (size_t)snprintf(text + used, used < size ? size - used : 0,
                                 "%x %x %x %x ", a, b, c, d);
    }
}
#else
void mark_processor(char *text, size_t size)
{
    snprintf(text, size, "any");
}
#endif
