/* os.h for Linux: programs that run detached from this process, and messages
 * between the two. Any thread. Posix_spawn would
 * make them children: their end would send SIGCHLD to the program, and its
 * wait() would return them. So a short-lived process between the two starts the
 * program and ends at once; its clone has no exit signal. Both share this
 * process's memory, as after vfork(), so a large process pays nothing. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK_SIZE = 64 * 1024, KEPT_FIRST = 3, KEPT_MAX = 4, ABOVE = 100 };

typedef struct launch {
    const char *program;
    char *const *words;
    const int *kept;
    size_t kept_count;
    char *inner_stack; /* its upper end */
    int failed;        /* errno value */
} launch;

/* Moves the kept descriptors out of the way first, because they may have each
 * other's numbers. */
static bool keep_descriptors(const launch *self)
{
    int moved[KEPT_MAX];

    for (size_t i = 0; i < self->kept_count; i++) {
        moved[i] = fcntl(self->kept[i], F_DUPFD_CLOEXEC, ABOVE);
        if (moved[i] < 0)
            return false;
    }
    for (size_t i = 0; i < self->kept_count; i++)
        if (dup2(moved[i], KEPT_FIRST + (int)i) < 0)
            return false;
    return true;
}

/* Runs in the new process. */
static int launch_program(void *argument)
{
    static char *const no_environment[] = {NULL};
    launch *self = argument;

    setsid();
    if (keep_descriptors(self))
        execve(self->program, self->words, no_environment);
    self->failed = errno;
    _exit(127);
}

/* Runs in the process between the two. */
static int launch_between(void *argument)
{
    launch *self = argument;

    if (clone(launch_program, self->inner_stack,
              CLONE_VM | CLONE_VFORK | SIGCHLD, self) < 0)
        self->failed = errno;
    _exit(0);
}

static void launch_wait(pid_t between)
{
    while (waitpid(between, NULL, (int)__WCLONE) < 0 && errno == EINTR)
        ;
}

int vst__os_start_detached(const char *program, char *const *words,
                           const int *kept, size_t kept_count)
{
    char *stacks = vst__os_pages(2 * (size_t)STACK_SIZE);
    launch self = {.program = program,
                   .words = words,
                   .kept = kept,
                   .kept_count = kept_count};
    sigset_t all, before;
    pid_t between;

    if (stacks == NULL)
        return ENOMEM;
    self.inner_stack = stacks + 2 * (size_t)STACK_SIZE;
    /* No handler of the program may run in processes that share its memory. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    between = clone(launch_between, stacks + STACK_SIZE, CLONE_VM | CLONE_VFORK,
                    &self);
    if (between < 0)
        self.failed = errno;
    else
        launch_wait(between);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    vst__os_unmap(stacks, 2 * (size_t)STACK_SIZE);
    return self.failed;
}

bool vst__os_adopts_orphans(void)
{
    int is_subreaper = 0;

    return getpid() == 1 ||
           (prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0) == 0 &&
            is_subreaper != 0);
}

/* ---- messages ------------------------------------------------------------ */

int vst__os_pair_open(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return errno;
    for (int i = 0; i < 2; i++) {
        int other;
        if (ends[i] > 2)
            continue;
        /* A program that closed its standard streams would print into it. */
        other = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
        close(ends[i]);
        ends[i] = other;
    }
    return 0;
}

void vst__os_pair_send(int end, int32_t number)
{
    ssize_t sent =
        send(end, &number, sizeof number, MSG_DONTWAIT | MSG_NOSIGNAL);

    (void)sent; /* the other end is gone, or has enough to read */
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int poll_ms(uint64_t now, uint64_t until)
{
    const uint64_t longest = 3600 * 1000;
    uint64_t ms = now < until ? (until - now) / 1000000 + 1 : 0;

    return (int)(ms < longest ? ms : longest);
}

vst__os_pair_news vst__os_pair_wait(int end, uint64_t timeout_ns,
                                    int32_t *number)
{
    uint64_t until = now_ns() + timeout_ns, now;
    struct pollfd on = {.fd = end, .events = POLLIN};
    ssize_t got;

    do {
        now = now_ns();
        on.revents = 0;
        if (poll(&on, 1, poll_ms(now, until)) < 0 && errno != EINTR)
            return VST_PAIR_GONE;
        now = now_ns();
    } while (on.revents == 0 && now < until);
    if (on.revents == 0)
        return VST_PAIR_QUIET;
    got = recv(end, number, sizeof *number, MSG_DONTWAIT);
    if (got == (ssize_t)sizeof *number)
        return VST_PAIR_MESSAGE;
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? VST_PAIR_QUIET
                                                          : VST_PAIR_GONE;
}
