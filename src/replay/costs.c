#include "replay/costs.h"
#include "replay/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <vestige/trace.h>

/* A larger cost (more than a second per call) is a damaged value. */
#define COST_MAX INT64_C(1000000000000)

enum { MILLION = 1000000, PS = 1000 };

/* Reads the next number of the array. Returns 1 if there is one, 0 at the end
 * of the array, -1 if this is no array of numbers. */
static int next_number(const char **at, int64_t *number)
{
    char *end;
    long long value;

    *at += strspn(*at, " \t\r\n");
    if (**at == ']')
        return 0;
    errno = 0;
    value = strtoll(*at, &end, 10);
    if (end == *at || errno != 0 || value < -COST_MAX || value > COST_MAX)
        return -1;
    end += strspn(end, " \t\r\n");
    if (*end != ',' && *end != ']')
        return -1;
    *at = *end == ',' ? end + 1 : end;
    *number = value;
    return 1;
}

static bool is_cost(const int64_t group[VST_COSTS_GROUP])
{
    int64_t kind = group[0], cost = group[1], inside = group[2];

    return kind >= 0 && cost >= 0 && group[3] >= 0 && inside <= cost &&
           ((kind != 0 && kind != VST_COSTS_END) || cost < MILLION) &&
           (kind != VST_COSTS_PASSING ||
            (cost <= MILLION && group[3] <= MILLION));
}

/* Returns the place of a group's kind in the table; -1 if this version does not
 * know the kind. */
static int costs_place_of(int64_t kind)
{
    if (kind == VST_COSTS_TASK)
        return VST__COST_TASK;
    if (kind == VST_COSTS_END)
        return VST__COST_END;
    if (kind == VST_COSTS_PASSING)
        return VST__COST_PASSING;
    return kind < VST_DEF_KINDS ? (int)kind : -1;
}

bool vst__costs_parse(const char *json, vst__cost of[VST__COSTS])
{
    int64_t layout, group[VST_COSTS_GROUP];
    bool has[VST__COSTS] = {false};
    int got = 0, more = 1, place;

    memset(of, 0, VST__COSTS * sizeof *of);
    if (json == NULL || *json++ != '[' || next_number(&json, &layout) != 1 ||
        layout != VST_COSTS_LAYOUT)
        return false;
    while (more == 1) {
        for (got = 0; got < VST_COSTS_GROUP && more == 1; got += more == 1)
            more = next_number(&json, &group[got]);
        if (got == 0 && more == 0)
            break;
        if (got < VST_COSTS_GROUP || !is_cost(group))
            return false;
        place = costs_place_of(group[0]);
        if (place >= 0) {
            of[place] = (vst__cost){group[1], group[2], group[3]};
            has[place] = true;
        }
    }
    for (int kind = 1; kind < VST_DEF_KINDS; kind++)
        if (!has[kind])
            of[kind] =
                (vst__cost){of[VST_DEF_PYTHON].cost, of[VST_DEF_PYTHON].inside,
                            of[VST_DEF_PYTHON].cost};
    return has[VST_DEF_PYTHON];
}

/* Divides before it multiplies, so that a long duration does not overflow. */
static uint64_t costs_share(uint64_t ns, uint64_t millionths)
{
    return ns / PS * millionths + ns % PS * millionths / PS;
}

bool vst__costs_make(vst_costs *costs, vst_trace *trace)
{
    const char *json = vst_trace_metadata(trace, VST_COSTS_METADATA);

    *costs = (vst_costs){.kind_of = NULL};
    costs->max = vst_trace_definition_max(trace);
    if (!vst__costs_parse(json, costs->of))
        return true;
    costs->kind_of = calloc((size_t)costs->max + 1, 1);
    if (costs->kind_of == NULL)
        return false;
    for (vst_id id = 1; id <= costs->max; id++) {
        const vst_definition *definition = vst_trace_definition(trace, id);

        if (definition != NULL && (int)definition->kind < VST_DEF_KINDS)
            costs->kind_of[id] = (unsigned char)definition->kind;
    }
    /* if the budget cannot be read, the reader of the spans reports that */
    return costs->of[VST__COST_PASSING].cost == 0 ||
           vst__budget_read(trace, &costs->budget, NULL) != VST_E_NOMEM;
}

