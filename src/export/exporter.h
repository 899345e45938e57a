/* The interface of an exporter: each format is one file that defines one
 * vst__exporter. Any thread. */
#ifndef VST_EXPORT_EXPORTER_H
#define VST_EXPORT_EXPORTER_H

#include <vestige/trace.h>

#include "export/output/output.h"
#include "export/sums/tree.h"

typedef struct vst__exporter {
    const char *name; /* the name in options */
    /* The suffix of paths in this format, without ".gz"; NULL if only the name
     * chooses the format. Several suffixes are separated by blanks; a word that
     * ends in * is a prefix of the file's name. */
    const char *suffix;
    /* Writes the whole document. Replays each trace once or more often: spans
     * and memory are separate readings. NULL for a format of sums. */
    vst_status (*write)(vst_trace *const *traces, size_t count,
                        const vst_export_options *options, vst__output *output,
                        vst_error *error);
    const vst__tree_format *sums;
} vst__exporter;

extern const vst__exporter vst__exporter_callgrind;
extern const vst__exporter vst__exporter_chrome;
extern const vst__exporter vst__exporter_execution_trace;
extern const vst__exporter vst__exporter_memory_timeline;
extern const vst__exporter vst__exporter_flame;
extern const vst__exporter vst__exporter_folded;
extern const vst__exporter vst__exporter_folded_ns;
extern const vst__exporter vst__exporter_perfetto;
extern const vst__exporter vst__exporter_pprof;
extern const vst__exporter vst__exporter_pstats;
extern const vst__exporter vst__exporter_speedscope;

#endif
