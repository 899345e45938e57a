/* Shared by the files that make the first inputs. */
#ifndef VST_FUZZ_MAKE_CORPUS_H
#define VST_FUZZ_MAKE_CORPUS_H

#include "trace_builder.h"

/* <folder>/<kind>/<name>. */
void save(const char *kind, const char *name, const void *bytes, size_t size);

/* Saves the built trace, `size` bytes of it, as an input of trace_input.h with
 * these choices, in the corpus "trace". */
void save_input(const builder *b, size_t size, const char *name,
                const uint8_t *choices);

/* Saves an input in the corpus of this kind, with INPUT_CHOICES choices. */
void save_input_as(const char *kind, const builder *b, size_t size,
                   const char *name, const uint8_t *choices);

/* Traces for the targets whose input is a single trace. */
void make_inputs(void);
/* Traces that claim more than they hold, for fuzz_limit.c. */
void make_limits(void);

#endif
