/* Fences between threads. gcc's thread sanitizer does not know them, and what
 * they order here it does not see anyway: loads by the kernel, and stores that
 * another process reads. */
#ifndef VST_BASE_FENCE_H
#define VST_BASE_FENCE_H

static inline void vst__fence_acquire(void)
{
#if !defined(__SANITIZE_THREAD__)
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

static inline void vst__fence_full(void)
{
#if !defined(__SANITIZE_THREAD__)
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#endif
