/* A file that is right: what it gives, and that what is printed of it can be loaded again. */
#include "tests/unit/config_file.h"

#define LOCKSTEP                                                                                             \
    "ranks = { count = 4; lockstep = true; master_ip = \"10.0.0.1\"; master_port = 29600;"                   \
    " master_ports = [ 29601, 29602 ]; };\n"

static void every_value_goes_to_its_place(void **state)
{
    (void)state;
    wg_config_t *config = config_of(CONFIG_TEXT);
    assert_string_equal(config->model.name, "demo");
    assert_int_equal(config->model.vocab_size, 32000);
    assert_int_equal(config->model.eos_count, 2);
    assert_int_equal(config->model.eos_token_ids[0], 2);
    assert_int_equal(config->model.eos_token_ids[1], 7);
    assert_int_equal(config->ranks.count, 4);
    assert_false(config->ranks.lockstep);
    assert_string_equal(config->coordinator.handshake.address, "tcp://127.0.0.1:29550");
    assert_string_equal(config->coordinator.handshake.bind, "tcp://127.0.0.1:29550");
    assert_string_equal(config->coordinator.engine_publish.address, "tcp://127.0.0.1:29551");
    assert_string_equal(config->coordinator.engine_output.address, "tcp://127.0.0.1:29552");
    assert_string_equal(config->coordinator.frontend_publish.address, "tcp://127.0.0.1:29553");
    assert_string_equal(config->coordinator.control.address, "tcp://127.0.0.1:29554");
    assert_string_equal(config->coordinator.input.address, "tcp://127.0.0.1:29555");
    assert_string_equal(config->coordinator.output.address, "tcp://127.0.0.1:29556");
    assert_string_equal(config->coordinator.http.host, "127.0.0.1");
    assert_int_equal(config->coordinator.http.port, 9000);
    assert_int_equal(config->frontend_count, 2);
    const config_frontend_t *second = wg_config_frontend(config, "fe1");
    assert_ptr_equal(second, &config->frontends[1]);
    assert_int_equal(second->rank_count, 2);
    assert_int_equal(second->ranks[0], 0);
    assert_int_equal(second->ranks[1], 2);
    assert_string_equal(second->input.address, "tcp://127.0.0.1:29562");
    assert_string_equal(second->output.bind, "tcp://127.0.0.1:29563");
    assert_int_equal(second->http.port, 8001);
    assert_null(wg_config_frontend(config, "fe2"));
    wg_config_destroy(&config);
    assert_null(config);
    wg_config_destroy(&config);
}

static void an_absent_key_has_its_default(void **state)
{
    (void)state;
    wg_config_t *config = config_of_replaced(" vocab_size = 32000; eos_token_ids = [ 2, 7 ];", "");
    assert_int_equal(config->model.vocab_size, 0);
    assert_int_equal(config->model.eos_count, 0);
    assert_null(config->ranks.master_ip);
    assert_int_equal(config->limits.max_in_flight, 4096);
    assert_int_equal(config->limits.max_body_bytes, 8 << 20);
    assert_int_equal(config->limits.max_stream_bytes, 4 << 20);
    assert_int_equal(config->limits.max_connections, 8192);
    assert_int_equal(config->timeouts.heartbeat_interval_ms, 2000);
    assert_int_equal(config->timeouts.heartbeat_timeout_ms, 10000);
    assert_int_equal(config->timeouts.waiting_log_ms, 10000);
    assert_int_equal(config->timeouts.startup_ms, 0);
    assert_int_equal(config->timeouts.on_startup_timeout, CONFIG_STARTUP_WAIT);
    assert_int_equal(config->timeouts.http_idle_ms, 120000);
    assert_int_equal(config->timeouts.rank_silence_ms, 0);
    assert_string_equal(config->log_level, "notice");
    wg_config_destroy(&config);
}

static void the_wave_sockets_may_be_absent_together(void **state)
{
    (void)state;
    wg_config_t *config = config_of_replaced("  engine_publish = \"tcp://127.0.0.1:29551\";\n"
                                             "  engine_output = \"tcp://127.0.0.1:29552\";\n"
                                             "  frontend_publish = \"tcp://127.0.0.1:29553\";\n",
                                             "");
    assert_string_equal(config->coordinator.engine_publish.address, "");
    assert_string_equal(config->coordinator.engine_publish.bind, "");
    assert_string_equal(config->coordinator.frontend_publish.address, "");
    wg_config_destroy(&config);
}

