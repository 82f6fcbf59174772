/* How requests end, each with its own cause and words, while the others go on. */
#include "tests/unit/client_fixture.h"

/* --- by the engine --- */

static void assert_ends(fixture_t *f, const char *outputs, const char *story, client_cause_t cause)
{
    bring_up(f, 0);
    start(f, 'a', 0);
    start(f, 'b', 0);
    engine_says(f, 0, outputs);
    engine_says(f, 0, "[0,[[$b,[1]]]]"); /* the other one goes on */
    wait_for(f, "b +1; ");
    assert_seen(f, story);
    assert_int_equal(client_counters(f->client).ended[cause], 1);
    assert_int_equal(client_in_flight(f->client), 1);
}

/* What the engine has got by the time that it gets the next request, and no more. */
static void assert_got_before_next(fixture_t *f, const char *expected, uint64_t aborts)
{
    UNTIL(f, client_counters(f->client).aborts_sent >= aborts);
    assert_int_equal(submit(f, 'y', submission_to(0), NULL), WG_OK);
    wait_for(f, "0 ADD y; ");
    assert_got(f, expected);
    assert_int_equal(client_counters(f->client).aborts_sent, aborts);
}

static void assert_aborted(fixture_t *f)
{
    assert_got_before_next(f, "0 ABORT a; 0 ADD y; ", 1);
}

/* What the engine itself has ended needs no ABORT. */
static void assert_not_aborted(fixture_t *f)
{
    assert_got_before_next(f, "0 ADD y; ", 0);
}

static void test_finish_reason_3_is_an_engine_request_error(void **state)
{
    assert_ends(*state, "[0,[[$a,[1],null,null,null,3]]]",
                "a +1; a end error EngineRequestError: engine reported an internal error for `a` (finish "
                "reason 3); b +1; ",
                CLIENT_ERROR);
    assert_not_aborted(*state);
}

static void test_finish_reason_2_is_an_abort_by_the_engine(void **state)
{
    assert_ends(*state, "[0,[[$a,[],null,null,null,2]]]",
                "a +0; a end abort RequestAborted: request `a` was aborted: by the engine; b +1; ",
                CLIENT_ABORT);
    assert_not_aborted(*state);
}

#define STREAM_CLOSED                                                                                        \
    "a end stream_closed RequestStreamClosed: request output stream for `a` closed unexpectedly; "

static void test_a_request_that_is_only_named_as_finished_was_dropped(void **state)
{
    assert_ends(*state, "[0,[],null,0.0,null,['someone-else',$a]]", STREAM_CLOSED "b +1; ",
                CLIENT_STREAM_CLOSED);
    assert_not_aborted(*state);
}

static void test_one_that_is_named_as_finished_with_its_last_output_has_ended_well(void **state)
{
    assert_ends(*state, "[0,[[$a,[1],null,null,null,0]],null,0.0,null,[$a]]", "a +1; a end stop; b +1; ",
                CLIENT_STOP);
}

static void test_length_with_too_few_tokens_means_that_some_are_lost(void **state)
{
    assert_ends(*state, "[0,[[$a,[1,2,3,4,5,6,7],null,null,null,1]]]", STREAM_CLOSED "b +1; ",
                CLIENT_STREAM_CLOSED);
    assert_aborted(*state);
}

static void test_more_tokens_than_were_asked_for_are_not_passed_on(void **state)
{
    assert_ends(*state, "[0,[[$a,[1,2,3,4,5,6,7,8,9]]]]", STREAM_CLOSED "b +1; ", CLIENT_STREAM_CLOSED);
    assert_aborted(*state);
}

/* Where the model length is unknown, the engine may be the one that knows what fits. */
static void test_length_may_come_early_where_the_model_length_is_unknown(void **state)
{
    fixture_t *f = *state;
    bring_up_with(f, 0, 0);
    start(f, 'a', 0);
    engine_says(f, 0, "[0,[[$a,[1],null,null,null,1]]]");
    wait_for(f, "end");
    assert_seen(f, "a +1; a end length; ");
}

