/* Addresses that are none, and addresses that two sockets would share. */
#include "tests/unit/config_file.h"

/* --- addresses --- */

static void assert_address_refused(const char *address, const char *reason)
{
    char keys[512];
    snprintf(keys, sizeof keys, "handshake = \"%s\";", address);
    const refusal_t refusal = {"handshake = \"tcp://127.0.0.1:29550\";", keys, "coordinator.handshake",
                               reason, 0};
    assert_refused(&refusal, 1);
}

static void an_address_that_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        const char *reason;
    } cases[] = {
        {"", "must be tcp://host:port or ipc:///path"},
        {"127.0.0.1:5000", "must be tcp://host:port or ipc:///path"},
        {"inproc://x", "must be tcp://host:port or ipc:///path"},
        {"udp://127.0.0.1:5000", "must be tcp://host:port or ipc:///path"},
        {"tcp://::1:5000", "put the IPv6 address in brackets: tcp://[::1]:5000"},
        {"tcp://fd00::2:5000", "put the IPv6 address in brackets: tcp://[fd00::2]:5000"},
        {"tcp://[::1]", "an IPv6 address must end with `]:port`"},
        {"tcp://[::1:5000", "an IPv6 address must end with `]:port`"},
        {"tcp://[::g]:5000", "`::g` is not an IPv6 address"},
        {"tcp://[127.0.0.1]:5000", "is not an IPv6 address"},
        {"tcp://[fe80::1%]:5000", "is not an IPv6 address"},
        {"tcp://[fe80::1%l o]:5000", "is not an IPv6 address"},
        {"tcp://[]:5000", "is not an IPv6 address"},
        {"tcp://host", "the port is missing: tcp://host:port"},
        {"tcp://", "the port is missing"},
        {"tcp://:5000", "the host is missing"},
        {"tcp://256.0.0.1:5000", "is not an IPv4 address"},
        {"tcp://1.2.3:5000", "is not an IPv4 address"},
        {"tcp://ho st:5000", "is not a host name"},
        {"tcp://eth0;10.0.0.1:5000", "is not a host name"},
        {"tcp://-host:5000", "is not a host name"},
        {"tcp://host:0", "the port must be a number in [1, 65535], not `0`"},
        {"tcp://host:65536", "the port must be a number in [1, 65535], not `65536`"},
        {"tcp://host:4294972296", "the port must be a number"},
        {"tcp://host:", "the port must be a number"},
        {"tcp://host:*", "the port must be a number"},
        {"tcp://host:+5", "the port must be a number"},
        {"tcp://host:5 ", "the port must be a number"},
        {"ipc://", "an ipc path must be absolute"},
        {"ipc://@abstract", "an ipc path must be absolute"},
        {"ipc://*", "an ipc path must be absolute"},
        {"ipc:///a b", "holds a space or a control character"},
        {"ipc:///\\xff", "is not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_address_refused(cases[i].address, cases[i].reason);
}

static void an_address_that_is_too_long(void **state)
{
    (void)state;
    char address[400];
    snprintf(address, sizeof address, "ipc:///%0107d", 0);
    assert_address_refused(address, "the ipc path has 108 bytes, the most are 107");
    snprintf(address, sizeof address, "tcp://h%0120d:5000", 0);
    assert_address_refused(address, "the address has 132 bytes, the most are 127");
    snprintf(address, sizeof address, "tcp://h%0150d:5000", 0);
    assert_address_refused(address, "the host has 151 bytes, the most are 127");
    snprintf(address, sizeof address, "tcp://h%0350d:5000", 0);
    assert_address_refused(address, "the host has 351 bytes, the most are 127");
    assert_address_refused("tcp://[fe80::1%0123456789012345]:5000", "is not an IPv6 address");
}

static void a_wildcard_that_peers_would_be_told(void **state)
{
    (void)state;
    static const char *const wildcards[] = {"tcp://*:5000", "tcp://0.0.0.0:5000", "tcp://[::]:5000",
                                            "tcp://[0:0::0]:5000"};
    for (size_t i = 0; i < sizeof wildcards / sizeof *wildcards; i++)
        assert_address_refused(wildcards[i],
                               "is a wildcard: give the address that engines reach, and put the "
                               "wildcard in `handshake_bind`");
    ASSERT_REFUSED(
        {"tcp://127.0.0.1:29563", "tcp://*:29563", "frontends[1].output", "in `output_bind`", 0}, );
}

static void a_bind_address_that_does_not_fit(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        {"  control =", "  control_bind = \"tcp://*\";\n  control =", "coordinator.control_bind",
         "the port is missing", 0},
        {"  control =", "  control_bind = \"ipc:///tmp/x\";\n  control =", "coordinator.control_bind",
         "must have the transport of `control`", 0},
        {"  engine_output = \"tcp://127.0.0.1:29552\";", "  engine_output_bind = \"tcp://*:29552\";",
         "coordinator.engine_output_bind", "needs `engine_output` beside it", 0}, );
}