static void a_lockstep_group_has_its_master(void **state)
{
    (void)state;
    wg_config_t *config = config_of_replaced(CONFIG_RANKS, LOCKSTEP);
    assert_true(config->ranks.lockstep);
    assert_string_equal(config->ranks.master_ip, "10.0.0.1");
    assert_int_equal(config->ranks.master_port, 29600);
    assert_int_equal(config->ranks.master_port_count, 2);
    assert_int_equal(config->ranks.master_ports[1], 29602);
    wg_config_destroy(&config);
}

static void an_integer_may_be_a_long_one(void **state)
{
    (void)state;
    wg_config_t *config = config_of_replaced("vocab_size = 32000; eos_token_ids = [ 2, 7 ]",
                                             "vocab_size = 32000L; eos_token_ids = ( 2L, 0x7 )");
    assert_int_equal(config->model.vocab_size, 32000);
    assert_int_equal(config->model.eos_token_ids[0], 2);
    assert_int_equal(config->model.eos_token_ids[1], 7);
    wg_config_destroy(&config);
}

/* --- addresses --- */

static void assert_address(const char *keys, const char *address, const char *bind)
{
    wg_config_t *config = config_of_replaced("handshake = \"tcp://127.0.0.1:29550\";", keys);
    assert_string_equal(config->coordinator.handshake.address, address);
    assert_string_equal(config->coordinator.handshake.bind, bind);
    wg_config_destroy(&config);
}

static void every_form_of_address_is_kept_as_it_stands(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "tcp://node-1.example.org:65535", "tcp://[::1]:5000",
        "tcp://[fe80::1%lo]:5000",        "tcp://10.1.2.3:5000",
        "ipc:///run/wavegate/handshake",  "tcp://localhost.example.org:1",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char keys[160];
        snprintf(keys, sizeof keys, "handshake = \"%s\";", forms[i]);
        assert_address(keys, forms[i], forms[i]);
    }
}

/* libzmq binds no host names, and with "::1 localhost" alone in /etc/hosts IPv4 would not find it. */
static void localhost_becomes_a_number(void **state)
{
    (void)state;
    assert_address("handshake = \"tcp://localhost:65535\";", "tcp://127.0.0.1:65535",
                   "tcp://127.0.0.1:65535");
    assert_address("handshake = \"tcp://node1:1\"; handshake_bind = \"tcp://LocalHost:2\";", "tcp://node1:1",
                   "tcp://127.0.0.1:2");
}

static void an_ipc_path_may_have_107_bytes(void **state)
{
    (void)state;
    char address[WG_ADDRESS_SIZE];
    char keys[256];
    snprintf(address, sizeof address, "ipc:///%0106d", 0);
    snprintf(keys, sizeof keys, "handshake = \"%s\";", address);
    assert_address(keys, address, address);
}

static void a_wildcard_may_be_bound(void **state)
{
    (void)state;
    assert_address("handshake = \"tcp://10.0.0.1:29550\"; handshake_bind = \"tcp://*:29550\";",
                   "tcp://10.0.0.1:29550", "tcp://*:29550");
    assert_address("handshake = \"tcp://[fd00::1]:29550\"; handshake_bind = \"tcp://[::]:29549\";",
                   "tcp://[fd00::1]:29550", "tcp://[::]:29549");
    assert_address("handshake = \"tcp://10.0.0.1:29550\"; handshake_bind = \"tcp://0.0.0.0:29550\";",
                   "tcp://10.0.0.1:29550", "tcp://0.0.0.0:29550");
}

static void assert_http(const char *text, const char *host, uint16_t port)
{
    char keys[96];
    snprintf(keys, sizeof keys, "http = \"%s\"", text);
    wg_config_t *config = config_of_replaced("http = \"127.0.0.1:9000\"", keys);
    assert_string_equal(config->coordinator.http.host, host);
    assert_int_equal(config->coordinator.http.port, port);
    wg_config_destroy(&config);
}

static void an_http_host_becomes_a_number(void **state)
{
    (void)state;
    assert_http("localhost:9000", "127.0.0.1", 9000);
    assert_http("10.0.0.1:1", "10.0.0.1", 1);
    assert_http("[::1]:65535", "::1", 65535);
    assert_http("[0:0:0:0:0:0:0:1]:9000", "::1", 9000);
    assert_http("*:9000", "0.0.0.0", 9000);
    assert_http("0.0.0.0:9000", "0.0.0.0", 9000);
    assert_http("[::]:9000", "::", 9000);
    assert_http("127.0.0.1:0", "127.0.0.1", 0);
}

