/* A library that replaces libcupti and libcuda: it has all functions that
 * vestige calls, and a test decides what the device did. Any thread. */
#ifndef VST_CUPTI_STUB_H
#define VST_CUPTI_STUB_H

#include <stddef.h>
#include <stdint.h>

typedef struct stub_control {
    /* Resets the stub to this version of CUPTI's interface, with nothing
     * enabled, and with the driver started or not. */
    void (*reset)(uint32_t version, int driver_is_started);
    /* From now on, this function returns an error; NULL: none does. For
     * cuptiActivityEnable and cuptiActivityDisable, only for calls with this
     * kind; 0: for all kinds. */
    void (*fail)(const char *function, int kind);
    /* Delivers a record, cut or padded to its size in the version. Returns 0 if
     * its kind is not enabled or no buffer has room. */
    int (*add)(const void *record, size_t size);
    /* Puts the current buffer aside. release() delivers such buffers, newest
     * first. */
    void (*hold)(void);
    void (*release)(void);
    /* Makes a flush deliver nothing. */
    void (*keep)(int keeps);
    /* Reads the registered clock. */
    uint64_t (*now)(void);
    /* Return the functions that were called, in order, and the enabled
     * kinds. */
    const char *(*calls)(void);
    uint64_t (*enabled)(void);
    /* From now on, a real libcupti walks buffers; NULL: the stub does. Returns
     * 0 if the library could not be loaded. */
    int (*walk_by)(const char *path);
    /* Makes CUPTI complete a buffer that did not come from us. */
    void (*complete_foreign)(void);
} stub_control;

/* Exported as stub_get. */
const stub_control *stub_get(void);

#endif
