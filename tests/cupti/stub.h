/* A library that stands in for libcupti and libcuda: it has their functions as
 * far as vestige calls them, and a test makes up what the device did. Any
 * thread. */
#ifndef VST_CUPTI_STUB_H
#define VST_CUPTI_STUB_H

#include <stddef.h>
#include <stdint.h>

typedef struct stub_control {
    /* Begins anew as this version of CUPTI's interface, with nothing enabled.
     * The driver is started or not. */
    void (*reset)(uint32_t version, int driver_is_started);
    /* From now on this function returns an error; NULL: none does. For
     * cuptiActivityEnable and cuptiActivityDisable only for one kind, 0: all.
     */
    void (*fail)(const char *function, int kind);
    /* A record, cut or padded to the size that the version has. 0: its kind is
     * not enabled, or there is no buffer for it. */
    int (*add)(const void *record, size_t size);
    /* The buffer is put aside: it comes when it is released, the newest first.
     */
    void (*hold)(void);
    void (*release)(void);
    /* A flush hands nothing over. */
    void (*keep)(int keeps);
    /* Reads the clock that was registered. */
    uint64_t (*now)(void);
    /* Functions that were called, in order, and which kinds are enabled. */
    const char *(*calls)(void);
    uint64_t (*enabled)(void);
    /* A real libcupti walks buffers from now on; NULL: the stub does. 0: it
     * could not be loaded. */
    int (*walk_by)(const char *path);
    /* Has CUPTI complete a buffer that it did not get from us. */
    void (*complete_foreign)(void);
} stub_control;

/* Exported as stub_get. */
const stub_control *stub_get(void);

#endif
