/* The copier: a process that copies a local file to its target on a slow disk
 * while a program records into the local file, and after that program has
 * ended. It removes the local file when the target is complete and nobody reads
 * the local file through the recorder's descriptor any more.
 *
 *     vestige-copier TARGET LOCAL
 *
 * Descriptor 3 is the local file, 4 leads to the recorder. The copier sends
 * whether the target could be created (0, or an errno value), and 0 when the
 * target is complete. Any message wakes it. When the recorder is gone, the
 * copier copies what is left, and gives up if the target fails for GIVE_UP_NS;
 * then the local file stays, and the next reader completes the copy. */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/os.h"
#include "store/copying.h"

#define PASS_NS UINT64_C(250000000)
#define RETRY_NS UINT64_C(1000000000)
#define GIVE_UP_NS UINT64_C(30000000000)

typedef struct copier {
    const char *local; /* "" if the local file has no name */
    vst__copy_note *note;
    vst__mirror *mirror;
    int target; /* -1 if it is not open */
    bool is_alone;
    bool has_answered;
} copier;

/* The files and signals of the program that started the copier are not the
 * copier's. It has ended when its work is done, whoever asks it to stop. */
static void become_detached(void)
{
    static const int ignored[] = {SIGHUP,  SIGINT,  SIGQUIT,
                                  SIGTERM, SIGPIPE, SIGXFSZ};
    sigset_t none;

    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    vst__os_close_from(VST_COPIER_PAIR + 1);
    for (int i = 0; i < VST_COPIER_LOCAL; i++)
        close(i);
    if (chdir("/") != 0)
        exit(1);
    vst__os_thread_defer();
}

static int copier_open(copier *self)
{
    int failed = vst__target_open(VST_COPIER_LOCAL, self->note, &self->target);

    if (failed != 0) {
        self->target = -1;
        return failed;
    }
    return vst__mirror_create(VST_COPIER_LOCAL, self->target, self->note,
                              &self->mirror);
}

/* A disk that was unmounted, or a server that was started again, may know the
 * path but not the descriptor. */
static void copier_close(copier *self)
{
    vst__mirror_destroy(self->mirror);
    self->mirror = NULL;
    if (self->target >= 0)
        close(self->target);
    self->target = -1;
}

static int copier_pass(copier *self)
{
    bool completes;
    int failed = self->target < 0 ? copier_open(self) : 0;

    if (!self->has_answered)
        vst__os_pair_send(VST_COPIER_PAIR, failed);
    self->has_answered = true;
    if (failed == 0)
        failed = vst__mirror_pass(self->mirror);
    completes = failed == 0 &&
                (self->is_alone || vst__mirror_is_finished(self->mirror));
    if (completes)
        failed = vst__mirror_complete(self->mirror);
    if (failed != 0)
        copier_close(self);
    else
        __atomic_fetch_add(&self->note->passes, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&self->note->sys_errno, (uint32_t)failed,
                     __ATOMIC_RELAXED);
    if (failed == 0 && completes)
        __atomic_store_n(&self->note->stage, VST_COPY_COMPLETE,
                         __ATOMIC_RELEASE);
    return failed;
}

static void copier_wait(copier *self, uint64_t ns)
{
    int32_t number;

    if (self->is_alone)
        usleep((useconds_t)(ns / 1000));
    else if (vst__os_pair_wait(VST_COPIER_PAIR, ns, &number) == VST_PAIR_GONE)
        self->is_alone = true;
}

/* Returns whether the target is complete. */
static bool copier_work(copier *self)
{
    uint64_t failed_ns = 0; /* how long the target fails since the end */

    while (failed_ns < GIVE_UP_NS) {
        int failed = copier_pass(self);

        if (self->note->stage == VST_COPY_COMPLETE)
            return true;
        if (self->is_alone && vst__os_file_is_unlinked(VST_COPIER_LOCAL) &&
            self->local[0] != 0)
            return false; /* nobody wants the recording */
        failed_ns += failed != 0 && self->is_alone ? RETRY_NS : 0;
        copier_wait(self, failed != 0 ? RETRY_NS : PASS_NS);
    }
    return false;
}

int main(int count, char **words)
{
    copier self = {.target = -1};

    if (count != 3 || vst__copy_note_map(VST_COPIER_LOCAL, &self.note) != 0)
        return 2;
    self.local = words[2];
    become_detached();
    if (!copier_work(&self))
        return 1;
    copier_close(&self);
    vst__os_pair_send(VST_COPIER_PAIR, 0);
    while (!self.is_alone)
        copier_wait(&self, UINT64_MAX / 4);
    if (self.local[0] != 0)
        vst__os_file_remove(self.local);
    return 0;
}
