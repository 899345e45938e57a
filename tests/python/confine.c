/* Runs a program in which some system calls fail: `confine KIND PROGRAM …`.
 *
 *     docker  those that Docker's default seccomp profile refuses
 *     strict  in addition all that starts or looks into other processes, makes
 *             memory files or sets priorities
 *
 * Seccomp's filter is inherited by everything that the program starts. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RULES_MAX = 256 };

static const int docker[] = {
    SYS_acct,
    SYS_add_key,
    SYS_bpf,
    SYS_clock_adjtime,
    SYS_clock_settime,
    SYS_delete_module,
    SYS_finit_module,
    SYS_get_mempolicy,
    SYS_init_module,
    SYS_kcmp,
    SYS_kexec_load,
    SYS_keyctl,
    SYS_mbind,
    SYS_mount,
    SYS_move_pages,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_perf_event_open,
    SYS_pivot_root,
    SYS_quotactl,
    SYS_reboot,
    SYS_request_key,
    SYS_set_mempolicy,
    SYS_setns,
    SYS_settimeofday,
    SYS_swapoff,
    SYS_swapon,
    SYS_umount2,
    SYS_unshare,
    SYS_userfaultfd,
    SYS_io_uring_setup,
};

static const int strict[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_memfd_create,
    SYS_setpriority,
    SYS_sched_setaffinity,
    SYS_pidfd_open,
    SYS_membarrier,
    SYS_fallocate,
    SYS_renameat2,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
};

static struct sock_filter rules[RULES_MAX];
static unsigned short count;

static void add(struct sock_filter rule)
{
    rules[count++] = rule;
}

static void refuse(int call, unsigned error)
{
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call,
                                     0, 1));
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                     SECCOMP_RET_ERRNO | error));
}

/* Refuses clone() unless it has one of the flags (wanted), or if it has one. */
static void refuse_clone(unsigned flags, int wanted)
{
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0,
                                     4));
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                     offsetof(struct seccomp_data, args[0])));
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags,
                                     wanted ? 1 : 0, wanted ? 0 : 1));
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                     SECCOMP_RET_ERRNO | EPERM));
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                     offsetof(struct seccomp_data, nr)));
}

int main(int argc, char **argv)
{
    struct sock_fprog filter = {.filter = rules};
    int is_strict = argc > 2 && strcmp(argv[1], "strict") == 0;

    if (argc < 3)
        return 2;
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                     offsetof(struct seccomp_data, nr)));
    for (size_t i = 0; i < sizeof docker / sizeof *docker; i++)
        refuse(docker[i], EPERM);
    refuse(SYS_clone3, ENOSYS); /* its flags lie in memory */
    refuse_clone(CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |
                     CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP,
                 0);
    for (size_t i = 0; is_strict && i < sizeof strict / sizeof *strict; i++)
        refuse(strict[i], EPERM);
    if (is_strict)
        refuse_clone(CLONE_THREAD, 1);
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    filter.len = count;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("seccomp");
        return 2;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
