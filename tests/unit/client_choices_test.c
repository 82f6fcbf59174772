/* Requests of several choices: admitted together, ended together (cases B042). */
#include "tests/unit/client_fixture.h"

static client_submission_t three_choices(void)
{
    client_submission_t out = submission_to(0);
    out.choices_per_prompt = 3;
    return out;
}

/* The wire ids of the last `count` ADDs, in order. */
static void start_choices(fixture_t *f, char letter, client_submission_t what, const char *got)
{
    wg_error_t error = {0};
    if (submit(f, letter, what, &error) != WG_OK)
        fail_msg("refused: %s", error.message);
    wait_for(f, got);
    assert_got(f, got);
    text_buffer_clear(&f->seen);
}

/* Of the choices of a request, whose wire ids end in numbers one apart; $a is the last one's. */
static void engine_says_of_choice(fixture_t *f, char letter, uint32_t count, uint32_t choice,
                                  const char *rest)
{
    char text[256];
    request_t *request = &f->requests[letter - 'a'];
    unsigned long last = strtoul(request->wire_id + 2, NULL, 16);
    snprintf(text, sizeof text, "[0,[['%c-%08x',%s]]]", letter, (uint32_t)(last - (count - 1) + choice),
             rest);
    engine_says(f, 0, text);
}

static void test_choices_are_requests_of_their_own_at_one_rank(void **state)
{
    fixture_t *f = *state;
    client_submission_t what = submission();
    bring_up(f, 0);
    bring_up(f, 1);
    what.choices_per_prompt = 3;
    assert_int_equal(submit(f, 'a', what, NULL), WG_OK);
    uint32_t rank = client_request_rank(f->requests[0].entry, 0);
    wait_for(f, rank == 0 ? "0 ADD a; 0 ADD a; 0 ADD a; " : "1 ADD a; 1 ADD a; 1 ADD a; ");
    for (uint32_t choice = 1; choice < 3; choice++)
        assert_int_equal(client_request_rank(f->requests[0].entry, choice), rank);
    assert_int_equal(client_in_flight(f->client), 3);
    assert_int_equal(dispatcher_in_flight(client_dispatcher(f->client, place_of(rank))), 3);
    assert_int_equal(client_counters(f->client).accepted, 1);
}

static void test_a_request_has_ended_when_all_its_choices_have(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    start_choices(f, 'a', three_choices(), "0 ADD a; 0 ADD a; 0 ADD a; ");
    engine_says_of_choice(f, 'a', 3, 1, "[1,2],null,null,null,0");
    wait_for(f, "a.1 +2; ");
    assert_int_equal(client_in_flight(f->client), 2);
    engine_says_of_choice(f, 'a', 3, 0, "[1]");
    engine_says_of_choice(f, 'a', 3, 2, "[],null,null,null,0");
    engine_says_of_choice(f, 'a', 3, 0, "[],null,null,null,4");
    wait_for(f, "end");
    assert_seen(f, "a.1 +2; a +1; a.2 +0; a +0; a end repetition; ");
    assert_int_equal(client_in_flight(f->client), 0);
    assert_int_equal(client_counters(f->client).ended[CLIENT_REPETITION], 1);
    assert_int_equal(client_counters(f->client).aborts_sent, 0);
}

static void test_the_failure_of_a_choice_ends_the_request_and_aborts_the_others(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    start_choices(f, 'a', three_choices(), "0 ADD a; 0 ADD a; 0 ADD a; ");
    engine_says_of_choice(f, 'a', 3, 2, "[1],null,null,null,0");
    engine_says_of_choice(f, 'a', 3, 1, "[],null,null,null,3");
    wait_for(f, "0 ABORT a; ");
    assert_seen(
        f,
        "a.2 +1; a.1 +0; a end error EngineRequestError: engine reported an internal error for `a` (finish "
        "reason 3); ");
    assert_got(f, "0 ABORT a; ");
    assert_int_equal(client_counters(f->client).aborts_sent, 1);
    assert_int_equal(client_counters(f->client).ended[CLIENT_ERROR], 1);
    assert_int_equal(client_in_flight(f->client), 0);
}