static void an_http_address_that_is_none(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        {"\"127.0.0.1:9000\"", "\"9000\"", "coordinator.http", "the port is missing: host:port", 0},
        {"\"127.0.0.1:9000\"", "\"::1:9000\"", "coordinator.http",
         "put the IPv6 address in brackets: [::1]:9000", 0},
        {"\"127.0.0.1:9000\"", "\"node1:9000\"", "coordinator.http", "the host must be numeric", 0},
        {"\"127.0.0.1:9000\"", "\"[fe80::1%lo]:9000\"", "coordinator.http", "the host must be numeric", 0},
        {"\"127.0.0.1:9000\"", "\"127.0.0.1:65536\"", "coordinator.http", "a number in [0, 65535]", 0},
        {"\"127.0.0.1:9000\"", "\"http://127.0.0.1:9000\"", "coordinator.http", "in brackets", 0},
        {"\"127.0.0.1:8001\"", "\"127.0.0.1:\"", "frontends[1].http", "the port must be a number", 0}, );
}

/* --- overlaps --- */

static void two_sockets_with_one_address(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        {"127.0.0.1:29561", "127.0.0.1:29560", "frontends[0].output", "overlaps with frontends[0].input", 0},
        {"127.0.0.1:29562", "127.0.0.1:29560", "frontends[1].input", "overlaps with frontends[0].input", 0},
        {"127.0.0.1:29562", "localhost:29560", "frontends[1].input", "overlaps with frontends[0].input", 0},
        {"127.0.0.1:8001", "127.0.0.1:8000", "frontends[1].http", "overlaps with frontends[0].http", 0},
        {"127.0.0.1:8001", "0.0.0.0:8000", "frontends[1].http", "overlaps with frontends[0].http", 0},
        {"127.0.0.1:8001", "[::]:9000", "frontends[1].http", "overlaps with coordinator.http", 0},
        {"127.0.0.1:9000", "127.0.0.1:29550", "coordinator.http", "overlaps with coordinator.handshake", 0},
        {"input = \"tcp://127.0.0.1:29562\"",
         "input = \"tcp://127.0.0.1:29562\"; input_bind = \"tcp://*:29554\"", "frontends[1].input_bind",
         "overlaps with coordinator.control", 0},
        {"input = \"tcp://127.0.0.1:29562\"",
         "input = \"tcp://127.0.0.1:29560\"; input_bind = \"tcp://127.0.0.1:29562\"",
         "frontends[1].input_bind", "overlaps with frontends[0].input", 0},
        {"input = \"tcp://127.0.0.1:29562\"; output = \"tcp://127.0.0.1:29563\"",
         "input = \"ipc:///tmp/wg\"; output = \"ipc:///tmp/wg\"", "frontends[1].output",
         "overlaps with frontends[1].input", 0},
        {"input = \"tcp://127.0.0.1:29562\"; output = \"tcp://127.0.0.1:29563\"",
         "input = \"tcp://[::1]:5\"; output = \"tcp://[0:0::1]:5\"", "frontends[1].output",
         "overlaps with frontends[1].input", 0}, );
}

/* Each of the coordinator's sockets is looked at. */
static void a_frontend_on_a_port_of_the_coordinator(void **state)
{
    (void)state;
    static const char *const keys[] = {"handshake", "engine_publish", "engine_output", "frontend_publish",
                                       "control",   "input",          "output"};
    for (unsigned i = 0; i < 7; i++) {
        char address[32];
        char reason[64];
        snprintf(address, sizeof address, "127.0.0.1:2955%u", i);
        snprintf(reason, sizeof reason, "overlaps with coordinator.%s", keys[i]);
        const refusal_t refusals[] = {{"127.0.0.1:8001", address, "frontends[1].http", reason, 0},
                                      {"127.0.0.1:29563", address, "frontends[1].output", reason, 0}};
        assert_refused(refusals, 2);
    }
}

/* On one machine, or possibly so: wildcards on one port meet. */
static void neighbours_with_one_wildcard_port(void **state)
{
    (void)state;
    static const char text[] = CONFIG_MODEL CONFIG_RANKS
        "coordinator = { handshake = \"tcp://10.0.0.1:29550\"; control = \"tcp://10.0.0.1:29551\";\n"
        "  input = \"tcp://10.0.0.1:29552\"; output = \"tcp://10.0.0.1:29553\"; http = \"127.0.0.1:9000\"; "
        "};\n"
        "frontends = (\n"
        "  { name = \"fe0\"; ranks = \"0-1\"; http = \"0.0.0.0:8000\";\n"
        "    input = \"tcp://10.0.0.2:29550\"; output = \"tcp://10.0.0.2:29551\"; },\n"
        "  { name = \"fe1\"; ranks = \"2-3\"; http = \"0.0.0.0:8000\";\n"
        "    input = \"tcp://10.0.0.3:29550\"; output = \"tcp://10.0.0.3:29551\"; } );\n";
    wg_config_t *apart = config_of(text);
    wg_config_destroy(&apart);
    static const char *const hosts[] = {"10.0.0.2:29561", "127.0.0.1:29561"};
    for (size_t i = 0; i < 2; i++) {
        char *near = config_replaced(text, "10.0.0.3:29551", hosts[i]);
        assert_refused_at(near, 8, "frontends[1].http", "overlaps with frontends[0].http");
        free(near);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_that_is_none),
        cmocka_unit_test(an_address_that_is_too_long),
        cmocka_unit_test(a_wildcard_that_peers_would_be_told),
        cmocka_unit_test(a_bind_address_that_does_not_fit),
        cmocka_unit_test(an_http_address_that_is_none),
        cmocka_unit_test(two_sockets_with_one_address),
        cmocka_unit_test(a_frontend_on_a_port_of_the_coordinator),
        cmocka_unit_test(neighbours_with_one_wildcard_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