static void any_free_port_may_be_wanted_twice(void **state)
{
    (void)state;
    char *text = config_replaced(CONFIG_TEXT, "127.0.0.1:8000", "127.0.0.1:0");
    char *both = config_replaced(text, "127.0.0.1:8001", "127.0.0.1:0");
    wg_config_t *config = config_of(both);
    assert_int_equal(config->frontends[1].http.port, 0);
    wg_config_destroy(&config);
    free(both);
    free(text);
}

/* Two machines: the same wildcard and loopback ports on each are no overlap. */
static void machines_that_are_apart_may_bind_the_same_ports(void **state)
{
    (void)state;
    wg_config_t *config =
        config_of(CONFIG_MODEL CONFIG_RANKS
                  "coordinator = {\n"
                  "  handshake = \"tcp://10.0.0.1:29550\"; handshake_bind = \"tcp://*:29550\";\n"
                  "  control = \"tcp://10.0.0.1:29551\"; input = \"tcp://10.0.0.1:29552\"; output = "
                  "\"tcp://10.0.0.1:29553\";\n"
                  "  http = \"127.0.0.1:8000\"; };\n"
                  "frontends = (\n"
                  "  { name = \"fe0\"; ranks = \"0-1\"; http = \"0.0.0.0:8000\";\n"
                  "    input = \"tcp://10.0.0.2:29550\"; input_bind = \"tcp://*:29550\"; output = "
                  "\"tcp://10.0.0.2:29551\"; },\n"
                  "  { name = \"fe1\"; ranks = \"2-3\"; http = \"0.0.0.0:8000\";\n"
                  "    input = \"tcp://10.0.0.3:29550\"; input_bind = \"tcp://*:29550\"; output = "
                  "\"tcp://10.0.0.3:29551\"; } );\n");
    assert_string_equal(config->frontends[0].input.bind, config->frontends[1].input.bind);
    wg_config_destroy(&config);
}

/* --- ranks --- */

static void assert_ranks(const char *text, const uint32_t *ranks, uint32_t count)
{
    char keys[96];
    snprintf(keys, sizeof keys, "ranks = \"%s\"; http = \"127.0.0.1:8001\"", text);
    char *wide = config_replaced(CONFIG_TEXT, "ranks = \"0-3\"", "ranks = \"0-9\"");
    char *ten = config_replaced(wide, "count = 4", "count = 10");
    char *changed = config_replaced(ten, "ranks = \"0,2\"; http = \"127.0.0.1:8001\"", keys);
    wg_config_t *config = config_of(changed);
    assert_int_equal(config->frontends[1].rank_count, count);
    assert_memory_equal(config->frontends[1].ranks, ranks, count * sizeof *ranks);
    wg_config_destroy(&config);
    free(changed);
    free(ten);
    free(wide);
}

static void ranks_are_listed_in_ascending_order(void **state)
{
    (void)state;
    assert_ranks("0-3", (const uint32_t[]){0, 1, 2, 3}, 4);
    assert_ranks("2,0", (const uint32_t[]){0, 2}, 2);
    assert_ranks("4-7,9", (const uint32_t[]){4, 5, 6, 7, 9}, 5);
    assert_ranks("9,4-4", (const uint32_t[]){4, 9}, 2);
    assert_ranks(" 1 - 2 , 005 ", (const uint32_t[]){1, 2, 5}, 3);
}

/* Every rank by itself, the longest list that there is without a range. */
static void a_list_of_65536_ranks_is_read(void **state)
{
    (void)state;
    size_t size = sizeof "ranks = \"\"" + (WG_RANK_MAX + 1) * sizeof ",65535";
    char *keys = malloc(size);
    assert_non_null(keys);
    size_t used = (size_t)snprintf(keys, size, "ranks = \"0");
    for (uint32_t rank = 1; rank <= WG_RANK_MAX; rank++)
        used += (size_t)snprintf(keys + used, size - used, ",%u", rank);
    snprintf(keys + used, size - used, "\"");
    char *many = config_replaced(CONFIG_TEXT, "count = 4", "count = 65536");
    char *text = config_replaced(many, "ranks = \"0-3\"", keys);
    wg_config_t *config = config_of(text);
    assert_int_equal(config->frontends[0].rank_count, WG_RANK_MAX + 1);
    assert_int_equal(config->frontends[0].ranks[WG_RANK_MAX], WG_RANK_MAX);
    wg_config_destroy(&config);
    free(text);
    free(many);
    free(keys);
}

