/* The tables by name, and their schemas. */
#ifndef VST_TABLES_SCHEMA_H
#define VST_TABLES_SCHEMA_H

#include "tables/table.h"

/* Returns NULL if there is no table of that name. */
const vst__table *vst__table_find(const char *name);
vst_status vst__table_make_schema(const vst__table *table,
                                  vst_arrow_schema *schema);

#endif
