/* Where the core keeps what handlers of forks change. A child copies each page
 * that it writes, so these variables lie together. */
#ifndef VST_BASE_AT_FORK_H
#define VST_BASE_AT_FORK_H

#ifdef __ELF__
#define VST_AT_FORK __attribute__((section("vst_at_fork")))
#else
#define VST_AT_FORK
#endif

#endif
