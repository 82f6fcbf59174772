#include "tests/bench/outcome.h"

#include <stdio.h>

outcome_t outcome_of(outcome_kind_t kind, const char *detail)
{
    outcome_t outcome = {.kind = kind};
    snprintf(outcome.detail, sizeof outcome.detail, "%s", detail ? detail : "");
    return outcome;
}
