/* The whole of our test framework: a test is a function whose name is a
 * sentence, with underscores for spaces. TEST() runs it and prints a line;
 * checks_end() prints the counts and returns the exit code. One file is one
 * program, on one thread. */
#ifndef VST_TESTS_CHECK_H
#define VST_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks_passed, checks_failed, checks_bad;

#define CHECK(condition)                                                       \
    check_that((condition) != 0, #condition, __FILE__, __LINE__)
#define CHECK_INT(value, expected)                                             \
    check_int((long long)(value), (long long)(expected), #value, __FILE__,     \
              __LINE__)
#define CHECK_TEXT(value, expected)                                            \
    check_text((value), (expected), #value, __FILE__, __LINE__)
#define TEST(function) check_run(function, #function)

/* The thread sanitizer runs only tests with several threads. */
#if defined(__SANITIZE_THREAD__)
enum { FOR_THREADS = 1 };
#else
enum { FOR_THREADS = 0 };
#endif

/* How far apart the cases are that a test tries: all of them with VESTIGE_LONG
 * in the environment (make check-long), else as many as there is time for. */
static inline unsigned check_step(unsigned usual, unsigned sanitized)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    usual = sanitized;
#else
    (void)sanitized;
#endif
    return getenv("VESTIGE_LONG") != NULL ? 1 : usual;
}

static inline int check_that(int holds, const char *what, const char *file,
                             int line)
{
    if (!holds) {
        printf("# %s:%d: not so: %s\n", file, line, what);
        checks_bad++;
    }
    return holds;
}

static inline int check_int(long long value, long long expected,
                            const char *what, const char *file, int line)
{
    if (value != expected) {
        printf("# %s:%d: %s is %lld, not %lld\n", file, line, what, value,
               expected);
        checks_bad++;
    }
    return value == expected;
}

static inline int check_text(const char *value, const char *expected,
                             const char *what, const char *file, int line)
{
    int same = value != NULL && strcmp(value, expected) == 0;

    if (!same) {
        printf("# %s:%d: %s is\n%s\n# and not\n%s\n", file, line, what,
               value != NULL ? value : "(null)", expected);
        checks_bad++;
    }
    return same;
}

static inline void check_run(void (*function)(void), const char *name)
{
    checks_bad = 0;
    function();
    printf(checks_bad == 0 ? "ok - " : "not ok - ");
    for (; *name != '\0'; name++)
        putchar(*name == '_' ? ' ' : *name);
    putchar('\n');
    fflush(stdout);
    if (checks_bad == 0)
        checks_passed++;
    else
        checks_failed++;
}

static inline int checks_end(void)
{
    printf("%d passed, %d failed\n", checks_passed, checks_failed);
    return checks_failed != 0;
}

#endif
