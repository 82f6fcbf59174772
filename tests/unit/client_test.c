/* Requests on their way in: what an engine gets, and every reason for which one is refused. How requests end
 * is client_ends_test.c's. */
#include "tests/unit/client_fixture.h"

/* --- served --- */

static void test_a_request_is_served_from_its_add_to_its_end(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    assert_int_equal(client_ready(f->client, NULL), WG_OK);
    start(f, 'a', 0);
    engine_says(f, 0, "[0,[[$a,[1,2]]]]");
    engine_says(f, 0, "[0,[[$a,[]]]]");
    engine_says(f, 0, "[0,[[$a,[3],null,null,null,0]]]");
    wait_for(f, "end");
    assert_seen(f, "a +2; a +0; a +1; a end stop; ");
    client_counters_t counters = client_counters(f->client);
    assert_int_equal(counters.accepted, 1);
    assert_int_equal(counters.ended[CLIENT_STOP], 1);
    assert_int_equal(counters.aborts_sent, 0);
    assert_int_equal(client_in_flight(f->client), 0);
}

static void test_the_engine_may_make_fewer_tokens_or_repeat_itself(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    start(f, 'a', 0);
    start(f, 'b', 0);
    engine_says(f, 0, "[0,[[$a,[1,2,3,4,5,6,7,8],null,null,null,1],[$b,[9],null,null,null,4]]]");
    wait_for(f, "b end");
    assert_seen(f, "a +8; a end length; b +1; b end repetition; ");
}

/* The ADD as msgpack-c shows it, without the id, whose end is random, and the time. */
static void assert_add(fixture_t *f, char letter, const char *expected)
{
    char text[1024];
    msgpack_unpacked unpacked;
    const char *wire_id = f->requests[letter - 'a'].wire_id;
    msgpack_unpacked_init(&unpacked);
    assert_int_equal(msgpack_unpack_next(&unpacked, (const char *)f->add.data, f->add.size, NULL),
                     MSGPACK_UNPACK_SUCCESS);
    msgpack_object *fields = unpacked.data.via.array.ptr;
    assert_int_equal(strlen(wire_id), strlen("a-00000000"));
    assert_int_equal(strspn(wire_id + 2, "0123456789abcdef"), 8);
    fields[0] = (msgpack_object){.type = MSGPACK_OBJECT_NIL};
    fields[5] = (msgpack_object){.type = MSGPACK_OBJECT_NIL};
    assert_true(msgpack_object_print_buffer(text, sizeof text, unpacked.data) > 0);
    assert_string_equal(text, expected);
    msgpack_unpacked_destroy(&unpacked);
}

static void test_the_add_says_where_it_goes_and_to_whom_outputs_go_back(void **state)
{
    fixture_t *f = *state;
    client_submission_t what = submission_to(0);
    what.priority = 7;
    what.cache_salt = (wire_text_t){"salt", 4};
    bring_up(f, 0);
    bring_up(f, 1);
    start_as(f, 'a', what); /* rank 0: behind the coordinator's slot and the other frontend */
    assert_add(f, 'a',
               "[nil, [5, 6, 7], nil, {\"max_tokens\"=>8}, nil, nil, nil, \"salt\", 0, nil, nil, 2, 0, 7, "
               "nil, false, \"a\"]");
    start(f, 'b', 1);
    assert_add(f, 'b',
               "[nil, [5, 6, 7], nil, {\"max_tokens\"=>8}, nil, nil, nil, nil, 1, nil, nil, 1, 0, 0, nil, "
               "false, \"b\"]");
}

static void test_without_max_tokens_it_is_as_many_as_fit(void **state)
{
    fixture_t *f = *state;
    client_submission_t what = submission();
    what.sampling.max_tokens = 0;
    bring_up_with(f, 1, 50);
    start_as(f, 'a', what);
    assert_add(f, 'a',
               "[nil, [5, 6, 7], nil, {\"max_tokens\"=>47}, nil, nil, nil, nil, nil, nil, nil, 1, 0, 0, nil, "
               "false, \"a\"]");
}

static void test_unpinned_requests_spread_over_the_ready_ranks(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 1);
    bring_up(f, 3);
    start_as(f, 'a', submission());
    start_as(f, 'b', submission());
    assert_int_equal(
        client_request_rank(f->requests[0].entry, 0) + client_request_rank(f->requests[1].entry, 0), 1 + 3);
}

/* --- refused for what they ask --- */

static void test_an_id_that_is_in_flight_is_taken(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    bring_up(f, 1);
    start(f, 'z', 0);
    assert_submit_refused(f, submission_to(1), WG_E_DUPLICATE_REQUEST_ID, "request `z` is already in flight");
    f->requests['z' - 'a'].abort_on_output = true;
    engine_says(f, 0, "[0,[[$z,[1]]]]");
    wait_for(f, "z +1");
    start(f, 'z', 1); /* and free again once it has ended */
}

