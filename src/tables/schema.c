/* The tables by name, and their schemas. Texts in a schema are constants; each
 * part of a schema frees itself, because its receiver may take parts out of it.
 * Any thread. */
#include <stdlib.h>
#include <string.h>

#include "tables/schema.h"

#define TABLE_AT(name) &vst__table_##name,
#define TABLE_ONE(name) +1

static const vst__table *const tables[] = {VST_STREAMED_TABLES(TABLE_AT)
                                               VST_OTHER_TABLES(TABLE_AT)};

enum { TABLES = 0 VST_STREAMED_TABLES(TABLE_ONE) };
enum { ALL_TABLES = sizeof tables / sizeof tables[0] };

const char *vst__table_name(size_t index)
{
    return index < TABLES ? tables[index]->name : NULL;
}

static const vst__table *schema_find(const char *name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(tables[i]->name, name) == 0)
            return tables[i];
    return NULL;
}

const vst__table *vst__table_find(const char *name)
{
    return schema_find(name, TABLES);
}

const vst__table *vst__table_of_any_kind(const char *name)
{
    return schema_find(name, ALL_TABLES);
}

/* ---- schemas ------------------------------------------------------------- */

static const char *format_of(vst__column_type type)
{
    switch (type) {
    case VST_COLUMN_I32:
    case VST_COLUMN_NAME:
        return "i";
    case VST_COLUMN_I64:
    case VST_COLUMN_PIECE:
        break;
    case VST_COLUMN_F64:
        return "g";
    case VST_COLUMN_BOOL:
        return "b";
    case VST_COLUMN_TEXT:
        return "u";
    }
    return "l";
}

static void release_texts(vst_arrow_schema *schema)
{
    schema->release = NULL;
}

static void release_column(vst_arrow_schema *schema)
{
    if (schema->dictionary != NULL && schema->dictionary->release != NULL)
        schema->dictionary->release(schema->dictionary);
    free(schema->dictionary);
    schema->release = NULL;
}

static bool schema_make_column(const vst__column_spec *spec,
                               vst_arrow_schema *schema)
{
    *schema = (vst_arrow_schema){
        .format = format_of(spec->type),
        .name = spec->name,
        .flags = spec->nullable ? VST_ARROW_NULLABLE : 0,
        .release = release_column,
    };
    if (spec->type != VST_COLUMN_NAME)
        return true;
    schema->dictionary = calloc(1, sizeof *schema->dictionary);
    if (schema->dictionary == NULL)
        return false;
    *schema->dictionary =
        (vst_arrow_schema){.format = "u", .name = "", .release = release_texts};
    return true;
}

typedef struct root {
    vst_arrow_schema *children[VST_BATCH_COLUMNS_MAX];
    vst_arrow_schema columns[];
} root;

static void release_root(vst_arrow_schema *schema)
{
    root *all = schema->private_data;

    for (int64_t i = 0; i < schema->n_children; i++)
        if (all->columns[i].release != NULL)
            all->columns[i].release(&all->columns[i]);
    free(all);
    schema->release = NULL;
}

vst_status vst__table_make_schema(const vst__table *table,
                                  vst_arrow_schema *schema)
{
    root *all =
        calloc(1, sizeof *all + table->column_count * sizeof *all->columns);
    bool made = true;

    *schema = (vst_arrow_schema){.release = NULL};
    if (all == NULL)
        return VST_E_NOMEM;
    *schema = (vst_arrow_schema){
        .format = "+s",
        .name = "",
        .n_children = (int64_t)table->column_count,
        .children = all->children,
        .release = release_root,
        .private_data = all,
    };
    for (size_t i = 0; i < table->column_count && made; i++) {
        all->children[i] = &all->columns[i];
        made = schema_make_column(&table->columns[i], &all->columns[i]);
    }
    if (!made)
        release_root(schema);
    return made ? VST_OK : VST_E_NOMEM;
}

vst_status vst__table_schema(const char *name, vst_arrow_schema *schema)
{
    const vst__table *table = vst__table_find(name);

    return table != NULL ? vst__table_make_schema(table, schema)
                         : VST_E_ARGUMENT;
}
