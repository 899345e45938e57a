/* The names of memory.h's kinds. Any thread. */
#include <vestige/memory.h>

const char *vst_memory_kind_name(vst_memory_kind kind)
{
    static const char *const names[] = {
        [VST_MEMORY_MALLOC] = "malloc",
        [VST_MEMORY_CALLOC] = "calloc",
        [VST_MEMORY_REALLOC] = "realloc",
        [VST_MEMORY_POSIX_MEMALIGN] = "posix_memalign",
        [VST_MEMORY_ALIGNED_ALLOC] = "aligned_alloc",
        [VST_MEMORY_MEMALIGN] = "memalign",
        [VST_MEMORY_VALLOC] = "valloc",
        [VST_MEMORY_FREE] = "free",
        [VST_MEMORY_MMAP] = "mmap",
        [VST_MEMORY_MUNMAP] = "munmap",
        [VST_MEMORY_PY_RAW_MALLOC] = "PyMem_RawMalloc",
        [VST_MEMORY_PY_RAW_CALLOC] = "PyMem_RawCalloc",
        [VST_MEMORY_PY_RAW_REALLOC] = "PyMem_RawRealloc",
        [VST_MEMORY_PY_RAW_FREE] = "PyMem_RawFree",
        [VST_MEMORY_PY_MEM_MALLOC] = "PyMem_Malloc",
        [VST_MEMORY_PY_MEM_CALLOC] = "PyMem_Calloc",
        [VST_MEMORY_PY_MEM_REALLOC] = "PyMem_Realloc",
        [VST_MEMORY_PY_MEM_FREE] = "PyMem_Free",
        [VST_MEMORY_PY_OBJECT_MALLOC] = "PyObject_Malloc",
        [VST_MEMORY_PY_OBJECT_CALLOC] = "PyObject_Calloc",
        [VST_MEMORY_PY_OBJECT_REALLOC] = "PyObject_Realloc",
        [VST_MEMORY_PY_OBJECT_FREE] = "PyObject_Free",
        [VST_MEMORY_FRAMEWORK] = "framework",
        [VST_MEMORY_FRAMEWORK_FREE] = "framework free",
        [VST_MEMORY_RESERVE] = "reserve",
    };
    size_t number = (size_t)kind;

    if (number >= sizeof names / sizeof *names || names[number] == NULL)
        return "?";
    return names[number];
}