static void test_a_rank_that_is_not_ours_is_refused_with_those_that_are_connected(void **state)
{
    fixture_t *f = *state;
    wg_error_t error;
    assert_submit_refused(f, submission_to(2), WG_E_INVALID_DATA_PARALLEL_RANK,
                          "data parallel rank 2 is not connected to this frontend; connected ranks: []");
    bring_up(f, 0);
    bring_up(f, 3);
    assert_submit_refused(f, submission_to(2), WG_E_INVALID_DATA_PARALLEL_RANK,
                          "data parallel rank 2 is not connected to this frontend; connected ranks: [0, 3]");
    assert_int_equal(client_not_connected(f->client, "two", &error), WG_E_INVALID_DATA_PARALLEL_RANK);
    assert_string_equal(error.message,
                        "data parallel rank two is not connected to this frontend; connected ranks: [0, 3]");
}

/* Whichever rank it would go to, the shortest model of those that are ready counts. */
static void test_prompt_and_tokens_must_fit_into_the_shortest_model(void **state)
{
    fixture_t *f = *state;
    client_submission_t what = submission_to(0);
    frame_t owners[2];
    wire_prompt_t prompts[] = {long_prompt(&owners[0], 50), long_prompt(&owners[1], 40)};
    bring_up_with(f, 0, 100);
    bring_up_with(f, 1, 50);
    assert_int_equal(client_max_model_len(f->client), 50);
    what.prompts = &prompts[0];
    assert_submit_refused(f, what, WG_E_INVALID_REQUEST,
                          "token_ids: the prompt has 50 tokens, but must have less than max_model_len = 50");
    what.prompts = &prompts[1];
    what.sampling.max_tokens = 11;
    assert_submit_refused(f, what, WG_E_INVALID_REQUEST,
                          "sampling_params.max_tokens: 11 tokens and a prompt of 40 are more than "
                          "max_model_len = 50");
    what.sampling.max_tokens = 0;
    what.sampling.min_tokens = 11;
    assert_submit_refused(f, what, WG_E_INVALID_REQUEST,
                          "sampling_params.min_tokens: 11 is more than the 10 tokens that can be generated");
    what.sampling.min_tokens = 10;
    start_as(f, 'a', what);
    frame_free(&owners[0]);
    frame_free(&owners[1]);
}

static void test_where_no_model_length_is_known_max_tokens_must_be_given(void **state)
{
    fixture_t *f = *state;
    client_submission_t what = submission();
    frame_t owner;
    wire_prompt_t prompt = long_prompt(&owner, 1000);
    bring_up_with(f, 0, 0);
    assert_int_equal(client_max_model_len(f->client), WIRE_UNKNOWN);
    what.prompts = &prompt;
    start_as(f, 'a', what);
    frame_free(&owner);
    what.sampling.max_tokens = 0;
    assert_submit_refused(f, what, WG_E_INVALID_REQUEST,
                          "sampling_params.max_tokens: must be given: no rank has told its max_model_len");
}

/* --- refused for what state we are in --- */

static void test_more_than_the_limit_is_overload(void **state)
{
    static const char overload[] = "4 requests are in flight, the limit; retry later";
    fixture_t *f = *state;
    bring_up(f, 0);
    for (int i = 0; i < MAX_IN_FLIGHT; i++)
        start(f, "abcd"[i], 0);
    assert_submit_refused(f, submission(), WG_E_OVERLOADED, overload);
    assert_not_ready(f, WG_E_OVERLOADED, overload);
    engine_says(f, 0, "[0,[[$b,[1],null,null,null,0]]]");
    wait_for(f, "b end stop");
    start(f, 'e', 0);
}

static void test_without_a_ready_rank_each_ones_state_is_said(void **state)
{
    static const char states[] =
        "no data parallel rank is ready (rank 0: absent, rank 1: hello for N s, rank "
        "3: lost for N s)";
    fixture_t *f = *state;
    assert_not_ready(f, WG_E_NO_RANK_READY,
                     "no data parallel rank is ready (rank 0: absent, rank 1: absent, rank 3: absent)");
    bring_up(f, 3);
    engine_open(f, 1, 100);
    UNTIL(f, is_in(f, 1, WG_RANK_HELLO));
    engine_close(f, 3);
    UNTIL(f, is_in(f, 3, WG_RANK_LOST));
    assert_submit_refused(f, submission(), WG_E_NO_RANK_READY, states);
    assert_not_ready(f, WG_E_NO_RANK_READY, states);
}

static void test_a_pinned_request_waits_for_no_other_rank(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    engine_open(f, 1, 100);
    UNTIL(f, is_in(f, 1, WG_RANK_HELLO));
    assert_submit_refused(f, submission_to(1), WG_E_NO_RANK_READY,
                          "no data parallel rank is ready (rank 1: hello for N s)");
    assert_submit_refused(f, submission_to(3), WG_E_NO_RANK_READY,
                          "no data parallel rank is ready (rank 3: absent)");
}

static void test_a_draining_client_takes_nothing_more(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    client_drain(f->client);
    assert_submit_refused(f, submission(), WG_E_DRAINING, "this frontend is shutting down");
    assert_not_ready(f, WG_E_DRAINING, "this frontend is shutting down");
}