void vst__costs_free(vst_costs *costs)
{
    free(costs->kind_of);
    vst__budget_free(costs->budget);
    costs->kind_of = NULL;
    costs->budget = NULL;
}

static const vst__cost *cost_of(const vst_costs *costs, vst_id id)
{
    vst_definition_kind kind = vst__costs_kind(costs, id);

    return &costs->of[kind != 0 ? kind : VST_DEF_NATIVE];
}

static void costs_count(vst__cost_clock *clock, const vst__cost *cost)
{
    clock->cost_ps += (uint64_t)cost->cost;
    clock->error_ps += (uint64_t)cost->error;
}

void vst__costs_count(const vst_costs *costs, vst__cost_clock *clock, vst_id id)
{
    costs_count(clock, cost_of(costs, id));
}

void vst__costs_count_task(const vst_costs *costs, vst__cost_clock *clock)
{
    costs_count(clock, &costs->of[VST__COST_TASK]);
}

void vst__costs_pass(const vst_costs *costs, vst__cost_clock *clock,
                     uint64_t ns)
{
    clock->cost_ps += costs_share(ns, (uint64_t)costs->of[0].cost);
    clock->error_ps += costs_share(ns, (uint64_t)costs->of[0].error);
}

void vst__costs_pass_left_out(const vst_costs *costs, vst__cost_clock *clock,
                              int64_t start_ns, int64_t end_ns, uint64_t ran_ns)
{
    const vst__cost *of = &costs->of[VST__COST_PASSING];
    double ps;

    if (costs->budget == NULL || end_ns == start_ns)
        return;
    ps = vst__budget_passing_ns(costs->budget, start_ns, end_ns) * PS *
         ((double)ran_ns / (double)((uint64_t)end_ns - (uint64_t)start_ns));
    /* a damaged file may hold any value */
    if (!(ps >= 0 && ps <= (double)COST_MAX))
        ps = (double)COST_MAX;
    clock->cost_ps += (uint64_t)(ps * (double)of->cost / MILLION);
    clock->error_ps += (uint64_t)(ps * (double)of->error / MILLION);
}

void vst__costs_take(vst__cost_clock *clock, uint64_t ns)
{
    clock->cost_ps += ns * PS;
}

/* Returns half of the longest time that a function can take after its exit, in
 * picoseconds. */
static uint64_t half_of_end(const vst_costs *costs, vst_id id,
                            uint64_t duration_ns)
{
    const vst__cost *most = &costs->of[VST__COST_END];
    uint64_t ps = costs_share(duration_ns, (uint64_t)most->cost);

    if (vst__costs_kind(costs, id) != VST_DEF_PYTHON)
        return 0;
    return (ps < (uint64_t)most->error ? ps : (uint64_t)most->error) / 2;
}

/* The span's own call has not been counted yet: only the part of its cost
 * between enter and exit is in its time, and the same part of its error. */
void vst__costs_between(const vst_costs *costs, const vst__cost_clock *start,
                        const vst__cost_clock *end, vst_id id,
                        uint64_t duration_ns, int64_t *cost_ns,
                        int64_t *error_ns)
{
    const vst__cost *own = cost_of(costs, id);
    uint64_t after = half_of_end(costs, id, duration_ns);

    *cost_ns = (int64_t)(end->cost_ps - start->cost_ps + (uint64_t)own->inside -
                         after) /
               PS;
    *error_ns = (int64_t)((end->error_ps - start->error_ps +
                           (uint64_t)own->error + after + PS - 1) /
                          PS);
}
