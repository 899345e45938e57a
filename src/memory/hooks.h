/* The hooks of the loader, which hooks.c puts in beside those of allocators. */
#ifndef VST_MEMORY_HOOKS_H
#define VST_MEMORY_HOOKS_H

/* They are not called from C; where there is no code for a processor, only what
 * is loaded at start gets hooks. */
extern void *vst__real_dlopen, *vst__real_dlsym, *vst__real_dlclose;
void vst__hook_dlopen(void);
void vst__hook_dlsym(void);
void vst__hook_dlclose(void);

#endif
