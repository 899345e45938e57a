/* Functions with which src/memory records. */
#ifndef VST_RECORD_MEMORY_H
#define VST_RECORD_MEMORY_H

#include <vestige/memory.h>

/* Describes a loaded library. Takes the recorder's lock. */
vst_status vst__recording_define_module(vst_recording *recording,
                                        const vst_module *module);

/* Records a mapping, or the change of a mapping: range is made of VST_RANGE_
 * flags. */
void vst__record_range(uintptr_t address, size_t size, vst_stack_id stack,
                       unsigned flags, unsigned range, vst_ticks now);
/* Records a counter like vst_record_counter; any thread, free-running or not.
 */
void vst__record_memory_counter(vst_id id, double value);

#endif
