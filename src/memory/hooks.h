/* Hooks that hooks.c installs together with those of allocators: of mappings
 * (hooks_map.c), and of the loader (hooks_dl.c). */
#ifndef VST_MEMORY_HOOKS_H
#define VST_MEMORY_HOOKS_H

#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

/* Constant while any hook is installed. */
extern struct vst__real_maps {
    __typeof__(&mmap) mmap, mmap64;
    __typeof__(&munmap) munmap;
    __typeof__(&mremap) mremap;
    __typeof__(&mprotect) mprotect;
    __typeof__(&madvise) madvise;
} vst__real_maps;

void *vst__hook_mmap(void *at, size_t size, int access, int flags, int fd,
                     off_t offset);
void *vst__hook_mmap64(void *at, size_t size, int access, int flags, int fd,
                       off_t offset);
int vst__hook_munmap(void *at, size_t size);
void *vst__hook_mremap(void *old, size_t old_size, size_t size, int flags, ...);
int vst__hook_mprotect(void *at, size_t size, int access);
int vst__hook_madvise(void *at, size_t size, int advice);

/* Assembly, not called from C. On a processor without that code, libraries that
 * are loaded later get no hooks. */
extern void *vst__real_dlopen, *vst__real_dlsym, *vst__real_dlclose;
void vst__hook_dlopen(void);
void vst__hook_dlsym(void);
void vst__hook_dlclose(void);

#endif
