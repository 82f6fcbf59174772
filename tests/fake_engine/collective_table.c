#include "tests/fake_engine/collective_table.h"

#include <stdlib.h>

typedef struct {
    bool joined;
    bool entered;
    uint64_t member;
} table_rank_t;

struct collective_table {
    uint32_t size;
    uint32_t entered;
    lockstep_vote_t votes; /* of those that entered */
    table_rank_t ranks[];
};

static const lockstep_vote_t no_votes = {.unfinished = false, .pausing = true};

collective_table_t *collective_table_new(uint32_t size)
{
    collective_table_t *table = calloc(1, sizeof *table + size * sizeof *table->ranks);
    if (!table)
        return NULL;
    table->size = size;
    table->votes = no_votes;
    return table;
}

void collective_table_destroy(collective_table_t **table)
{
    free(*table);
    *table = NULL;
}

bool collective_table_join(collective_table_t *table, uint64_t member, const uint32_t *ranks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ranks[i] >= table->size || table->ranks[ranks[i]].joined)
            return false;
    }
    for (uint32_t i = 0; i < count; i++)
        table->ranks[ranks[i]] = (table_rank_t){.joined = true, .member = member};
    return true;
}

static bool belongs(const table_rank_t *rank, uint64_t member)
{
    return rank->joined && rank->member == member;
}

static bool contains(const uint32_t *ranks, uint32_t count, uint32_t rank)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ranks[i] == rank)
            return true;
    }
    return false;
}

void collective_table_enter_all_but(collective_table_t *table, uint64_t member, const uint32_t *missing,
                                    uint32_t count)
{
    for (uint32_t i = 0; i < table->size; i++) {
        table_rank_t *rank = &table->ranks[i];
        if (!belongs(rank, member) || rank->entered || contains(missing, count, i))
            continue;
        rank->entered = true;
        table->entered++;
    }
}

void collective_table_enter(collective_table_t *table, uint64_t member, lockstep_vote_t vote)
{
    collective_table_enter_all_but(table, member, NULL, 0);
    table->votes.unfinished = table->votes.unfinished || vote.unfinished;
    table->votes.pausing = table->votes.pausing && vote.pausing;
}

bool collective_table_is_member(const collective_table_t *table, uint64_t member)
{
    for (uint32_t i = 0; i < table->size; i++) {
        if (belongs(&table->ranks[i], member))
            return true;
    }
    return false;
}

bool collective_table_complete(const collective_table_t *table)
{
    return table->entered == table->size;
}

uint32_t collective_table_missing(const collective_table_t *table, uint32_t *ranks)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->size; i++) {
        if (!table->ranks[i].entered)
            ranks[count++] = i;
    }
    return count;
}

lockstep_vote_t collective_table_release(collective_table_t *table)
{
    lockstep_vote_t result = table->votes;
    for (uint32_t i = 0; i < table->size; i++)
        table->ranks[i].entered = false;
    table->entered = 0;
    table->votes = no_votes;
    return result;
}
