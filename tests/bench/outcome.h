/* outcome.h: how a request ended, exactly one for each. Plain value. Tests:
 * tests/integration/test_bench.py */
#ifndef WG_TESTS_BENCH_OUTCOME_H
#define WG_TESTS_BENCH_OUTCOME_H

typedef enum {
    OUTCOME_OK,            /* all of its answer is here */
    OUTCOME_HTTP,          /* an HTTP error; detail: the error's code */
    OUTCOME_ERROR_EVENT,   /* in a stream that had begun; detail: the error's code */
    OUTCOME_DROPPED,       /* by us; detail: the phase */
    OUTCOME_CUT,           /* the server closed before the end; detail: when */
    OUTCOME_NOT_CONNECTED, /* detail: why */
    OUTCOME_MALFORMED,     /* detail: the fault */
    OUTCOME_STALLED,       /* nothing came for too long */
} outcome_kind_t;

#define OUTCOME_KINDS (OUTCOME_STALLED + 1)

typedef struct {
    outcome_kind_t kind;
    int status;      /* of OUTCOME_HTTP */
    char detail[80]; /* empty where there is none */
} outcome_t;

/* detail may be NULL. */
outcome_t outcome_of(outcome_kind_t kind, const char *detail);

#endif
