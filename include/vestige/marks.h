/* The instants of a trace as marks of a picture: exceptions, and what the
 * program marks itself. They are read once and kept in memory (48 bytes each).
 * Several threads may ask at once. */
#ifndef VESTIGE_MARKS_H
#define VESTIGE_MARKS_H

#include "trace.h"
#include "view.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VST_MARKS_MAX = 4000000,      /* no more are kept */
    VST_MARKS_TEXT_MAX = 16 << 20 /* bytes of all arguments; others have none */
};

typedef struct vst_marks vst_marks;

typedef struct vst_mark {
    int64_t time_ns;
    vst_id id;
    uint32_t thread;
    vst_exception_end end; /* as the two calls: see vst_instant */
    vst_id raised_in, caught_in;
    uint32_t args_len; /* of an exception: 0 */
    size_t args;       /* where they begin in vst_marks_text() */
} vst_mark;

/* The trace may be closed afterwards. */
VST_API vst_status vst_marks_create(vst_trace *trace, vst_marks **marks,
                                    vst_error *error);
VST_API void vst_marks_destroy(vst_marks *marks);

/* All that are kept, by thread, then time. */
VST_API const vst_mark *vst_marks_all(const vst_marks *marks, size_t *count);
VST_API const char *vst_marks_text(const vst_marks *marks);
/* Marks that were not kept. */
VST_API uint64_t vst_marks_left_out(const vst_marks *marks);

/* Those of a thread with from_ns <= time < to_ns: the number of the first, and
 * how many they are. */
VST_API size_t vst_marks_between(const vst_marks *marks, uint32_t thread,
                                 int64_t from_ns, int64_t to_ns, size_t *first);

/* All marks of a thread in one of the equal parts of a range. */
typedef struct vst_mark_cell {
    uint32_t part;
    uint32_t marks;
    uint32_t exceptions;
    uint32_t not_caught; /* of those */
    vst_id id;           /* of the first */
} vst_mark_cell;

/* The parts that have any, in order; `cells` has room for all parts. Returns
 * how many they are. */
VST_API size_t vst_marks_draw(const vst_marks *marks, uint32_t thread,
                              int64_t from_ns, int64_t to_ns, uint32_t parts,
                              vst_mark_cell *cells);

/* Adds to each part how many marks with one of these ids it has. The ids are in
 * ascending order, here and below. */
VST_API void vst_marks_find(const vst_marks *marks, const vst_view_ids *ids,
                            int64_t from_ns, int64_t to_ns, uint32_t parts,
                            uint32_t *counts);
/* The first with one of these ids after a time, or the last before it; NULL:
 * there is none. */
VST_API const vst_mark *vst_marks_next(const vst_marks *marks,
                                       const vst_view_ids *ids, int64_t time_ns,
                                       bool back);

#ifdef __cplusplus
}
#endif
#endif