static void test_a_cut_output_connection_closes_the_streams_of_its_rank(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    bring_up(f, 1);
    start(f, 'a', 0);
    start(f, 'b', 1);
    engine_says(f, 0, "[0,[[$a,[1]]]]");
    engine_says(f, 1, "[1,[[$b,[1]]]]");
    wait_for(f, "a +1; ");
    wait_for(f, "b +1; ");
    text_buffer_clear(&f->seen);
    zsock_destroy(&f->engines[0].output);
    wait_for(f, "0 ABORT");
    assert_got(f, "0 ABORT a; ");
    assert_seen(f, STREAM_CLOSED);
    assert_true(is_in(f, 0, WG_RANK_HELLO)); /* until it answers over another */
    engine_says(f, 1, "[1,[[$b,[2],null,null,null,0]]]");
    wait_for(f, "b end stop; ");
}

/* --- by a loss --- */

static void lose_rank_0(fixture_t *f, const char *last_words, const char *story)
{
    bring_up(f, 0);
    bring_up(f, 1);
    start(f, 'a', 0);
    start(f, 'b', 1);
    if (last_words)
        engine_send(f, 0, last_words, strlen(last_words));
    engine_says(f, 0, "[0,[[$a,[1]]]]"); /* behind the last words, which thus are read, too */
    wait_for(f, "a +1; ");
    text_buffer_clear(&f->seen);
    engine_close_input(f, 0);
    UNTIL(f, is_in(f, 0, WG_RANK_LOST));
    assert_seen(f, story);
    assert_int_equal(client_counters(f->client).ended[CLIENT_RANK_LOST], 1);
    engine_says(f, 1, "[1,[[$b,[1],null,null,null,0]]]");
    wait_for(f, "b end stop; ");
}

static void test_a_rank_that_dies_with_a_word_is_dead(void **state)
{
    lose_rank_0(*state, WIRE_ENGINE_CORE_DEAD,
                "a end rank_lost EngineCoreDead: engine core of rank 0 reported fatal failure; ");
}

static void test_a_rank_that_goes_without_a_word_is_closed(void **state)
{
    lose_rank_0(*state, NULL,
                "a end rank_lost DispatcherClosed: engine-core output dispatcher of rank 0 closed: its "
                "connection was lost; ");
}

/* --- by us --- */

static void test_what_is_in_flight_ends_with_the_drain(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    bring_up(f, 3);
    start(f, 'a', 0);
    start(f, 'b', 3);
    client_drain(f->client);
    assert_seen(f, "a end draining Draining: this frontend is shutting down; "
                   "b end draining Draining: this frontend is shutting down; ");
    assert_int_equal(client_counters(f->client).ended[CLIENT_DRAINING], 2);
    wait_for(f, "0 ABORT a; ");
    wait_for(f, "3 ABORT b; ");
}

static void test_aborts_of_one_turn_are_one_message_a_rank(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    bring_up(f, 3);
    start(f, 'a', 0);
    start(f, 'b', 3);
    start(f, 'c', 0);
    client_request_t *first = f->requests[0].entry;
    abort_request(f, 'a', CLIENT_GONE);
    client_abort(f->client, first, CLIENT_GONE); /* again, which changes nothing */
    abort_request(f, 'b', CLIENT_SLOW_CONSUMER);
    abort_request(f, 'c', CLIENT_GONE);
    assert_int_equal(client_in_flight(f->client), 0);
    wait_for(f, "0 ABORT ac; ");
    wait_for(f, "3 ABORT b; ");
    assert_int_equal(f->got.size, strlen("0 ABORT ac; 3 ABORT b; "));
    assert_seen(f, ""); /* who aborts needs no end */
    client_counters_t counters = client_counters(f->client);
    assert_int_equal(counters.aborts_sent, 3);
    assert_int_equal(counters.ended[CLIENT_GONE], 2);
    assert_int_equal(counters.ended[CLIENT_SLOW_CONSUMER], 1);
}

