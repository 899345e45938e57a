/* A pass over a trace: finds out what the tables that were asked for are made
 * of, reads the records once, and has each put its rows. One thread at a time.
 */
#include "tables/pass.h"

#include <string.h>

#include "tables/sums.h"

static const vst__table *const tables[] = {
    &vst__table_functions,
    &vst__table_calls,
    &vst__table_threads,
    &vst__table_waits,
    &vst__table_collections,
    &vst__table_long_collections,
    &vst__table_collection_callers,
    &vst__table_steps,
    &vst__table_long_steps,
    &vst__table_repeats,
    &vst__table_budget,
    &vst__table_reduced_estimates,
};

const vst__table *vst__sum_table_find(const char *name)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (strcmp(tables[i]->name, name) == 0)
            return tables[i];
    return NULL;
}

vst_status vst__pass_read(vst_trace *trace, vst_tracer *tracer,
                          const vst__pass_options *options, vst__rows *rows,
                          size_t count, vst_error *error)
{
    vst__sums sums = {.options = options, .trace = trace};
    vst_status status;

    for (size_t i = 0; i < count; i++)
        sums.wanted |= rows[i].table->sums;
    status = vst__sums_read(&sums, tracer, error);
    for (size_t i = 0; i < count && status == VST_OK; i++) {
        rows[i].batch.specs = rows[i].table->columns;
        rows[i].batch.column_count = rows[i].table->column_count;
        status = rows[i].table->put(&sums, &rows[i].batch);
    }
    vst__sums_free(&sums);
    if (status != VST_OK && error != NULL)
        error->status = status;
    return status;
}