static void many_frontends_are_read(void **state)
{
    (void)state;
    char *list = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&list, &size);
    assert_non_null(stream);
    fputs(CONFIG_MODEL CONFIG_RANKS CONFIG_COORDINATOR "frontends = (\n", stream);
    for (unsigned i = 0; i < 1024; i++)
        fprintf(stream,
                "%s{ name = \"fe%u\"; ranks = \"0-3\"; http = \"127.0.0.1:0\"; input = "
                "\"tcp://10.0.%u.%u:29550\";"
                " output = \"tcp://10.0.%u.%u:29551\"; }\n",
                i ? "," : "", i, i / 256, i % 256, i / 256, i % 256);
    fputs(");\n", stream);
    fclose(stream);
    wg_config_t *config = config_of(list);
    assert_int_equal(config->frontend_count, 1024);
    assert_string_equal(wg_config_frontend(config, "fe1023")->input.address, "tcp://10.0.3.255:29550");
    wg_config_destroy(&config);
    free(list);
}

/* --- printing --- */

/* One place where each struct is compared whole: a field that is read but not printed shows here. */
static void assert_same(const wg_config_t *left, const wg_config_t *right)
{
    assert_string_equal(left->model.name, right->model.name);
    assert_int_equal(left->model.vocab_size, right->model.vocab_size);
    assert_int_equal(left->model.eos_count, right->model.eos_count);
    for (uint32_t i = 0; i < left->model.eos_count; i++)
        assert_int_equal(left->model.eos_token_ids[i], right->model.eos_token_ids[i]);
    assert_int_equal(left->ranks.lockstep, right->ranks.lockstep);
    assert_string_equal(left->ranks.master_ip ? left->ranks.master_ip : "",
                        right->ranks.master_ip ? right->ranks.master_ip : "");
    assert_memory_equal(&left->coordinator, &right->coordinator, sizeof left->coordinator);
    assert_memory_equal(&left->limits, &right->limits, sizeof left->limits);
    assert_memory_equal(&left->timeouts, &right->timeouts, sizeof left->timeouts);
    assert_string_equal(left->log_level, right->log_level);
    for (uint32_t i = 0; i < left->frontend_count; i++) {
        assert_memory_equal(&left->frontends[i].input, &right->frontends[i].input, sizeof(config_endpoint_t));
        assert_memory_equal(&left->frontends[i].output, &right->frontends[i].output,
                            sizeof(config_endpoint_t));
        assert_memory_equal(&left->frontends[i].http, &right->frontends[i].http, sizeof(config_http_t));
    }
    /* The rest: master ports, names and ranks. */
    assert_true(wg_config_fingerprint(left) == wg_config_fingerprint(right));
}

static void assert_round_trip(wg_config_t *config)
{
    char *text = printed(config);
    wg_config_t *again = config_of(text);
    assert_same(config, again);
    char *text_again = printed(again);
    assert_string_equal(text, text_again);
    free(text_again);
    free(text);
    wg_config_destroy(&again);
    wg_config_destroy(&config);
}

static void what_is_printed_loads_to_the_same_values(void **state)
{
    (void)state;
    assert_round_trip(config_of(CONFIG_TEXT));
    assert_round_trip(config_of_replaced(" vocab_size = 32000; eos_token_ids = [ 2, 7 ];", ""));
    assert_round_trip(config_of_replaced(CONFIG_RANKS, LOCKSTEP));
    assert_round_trip(
        config_of_replaced("name = \"demo\"", "name = \"a \\\"quoted\\\" back\\\\slash \xc3\xa9\""));
    assert_round_trip(config_of_replaced("http = \"127.0.0.1:9000\"", "http = \"[::1]:9000\""));
    assert_round_trip(config_of_replaced("ranks = \"0,2\"", "ranks = \"3,0-1\""));
    assert_round_trip(config_of_replaced("input = \"tcp://127.0.0.1:29562\"",
                                         "input = \"tcp://[::1]:29562\"; input_bind = \"tcp://[::]:29562\""));
    assert_round_trip(config_of_replaced(CONFIG_RANKS, CONFIG_RANKS
                                         "log_level = \"debug\"; limits = { max_body_bytes = 1073741824; };\n"
                                         "timeouts = { http_idle_ms = 0; heartbeat_interval_ms = 100; "
                                         "startup_ms = 3000; on_startup_timeout = \"exit\"; };\n"));
}

static char *printed_keys(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    wg_config_print_keys(stream);
    fclose(stream);
    return text;
}

/* *text must be NULL, and is the caller's. */
static void read_text(const char *path, char **text)
{
    FILE *stream = fopen(path, "re");
    if (!stream)
        fail_msg("cannot be opened: %s", path);
    size_t size = 0;
    assert_true(getdelim(text, &size, '\0', stream) > 0);
    fclose(stream);
}