/* Even where that output was the last. */
static void test_an_output_may_be_answered_with_an_abort(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    start(f, 'a', 0);
    f->requests[0].abort_on_output = true;
    engine_says(f, 0, "[0,[[$a,[1],null,null,null,0]]]");
    wait_for(f, "0 ABORT a; ");
    assert_seen(f, "a +1; ");
    assert_got(f, "0 ABORT a; ");
    assert_int_equal(client_counters(f->client).ended[CLIENT_GONE], 1);
    assert_int_equal(client_counters(f->client).ended[CLIENT_STOP], 0);
}

static void test_aborts_that_are_due_go_out_before_the_client_goes(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    start(f, 'a', 0);
    start(f, 'b', 0);
    abort_request(f, 'b', CLIENT_GONE);
    client_destroy(&f->client);
    wait_for(f, "0 ABORT b; ");
    assert_got(f, "0 ABORT b; ");
    assert_seen(f, ""); /* what is in flight has no end */
}

/* --- outputs that are nobody's --- */

static void test_an_orphan_is_aborted_once_in_a_while(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    engine_says(f, 0, "[0,[['m-00000000',[1]],['n-00000000',[1]],['m-00000000',[1]]]]");
    engine_says(f, 0, "[0,[['o-00000000',[1],null,null,null,0]]]"); /* over anyway */
    UNTIL(f, client_counters(f->client).orphan_outputs == 4);
    assert_got_before_next(f, "0 ABORT m; 0 ABORT n; 0 ADD y; ", 2);
}

/* They were on their way when the ABORT went out. */
static void test_the_last_outputs_of_an_aborted_request_are_not_aborted_again(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    start(f, 'a', 0);
    abort_request(f, 'a', CLIENT_GONE);
    wait_for(f, "0 ABORT a; ");
    engine_says(f, 0, "[0,[[$a,[1]]]]");
    UNTIL(f, client_counters(f->client).orphan_outputs == 1);
    assert_got_before_next(f, "0 ABORT a; 0 ADD y; ", 1);
}

/* --- outputs that are malformed, or on the wrong path --- */

static void test_an_output_that_cannot_be_understood_ends_its_request_alone(void **state)
{
    assert_ends(*state, "[0,[[$a,'tokens'],[$b,[]]]]",
                "a end decode Decode: messagepack decode failed for EngineCoreOutput at byte 12: not an "
                "array; b +0; b +1; ",
                CLIENT_DECODE);
    assert_int_equal(faults_count(((fixture_t *)*state)->faults, FAULTS_OUTPUT, WG_E_DECODE), 1);
    assert_aborted(*state);
}

/* Counted and logged, and that is all. */
static void assert_only_counted(fixture_t *f, const char *outputs, wg_status_t status, const char *logged)
{
    uint64_t before = faults_count(f->faults, FAULTS_OUTPUT, status);
    engine_says(f, 0, outputs);
    engine_says(f, 0, "[0,[[$a,[]]]]");
    wait_for(f, "a +0; ");
    assert_seen(f, "a +0; ");
    assert_int_equal(faults_count(f->faults, FAULTS_OUTPUT, status), before + 1);
    assert_int_equal(client_in_flight(f->client), 1);
    if (logged)
        assert_logged_once(&f->log, logged);
}

#define UNEXPECTED(rank, what)                                                                               \
    WG_E_UNEXPECTED_DISPATCHER_OUTPUT, "unexpected output on dispatcher path of rank " rank ": " what

