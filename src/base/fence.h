/* Fences between threads. gcc's thread sanitizer does not know fences, and
 * cannot see what these order: loads by the kernel, and stores that another
 * process reads. */
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