static void the_readme_holds_the_table_of_keys(void **state)
{
    (void)state;
    static const char before[] = "\n<!-- config keys -->\n";
    static const char after[] = "<!-- /config keys -->\n";
    char *readme = NULL;
    read_text(WG_SOURCE_DIR "/README.md", &readme);
    char *keys = printed_keys();
    char *at = strstr(readme, before);
    assert_non_null(at);
    char *end = strstr(at, after);
    assert_non_null(end);
    *end = '\0';
    assert_string_equal(at + strlen(before), keys);
    free(keys);
    free(readme);
}

static void the_sample_is_right(void **state)
{
    (void)state;
    wg_config_t *config = NULL;
    wg_error_t error = {0};
    if (wg_config_load(&config, WG_SOURCE_DIR "/conf/local.cfg", &error) != WG_OK)
        fail_msg("refused: %s", error.message);
    wg_config_t *same = config_of(CONFIG_TEXT);
    assert_int_equal(config->ranks.count, 4);
    assert_string_equal(config->model.name, "demo");
    assert_true(wg_config_fingerprint(config) == wg_config_fingerprint(same));
    assert_memory_equal(&config->limits, &same->limits, sizeof same->limits);
    assert_memory_equal(&config->timeouts, &same->timeouts, sizeof same->timeouts);
    wg_config_destroy(&same);
    assert_round_trip(config);
}

/* --- the fingerprint --- */

static uint64_t fingerprint_of(const char *old, const char *new)
{
    wg_config_t *config = config_of_replaced(old, new);
    uint64_t fingerprint = wg_config_fingerprint(config);
    wg_config_destroy(&config);
    return fingerprint;
}

static void the_fingerprint_is_of_what_engines_are_told(void **state)
{
    (void)state;
    uint64_t plain = fingerprint_of("demo", "demo");
    assert_true(plain != fingerprint_of("127.0.0.1:29550", "127.0.0.1:29549"));
    assert_true(plain != fingerprint_of("127.0.0.1:29553", "127.0.0.1:29549"));
    assert_true(plain != fingerprint_of("127.0.0.1:29563", "127.0.0.1:29549"));
    assert_true(plain != fingerprint_of("\"fe1\"", "\"fe2\""));
    assert_true(plain != fingerprint_of("\"0,2\"", "\"0,3\""));
    uint64_t lockstep = fingerprint_of(CONFIG_RANKS, LOCKSTEP);
    assert_true(plain != lockstep);
    char *ports = config_replaced(LOCKSTEP, "29602", "29603");
    assert_true(lockstep != fingerprint_of(CONFIG_RANKS, ports));
    free(ports);

    assert_true(plain == fingerprint_of("\"demo\"", "\"other\""));
    assert_true(plain == fingerprint_of("127.0.0.1:8000", "127.0.0.1:8002"));
    assert_true(plain == fingerprint_of("\"0,2\"", "\"2,0\""));
    assert_true(plain == fingerprint_of(CONFIG_RANKS, CONFIG_RANKS "limits = { max_in_flight = 7; };\n"));
    assert_true(plain == fingerprint_of("input = \"tcp://127.0.0.1:29562\"",
                                        "input = \"tcp://127.0.0.1:29562\"; input_bind = \"tcp://*:29562\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_goes_to_its_place),
        cmocka_unit_test(an_absent_key_has_its_default),
        cmocka_unit_test(the_wave_sockets_may_be_absent_together),
        cmocka_unit_test(a_lockstep_group_has_its_master),
        cmocka_unit_test(an_integer_may_be_a_long_one),
        cmocka_unit_test(every_form_of_address_is_kept_as_it_stands),
        cmocka_unit_test(localhost_becomes_a_number),
        cmocka_unit_test(an_ipc_path_may_have_107_bytes),
        cmocka_unit_test(a_wildcard_may_be_bound),
        cmocka_unit_test(an_http_host_becomes_a_number),
        cmocka_unit_test(any_free_port_may_be_wanted_twice),
        cmocka_unit_test(machines_that_are_apart_may_bind_the_same_ports),
        cmocka_unit_test(ranks_are_listed_in_ascending_order),
        cmocka_unit_test(a_list_of_65536_ranks_is_read),
        cmocka_unit_test(many_frontends_are_read),
        cmocka_unit_test(what_is_printed_loads_to_the_same_values),
        cmocka_unit_test(the_readme_holds_the_table_of_keys),
        cmocka_unit_test(the_sample_is_right),
        cmocka_unit_test(the_fingerprint_is_of_what_engines_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