static void test_what_does_not_belong_here_ends_nothing(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    start(f, 'a', 0);
    assert_only_counted(f, "[0,[],null,0.0,null,null,3]", UNEXPECTED("0", "a wave"));
    assert_only_counted(f, "[0,[],null,0.0,null,null,null,3]", WG_E_UNEXPECTED_DISPATCHER_OUTPUT, NULL);
    assert_only_counted(f, "[1,[],null,0.0,[7,null,null],[$a]]",
                        UNEXPECTED("1", "the answer to a utility call that nobody made"));
    assert_only_counted(f, "[2,[[$a,[1]]],null,0.0,null,[$a]]",
                        UNEXPECTED("2", "this frontend does not serve the rank"));
}

static void test_a_notice_that_nobody_asked_for_is_no_fault(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    start(f, 'a', 0);
    engine_says(f, 0, "[0,[],null,0.0,[-1,null,null]]");
    engine_says(f, 0, "[0,[[$a,[]]]]");
    wait_for(f, "a +0; ");
    assert_int_equal(faults_count(f->faults, FAULTS_OUTPUT, WG_E_UNEXPECTED_DISPATCHER_OUTPUT), 0);
}

static void assert_ends_all(fixture_t *f, const char *outputs)
{
    bring_up(f, 0);
    start(f, 'a', 0);
    engine_says(f, 0, outputs);
    wait_for(f, STREAM_CLOSED);
    assert_seen(f, STREAM_CLOSED);
    assert_int_equal(client_in_flight(f->client), 0);
}

/* Its tokens may have been in it. */
static void test_a_malformed_envelope_ends_the_requests_of_its_rank(void **state)
{
    fixture_t *f = *state;
    assert_ends_all(f, "{}");
    assert_logged_once(&f->log, "messagepack decode failed for EngineCoreOutputs at byte 0: not an array");
}

static void test_an_output_without_an_id_ends_the_requests_of_its_rank(void **state)
{
    assert_ends_all(*state, "[0,[[5,[1]]]]");
}

/* Another rank's engine cannot end it either. */
static void test_a_request_is_its_own_ranks(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    bring_up(f, 1);
    start(f, 'a', 0);
    engine_says(f, 1, "[1,[[$a,[1],null,null,null,0]],null,0.0,null,[$a]]");
    UNTIL(f, client_counters(f->client).orphan_outputs == 1);
    assert_seen(f, "");
    assert_int_equal(client_in_flight(f->client), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_finish_reason_3_is_an_engine_request_error),
        TEST(test_finish_reason_2_is_an_abort_by_the_engine),
        TEST(test_a_request_that_is_only_named_as_finished_was_dropped),
        TEST(test_one_that_is_named_as_finished_with_its_last_output_has_ended_well),
        TEST(test_length_with_too_few_tokens_means_that_some_are_lost),
        TEST(test_more_tokens_than_were_asked_for_are_not_passed_on),
        TEST(test_length_may_come_early_where_the_model_length_is_unknown),
        TEST(test_a_cut_output_connection_closes_the_streams_of_its_rank),
        TEST(test_a_rank_that_dies_with_a_word_is_dead),
        TEST(test_a_rank_that_goes_without_a_word_is_closed),
        TEST(test_what_is_in_flight_ends_with_the_drain),
        TEST(test_aborts_of_one_turn_are_one_message_a_rank),
        TEST(test_an_output_may_be_answered_with_an_abort),
        TEST(test_aborts_that_are_due_go_out_before_the_client_goes),
        TEST(test_an_orphan_is_aborted_once_in_a_while),
        TEST(test_the_last_outputs_of_an_aborted_request_are_not_aborted_again),
        TEST(test_an_output_that_cannot_be_understood_ends_its_request_alone),
        TEST(test_what_does_not_belong_here_ends_nothing),
        TEST(test_a_notice_that_nobody_asked_for_is_no_fault),
        TEST(test_a_malformed_envelope_ends_the_requests_of_its_rank),
        TEST(test_an_output_without_an_id_ends_the_requests_of_its_rank),
        TEST(test_a_request_is_its_own_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