/* The queue towards an engine is as long as the limit wants it: here it never fills up. */
static int setup_unlimited(void **state)
{
    return setup_limited(state, 1000000);
}

/* The loop does not turn here, so that no sweep finds the loss first. libzmq closes in a thread of its own.
 */
static void test_a_rank_that_has_just_gone_refuses(void **state)
{
    fixture_t *f = *state;
    wg_error_t error = {0};
    uint64_t accepted = 0;
    bring_up(f, 0);
    engine_close_input(f, 0);
    while (submit(f, 'a', submission(), &error) == WG_OK && zclock_mono() < f->deadline_ms) {
        abort_request(f, 'a', CLIENT_GONE);
        accepted++;
    }
    assert_int_equal(error.status, WG_E_DISPATCHER_CLOSED);
    assert_string_equal(error.message, "engine-core output dispatcher of rank 0 closed: it is not connected");
    assert_int_equal(client_counters(f->client).accepted, accepted);
    assert_int_equal(client_in_flight(f->client), 0);
    UNTIL(f, is_in(f, 0, WG_RANK_LOST));
}

/* A request that may go anywhere moves. The ranks take turns, until one has refused. */
static void test_a_rank_that_has_just_gone_is_passed_over(void **state)
{
    fixture_t *f = *state;
    wg_error_t error = {0};
    int in_a_row = 0; /* at rank 1 */
    bring_up(f, 0);
    bring_up(f, 1);
    engine_close_input(f, 0);
    while (in_a_row < 2 && zclock_mono() < f->deadline_ms) {
        assert_int_equal(submit(f, 'a', submission(), &error), WG_OK);
        in_a_row = client_request_rank(f->requests[0].entry, 0) == 1 ? in_a_row + 1 : 0;
        abort_request(f, 'a', CLIENT_GONE);
    }
    assert_int_equal(in_a_row, 2);
    assert_int_equal(client_in_flight(f->client), 0);
    engine_close_input(f, 1); /* else it would read an ABORT of more ids than there are letters */
    UNTIL(f, is_in(f, 0, WG_RANK_LOST) && is_in(f, 1, WG_RANK_LOST));
}

/* --- the coordinator --- */

static int setup_refused(void **state)
{
    int result = setup(state);
    fixture_t *f = *state;
    f->refusal = "the configuration differs";
    return result;
}

static void test_a_client_that_the_coordinator_refuses_does_not_serve(void **state)
{
    static const char closed[] = "engine control channel closed unexpectedly: the configuration differs";
    fixture_t *f = *state;
    engine_open(f, 0, 100);
    UNTIL(f, faults_count(f->faults, FAULTS_CONTROL, WG_E_CONTROL_CLOSED) == 1);
    assert_logged_once(&f->log, closed);
    assert_false(client_joined(f->client));
    assert_submit_refused(f, submission(), WG_E_CONTROL_CLOSED, closed);
    assert_not_ready(f, WG_E_CONTROL_CLOSED, closed);
    f->refusal = NULL;
    f->told[0] = WG_RANK_READY;
    tell_ranks(f); /* as when it was restarted with our configuration */
    UNTIL(f, is_in(f, 0, WG_RANK_READY));
    assert_true(client_joined(f->client));
    start(f, 'a', 0);
}

static void test_what_is_no_control_message_is_counted(void **state)
{
    fixture_t *f = *state;
    msgpack_sbuffer buffer;
    bring_up(f, 0);
    msgpack_sbuffer_init(&buffer);
    msgpack_sbuffer_write(&buffer, "\x90", 1);
    coordinator_send(f, &buffer);
    UNTIL(f, faults_count(f->faults, FAULTS_CONTROL, WG_E_DECODE) == 1);
    assert_true(client_joined(f->client));
    start(f, 'a', 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_request_is_served_from_its_add_to_its_end),
        TEST(test_the_engine_may_make_fewer_tokens_or_repeat_itself),
        TEST(test_the_add_says_where_it_goes_and_to_whom_outputs_go_back),
        TEST(test_without_max_tokens_it_is_as_many_as_fit),
        TEST(test_unpinned_requests_spread_over_the_ready_ranks),
        TEST(test_an_id_that_is_in_flight_is_taken),
        TEST(test_a_rank_that_is_not_ours_is_refused_with_those_that_are_connected),
        TEST(test_prompt_and_tokens_must_fit_into_the_shortest_model),
        TEST(test_where_no_model_length_is_known_max_tokens_must_be_given),
        TEST(test_more_than_the_limit_is_overload),
        TEST(test_without_a_ready_rank_each_ones_state_is_said),
        TEST(test_a_pinned_request_waits_for_no_other_rank),
        TEST(test_a_draining_client_takes_nothing_more),
        cmocka_unit_test_setup_teardown(test_a_rank_that_has_just_gone_refuses, setup_unlimited, teardown),
        cmocka_unit_test_setup_teardown(test_a_rank_that_has_just_gone_is_passed_over, setup_unlimited,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_client_that_the_coordinator_refuses_does_not_serve,
                                        setup_refused, teardown),
        TEST(test_what_is_no_control_message_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