static void test_an_abort_names_every_choice(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    start_choices(f, 'a', three_choices(), "0 ADD a; 0 ADD a; 0 ADD a; ");
    abort_request(f, 'a', CLIENT_GONE);
    wait_for(f, "0 ABORT aaa; ");
    assert_got(f, "0 ABORT aaa; ");
    assert_int_equal(client_in_flight(f->client), 0);
    assert_int_equal(client_counters(f->client).ended[CLIENT_GONE], 1);
}

static void test_the_loss_of_a_rank_ends_a_request_once(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    start_choices(f, 'a', three_choices(), "0 ADD a; 0 ADD a; 0 ADD a; ");
    engine_close(f, 0);
    wait_for(f, "end");
    assert_seen(
        f, "a end rank_lost DispatcherClosed: engine-core output dispatcher of rank 0 closed: its connection "
           "was lost; ");
    assert_int_equal(client_counters(f->client).ended[CLIENT_RANK_LOST], 1);
}

static void test_choices_that_do_not_all_have_room_are_all_refused(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    start(f, 'b', 0);
    start(f, 'c', 0);
    assert_submit_refused(f, three_choices(), WG_E_OVERLOADED,
                          "4 requests are in flight, the limit; retry later");
    client_submission_t what = submission_to(0);
    what.choices_per_prompt = MAX_IN_FLIGHT + 1;
    assert_submit_refused(f, what, WG_E_INVALID_REQUEST,
                          "sampling_params.n: 5 choices at once are more than limits.max_in_flight = 4");
    start(f, 'd', 0);
    assert_int_equal(client_in_flight(f->client), 3);
}

static void test_prompts_are_checked_before_the_first_add(void **state)
{
    fixture_t *f = *state;
    frame_t owner;
    const wire_prompt_t prompts[] = {short_prompt, long_prompt(&owner, 100)};
    client_submission_t what = submission_to(0);
    bring_up(f, 0);
    what.prompts = prompts;
    what.prompt_count = 2;
    assert_submit_refused(
        f, what, WG_E_INVALID_REQUEST,
        "token_ids: the prompt has 100 tokens, but must have less than max_model_len = 100");
    start(f, 'b', 0);
    frame_free(&owner);
}

static void test_prompts_spread_over_the_ranks(void **state)
{
    fixture_t *f = *state;
    const wire_prompt_t prompts[] = {short_prompt, short_prompt};
    client_submission_t what = submission();
    bring_up(f, 0);
    bring_up(f, 1);
    what.prompts = prompts;
    what.prompt_count = 2;
    what.choices_per_prompt = 2;
    assert_int_equal(submit(f, 'a', what, NULL), WG_OK);
    const client_request_t *request = f->requests[0].entry;
    assert_int_equal(client_request_rank(request, 0), client_request_rank(request, 1));
    assert_int_equal(client_request_rank(request, 2), client_request_rank(request, 3));
    assert_int_equal(client_request_rank(request, 0) + client_request_rank(request, 2), 0 + 1);
    abort_request(f, 'a', CLIENT_GONE);
    wait_for(f, "0 ABORT aa; ");
    wait_for(f, "1 ABORT aa; ");
}

static void test_a_client_may_go_with_choices_in_flight(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    start_choices(f, 'a', three_choices(), "0 ADD a; 0 ADD a; 0 ADD a; ");
    engine_says_of_choice(f, 'a', 3, 1, "[1],null,null,null,0");
    wait_for(f, "a.1 +1; ");
    f->requests[0].entry = NULL; /* teardown destroys the client; leaks are the sanitizer's to find */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_choices_are_requests_of_their_own_at_one_rank),
        TEST(test_a_request_has_ended_when_all_its_choices_have),
        TEST(test_the_failure_of_a_choice_ends_the_request_and_aborts_the_others),
        TEST(test_an_abort_names_every_choice),
        TEST(test_the_loss_of_a_rank_ends_a_request_once),
        TEST(test_choices_that_do_not_all_have_room_are_all_refused),
        TEST(test_prompts_are_checked_before_the_first_add),
        TEST(test_prompts_spread_over_the_ranks),
        TEST(test_a_client_may_go_with_choices_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
